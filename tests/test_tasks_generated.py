"""Generated tasks: right answers, tests that tell a task from shorter ones, the same for a seed, no task twice."""

from collections import Counter

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.tasks import generated
from stages.tasks.generated import generated_tasks


@pytest.fixture(scope="module")
def rows():
    return generated_tasks(seed=3, count=1200)


def passes(code, row):
    """Number of the row's tests that `code` passes."""
    space, passed = {}, 0
    exec(code, space)
    for test in row["tests"]:
        try:
            exec(test["code"], dict(space))
            passed += 1
        except Exception:
            pass
    return passed


def test_rows_are_tasks_that_their_references_solve(rows):
    tables.to_table(tables.TASKS, rows)
    for row in rows:
        assert passes(row["reference"], row) == len(row["tests"]) == 6
        assert [test["visible"] for test in row["tests"]] == [True] * 2 + [False] * 4
        assert f"{row['entry_point']}(x)" in row["prompt"]


def test_no_task_twice(rows):
    for column in ("task_id", "prompt"):
        assert len({row[column] for row in rows}) == len(rows)
    # Nor under another function name.
    assert len({row["prompt"].replace(f" {row['entry_point']}(x)", "") for row in rows}) == len(rows)
    for row in rows:
        assert len({test["code"] for test in row["tests"]}) == 6


def test_leaving_a_step_out_fails_a_test(rows):
    tried = 0
    for row in rows:
        lines = row["reference"].splitlines()
        for i in range(1, len(lines) - 1):
            tried += 1
            assert passes("\n".join(lines[:i] + lines[i + 1 :]), row) < 6, row["task_id"]
        if len(lines) > 2:  # the last step
            assert passes("\n".join([*lines[:-1], "    return x"]), row) < 6, row["task_id"]
    assert tried > 500


def test_no_constant_answer_solves_a_task(rows):
    for row in rows:
        answers = {test["code"].split(" == ")[1] for test in row["tests"]}
        assert len(answers) >= 2, row["task_id"]


def test_difficulty_is_the_number_of_steps(rows):
    counts = Counter(row["difficulty"] for row in rows)
    assert set(counts) == {"easy", "medium", "hard"}
    assert counts["easy"] > 150 and counts["hard"] > 150
    for row in rows:
        steps = len(row["reference"].splitlines()) - 1
        assert row["difficulty"] == {1: "easy", 2: "medium", 3: "hard"}[steps]


def test_same_seed_same_tasks_and_a_longer_list_starts_alike(rows):
    assert generated_tasks(3, 300) == rows[:300]
    others = generated_tasks(4, 1200)
    assert others != rows
    # A task that two seeds share is the same task.
    mine = {row["task_id"]: row for row in rows}
    shared = [row for row in others if row["task_id"] in mine]
    assert len(shared) > 100
    assert all(mine[row["task_id"]] == row for row in shared)


def test_every_step_occurs_in_some_task():
    text = " ".join(row["task_id"] for row in generated_tasks(0, 3000)) + " "
    missing = [
        step.name
        for kind in generated.TAKES
        for step in generated.steps_from(kind)
        if f".{step.name}." not in text and f".{step.name} " not in text
    ]
    assert missing == []


def test_more_than_there_are_is_refused():
    with pytest.raises(UserError, match="ask for fewer"):
        generated_tasks(0, generated.MOST + 1)
