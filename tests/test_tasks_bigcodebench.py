"""BigCodeBench: test methods as tests, libraries, and a completion after the signature."""

import unittest

import pytest

from stages.common.cli import UserError
from stages.tasks import bigcodebench
from stages.tasks.records import Record

TESTS = """import unittest
import random

class Helper:
    def test_nothing_but_a_helper(self):
        pass

class TestCases(unittest.TestCase):
    def setUp(self):
        self.values = [3, 1, 2]

    def test_case_1(self):
        self.assertEqual(task_func(self.values), [1, 2, 3])

    def test_case_2(self):
        self.assertEqual(task_func([]), [])
"""
ROW = {
    "task_id": "BigCodeBench/7",
    "complete_prompt": "import random\n\ndef task_func(values):\n    '''Sort values.'''\n",
    "instruct_prompt": "Sort values.\nYou should write self-contained code starting with: ...",
    "canonical_solution": "    return sorted(values)\n",
    "code_prompt": "import random\ndef task_func(values):\n",
    "test": TESTS.replace("class Helper", "class _Base"),
    "entry_point": "task_func",
    "libs": "['random', 'pandas', 'matplotlib.pyplot']",
}


def convert(**change):
    return bigcodebench.convert(Record("bcb.jsonl, line 3", ROW | change))


def test_a_row():
    row = convert(test=TESTS.replace("test_nothing", "nothing"))
    assert row["kind"] == "unittest" and row["task_id"] == "BigCodeBench/7"
    assert [(test["code"], test["visible"]) for test in row["tests"]] == [
        ("TestCases::test_case_1", True),
        ("TestCases::test_case_2", False),
    ]
    assert row["packages"] == ["matplotlib", "pandas"] and row["prompt"].startswith("Sort values.")


@pytest.mark.parametrize("completion", [None, "def task_func(values):\n    return sorted(values)\n"])
def test_reference_and_completion_run_after_the_prelude(completion):
    row = convert()
    space: dict = {"__name__": "task"}
    for code in (row["prelude"], completion or row["reference"], row["setup"]):
        exec(code, space)
    suite = unittest.TestSuite(
        space[test["code"].split("::")[0]](test["code"].split("::")[1]) for test in row["tests"][1:]
    )
    result = unittest.TestResult()
    suite.run(result)
    assert result.testsRun == 2 and result.wasSuccessful()


def test_complete_only_rows_and_list_of_libraries():
    row = convert(instruct_prompt=None, code_prompt=None, libs=["json", "numpy"])
    assert row["prompt"] == ROW["complete_prompt"].strip() and row["prelude"] is None and row["packages"] == ["numpy"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test": "import unittest\n"}, "has no tests"),
        ({"test": "class T(:"}, "field 'test' is not Python"),
        ({"libs": "[random]"}, "field 'libs' is not a list"),
        ({"canonical_solution": None}, "field 'canonical_solution' is missing"),
        ({"code_prompt": "def f(x"}, "field 'prelude' is not Python"),
    ],
)
def test_faults_are_named(change, message):
    with pytest.raises(UserError) as error:
        convert(**change)
    assert str(error.value).startswith("bcb.jsonl, line 3: ") and message in str(error.value)
