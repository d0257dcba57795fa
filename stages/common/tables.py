"""The Parquet tables that stages exchange: one explicit schema each, checked on write and on read.

Partition keys (``version``, ``turn``, ``split``, ``benchmark``) stand in the path (``rollouts/version=0/turn=1/``), so
that DuckDB, Polars and Spark read a whole run with one glob; they are not columns of the files. Rows are sorted by a
unique key: the same run gives byte-equal files. What cannot be reproduced (times) has tables of its own.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version as package_version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from stages.common.cli import UserError
from stages.common.files import atomic_file

PROVENANCE = b"murphy"  # key of the JSON that says what produced a file, in the Parquet metadata


@dataclass(frozen=True)
class Table:
    """A table's name, the columns of its files and the columns that name a row."""

    name: str
    key: tuple[str, ...]
    schema: pa.Schema


def _schema(**columns: pa.DataType) -> pa.Schema:
    """Columns in order; a type wrapped by `_null` may hold NULL."""
    return pa.schema(
        [
            pa.field(name, kind[0], nullable=True) if isinstance(kind, tuple) else pa.field(name, kind, nullable=False)
            for name, kind in columns.items()
        ]
    )


def _null(kind: pa.DataType) -> tuple[pa.DataType]:
    return (kind,)


_TEXT, _INT, _REAL, _FLAG = pa.string(), pa.int32(), pa.float64(), pa.bool_()

TEST = pa.struct(
    [
        # One test of a task. `code`: assert statements (function), or the name of a test function (pytest);
        # `stdin`/`stdout` for programs. Invisible tests are scored and never shown.
        pa.field("visible", _FLAG, nullable=False),
        pa.field("code", _TEXT),
        pa.field("stdin", _TEXT),
        pa.field("stdout", _TEXT),
    ]
)

TASKS = Table(
    "tasks",
    ("task_id",),
    _schema(
        task_id=_TEXT,
        source=_TEXT,  # starter, humaneval, mbpp, kodcode, ...
        kind=_TEXT,  # function | pytest | stdio | unittest
        prompt=_TEXT,  # the statement, without chat template
        entry_point=_null(_TEXT),  # the function or class the tests call
        prelude=_null(_TEXT),  # code put before every completion (HumanEval: the prompt's imports and helpers)
        setup=_null(_TEXT),  # code that runs on the tests' side before each test; for pytest the whole test file
        tests=pa.list_(pa.field("item", TEST, nullable=False)),
        reference=_null(_TEXT),  # a solution that scores 1.0
        difficulty=_null(_TEXT),
        inplace=_FLAG,  # the reference changes its arguments, so changes come back to the test
        packages=pa.list_(pa.field("item", _TEXT, nullable=False)),  # importable beside the standard library
        cpu_seconds=_null(_REAL),  # limits of this task; NULL takes the run's
        memory_mb=_null(_INT),
    ),
)

REJECTED = Table("rejected", ("task_id",), _schema(task_id=_TEXT, source=_TEXT, reward=_null(_REAL), reason=_TEXT))

ROLLOUTS = Table(
    "rollouts",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        parent_id=_null(_TEXT),  # NULL for a root
        group_id=_TEXT,  # the parent's node_id; for roots version/task_id
        task_id=_TEXT,
        sample=_INT,  # 0.. within the group
        prompt=_TEXT,  # what the engine read, as text, for reading only
        prompt_ids=pa.list_(pa.field("item", _INT, nullable=False)),
        completion_ids=pa.list_(pa.field("item", _INT, nullable=False)),  # as sampled, end-of-sequence token included
        sampling_logprobs=pa.list_(pa.field("item", pa.float32(), nullable=False)),  # of completion_ids, as sampled
        text=_TEXT,  # the completion, special tokens removed
        code=_null(_TEXT),  # extracted program; NULL where there is none
        finish_reason=_TEXT,  # stop | length | context_overflow
        seed=pa.int64(),
        policy_hash=_TEXT,
    ),
)

VERDICTS = Table(
    "verdicts",
    ("node_id", "test"),
    _schema(
        node_id=_TEXT,
        test=_INT,  # index into the task's tests
        visible=_FLAG,
        kind=_TEXT,  # one of stages.common.verdicts.KINDS
        message=_null(_TEXT),
        call=_null(_TEXT),  # visible tests only, like got and expected
        got=_null(_TEXT),
        expected=_null(_TEXT),
    ),
)

TEST_TIMES = Table(
    "test_times",
    ("node_id", "test"),
    _schema(node_id=_TEXT, test=_INT, cpu_ms=_null(_REAL), wall_ms=_null(_REAL), retried=_FLAG),
)

FEEDBACK = Table(
    "feedback",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        task_id=_TEXT,
        reward=_null(_REAL),  # passed / total; NULL where the node could not be judged
        passed=_INT,
        total=_INT,
        hidden_passed=_INT,
        hidden_total=_INT,
        kind=_TEXT,  # passed, or the kind of the first test that failed
        mode=_TEXT,  # answer_blind | in_process | stdio | none (nothing was run)
        feedback=_TEXT,
    ),
)

CREDIT = Table(
    "credit",
    ("node_id",),
    _schema(
        node_id=_TEXT,
        parent_id=_null(_TEXT),
        group_id=_TEXT,
        task_id=_TEXT,
        turn=_INT,
        reward=_null(_REAL),
        credit=_null(_REAL),
        group_mean=_null(_REAL),  # over the kept nodes of the group
        group_std=_null(_REAL),  # sample standard deviation
        advantage=_REAL,
        kept=_FLAG,
        prune_reason=_null(_TEXT),  # inter | intra
    ),
)

_STEP_METRICS = {
    "loss": _REAL,  # this part's share of the step's loss; the shares add up
    "kl": _null(_REAL),  # to the reference policy; NULL without one
    "kl_start": _REAL,  # to the policy at the version's start
    "entropy": _null(_REAL),
    "ratio_mean": _REAL,
    "ratio_max": _REAL,
    "clip_low": _REAL,  # share of tokens
    "clip_high": _REAL,
    "is_ratio_mean": _REAL,  # trainer/engine correction before truncation
    "is_ratio_max": _REAL,
    "is_used_mean": _REAL,  # the correction as it was applied, after truncation or masking
    "is_clipped": _REAL,  # share of tokens truncated or masked
    "logp_diff": _REAL,  # mean |trainer - engine| log-probability
}
_STEP_SIZE = {
    "rows": _INT,
    "tokens": pa.int64(),  # completion tokens in the loss
    "forward_tokens": pa.int64(),  # those with a forward pass, which means and shares are over
}

UPDATES = Table(
    "updates",
    ("step",),
    _schema(
        step=_INT,  # optimiser steps of this version, from 0
        epoch=_INT,
        **_STEP_SIZE,
        **_STEP_METRICS,
        grad_norm=_REAL,
        lr=_REAL,
        by_turn=pa.list_(pa.struct(list(_schema(turn=_INT, **_STEP_SIZE, **_STEP_METRICS)))),
    ),
)

EVALS = Table(
    "evals",
    ("task_id", "sample"),
    _schema(
        task_id=_TEXT,
        sample=_INT,  # the chain's root
        difficulty=_null(_TEXT),
        attempts=_INT,
        solved_at=_null(_INT),  # turn of the first attempt that passes every hidden test, NULL if none
        first_kind=_TEXT,
        last_kind=_TEXT,
    ),
)

ALL = {t.name: t for t in (TASKS, REJECTED, ROLLOUTS, VERDICTS, TEST_TIMES, FEEDBACK, CREDIT, UPDATES, EVALS)}


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
