"""The report's questions to a run: one .sql file each in ``stages/report/sql``, run over the run's tables.

Every number of the summary and of the page comes from here, and the page shows the text that was run. Runs nothing by
itself; see :mod:`stages.report.__main__`.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs

if TYPE_CHECKING:
    import duckdb

FOLDER = Path(__file__).parent / "sql"


def ask(connection: "duckdb.DuckDBPyConnection", run: Path, name: str, **values: object) -> runs.Query:
    """Run ``sql/<name>.sql`` with each ``$key`` replaced by its value."""
    text = (FOLDER / f"{name}.sql").read_text()
    for key, value in values.items():
        text = text.replace(f"${key}", str(value))
    return runs.query(connection, run, text)


def iterations(connection: "duckdb.DuckDBPyConnection", run: Path) -> int:
    """Attempts that a policy had in evaluation; 0 without evals.

    As the evals' own settings say; else the turns that there are tables of (the last may be empty, as everything may be
    solved before); else the most attempts of any chain.
    """
    if not runs.files_of(run, "evals"):
        return 0
    told = [made.get("settings", {}).get("iterations") for made in runs.provenances(run, ["evals"])]
    if told and None not in told:
        return max(told)
    if turns := runs.partition_values(run, "eval_rollouts", "turn"):
        return max(turns)
    (most,) = runs.query(connection, run, "select max(attempts) from 'evals/**/*.parquet'").rows[0]
    return most or 0
