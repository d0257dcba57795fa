"""Runs one program against its tests: two sandboxes, deadlines, and the kind of each failure.

The candidate's sandbox S loads the program and forks for each test; the tests' sandbox D evaluates the test and calls S
over a socket pair that only these two hold. D's word is the verdict. S is replaced whenever a test leaves anything in
it; D lives as long as the worker. Standard library only.
"""

import contextlib
import os
import select
import signal
import socket
import time

from stages.execute.compare import same
from stages.execute.sandbox import Sandbox, SandboxFailed, Wire

START_SECONDS = 60  # for a sandbox to come up on a machine that is busy
END_SECONDS = 1.0  # for a process to end after its channel closed
POLL_SECONDS = 0.1  # between looks at memory
MAX_STDERR = 1 << 16
IN_PROCESS_KINDS = ("passed", "wrong_answer", "runtime_error", "memory_limit", "missing_entry_point", "early_exit")
IN_PROCESS_KINDS += ("protocol_error",)


class Ended(Exception):
    """The candidate's process is gone, or past its limits: the kind and message of the failure."""

    def __init__(self, kind: str, message: str, cpu: float = 0.0):
        super().__init__(message)
        self.kind, self.message, self.cpu = kind, message, cpu


def how_it_ended(status: int, cpu: float, limit: float) -> Ended:
    """What a wait status means: past its CPU time, killed by a signal, or ended by itself."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in (signal.SIGKILL, signal.SIGXCPU) and cpu >= limit:
        return Ended("timeout", f"more than {limit:g} s of CPU time", cpu)
    if number:
        name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
        return Ended("crash", f"the process was ended by {name}", cpu)
    if os.WEXITSTATUS(status) == 70:
        return Ended("protocol_error", "the program wrote into its own channel", cpu)
    return Ended("early_exit", f"the process ended itself with status {os.WEXITSTATUS(status)}", cpu)


class Supervisor:
    """The sandboxes of one worker."""

    def __init__(self, start: dict):
        self.settings = start["settings"]
        self._command, self._tests_command = start["command"], start["tests_command"]
        self._uid, self._packages = start["uid"], start["packages"]
        self._preload = start["preload"]
        self._candidate: Sandbox | None = None
        self._tests: Sandbox | None = None

    def reset(self) -> None:
        """Close every sandbox."""
        self._drop()
        if self._tests is not None:
            self._tests.close()
            self._tests = None

    def judge(self, job: dict) -> dict:
        """Verdicts of the tests from ``job["first"]`` on, until one runs out of time."""
        tests, results, stopped = job["task"]["tests"], [], None
        side = None
        try:
            for number in range(job["first"], len(tests)):
                began = time.monotonic()
                try:
                    if self._candidate is None:
                        self._start_candidate(job)
                    if job["mode"] == "answer_blind":
                        side = side or self._tests_side(job)
                        verdict = self._function_test(job, number, side)
                        if verdict.pop("side_lost", False):
                            side = None
                    elif job["mode"] == "stdio":
                        verdict = self._program_test(job, tests[number])
                    else:
                        verdict = self._in_process_test(job, tests[number])
                except Ended as end:
                    self._drop()
                    verdict = {"kind": end.kind, "message": end.message, "cpu": end.cpu}
                    verdict["load"] = isinstance(end, EndedForAll)
                verdict["test"] = number
                verdict["wall"] = time.monotonic() - began
                results.append(verdict)
                if verdict["kind"] == "timeout":
                    stopped = number
                    break
                if verdict.get("load"):  # the program does not even load: it is the same for all tests
                    results += [{**verdict, "test": n} for n in range(number + 1, len(tests))]
                    break
                if self._candidate is not None and self._candidate.unclean():
                    self._drop()
        finally:
            if side is not None:
                side.sock.close()
            self._drop()
        return {"tests": results, "stopped": stopped, "mode": job["mode"]}

    # ---- the candidate's side

    def _drop(self) -> None:
        if self._candidate is not None:
            self._candidate.close()
            self._candidate = None

    def _start_candidate(self, job: dict) -> None:
        """A sandbox with the program loaded. Raises Ended with the reason where it does not load."""
        task = job["task"]
        program = "in_process.py" if job["mode"] == "in_process" else "candidate.py"
        command = self._tests_command if job["mode"] == "in_process" else self._command
        box = self._candidate = Sandbox(command, program, self._uid)
        start = {
            "mode": job["mode"],
            "limits": job["limits"],
            "packages": self._packages,
            "code": job["code"],
            "prelude": task["prelude"],
            "entry_point": task["entry_point"],
            "kind": task["kind"],
            "setup": task["setup"] if job["mode"] == "in_process" else None,
            "budget": self.settings["output_kb"] << 10,
            "inplace": task["inplace"],
        }
        box.wire.send(start)
        try:
            ready = box.wire.receive(time.monotonic() + START_SECONDS)
        except (TimeoutError, ValueError) as error:
            raise SandboxFailed(f"no answer from the sandbox {error}: {box.errors()}") from None
        if ready != {"ready": True}:
            raise SandboxFailed(f"the sandbox did not start: {box.errors() or ready}")
        if job["mode"] == "stdio":
            return
        try:
            loaded = self._answer(job, time.monotonic() + self._wall(job))
        except Ended as end:
            raise end if end.kind == "timeout" else EndedForAll(end.kind, end.message, end.cpu) from None
        if loaded.get("loaded") is True:
            return
        if isinstance(loaded.get("failed"), str) and isinstance(loaded.get("message"), str):
            raise EndedForAll(loaded["failed"], loaded["message"])
        raise EndedForAll("protocol_error", "the program wrote into its own channel")

    def _wall(self, job: dict) -> float:
        return job["cpu_seconds"] * self.settings["wall_factor"]

    def _answer(self, job: dict, deadline: float) -> dict:
        """The next message of the candidate's sandbox. Raises Ended at the deadline or when it is gone."""
        box = self._candidate
        while True:
            try:
                message = box.wire.receive(min(deadline, time.monotonic() + POLL_SECONDS))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise Ended("timeout", f"more than {self._wall(job):g} s") from None
                self._check_usage(job)
                continue
            except ValueError:
                raise Ended("protocol_error", "the program wrote into its own channel") from None
            if message is None:
                box.close(grace=END_SECONDS)
                status = box.status or 0
                wait = (status - 128) & 0x7F if status > 128 else status << 8
                raise how_it_ended(wait, box.cpu, job["cpu_seconds"])
            return message

    def _check_usage(self, job: dict) -> None:
        memory, cpu = self._candidate.usage()
        if cpu > job["cpu_seconds"]:
            raise Ended("timeout", f"more than {job['cpu_seconds']:g} s of CPU time", cpu)
        if memory > (job["memory_mb"] << 20) * 1.25:
            raise Ended("memory_limit", f"more than {job['memory_mb']} MB in all processes together")

    # ---- the tests' side

    def _tests_side(self, job: dict) -> Wire:
        """A child of the tests' sandbox that knows this job's task."""
        if self._tests is None:
            box = self._tests = Sandbox(self._tests_command, "tests_side.py", self._uid)
            box.wire.send({"packages": self._packages, "preload": self._preload})
            try:
                ready = box.wire.receive(time.monotonic() + START_SECONDS)
            except (TimeoutError, ValueError) as error:
                raise SandboxFailed(f"no answer from the tests' sandbox {error}: {box.errors()}") from None
            if not ready or "ready" not in ready:
                raise SandboxFailed(f"the tests' sandbox did not start: {box.errors() or ready}")
        ours, theirs = socket.socketpair()
        sent = self._tests.wire.send({"fork": True}, [theirs.fileno()])
        theirs.close()
        wire = Wire(ours)
        task = {**job["task"], "budget": self.settings["output_kb"] << 10}
        wall = self._wall(job) * len(task["tests"]) + 10
        task["limits"] = {"AS": 2 << 30, "CPU": int(wall), "CORE": 0, "FSIZE": self.settings["tmp_mb"] << 20}
        if not sent or not wire.send(task):
            raise SandboxFailed("the tests' sandbox is gone")
        return wire

    def _function_test(self, job: dict, number: int, side: Wire) -> dict:
        """Evaluate one test on both sides."""
        box = self._candidate
        ours, theirs = socket.socketpair()
        sent = box.wire.send({"test": True}, [ours.fileno()]) and side.send({"test": number}, [theirs.fileno()])
        ours.close()
        theirs.close()
        if not sent:
            self._answer(job, time.monotonic())  # says how it ended
        deadline = time.monotonic() + self._wall(job)
        verdict, failure = None, None
        while verdict is None and failure is None:
            try:
                verdict = side.receive(min(deadline, time.monotonic() + POLL_SECONDS))
                if verdict is None:
                    raise SandboxFailed("the tests' process is gone")
            except TimeoutError:
                if time.monotonic() >= deadline:
                    failure = Ended("timeout", f"more than {self._wall(job):g} s")
                else:
                    try:
                        self._check_usage(job)
                    except Ended as end:
                        failure = end
            except ValueError as error:
                raise SandboxFailed(f"the tests' process sent {error}") from None
        if failure is not None:
            self._drop()
            return self._after(side, failure)
        return self._with_end(job, verdict)

    def _after(self, side: Wire, failure: Ended) -> dict:
        """The candidate was killed; the tests' process must notice, else it is the one that hangs."""
        verdict = {"kind": failure.kind, "message": failure.message, "cpu": failure.cpu}
        try:
            if side.receive(time.monotonic() + END_SECONDS) is not None:
                return verdict
        except (TimeoutError, ValueError):
            pass
        side.sock.close()
        self._tests.close()
        self._tests = None
        return verdict | {"side_lost": True}

    def _with_end(self, job: dict, verdict: dict) -> dict:
        """The verdict, with how the candidate's process ended: that is the failure where it ended too early."""
        patience = END_SECONDS if verdict["kind"] != "lost" else 5 * END_SECONDS
        try:
            end = self._answer(job, time.monotonic() + patience)
        except Ended as gone:
            self._drop()
            if verdict["kind"] != "lost":
                return verdict | {"cpu": gone.cpu}
            if gone.kind == "timeout":  # a process that closed its channel and lives on
                gone = Ended("early_exit", "the process closed its channel")
            return verdict | {"kind": gone.kind, "message": gone.message, "cpu": gone.cpu}
        status, cpu = end.get("ended"), end.get("cpu")
        if type(status) is not int or type(cpu) not in (int, float):
            self._drop()
            status, cpu = 70 << 8, 0.0
        if verdict["kind"] == "lost":
            gone = how_it_ended(status & 0xFFFF, cpu, job["cpu_seconds"])
            return verdict | {"kind": gone.kind, "message": gone.message, "cpu": cpu}
        if cpu > job["cpu_seconds"]:
            return {"kind": "timeout", "message": f"more than {job['cpu_seconds']:g} s of CPU time", "cpu": cpu}
        return verdict | {"cpu": cpu}

    # ---- whole programs

    def _program_test(self, job: dict, test: dict) -> dict:
        """Run the program as main with the test's input; compare what it prints."""
        box = self._candidate
        pipes = [os.pipe() for _ in range(3)]
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
        sent = box.wire.send({"test": True}, [in_read, out_write, err_write])
        for fd in (in_read, out_write, err_write):
            os.close(fd)
        try:
            if not sent:
                self._answer(job, time.monotonic())
            cap = self.settings["output_kb"] << 10
            stdin = (test["stdin"] or "").encode("utf-8", "surrogatepass")
            status, cpu, out, err = self._talk(job, stdin, in_write, out_read, err_read, cap)
        finally:
            for fd in (in_write, out_read, err_read):
                with contextlib.suppress(OSError):
                    os.close(fd)
        expected = (test["stdout"] or "").encode("utf-8", "surrogatepass")
        return {**_judged(job, status, cpu, bytes(out), bytes(err), expected), "cpu": cpu}

    def _talk(self, job, stdin, in_write, out_read, err_read, cap):
        """Feed and drain the pipes until the program ended; (wait status, CPU seconds, stdout, stderr)."""
        box = self._candidate
        control = box.wire.sock.fileno()
        for fd in (in_write, out_read, err_read):
            os.set_blocking(fd, False)
        buffers = {out_read: bytearray(), err_read: bytearray()}
        reading, sent, deadline = {control, out_read, err_read}, 0, time.monotonic() + self._wall(job)
        writing = True
        while True:
            if writing and sent == len(stdin):
                os.close(in_write)
                writing = False
            left = deadline - time.monotonic()
            if left <= 0:
                raise Ended("timeout", f"more than {self._wall(job):g} s")
            ready, writable, _ = select.select(reading, [in_write] if writing else [], [], min(left, POLL_SECONDS))
            if not ready and not writable:
                self._check_usage(job)
            if writable:
                try:
                    sent += os.write(in_write, stdin[sent : sent + 65536])
                except BlockingIOError:
                    pass
                except BrokenPipeError:  # the program does not read on
                    sent = len(stdin)
            for fd in ready:
                if fd != control and not _drain(fd, buffers[fd], cap if fd == out_read else MAX_STDERR):
                    reading.discard(fd)
            if len(buffers[out_read]) > cap:
                raise Ended("output_limit", f"more than {cap >> 10} KB of output")
            if control in ready:
                end = self._answer(job, deadline)
                status, cpu = end.get("ended"), end.get("cpu")
                if type(status) is not int or type(cpu) not in (int, float):
                    raise Ended("protocol_error", "the program wrote into its own channel")
                for fd in (out_read, err_read):  # what is in the pipes now; an orphan may hold them open
                    while fd in reading and select.select([fd], [], [], 0)[0]:
                        if not _drain(fd, buffers[fd], cap if fd == out_read else MAX_STDERR):
                            break
                        if len(buffers[out_read]) > cap:
                            raise Ended("output_limit", f"more than {cap >> 10} KB of output")
                if writing:
                    os.close(in_write)
                return status & 0xFFFF, cpu, buffers[out_read], buffers[err_read]

    def _in_process_test(self, job: dict, test: str) -> dict:
        """Run one test in the candidate's own process; its verdict is what that sandbox says."""
        self._candidate.wire.send({"test": test})
        answer = self._answer(job, time.monotonic() + self._wall(job))
        kind, status, cpu = (answer.get(k) for k in ("kind", "ended", "cpu"))
        if type(status) is not int or type(cpu) not in (int, float):
            raise Ended("protocol_error", "the program wrote into its own channel")
        if kind not in IN_PROCESS_KINDS:
            raise how_it_ended(status & 0xFFFF, cpu, job["cpu_seconds"])
        if cpu > job["cpu_seconds"]:
            raise Ended("timeout", f"more than {job['cpu_seconds']:g} s of CPU time", cpu)
        texts = {name: answer.get(name) for name in ("message", "got", "expected", "assert")}
        return {"kind": kind, "cpu": cpu, **{n: t if isinstance(t, str) else None for n, t in texts.items()}}


