"""From tasks and rollouts to verdicts, feedback and times: what `run` and `references` do.

A program that occurs twice for one task is run once. Nothing that another run would give differently enters the verdict
and feedback tables: times are in a table of their own.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from stages.common import verdicts as words
from stages.common.cli import UserError
from stages.common.config import Execute
from stages.execute import bwrap, cgroup, feedback, modes, runtime, seccomp
from stages.execute.pool import Pool

# modules that are warm: in the programs' zygote, and where tests are evaluated
COMMON = ["math", "collections", "itertools", "functools", "re", "random", "string", "json", "heapq", "bisect", "copy"]
COMMON += [
    "typing",
    "datetime",
    "decimal",
    "fractions",
    "operator",
    "statistics",
    "dataclasses",
    "enum",
    "abc",
    "cmath",
    "hashlib",
]
ASSERTS = ["math", "collections", "itertools", "functools", "re", "random", "string", "json"]
TESTING = ["pytest", "unittest", *ASSERTS]
MAX_SOURCE = 16 << 20  # characters of a program


@dataclass(frozen=True)
class Sandboxes:
    """How sandboxes are started in this run, and what that says about the results."""

    starts: list[dict]  # one per worker
    facts: dict[str, str]  # versions, for the tables' provenance


def sandboxes(settings: Execute, packages: Iterable[str], workers: int) -> Sandboxes:
    """Find bwrap, interpreter and packages; UserError says what is missing."""
    uid = bwrap.sandbox_uid()
    program, python = bwrap.find(uid), runtime.find(settings.python, uid)
    own = runtime.own_files()
    wanted = sorted({*settings.packages, *packages})
    if wanted and settings.python != "environment":
        raise UserError(
            "execute.packages comes from this environment's interpreter, so it needs execute.python: environment"
        )
    plain = bwrap.Plan(program, python, own + runtime.packages(wanted, uid), settings.tmp_mb)
    # the tests' side has pytest beside, whatever interpreter it is: pytest is pure Python
    tests = bwrap.Plan(program, python, own + runtime.packages([*wanted, "pytest"], uid), settings.tmp_mb)
    commands = {"candidate": bwrap.command(plain), "tests": bwrap.command(tests)}
    if settings.sandbox == "zygote":
        if seccomp.clone_number() is None:
            raise UserError(f"execute.sandbox: zygote is not made for {os.uname().machine}; set execute.sandbox: bwrap")
        commands |= {f"{name}_zygote": bwrap.command(p, True) for name, p in (("candidate", plain), ("tests", tests))}
    groups = cgroup.find(cgroup.own())
    starts = [
        {
            "commands": commands,
            "cgroup": groups.base and str(groups.base / f"sandboxes-{os.getpid()}-{slot}"),
            "uid": bwrap.sandbox_uid(slot),
            "packages": [runtime.PACKAGES],
            "preload": {"candidate": COMMON, "asserts": ASSERTS, "tests": TESTING},
            "settings": settings.model_dump(),
        }
        for slot in range(workers)
    ]
    facts = {"bwrap": f"{program.version} ({program.source})", "python_inside": python.version}
    facts |= {"sandbox": settings.sandbox, "cgroup": groups.words}
    return Sandboxes(starts, facts)


def job_of(task: Mapping, code: str, settings: Execute) -> dict:
    """What a worker is told about one program of a task (a row of TASKS)."""
    mode = modes.mode_of(task)
    program = mode == modes.STDIO
    return {
        "mode": mode,
        "code": code,
        "cpu_seconds": task["cpu_seconds"] or settings.cpu_seconds,
        "memory_mb": task["memory_mb"] or settings.memory_mb,
        "task": {
            "kind": task["kind"],
            "entry_point": task["entry_point"],
            "prelude": task["prelude"],
            "setup": task["setup"],
            "tests": [{"stdin": t["stdin"], "stdout": t["stdout"]} if program else t["code"] for t in task["tests"]],
            "inplace": task["inplace"],
            "exact": task["exact"],
            "tolerance": task["tolerance"],
            "objects": modes.defines_classes(task["reference"]),
            "operators": modes.operators_of(task["reference"]),
        },
    }


def check_tasks(tasks: Iterable[Mapping]) -> None:
    """UserError for a task that cannot be judged."""
    for task in tasks:
        if not task["tests"]:
            raise UserError(f"task {task['task_id']}: no tests, so there is no reward; leave it out when importing")
        wanted = ("stdout",) if task["kind"] == "stdio" else ("code",)
        for n, test in enumerate(task["tests"]):
            if any(test[name] is None for name in wanted):
                raise UserError(f"task {task['task_id']}: test {n} has no {wanted[0]}, which kind {task['kind']} needs")
        if task["kind"] not in ("function", "pytest", "stdio", "unittest"):
            raise UserError(
                f"task {task['task_id']}: unknown kind {task['kind']!r}; one of function, pytest, stdio, unittest"
            )


@dataclass
class Node:
    """One program to judge: a rollout, or a task's reference."""

    node_id: str
    task_id: str
    code: str | None
    overflow: bool = False


