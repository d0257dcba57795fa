"""What the README promises: its queries run as typed, on a real run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.workflow_runs import ROOT

README = (ROOT / "README.md").read_text()
QUERIES = re.findall(r'^duckdb -c "(.*?)"$', README, re.DOTALL | re.MULTILINE)


def test_the_readme_shows_five_queries():
    assert len(QUERIES) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_a_query_runs_as_typed(smoke, tmp_path, query):
    shell = f'duckdb -csv -c "{query}"'.replace("results/demo", "results/smoke")
    cli = shutil.which("duckdb", path=Path(sys.executable).parent)
    assert cli, "the duckdb command is missing; pip install duckdb-cli"
    done = subprocess.run(shell.replace("duckdb", cli, 1), shell=True, cwd=smoke, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) >= 2, "a header and at least one row"


@pytest.mark.parametrize("path", re.findall(r"\]\(((?!http)[^)#]+)\)", README))
def test_links_lead_somewhere(path):
    assert (ROOT / path).exists()


@pytest.mark.parametrize("command", sorted(set(re.findall(r"^make ([a-z-]+)", README, re.MULTILINE))))
def test_make_targets_exist(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(), re.MULTILINE)