class EndedForAll(Ended):
    """The program does not load, for a reason that is the same for every test."""


def _drain(fd: int, buffer: bytearray, keep: int) -> bool:
    """Read once into `buffer`, which grows to just over `keep`; False at the end."""
    try:
        chunk = os.read(fd, 1 << 18)
    except BlockingIOError:
        return True
    buffer += chunk[: max(0, keep + 1 - len(buffer))]
    return bool(chunk)


def _judged(job: dict, status: int, cpu: float, out: bytes, err: bytes, expected: bytes) -> dict:
    """Kind, message, got and expected of a program that ended by itself."""
    text = err.decode("utf-8", "backslashreplace").strip()
    if cpu > job["cpu_seconds"]:
        return {"kind": "timeout", "message": f"more than {job['cpu_seconds']:g} s of CPU time"}
    if os.WIFSIGNALED(status):
        end = how_it_ended(status, cpu, job["cpu_seconds"])
        return {"kind": end.kind, "message": end.message}
    if os.WEXITSTATUS(status):
        if text.startswith("\x00syntax_error"):
            return {"kind": "syntax_error", "message": text.partition("\n")[2][:4000], "load": True}
        kind = "memory_limit" if text.startswith("MemoryError") else "runtime_error"
        return {"kind": kind, "message": text[-4000:] or f"exit status {os.WEXITSTATUS(status)}"}
    if same(out, expected, job["task"]["tolerance"], job["task"]["exact"]):
        return {"kind": "passed", "message": None}
    shown = [part.decode("utf-8", "backslashreplace") for part in (out, expected)]
    return {"kind": "wrong_answer", "message": None, "got": shown[0][:4000], "expected": shown[1][:4000]}
