"""From an evaluation's trees to one row per chain, and to pass rates.

A chain is a root attempt and the retries below it, each with the executor's feedback. Iteration-k pass@1 is the share
of chains that passed every hidden test within k attempts. Where a task has several chains, pass@n is the unbiased
estimator of Chen et al. 2021 (arXiv 2107.03374, equation 1).
"""

from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import comb
from pathlib import Path

import pyarrow as pa

from stages.common import tables
from stages.common.cli import UserError

SQL = files("stages.evaluate") / "sql"


def chains(task_files: Sequence[Path], rollout_files: Sequence[Path], feedback_files: Sequence[Path]) -> pa.Table:
    """One row per task and root sample: the EVALS table of one benchmark and version.

    The turn of a rollout comes from its path (``turn=1``). UserError where a node has no feedback.
    """
    import duckdb

    with duckdb.connect() as db:
        # Reading through `tables` checks the schemas and names a file that does not fit.
        db.register("task", tables.read(task_files, tables.TASKS, ["task_id", "difficulty"]))
        turns = [(path, _turn(path)) for path in rollout_files]
        nodes = [tables.read(path, tables.ROLLOUTS, ["node_id", "parent_id", "task_id", "sample"]) for path, _ in turns]
        whole = [
            n.append_column("turn", pa.array([t] * len(n), pa.int32())) for n, (_, t) in zip(nodes, turns, strict=True)
        ]
        db.register("node", pa.concat_tables(whole))
        db.register("judged", tables.read(feedback_files, tables.FEEDBACK))
        [(lost,)] = db.sql("select min(node_id) from node anti join judged using (node_id)").fetchall()
        if lost is not None:
            raise UserError(f"node {lost}: no row in the feedback table; run the execute stage for its turn")
        return tables.to_table(tables.EVALS, db.sql((SQL / "passes.sql").read_text()).to_arrow_table())


def _turn(path: Path) -> int:
    for part in Path(path).parts:
        if part.startswith("turn=") and part[5:].isdigit():
            return int(part[5:])
    raise UserError(f"{path}: its path names no turn (.../turn=1/...)")


def pass_at(n: int, correct: int, k: int) -> float:
    """Unbiased estimate of the chance that one of k samples is right, from `correct` right ones among n >= k."""
    if not 0 <= correct <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} of {correct} right among {n}")
    return 1.0 - comb(n - correct, k) / comb(n, k)


def pass_rates(rows: Sequence[Mapping], iterations: int, k: int = 1) -> list[float]:
    """pass@k within 1..iterations attempts: the mean over tasks of the unbiased estimate over a task's chains."""
    by_task: dict[str, list[int | None]] = {}
    for row in rows:
        by_task.setdefault(row["task_id"], []).append(row["solved_at"])
    rates = []
    for iteration in range(1, iterations + 1):
        each = [
            pass_at(len(solved), sum(at is not None and at <= iteration for at in solved), k)
            for solved in by_task.values()
        ]
        rates.append(sum(each) / len(each) if each else float("nan"))
    return rates
