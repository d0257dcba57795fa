"""The pool and its workers: order, time-outs confirmed alone, workers that die, the end."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from stages.common.config import Execute
from stages.execute import cases, pool, sandbox, stage, worker
from stages.execute.supervisor import Supervisor

SETTINGS = Execute(cpu_seconds=0.5, wall_factor=3)
LOOP = "def f(x):\n    while x == 2: pass\n    return x\n"


def job(code, tests=("assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 3")):
    return stage.job_of(cases.task_of({"id": "a", "code": code, "tests": list(tests)}, 1), code, SETTINGS)


def kinds(result):
    return [t["kind"] for t in result["tests"]]


@pytest.fixture
def two():
    with pool.Pool(stage.sandboxes(SETTINGS, (), 2).starts) as opened:
        yield opened


def test_results_are_in_the_order_of_the_jobs_and_time_outs_are_confirmed(two):
    right = [job(f"def f(x): return x + {n} - {n}\n") for n in range(5)]
    done = []
    results = two.judge([right[0], job(LOOP), *right[1:]], progress=lambda: done.append(1))
    assert [kinds(r) for r in results] == [["passed"] * 3, ["passed", "timeout"], *[["passed"] * 3] * 4]
    assert [r["retried"] for r in results] == [[], [1], *[[]] * 4] and len(done) == 6
    assert [kinds(r) for r in two.judge([job("def f(x): return 1\n")])] == [["passed", "wrong_answer", "wrong_answer"]]


def test_no_jobs(two):
    assert two.judge([]) == []


def children_of(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_worker_that_is_killed_is_replaced_and_its_job_judged_again(two):
    slow = job("import time\ndef f(x):\n    time.sleep(0.7)\n    return x\n")
    assert two.judge([job("def f(x): return x\n")])

    def kill():
        time.sleep(0.3)
        os.kill(two._workers[0].process.pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    before = two._workers[0].process.pid
    (result,) = two.judge([slow])
    killer.join()
    assert kinds(result) == ["passed"] * 3 and two._workers[0].process.pid != before


def test_a_job_that_kills_every_worker_is_an_infra_error(two):
    slow = job("import time\ndef f(x):\n    time.sleep(1)\n    return x\n")
    stop = threading.Event()

    def kill():
        while not stop.wait(0.05):
            for one in two._workers:
                if one is not None and one.job is not None:
                    one.process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    (result,) = two.judge([slow])
    stop.set()
    killer.join()
    assert result["tests"] == [] and "the worker died with status -9" in result["infra_error"]


def test_nothing_is_left_when_a_worker_is_killed():
    """Its sandboxes die with it: they are told by the kernel."""
    sandbox.become_subreaper()
    opened = pool.Pool(stage.sandboxes(SETTINGS, (), 1).starts)
    with opened:
        assert opened.judge([job("def f(x): return x\n")])
        process = opened._workers[0].process
        assert len(sandbox.descendants(process.pid)) >= 2
        process.kill()
        process.wait()
        end = time.monotonic() + 5
        while (left := sandbox.descendants(os.getpid())) and time.monotonic() < end:
            time.sleep(0.02)
        assert left == []
        while children_of(os.getpid()):  # orphans that became ours
            os.wait()


def test_it_ends_when_the_block_does():
    opened = pool.Pool(stage.sandboxes(SETTINGS, (), 1).starts)
    with opened:
        opened.judge([job("def f(x): return x\n")])
        process = opened._workers[0].process
    assert process.returncode == 0
    with pytest.raises(KeyboardInterrupt), pool.Pool(stage.sandboxes(SETTINGS, (), 1).starts) as broken:
        broken.judge([job("def f(x): return x\n")])
        process = broken._workers[0].process
        raise KeyboardInterrupt
    assert process.returncode == -9


def test_a_sandbox_that_always_fails_is_an_infra_error_and_not_the_program_s(capfd):
    sandbox.become_subreaper()
    start = stage.sandboxes(SETTINGS, (), 1).starts[0]
    broken = {n: [x.replace("/usr/local/box", "/nowhere") for x in c] for n, c in start["commands"].items()}
    supervisor = Supervisor({**start, "commands": {n: [*c[:-1], "/nowhere"] for n, c in broken.items()}})
    one = {**job("def f(x): return x\n"), "first": 0}
    one["limits"] = worker.limits(one, start["settings"])
    result = worker.judge(supervisor, one)
    assert (result["tests"], result["stopped"], result["mode"]) == ([], None, "answer_blind")
    assert "zygote: no answer" in result["infra_error"]
    assert capfd.readouterr().err.count("sandbox failed") == worker.RETRIES + 1
    assert sandbox.descendants(os.getpid()) == []


def test_limits():
    got = worker.limits(
        {"memory_mb": 100, "cpu_seconds": 1.5}, Execute(processes=7, open_files=20, tmp_mb=3).model_dump()
    )
    assert got == {"AS": 100 << 20, "CPU": 5, "NPROC": 7, "FSIZE": 3 << 20, "CORE": 0, "NOFILE": 20}
