"""KodCode: test functions as tests, imports of the solution, packages."""

import ast
from functools import cache
from pathlib import Path

import pytest

from stages.common.cli import UserError
from stages.tasks import kodcode
from stages.tasks.files import read_file
from stages.tasks.records import Record

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "kodcode_demo.jsonl"
SOLUTION = """import numpy as np

def push(items, x):
    items.append(x)

def size(items):
    return len(items)
"""
TESTS = """from solution import push

def test_push():
    a = []
    push(a, 1)
    assert a == [1]

def helper():
    pass

def test_twice():
    a = [1]
    push(a, 2)
    assert a == [1, 2]
"""
ROW = {
    "question_id": "Algorithm_1_I",
    "question": "Write a function `push` that appends.",
    "solution": SOLUTION,
    "test_code": TESTS,
    "gpt_difficulty": "easy",
}
WITHOUT_IMPORT = """import pytest

def test_size():
    assert size([]) == 0

def test_raises():
    with pytest.raises(Exception):
        size()
"""
CLASSES = """import pytest
import solution

@pytest.mark.parametrize("n", [1, 2])
def test_n(n):
    solution.size([])

class TestSize:
    def setup_method(self):
        pass

    def test_zero(self):
        assert solution.size([]) == 0
"""


def convert(**change):
    return kodcode.convert(Record("kod.json, row 1", ROW | change))


@cache
def tasks() -> tuple:
    if not DATA.exists():
        pytest.skip(f"no KodCode file at {DATA}")
    return tuple(kodcode.convert(record) for record in read_file(DATA))


def test_a_row():
    row = convert()
    assert row["task_id"] == "kodcode/Algorithm_1_I" and row["kind"] == "pytest" and row["difficulty"] == "easy"
    assert [(test["code"], test["visible"]) for test in row["tests"]] == [("test_push", True), ("test_twice", False)]
    assert row["setup"] == TESTS and row["reference"] == SOLUTION and row["entry_point"] == "push"
    assert row["packages"] == ["numpy"] and row["inplace"] is True


def test_the_published_column_names():
    row = convert(test_code=None, test=TESTS, question_id=None, conversation_id="abc")
    assert row["task_id"] == "kodcode/abc" and len(row["tests"]) == 2


def test_a_file_without_the_import_gets_it():
    row = convert(test_code=WITHOUT_IMPORT)
    assert row["setup"] == f"from solution import size\n{WITHOUT_IMPORT}" and row["entry_point"] == "size"


def test_names_that_the_file_defines_itself_are_not_imported():
    code = "def size(items):\n    return 0\n\ndef test_push():\n    push([], 1)\n    assert size([]) == 0\n"
    assert convert(test_code=code)["setup"].startswith("from solution import push\n")


def test_a_function_the_question_does_not_name_is_named():
    assert convert(question="Append to a list.")["prompt"] == "Append to a list.\n\nName it `push`."
    assert "Name it" not in convert()["prompt"]


def test_parametrised_functions_and_classes():
    assert [test["code"] for test in convert(test_code=CLASSES)["tests"]] == ["test_n", "TestSize::test_zero"]


def test_what_pytest_would_not_run_is_no_test():
    code = """import unittest
from solution import size

def test_checks():
    yield size, []

def test_zero():
    def numbers():
        yield 0
    assert size(list(numbers())) == 1

class Helper:
    def test_nothing(self):
        pass

class Sizes(unittest.TestCase):
    def test_empty(self):
        self.assertEqual(size([]), 0)
"""
    assert [test["code"] for test in convert(test_code=code)["tests"]] == ["test_zero", "Sizes::test_empty"]


def test_scipy_and_pandas_are_found_inside_functions():
    code = (
        TESTS + "\ndef test_more():\n    import pandas as pd\n    from scipy.special import comb\n    import xml.dom\n"
    )
    assert convert(test_code=code)["packages"] == ["numpy", "scipy", "pandas"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_code": "from solution import push\n"}, "no test function"),
        ({"test_code": None}, "field 'test_code' or 'test' is missing"),
        ({"solution": None}, "field 'solution' is missing"),
        ({"solution": "def push(:"}, "field 'solution' is not Python"),
        ({"test_code": "def test_a(:"}, "the test file is not Python"),
        ({"question": "  "}, "'prompt' is empty"),
        ({"question_id": None}, "field 'question_id' or 'conversation_id' is missing"),
    ],
)
def test_faults_are_named(change, message):
    with pytest.raises(UserError) as error:
        convert(**change)
    assert str(error.value).startswith("kod.json, row 1: ") and message in str(error.value)


def test_the_demo_file():
    assert len(tasks()) == 232 and len({task["task_id"] for task in tasks()}) == 232
    assert sum(len(task["tests"]) for task in tasks()) == 818
    assert all(sum(test["visible"] for test in task["tests"]) == 1 for task in tasks())
    assert {package for task in tasks() for package in task["packages"]} == {"numpy", "scipy"}


def test_every_name_imported_from_the_solution_is_there():
    for task in tasks():
        names = kodcode._from_solution(ast.parse(task["setup"]))
        defined = set(kodcode._defined(ast.parse(task["reference"])))
        assert set(names) <= defined, task["task_id"]
