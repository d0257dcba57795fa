"""`python -m stages.inspect RUN_DIR QUESTION`: ready questions to a run's tables, answered in the terminal."""

import argparse
import sys
from pathlib import Path

from stages.common.cli import UserError, run
from stages.inspect.questions import QUESTIONS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m stages.inspect", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN_DIR", help="a run's folder, such as results/demo")
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--version", type=int, metavar="N", help="only this policy version")
    options.add_argument("--evaluation", action="store_true", help="of the evaluation's trees, not the training's")
    options.add_argument("--limit", type=int, default=20, metavar="ROWS", help="rows printed (default: 20)")
    options.add_argument("--sql", action="store_true", help="print the SQL, to run in the run's folder, and stop")
    questions = parser.add_subparsers(dest="question", required=True, metavar="QUESTION")
    for question in QUESTIONS:
        command = questions.add_parser(question.name, parents=[options], help=question.help)
        if question.argument:
            command.add_argument("argument", metavar=question.argument)
    return parser


def main(argv: list[str]) -> int:
    """Ask one question and print its answer; the check of credits exits with 1 when something does not hold."""
    args = _parser().parse_args(argv)
    from stages.common import runs
    from stages.inspect import questions

    connection = runs.connect(args.run)
    name = args.question
    if name == "credit-check":
        found = questions.credit_check(connection, args.run)
    else:
        values = {{"tree": "task"}.get(name, name): runs.sql_text(args.argument)} if name in ("tree", "node") else {}
        found = questions.ask(connection, args.run, name, args.evaluation, **values)
    if args.sql:
        print(found.sql)
        return 0
    if args.version is not None and "version" in found.columns:
        place = found.columns.index("version")
        kept = [row for row in found.rows if row[place] == args.version]
        found = runs.Query(found.sql, found.columns, kept)
    if name in ("tree", "node") and not found.rows:
        where = "" if args.version is None else f" of version {args.version}"
        raise UserError(f"{args.run}: no {'task' if name == 'tree' else 'node'}{where} is called {args.argument!r}")

    from rich.console import Console

    from stages.inspect import show

    console = Console() if sys.stdout.isatty() else Console(width=120)
    if name == "tree":
        show.trees(found.dicts(), console, args.argument)
    elif name == "node":
        verdicts = questions.ask(connection, args.run, "verdicts", args.evaluation, **values)
        show.node(found.dicts()[0], verdicts, console, 1000)
    elif name == "credit-check" and not found.rows:
        console.print("credit-check: every credit and advantage is as worked out again", highlight=False)
    else:
        show.rows(found, console, args.limit, name)
    return int(name == "credit-check" and bool(found.rows))


if __name__ == "__main__":
    run(main)
