"""The Parquet tables that stages exchange: one explicit schema each, checked on write and on read.

Partition keys (``version``, ``turn``, ``split``, ``benchmark``) stand in the path (``rollouts/version=0/turn=1/``), so
that DuckDB, Polars and Spark read a whole run with one glob; they are not columns of the files. Rows are sorted by a
unique key: the same run gives byte-equal files. What cannot be reproduced (times) has tables of its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version as package_version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stages.common.cli import UserError
from stages.common.files import atomic_file
from stages.common.schemas import (
    ALL,
    CREDIT,
    EVALS,
    FEEDBACK,
    REJECTED,
    ROLLOUTS,
    TASKS,
    TEST,
    TEST_TIMES,
    UPDATES,
    VERDICTS,
    Table,
)

__all__ = ["ALL", "CREDIT", "EVALS", "FEEDBACK", "REJECTED", "ROLLOUTS", "TASKS", "TEST", "TEST_TIMES", "UPDATES"]
__all__ += ["VERDICTS", "Table", "count_rows", "made_by", "provenance", "read", "to_table", "write"]
PROVENANCE = b"murphy"  # key of the JSON that says what produced a file, in the Parquet metadata


def provenance(stage: str, settings: Mapping[str, object] = {}, **facts: object) -> dict[str, object]:
    """What produced a file: the stage, its settings, the versions of the libraries that write tables."""
    libraries = {name: package_version(name) for name in ("pyarrow", "duckdb")}
    return {"stage": stage, "settings": dict(settings), "libraries": libraries, **facts}


def to_table(table: Table, rows: Iterable[Mapping[str, object]] | pa.Table) -> pa.Table:
    """Rows (or an Arrow table with the same columns) as an Arrow table of the schema, sorted by the key.

    Raises ValueError for a missing or unknown column, a NULL where none may be, or a key that occurs twice.
    """
    if not isinstance(rows, pa.Table):
        rows = list(rows)
        for row in rows[:1]:
            if set(row) != set(table.schema.names):
                odd = sorted(set(row) ^ set(table.schema.names))
                raise ValueError(f"table {table.name}: columns {odd} are missing or unknown")
        rows = pa.Table.from_pylist(rows, schema=table.schema)
    elif set(rows.column_names) != set(table.schema.names):
        odd = sorted(set(rows.column_names) ^ set(table.schema.names))
        raise ValueError(f"table {table.name}: columns {odd} are missing or unknown")
    for field in table.schema:
        if not field.nullable and rows[field.name].null_count:
            raise ValueError(f"table {table.name}: column {field.name} holds NULL")
    rows = rows.select(table.schema.names).cast(table.schema)
    if _ascending(rows, table.key):  # sorted and unique already: saves most of the time on millions of rows
        return rows.combine_chunks()
    rows = rows.sort_by([(name, "ascending") for name in table.key]).combine_chunks()
    if rows.num_rows and rows.group_by(list(table.key)).aggregate([]).num_rows != rows.num_rows:
        raise ValueError(f"table {table.name}: the key {', '.join(table.key)} occurs more than once")
    return rows


def _ascending(rows: pa.Table, key: tuple[str, ...]) -> bool:
    """Whether a key of one column rises strictly from row to row."""
    if len(key) != 1:
        return False
    column = rows[key[0]]
    return bool(pc.all(pc.less(column[:-1], column[1:])).as_py() if len(column) > 1 else True)


def write(path: Path, table: Table, rows: Iterable[Mapping[str, object]] | pa.Table, made_by: Mapping = {}) -> pa.Table:
    """Write rows to `path` as one Parquet file, atomically; `made_by` (:func:`provenance`) goes into its metadata."""
    data = to_table(table, rows)
    text = json.dumps(made_by, sort_keys=True, default=str).encode()
    data = data.replace_schema_metadata({PROVENANCE: text})
    with atomic_file(Path(path)) as aside:
        pq.write_table(data, aside, compression="zstd")
    return data


@contextmanager
def _readable(path: Path, table: Table) -> Iterator[None]:
    """Turn what goes wrong while a file is opened or read into a UserError."""
    try:
        yield
    except FileNotFoundError:
        raise UserError(f"{path}: no such file (expected the {table.name} table)") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error}); delete it and run again") from None


def _check_schema(path: Path, table: Table, got: pa.Schema, columns: list[str] | None = None) -> None:
    want = pa.schema([table.schema.field(name) for name in columns or table.schema.names])
    got = got.remove_metadata()
    if not got.equals(want):
        odd = sorted(set(map(str, got)) ^ set(map(str, want)))
        raise UserError(f"{path}: not the {table.name} table; columns that differ: {'; '.join(odd)}")


def count_rows(path: Path, table: Table) -> int:
    """Rows of a file, from its footer alone; UserError when its columns are not those of `table`."""
    with _readable(path, table), pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    _check_schema(path, table, schema)
    return rows


def read(paths: Path | Iterable[Path], table: Table, columns: list[str] | None = None) -> pa.Table:
    """Read one file or several as one Arrow table, sorted by the key; UserError names a file that does not fit."""
    parts = []
    for path in [paths] if isinstance(paths, str | Path) else paths:
        with _readable(path, table):
            part = pq.ParquetFile(path).read(columns=columns)
        _check_schema(path, table, part.schema, columns)
        parts.append(part.replace_schema_metadata())
    if not parts:
        return table.schema.empty_table()
    keys = [name for name in table.key if columns is None or name in columns]
    whole = pa.concat_tables(parts)
    return whole.sort_by([(name, "ascending") for name in keys]) if keys else whole


def made_by(path: Path) -> dict[str, object]:
    """The provenance written into a file, or {} where there is none."""
    text = (pq.read_schema(path).metadata or {}).get(PROVENANCE)
    return json.loads(text) if text else {}
