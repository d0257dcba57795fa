"""The SQL files as a user runs them by hand: the commands of docs/credit.md, typed as they stand there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from stages.common import tables
from stages.common.config import Credit
from stages.credit.assign import SQL, assign
from tests.credit_trees import tree, write_trees
from tests.test_credit_assign import EXAMPLE

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs" / "credit.md").read_text(), re.MULTILINE | re.DOTALL)
SESSION = next(
    re.search(r"<<'SQL'\n(.*)^SQL$", block, re.MULTILINE | re.DOTALL)[1] for block in BLOCKS if "<<" in block
)


@pytest.fixture
def project(tmp_path):
    """A folder like the project's, with a run called demo that holds the worked example."""
    (tmp_path / "stages").symlink_to(ROOT / "stages")
    run = tmp_path / "results" / "demo"
    nodes = tree("t", EXAMPLE)
    files = write_trees(run, nodes)
    credit = assign(**files, turns=2, settings=Credit(strategy="mers"))
    tables.write(run / "credit" / "version=0" / "part-0.parquet", tables.CREDIT, credit)
    return tmp_path


def typed(connection, session, folder):
    """Run a session of DuckDB's shell: `.read` lines and SQL; gives the rows of the last statement."""
    text = re.sub(r"^\.read (.*)$", lambda match: (folder / match[1]).read_text(), session, flags=re.MULTILINE)
    return connection.execute(text).fetchall()


def test_the_documented_session_gives_what_the_stage_gives(project, monkeypatch):
    monkeypatch.chdir(project)
    assert [line for line in SESSION.splitlines() if line.startswith(".read")] == [
        f".read stages/credit/sql/{path.name}" for path in sorted(SQL.glob("*.sql"))
    ]
    with duckdb.connect() as connection:
        rows = typed(connection, SESSION, project)
        assert connection.execute("FROM problems").fetchall() == []
        by_hand = connection.sql("FROM credit").to_arrow_table()
    assert [row[:3] for row in rows] == [("0/t/0", 1, 1), ("0/t/1", 0.5, 0.53125), ("0/t/2", 0, 0), ("0/t/3", 0, 0.45)]
    stage = tables.read(project / "results/demo/credit/version=0/part-0.parquet", tables.CREDIT)
    assert by_hand.cast(tables.CREDIT.schema).equals(stage)


def test_the_documented_commands_run_in_duckdbs_shell(project):
    shell = shutil.which("duckdb", path=str(Path(sys.executable).parent)) or shutil.which("duckdb")
    if not shell:
        pytest.skip("no duckdb command here; it comes with the dev extra (duckdb-cli)")
    assert len(BLOCKS) == 2
    for block in BLOCKS:
        script = re.sub(r"^duckdb\b", f"{shell} -bail -csv", block, flags=re.MULTILINE)
        done = subprocess.run(["sh", "-c", script], cwd=project, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert ("0/t/1,0.5,0.53125" if "<<" in block else "\n0,1,4,4,0,0.375,0.4953") in done.stdout


def test_settings_by_hand_start_at_the_defaults():
    with duckdb.connect() as connection:
        connection.execute((SQL / "0_settings.sql").read_text())
        for name, value in Credit().model_dump().items():
            (given,) = connection.execute(f"SELECT getvariable('{name}')").fetchone()
            assert (float(given) if isinstance(value, float) else given) == value, name


def test_files_may_be_read_again_with_other_settings(project, monkeypatch):
    monkeypatch.chdir(project)
    with duckdb.connect() as connection:
        typed(connection, SESSION, project)
        again = SESSION.split("SQL\n")[0].replace("strategy = 'mers'", "strategy = 'own'")
        rows = typed(connection, again, project)
    assert [row[2] for row in rows] == [1, 0.5, 0, 0]
