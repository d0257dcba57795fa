"""Evaluations and comparisons as tables in the terminal. Every number is in the ``--json`` of the commands too."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from stages.evaluate.compare import Comparison, Difference

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

LISTED = 20  # tasks won or lost that are named


def console() -> "Console":
    """Standard output, wide enough for the tables where it is a file."""
    from rich.console import Console

    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=120)


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], text_columns: int = 0) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < text_columns else "right")
    for row in rows:
        table.add_row(*row)
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _part(count: int, of: int) -> str:
    return f"{count} ({count / of:.0%})" if of else "–"


def show_passes(summary: Mapping, out: "Console") -> None:
    """Print what :func:`stages.evaluate.passes.summary` gives."""
    per_task = summary["chains"] / max(1, summary["tasks"])
    draws = [name for name in summary["pass_at"][0] if name.startswith("pass@")] if summary["pass_at"] else []
    rows = [
        [
            str(row["iteration"]),
            _share(row["pass@1"]),
            " to ".join(map(_share, row["interval"] or [])),
            *(_share(row[name]) for name in draws[1:]),
            str(summary["solved_at"][row["iteration"]]),
        ]
        for row in summary["pass_at"]
    ]
    title = f"{summary['tasks']} tasks, {summary['chains']} chains ({per_task:g} per task)"
    out.print(_table(title, ["attempts", "pass@1", "95 %", *draws[1:], "chains solved there first"], rows))
    if set(summary["by_difficulty"]) - {""}:
        rows = [
            [level or "unknown", str(found["tasks"]), *map(_share, found["pass@1"])]
            for level, found in summary["by_difficulty"].items()
        ]
        columns = ["difficulty", "tasks", *(f"pass@1, {row['iteration']}" for row in summary["pass_at"])]
        out.print(_table("By difficulty, within so many attempts", columns, rows, text_columns=1))
    rows = [
        [
            str(row["turn"]),
            str(row["attempts"]),
            _part(row["right"], row["attempts"]),
            _part(row["wrong_to_right"], row["after_wrong"]),
            _part(row["right_to_wrong"], row["after_right"]),
            *(_part(row[name], row["attempts"]) for name in ("truncated", "no_code", "overflow", "unjudged")),
        ]
        for row in summary["turns"]
    ]
    columns = ["turn", "attempts", "right", "wrong to right", "right to wrong"]
    out.print(_table("Attempts", [*columns, "truncated", "no code", "no room", "unjudged"], rows))


def _difference(found: Difference) -> list[str]:
    return [
        _share(found.first),
        _share(found.second),
        f"{100 * found.difference:+.1f}",
        f"{100 * found.low:+.1f} to {100 * found.high:+.1f}",
    ]


def _named(tasks: Sequence[str]) -> str:
    more = f" and {len(tasks) - LISTED} more (--json names all)" if len(tasks) > LISTED else ""
    return (", ".join(tasks[:LISTED]) or "none") + more


def show_comparison(benchmark: str, found: Comparison, out: "Console") -> None:
    """Print one benchmark's comparison."""
    rows = [
        [str(one.iteration), *_difference(one.overall), f"{len(one.won)} / {len(one.lost)}", f"{one.p:.3g}"]
        for one in found.iterations
    ]
    columns = ["attempts", "first", "second", "difference, points", "95 %", "tasks won / lost", "McNemar p"]
    title = f"{benchmark or 'pass@1'}, {found.iterations[0].overall.tasks} tasks: {found.first} against {found.second}"
    out.print(_table(title, columns, rows))
    if set(found.by_difficulty) - {""}:
        rows = [[level or "unknown", str(d.tasks), *_difference(d)] for level, d in found.by_difficulty.items()]
        title = f"By difficulty, within {found.iteration} attempts"
        out.print(_table(title, ["difficulty", "tasks", *columns[1:5]], rows, text_columns=1))
    at = found.iterations[found.iteration - 1]
    out.print(f"Won within {at.iteration} attempts: {_named(at.won)}", soft_wrap=True, markup=False)
    out.print(f"Lost within {at.iteration} attempts: {_named(at.lost)}", soft_wrap=True, markup=False)
