"""The sandbox S of one program: started, loaded, watched, and closed. Standard library only.

Everything that comes out of it is data that the program may have forged; the worst that it can do is to fail.
"""

import time
from collections.abc import Sequence

from stages.execute.ends import Ended, EndedForAll, forged, how_it_ended, past_cpu
from stages.execute.sandbox import Box, SandboxFailed

START_SECONDS = 60  # for a sandbox to come up on a machine that is busy
END_SECONDS = 1.0  # for a process to end after its channel closed
POLL_SECONDS = 0.1  # between looks at memory
# What our code inside says of a program that does not load; the program can write there too, and would say "passed".
LOAD_KINDS = ("syntax_error", "memory_limit", "early_exit", "runtime_error", "missing_entry_point")


def wait_until_ready(box: Box) -> None:
    """Return when our program inside says that it is ready; SandboxFailed when it does not."""
    try:
        ready = box.wire.receive(time.monotonic() + START_SECONDS)
    except (TimeoutError, ValueError) as error:
        raise SandboxFailed(f"no answer from the sandbox {error}: {box.errors()}") from None
    if not ready or "ready" not in ready:
        raise SandboxFailed(f"the sandbox did not start: {box.errors() or ready}")


class CandidateBox:
    """One program of a job in `box`, an open sandbox; `load` first, then a test at a time."""

    def __init__(self, box: Box, job: dict, settings: dict, uid: int):
        self._box, self._job, self.uid = box, job, uid
        self.cpu_seconds: float = job["cpu_seconds"]
        self.wall = job["cpu_seconds"] * settings["wall_factor"]  # seconds of one test
        self.budget: int = settings["output_kb"] << 10  # bytes of output, or of a value that comes back
        self.socket = box.wire.sock
        self.alone = False  # whether one test is all that it is good for, run without a fork

    def load(self, packages: Sequence[str]) -> None:
        """Have the program loaded. Raises EndedForAll with the reason where it does not load."""
        job, task = self._job, self._job["task"]
        start = {
            "mode": job["mode"],
            "limits": job["limits"],
            "packages": packages,
            "code": job["code"],
            "prelude": task["prelude"],
            "entry_point": task["entry_point"],
            "kind": task["kind"],
            "setup": task["setup"] if job["mode"] == "in_process" else None,
            "budget": self.budget,
            "inplace": task["inplace"],
        }
        self._box.wire.send(start)
        wait_until_ready(self._box)
        if job["mode"] == "stdio":
            return
        try:
            loaded = self.answer(time.monotonic() + self.wall)
        except Ended as end:
            raise end if end.kind == "timeout" else EndedForAll(end.kind, end.message, end.cpu) from None
        if loaded.get("loaded") is True:
            self.alone = job["mode"] == "answer_blind" and self._box.holds_what_forks_share()
            return
        if loaded.get("failed") in LOAD_KINDS and isinstance(loaded.get("message"), str):
            raise EndedForAll(loaded["failed"], loaded["message"])
        raise EndedForAll("protocol_error", "the program wrote into its own channel")

    def request(self, message: dict, fds: Sequence[int] = ()) -> bool:
        """Ask for a test; whether it could be asked."""
        return self._box.wire.send(message, fds)

    def answer(self, deadline: float) -> dict:
        """The next message. Raises Ended at the `deadline` (time.monotonic), past a limit, or when it is gone."""
        box = self._box
        while True:
            try:
                message = box.wire.receive(min(deadline, time.monotonic() + POLL_SECONDS))
            except TimeoutError:
                if time.monotonic() >= deadline:
                    raise self.too_long() from None
                self.check_usage()
                continue
            except ValueError:
                raise forged() from None
            if message is None:
                box.close(grace=END_SECONDS)
                status = box.status or 0
                wait = (status - 128) & 0x7F if status > 128 else status << 8
                raise self.end(wait, box.cpu)
            return message

    def end(self, status: int, cpu: float) -> Ended:
        """What the wait status of the program's process means."""
        end = how_it_ended(status, cpu, self.cpu_seconds)
        return self._too_much_memory() if end.kind == "crash" and self._box.killed_for_memory() else end

    def _too_much_memory(self) -> Ended:
        return Ended("memory_limit", f"more than {self._job['memory_mb']} MB in all processes together")

    def too_long(self) -> Ended:
        """The end of a test that is past its wall time."""
        return Ended("timeout", f"more than {self.wall:g} s")

    def check_usage(self) -> None:
        """Raises Ended where the processes inside use more CPU time or memory than they may."""
        memory, cpu = self._box.usage()
        if cpu > self.cpu_seconds:
            raise past_cpu(self.cpu_seconds, cpu)
        if memory > (self._job["memory_mb"] << 20) * 1.25:
            raise self._too_much_memory()

    def unclean(self) -> bool:
        """Whether the next test needs a new sandbox: the one before left a process or a file behind, or may have."""
        return self.alone or self._box.unclean()

    def close(self) -> None:
        """Kill everything inside; nothing is left after it."""
        self._box.close()
