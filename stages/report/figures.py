"""What the page shows, as data: tiles, sections of figures, tables of numbers, and the settings of each stage.

Every figure carries the rows that it is drawn from and the SQL that gives them. A section whose tables a run does not
have yet says so. Nothing here knows HTML; :mod:`stages.report.page` puts it into one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs
from stages.common.verdicts import KINDS
from stages.report import charts, queries
from stages.report.summary import duration, number

if TYPE_CHECKING:
    import duckdb

SHARES = (
    "share",
    "first",
    "second",
    "apart",
    "solved_share",
    "pass_at_1",
    "low",
    "high",
    "cut_share",
    "no_code_share",
    "overflow_share",
)
CREDIT_BIN, ADVANTAGE_BIN = 0.1, 0.25


@dataclass(frozen=True)
class Cell:
    """A number or word of a table: as shown, and as it is."""

    text: str
    value: object


@dataclass(frozen=True)
class Figure:
    """One or more charts (caption, specification) of one query, its rows as a table, and its SQL."""

    id: str
    title: str
    note: str
    sql: str
    columns: list[str]
    rows: list[list[Cell]]
    charts: list[tuple[str, dict]] = field(default_factory=list)
    open: bool = False  # show the table at once
    wide: bool = False


@dataclass(frozen=True)
class Section:
    """Figures that belong together; `versions` to choose from where its charts show one at a time."""

    id: str
    title: str
    intro: str
    figures: list[Figure]
    versions: list[int] = field(default_factory=list)
    missing: str = ""  # what is said when there is no figure


@dataclass(frozen=True)
class Tile:
    """A number of the overview, with the figure it comes from."""

    label: str
    value: str
    note: str
    figure: str


def cell(column: str, value: object) -> Cell:
    """A value as a table shows it: shares in percent, seconds as durations, other numbers with three decimals."""
    if value is None or isinstance(value, str):
        return Cell("–" if value is None else value, value)
    if isinstance(value, bool):
        return Cell("yes" if value else "no", value)
    if column == "seconds":
        return Cell(duration(value), value)
    if column in SHARES:
        return Cell(f"{value:.1%}", value)
    if column == "lr" or (isinstance(value, float) and 0 < abs(value) < 0.001):
        return Cell(f"{value:.3g}", value)
    return Cell(number(value), value)


def figure(
    query: runs.Query, id: str, title: str, note: str, drawn: Sequence[tuple[str, dict]] = (), **more: bool
) -> Figure:
    """A figure of a query's rows."""
    rows = [[cell(*pair) for pair in zip(query.columns, row, strict=True)] for row in query.rows]
    return Figure(id, title, note, query.sql, list(query.columns), rows, list(drawn), **more)


