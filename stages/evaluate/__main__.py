"""Pass rates of an evaluation's trees: ``python -m stages.evaluate passes --help``.

The trees come from the generate and execute stages, run on a benchmark's tasks; this stage only counts.
"""

import argparse
from pathlib import Path

from stages.common import tables
from stages.common.cli import run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.evaluate", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    passes = commands.add_parser("passes", help="write one row per chain and print iteration-k pass@1")
    passes.add_argument("--tasks", type=Path, nargs="+", required=True, help="the benchmark's tables of tasks")
    passes.add_argument(
        "--rollouts", type=Path, nargs="+", required=True, help="rollouts of every turn (.../turn=1/...)"
    )
    passes.add_argument("--feedback", type=Path, nargs="+", required=True, help="feedback of every turn")
    passes.add_argument("--out", type=Path, required=True, help="table of evaluations to write")
    return parser


def main(argv: list[str]) -> None:
    """Count, write, print."""
    args = _parser().parse_args(argv)
    from stages.evaluate.passes import chains, pass_rates

    rows = chains(args.tasks, args.rollouts, args.feedback)
    tables.write(args.out, tables.EVALS, rows, tables.provenance("evaluate"))
    listed = rows.to_pylist()
    rates = pass_rates(listed, max((row["attempts"] for row in listed), default=1))
    samples = len(listed) / max(1, len({row["task_id"] for row in listed}))
    print(f"{len(listed)} chains, {samples:g} per task")
    for iteration, rate in enumerate(rates, 1):
        print(f"pass@1 within {iteration} attempts: {rate:.3f}")


if __name__ == "__main__":
    run(main)
