"""Sandboxes out of a warm one: a bwrap with inside/zygote.py, which clones a process into fresh namespaces per program.

Made in a tenth of the time of a bwrap with an interpreter, with the same walls. What the host holds of it is a
descriptor of its process 1, which the kernel gave: killing that one kills everything in there, and nothing else by
mistake. How it ended and what CPU time it took is said by the warm process, which runs none of the program. Standard
library only.
"""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Sequence

from stages.execute import seccomp
from stages.execute.cgroup import Group
from stages.execute.sandbox import Box, Sandbox, SandboxFailed, Wire, errors_pipe

START_SECONDS = 60  # for a sandbox to come up on a machine that is busy
END_SECONDS = 20  # for the kernel to take a killed sandbox apart on a machine that is busy


class Zygote:
    """One warm process; started when it is first needed, and again after it was lost."""

    def __init__(
        self,
        command: Sequence[str],
        uid: int,
        packages: Sequence[str],
        preload: Sequence[str],
        tmp_mb: int,
        group: Group | None = None,
    ):
        self._command, self._uid, self._group = command, uid, group
        filter_steps = seccomp.program() or b""
        self._start = {"packages": packages, "preload": preload, "tmp_mb": tmp_mb, "filter": filter_steps.hex()}
        self._box: Sandbox | None = None

    def open(self, program: str) -> "ZygoteBox":
        """A sandbox with one of our programs inside. Raises SandboxFailed where none can be made."""
        if self._box is None:
            self._box = Sandbox(self._command, "zygote.py", self._uid, True, self._group)
            self._box.wire.send({**self._start, "clone": seccomp.clone_number()})
            self._next("start")
        ours, theirs = socket.socketpair()
        errors_read, errors_write = errors_pipe()
        sent = self._box.wire.send({"program": program}, [theirs.fileno(), errors_write])
        theirs.close()
        os.close(errors_write)
        box = ZygoteBox(self, Wire(ours), errors_read, self._group)
        if not sent:
            box.abandon()
            self.close()
            raise SandboxFailed("the warm process is gone")
        box.take_over()
        return box

    def _next(self, what: str, seconds: float = START_SECONDS) -> dict:
        try:
            message = self._box.wire.receive(time.monotonic() + seconds)
        except (TimeoutError, ValueError) as error:
            message, what = None, f"{what} {error}"
        if message is None:
            text = self._box.errors()
            self.close()
            raise SandboxFailed(f"zygote: no answer ({what}): {text}")
        return message

    def ended(self, seconds: float) -> dict:
        """What the warm process says about the sandbox that just ended: `ended` (wait status) and `cpu` (seconds)."""
        if self._box is None:
            raise SandboxFailed("zygote: lost")
        return self._next("end", seconds)

    def has_ended(self, seconds: float) -> bool:
        """Whether the sandbox ends by itself within so many seconds."""
        return self._box is None or bool(select.select([self._box.wire.sock], [], [], seconds)[0])

    def close(self) -> None:
        """End the warm process and with it every sandbox made from it."""
        if self._box is not None:
            self._box.close()
            self._box = None


class ZygoteBox(Box):
    """One sandbox out of a zygote; as :class:`stages.execute.sandbox.Sandbox`."""

    def __init__(self, zygote: Zygote, wire: Wire, errors: int, group: Group | None):
        super().__init__(wire, errors, group)
        self._zygote = zygote
        self._pidfd = -1

    def take_over(self) -> None:
        """Receive the descriptor of the sandbox's process 1, before any program is in there."""
        sock = self.wire.sock
        if select.select([sock], [], [], START_SECONDS)[0]:
            _, fds, _, _ = socket.recv_fds(sock, 1, 1)
            if fds:
                self._pidfd = fds[0]
                with open(f"/proc/self/fdinfo/{self._pidfd}") as info:
                    self.init = next(int(line.split()[1]) for line in info if line.startswith("Pid:"))
                return
        text = self.errors()
        self.abandon()
        self._zygote.close()
        raise SandboxFailed(text if text.startswith("zygote:") else f"zygote: no sandbox came: {text}")

    def abandon(self) -> None:
        """Let go of what the host holds."""
        self.wire.sock.close()
        for fd in (self._errors, self._pidfd):
            if fd >= 0:
                os.close(fd)
        self._errors = self._pidfd = -1
        self.init = 0

    def close(self, grace: float = 0.0) -> None:
        """Kill everything inside; returns when nothing is left. `grace`: seconds to end by itself first."""
        if self._pidfd < 0:
            return
        if grace:
            self._zygote.has_ended(grace)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        self.abandon()
        end = self._zygote.ended(END_SECONDS)
        self.status = os.waitstatus_to_exitcode(end["ended"]) if os.WIFEXITED(end["ended"]) else 137
        self.cpu = end["cpu"]
