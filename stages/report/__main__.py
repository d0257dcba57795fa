"""`python -m stages.report summary RUN_DIR`: the closing tables of a run."""

import argparse
import json
import sys
from pathlib import Path

from stages.common.cli import run


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.report", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="print the closing tables of a run")
    summary.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
    summary.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return parser


def _summary(args: argparse.Namespace) -> None:
    from stages.report import summary

    found = summary.collect(args.run)
    if args.json:
        print(json.dumps(found.as_json(), indent=1))
        return
    from rich.console import Console

    # A log file has no width of its own; the widest table wants about 110 columns.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    summary.show(found, console)


def main(argv: list[str]) -> int:
    """Run one of the commands."""
    args = _parser().parse_args(argv)
    {"summary": _summary}[args.command](args)
    return 0


if __name__ == "__main__":
    run(main)
