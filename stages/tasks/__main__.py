"""The tasks stage: import a data set, then admit the tasks whose references passed.

    python -m stages.tasks import --out candidates.parquet --source starter
    python -m stages.execute references --tasks candidates.parquet --feedback feedback.parquet \\
        --verdicts verdicts.parquet
    python -m stages.tasks admit --candidates candidates.parquet --feedback feedback.parquet \\
        --verdicts verdicts.parquet --train train.parquet --heldout heldout.parquet --rejected rejected.parquet

Import runs no code of a data set. Formats and fields are described in docs/data.md.
"""

import argparse
from collections import Counter
from pathlib import Path

from stages.common import tables
from stages.common.cli import UserError, add_settings, run, settings_from
from stages.common.config import Tasks


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="python -m stages.tasks", description=__doc__, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{import,admit}")
    one = commands.add_parser("import", help="write a data set as a table of candidate tasks")
    one.add_argument("--out", type=Path, required=True, help="the table of candidates to write (Parquet)")
    one.add_argument("--seed", type=int, default=0, help="chooses among generated tasks (default: 0)")
    add_settings(one, Tasks)
    two = commands.add_parser("admit", help="split the candidates whose reference scored 1.0; set the others aside")
    two.add_argument("--candidates", type=Path, required=True, help="table written by import")
    two.add_argument("--feedback", type=Path, required=True, help="the execute stage's feedback on the references")
    two.add_argument("--verdicts", type=Path, required=True, help="the execute stage's verdicts on the references")
    share = Tasks.model_fields["heldout_share"]
    text = f"{share.description} (default: {share.default})"
    two.add_argument("--heldout-share", type=float, default=share.default, metavar="SHARE", help=text)
    two.add_argument("--train", type=Path, help="table of training tasks to write")
    two.add_argument("--heldout", type=Path, help="table of held-out tasks to write")
    two.add_argument("--all", type=Path, help="instead of --train and --heldout: one table, for a benchmark")
    two.add_argument("--rejected", type=Path, required=True, help="table of rejected candidates to write")
    return parser


def _import(args: argparse.Namespace) -> None:
    from stages.tasks.selection import chosen, released, worded
    from stages.tasks.sources import converted, records

    settings = settings_from(args, Tasks)
    module, rows, is_hub = records(settings, args.seed)
    rows = released(rows, module, settings.released_from, settings.released_until)
    rows = worded(rows, module, settings.wording)
    tasks, left_out = converted(chosen(rows, module, settings.difficulty, settings.limit), module, is_hub)
    for reason in left_out:
        print(f"left out: {reason}")
    made_by = tables.provenance("tasks.import", settings.model_dump(), seed=args.seed)
    tables.write(args.out, tables.TASKS, tasks, made_by)
    kinds = ", ".join(f"{n} {kind}" for kind, n in sorted(Counter(task["kind"] for task in tasks).items()))
    tests = [test for task in tasks for test in task["tests"]]
    print(
        f"{settings.source}: {len(tasks)} candidates ({kinds}), {len(tests)} tests, "
        f"{sum(test['visible'] for test in tests)} of them visible -> {args.out}"
    )


def _admit(args: argparse.Namespace) -> None:
    from stages.tasks.admission import admit, split, table

    if bool(args.all) == bool(args.train or args.heldout) or bool(args.train) != bool(args.heldout):
        raise UserError("give --train and --heldout, or --all alone")
    if not 0 <= args.heldout_share <= 1:
        raise UserError(f"--heldout-share: {args.heldout_share} is not between 0 and 1")
    candidates = tables.read(args.candidates, tables.TASKS).to_pylist()
    feedback = tables.read(args.feedback, tables.FEEDBACK).to_pylist()
    verdicts = tables.read(args.verdicts, tables.VERDICTS).to_pylist()
    result = admit(candidates, feedback, verdicts)
    made_by = tables.provenance("tasks.admit", {} if args.all else {"heldout_share": args.heldout_share})
    tables.write(args.rejected, tables.REJECTED, result.rejected, made_by)
    for row in result.rejected[:20]:
        print(f"rejected {row['task_id']}: {row['reason'][:200]}")
    if len(result.rejected) > 20:
        print(f"... and {len(result.rejected) - 20} more in {args.rejected}")
    if not result.tasks:
        raise UserError(f"{args.candidates}: none of its {len(candidates)} tasks is admitted; see {args.rejected}")
    if args.all:
        parts = {"all": (args.all, result.tasks)}
    else:
        train, heldout = split(result.tasks, args.heldout_share)
        parts = {"train": (args.train, train), "heldout": (args.heldout, heldout)}
    for path, rows in parts.values():
        tables.write(path, tables.TASKS, rows, made_by)
    without = f", {result.unchecked} of them without a reference to check" if result.unchecked else ""
    print(f"{len(candidates)} candidates: {len(result.tasks)} admitted{without}, {len(result.rejected)} rejected")
    print(table({name: rows for name, (_, rows) in parts.items()}))


def main(argv: list[str]) -> int:
    """Entry point of the command line."""
    args = _parser().parse_args(argv)
    _import(args) if args.command == "import" else _admit(args)
    return 0


if __name__ == "__main__":
    run(main)
