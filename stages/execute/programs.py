"""One test of a whole program: real pipes for its input and output, compared outside. Standard library only."""

import contextlib
import os
import select
import time

from stages.execute import ends
from stages.execute.candidate_box import POLL_SECONDS, CandidateBox
from stages.execute.compare import difference, same

MAX_STDERR = 1 << 16


def run(candidate: CandidateBox, test: dict, task: dict) -> dict:
    """The verdict of one test: the program as main, its stdin from ``test["stdin"]``, its stdout compared."""
    expected = (test["stdout"] or "").encode("utf-8", "surrogatepass")
    pipes = [os.pipe() for _ in range(3)]
    (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
    if os.getuid() == 0:  # a pipe can be opened again, as /dev/stdin, by its owner only
        for fd in (in_read, out_write, err_write):
            os.fchown(fd, candidate.uid, candidate.uid)
    sent = candidate.request({"test": True}, [in_read, out_write, err_write])
    for fd in (in_read, out_write, err_write):
        os.close(fd)
    try:
        if not sent:
            candidate.answer(time.monotonic())
        stdin = (test["stdin"] or "").encode("utf-8", "surrogatepass")
        cap = max(candidate.budget, 2 * len(expected))
        status, cpu, out, err = _talk(candidate, stdin, cap, in_write, out_read, err_read)
    finally:
        for fd in (in_write, out_read, err_read):
            with contextlib.suppress(OSError):
                os.close(fd)
    ended = _failure(candidate, status, cpu, bytes(err).decode("utf-8", "backslashreplace").strip())
    return {**(ended or _compared(bytes(out), expected, task)), "cpu": cpu}


def _talk(candidate: CandidateBox, stdin: bytes, cap: int, in_write: int, out_read: int, err_read: int):
    """Feed and drain the pipes until the program ended; (wait status, CPU seconds, at most `cap` of stdout, stderr)."""
    control = candidate.socket.fileno()
    for fd in (in_write, out_read, err_read):
        os.set_blocking(fd, False)
    buffers = {out_read: bytearray(), err_read: bytearray()}
    reading, sent, deadline = {control, out_read, err_read}, 0, time.monotonic() + candidate.wall
    writing = True
    while True:
        if writing and sent == len(stdin):
            os.close(in_write)
            writing = False
        left = deadline - time.monotonic()
        if left <= 0:
            raise candidate.too_long()
        ready, writable, _ = select.select(reading, [in_write] if writing else [], [], min(left, POLL_SECONDS))
        if not ready and not writable:
            candidate.check_usage()
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
        _check_output(buffers[out_read], cap)
        if control in ready:
            known = ends.status_and_cpu(candidate.answer(deadline))
            if known is None:
                raise ends.forged()
            for fd in (out_read, err_read):  # what is in the pipes now; an orphan may hold them open
                while fd in reading and select.select([fd], [], [], 0)[0]:
                    if not _drain(fd, buffers[fd], cap if fd == out_read else MAX_STDERR):
                        break
                    _check_output(buffers[out_read], cap)
            if writing:
                os.close(in_write)
            return *known, buffers[out_read], buffers[err_read]


def _check_output(out: bytearray, cap: int) -> None:
    if len(out) > cap:
        raise ends.Ended("output_limit", f"more than {cap >> 10} KB of output")


def _drain(fd: int, buffer: bytearray, keep: int) -> bool:
    """Read once into `buffer`, which grows to just over `keep`; False at the end."""
    try:
        chunk = os.read(fd, 1 << 18)
    except BlockingIOError:
        return True
    buffer += chunk[: max(0, keep + 1 - len(buffer))]
    return bool(chunk)


def _failure(candidate: CandidateBox, status: int, cpu: float, err: str) -> dict | None:
    """Kind and message of a program that ran too long or did not end with status 0."""
    if cpu > candidate.cpu_seconds:
        return ends.past_cpu(candidate.cpu_seconds, cpu).verdict()
    if os.WIFSIGNALED(status):
        return candidate.end(status, cpu).verdict()
    if not os.WEXITSTATUS(status):
        return None
    if err.startswith("\x00syntax_error"):
        return {"kind": "syntax_error", "message": err.partition("\n")[2][:4000], "load": True}
    kind = "memory_limit" if err.startswith("MemoryError") else "runtime_error"
    return {"kind": kind, "message": err[-4000:] or f"exit status {os.WEXITSTATUS(status)}"}


def _compared(out: bytes, expected: bytes, task: dict) -> dict:
    """The verdict of a program that ended well, from what it printed."""
    if same(out, expected, task["tolerance"], task["exact"]):
        return {"kind": "passed", "message": None}
    shown = [part.decode("utf-8", "backslashreplace") for part in (out, expected)]
    message = None if task["exact"] else difference(out, expected, task["tolerance"])
    return {"kind": "wrong_answer", "message": message, "got": shown[0][:4000], "expected": shown[1][:4000]}
