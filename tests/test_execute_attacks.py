"""Programs that cheat, break a harness, or look odd but are right, each with the verdict that a right harness gives.

The corpus lies beside the checkout (../shared/data/attacks.jsonl); without it these tests are skipped. Run as root,
the sandboxes also run as if an ordinary user had started them.
"""

import contextlib
import os
import time

import pytest

from stages.common.config import Execute
from stages.execute import cases as cases_module
from stages.execute import sandbox, stage, worker
from stages.execute.supervisor import Supervisor
from tests.sandboxes import SETTINGS, busy_cores, cases, children, disagreements, judge, needs_corpus, wait_for_nothing


@needs_corpus
def test_quick_cases(tmp_path):
    """All that end by themselves, and one of each way not to."""
    lines = [c for c in cases() if c["category"] != "time" or c["id"] in ("time-02", "time-09", "time-10")]
    assert len(lines) > 90
    assert disagreements(lines, judge(tmp_path, lines)) == []
    assert wait_for_nothing() == []


@needs_corpus
@pytest.mark.slow
def test_whole_corpus_as_an_ordinary_user_on_busy_cores(tmp_path):
    if os.getuid() != 0:
        pytest.skip("already an ordinary user: test_each_case_leaves_nothing is this test")
    lines = cases()
    with busy_cores():
        answers = judge(tmp_path, lines, user=True)
    assert disagreements(lines, answers) == []
    assert wait_for_nothing() == []


def left_behind():
    """(Processes below this one, zombies among them, files where the live ones can write, descriptors)."""
    found = dict(children(os.getpid()))
    files = []
    for pid in found:
        for folder in ("tmp", "dev/shm"):
            with contextlib.suppress(FileNotFoundError):  # gone meanwhile
                if not os.path.samefile(f"/proc/{pid}/root", "/"):
                    files += os.listdir(f"/proc/{pid}/root/{folder}")
    live = {pid for pid, state in found.items() if state not in "ZX"}
    return live, sorted(set(found) - live), files, len(os.listdir("/proc/self/fd"))


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_each_case_leaves_nothing(setting):
    """The whole corpus on busy cores; after every case no process but the warm ones, no zombie, file or descriptor."""
    settings = Execute(cpu_seconds=1, wall_factor=2.5, sandbox=setting)
    sandbox.become_subreaper()
    start = stage.sandboxes(settings, (), 1).starts[0]

    def run(line):
        task = cases_module.task_of(line, 1)
        job = {**stage.job_of(task, line["code"], settings), "first": 0}
        job["limits"] = worker.limits(job, start["settings"])
        result = worker.judge(supervisor, job)
        node = stage.Node(line["id"], line["id"], line["code"])
        return cases_module.answer(node, task, stage._complete({**result, "retried": []}, len(task["tests"])), settings)

    blind = {"id": "warm", "code": "def f(x): return x", "tests": ["assert f(1) == 1"]}
    printed = "from solution import f\ndef test_f(capsys):\n    assert f(1) == 1"
    inside = {"id": "warm", "code": "def f(x): return x", "test_code": printed}
    with busy_cores():
        supervisor = Supervisor(start)
        before = left_behind()
        try:
            assert [run(line)["verdict"] for line in (blind, inside)] == ["passed"] * 2
            warm = left_behind()
            for line in cases():
                answer = run(line)
                assert disagreements([line], {line["id"]: answer}) == []
                end = time.monotonic() + 3
                live, zombies, files, descriptors = left_behind()
                while (len(live) > len(warm[0]) or zombies) and time.monotonic() < end:
                    time.sleep(0.05)  # the tests' side ends its child of this case a moment later
                    live, zombies, files, descriptors = left_behind()
                assert len(live) <= len(warm[0]), line["id"]
                assert (zombies, files) == ([], []), line["id"]
                assert descriptors <= warm[3], line["id"]
        finally:
            supervisor.reset()
        assert left_behind() == before


@needs_corpus
def test_nothing_survives_and_nothing_waits(tmp_path):
    """Cases that leave processes behind, alone, with their own bound on time."""
    for line in cases():
        if line.get("post") != "no_survivors" or line["id"] == "exit-12":
            continue
        start = time.monotonic()
        assert disagreements([line], judge(tmp_path, [line])) == []
        # 3 s for interpreter, preflight and sandboxes on a busy machine
        assert time.monotonic() - start < line.get("max_seconds", 6) + 3
        assert wait_for_nothing() == []


FORKS = """
import os, time
def f(x):
    n = 0
    for _ in range(60):
        try:
            if os.fork() == 0:
                time.sleep(100)
                os._exit(0)
        except OSError:
            break
        n += 1
    return n
"""


@pytest.mark.parametrize("setting", SETTINGS)
def test_processes_are_counted_inside(tmp_path, setting):
    """A loop of forks stops at the limit; nothing of it is left."""
    line = {"id": "forks", "code": FORKS, "tests": ["assert 5 < f(0) < 24"]}
    assert judge(tmp_path, [line], "--sandbox", setting)["forks"]["verdict"] == "passed"
    assert wait_for_nothing() == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_same_program_gives_the_same_verdict_each_time(tmp_path, setting):
    code = "def f(x):\n    return {str(i) for i in range(x)}\n"
    lines = [{"id": str(n), "code": code + f"# {n}\n", "tests": ["assert list(f(5)) == [1]"]} for n in range(20)]
    answers = judge(tmp_path, lines, "--sandbox", setting)
    assert len({(a["verdict"], a["message"]) for a in answers.values()}) == 1


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_flood_on_stderr_that_nobody_reads_stops_no_program(tmp_path, setting):
    flood = "import sys; sys.stderr.write('x' * 10**6)\n"
    codes = {"load": flood + "def f(x): return 2 * x\n", "call": "def f(x):\n    " + flood + "    return 2 * x\n"}
    lines = [{"id": name, "code": code, "tests": ["assert f(2) == 4"]} for name, code in codes.items()]
    assert {a["verdict"] for a in judge(tmp_path, lines, "--sandbox", setting).values()} == {"passed"}
