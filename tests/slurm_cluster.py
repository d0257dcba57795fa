"""A SLURM cluster of one node on this machine, for tests: munged, slurmctld and slurmd as children of this process.

No systemd, no cgroups, no accounting. Two fake GPUs: character devices that SLURM counts and hands out, as it would
real ones. The daemons die with the process that started them, however it ends. Needs root, since one node's daemon has
to start jobs, and /etc/slurm, since SLURM's job steps look nowhere else.
"""

import ctypes
import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ETC = Path("/etc/slurm")
FILES = ("slurm.conf", "gres.conf", "cgroup.conf")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scancel", "sinfo")
PACKAGES = "slurmctld slurmd slurm-client munge"
CPUS, MEMORY_MB, GPUS = 2, 12_000, 2

CONF = """ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge/socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
# processes are followed through /proc: cgroups may not be ours to write
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
# a job above its memory is killed, looked at every second
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
# finished jobs stay in squeue, as nothing else remembers them
MinJobAge=3600
SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0
KillWait=2
ReturnToService=2
TaskProlog={folder}/prolog
GresTypes=gpu
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus} State=UNKNOWN
PartitionName=cpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
PartitionName=gpu Nodes={host} MaxTime=INFINITE State=UP
"""
# Runs in the environment of every job step: what it was given, a line each.
PROLOG = """#!/bin/sh
echo "$SLURM_JOB_ID ${{SLURM_STEP_ID:-batch}} ${{CUDA_VISIBLE_DEVICES-none}}" >> {folder}/steps
"""


def missing() -> str:
    """Why no cluster can be started here, or an empty text."""
    if os.geteuid() != 0:
        return "starting SLURM's daemons needs root"
    gone = [name for name in PROGRAMS if not _program(name)]
    if gone:
        return f"{', '.join(gone)} not found; on Debian: apt-get install --no-install-recommends {PACKAGES}"
    for name in FILES:
        path = ETC / name
        if path.exists() and not path.is_symlink():
            return f"{path} exists: this machine has a SLURM of its own"
    return ""


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def _die_with_parent() -> None:
    os.setsid()  # a Ctrl-C in the terminal is for the tests, not for the daemons
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _write(folder: Path) -> None:
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "log", "munge"):
        (folder / name).mkdir(parents=True)
    (folder / "munge").chmod(0o711)
    key = folder / "munge/key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    facts = {"host": host, "folder": folder, "cpus": CPUS, "memory": MEMORY_MB, "gpus": GPUS}
    (folder / "slurm.conf").write_text(CONF.format(**facts))
    (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu File={folder}/gpu[0-{GPUS - 1}]\n")
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
    (folder / "prolog").write_text(PROLOG.format(**facts))
    (folder / "prolog").chmod(0o755)
    for number in range(GPUS):
        os.mknod(folder / f"gpu{number}", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


@contextmanager
def cluster(folder: Path) -> Iterator[Path]:
    """Start the cluster in an empty `folder`; it is gone when the block ends. RuntimeError if it does not come up."""
    _write(folder)
    ETC.mkdir(exist_ok=True)
    munge = folder / "munge"
    commands = [
        ["munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
         f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"],
        ["slurmctld", "-D", "-f", str(folder / "slurm.conf")],
        ["slurmd", "-D", "-f", str(folder / "slurm.conf")],
    ]  # fmt: skip
    daemons: list[subprocess.Popen] = []
    try:
        for name in FILES:
            (ETC / name).unlink(missing_ok=True)
            (ETC / name).symlink_to(folder / name)
        for command in commands:
            with (folder / "log" / command[0]).open("w") as log:
                start = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, "preexec_fn": _die_with_parent}
                daemons.append(subprocess.Popen([_program(command[0]), *command[1:]], **start))
            if command[0] == "munged":
                _until(lambda: (munge / "socket").exists(), "munged", folder)
        _until(lambda: "idle" in ask("sinfo", "-h", "-o", "%T"), "the node", folder)
        yield folder
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for name in FILES:
            (ETC / name).unlink(missing_ok=True)


def _until(ready, what: str, folder: Path) -> None:
    end = time.monotonic() + 60
    while not ready():
        if time.monotonic() > end:
            logs = "\n".join(f"{p}:\n{p.read_text()[-2000:]}" for p in sorted((folder / "log").iterdir()))
            raise RuntimeError(f"{what} did not come up in a minute\n{logs}")
        time.sleep(0.2)


def ask(*command: str) -> str:
    """What one of SLURM's commands prints; empty where it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout


def waiting() -> list[str]:
    """Jobs in the queue, running or pending."""
    return ask("squeue", "-h", "-o", "%i %T", "--states", "PENDING,RUNNING,COMPLETING").split("\n")[:-1]


def jobs() -> list[dict[str, str]]:
    """What SLURM knows of each job, also of those that ended: JobId, JobState, Partition, TresPerJob and more."""
    lines = ask("scontrol", "show", "job", "--oneliner").splitlines()
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]
