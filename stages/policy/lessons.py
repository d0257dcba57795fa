"""What the nano policy is taught: conversations and replies, made from tasks and their references.

First turns: the task, then a reply. Later turns: the task, a failed attempt, true feedback on it, then a better reply.
Replies come from a pupil with habits (see `attempts`), so that the policy ends up solving some tasks and not others, in
ways that reinforcement can correct; on a second try the pupil makes each mistake less often.

Does not cover tasks without a Python reference (they are left out), nor later turns for tasks whose attempts may not
be run here (they are taught as first turns only).
"""

import ast
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError
from stages.common.prompts import conversation, fenced
from stages.policy.attempts import attempt, habits
from stages.policy.observe import feedback, outcomes

SECOND_TRY = 0.3  # rate of a mistake on a second try, times its rate on the first
TRIES = 6  # draws of a failing attempt, before a task is taught as a first turn instead


@dataclass(frozen=True)
class Lesson:
    """A conversation that ends with the user, and the reply to be learned."""

    messages: list[dict[str, str]]
    reply: str


@dataclass
class Teacher:
    """Draws lessons from tasks; `rates` are the pupil's habits on a first try."""

    tasks: Sequence[Mapping]
    rates: Mapping[str, float]
    rng: random.Random
    _queue: list[Mapping] = field(default_factory=list)

    def _next_task(self) -> Mapping:
        """Every task once, in random order, before any comes again."""
        if not self._queue:
            self._queue = list(self.tasks)
            self.rng.shuffle(self._queue)
        return self._queue.pop()

    def first(self) -> Lesson:
        """A first turn."""
        task = self._next_task()
        return Lesson(conversation(task, []), fenced(attempt(task["reference"], self.rates, self.rng)))

    def retry(self) -> Lesson:
        """A second turn after a failed attempt; a first turn where no failing attempt could be had."""
        task = self._next_task()
        for _ in range(TRIES):
            tried = attempt(task["reference"], self.rates, self.rng)
            found = outcomes(tried, task["tests"])
            if found is None:
                break
            if not all(outcome.passed for outcome in found):
                better = {kind: rate * SECOND_TRY for kind, rate in self.rates.items()}
                reply = fenced(attempt(task["reference"], better, self.rng))
                return Lesson(conversation(task, [(fenced(tried), feedback(found, task["tests"]))]), reply)
        return Lesson(conversation(task, []), fenced(attempt(task["reference"], self.rates, self.rng)))


def read_tasks(path: Path | None) -> list[dict]:
    """The tasks of a tasks table that can be taught; UserError where there are none."""
    if path is None:
        raise UserError("policy.init: nano learns from tasks; name the tasks table with --tasks")
    rows = tables.read(path, tables.TASKS).to_pylist()
    usable = [row for row in rows if row["kind"] == "function" and row["reference"] and _parses(row["reference"])]
    if not usable:
        raise UserError(
            f"{path}: none of its {len(rows)} tasks is of kind function with a reference solution, and nano learns "
            "from references; set tasks.source: generated"
        )
    return usable


def _parses(code: str) -> bool:
    try:
        return bool(ast.parse(code).body)
    except (SyntaxError, ValueError):
        return False


def teacher(tasks: Sequence[Mapping], seed: int) -> Teacher:
    """A teacher of `tasks` whose pupil's habits and lessons follow from `seed`."""
    rng = random.Random(seed)
    return Teacher(tasks, habits([task["reference"] for task in tasks], rng), rng)
