"""Which way a task is judged, from the task alone."""

import pytest

from stages.execute.modes import ANSWER_BLIND, IN_PROCESS, STDIO, defines_classes, mode_of, operators_of
from tests.test_execute_stage import task

EQUAL = "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, other): return self.x == other.x\n"
PYTEST = "import pytest\nfrom solution import add, P\n"


@pytest.mark.parametrize(
    ("setup", "mode"),
    [
        ("def test_a():\n    assert add(1, 2) == 3\n", ANSWER_BLIND),
        ("def test_a():\n    with pytest.raises(TypeError):\n        add(1, 'a')\n", ANSWER_BLIND),
        ("@pytest.mark.parametrize('a, b', [(1, 2)])\ndef test_a(a, b):\n    assert add(a, b) == 3\n", ANSWER_BLIND),
        ("class TestA:\n    def setup_method(self): self.x = 1\n    def test_a(self): add(self.x, 1)\n", ANSWER_BLIND),
        ("@pytest.fixture\ndef two():\n    return 2\ndef test_a(two):\n    assert add(two, 2) == 4\n", IN_PROCESS),
        ("def test_a(tmp_path):\n    add(1, 1)\n", IN_PROCESS),
        ("def test_a(capsys):\n    add(1, 1)\n", IN_PROCESS),
        ("def test_a(monkeypatch):\n    add(1, 1)\n", IN_PROCESS),
        ("from unittest.mock import patch\n@patch('solution.add')\ndef test_a(m):\n    add(1, 1)\n", IN_PROCESS),
        ("import solution\nclass Q(solution.P):\n    pass\ndef test_a():\n    Q(1)\n", IN_PROCESS),
        ("class Q(P):\n    pass\ndef test_a():\n    Q(1)\n", IN_PROCESS),
        ("def test_a(:", ANSWER_BLIND),
    ],
)  # fmt: skip
def test_pytest_files(setup, mode):
    assert mode_of(task(kind="pytest", setup=PYTEST + setup, tests=("test_a",))) == mode


def test_kinds():
    assert mode_of(task()) == ANSWER_BLIND
    assert mode_of(task(kind="stdio")) == STDIO
    assert mode_of(task(kind="unittest", setup="import unittest")) == IN_PROCESS


@pytest.mark.parametrize(
    ("reference", "tests", "mode"),
    [
        (EQUAL, ("assert P(1) == P(1)",), IN_PROCESS),
        (EQUAL, ("assert add(1, 2) == 3",), ANSWER_BLIND),  # the tests do not name the class
        ("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n", ("assert P(1) == P(1)",), IN_PROCESS),
        ("class P:\n    def get(self): return 1\n", ("assert P().get() == 1",), ANSWER_BLIND),
        (None, ("assert P(1) == P(1)",), ANSWER_BLIND),
        ("class P(", ("assert P(1) == P(1)",), ANSWER_BLIND),
    ],
)
def test_objects_that_compare_themselves(reference, tests, mode):
    assert mode_of(task(reference=reference, tests=tests)) == mode


def test_the_mode_does_not_look_at_a_program():
    one = task(reference="def add(a, b): return a + b")
    assert "code" not in one and mode_of(one) == ANSWER_BLIND


@pytest.mark.parametrize(
    ("reference", "classes", "operators"),
    [
        (None, None, None),
        ("def f(:", None, None),
        ("def f(): pass", False, []),
        ("class A:\n    def __or__(s, o): 1\n    __ror__ = __or__\n    def go(self): 1", True, ["__or__", "__ror__"]),
        ("class A(Exception): pass\nclass B(A):\n    def __len__(self): return 1\n", True, ["__len__"]),
        ("from typing import Generic\nclass A(Generic[T]):\n    def __len__(self): return 1\n", True, ["__len__"]),
        ("import abc\nclass A(abc.ABC): pass\n", True, []),
        ("class A(list): pass\n", True, None),
        ("from fractions import Fraction\nclass A(Fraction): pass\n", True, None),
    ],
)  # fmt: skip
def test_what_the_reference_says_of_classes(reference, classes, operators):
    assert (defines_classes(reference), operators_of(reference)) == (classes, operators)