class Asker:
    """Asks a run's tables, each question once."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", run: Path) -> None:
        self._connection, self._run, self._known = connection, run, {}

    def __call__(self, name: str, **values: object) -> runs.Query:
        """The answer to ``sql/<name>.sql``."""
        key = (name, *sorted(values.items()))
        if key not in self._known:
            self._known[key] = queries.ask(self._connection, self._run, name, **values)
        return self._known[key]

    def evals(self) -> runs.Query:
        """pass@1 by iteration."""
        return self("evals", iterations=queries.iterations(self._connection, self._run))

    def difficulty(self) -> runs.Query:
        """pass@1 by difficulty and iteration."""
        return self("difficulty", iterations=queries.iterations(self._connection, self._run))


def evaluation(ask: Asker) -> list[Figure]:
    """Evaluation in detail: by difficulty, by the attempt that was right, and what each turn did."""
    levels, first, turns = ask.difficulty(), ask("first_success"), ask("eval_turns")
    figures = []
    if any(row["difficulty"] != "unknown" for row in levels.dicts()):
        last = [row for row in levels.dicts() if row["iteration"] == max(r["iteration"] for r in levels.dicts())]
        drawn = []
        for name in dict.fromkeys(row["benchmark"] for row in last):
            rows = [row for row in last if row["benchmark"] == name]
            caption = f"{name}, {rows[0]['iteration']} attempts"
            drawn.append((caption, charts.by_version(rows, "pass_at_1", "difficulty", "pass@1")))
        figures.append(figure(levels, "difficulty", "pass@1 by difficulty", "", drawn, wide=len(drawn) > 1))
    note = "Chains by the attempt that was right first; – is never."
    figures.append(figure(first, "first_success", "The attempt that was right", note, open=True))
    if turns.rows:
        note = "Wrong to right, right to wrong: what retries made of the attempt before. Shares are of the attempts."
        figures.append(figure(turns, "eval_turns", "Evaluation turn by turn", note, open=True, wide=True))
    return figures


def learning(ask: Asker) -> Section:
    """Evaluation, reward and solved tasks by version."""
    evals, rewards, solved = ask.evals(), ask("rewards"), ask("solved_tasks")
    figures = []
    if evals.rows:
        drawn = []
        for benchmark in dict.fromkeys(row["benchmark"] for row in evals.dicts()):
            rows = [row for row in evals.dicts() if row["benchmark"] == benchmark]
            drawn.append((benchmark, charts.by_version(rows, "pass_at_1", "iteration", "pass@1", "low", "high")))
        note = "Scored on hidden tests after 1, 2, ... attempts, with the executor's feedback in between. "
        note += "Bars: 95 % Wilson intervals over tasks."
        figures.append(figure(evals, "evals", "pass@1 by iteration", note, drawn, wide=len(drawn) > 1))
        figures += evaluation(ask)
    if rewards.rows:
        rows = [
            {**row, "low": row["mean_reward"] - row["half_width"], "high": row["mean_reward"] + row["half_width"]}
            if row["half_width"] is not None
            else {**row, "low": None, "high": None}
            for row in rewards.dicts()
        ]
        drawn = [("", charts.by_version(rows, "mean_reward", "turn", "mean reward", "low", "high"))]
        note = (
            "Mean over nodes, with 1.96 standard errors clustered by task. A later turn holds only what failed before "
        )
        note += "it, and each version draws its own tasks: turns and versions are not the same tasks."
        figures.append(figure(rewards, "rewards", "Reward in training", note, drawn))
        note = "Tasks with at least one solved node up to each turn of their trees."
        drawn = [("", charts.by_version(solved.dicts(), "share", "turn", "tasks solved"))]
        figures.append(figure(solved, "solved", "Tasks solved within a tree", note, drawn))
        turns = ask("turns")
        figures.append(figure(turns, "turns", "Nodes by version and turn", "", open=True, wide=True))
    return Section("learning", "Learning", "", figures, missing="No node has been judged yet.")


def credit(ask: Asker) -> Section:
    """Distributions of credit and advantage, and what pruning left."""
    kept, figures = ask("kept"), []
    turns = sorted({row["turn"] for row in kept.dicts()})
    for column, width, note in (
        ("credit", CREDIT_BIN, "Reward after it was sent back through the tree."),
        ("advantage", ADVANTAGE_BIN, "Credit against the group's: what each token of a kept node is pushed by."),
    ):
        query = ask("distribution", column=column, width=width)
        if query.rows:
            bins = [row["bin"] for row in query.dicts()]
            by_turn = {turn: [row for row in query.dicts() if row["turn"] == turn] for turn in turns}
            drawn = [
                (f"turn {turn}", charts.distribution(rows, width, column, min(bins), max(bins)))
                for turn, rows in by_turn.items()
            ]
            figures.append(figure(query, column, column.capitalize(), note, drawn, wide=True))
    if kept.rows:
        note = (
            "Bars side by side are the turns. Only kept nodes whose advantage is not 0 (with signal) move the policy."
        )
        drawn = [("", charts.fates(kept.dicts()))]
        figures.append(figure(kept, "kept", "Kept for the update", note, drawn, open=True, wide=True))
    versions = sorted({row["version"] for row in kept.dicts()})
    return Section("credit", "Credit and pruning", "", figures, versions, missing="No credit has been worked out yet.")


def failures(ask: Asker) -> Section:
    """How nodes ended, and what feedback made of failures."""
    kinds, repairs, figures = ask("kinds"), ask("repairs"), []
    if kinds.rows:
        note = "How the nodes of each turn ended: passed, or the kind of the first test that failed."
        figures.append(figure(kinds, "kinds", "How attempts ended", note, [("", charts.kinds(kinds.dicts(), KINDS))]))
    if repairs.rows:
        note = (
            "Each row is a kind of failed attempt, each column what the attempts that read its feedback became. Counts;"
        )
        note += " the shade is the share of the row."
        drawn = [("", charts.repairs(repairs.dicts(), KINDS))]
        figures.append(figure(repairs, "repairs", "What feedback repairs", note, drawn))
    versions = sorted({row["version"] for row in kinds.dicts()})
    return Section("failures", "Failures", "", figures, versions, missing="No node has been judged yet.")


def update(ask: Asker) -> Section:
    """The optimiser's steps."""
    steps, updates, figures = ask("steps"), ask("updates"), []
    if steps.rows:
        names = {"loss": "loss", "grad_norm": "gradient norm", "entropy": "entropy", "kl": "KL to the reference"}
        names |= {"clipped": "share of tokens clipped", "is_ratio_mean": "trainer/engine ratio, mean", "lr": "lr"}
        drawn = [
            (title, charts.steps(steps.dicts(), name, title))
            for name, title in names.items()
            if any(row[name] is not None for row in steps.dicts())
        ]
        figures.append(figure(steps, "steps", "Optimiser steps", "Numbered over all versions.", drawn, wide=True))
        figures.append(figure(updates, "updates", "Updates by version", "", open=True, wide=True))
    return Section("update", "Update", "", figures, missing="No optimiser step has been made yet.")