def judge(
    nodes: list[Node],
    tasks: Mapping[str, Mapping],
    settings: Execute,
    boxes: Sandboxes,
    progress: Callable[[int], object] = lambda done: None,
) -> list[dict]:
    """One result per node, in order: `tests` (a verdict per test), `mode`, `retried`, `every`, maybe `infra_error`."""
    numbers: dict[tuple[str, str], int] = {}
    jobs: list[dict] = []
    for node in nodes:
        if node.code is None or node.overflow or len(node.code) > MAX_SOURCE:
            continue
        key = (node.task_id, node.code)
        if key not in numbers:
            numbers[key] = len(jobs)
            jobs.append(job_of(tasks[node.task_id], node.code, settings))
    results: list[dict] = []
    if jobs:
        with Pool(boxes.starts[: max(1, len(jobs))]) as pool:
            results = pool.judge(jobs, progress=lambda: progress(1))
    out = []
    for node in nodes:
        number = numbers.get((node.task_id, node.code or ""))
        total = len(tasks[node.task_id]["tests"])
        if node.overflow or node.code is None or number is None:
            kind, message = (words.UNJUDGED[1], None) if node.overflow else (words.UNJUDGED[0], None)
            if not node.overflow and node.code is not None:
                kind, message = "syntax_error", f"the program is longer than {MAX_SOURCE >> 20} million characters"
            tests = [{"test": n, "kind": kind, "message": message} for n in range(total)]
            out.append({"tests": tests, "mode": modes.NONE, "retried": [], "every": True})
        else:
            out.append(_complete(results[number], total))
    return out


def _complete(result: dict, total: int) -> dict:
    """A result with a verdict for each of `total` tests."""
    tests = {t["test"]: t for t in result["tests"]}
    missing = words.INFRA_ERROR if "infra_error" in result else "not_run"
    if "infra_error" in result:
        tests = {}
    whole = [tests.get(n) or {"test": n, "kind": missing, "message": None} for n in range(total)]
    every = bool(whole) and all(t.get("load") for t in whole)
    return {**result, "tests": whole, "every": every}


def rows(node: Node, task: Mapping, result: dict, settings: Execute) -> tuple[list[dict], dict, list[dict]]:
    """Rows of VERDICTS, FEEDBACK and TEST_TIMES of one node."""
    show_all = settings.feedback_from == "all"
    result = {**result, "tests": [_timeless(verdict, task, settings) for verdict in result["tests"]]}
    verdict_rows, time_rows = [], []
    for test, verdict in zip(task["tests"], result["tests"], strict=True):
        fields = {name: feedback.clean(verdict.get(name)) for name in ("message", "call", "got", "expected")}
        if not (test["visible"] or show_all):
            fields |= {"call": None, "got": None, "expected": None}
            if verdict["kind"] == "wrong_answer":  # such a message may hold the answer: "7 != 6"
                fields["message"] = None
        key = {"node_id": node.node_id, "test": verdict["test"]}
        verdict_rows.append({**key, "visible": test["visible"], "kind": verdict["kind"], **fields})
        cpu, wall = verdict.get("cpu"), verdict.get("wall")
        times = {"cpu_ms": None if cpu is None else 1e3 * cpu, "wall_ms": None if wall is None else 1e3 * wall}
        if result["mode"] != modes.NONE:
            time_rows.append({**key, **times, "retried": verdict["test"] in result["retried"]})
    kinds = [v["kind"] for v in result["tests"]]
    hidden = [k for k, t in zip(kinds, task["tests"], strict=True) if not t["visible"]]
    total, passed = len(kinds), kinds.count(words.PASSED)
    unknown = node.overflow or words.INFRA_ERROR in kinds
    first = next((k for k in kinds if k != words.PASSED), words.PASSED)
    if first == words.UNJUDGED[0]:
        text = feedback.NO_CODE
    elif unknown:
        text = ""
    else:
        text = feedback.feedback(task["tests"], result["tests"], settings.feedback_tokens, result["every"], show_all)
    reward = None if unknown else passed / total
    feedback_row = {
        "node_id": node.node_id,
        "task_id": node.task_id,
        "reward": reward,
        "passed": passed,
        "total": total,
        "hidden_passed": hidden.count(words.PASSED),
        "hidden_total": len(hidden),
        "kind": first,
        "mode": result["mode"],
        "feedback": text,
    }
    return verdict_rows, feedback_row, time_rows


def _timeless(verdict: Mapping, task: Mapping, settings: Execute) -> Mapping:
    """A verdict whose words do not depend on which of the two clocks stopped the test, which a busy machine changes."""
    if verdict["kind"] != "timeout":
        return verdict
    cpu = task["cpu_seconds"] or settings.cpu_seconds
    return {**verdict, "message": f"more than {cpu:g} s of CPU time, or {cpu * settings.wall_factor:g} s in all"}


def check_share(results: list[dict], settings: Execute) -> None:
    """UserError when more nodes could not be judged than `infra_error_share` allows."""
    failed = [r["infra_error"] for r in results if "infra_error" in r]
    for text in sorted(set(failed))[:3]:
        print(f"could not be judged: {text}", file=sys.stderr)
    if failed and len(failed) > settings.infra_error_share * len(results):
        raise UserError(
            f"{len(failed)} of {len(results)} nodes could not be judged, more than infra_error_share "
            f"{settings.infra_error_share}; the first reason: {failed[0][:500]}"
        )


def cpu_count() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def as_json(row: Mapping) -> str:
    """One line of JSON, ASCII only, so that any text can be printed."""
    return json.dumps(row, ensure_ascii=True)
