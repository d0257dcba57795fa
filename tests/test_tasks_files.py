"""Reading JSON, JSON Lines, gzip and Parquet, told by content; broken files are named with their line."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.common.cli import UserError
from stages.tasks.files import read_file, read_path

ROWS = [{"a": 1, "t": "x\u2028y"}, {"a": 2, "t": "ü"}]
LINES = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("name", "data", "unit"),
    [
        ("a.jsonl", LINES.encode(), "line"),
        ("a.txt", LINES.replace("\n", "\r\n").encode(), "line"),
        ("bom.jsonl", b"\xef\xbb\xbf" + LINES.encode(), "line"),
        ("a.json", json.dumps(ROWS, indent=1).encode(), "row"),
        ("a.jsonl.gz", gzip.compress(LINES.encode()), "line"),
        ("gz-by-content", gzip.compress(json.dumps(ROWS).encode()), "row"),
    ],
)
def test_json(tmp_path, name, data, unit):
    path = tmp_path / name
    path.write_bytes(data)
    records = read_file(path)
    assert [dict(record.fields) for record in records] == ROWS
    assert [record.where for record in records] == [f"{path}, {unit} 1", f"{path}, {unit} 2"]


def test_parquet_by_content(tmp_path):
    path = tmp_path / "rows"
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    records = read_file(path)
    assert [dict(record.fields) for record in records] == ROWS
    assert records[1].where == f"{path}, row 2"


def test_lines_are_counted_with_empty_ones(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"a": 2}\n')
    assert read_file(path)[1].where.endswith("line 3")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": 1}\n{"a": \n', "line 2: not a JSON object"),
        (b"[1, 2", "not a JSON list"),
        (b"[1, 2]", "row 1: int, not an object"),
        (b'{"a": 1}\n"text"\n', "line 2: str, not an object"),
        (b"", "holds no rows"),
        (b"[]", "holds no rows"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b"PAR1 and then nothing", "not a readable Parquet file"),
        (b"\x1f\x8b broken", "cannot be read"),
        (gzip.compress(b'{"a": 1}\n')[:-9], "cannot be read"),
    ],
)
def test_broken_files_are_named(tmp_path, data, message):
    path = tmp_path / "broken.jsonl"
    path.write_bytes(data)
    with pytest.raises(UserError) as error:
        read_file(path)
    assert str(path) in str(error.value) and message in str(error.value)


def test_a_folder_gives_its_files_by_name(tmp_path):
    (tmp_path / "b.jsonl").write_text('{"a": 2}\n')
    (tmp_path / "a.json").write_text('[{"a": 1}]')
    (tmp_path / "README.md").write_text("not data")
    assert [record.fields["a"] for record in read_path(tmp_path)] == [1, 2]


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(UserError, match="holds no file that ends in"):
        read_path(tmp_path)
