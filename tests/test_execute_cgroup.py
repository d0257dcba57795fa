"""Control groups: what is found on a machine and said about it, and groups as this machine really has them.

No machine without a delegated version 2 can show that memory.max and pids.max hold; where there is one, the last test
does. The reasons to use none are read from folders laid out as the kernel does.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stages.common.config import Execute
from stages.execute import cases, cgroup, sandbox, stage, worker
from stages.execute.supervisor import Supervisor


def laid_out(folder, controllers="memory pids", given="", processes=None):
    """A folder with the files that a group has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cgroup.controllers").write_text(controllers)
    (folder / "cgroup.subtree_control").write_text(given)
    (folder / "cgroup.procs").write_text("\n".join(map(str, processes or [os.getpid()])))
    return folder


def test_own_group(tmp_path):
    mounts, groups = tmp_path / "mounts", tmp_path / "groups"
    mounts.write_text(
        "25 20 0:22 / /sys/fs/cgroup rw - tmpfs none rw\n"
        "26 25 0:23 / /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 none rw\n"
    )
    groups.write_text("2:cpuacct:/x\n0::/user.slice/run-1.scope\n")
    assert cgroup.own(mounts, groups) == Path("/sys/fs/cgroup/unified/user.slice/run-1.scope")
    groups.write_text("2:cpuacct:/x\n")
    assert cgroup.own(mounts, groups) is None
    assert cgroup.own(tmp_path / "nothing", groups) is None


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"controllers": "hugetlb"}, "none: cgroup v2 without memory, pids"),
        ({"controllers": "cpu memory"}, "none: cgroup v2 without pids"),
        ({"processes": [os.getpid(), 1]}, "none: other processes are in the stage's cgroup"),
    ],
)
def test_why_there_is_none(tmp_path, layout, words):
    assert cgroup.find(laid_out(tmp_path / "own", **layout)) == cgroup.Delegated(None, words)
    assert not (tmp_path / "own" / cgroup.LEAF).exists()


def test_none_at_all(tmp_path):
    assert cgroup.find(None) == cgroup.Delegated(None, "none: no cgroup v2 here")
    assert cgroup.find(tmp_path / "gone").words.startswith("none: No such file")


def test_once_moved_it_is_found_again(tmp_path):
    home = laid_out(tmp_path / "own", given="cpu memory pids")
    assert cgroup.find(laid_out(home / cgroup.LEAF)) == cgroup.Delegated(home, "v2 with memory, pids")


@pytest.fixture
def home():
    """This process's group, where groups can be made below it."""
    found = cgroup.own()
    if found is None or not os.access(found, os.W_OK):
        pytest.skip("no cgroup v2 that this user may write to")
    return found


def test_a_group_holds_counts_and_kills(home):
    group = cgroup.Group(home / f"murphy-test-{os.getpid()}")
    try:
        loop = [sys.executable, "-c", "import os\nos.fork()\nos.setsid()\nwhile True: pass"]
        process = subprocess.Popen(["/bin/sh", "-c", 'read x; exec "$@"', "sh", *loop], stdin=subprocess.PIPE)
        group.adopt(process.pid)
        process.stdin.write(b"\n")
        process.stdin.close()
        end = time.monotonic() + 20
        while (len(group.processes()) < 2 or group.cpu() < 0.2) and time.monotonic() < end:
            time.sleep(0.02)
        assert len(group.processes()) == 2 and group.cpu() >= 0.2
        assert group.killed_for_memory() == 0
    finally:
        group.close()
    assert process.wait() == -9
    assert not group.path.exists()


@pytest.mark.parametrize("setting", ["zygote", "bwrap"])
def test_sandboxes_are_in_their_group(home, setting):
    settings = Execute(sandbox=setting)
    sandbox.become_subreaper()
    start = stage.sandboxes(settings, (), 1).starts[0] | {"cgroup": str(home / f"murphy-test-{os.getpid()}")}
    supervisor = Supervisor(start)
    group, seen = supervisor._group, []
    code = "def f():\n    return open('/proc/self/cgroup').read()\n"
    task = cases.task_of({"id": "a", "code": code, "tests": ["assert '0::/' in f()", "assert f() is None"]}, 1)
    job = {**stage.job_of(task, code, settings), "first": 0}
    job["limits"] = worker.limits(job, start["settings"])
    try:
        looked = supervisor._test

        def look(*arguments):
            seen.append(set(sandbox.descendants(supervisor._candidate._box.init)) - set(group.processes()))
            return looked(*arguments)

        supervisor._test = look
        verdicts = supervisor.judge(job)["tests"]
    finally:
        supervisor.reset()
    assert seen == [set(), set()]
    assert [v["kind"] for v in verdicts] == ["passed", "wrong_answer"]
    assert not group.path.exists()


MEMORY = """
import os
def f():
    for _ in range(6):  # each below the limit of one process
        if os.fork() == 0:
            held = b"x" * (100 << 20)
            os.read(os.pipe()[0], 1)
    os.wait()
    return 1
"""
IN_A_SCOPE = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from stages.common.config import Execute
from stages.execute import cases, stage
settings = Execute(memory_mb=256, cpu_seconds=4)
task = cases.task_of({{"id": "a", "code": {MEMORY!r}, "tests": ["assert f() == 1"]}}, 1)
boxes = stage.sandboxes(settings, (), 1)
print(boxes.facts["cgroup"])
result = stage.judge([stage.Node("a", "a", {MEMORY!r})], {{"a": task}}, settings, boxes)[0]
print(result["tests"][0]["kind"])
"""


def test_limits_of_a_delegated_group():
    scope = ["systemd-run", "--scope", "--quiet", "-p", "Delegate=yes", *(["--user"] if os.getuid() else [])]
    try:
        done = subprocess.run([*scope, sys.executable, "-c", IN_A_SCOPE], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        pytest.skip("no systemd-run here to delegate a cgroup")
    if done.returncode and "Failed to" in done.stderr:
        pytest.skip(f"no cgroup can be delegated here: {done.stderr.strip()[:100]}")
    words, kind = done.stdout.split("\n")[:2]
    if words.startswith("none: cgroup v2 without"):
        pytest.skip(words)
    assert words == "v2 with memory, pids", done.stderr
    assert kind == "memory_limit"
