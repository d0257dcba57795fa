"""The project's own format: what is optional, what a test is, what is refused."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.tasks import own
from stages.tasks.files import read_file
from stages.tasks.records import Record

ROW = {
    "task_id": "mine/add",
    "prompt": "Write add.",
    "entry_point": "add",
    "tests": [{"code": "assert add(1) == 2", "visible": True}, {"code": "assert add(2) == 3"}],
}


def convert(**change):
    return own.convert(Record("mine.jsonl, line 1", ROW | change))


def test_least_row():
    row = convert()
    assert row["source"] == "mine" and row["kind"] == "function"
    assert [test["visible"] for test in row["tests"]] == [True, False]


def test_all_columns_are_kept():
    given = {
        "source": "book",
        "prelude": "import math",
        "setup": "import random",
        "reference": "def add(n): return n + 1",
        "difficulty": "easy",
        "inplace": True,
        "packages": ["numpy"],
        "stub": "def add(n):",
        "cpu_seconds": 2,
        "memory_mb": 256,
    }
    row = convert(**given)
    assert {name: row[name] for name in given} == given


def test_tests_with_stdin_make_a_program():
    row = convert(entry_point=None, tests=[{"stdin": "1\n", "stdout": "2\n", "visible": True}])
    assert row["kind"] == "stdio" and row["entry_point"] is None
    assert (row["exact"], row["tolerance"]) == (False, None)
    for given in ({"exact": True}, {"tolerance": 1e-9}, {"tolerance": 0}):
        row = convert(entry_point=None, tests=[{"stdin": "1\n", "stdout": "2\n"}], **given)
        assert given.items() <= row.items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entrypoint": "add"}, "unknown field 'entrypoint'; did you mean 'entry_point'?"),
        ({"zzz": 1}, "unknown field 'zzz'; known are task_id"),
        (
            {"tests": [{"code": "assert 1", "visable": True}]},
            "unknown field 'visable' in tests[0]; did you mean 'visible'?",
        ),
        ({"tests": ["assert add(1) == 2"]}, "tests[0] is not an object"),
        ({"tests": [{"code": "assert 1", "visible": "yes"}]}, "tests[0]: field 'visible' holds str, not bool"),
        ({"tests": []}, "task mine/add has no tests"),
        ({"tests": None}, "field 'tests' is missing"),
        ({"task_id": None}, "field 'task_id' is missing"),
        ({"prompt": 3}, "field 'prompt' holds int, not str"),
        ({"inplace": "no"}, "field 'inplace' holds str, not bool"),
        ({"packages": "numpy"}, "field 'packages' holds str, not list"),
        ({"packages": [1]}, "field 'packages' must be a list of names"),
        ({"exact": 1}, "field 'exact' holds int, not bool"),
        ({"exact": True}, "for stdio tasks only"),
        ({"tests": [{"stdin": "", "stdout": ""}], "tolerance": -1}, "at least 0 and below 1"),
        ({"tests": [{"stdin": "", "stdout": ""}], "tolerance": 0.1, "exact": True}, "not beside 'exact'"),
        ({"kind": "program"}, "unknown kind 'program'"),
    ],
)
def test_faults_are_named(change, message):
    with pytest.raises(UserError) as error:
        convert(**change)
    assert "mine.jsonl, line 1" in str(error.value) and message in str(error.value)


def test_the_tasks_table_itself_can_be_read_again(tmp_path):
    """A table written by one import is a source of the next one, without a change."""
    path = tmp_path / "tasks.parquet"
    first = tables.write(path, tables.TASKS, [convert(), convert(task_id="mine/b", inplace=True)])
    again = tables.to_table(tables.TASKS, [own.convert(record) for record in read_file(path)])
    assert again.equals(first.replace_schema_metadata())


def test_parquet_with_few_columns(tmp_path):
    path = tmp_path / "few.parquet"
    pq.write_table(pa.Table.from_pylist([ROW]), path)
    assert own.convert(read_file(path)[0])["tests"][1]["visible"] is False
