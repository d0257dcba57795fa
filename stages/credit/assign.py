"""Credit, pruning and advantages of one policy version: runs the files of ``stages/credit/sql`` in order.

The method is in the SQL, which a user can run by hand (docs/credit.md); here it only gets its settings and its files.
Alone: ``assign([rollouts.parquet, ...], [feedback.parquet, ...], turns, settings)`` gives the `credit` table.
Does not sample, judge or train; reads no other columns than names, turns and rewards.
"""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs, tables
from stages.common.cli import UserError
from stages.common.config import Credit
from stages.common.timing import Timings

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

SQL = Path(__file__).parent / "sql"
MEMORY = "4GB"  # what DuckDB holds; beyond it, it spills beside the output
SHOWN = 5  # problems named in an error


@dataclass(frozen=True)
class Summary:
    """What a credit table holds, in nodes and groups; `informative` groups have an advantage other than 0."""

    nodes: int
    kept: int
    unjudged: int
    groups: int
    informative: int

    def __str__(self) -> str:
        text = (
            f"{self.nodes} nodes, {self.kept} kept, {self.unjudged} unjudged; "
            f"{self.groups} groups, {self.informative} with an advantage"
        )
        return text if self.informative else text + ": nothing to learn from in this version"


def check_files(rollouts: Sequence[Path], feedback: Sequence[Path]) -> int:
    """Look at the footers and paths of the files; gives the number of rows in `rollouts`.

    Raises UserError for a file that is not of its table, that lies in no ``turn=`` folder, or of another version.
    """
    rows = {
        table.name: sum(tables.count_rows(path, table) for path in paths)
        for table, paths in ((tables.ROLLOUTS, rollouts), (tables.FEEDBACK, feedback))
    }
    for path in (*rollouts, *feedback):
        runs.turn_of(path)  # DuckDB reads it too, but says less when it is missing
    runs.check_one_version([*rollouts, *feedback])
    if not rows["rollouts"] and rows["feedback"]:
        raise UserError(
            f"{feedback[0]}: there is feedback, but the rollouts have no rows; give the rollouts it is about"
        )
    return rows["rollouts"]


def _literal(path: Path) -> str:
    """`path` as DuckDB's glob that matches it alone."""
    return re.sub(r"[\[*?]", lambda match: f"[{match[0]}]", str(path))


def _set(connection: "duckdb.DuckDBPyConnection", name: str, value: object) -> None:
    connection.execute(f"SET VARIABLE {name} = $value", {"value": value})


def _run(connection: "duckdb.DuckDBPyConnection", name: str) -> "duckdb.DuckDBPyConnection":
    return connection.execute((SQL / name).read_text())


def _refuse_problems(connection: "duckdb.DuckDBPyConnection") -> None:
    found = _run(connection, "2_checks.sql").fetchall()
    if not found:
        return
    total = connection.execute("SELECT count(*) FROM problems").fetchone()[0]
    lines = [f"  {where} {what}" for where, what in found[:SHOWN]]
    if total > len(lines):
        lines.append(f"  and {total - len(lines)} more")
    raise UserError(
        "the rollouts and feedback do not fit together; give all files of every turn of one version, once each, and "
        "execute again the turns whose feedback is missing or stale:\n" + "\n".join(lines)
    )


def assign(
    rollouts: Sequence[Path],
    feedback: Sequence[Path],
    turns: int,
    settings: Credit,
    threads: int = 1,
    timings: Timings | None = None,
    spill: Path | None = None,
) -> "pa.Table":
    """The `credit` table of one version, ordered by node_id, the same for any number of `threads`.

    `turns` is S. What does not fit into memory goes to a temporary folder in `spill` (default: the system's).
    Raises UserError naming the nodes when rollouts and feedback do not fit together.
    """
    timings = timings or Timings()
    if not check_files(rollouts, feedback):
        return tables.CREDIT.schema.empty_table()

    import duckdb
    from tqdm import tqdm

    bar = tqdm(total=5, desc="credit", unit="step", disable=None, leave=False)
    with tempfile.TemporaryDirectory(dir=spill, prefix=".credit-") as folder, duckdb.connect() as connection, bar:
        connection.execute(f"SET threads = {threads}; SET memory_limit = '{MEMORY}'; SET enable_progress_bar = false")
        connection.execute("SET temp_directory = $folder", {"folder": folder})
        _run(connection, "0_settings.sql")
        for name, value in settings.model_dump().items():
            _set(connection, name, value)
        _set(connection, "turns", turns)
        _set(connection, "rollouts", [_literal(path) for path in rollouts])
        _set(connection, "feedback", [_literal(path) for path in feedback])

        def step(name: str, file: str) -> None:
            with timings.phase(name, "nodes") as phase:
                _run(connection, file)
                phase.count = connection.execute("SELECT count(*) FROM nodes").fetchone()[0]
            bar.update()

        step("read", "1_nodes.sql")
        with timings.phase("check"):
            _refuse_problems(connection)
        bar.update()
        step("credit", "3_credit.sql")
        step("prune", "4_prune.sql")
        with timings.phase("advantages", "nodes") as phase:
            _run(connection, "5_advantages.sql")
            result = connection.sql("FROM credit ORDER BY node_id").to_arrow_table()
            phase.count = result.num_rows
        bar.update()
    return tables.to_table(tables.CREDIT, result)


def summarise(credit: "pa.Table") -> Summary:
    """Count what a credit table holds."""
    import pyarrow.compute as pc

    trained = credit.filter(pc.not_equal(credit["advantage"], 0))
    return Summary(
        nodes=credit.num_rows,
        kept=pc.sum(credit["kept"]).as_py() or 0,
        unjudged=credit["reward"].null_count,
        groups=pc.count_distinct(credit["group_id"]).as_py(),
        informative=pc.count_distinct(trained["group_id"]).as_py(),
    )
