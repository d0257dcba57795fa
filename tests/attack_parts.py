"""What the tables of cheats (attacks_bad.py) and of odd but right programs (attacks_good.py) share."""

TESTS = ["assert f(1) == 2", "assert f(3) == 6", "assert f(10) == 20"]
STDIO = [{"stdin": "1\n", "stdout": "2\n"}, {"stdin": "21\n", "stdout": "42\n"}]
WRONG = "failed:wrong_answer"
OBJECT = "failed:unsupported_value"
EITHER = f"{WRONG}|{OBJECT}"

# How a program that knows our code finds its own end of the channel.
PEER = """
import sys
def peer():
    frame = sys._getframe()
    while frame and not hasattr(frame.f_locals.get("self"), "request"):
        frame = frame.f_back
    return frame.f_locals["self"]
"""
WRITE = """
import json, os, struct
def write(message):
    data = json.dumps(message).encode()
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">I", len(data)) + data)
        except OSError:
            pass
"""


FILE = """
import pytest
from solution import f

@pytest.mark.parametrize("x", [1, 2, 3])
def test_each(x):
    assert f(x) == 2 * x

class TestMore:
    def setup_method(self):
        self.y = 4
    def test_more(self):
        assert f(2) == self.y
    def test_raises(self):
        with pytest.raises(ValueError, match="negative"):
            f(-1)
"""
RIGHT = "def f(x):\n    if x < 0: raise ValueError('negative number')\n    return 2 * x\n"
