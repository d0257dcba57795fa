"""Faults at seeded moments: which moments there are; six of them, and an update that is killed between two steps."""

import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from tests import faults
from tests.workflow_runs import ROOT, SMOKE, command, snakemake

NOT_IN_SMOKE = {"benchmark_import", "benchmark_admit", "tasks_taken", "compare_ends", "compare_report"}
IN_CI = [
    ("generate turn 2", "kill -9 of all"),
    ("tasks_admit", "Ctrl-C"),
    ("credit", "kill -9 of snakemake alone"),
    ("execute", "disk full"),
    ("tasks_references", "truncated Parquet"),
    ("update", "policy without manifest"),
]


def test_moments_cover_every_stage_and_fault():
    drawn = faults.moments(100, 0)
    assert drawn == faults.moments(200, 0)[:100] != faults.moments(100, 1)
    assert {stage for stage, _ in drawn} == set(faults.STAGES) and {fault for _, fault in drawn} == set(faults.FAULTS)
    assert set(IN_CI) <= set(drawn)
    rules = "".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    names = {rule for rule, _, _ in faults.STAGES.values()} - {"update_0"}
    assert names == set(re.findall(r"^ *rule (\w+):", rules, re.MULTILINE)) - NOT_IN_SMOKE


@pytest.mark.slow
@pytest.mark.parametrize("number", range(6))
def test_faults_then_the_same_tables(smoke, tmp_path, number):
    """Six of the moments that `make faults` has a hundred of, a fault each."""
    stage, fault = IN_CI[number]
    facts = faults.disturb(smoke, tmp_path, stage, fault, random.Random(number))
    assert facts["equal"], facts


@pytest.mark.slow
def test_a_killed_update_goes_on_inside_its_version(smoke, tmp_path, tmp_path_factory):
    """Killed after an optimiser step and started again by Snakemake, the policy is that of an undisturbed update."""
    overlay = tmp_path / "steps.yaml"
    target = f"{faults.RUN}/policies/version=1/manifest.json"
    overlay.write_text(SMOKE.read_text().replace("lr: 1.0e-4", "lr: 1.0e-4\n  minibatches: 4"))
    straight, killed = tmp_path_factory.mktemp("straight"), tmp_path_factory.mktemp("killed")
    for folder in (straight, killed):
        shutil.copytree(smoke, folder, symlinks=True, dirs_exist_ok=True)
    assert snakemake(straight, "--", target, config=overlay).returncode == 0
    process = subprocess.Popen(
        command(killed, "--", target, config=overlay),
        cwd=ROOT,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and not list(killed.glob(f"{faults.RUN}/work/update/*/*/step-1/state.json")):
        time.sleep(0.02)
    assert process.poll() is None, "was done before its first checkpoint was seen"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    snakemake(killed, "--unlock", config=overlay)
    assert snakemake(killed, "--", target, config=overlay).returncode == 0
    assert "going on after optimiser step" in (killed / faults.RUN / "logs/update/version=0.log").read_text()
    (files, hashes), (wanted, wanted_hashes) = (faults.fingerprints(f / faults.RUN) for f in (killed, straight))
    assert hashes == wanted_hashes and files == wanted
