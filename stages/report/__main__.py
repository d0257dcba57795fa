"""`python -m stages.report summary|page|compare|figure|views`: look at runs' tables, in a terminal or a browser."""

import argparse
import json
import sys
from pathlib import Path

from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Report


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.report", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    summary = commands.add_parser("summary", help="print the closing tables of a run")
    summary.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
    summary.add_argument("--json", action="store_true", help="print the numbers as JSON")
    page = commands.add_parser("page", help="write the run's HTML page, which needs no network to be read")
    page.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
    page.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the page")
    add_settings(page, Report)
    compare = commands.add_parser("compare", help="write a page that compares runs: arms, each of one or more seeds")
    compare.add_argument(
        "--arm", nargs="+", action="append", required=True, metavar=("NAME RUN_DIR", "RUN_DIR"), dest="arms",
        help="an arm's name and its runs' folders, seed by seed; the first arm is the baseline",
    )  # fmt: skip
    compare.add_argument(
        "--compared", nargs="+", type=Path, default=[], metavar="FILE",
        help="NAME.json of every other arm: what `stages.evaluate compare BASELINE ARM --json` printed",
    )  # fmt: skip
    compare.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write the page")
    compare.add_argument("--json", type=Path, metavar="FILE", help="where to write the numbers")
    one = commands.add_parser("figure", help="write one chart of a run's page as an SVG or PNG file")
    one.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
    one.add_argument("name", metavar="FIGURE", help="the figure's id on the page: evals, rewards, solved, kept, ...")
    one.add_argument("--out", type=Path, required=True, metavar="FILE", help="the .svg or .png file to write")
    views = commands.add_parser("views", help="write murphy.sql into the run's folder: its tables as DuckDB views")
    views.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
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


def _page(args: argparse.Namespace) -> None:
    from stages.common.files import write_text
    from stages.report import page

    write_text(args.out, page.render(args.run, settings_from(args, Report)))
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.1f} MB")


def _compare(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from stages.common.files import write_text
    from stages.report import comparison

    for name, *folders in args.arms:
        if not folders:
            raise UserError(f"--arm {name}: give its runs' folders too")
    arms = {name: [Path(folder) for folder in folders] for name, *folders in args.arms}
    found = comparison.collect(arms, args.compared)
    if args.json:
        write_text(args.json, json.dumps(asdict(found), indent=1) + "\n")
    write_text(args.out, comparison.render(args.out.resolve().parent.name, arms, found))
    print(f"{args.out}: {args.out.stat().st_size / 1e6:.1f} MB")


def _figure(args: argparse.Namespace) -> None:
    from stages.report import picture

    picture.draw(args.run, args.name, args.out)
    print(args.out)


def _views(args: argparse.Namespace) -> None:
    from stages.report import views

    path = views.write(args.run)
    print(f"{path}: cd {path.parent} && duckdb -init {path.name}")


def main(argv: list[str]) -> int:
    """Run one of the commands."""
    args = _parser().parse_args(argv)
    {"summary": _summary, "page": _page, "compare": _compare, "figure": _figure, "views": _views}[args.command](args)
    return 0


if __name__ == "__main__":
    run(main)
