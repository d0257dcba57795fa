"""A worker process: judges one program after another in sandboxes of its own. Small, and standard library only.

    python -m stages.execute.worker    (started by pool.py: a line of JSON with the plan, then one line per job)

A job is one program with the tests of its task. The answer has one entry per test that was run; `stopped` is the
number of a test that ran out of time, to be confirmed alone before it counts.
"""

import json
import math
import os
import signal
import sys

from stages.execute.sandbox import SandboxFailed, become_subreaper
from stages.execute.supervisor import Supervisor

RETRIES = 2  # of a sandbox that failed, before the job is an infra_error


def judge(supervisor: Supervisor, job: dict) -> dict:
    """Judge one job, again if the sandbox failed."""
    for attempt in range(RETRIES + 1):
        try:
            return supervisor.judge(job)
        except SandboxFailed as error:
            supervisor.reset()
            failure = str(error)
            print(f"sandbox failed ({attempt + 1}): {failure}", file=sys.stderr, flush=True)
    return {"infra_error": failure, "tests": [], "stopped": None, "mode": job["mode"]}


def limits(job: dict, settings: dict) -> dict[str, int]:
    """Resource limits of the candidate's processes."""
    return {
        "AS": job["memory_mb"] << 20,
        # counted in clock ticks, which can be far off: a backstop; the supervisor looks at the exact time
        "CPU": 2 * math.ceil(job["cpu_seconds"]) + 1,
        "NPROC": settings["processes"],
        "FSIZE": settings["tmp_mb"] << 20,
        "CORE": 0,
        "NOFILE": settings["open_files"],
    }


def main() -> None:
    """Serve jobs from standard input until it ends."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # die with the stage
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the stage, which ends us
    become_subreaper()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    start = json.loads(sys.stdin.readline())
    supervisor = Supervisor(start)
    for line in sys.stdin:
        job = json.loads(line)
        job["limits"] = limits(job, start["settings"])
        answers.write(json.dumps(judge(supervisor, job)) + "\n")
        answers.flush()
    supervisor.reset()


if __name__ == "__main__":
    main()
