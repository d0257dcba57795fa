"""A run's tables by path, for whoever reads a whole run: which files each table has, and SQL over them.

Queries name files relative to the run's folder (``from 'feedback/**/*.parquet'``), so the text that a stage runs is
the text that a user can run by hand: ``cd results/demo && duckdb -c "..."``. Tables that a run does not have yet are
read as empty ones. Reads only; does not know what the columns mean.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import tables
from stages.common.cli import UserError

if TYPE_CHECKING:
    import duckdb

_BY_TURN = {"version": "BIGINT", "turn": "BIGINT"}
# The partition columns of each table, which stand in the path only.
PARTITIONS: dict[str, dict[str, str]] = {
    "tasks": {"split": "VARCHAR"},
    "rejected": {},
    "rollouts": _BY_TURN,
    "verdicts": _BY_TURN,
    "test_times": _BY_TURN,
    "feedback": _BY_TURN,
    "credit": {"version": "BIGINT"},
    "updates": {"version": "BIGINT"},
    "evals": {"benchmark": "VARCHAR", "version": "BIGINT"},
    "eval_rollouts": _BY_TURN,
    "eval_verdicts": _BY_TURN,
    "eval_test_times": _BY_TURN,
    "eval_feedback": _BY_TURN,
}
_TYPES = {
    "string": "VARCHAR",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
}
TIMINGS_GLOB = "timings/**/*.json"
_TIMING_COLUMNS = "{phase: 'VARCHAR', seconds: 'DOUBLE', count: 'BIGINT', unit: 'VARCHAR'}"


def glob_of(name: str) -> str:
    """The glob of table `name`, relative to the run's folder."""
    return f"{name}.parquet" if not PARTITIONS[name] else f"{name}/**/*.parquet"


def files_of(run: Path, name: str) -> list[Path]:
    """The files that table `name` has now, in the order of their paths; unfinished ones (hidden names) left out."""
    return sorted(path for path in Path(run).glob(glob_of(name)) if not path.name.startswith("."))


def turn_of(path: Path) -> int:
    """The turn in a file's path (``.../turn=2/...``); UserError where there is none."""
    for part in Path(path).parts[:-1]:
        if part.startswith("turn=") and part[5:].isdigit():
            return int(part[5:])
    raise UserError(f"{path}: the turn is read from the folder, but no folder here is called turn=1, turn=2, ...")


def check_one_version(paths: Iterable[Path]) -> None:
    """UserError when the paths name different policy versions (``version=0``)."""
    first: dict[str, Path] = {}
    for path in paths:
        for part in Path(path).parts[:-1]:
            if part.startswith("version="):
                first.setdefault(part, path)
    if len(first) > 1:
        names = " and ".join(sorted(first))
        raise UserError(f"files of {names}; give those of one version only: {', '.join(map(str, first.values()))}")


def partition_values(run: Path, name: str, column: str) -> set[int]:
    """The values of partition `column` (version, turn) that table `name` has files for, with rows or without."""
    parts = [part for path in files_of(run, name) for part in path.relative_to(run).parts]
    return {int(part.removeprefix(f"{column}=")) for part in parts if part.startswith(f"{column}=")}


def _sql_type(kind: object) -> str:
    """The DuckDB type of an Arrow type that the tables use."""
    import pyarrow as pa

    if pa.types.is_list(kind):
        return _sql_type(kind.value_type) + "[]"
    if pa.types.is_struct(kind):
        return "STRUCT(" + ", ".join(f'"{field.name}" {_sql_type(field.type)}' for field in kind) + ")"
    return _TYPES[str(kind)]


def empty_select(name: str) -> str:
    """SQL that gives table `name`, partition columns last, without rows."""
    schema = tables.ALL[name.removeprefix("eval_")].schema
    columns = {field.name: _sql_type(field.type) for field in schema} | PARTITIONS[name]
    return "select " + ", ".join(f'null::{kind} as "{column}"' for column, kind in columns.items()) + " where false"


