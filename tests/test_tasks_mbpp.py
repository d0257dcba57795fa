"""MBPP: order of code, set-up and tests; entry points; both forms of the data set."""

import contextlib
import io
from functools import cache
from pathlib import Path

import pytest

from stages.common.cli import UserError
from stages.tasks import mbpp
from stages.tasks.files import read_file
from stages.tasks.records import Record

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "mbpp.jsonl"
ROW = {
    "task_id": 7,
    "text": "Write a function to add one.\r\n",
    "code": "def helper(x):\r\n    return x\r\ndef add_one(n):\r\n\treturn helper(n) + 1",
    "test_setup_code": "",
    "test_list": ["assert add_one(1) == 2", "assert set([add_one(2)]) == {3}", "assert add_one(3)==4 "],
    "challenge_test_list": ["assert add_one(10**9) == 10**9 + 1"],
}


def convert(**change):
    return mbpp.convert(Record("mbpp.jsonl, line 1", ROW | change))


@cache
def tasks() -> tuple:
    if not DATA.exists():
        pytest.skip(f"no MBPP file at {DATA}")
    return tuple(mbpp.convert(record) for record in read_file(DATA))


def test_a_row():
    row = convert()
    assert row["task_id"] == "mbpp/7" and row["entry_point"] == "add_one"
    assert row["prompt"] == "Write a function to add one."
    assert "\r" not in row["reference"] and "\n\treturn helper" in row["reference"]
    assert [(test["code"], test["visible"]) for test in row["tests"]] == [
        ("assert add_one(1) == 2", True),
        ("assert set([add_one(2)]) == {3}", False),
        ("assert add_one(3)==4", False),
    ]
    assert row["setup"] is None and row["inplace"] is False


def test_the_sanitised_form():
    row = convert(text=None, prompt="Add one.", test_setup_code=None, test_imports=["import math", "import re"])
    assert row["prompt"] == "Add one." and row["setup"] == "import math\nimport re"


def test_entry_point_inside_another_call():
    assert convert(test_list=["assert sorted(add_one(n) for n in [2, 1]) == [2, 3]"])["entry_point"] == "add_one"


def test_entry_point_may_be_an_assigned_lambda():
    row = convert(code="twice = lambda x: 2 * x", test_list=["assert twice(2) == 4"])
    assert row["entry_point"] == "twice"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"test_list": []}, "at least one test"),
        ({"test_list": [" "]}, "at least one test"),
        ({"test_list": "assert add_one(1) == 2"}, "field 'test_list' holds str, not list"),
        (
            {"test_list": ["assert other(1) == 2"]},
            "calls none of the names that the solution defines (helper, add_one)",
        ),
        ({"code": "def add_one(n:"}, "field 'code' is not Python"),
        ({"code": None}, "field 'code' is missing"),
        ({"text": None}, "field 'text' or 'prompt' is missing"),
    ],
)
def test_faults_are_named(change, message):
    with pytest.raises(UserError) as error:
        convert(**change)
    assert str(error.value).startswith("mbpp.jsonl, line 1: ") and message in str(error.value)


def test_every_reference_passes():
    """Code, then set-up, then one test, for each of the tests of all 974 tasks."""
    failed = []
    for task in tasks():
        for test in task["tests"]:
            namespace: dict = {}
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    for code in (task["reference"], task["setup"] or "", test["code"]):
                        exec(code, namespace)
            except Exception as error:
                failed.append((task["task_id"], test["code"], repr(error)))
    assert not failed and len(tasks()) == 974


def test_setup_uses_the_solutions_classes():
    with_setup = [task["task_id"] for task in tasks() if task["setup"]]
    assert with_setup == ["mbpp/367", "mbpp/927"]


def test_no_carriage_returns_are_left():
    assert not any("\r" in (task["reference"] + task["prompt"] + (task["setup"] or "")) for task in tasks())
