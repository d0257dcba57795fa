"""The closing tables of a run: what was sampled and solved, evaluation, pruning, and where the time went.

Read from the run's tables alone (`python -m stages.report summary results/demo`), so they can be printed again at any
time and for a run that is not finished. For distributions and single trees there is the page.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs
from stages.report import queries

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


@dataclass(frozen=True)
class Rate:
    """`tokens` dealt with in `seconds` by the phases that say so; None where none did."""

    tokens: int
    seconds: float

    @property
    def per_second(self) -> float | None:
        """Tokens per second."""
        return self.tokens / self.seconds if self.seconds else None


@dataclass(frozen=True)
class Summary:
    """The rows of the closing tables, as dictionaries; see the queries of the same names for their columns."""

    run: str
    policies: list[dict]
    turns: list[dict]
    evals: list[dict]
    kept: list[dict]
    sampled: list[dict]
    updates: list[dict]
    passed_on: list[int]  # versions whose update had no step to make: no group told better from worse
    phases: list[dict]
    total_seconds: float
    engine_overhead_seconds: float
    sampling: Rate
    training: Rate

    def as_json(self) -> dict[str, object]:
        """Everything, with tokens per second worked out."""
        data = asdict(self)
        for name, rate in (("sampling", self.sampling), ("training", self.training)):
            data[name]["per_second"] = rate.per_second
        return data


def rate_of(phases: list[dict], **where: str) -> Rate:
    """Tokens and seconds of the phases that count tokens and have the values of `where`."""
    wanted = {**where, "unit": "tokens"}
    rows = [row for row in phases if all(row[key] == value for key, value in wanted.items())]
    return Rate(sum(row["count"] for row in rows), sum(row["seconds"] for row in rows))


def collect(run: Path) -> Summary:
    """Ask the run's tables for everything that the closing tables show."""
    run = Path(run)
    connection = runs.connect(run)
    names = ("turns", "kept", "updates", "phases")
    found = {name: queries.ask(connection, run, name).dicts() for name in names}
    phases = found["phases"]
    return Summary(
        run=str(run),
        policies=[{key: made[key] for key in ("version", "hash", "parent")} for made in runs.policies(run)],
        evals=queries.ask(connection, run, "evals", iterations=queries.iterations(connection, run)).dicts(),
        sampled=queries.ask(connection, run, "sampled").dicts(),
        passed_on=sorted(
            runs.partition_values(run, "updates", "version") - {row["version"] for row in found["updates"]}
        ),
        total_seconds=sum(row["seconds"] for row in phases),
        engine_overhead_seconds=sum(row["seconds"] for row in phases if row["engine_overhead"]),
        sampling=rate_of(phases, phase="sample"),
        training=rate_of(phases, stage="update"),
        **found,
    )


