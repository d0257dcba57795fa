"""How a candidate's process ended, and what kind of failure that is. Standard library only."""

import os
import signal

MAX_SECONDS = 1e6  # of CPU time that a message may speak of


class Ended(Exception):
    """The candidate's process is gone, or past its limits: the kind and message of the failure."""

    def __init__(self, kind: str, message: str, cpu: float = 0.0):
        super().__init__(message)
        self.kind, self.message, self.cpu = kind, message, cpu

    def verdict(self) -> dict:
        """The verdict of the test that ended so."""
        return {"kind": self.kind, "message": self.message, "cpu": self.cpu}


class EndedForAll(Ended):
    """The program does not load, for a reason that is the same for every test."""


def forged() -> Ended:
    """What came over the program's channel is nothing that our code inside would send."""
    return Ended("protocol_error", "the program wrote into its own channel")


def past_cpu(limit: float, cpu: float) -> Ended:
    """More CPU time was used than the `limit` in seconds."""
    return Ended("timeout", f"more than {limit:g} s of CPU time", cpu)


def how_it_ended(status: int, cpu: float, limit: float) -> Ended:
    """What a wait status means: past its CPU time, killed by a signal, or ended by itself."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number in (signal.SIGKILL, signal.SIGXCPU) and cpu >= limit:
        return past_cpu(limit, cpu)
    if number:
        name = signal.Signals(number).name if number in signal.valid_signals() else f"signal {number}"
        return Ended("crash", f"the process was ended by {name}", cpu)
    if os.WEXITSTATUS(status) == 70:
        return Ended("protocol_error", "the program wrote into its own channel", cpu)
    return Ended("early_exit", f"the process ended itself with status {os.WEXITSTATUS(status)}", cpu)


def status_and_cpu(answer: dict) -> tuple[int, float] | None:
    """Wait status and CPU seconds from a message about a process that ended; None where they are none."""
    status, cpu = answer.get("ended"), answer.get("cpu")
    if type(status) is not int or type(cpu) not in (int, float) or not 0 <= cpu < MAX_SECONDS:
        return None
    return status & 0xFFFF, float(cpu)
