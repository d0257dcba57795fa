"""Mixed executions in a row, and what the supervisors hold while they go on: descriptors, children, zombies, memory.

    python -m benchmarks.soak [--executions 20000] [--minutes M] [--sandbox zygote|bwrap] [--workers N]

Right and wrong programs, exceptions, crashes, early exits, short time-outs, bombs of processes and threads, memory,
floods of output, files and processes left behind, as functions and as whole programs, in a fixed random order. After
each piece, with nothing running, a line of the table is printed. Exits with 1 when anything has grown from the first
quarter to the last, or when a verdict is not the one that the program always gets. An execution is one test.
"""

import argparse
import os
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path

from stages.common.config import Execute
from stages.execute import cases, stage
from stages.execute.pool import Pool

LEFT = "import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(99)\nopen('/tmp/left', 'w').write('x')\n"
BOMB = "import os\ndef f(x):\n    while True:\n        try: os.fork()\n        except OSError: return x\n"
# weight, kind that each test gets, program; the tests ask for 2 * x
FUNCTIONS = [
    (30, "passed", "def f(x): return 2 * x\n"),
    (20, "wrong_answer", "def f(x): return 2 * x + 1\n"),
    (10, "runtime_error", "def f(x): return [][x]\n"),
    (5, "syntax_error", "def f(x) return x\n"),
    (5, "missing_entry_point", "def g(x): return x\n"),
    (5, "crash", "import os\ndef f(x): os.abort()\n"),
    (5, "early_exit", "import os\ndef f(x): os._exit(0)\n"),
    (4, "memory_limit", "def f(x): return len(bytearray(1 << 40))\n"),
    (4, "passed", "import threading\ndef f(x):\n    try:\n        for _ in range(99): threading.Thread("
     "target=threading.Event().wait, daemon=True).start()\n    except RuntimeError: pass\n    return 2 * x\n"),
    (3, "passed", f"{LEFT}def f(x): return 2 * x\n"),
    (3, "passed", "import sys\ndef f(x):\n    sys.stderr.write('x' * 10**6)\n    return 2 * x\n"),
    (1, "timeout", "def f(x):\n    while True: pass\n"),
    (1, None, BOMB),
]  # fmt: skip
PROGRAMS = [
    (6, "passed", "print(2 * int(input()))\n"),
    (4, "wrong_answer", "print(3)\n"),
    (2, "output_limit", "while True: print('x' * 10**5)\n"),
    (1, "runtime_error", "raise ValueError\n"),
]


def jobs(executions: int, settings: Execute) -> list[tuple[str | None, dict]]:
    """(kind that its tests get, job) until there are so many tests; every program is another text."""
    chance, out, tests = random.Random(0), [], 0
    kinds = [(w, kind, code, False) for w, kind, code in FUNCTIONS] + [(w, k, code, True) for w, k, code in PROGRAMS]
    while tests < executions:
        _, kind, code, program = chance.choices(kinds, [k[0] for k in kinds])[0]
        wanted = [1, 20, 300]
        whole = [{"stdin": f"{x}\n", "stdout": f"{2 * x}\n"} for x in wanted]
        case = {"id": "a", "code": f"{code}# {len(out)}\n", "entry_point": None if program else "f"}
        task = cases.task_of({**case, "tests": whole if program else [f"assert f({x}) == {2 * x}" for x in wanted]}, 1)
        out.append((kind, stage.job_of(task, case["code"], settings)))
        tests += 1 if kind in ("timeout", None) else len(wanted)  # after a time-out the others are not run
    return out


def held(pid: int) -> dict[str, int]:
    """Descriptors, live children, zombies among them, and resident KB of a process."""
    states = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        states.append(Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2][0])
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    zombies = states.count("Z")
    return {
        "fds": len(os.listdir(f"/proc/{pid}/fd")),
        "children": len(states) - zombies,
        "zombies": zombies,
        "rss_kb": int(status["VmRSS"].split()[0]),
    }


def grown(lines: list[dict[str, int]]) -> list[str]:
    """What is more in the last quarter of the lines than in the first, after the warm-up line."""
    lines = lines[1:]
    quarter = max(1, len(lines) // 4)
    found = []
    for name in lines[0]:
        first, last = (statistics.median(line[name] for line in part) for part in (lines[:quarter], lines[-quarter:]))
        allowed = first * 1.05 + 2048 if name == "rss_kb" else first
        if last > allowed:
            found.append(f"{name}: {first:g} -> {last:g}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executions", type=int, default=20000, help="tests in all (default 20000)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after so many minutes")
    parser.add_argument("--pieces", type=int, default=40, help="lines of the table (default 40)")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="default: CPUs")
    parser.add_argument("--sandbox", choices=["zygote", "bwrap"], default="zygote")
    args = parser.parse_args()
    settings = Execute(sandbox=args.sandbox, cpu_seconds=0.5, memory_mb=256, output_kb=256)
    starts = stage.sandboxes(settings, (), args.workers).starts
    work = jobs(args.executions, settings)
    size = -(-len(work) // args.pieces)
    pieces = [work[n : n + size] for n in range(0, len(work), size)]
    began, done, kinds, wrong = time.monotonic(), 0, Counter(), []
    lines: dict[int, list[dict[str, int]]] = {}
    print("executions | seconds | per worker: fds, children, zombies, resident KB")
    with Pool(starts) as pool:
        for piece in pieces:
            for (kind, job), result in zip(piece, pool.judge([job for _, job in piece]), strict=True):
                seen = [t["kind"] for t in result["tests"]] or ["infra_error"]
                done += len(seen)
                kinds.update(seen)
                if kind is not None and set(seen) != {kind}:
                    wrong.append(f"{kind} came out as {seen}: {job['code'][:60]!r}")
            for worker in pool._workers:
                lines.setdefault(worker.process.pid, []).append(held(worker.process.pid))
            lines.setdefault(os.getpid(), []).append(held(os.getpid()))
            now = "; ".join(", ".join(map(str, of[-1].values())) for of in lines.values())
            print(f"{done} | {time.monotonic() - began:.0f} | {now}", flush=True)
            if time.monotonic() - began > 60 * args.minutes:
                break
    print(f"{done} executions, {done / (time.monotonic() - began):.0f} a second; kinds: {dict(kinds)}")
    more = [text for of in lines.values() if len(of) > 2 for text in grown(of)]
    if len(lines) > args.workers + 1:
        more.append("a worker died and was replaced")
    for text in [*more, *wrong[:10]]:
        print(f"grown or wrong: {text}", file=sys.stderr)
    return 1 if more or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