def timings_select(run: Path) -> str:
    """SQL that gives every phase of every stage: stage, version, turn, phase, seconds, count, unit."""
    if not any(Path(run).glob(TIMINGS_GLOB)):
        columns = ("stage VARCHAR", "version BIGINT", "turn BIGINT", "phase VARCHAR", "seconds DOUBLE", "count BIGINT")
        pairs = [column.split() for column in (*columns, "unit VARCHAR")]
        return "select " + ", ".join(f"null::{kind} as {column}" for column, kind in pairs) + " where false"
    return (
        "select regexp_extract(filename, '.*timings/([^/]+?)(\\.json)?(/|$)', 1) as stage,\n"
        "       try_cast(regexp_extract(filename, '.*timings/.*version=(\\d+)', 1) as BIGINT) as version,\n"
        "       try_cast(regexp_extract(filename, '.*timings/.*turn=(\\d+)', 1) as BIGINT) as turn,\n"
        "       phase, seconds, count, unit\n"
        f"from read_json('{TIMINGS_GLOB}', filename = true, hive_partitioning = false,\n"
        f"               columns = {_TIMING_COLUMNS})"
    )


def check_run(run: Path) -> Path:
    """`run` as a path, if it is a run's folder; UserError otherwise."""
    run = Path(run)
    if not run.is_dir():
        raise UserError(f"{run}: no such folder; give a run's folder, such as results/demo")
    if not any(files_of(run, name) for name in PARTITIONS):
        raise UserError(
            f"{run}: holds none of a run's tables (tasks/, rollouts/, feedback/, ...); is it results/<run>?"
        )
    if set(str(run.resolve())) & set(",*?[]"):
        raise UserError(f"{run.resolve()}: DuckDB cannot read from a path with any of , * ? [ ]; rename the folder")
    return run


def connect(run: Path) -> "duckdb.DuckDBPyConnection":
    """A DuckDB connection in memory that looks for relative paths in `run`."""
    import duckdb

    run = check_run(run)
    connection = duckdb.connect()
    connection.execute(f"set file_search_path = {sql_text(str(run.resolve()))}")
    connection.execute("set enable_progress_bar = false")
    return connection


def sql_text(text: str) -> str:
    """`text` as a SQL literal."""
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Query:
    """A query's result: `sql` as a user can run it from the run's folder, and its rows."""

    sql: str
    columns: tuple[str, ...]
    rows: list[tuple]

    def dicts(self) -> list[dict[str, object]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def query(connection: "duckdb.DuckDBPyConnection", run: Path, sql: str) -> Query:
    """Run `sql`, whose tables are globs relative to `run`; a table without files counts as empty.

    ``from timings`` stands for the phases of all stages. The text in the result has both written out.
    """

    def present(match: re.Match) -> str:
        return match[0] if files_of(run, match[1]) else f"({empty_select(match[1])})"

    names = "|".join(PARTITIONS)
    sql = re.sub(rf"'({names})(?:/\*\*/\*)?\.parquet'", present, sql)
    sql = re.sub(r"from timings\b", lambda _: f"from (\n{timings_select(run)}\n)", sql)
    cursor = connection.execute(sql)
    return Query(sql.strip(), tuple(column[0] for column in cursor.description), cursor.fetchall())


def provenances(run: Path, names: Iterable[str] = tuple(PARTITIONS)) -> list[dict[str, object]]:
    """What the files of the tables `names` say about what made them, each different answer once.

    Gives dictionaries with `table`, `files` (their number) and the keys of :func:`stages.common.tables.provenance`.
    """
    found: dict[tuple[str, str], dict[str, object]] = {}
    for name in names:
        for path in files_of(run, name):
            made = tables.made_by(path)
            key = (name, json.dumps(made, sort_keys=True))
            found.setdefault(key, {"table": name, "files": 0, **made})["files"] += 1
    return list(found.values())


def policies(run: Path) -> list[dict[str, object]]:
    """The manifests of the run's finished policies, by version; the weights themselves may be gone."""
    manifests = [json.loads(path.read_text()) for path in Path(run).glob("policies/version=*/manifest.json")]
    return sorted(manifests, key=lambda manifest: manifest["version"])
