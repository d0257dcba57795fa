"""Runs one program against its tests: a sandbox S for the program, and D where the tests are evaluated apart from it.

S (candidate_box.py) loads the program and forks for each test; it is replaced whenever a test leaves anything in it.
How a test runs depends on the job's mode: function_tests.py, programs.py, or in the program's own process. What an end
means stands in ends.py. Standard library only.
"""

import time
from pathlib import Path

from stages.execute import ends, function_tests, programs
from stages.execute.candidate_box import CandidateBox
from stages.execute.cgroup import Group
from stages.execute.sandbox import Sandbox, Wire
from stages.execute.tests_box import TestsBox
from stages.execute.zygote import Zygote

IN_PROCESS_KINDS = ("passed", "wrong_answer", "runtime_error", "memory_limit", "missing_entry_point", "early_exit")
IN_PROCESS_KINDS += ("protocol_error",)


class Supervisor:
    """The sandboxes of one worker."""

    def __init__(self, start: dict):
        self.settings = start["settings"]
        self._commands, self._uid, self._packages = start["commands"], start["uid"], start["packages"]
        self._candidate: CandidateBox | None = None
        self._tests = {  # by whether pytest is warm in it, which makes every process forked from it dearer
            pytest: TestsBox(self._commands["tests"], self._uid, self._packages, start["preload"][name])
            for pytest, name in ((True, "tests"), (False, "asserts"))
        }
        self._group = Group(Path(start["cgroup"])) if start["cgroup"] else None
        self._zygotes: dict[str, Zygote] = {}
        if self.settings["sandbox"] == "zygote":
            for name in ("candidate", "tests"):
                command, preload = self._commands[f"{name}_zygote"], start["preload"][name]
                tmp_mb = self.settings["tmp_mb"]
                self._zygotes[name] = Zygote(command, self._uid, self._packages, preload, tmp_mb, self._group)

    def reset(self) -> None:
        """Close every sandbox."""
        self._drop()
        for tests in self._tests.values():
            tests.close()
        for zygote in self._zygotes.values():
            zygote.close()
        if self._group is not None:
            self._group.close()

    def judge(self, job: dict) -> dict:
        """Verdicts of the tests from ``job["first"]`` on, until one runs out of time."""
        tests, results, stopped = job["task"]["tests"], [], None
        self._side: Wire | None = None  # D's process for this job
        try:
            for number in range(job["first"], len(tests)):
                began = time.monotonic()
                try:
                    if self._candidate is None:
                        self._start_candidate(job)
                    verdict = self._test(job, number)
                except ends.Ended as end:
                    self._drop()
                    verdict = end.verdict() | {"load": isinstance(end, ends.EndedForAll)}
                verdict["test"] = number
                verdict["wall"] = time.monotonic() - began
                results.append(verdict)
                if verdict["kind"] == "timeout":
                    stopped = number
                    break
                if verdict.get("load"):  # the program does not even load: it is the same for all tests
                    results += [{**verdict, "test": n} for n in range(number + 1, len(tests))]
                    break
                more = number + 1 < len(tests)
                if more and self._candidate is not None and self._candidate.unclean():
                    self._drop()
        finally:
            self._leave_side()
            self._drop()
        return {"tests": results, "stopped": stopped, "mode": job["mode"]}

    def _start_candidate(self, job: dict) -> None:
        inside = job["mode"] == "in_process"
        name, program = ("tests", "in_process.py") if inside else ("candidate", "candidate.py")
        if self._group is not None:  # the zygotes are in it too
            self._group.limit((job["memory_mb"] << 20) * 5 // 4 + (128 << 20), self.settings["processes"] + 16)
        zygote = self._zygotes.get(name)
        box = zygote.open(program) if zygote else Sandbox(self._commands[name], program, self._uid, group=self._group)
        self._candidate = CandidateBox(box, job, self.settings, self._uid)
        self._candidate.load(self._packages)

    def _drop(self) -> None:
        if self._candidate is not None:
            self._candidate.close()
            self._candidate = None

    def _leave_side(self) -> None:
        if self._side is not None:
            self._side.sock.close()
            self._side = None

    def _test(self, job: dict, number: int) -> dict:
        one = job["task"]["tests"][number]
        if job["mode"] == "stdio":
            return programs.run(self._candidate, one, job["task"])
        if job["mode"] == "in_process":
            return _in_process(self._candidate, one)
        tests = self._tests[job["task"]["kind"] == "pytest"]
        if self._side is None:
            self._side = tests.child(self._task(job))
        verdict = function_tests.run(self._candidate, self._side, number)
        if verdict.pop("candidate_lost", False):
            self._drop()
        if verdict.pop("side_lost", False):
            self._leave_side()
            tests.close()
        return verdict

    def _task(self, job: dict) -> dict:
        """What D is told: the task, and limits that end it should it hang for all of the job's time."""
        wall = job["cpu_seconds"] * self.settings["wall_factor"] * len(job["task"]["tests"]) + 10
        limits = {"AS": 2 << 30, "CPU": int(wall), "CORE": 0, "FSIZE": self.settings["tmp_mb"] << 20}
        return {**job["task"], "budget": self.settings["output_kb"] << 10, "limits": limits}


def _in_process(candidate: CandidateBox, test: str) -> dict:
    """Run one test in the candidate's own process; its verdict is what that sandbox says."""
    candidate.request({"test": test})
    answer = candidate.answer(time.monotonic() + candidate.wall)
    known = ends.status_and_cpu(answer)
    if known is None:
        raise ends.forged()
    status, cpu = known
    if answer.get("kind") not in IN_PROCESS_KINDS:
        raise candidate.end(status, cpu)
    if cpu > candidate.cpu_seconds:
        raise ends.past_cpu(candidate.cpu_seconds, cpu)
    texts = {name: answer.get(name) for name in ("message", "got", "expected", "assert")}
    return {"kind": answer["kind"], "cpu": cpu} | {n: t if isinstance(t, str) else None for n, t in texts.items()}
