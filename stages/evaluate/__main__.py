"""Pass rates of an evaluation's trees, and comparisons of two evaluations.

    python -m stages.evaluate passes --tasks T.parquet --rollouts .../turn=1/part-0.parquet ... --feedback ... --out E
    python -m stages.evaluate compare results/demo@0 results/demo@2

The trees come from the generate and execute stages, run on a benchmark's tasks; this stage only counts.
"""

import argparse
import json
import sys
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError, run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stages.evaluate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    passes = commands.add_parser("passes", help="write one row per chain and print iteration-k pass@1")
    passes.add_argument("--tasks", type=Path, nargs="+", required=True, help="the benchmark's tables of tasks")
    passes.add_argument(
        "--rollouts", type=Path, nargs="+", required=True, help="rollouts of every turn (.../turn=1/...)"
    )
    passes.add_argument("--feedback", type=Path, nargs="+", required=True, help="feedback of every turn")
    passes.add_argument("--out", type=Path, required=True, help="table of evaluations to write")
    compare = commands.add_parser(
        "compare",
        help="difference of two evaluations of the same tasks",
        description="Difference in pass@1 of two evaluations of the same tasks: paired bootstrap interval over tasks, "
        "McNemar's exact test, by difficulty, tasks won and lost. Refused when tasks, prompts or settings differ.",
    )
    for name in ("first", "second"):
        compare.add_argument(
            name,
            metavar=name.upper(),
            help="a run and version (results/demo@2), a folder of evals, or one file; several with commas "
            "in between (runs with different seeds) count as one",
        )
    compare.add_argument("--benchmark", help="compare on this benchmark only; otherwise on all, which must be the same")
    compare.add_argument(
        "--iteration",
        type=int,
        metavar="K",
        help="attempts for difficulties, tasks won and lost (default: as many as there were)",
    )
    compare.add_argument(
        "--despite", nargs="+", default=[], metavar="WHAT", help="differences to accept: prompts, or settings by name"
    )
    compare.add_argument("--resamples", type=int, default=10_000, help="bootstrap resamples (default: %(default)s)")
    compare.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: %(default)s)")
    for command in (passes, compare):
        command.add_argument("--json", action="store_true", help="print JSON instead of tables")
    return parser


def _passes(args: argparse.Namespace) -> None:
    """Count, write, print."""
    from stages.evaluate import passes, settings, show

    counts = passes.count(args.tasks, args.rollouts, args.feedback)
    facts = settings.describe(args.tasks, args.rollouts, args.feedback, counts.rows.to_pylist())
    tables.write(args.out, tables.EVALS, counts.rows, tables.provenance("evaluate", **facts))
    summary = passes.summary(counts, facts["settings"]["iterations"])
    if args.json:
        print(json.dumps(summary, indent=1))
    else:
        show.show_passes(summary, show.console())


def _benchmarks(args: argparse.Namespace, first: dict, second: dict) -> list[str]:
    if len(first) == len(second) == 1:  # two files may be compared wherever they lie
        (a,), (b,) = first, second
        if a != b and a and b:
            raise UserError(f"{args.first} is of benchmark {a}, {args.second} of {b}; compare like with like")
    elif set(first) != set(second) and args.benchmark is None:
        only = ", ".join(sorted(set(first) ^ set(second)))
        raise UserError(f"{only}: in one of the two only; choose a benchmark with --benchmark")
    if args.benchmark is None:
        return sorted(first)
    for source, found in ((args.first, first), (args.second, second)):
        if args.benchmark not in found:
            raise UserError(f"{source}: no benchmark {args.benchmark}; there are {', '.join(sorted(found))}")
    return [args.benchmark]


def _compare(args: argparse.Namespace) -> None:
    """Check that both are of the same tasks and settings, compare, print."""
    from dataclasses import asdict

    from stages.evaluate import show, sources
    from stages.evaluate.compare import compare
    from stages.evaluate.settings import differences

    if args.resamples < 1:
        raise UserError(f"--resamples must be at least 1, got {args.resamples}")
    first, second = sources.find_all(args.first), sources.find_all(args.second)
    results, notes = {}, []
    for name in _benchmarks(args, first, second):
        a = sources.load_all(args.first, first[name])
        b = sources.load_all(args.second, second.get(name) or next(iter(second.values())))
        found, unknown = differences(a.made_by, b.made_by, set(a.solved_at), set(b.solved_at))
        refused = {what: text for what, text in found.items() if what == "tasks" or what not in args.despite}
        if refused:
            lines = "\n".join(f"  {what}: {text}" for what, text in refused.items())
            raise UserError(
                f"{args.first} and {args.second} cannot be compared{f' on {name}' if name else ''}:\n{lines}\n"
                "evaluate both alike (differences other than in tasks can be accepted with --despite)"
            )
        notes += [f"{name}: accepted although they differ: {', '.join(found)}"] if found else []
        notes += [f"{name}: not known whether they differ in {', '.join(unknown)}"] if unknown else []
        iterations = _iterations(a, b)
        iteration = iterations if args.iteration is None else args.iteration
        if not 1 <= iteration <= iterations:
            raise UserError(f"--iteration {iteration}: the evaluations have 1 to {iterations} attempts")
        results[name] = compare(a, b, iterations, iteration, args.resamples, args.seed)
    if args.json:
        data = {name: asdict(result) for name, result in results.items()}
        print(json.dumps({"resamples": args.resamples, "seed": args.seed, "benchmarks": data}, indent=1))
    else:
        out = show.console()
        for name, result in results.items():
            show.show_comparison(name, result, out)
    for note in notes:
        print(f"note: {note.removeprefix(': ')}", file=sys.stderr)


def _iterations(*evaluations: object) -> int:
    """The attempts that all evaluations had: as their settings say, else the last at which a chain was solved."""
    told = [e.made_by.get("settings", {}).get("iterations") for e in evaluations]
    if None not in told:
        return min(told)
    return max([1, *(at for e in evaluations for solved in e.solved_at.values() for at in solved if at)])


def main(argv: list[str]) -> None:
    """Run a command."""
    args = _parser().parse_args(argv)
    {"passes": _passes, "compare": _compare}[args.command](args)


if __name__ == "__main__":
    run(main)
