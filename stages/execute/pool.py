"""Worker processes, one per slot, and the order in which jobs are given to them.

A job whose test ran out of time is run again from that test on, after all others and with nothing else running, so that
a busy machine does not make a program fail.
"""

import contextlib
import json
import selectors
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEATHS = 2  # of a worker over one job, before the job is an infra_error


class _Worker:
    def __init__(self, start: dict):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "stages.execute.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            text=True,
            encoding="utf-8",
        )
        self.job: int | None = None
        self.send(start)

    def send(self, message: dict) -> None:
        with contextlib.suppress(BrokenPipeError):  # noticed when its answer is read
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def close(self, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


class Pool:
    """`workers` processes that judge jobs; use as a context manager."""

    def __init__(self, starts: Sequence[dict]):
        self._starts = list(starts)
        self._workers: list[_Worker | None] = [None] * len(self._starts)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for worker in self._workers:
            if worker is not None:
                worker.close(kill=kind is not None)

    def _run(self, jobs: dict[int, dict], slots: int, done: Callable[[int, dict], None]) -> None:
        """Judge every job on the first `slots` workers; `done(number, result)` as they finish."""
        queue, deaths = deque(sorted(jobs)), dict.fromkeys(jobs, 0)
        with selectors.DefaultSelector() as selector:

            def give(slot: int) -> None:
                if not queue:
                    return
                worker = self._workers[slot]
                if worker is None:
                    worker = self._workers[slot] = _Worker(self._starts[slot])
                worker.job = queue.popleft()
                selector.register(worker.process.stdout, selectors.EVENT_READ, slot)
                worker.send(jobs[worker.job])

            for slot in range(min(slots, len(self._workers))):
                give(slot)
            while selector.get_map():
                for key, _ in selector.select():
                    slot = key.data
                    worker = self._workers[slot]
                    line = worker.process.stdout.readline()
                    selector.unregister(worker.process.stdout)
                    number, worker.job = worker.job, None
                    if line.endswith("\n"):
                        done(number, json.loads(line))
                    else:
                        worker.close(kill=True)
                        self._workers[slot] = None
                        deaths[number] += 1
                        if deaths[number] > DEATHS:
                            failure = f"the worker died with status {worker.process.returncode}"
                            empty = {"tests": [], "stopped": None, "mode": jobs[number]["mode"]}
                            done(number, {"infra_error": failure, **empty})
                        else:
                            queue.append(number)
                    give(slot)

    def judge(self, jobs: Sequence[dict], progress: Callable[[], None] = lambda: None) -> list[dict]:
        """Results in the order of `jobs`: `tests`, `mode`, `retried` (test numbers), maybe `infra_error`."""
        results: list[dict] = [{} for _ in jobs]

        def first(number: int, result: dict) -> None:
            results[number] = {**result, "retried": []}
            if result["stopped"] is None:
                progress()

        self._run({n: {**job, "first": 0} for n, job in enumerate(jobs)}, len(self._workers), first)
        again = {n: {**jobs[n], "first": r["stopped"]} for n, r in enumerate(results) if r["stopped"] is not None}

        def confirmed(number: int, result: dict) -> None:
            before = results[number]
            stopped = before["stopped"]
            result["tests"] = [t for t in before["tests"] if t["test"] < stopped] + result["tests"]
            results[number] = {**result, "retried": [stopped]}
            progress()

        self._run(again, 1, confirmed)
        return results
