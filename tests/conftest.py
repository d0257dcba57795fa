"""Fixtures shared by several files."""

import pytest

from tests.workflow_runs import snakemake


@pytest.fixture(scope="session")
def smoke(tmp_path_factory):
    """The folder of a finished run of the smoke configuration; its tables are in results/smoke."""
    folder = tmp_path_factory.mktemp("smoke")
    done = snakemake(folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return folder
