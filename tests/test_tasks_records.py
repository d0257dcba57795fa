"""What a row must hold: fields, kinds and tests, each fault named with file, row and key."""

import pytest

from stages.common.cli import UserError
from stages.common.tables import TASKS
from stages.tasks.records import Record, functions, new_test, parse, task

GOOD = {
    "task_id": "a/1",
    "source": "a",
    "prompt": "Write f.",
    "entry_point": "f",
    "tests": [new_test("assert f() == 1")],
}
RECORD = Record("data.jsonl, line 7", {"n": 3, "s": "x", "flag": True, "empty": None})


def test_a_task_has_every_column():
    row = task(RECORD, **GOOD)
    assert set(row) == set(TASKS.schema.names)
    assert row["kind"] == "function" and row["inplace"] is False and row["packages"] == []
    assert row["reference"] is None


def test_get_takes_the_first_field_that_is_there():
    assert RECORD.get("empty", "s") == "x"
    assert RECORD.get("none", default=None) is None
    assert RECORD.get("n", kind=(int, float)) == 3


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (("code",), str, "field 'code' is missing"),
        (("empty",), str, "field 'empty' is missing"),
        (("sx", "t"), str, "did you mean 's'"),
        (("n",), str, "field 'n' holds int, not str"),
        (("flag",), int, "field 'flag' holds bool, not int"),
    ],
)
def test_get_names_file_row_and_field(names, kind, message):
    with pytest.raises(UserError, match=r"^data\.jsonl, line 7: ") as error:
        RECORD.get(*names, kind=kind)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"kind": "functional"},
            "unknown kind 'functional', known are function, pytest, stdio, unittest; did you mean",
        ),
        ({"tests": []}, "task a/1 has no tests"),
        ({"prompt": " \n"}, "'prompt' is empty"),
        ({"entry_point": None}, "'entry_point' must name"),
        ({"entry_point": "f()"}, "'entry_point' must name"),
        ({"tests": [new_test("assert f() == 1"), new_test("assert f(")]}, "tests[1].code is not Python"),
        ({"tests": [new_test(" ")]}, "tests[0]: a function test needs 'code'"),
        ({"setup": "def broken("}, "field 'setup' is not Python"),
        ({"prelude": "import"}, "field 'prelude' is not Python"),
        ({"kind": "pytest", "tests": [new_test("test_a")]}, "'setup' must hold the test file"),
        ({"kind": "pytest", "tests": [new_test("test_b")], "setup": "def test_a(): pass"}, "no test function 'test_b'"),
        ({"kind": "unittest", "tests": [new_test("test_a")]}, "'setup' must hold the test file of a unittest task"),
        ({"kind": "stdio", "tests": [new_test(stdin="1")]}, "tests[0]: a stdio test needs 'stdin' and 'stdout'"),
    ],
)
def test_what_cannot_be_run_is_refused(change, message):
    with pytest.raises(UserError) as error:
        task(RECORD, **GOOD | change)
    assert str(error.value).startswith("data.jsonl, line 7: ") and message in str(error.value)


def test_pytest_names_may_be_methods():
    setup = "class TestF:\n    def test_a(self): pass\n"
    row = task(RECORD, **GOOD | {"kind": "pytest", "setup": setup, "tests": [new_test("TestF::test_a")]})
    assert row["tests"][0]["code"] == "TestF::test_a"


def test_empty_standard_input_and_output_are_fine():
    row = task(RECORD, **GOOD | {"kind": "stdio", "entry_point": None, "tests": [new_test(stdin="", stdout="")]})
    assert row["tests"] == [{"visible": False, "code": None, "stdin": "", "stdout": ""}]


def test_functions_are_those_at_the_top():
    tree = parse(RECORD, "def a():\n    def b(): pass\nasync def c(): pass\nclass D:\n    def e(self): pass\n", "code")
    assert list(functions(tree)) == ["a", "c"]


def test_null_bytes_are_not_python():
    with pytest.raises(UserError, match="code is not Python"):
        parse(RECORD, "a = '\0'", "code")
