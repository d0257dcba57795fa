"""Rows of local data files: JSON (a list), JSON Lines, either of them gzipped, or Parquet.

What a file is, is read from its content, not from its name.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stages.common.cli import UserError
from stages.tasks.records import Record

SUFFIXES = (".json", ".jsonl", ".ndjson", ".parquet", ".gz")  # taken from a folder; a single file may have any name


def _json_rows(path: Path, data: bytes) -> Iterator[tuple[str, object]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text ({error}); expected JSON, JSON Lines or Parquet") from None
    if text.lstrip().startswith("["):
        try:
            rows = json.loads(text)
        except json.JSONDecodeError as error:
            raise UserError(f"{path}: not a JSON list: {error}") from None
        yield from ((f"row {number}", row) for number, row in enumerate(rows, 1))
        return
    for number, line in enumerate(text.split("\n"), 1):  # not splitlines: text may hold other line separators
        if line.strip():
            try:
                yield f"line {number}", json.loads(line)
            except json.JSONDecodeError as error:
                raise UserError(f"{path}, line {number}: not a JSON object: {error}") from None


def _parquet_rows(path: Path, data: bytes) -> Iterator[tuple[str, object]]:
    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error})") from None
    yield from ((f"row {number}", row) for number, row in enumerate(table.to_pylist(), 1))


def read_file(path: Path) -> list[Record]:
    """The rows of one file; UserError names the file, and the line or row that cannot be read."""
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    records = []
    for where, row in _parquet_rows(path, data) if data[:4] == b"PAR1" else _json_rows(path, data):
        if not isinstance(row, dict):
            raise UserError(f"{path}, {where}: {type(row).__name__}, not an object with fields")
        records.append(Record(f"{path}, {where}", row))
    if not records:
        raise UserError(f"{path}: holds no rows")
    return records


def read_path(path: Path) -> list[Record]:
    """The rows of a file, or of all JSON and Parquet files in a folder, by name."""
    if not path.is_dir():
        return read_file(path)
    files = sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES and p.is_file())
    if not files:
        raise UserError(f"{path}: the folder holds no file that ends in {', '.join(SUFFIXES)}")
    return [record for file in files for record in read_file(file)]
