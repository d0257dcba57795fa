"""Fixtures shared by several files."""

import sys
from pathlib import Path

import pytest

from tests.workflow_runs import snakemake

# Modules that run inside a sandbox lie beside each other there, and import each other by their bare names.
sys.path.append(str(Path(__file__).parents[1] / "stages" / "execute" / "inside"))


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """The folder of a finished run of the smoke configuration; its tables are in results/smoke."""
    folder = tmp_path_factory.mktemp("smoke")
    done = snakemake(folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return folder