def number(value: float | int | None, digits: int = 3) -> str:
    """A number for a table: grouped thousands for whole and large ones, `digits` decimals for others, else a dash."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{0 if abs(value) >= 1000 else digits}f}"


def duration(seconds: float) -> str:
    """Seconds as people read them: 40 ms, 8.3 s, 4 min 05 s, 2 h 13 min."""
    if 0 < seconds < 0.0995:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02d} min"


def _table(title: str, columns: list[str], rows: list[list[str]], text_columns: int = 0) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < text_columns else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _turns(summary: Summary) -> "Table":
    tokens = {
        (row["version"], row["turn"]): row["sampled_tokens"] for row in summary.sampled if row["part"] == "training"
    }
    rows = []
    for row in summary.turns:
        unjudged = f" ({row['unjudged']} unjudged)" if row["unjudged"] else ""
        solved = number(row["solved"]) + (f" ({row['solved_share']:.1%})" if row["solved_share"] is not None else "")
        place = (row["version"], row["turn"])
        nodes = number(row["nodes"]) + unjudged
        rows.append([*map(str, place), nodes, solved, number(row["mean_reward"]), number(tokens.get(place))])
    return _table("Rollouts", ["version", "turn", "nodes", "solved", "mean reward", "tokens"], rows)


def _evals(summary: Summary) -> "Table":
    iterations = sorted({row["iteration"] for row in summary.evals})
    lines: dict[tuple[str, int], dict[int, dict]] = {}
    for row in summary.evals:
        lines.setdefault((row["benchmark"], row["version"]), {})[row["iteration"]] = row
    rows = [
        [benchmark, str(version), number(found[iterations[0]]["tasks"])]
        + [f"{found[k]['pass_at_1']:.1%}" if k in found else "–" for k in iterations]
        for (benchmark, version), found in lines.items()
    ]
    columns = ["benchmark", "version", "tasks", *(f"iteration {k}" for k in iterations)]
    return _table("pass@1 after k attempts", columns, rows, text_columns=1)


def _kept(summary: Summary) -> "Table":
    names = ("version", "turn", "nodes", "kept", "pruned_inter", "pruned_intra", "with_signal")
    rows = [[number(row[name]) for name in names] for row in summary.kept]
    return _table("Kept for the update", [*(name.replace("_", " ") for name in names[:-1]), "advantage ≠ 0"], rows)


def _updates(summary: Summary) -> "Table":
    rows = [
        [
            *(number(row[name]) for name in ("version", "steps", "rows", "tokens")),
            *(number(row["loss"], 4), number(row["kl"], 4), number(row["grad_norm"]), f"{row['lr']:.3g}"),
        ]
        for row in summary.updates
    ]
    return _table("Updates", ["version", "steps", "rows", "tokens", "loss", "KL", "grad norm", "lr"], rows)


def _time(summary: Summary) -> "Table":
    def line(stage: str, phase: str, seconds: float, count: str = "", rate: str = "") -> list[str]:
        share = f"{seconds / summary.total_seconds:.1%}" if summary.total_seconds else "–"
        return [stage, phase, duration(seconds), share, count, rate]

    rows = []
    for stage in sorted({row["stage"] for row in summary.phases}):
        for row in [row for row in summary.phases if row["stage"] == stage]:
            counted = bool(row["count"] and row["unit"])
            count = f"{row['count']:,} {row['unit']}" if counted else ""
            rate = f"{number(row['per_second'], 1)} {row['unit']}/s" if counted and row["per_second"] else ""
            name = row["phase"] + (" *" if row["engine_overhead"] else "")
            rows.append(line(stage, name, row["seconds"], count, rate))
    totals = len(rows)
    if summary.engine_overhead_seconds:
        rows.append(line("* engine overhead", "", summary.engine_overhead_seconds))
    for name, rate in (("sampling", summary.sampling), ("training", summary.training)):
        if rate.per_second:
            rows.append(line(name, "", rate.seconds, f"{rate.tokens:,} tokens", f"{rate.per_second:,.1f} tokens/s"))
    rows.append(line("total", "", summary.total_seconds))
    columns = ["stage", "phase", "time", "share", "count", "rate"]
    table = _table("Where the time went", columns, rows, text_columns=2)
    if totals:
        table.rows[totals - 1].end_section = True
    return table


def show(summary: Summary, console: "Console") -> None:
    """Print the tables that have rows, and say which have none yet."""
    parts = {
        "rollouts": (summary.turns, _turns),
        "evaluation": (summary.evals, _evals),
        "credit": (summary.kept, _kept),
        "updates": (summary.updates, _updates),
        "timings": (summary.phases, _time),
    }
    console.print(f"[bold]{summary.run}[/bold]", highlight=False)
    for version in summary.policies:
        console.print(f"policy version {version['version']}: {version['hash']}", highlight=False)
    for rows, build in parts.values():
        if rows:
            console.print(build(summary))
    for version in summary.passed_on:
        console.print(f"version {version} was passed on unchanged: no group had an advantage", highlight=False)
    missing = [name for name, (rows, _) in parts.items() if not rows]
    if missing:
        console.print(f"not there yet: {', '.join(missing)}", highlight=False)
