"""Messages over a wire, whoever sends them; one sandbox from its start to its end."""

import os
import socket
import struct
import threading
import time

import pytest

from stages.common.config import Execute
from stages.execute import sandbox, stage
from stages.execute.sandbox import Sandbox, Wire


@pytest.fixture
def ends():
    ours, theirs = socket.socketpair()
    yield Wire(ours), theirs
    ours.close()
    theirs.close()


def frame(data):
    return struct.pack(">I", len(data)) + data


def test_messages_in_pieces(ends):
    wire, other = ends
    data = frame(b'{"a": 1}') + frame(b'{"b": [1, 2]}')

    def drip():
        for byte in data:
            other.sendall(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    end = time.monotonic() + 5
    assert (wire.receive(end), wire.receive(end)) == ({"a": 1}, {"b": [1, 2]})
    thread.join()
    other.close()
    assert wire.receive(end) is None


@pytest.mark.parametrize(
    "data",
    [frame(b"[1]"), frame(b"{"), frame(b'"\xff"'), struct.pack(">I", sandbox.MAX_MESSAGE + 1), frame(b"[" * 200_000)],
)
def test_bytes_that_are_no_message(ends, data):
    wire, other = ends
    threading.Thread(target=lambda: other.sendall(data)).start()
    with pytest.raises(ValueError):
        wire.receive(time.monotonic() + 5)


def test_deadline_and_a_closed_end(ends):
    wire, other = ends
    other.sendall(b"\0\0")
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        wire.receive(start + 0.1)
    assert 0.05 < time.monotonic() - start < 2
    other.close()
    assert wire.receive(time.monotonic() + 1) is None
    assert [wire.send({"x": "y" * 10**6}) for _ in range(2)][-1] is False


def test_descriptors_travel(ends):
    wire, other = ends
    read, write = os.pipe()
    assert wire.send({"go": True}, [write])
    data, fds, _, _ = socket.recv_fds(other, 100, 2)
    assert data == frame(b'{"go": true}') and len(fds) == 1
    os.write(fds[0], b"x")
    assert os.read(read, 1) == b"x"
    for fd in (read, write, *fds):
        os.close(fd)


@pytest.fixture
def command():
    return stage.sandboxes(Execute(sandbox="bwrap"), (), 1).starts[0]


def test_a_sandbox_ends_with_all_that_it_holds(command):
    sandbox.become_subreaper()
    before = len(os.listdir("/proc/self/fd"))
    box = Sandbox(command["commands"]["candidate"], "candidate.py", command["uid"])
    assert box.init > 0 and len(sandbox.descendants(box.init)) <= 1
    start = {"mode": "stdio", "limits": {}, "packages": [], "code": "", "prelude": None}
    box.wire.send(start)
    assert box.wire.receive(time.monotonic() + 30) == {"ready": True}
    assert not box.unclean()
    memory, cpu = box.usage()
    assert memory > 1 << 20 and cpu >= 0
    inside = sandbox.descendants(box.init)
    box.close()
    assert box.status == 137 and not any(os.path.exists(f"/proc/{pid}") for pid in inside)
    assert len(os.listdir("/proc/self/fd")) == before
    box.close()  # once more does no harm
    assert sandbox.descendants(os.getpid()) == []


def test_it_may_end_by_itself_first(command):
    sandbox.become_subreaper()
    box = Sandbox(command["commands"]["candidate"], "candidate.py", command["uid"])
    box.wire.sock.shutdown(socket.SHUT_WR)  # the end of requests
    box.close(grace=20)
    assert box.status == 0


def test_a_command_that_does_not_work_says_why(command):
    sandbox.become_subreaper()
    broken = [x.replace("/usr/local/box", "/nowhere") for x in command["commands"]["candidate"]]
    box = Sandbox(broken, "candidate.py", command["uid"])
    assert box.wire.receive(time.monotonic() + 30) is None
    assert "can't open file" in box.errors() or "No such file" in box.errors()
    box.close()
