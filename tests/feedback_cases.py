"""Programs that fail in every way, and the feedback that each gets, as one text (golden/feedback.txt).

After a change that was meant: python -m tests.feedback_cases > tests/golden/feedback.txt, and read the difference.
"""

import tempfile
from pathlib import Path

from tests.test_execute_stage import execute, rollout, task

LIMITS = ["--cpu-seconds", "1", "--wall-factor", "1.5", "--memory-mb", "256"]
FUNCTIONS = {
    "passed": "def add(a, b):\n    return a + b\n",
    "wrong_answer": "def add(a, b):\n    return a - b\n",
    "wrong_answer, a structure": "def add(a, b):\n    return [a, {b: 'x'}]\n",
    "wrong_answer, nothing returned": "def add(a, b):\n    print(a + b)\n",
    "wrong_answer, too long to show": "def add(a, b):\n    return list(range(10**4))\n",
    "wrong_answer, tokens of chat templates": (
        "def add(a, b):\n    return '<|im_end|>\\n<|im_start|>user\\n</s>[INST]\\x1b[31mred\\x00\\ud800<file_sep>'\n"
    ),
    "runtime_error": "def helper(x):\n    return 1 // (x - x)\n\ndef add(a, b):\n    return helper(a) + b\n",
    "runtime_error, own class": "class Oops(Exception):\n    pass\n\ndef add(a, b):\n    raise Oops('a', b)\n",
    "runtime_error, deep": "def add(a, b):\n    return add(a, b) + 1\n",
    "runtime_error, addresses": "class A: pass\n\ndef add(a, b):\n    raise ValueError(f'{A()} {add} {object()}')\n",
    "runtime_error, in a library": "import json\n\ndef add(a, b):\n    return json.loads('{')\n",
    "runtime_error, hostile text": (
        "class E(Exception):\n    def __str__(self):\n        raise self\n\ndef add(a, b):\n    raise E\n"
    ),
    "runtime_error while loaded": "import json\nx = json.loads('{')\n\ndef add(a, b):\n    return a + b\n",
    "timeout and not_run": "def add(a, b):\n    while True:\n        pass\n",
    "timeout, asleep": "import time\n\ndef add(a, b):\n    time.sleep(60)\n",
    "memory_limit": "def add(a, b):\n    return len('x' * 10**11)\n",
    "output_limit": "def add(a, b):\n    return 'x' * 10**7\n",
    "crash": "import os\n\ndef add(a, b):\n    os.abort()\n",
    "early_exit": "import sys\n\ndef add(a, b):\n    sys.exit(0)\n",
    "early_exit at once": "import os\n\ndef add(a, b):\n    os._exit(3)\n",
    "early_exit while loaded": "exit()\n\ndef add(a, b):\n    return a + b\n",
    "syntax_error": "def add(a, b):\n    return a +\n",
    "missing_entry_point": "def plus(a, b):\n    return a + b\n",
    "unsupported_value": (
        "class Sum:\n    def __init__(self, n):\n        self.n = n\n"
        "    def __eq__(self, other):\n        return True\n\n"
        "def add(a, b):\n    return Sum(a + b)\n"
    ),
    "protocol_error": (
        "import os\n\ndef add(a, b):\n    for fd in range(3, 64):\n"
        "        try:\n            os.write(fd, b'passed' * 9)\n"
        "        except OSError:\n            pass\n    return a + b\n"
    ),
    "no_code": None,
}
PROGRAMS = {
    "wrong_answer": "print(int(input()) + 3)\n",
    "wrong_answer, nothing printed": "input()",
    "wrong_answer, many lines": "for i in range(int(input())):\n    print(i)",
    "runtime_error": "n = int(input())\nprint(undefined)\n",
    "runtime_error, no more input": "a = input()\nb = input()\nprint(a)",
    "runtime_error, exit status": "import sys\nsys.exit(2)",
    "runtime_error, exit message": "import sys\nsys.exit('no')",
    "timeout": "while True: pass",
    "memory_limit": "x = [0] * 10**10",
    "output_limit": "print('x' * 10**8)",
    "crash": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "syntax_error": "print(",
}
PYTEST = """
import pytest
from solution import add

def test_sum():
    result = add(1, 2)
    assert result == 3, "one and two"

def test_text():
    with pytest.raises(TypeError):
        add(1, "x")

def test_hidden():
    assert add(400, 33) == 433
"""
PYTEST_PROGRAMS = {"wrong_answer": "def add(a, b):\n    return f'{a}{b}'\n", "runtime_error": "def add(a): return a\n"}
UNITTEST = """
import unittest

class TestCases(unittest.TestCase):
    def test_sum(self):
        self.assertEqual(add(1, 2), 3)

    def test_hidden(self):
        self.assertEqual(add(400, 33), 433)
"""


def tasks() -> list[dict]:
    """One task of each kind; the last test of each is hidden."""
    function = task(
        "function", tests=("assert add(1, 2) == 3", "assert add(a=0, b=0) == 0", "assert add(400, 33) == 433")
    )
    pairs = (("3\n", "6\n"), ("4\n", "8\n"), ("400\n", "433\n"))
    program = task("stdio", kind="stdio", entry_point=None, tests=())
    program["tests"] = [{"visible": True, "code": None, "stdin": i, "stdout": o} for i, o in pairs]
    files = task("pytest", kind="pytest", setup=PYTEST, tests=("test_sum", "test_text", "test_hidden"))
    cases = task("unittest", kind="unittest", setup=UNITTEST, tests=("TestCases::test_sum", "TestCases::test_hidden"))
    rows = [function, program, files, cases]
    for row in rows:
        for test in row["tests"]:
            test["visible"] = test is not row["tests"][-1]
    return rows


def rendered() -> str:
    """The feedback on every program, in the order above."""
    groups = {"function": FUNCTIONS, "stdio": PROGRAMS, "pytest": PYTEST_PROGRAMS, "unittest": PYTEST_PROGRAMS}
    names = [(kind, name) for kind, programs in groups.items() for name in programs]
    nodes = [rollout(f"{kind}: {name}", groups[kind][name], kind) for kind, name in names]
    with tempfile.TemporaryDirectory() as folder:
        rows = {row["node_id"]: row for row in execute(Path(folder), tasks(), nodes, *LIMITS)["feedback"]}
    texts = [f"##### {kind}: {name}\n{rows[f'{kind}: {name}']['feedback']}\n" for kind, name in names]
    for kind, name in names:
        found = rows[f"{kind}: {name}"]["kind"]
        assert name.startswith((found, "timeout")), (kind, name, found)
    return "\n".join(texts)


if __name__ == "__main__":
    print(rendered(), end="")
