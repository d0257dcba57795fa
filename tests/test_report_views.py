"""The init file of views, opened by DuckDB from the run's folder, also after the folder was moved."""

import shutil
import subprocess
import sys

import pytest

from stages.report.__main__ import main
from tests.synthetic_run import small_run

COUNTS = """
select (select count(*) from tasks), (select count(*) from rollouts), (select count(*) from verdicts),
       (select count(*) from credit where not kept), (select count(*) from evals), (select count(*) from eval_feedback),
       (select sum(seconds) from timings)
"""
NODES = """
select version, turn, count(*), avg(reward), sum(credit), count(prune_reason), count(distinct code) from nodes
group by all order by all
"""


@pytest.fixture(scope="module")
def moved(tmp_path_factory):
    run = tmp_path_factory.mktemp("results") / "small"
    small_run(run)
    assert main(["views", str(run)]) == 0
    return shutil.move(run, tmp_path_factory.mktemp("else where") / "renamed")


def ask(monkeypatch, folder, sql):
    import duckdb

    monkeypatch.chdir(folder)
    connection = duckdb.connect()
    connection.execute((folder / "murphy.sql").read_text())
    return connection.execute(sql).fetchall()


def test_views_hold_the_tables_after_a_move(moved, monkeypatch):
    assert ask(monkeypatch, moved, COUNTS) == [(9, 56, 110, 11, 14, 22, 100.0)]


def test_nodes_joins_what_is_known_of_each_node(moved, monkeypatch):
    rows = ask(monkeypatch, moved, NODES)
    assert [row[:3] for row in rows] == [(0, 1, 12), (0, 2, 32), (1, 1, 8), (1, 2, 4)]
    assert [row[3] for row in rows] == pytest.approx([4 / 11, 12 / 31, 7.5 / 8, 3 / 4])
    assert [row[4:] for row in rows] == [(7.5, 2, 11), (12.0, 9, 30), (8.0, 0, 8), (3.0, 0, 4)]


def test_tables_that_are_not_there_are_empty_views(tmp_path, monkeypatch):
    small_run(tmp_path / "half", finished=False)
    assert main(["views", str(tmp_path / "half")]) == 0
    assert ask(monkeypatch, tmp_path / "half", COUNTS) == [(9, 44, 86, 11, 0, 0, 36.0)]


def test_the_duckdb_command_reads_the_file(moved):
    command = shutil.which("duckdb", path=f"{sys.prefix}/bin") or shutil.which("duckdb")
    if not command:
        pytest.skip("no duckdb command (PyPI: duckdb-cli)")
    told = subprocess.run(
        [command, "-init", "murphy.sql", "-csv", "-c", "select count(*) as n from nodes"],
        cwd=moved,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["n", "56"]
