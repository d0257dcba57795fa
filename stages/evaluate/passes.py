"""From an evaluation's trees to one row per chain, and to pass rates.

A chain is a root attempt and the retries below it, each with the executor's feedback; where an attempt was retried
several times it is a small tree, and its best node counts. Iteration-k pass@1 is the share of chains that passed every
hidden test within k attempts. Where a task has several chains, pass@n is the unbiased estimator of Chen et al. 2021
(arXiv 2107.03374, equation 1). Alone: :func:`count` on the files of one benchmark and version; by hand: the files in
``stages/evaluate/sql``. Samples and judges nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from stages.common import runs, tables
from stages.common.cli import UserError
from stages.common.estimates import pass_at, wilson

if TYPE_CHECKING:
    import duckdb

SQL = files("stages.evaluate") / "sql"


@dataclass(frozen=True)
class Counts:
    """An evaluation counted: `rows` is the EVALS table, `turns` what became of each turn's attempts (turns.sql)."""

    rows: pa.Table
    turns: list[dict]


def count(task_files: Sequence[Path], rollout_files: Sequence[Path], feedback_files: Sequence[Path]) -> Counts:
    """Count one benchmark and version. The turn of a rollout comes from its path (``turn=1``).

    UserError where a node has no feedback, no parent, or occurs twice, and for files of several versions.
    """
    runs.check_one_version([*rollout_files, *feedback_files])
    columns = ["node_id", "parent_id", "task_id", "sample", "finish_reason"]
    nodes = []
    for path in rollout_files:
        turn = runs.turn_of(path)
        part = tables.read(path, tables.ROLLOUTS, columns)
        nodes.append(part.append_column("turn", pa.array([turn] * len(part), pa.int32())))
    node = pa.concat_tables(nodes)
    if not len(node):
        return Counts(tables.EVALS.schema.empty_table(), [])
    tasks = tables.read(task_files, tables.TASKS, ["task_id", "difficulty"])
    judged = tables.read(feedback_files, tables.FEEDBACK)

    import duckdb

    with duckdb.connect() as db:
        db.register("task", tasks)
        db.register("node", node)
        db.register("judged", judged)
        _check(db)
        db.execute((SQL / "attempts.sql").read_text())
        rows = tables.to_table(tables.EVALS, db.sql((SQL / "passes.sql").read_text()).to_arrow_table())
        turns = db.sql((SQL / "turns.sql").read_text()).to_arrow_table().to_pylist()
    return Counts(rows, turns)


def _check(db: "duckdb.DuckDBPyConnection") -> None:
    """UserError for nodes that would be counted wrongly or silently left out."""

    def first(sql: str) -> tuple | None:
        return db.execute(sql).fetchone()

    for name, what in (("node", "rollouts"), ("judged", "feedback")):
        if twice := first(f"select min(node_id) from {name} group by node_id having count(*) > 1 order by 1 limit 1"):
            raise UserError(f"node {twice[0]} occurs more than once in the {what}; give each file once")
    if twice := first("select min(task_id) from task group by task_id having count(*) > 1 order by 1 limit 1"):
        raise UserError(f"task {twice[0]} occurs more than once; give the tasks of one benchmark, each file once")
    if lost := first("select node_id from node anti join judged using (node_id) order by 1 limit 1"):
        raise UserError(f"node {lost[0]}: no row in the feedback table; run the execute stage for its turn")
    orphan = first(
        "select child.node_id, child.parent_id from node as child left join node as parent "
        "on parent.node_id = child.parent_id and parent.turn = child.turn - 1 "
        "where (parent.node_id is null) <> (child.turn = 1) or (child.parent_id is null) <> (child.turn = 1) "
        "order by 1 limit 1"
    )
    if orphan:
        raise UserError(
            f"node {orphan[0]}: its parent {orphan[1]} is not a node of the turn before; give the files of every turn"
        )


def chains(task_files: Sequence[Path], rollout_files: Sequence[Path], feedback_files: Sequence[Path]) -> pa.Table:
    """One row per task and root sample: the EVALS table of one benchmark and version, as :func:`count` gives it."""
    return count(task_files, rollout_files, feedback_files).rows


def by_task(rows: Sequence[Mapping]) -> dict[str, list[int | None]]:
    """The `solved_at` of each task's chains."""
    found: dict[str, list[int | None]] = {}
    for row in rows:
        found.setdefault(row["task_id"], []).append(row["solved_at"])
    return found


def solved_within(solved: Sequence[int | None], iteration: int) -> int:
    """How many chains were solved within `iteration` attempts."""
    return sum(at is not None and at <= iteration for at in solved)


def pass_rates(rows: Sequence[Mapping], iterations: int, k: int = 1) -> list[float]:
    """pass@k within 1..iterations attempts: the mean over tasks of the unbiased estimate over a task's chains."""
    tasks = by_task(rows).values()
    rates = []
    for iteration in range(1, iterations + 1):
        each = [pass_at(len(solved), solved_within(solved, iteration), k) for solved in tasks]
        rates.append(sum(each) / len(each) if each else float("nan"))
    return rates


def summary(counts: Counts, iterations: int) -> dict[str, object]:
    """Everything that `passes` prints, as plain data.

    `pass_at` holds one entry per iteration with pass@n for n = 1, 2, 4, ... up to the chains that every task has, and
    the 95 % interval of pass@1; `by_difficulty` pass@1 of each iteration; `solved_at` how many chains were solved first
    at which turn.
    """
    rows = counts.rows.to_pylist()
    tasks = by_task(rows)
    most = min(map(len, tasks.values()), default=1)
    draws = sorted({1, most, *(2**i for i in range(1, most.bit_length()) if 2**i <= most)})
    rates = {n: pass_rates(rows, iterations, n) for n in draws}
    levels: dict[str, list[Mapping]] = {}
    for row in rows:
        levels.setdefault(row["difficulty"] or "", []).append(row)
    return {
        "tasks": len(tasks),
        "chains": len(rows),
        "pass_at": [
            {
                "iteration": i + 1,
                "interval": wilson(rates[1][i], len(tasks)) if tasks else None,
                **{f"pass@{n}": rates[n][i] if tasks else None for n in draws},
            }
            for i in range(iterations)
        ],
        "solved_at": {t: pc.sum(pc.equal(counts.rows["solved_at"], t)).as_py() or 0 for t in range(1, iterations + 1)},
        "by_difficulty": {
            level: {"tasks": len(by_task(levels[level])), "pass@1": pass_rates(levels[level], iterations)}
            for level in sort_levels(levels)
        },
        "turns": counts.turns,
    }


def sort_levels(levels: Sequence[str]) -> list[str]:
    """Difficulties in their usual order, unknown ones by name after them."""
    usual = ("easy", "medium", "hard")
    place = {name: i for i, name in enumerate(usual)}
    return sorted(levels, key=lambda level: (place.get(level.lower(), len(usual)), level))
