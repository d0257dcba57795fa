"""Tables and files: checked, sorted, byte-stable, and there whole or not at all."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stages.common import files, tables
from stages.common.cli import UserError
from stages.common.policy import read_manifest, write_manifest

ROWS = [{"task_id": f"t{i}", "source": "s", "reward": i / 2, "reason": "r"} for i in range(3)]


def test_rows_come_back_sorted_whatever_their_order(tmp_path):
    tables.write(tmp_path / "a.parquet", tables.REJECTED, ROWS[::-1])
    tables.write(tmp_path / "b.parquet", tables.REJECTED, ROWS)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert tables.read(tmp_path / "a.parquet", tables.REJECTED).to_pylist() == ROWS


@pytest.mark.parametrize("table", tables.ALL.values(), ids=lambda t: t.name)
def test_every_table_can_be_empty(tmp_path, table):
    tables.write(tmp_path / "t.parquet", table, [])
    assert tables.read(tmp_path / "t.parquet", table).num_rows == 0


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([ROWS[0], ROWS[0]], "more than once"),
        ([ROWS[0] | {"source": None}], "source holds NULL"),
        ([ROWS[0] | {"more": 1}], "more"),
    ],
)
def test_bad_rows_are_refused_and_nothing_is_written(tmp_path, rows, words):
    with pytest.raises(ValueError, match=words):
        tables.write(tmp_path / "t.parquet", tables.REJECTED, rows)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_table_a_broken_one_and_none_are_named(tmp_path):
    pq.write_table(pa.table({"task_id": ["a"]}), tmp_path / "other.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 half a file")
    for name, words in [("other", "not the rejected table"), ("broken", "not a readable"), ("none", "no such file")]:
        with pytest.raises(UserError, match=f"{name}.parquet: {words}"):
            tables.read(tmp_path / f"{name}.parquet", tables.REJECTED)


def test_provenance_is_kept(tmp_path):
    tables.write(tmp_path / "t.parquet", tables.REJECTED, ROWS, tables.provenance("tasks", {"a": 1}, seed=3))
    made_by = tables.made_by(tmp_path / "t.parquet")
    assert made_by["stage"] == "tasks" and made_by["settings"] == {"a": 1} and made_by["seed"] == 3
    assert "duckdb" in made_by["libraries"]


def test_a_failed_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "f"
    files.write_text(path, "old")
    with pytest.raises(RuntimeError), files.atomic_file(path) as aside:
        aside.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]
    with pytest.raises(RuntimeError), files.atomic_folder(tmp_path / "d") as aside:
        (aside / "x").write_text("half")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_replaces_what_stood_there(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "old").write_text("")
    with files.atomic_folder(tmp_path / "d") as aside:
        (aside / "new").write_text("")
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["new"] and len(list(tmp_path.iterdir())) == 1


def test_a_policy_is_known_by_its_model_files_not_by_its_trainer(tmp_path):
    (tmp_path / "trainer").mkdir()
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "trainer" / "adam").write_text("1")
    first = write_manifest(tmp_path, 0, None, {})
    (tmp_path / "trainer" / "adam").write_text("2")
    assert write_manifest(tmp_path, 0, None, {}).hash == first.hash
    (tmp_path / "config.json").write_text("{ }")
    with pytest.raises(UserError, match=r"config\.json.*has changed"):
        read_manifest(tmp_path, verify=True)
    assert write_manifest(tmp_path, 0, None, {}).hash != first.hash
    (tmp_path / "config.json").unlink()
    with pytest.raises(UserError, match=r"config\.json.*is missing"):
        read_manifest(tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(UserError, match="no finished policy"):
        read_manifest(tmp_path)
