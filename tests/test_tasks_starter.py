"""The starter tasks: their number and spread, and that references pass while constant answers do not."""

import ast
import io
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout

import pytest

from stages.common.tables import TASKS, to_table
from stages.tasks import own
from stages.tasks.files import read_file
from stages.tasks.sources import STARTER

ROWS = [own.convert(record) for record in read_file(STARTER)]
FUNCTIONS = [row for row in ROWS if row["kind"] == "function"]
PROGRAMS = [row for row in ROWS if row["kind"] == "stdio"]
CONSTANTS = ["None", "True", "False", "0", "1", "''", "[]", "{}", "()", "args[0]", "args[-1]"]


def passed(program: str, row: dict) -> int:
    """How many of a function's tests pass, each in a fresh namespace."""
    count = 0
    for test in row["tests"]:
        namespace: dict = {}
        try:
            with redirect_stdout(io.StringIO()):
                exec(program, namespace)
                exec(test["code"], namespace)
            count += 1
        except Exception:  # a wrong program may fail in any way
            continue
    return count


def test_number_and_spread():
    levels = Counter(row["difficulty"] for row in ROWS)
    assert len(ROWS) >= 170 and set(levels) == {"easy", "medium", "hard"}
    assert levels["easy"] >= 110 and levels["medium"] >= 40 and levels["hard"] >= 20
    assert len(PROGRAMS) >= 8 and len(FUNCTIONS) + len(PROGRAMS) == len(ROWS)
    assert sum(row["inplace"] for row in ROWS) >= 5


def test_the_rows_make_a_table():
    assert to_table(TASKS, ROWS).num_rows == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["task_id"])
def test_shape(row):
    assert row["task_id"].startswith("starter/") and row["reference"] and row["source"] == "starter"
    assert len(row["tests"]) >= 6
    assert [test["visible"] for test in row["tests"][:3]] == [True, True, False]
    assert sum(test["visible"] for test in row["tests"]) == 2
    assert len({str(test) for test in row["tests"]}) == len(row["tests"])
    if row["entry_point"]:
        assert f"`{row['entry_point']}(" in row["prompt"]


def test_references_pass():
    failed = [row["task_id"] for row in FUNCTIONS if passed(row["reference"], row) < len(row["tests"])]
    assert not failed


@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_answer_fails_hidden_tests(constant):
    for row in FUNCTIONS:
        program = f"def {row['entry_point']}(*args):\n    return {constant}\n"
        hidden = row | {"tests": [test for test in row["tests"] if not test["visible"]]}
        assert passed(program, hidden) < len(hidden["tests"]), row["task_id"]


def test_answers_for_the_visible_tests_alone_fail():
    """A table of the answers that the prompt shows solves nothing."""
    for row in FUNCTIONS:
        shown = [ast.parse(test["code"]).body[-1].test for test in row["tests"][:2]]
        if row["inplace"] or not all(isinstance(test, ast.Compare) for test in shown):
            continue
        answers = {ast.unparse(ast.Tuple(test.left.args, ast.Load())): test.comparators[0] for test in shown}
        lines = [f"    if args == {args}:\n        return {ast.unparse(value)}" for args, value in answers.items()]
        program = f"def {row['entry_point']}(*args):\n" + "\n".join(lines) + "\n"
        assert 2 <= passed(program, row) < len(row["tests"]), row["task_id"]


@pytest.mark.parametrize("row", PROGRAMS, ids=lambda row: row["task_id"])
def test_programs(row):
    outputs = set()
    for test in row["tests"]:
        command = [sys.executable, "-I", "-c", row["reference"]]
        run = subprocess.run(command, input=test["stdin"], capture_output=True, text=True, timeout=20, check=True)
        assert run.stdout == test["stdout"]
        outputs.add(run.stdout)
    assert len(outputs) > 1
