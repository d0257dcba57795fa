"""One running sandbox: started by a worker, spoken to over a socket, and nothing of it left after :meth:`close`.

Standard library only, like everything in a worker. Not covered: what runs inside (inside/), the command line
(bwrap.py).
"""

import contextlib
import ctypes
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence

from stages.execute import seccomp
from stages.execute.cgroup import Group

BOX = "/usr/local/box"  # where our own files stand inside; runtime.py binds them there
MAX_MESSAGE = 1 << 20  # bytes of one message from inside
_LENGTH = struct.Struct(">I")
_MAX_FILE = 1 << 20  # bytes that are read of a file of /proc
# Memory that forks share, writable or not: mprotect may make it so. Not files of the system, which is read-only.
_SHARED_MAP = re.compile(rb"^\S+ ...s (?:\S+ ){3}(?! */usr/)", re.MULTILINE)


def become_subreaper() -> None:
    """Have orphans of sandboxes re-parented to this process, which reaps them, and not to the machine's process 1."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(pr_set_child_subreaper, 1, 0, 0, 0)


class SandboxFailed(Exception):
    """The sandbox did not work, whatever the program; the text says how."""


class Wire:
    """Messages (a length and JSON) over a socket, with deadlines. What comes from inside is data, never trusted."""

    def __init__(self, sock: socket.socket):
        self.sock = sock
        self._buffer = bytearray()

    def send(self, message: dict, fds: Sequence[int] = ()) -> bool:
        """Whether the message could be sent."""
        data = json.dumps(message).encode()
        data = _LENGTH.pack(len(data)) + data
        try:
            sent = socket.send_fds(self.sock, [data], fds) if fds else 0
            self.sock.sendall(data[sent:])
        except OSError:
            return False
        return True

    def feed(self) -> bool:
        """Read what is there; False at the end."""
        try:
            chunk = self.sock.recv(1 << 16)
        except OSError:
            chunk = b""
        self._buffer += chunk
        return bool(chunk)

    def message(self) -> dict | None:
        """The next whole message read so far, or None. Raises ValueError for bytes that are no message."""
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_MESSAGE:
            raise ValueError("a message that is too long")
        if len(self._buffer) < _LENGTH.size + length:
            return None
        try:
            message = json.loads(bytes(self._buffer[_LENGTH.size : _LENGTH.size + length]))
        except RecursionError:
            raise ValueError("a message that is nested too deep") from None
        del self._buffer[: _LENGTH.size + length]
        if not isinstance(message, dict):
            raise ValueError("a message of a wrong type")
        return message

    def receive(self, deadline: float) -> dict | None:
        """The next message; None at the end of the stream. Raises TimeoutError at `deadline` (time.monotonic)."""
        while (message := self.message()) is None:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise TimeoutError
            if not self.feed():
                return None
        return message


def errors_pipe() -> tuple[int, int]:
    """A pipe for what is written to stderr inside; reading it does not wait."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    return read, write


class Box:
    """What every sandbox has: a wire, the pipe of its errors, and the host's pid of its process 1 (0: none)."""

    def __init__(self, wire: Wire, errors: int, group: Group | None = None):
        self.wire, self._errors, self.init = wire, errors, 0
        self._group = group
        self._killed_before = group.killed_for_memory() if group else 0
        self.cpu = 0.0  # seconds that everything inside used, known after close
        self.status: int | None = None  # exit status, known after close: 128 + signal, or the program's

    def errors(self) -> str:
        """What was written to stderr before a program was loaded, at most 2000 characters."""
        try:
            return os.read(self._errors, 2000).decode("utf-8", "backslashreplace").strip()
        except (BlockingIOError, OSError):
            return ""

    def killed_for_memory(self) -> bool:
        """Whether the kernel killed something inside because its group's memory was used up."""
        return self._group is not None and self._group.killed_for_memory() > self._killed_before

    def unclean(self) -> bool:
        """Whether a test left a process or a file behind, so that the next one needs a new sandbox."""
        if len(descendants(self.init)) > 1:
            return True
        root = f"/proc/{self.init}/root"
        try:
            return any(os.scandir(f"{root}/tmp")) or any(os.scandir(f"{root}/dev/shm"))
        except OSError:
            return True

    def holds_what_forks_share(self) -> bool:
        """Whether the loaded program has threads, which a fork leaves behind, or what is one thing for all forks.

        Such things are processes, open files (pipes, sockets, deleted files) and shared memory: tests that are forked
        from the program would know of each other through them.
        """
        inside = descendants(self.init)
        if len(inside) != 1:
            return True
        proc = f"/proc/{inside[0]}"
        try:
            if len(os.listdir(f"{proc}/task")) != 1:
                return True
            opened = [os.readlink(f"{proc}/fd/{fd}") for fd in os.listdir(f"{proc}/fd")]
        except OSError:
            return True
        opened = [name for name in opened if name != "/dev/null"]  # stdin, stdout, stderr; and our own wire
        maps = _read(f"{proc}/maps")
        return (
            len(opened) != 1
            or not opened[0].startswith("socket:")
            or len(maps) >= _MAX_FILE  # not seen whole
            or _SHARED_MAP.search(maps) is not None
        )

    def usage(self) -> tuple[int, float]:
        """Resident bytes of everything inside, and the most CPU seconds that one process has used so far."""
        page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
        memory, cpu = 0, 0.0
        for pid in descendants(self.init):
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
            if not fields:
                continue
            memory += int(fields[21]) * page
            cpu = max(cpu, (int(fields[11]) + int(fields[12])) / tick)
        return memory, cpu


