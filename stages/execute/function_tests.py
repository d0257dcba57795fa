"""One test of a function: D evaluates it and calls S over a socket pair that only these two hold.

D's word is the verdict; how the candidate's process ended is added, because a call that got no answer has failed for
that reason. Standard library only.
"""

import socket
import time

from stages.execute import ends
from stages.execute.candidate_box import END_SECONDS, POLL_SECONDS, CandidateBox
from stages.execute.sandbox import SandboxFailed, Wire


def run(candidate: CandidateBox, side: Wire, number: int) -> dict:
    """The verdict of test `number`; ``side_lost`` and ``candidate_lost`` say which process cannot be used again."""
    ours, theirs = socket.socketpair()
    sent = candidate.request({"test": True, "alone": candidate.alone}, [ours.fileno()]) and side.send(
        {"test": number}, [theirs.fileno()]
    )
    ours.close()
    theirs.close()
    if not sent:
        candidate.answer(time.monotonic())  # says how it ended
    deadline = time.monotonic() + candidate.wall
    while True:
        try:
            verdict = side.receive(min(deadline, time.monotonic() + POLL_SECONDS))
        except TimeoutError:
            try:
                if time.monotonic() >= deadline:
                    raise candidate.too_long()
                candidate.check_usage()
            except ends.Ended as end:
                candidate.close()
                return end.verdict() | {"candidate_lost": True, "side_lost": not _notices(side)}
        except ValueError as error:
            raise SandboxFailed(f"the tests' process sent {error}") from None
        else:
            if verdict is None:
                raise SandboxFailed("the tests' process is gone")
            return _with_end(candidate, verdict)


def _notices(side: Wire) -> bool:
    """Whether the tests' process notices that the candidate was killed; else it is the one that hangs."""
    try:
        return side.receive(time.monotonic() + END_SECONDS) is not None
    except (TimeoutError, ValueError):
        return False


def _with_end(candidate: CandidateBox, verdict: dict) -> dict:
    """The verdict, with how the candidate's process ended: that is the failure where it ended too early."""
    lost = verdict["kind"] == "lost"
    try:
        end = candidate.answer(time.monotonic() + (5 * END_SECONDS if lost else END_SECONDS))
    except ends.Ended as gone:
        if not lost:
            return verdict | {"cpu": gone.cpu, "candidate_lost": True}
        if gone.kind == "timeout":  # a process that closed its channel and lives on
            gone = ends.Ended("early_exit", "the process closed its channel")
        return verdict | gone.verdict() | {"candidate_lost": True}
    known = ends.status_and_cpu(end)
    status, cpu = known or (70 << 8, 0.0)
    if lost:
        verdict |= candidate.end(status, cpu).verdict()
    elif cpu > candidate.cpu_seconds:
        verdict = ends.past_cpu(candidate.cpu_seconds, cpu).verdict()
    return verdict | {"cpu": cpu, "candidate_lost": known is None}
