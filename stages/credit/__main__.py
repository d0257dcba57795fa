"""Command line of the credit stage.

    python -m stages.credit --rollouts results/demo/rollouts/version=0/*/*.parquet \\
        --feedback results/demo/feedback/version=0/*/*.parquet --turns 2 --out credit.parquet --strategy mers

Writes the `credit` table: one row per node with reward, credit, group mean and std, advantage, kept, prune reason.
"""

import argparse
import os
import sys
from pathlib import Path

from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Credit


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m stages.credit",
        description="Send reward back through the trees of one policy version, prune, and normalise inside groups.",
        epilog="The SQL is in stages/credit/sql; docs/credit.md shows how to run it by hand.",
    )
    parser.add_argument("--rollouts", type=Path, nargs="+", required=True, help="rollouts of every turn of one version")
    parser.add_argument("--feedback", type=Path, nargs="+", required=True, help="feedback of every turn of the version")
    parser.add_argument("--turns", type=int, required=True, help="S: turns that a tree may have, the first included")
    parser.add_argument("--out", type=Path, required=True, help="Parquet file to write (credit table)")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="results are the same for any number")
    parser.add_argument("--timings", type=Path, help="JSON file for the time that each phase took")
    add_settings(parser, Credit)
    return parser


def main(argv: list[str]) -> int:
    """Run the stage; returns the exit status."""
    args = _parser().parse_args(argv)
    settings = settings_from(args, Credit)
    for name in ("turns", "threads"):
        if getattr(args, name) < 1:
            raise UserError(f"--{name} must be at least 1, got {getattr(args, name)}")

    from stages.common import tables
    from stages.common.timing import Timings
    from stages.credit.assign import assign, summarise

    timings = Timings()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    credit = assign(args.rollouts, args.feedback, args.turns, settings, args.threads, timings, spill=args.out.parent)
    with timings.phase("write", "nodes") as phase:
        made_by = tables.provenance("credit", settings.model_dump(), turns=args.turns)
        tables.write(args.out, tables.CREDIT, credit, made_by)
        phase.count = credit.num_rows
    timings.write(args.timings)
    print(f"{args.out}: {summarise(credit)}")
    return 0


if __name__ == "__main__":
    sys.exit(run(main))