class Sandbox(Box):
    """A bwrap with one of our programs inside; `wire` speaks to it. `namespaces`: it may make more."""

    def __init__(
        self,
        command: Sequence[str],
        program: str,
        uid: int,
        namespaces: bool = False,
        group: Group | None = None,
    ):
        control, inside = socket.socketpair()
        errors_read, errors_write = errors_pipe()
        super().__init__(Wire(control), errors_read, group)
        info_read, info_write = os.pipe()
        filter_file = _filter_file(namespaces)
        passed = [info_write, inside.fileno()]
        flags = ["--info-fd", str(info_write)]
        if filter_file is not None:
            passed.append(filter_file.fileno())
            flags += ["--seccomp", str(filter_file.fileno())]
        cut = command.index("--")
        whole = [*command[:cut], *flags, *command[cut:], f"{BOX}/{program}", str(inside.fileno())]
        drop = {"user": uid, "group": uid, "extra_groups": []} if os.getuid() != uid else {}
        try:
            self.process = subprocess.Popen(
                whole,
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors_write,
                pass_fds=passed,
                umask=0o022,
                **drop,
            )
        finally:
            inside.close()
            os.close(info_write)
            os.close(errors_write)
            if filter_file is not None:
                filter_file.close()
        try:
            with os.fdopen(info_read, "rb") as info:
                self.init = int(json.loads(info.read() or b"{}").get("child-pid", 0))
        except ValueError:
            self.init = 0
        if group is not None and self.init:
            # whoever was started before the move is moved too: our program inside does nothing until it is spoken to
            group.adopt(self.init)
            group.adopt(*descendants(self.init))

    def close(self, grace: float = 0.0) -> None:
        """Kill everything inside and reap it; returns when nothing is left. `grace`: seconds to end by itself first."""
        end = time.monotonic() + grace
        while grace and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.002)
        if self.init:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.init, signal.SIGKILL)
        elif self.process.poll() is None:
            self.process.kill()
        self.wire.sock.close()  # after the kill, or our program inside would end by itself first
        self.status = self.process.wait()
        if self.init:
            with contextlib.suppress(ChildProcessError):
                self.cpu = sum(os.wait4(self.init, 0)[2][:2])  # re-parented to us when bwrap ended
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1
        self.init = 0


def _filter_file(namespaces: bool):
    program = seccomp.program(namespaces=namespaces)
    if program is None:
        return None
    file = tempfile.TemporaryFile()  # noqa: SIM115  the caller closes it
    file.write(program)
    file.seek(0)
    return file


def descendants(pid: int) -> list[int]:
    """Live processes below `pid`, zombies left out."""
    found, queue = [], [pid]
    while queue:
        one = queue.pop()
        for child in map(int, _read(f"/proc/{one}/task/{one}/children").split()):
            if stat := _read(f"/proc/{child}/stat"):
                queue.append(child)
                if stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X"):
                    found.append(child)
    return found


def _read(path: str) -> bytes:
    """A file of /proc, empty where its process is gone. Between any two tests, so without the layers of `open`."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        data = part = os.read(fd, 1 << 16)
        while part and len(data) < _MAX_FILE:  # a piece may be short, whatever follows it
            part = os.read(fd, 1 << 16)
            data += part
        return data
    except OSError:
        return b""
    finally:
        os.close(fd)
