"""A run on a real SLURM of one node: the profile, equal results, GPUs, memory, Ctrl-C.

    make test-slurm

A run of its own, apart from the other tests: it installs SLURM where it may and starts its daemons (slurm_cluster.py).
"""

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
import yaml

from tests import slurm_cluster
from tests.faults import fingerprints
from tests.workflow_runs import ROOT, command, heed_interrupts, snakemake

WANTED = os.environ.get("MURPHY_TEST_SLURM") == "1"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WANTED, reason="needs a SLURM cluster of its own: make test-slurm"),
]
OVERLAY = {
    "run": "cluster",
    "versions": 1,
    "turns": 1,
    "tasks": {"source": "generated", "limit": 80},
    "policy": {"init": "nano"},
    # enough of a policy that some groups are solved in part and the update has something to learn
    "nano": {"hidden": 128, "layers": 3, "steps": 200},
    "generate": {"tasks_per_version": 8, "temperature": 1.0, "max_tokens": 48, "max_model_len": 768,
                 "kv_cache_gib": 1, "shards": 2},
    "execute": {"feedback_tokens": 64},
    "credit": {"prune": "none"},
    "update": {"lr": 1.0e-4},
    "evaluate": {"versions": "none"},
}  # fmt: skip
POLICY = "results/cluster/policies/version=1/manifest.json"


def profile(folder):
    """The shipped profile, made to fit one small node without accounting; nothing else is changed."""
    shipped = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    shipped |= {
        "slurm-partition-config": str(ROOT / "profiles/slurm/partitions.yaml"),
        "slurm-logdir": str(folder / "slurm-logs"),
        "slurm-keep-successful-logs": True,
        "slurm-status-command": "squeue",  # sacct needs accounting
        "slurm-init-seconds-before-status-checks": 1,
        "latency-wait": 5,
        "max-threads": slurm_cluster.CPUS,
        "set-resources": {
            "generate": {"gpu": 1, "mem_mb": "4000 * attempt"},
            "execute": {"mem_mb": "3000 * attempt"},
            # torch alone takes more than 400 MB, so that the first attempt is killed
            "update_0": {"gpu": 2, "mem_mb": "400 if attempt == 1 else 2500 * attempt"},
        },
    }
    path = folder / "profile"
    path.mkdir()
    (path / "config.yaml").write_text(yaml.safe_dump(shipped))
    return path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    if why := slurm_cluster.missing():
        pytest.fail(why)
    if importlib.util.find_spec("snakemake_executor_plugin_slurm") is None:
        pytest.fail("snakemake-executor-plugin-slurm is missing; make test-slurm installs it")
    with slurm_cluster.cluster(tmp_path_factory.mktemp("slurm") / "cluster") as folder:
        yield folder


@pytest.fixture(scope="module")
def runs(cluster, tmp_path_factory):
    """The same iteration done locally and on the cluster; (local folder, cluster folder, what snakemake said)."""
    base = tmp_path_factory.mktemp("runs")
    local, remote, config = base / "local", base / "remote", base / "cluster.yaml"
    config.write_text(yaml.safe_dump(OVERLAY))
    done = snakemake(local, "results/cluster/policies/version=0/manifest.json", config=config)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    shutil.copytree(local, remote)
    done = snakemake(local, POLICY, config=config)
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    done = subprocess.run(on_slurm(remote, config, profile(base), POLICY), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return local, remote, done.stdout + done.stderr


def on_slurm(folder, config, profile, *more):
    argv = command(folder, *more, config=config)
    argv[argv.index("--workflow-profile") + 1] = str(profile)
    at = argv.index("--cores")
    return [*argv[:at], *argv[at + 2 :]]  # a cluster's jobs have their own


def test_results_equal_those_of_the_local_run(runs):
    local, remote, _ = runs
    (files, hashes), (wanted, wanted_hashes) = (fingerprints(f / "results/cluster") for f in (remote, local))
    assert hashes == wanted_hashes and set(hashes) == {"version=0", "version=1"}
    assert [name for name in files.keys() | wanted.keys() if files.get(name) != wanted.get(name)] == []
    assert sum("rollouts/" in name for name in files) == 2 and sum("updates/" in name for name in files) == 1


def test_few_jobs_a_shard_each_and_gpus_are_visible(cluster, runs):
    jobs = slurm_cluster.jobs()
    ours = sorted((job["JobState"], job["Partition"], job.get("TresPerJob", "").split(":")[-1]) for job in jobs)
    # a job for each of the two shards, and the update, which was killed once
    assert ours == [
        ("COMPLETED", "gpu", "1"),
        ("COMPLETED", "gpu", "1"),
        ("COMPLETED", "gpu", "2"),
        ("FAILED", "gpu", "2"),
    ]
    steps = [line.split() for line in (cluster / "steps").read_text().splitlines()]
    for job in jobs:
        wanted = {"0", "1"} if job["TresPerJob"].endswith(":1") else {"0,1"}
        seen = {gpus for number, step, gpus in steps if number == job["JobId"]}
        assert seen and seen <= wanted, (job, steps)


def test_a_job_killed_for_memory_is_tried_again_with_more(runs):
    _, remote, said = runs
    logs = "".join(path.read_text() for path in (remote.parent / "slurm-logs").rglob("*.log"))
    assert re.search("exceeded .*memory limit|oom.kill", logs, re.IGNORECASE), logs[-3000:]
    assert "Trying to restart job" in said and "mem_mb=400," in said and "mem_mb=5000," in said, said[-4000:]


def test_ctrl_c_cancels_the_jobs(cluster, runs, tmp_path):
    """Also while SLURM is still to answer what has become of them: Snakemake then has no list of its jobs."""
    _, remote, _ = runs
    config, mine = remote.parent / "cluster.yaml", profile(tmp_path)
    slow = tmp_path / "bin/squeue"
    slow.parent.mkdir()
    asked = tmp_path / "asked"
    slow.write_text(f'#!/bin/sh\n[ -e {asked} ] || {{ touch {asked}; sleep 5; }}\nexec {shutil.which("squeue")} "$@"\n')
    slow.chmod(0o755)
    before = {job["JobId"] for job in slurm_cluster.jobs()}
    with (tmp_path / "out").open("w") as out:
        argv = on_slurm(remote, config, mine, "--forcerun", "generate", "--", POLICY)
        process = subprocess.Popen(
            argv, stdout=out, stderr=out, cwd=ROOT, start_new_session=True, preexec_fn=heed_interrupts,
            env=os.environ | {"PATH": f"{slow.parent}:{os.environ['PATH']}"},
        )  # fmt: skip
        try:
            end = time.monotonic() + 90
            while not asked.exists() or not any("RUNNING" in job for job in slurm_cluster.waiting()):
                assert time.monotonic() < end and process.poll() is None, (tmp_path / "out").read_text()[-3000:]
                time.sleep(0.3)
            os.killpg(process.pid, signal.SIGINT)
            process.wait(60)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    end = time.monotonic() + 20
    while slurm_cluster.waiting() and time.monotonic() < end:
        time.sleep(0.3)
    ended = {job["JobId"]: job["JobState"] for job in slurm_cluster.jobs() if job["JobId"] not in before}
    assert ended and set(ended.values()) == {"CANCELLED"}, (ended, (tmp_path / "out").read_text()[-3000:])
    assert slurm_cluster.waiting() == [] and process.returncode != 0
