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
    """Attempts a policy had in evaluation: as the evals' own settings say, else the most attempts of any chain."""
    told = [made.get("settings", {}).get("iterations") for made in runs.provenances(run, ["evals"])]
    if told and None not in told:
        return max(told)
    (most,) = runs.query(connection, run, "select max(attempts) from 'evals/**/*.parquet'").rows[0]
    return most or 0