def cost(ask: Asker) -> Section:
    """Time and tokens."""
    phases, sampled, figures = ask("phases"), ask("sampled"), []
    if phases.rows:
        note = "Summed over versions, turns and shards; shards may run side by side. "
        note += "Engine overhead is what an engine costs before it samples."
        drawn = [("", charts.times(phases.dicts()))]
        figures.append(figure(phases, "phases", "Where the time went", note, drawn, wide=True))
    if sampled.rows:
        note = "A group's prompt is counted once. Cut: ran into the longest completion allowed."
        figures.append(figure(sampled, "sampled", "Tokens", note, open=True, wide=True))
    return Section("cost", "Time and tokens", "", figures, missing="No times have been recorded yet.")


def sections(ask: Asker) -> list[Section]:
    """All sections of figures, in the order of the page; the tree explorer stands after the first."""
    return [learning(ask), credit(ask), failures(ask), update(ask), cost(ask)]


def _change(values: Sequence[float], percent: bool) -> str:
    shown = [f"{value:.1%}" if percent else f"{value:.3f}" for value in (values[0], values[-1])]
    return shown[0] if len(values) == 1 else " → ".join(shown)


def tiles(ask: Asker) -> list[Tile]:
    """The overview's numbers: first version against last."""
    found = []
    evals = ask.evals().dicts()
    for benchmark in dict.fromkeys(row["benchmark"] for row in evals):
        last = max(row["iteration"] for row in evals)
        rows = [row for row in evals if row["benchmark"] == benchmark and row["iteration"] == last]
        versions = " → ".join(str(row["version"]) for row in (rows if len(rows) == 1 else (rows[0], rows[-1])))
        gain = 100 * (rows[-1]["pass_at_1"] - rows[0]["pass_at_1"])
        note = f"version {versions}, {rows[0]['tasks']} tasks" + (f", {gain:+.1f} points" if len(rows) > 1 else "")
        label = f"{benchmark}: pass@1 after {last} attempt{'s' * (last > 1)}"
        found.append(Tile(label, _change([row["pass_at_1"] for row in rows], True), note, "evals"))
    first = [row for row in ask("rewards").dicts() if row["turn"] == 1]
    if first:
        versions = " → ".join(str(v) for v in dict.fromkeys((first[0]["version"], first[-1]["version"])))
        means = [row["mean_reward"] for row in first]
        found.append(Tile("mean reward of first attempts", _change(means, False), f"version {versions}", "rewards"))
        version = first[-1]["version"]
        solved = [row for row in ask("solved_tasks").dicts() if row["version"] == version]
        shares = [row["share"] for row in solved]
        note = f"turn 1 → {solved[-1]['turn']} of version {version}, {solved[0]['tasks']} tasks"
        found.append(Tile("tasks solved: at first → with feedback", _change(shares, True), note, "solved"))
    (totals,) = ask("totals").dicts()
    if totals["nodes"]:
        note = f"{totals['tasks_trained']:,} tasks, {totals['tests_run']:,} tests run"
        found.append(Tile("nodes", f"{totals['nodes']:,}", note, "turns"))
    if totals["sampled_tokens"]:
        note = f"{number(totals['trained_tokens'])} trained on" if totals["trained_tokens"] else "none trained on yet"
        found.append(Tile("tokens sampled in training", f"{totals['sampled_tokens']:,}", note, "sampled"))
    phases = ask("phases").dicts()
    if seconds := sum(row["seconds"] for row in phases):
        overhead = sum(row["seconds"] for row in phases if row["engine_overhead"])
        note = f"{overhead / seconds:.0%} engine overhead"
        found.append(Tile("time, all stages", duration(seconds), note, "phases"))
    return found
