"""Finding a run's tables and asking them, also where some are not there."""

import json
import shutil

import pytest

from stages.common import runs, tables
from stages.common.cli import UserError
from tests.synthetic_run import small_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results of o'brien") / "small"
    small_run(folder)
    return folder


@pytest.mark.parametrize("name", runs.PARTITIONS)
def test_an_empty_table_has_the_columns_and_types_of_a_full_one(run, name):
    connection = runs.connect(run)
    assert runs.files_of(run, name), f"the synthetic run lacks {name}"
    full = runs.query(connection, run, f"describe from '{runs.glob_of(name)}'").rows
    empty = runs.query(connection, run, f"describe {runs.empty_select(name)}").rows
    kinds = [{row[0]: row[1] for row in rows} for rows in (full, empty)]
    assert kinds[0] == kinds[1]


def test_a_missing_table_counts_as_empty(tmp_path):
    small_run(tmp_path / "half", finished=False)
    connection = runs.connect(tmp_path / "half")
    sql = "select count(*), max(version) from 'evals/**/*.parquet'"
    assert runs.query(connection, tmp_path / "half", sql).rows == [(0, None)]
    sql = "select count(*) from 'rollouts/**/*.parquet' left join 'eval_rollouts/**/*.parquet' as e using (node_id)"
    assert runs.query(connection, tmp_path / "half", sql).rows == [(44,)]
    shutil.rmtree(tmp_path / "half/timings")
    assert runs.query(connection, tmp_path / "half", "select count(*), sum(seconds) from timings").rows == [(0, None)]


def test_half_written_files_are_left_out(run, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    whole = runs.files_of(copy, "feedback")
    (copy / "feedback/version=0/turn=1/.shard-0.parquet.77.tmp").write_bytes(b"half")
    (copy / "feedback/version=0/turn=1/.old.parquet").write_bytes(b"half")
    assert runs.files_of(copy, "feedback") == whole


def test_timings_know_stage_version_and_turn(run):
    sql = "select distinct stage, version, turn from timings order by all"
    rows = runs.query(runs.connect(run), run, sql).rows
    assert rows == [("execute", 0, 1), ("generate", 0, 1), ("generate", 0, 2), ("update", 0, None)]


def test_the_text_of_a_query_runs_by_hand_in_the_runs_folder(run, monkeypatch):
    import duckdb

    asked = runs.query(runs.connect(run), run, "select stage, sum(seconds) from timings group by all order by all")
    monkeypatch.chdir(run)
    assert duckdb.connect().execute(asked.sql).fetchall() == asked.rows != []


def test_partition_values_count_files_without_rows(run):
    assert runs.partition_values(run, "updates", "version") == {0, 1}  # version 1 made no step
    assert runs.partition_values(run, "eval_rollouts", "turn") == {1, 2, 3}


def test_provenances_name_each_different_maker_once(run, tmp_path):
    made = runs.provenances(run, ["rollouts", "evals"])
    assert [(m["table"], m["stage"], m["files"]) for m in made] == [
        ("rollouts", "generate", 4),
        ("evals", "evaluate", 3),
    ]
    path = tmp_path / "run/evals/benchmark=heldout/version=0/part-0.parquet"
    tables.write(path, tables.EVALS, [])
    assert runs.provenances(tmp_path / "run") == [{"table": "evals", "files": 1}]


def test_policies_are_listed_by_version_without_their_weights(tmp_path):
    for version in (10, 2):
        folder = tmp_path / f"policies/version={version}"
        folder.mkdir(parents=True)
        text = json.dumps({"version": version, "hash": "x", "parent": None, "made_by": {}, "files": {"gone": "y"}})
        (folder / "manifest.json").write_text(text)
    assert [policy["version"] for policy in runs.policies(tmp_path)] == [2, 10]


def test_folders_that_are_no_run(tmp_path):
    with pytest.raises(UserError, match="no such folder"):
        runs.connect(tmp_path / "nothing")
    with pytest.raises(UserError, match="none of a run's tables"):
        runs.connect(tmp_path)
    odd = tmp_path / "a[1]"
    tables.write(odd / "tasks/split=train/part-0.parquet", tables.TASKS, [])
    with pytest.raises(UserError, match="rename the folder"):
        runs.connect(odd)
