"""Lessons: true conversations, failing attempts with true feedback, replies that are wrong at the habits' rates."""

import random

import pytest

from stages.common import tables
from stages.common.cli import UserError
from stages.common.prompts import fenced, first_prompt
from stages.policy.lessons import Teacher, read_tasks, teacher
from stages.tasks.generated import generated_tasks


@pytest.fixture(scope="module")
def rows():
    return generated_tasks(0, 300)


def code_of(text):
    assert text.startswith("```python\n") and text.endswith("\n```")
    return text[len("```python\n") : -len("\n```")]


def solves(code, row):
    space = {}
    exec(code, space)
    try:
        for test in row["tests"]:
            exec(test["code"], dict(space))
    except Exception:
        return False
    return True


def test_first_turns_are_the_prompts_that_are_sampled_from(rows):
    lessons = teacher(rows, 1)
    prompts = {first_prompt(row) for row in rows}
    seen = [lessons.first() for _ in range(len(rows))]
    assert {lesson.messages[0]["content"] for lesson in seen} == prompts  # each task once before any again
    assert all(len(lesson.messages) == 1 for lesson in seen)


def test_retries_show_a_failing_attempt_and_mostly_mend_it(rows):
    by_prompt = {first_prompt(row): row for row in rows}
    lessons = teacher(rows, 2)
    mended = first_right = retries = 0
    for _ in range(400):
        lesson = lessons.retry()
        row = by_prompt[lesson.messages[0]["content"]]
        if len(lesson.messages) == 1:
            continue
        retries += 1
        assert [message["role"] for message in lesson.messages] == ["user", "assistant", "user"]
        assert not solves(code_of(lesson.messages[1]["content"]), row)
        assert " tests passed.\n\n" in lesson.messages[2]["content"]
        hidden = [test["code"] for test in row["tests"] if not test["visible"]]
        assert not any(test in lesson.messages[2]["content"] for test in hidden)
        mended += solves(code_of(lesson.reply), row)
    for _ in range(400):
        lesson = lessons.first()
        first_right += solves(code_of(lesson.reply), by_prompt[lesson.messages[0]["content"]])
    assert retries > 350
    assert 0.25 < first_right / 400 < 0.6
    assert mended / retries > first_right / 400 + 0.15


def test_without_habits_every_reply_is_the_reference(rows):
    lessons = Teacher(rows, {}, random.Random(0))
    replies = {fenced(row["reference"]) for row in rows}
    assert all(lessons.first().reply in replies for _ in range(len(rows)))
    assert len(lessons.retry().messages) == 1  # nothing fails, so there is nothing to try again


def test_same_seed_same_lessons(rows):
    one, two, other = teacher(rows, 3), teacher(rows, 3), teacher(rows, 4)
    drawn = [(t.first(), t.retry(), t.retry()) for t in (one, two, other)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_attempts_that_may_not_be_run_are_taught_as_first_turns(rows):
    row = rows[0] | {"reference": "def f(x):\n    for y in range(x):\n        x = x + y\n    return x\n"}
    lessons = Teacher([row], {"Add": 1.0}, random.Random(0))
    assert lessons.retry().reply == fenced("def f(x):\n    for y in range(x):\n        x = x - y\n    return x")
    assert len(lessons.retry().messages) == 1


def test_tasks_without_references_are_refused_by_name(rows, tmp_path):
    path = tmp_path / "tasks.parquet"
    tables.write(path, tables.TASKS, [*rows[:3], rows[3] | {"reference": None}, rows[4] | {"reference": "def ("}])
    assert [row["task_id"] for row in read_tasks(path)] == sorted(row["task_id"] for row in rows[:3])
    tables.write(path, tables.TASKS, [rows[0] | {"kind": "pytest"}])
    with pytest.raises(UserError, match=r"tasks\.parquet: none of its 1 tasks"):
        read_tasks(path)
    with pytest.raises(UserError, match="--tasks"):
        read_tasks(None)
