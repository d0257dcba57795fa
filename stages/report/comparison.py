"""The page of a comparison: arms of one or several runs each (seeds), the first arm the baseline.

`python -m stages.report compare --arm grpo results/a results/b --arm mars results/c results/d --compared mars.json`.
Tokens and updates are counted in the runs' own tables. Differences and their intervals come from the evaluate stage's
``compare --json``, one file per arm. Nothing is sampled or judged here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from stages.common import runs
from stages.common.cli import UserError
from stages.report import charts, page, queries
from stages.report.figures import Figure, Section, Tile, figure

MATCHED = 0.02  # how far an arm's tokens may be from the baseline's to count as alike
TOKENS = """select version, count(distinct task_id) as tasks, count(*) as nodes,
       sum(len(completion_ids))::bigint as sampled_tokens
from 'rollouts/**/*.parquet' group by version order by version"""
STEPS = """select version, count(*) as steps, sum(tokens)::bigint as trained_tokens
from 'updates/**/*.parquet' group by version"""


@dataclass(frozen=True)
class Comparison:
    """What the page shows, as rows: also what ``--json`` writes."""

    tokens: list[dict]  # arm, version, runs, tasks, nodes, sampled_tokens (means), apart (worst), matched, steps
    curves: list[dict]  # arm, benchmark, iteration, version, pass_at_1 (mean of the runs), low, high (of the runs)
    differences: list[dict]  # arm, benchmark, iteration, tasks, first, second, points, at_least, at_most, won, lost, p
    levels: list[dict]  # arm, benchmark, iteration, difficulty, tasks, first, second, points, at_least, at_most


def _counted(run: Path) -> dict[int, dict]:
    """By version: tasks, nodes and tokens sampled, steps made and tokens trained on."""
    connection = runs.connect(run)
    found = {row["version"]: row for row in runs.query(connection, run, TOKENS).dicts()}
    steps = {row["version"]: row for row in runs.query(connection, run, STEPS).dicts()}
    none = {"steps": 0, "trained_tokens": 0}
    return {version: {**row, **none, **steps.get(version, {})} for version, row in found.items()}


def tokens(arms: Mapping[str, Sequence[Path]]) -> list[dict]:
    """What each arm sampled in each version: means over its runs, and the run that is farthest from the baseline's.

    Runs are paired with the baseline's in the order given (seed by seed).
    """
    counted = {arm: [_counted(run) for run in folders] for arm, folders in arms.items()}
    baseline = next(iter(counted.values()))
    rows = []
    for arm, each in counted.items():
        for version in sorted(set.intersection(*(set(one) for one in each))):
            sampled = [one[version]["sampled_tokens"] for one in each]
            pairs = zip(sampled, baseline, strict=True)
            apart = [n / base[version]["sampled_tokens"] - 1 for n, base in pairs if version in base]
            worst = max(apart, key=abs, default=None)
            means = ("tasks", "nodes", "sampled_tokens", "trained_tokens", "steps")
            rows.append(
                {"arm": arm, "version": version, "runs": len(each)}
                | {name: round(fmean(one[version][name] for one in each)) for name in means}
                | {"apart": worst, "matched": worst is not None and abs(worst) <= MATCHED}
            )
    return rows


def curves(arms: Mapping[str, Sequence[Path]]) -> list[dict]:
    """pass@1 by arm, benchmark, iteration and version: the mean of its runs, the lowest and the highest."""
    found: dict[tuple, list[float]] = {}
    for arm, folders in arms.items():
        for run in folders:
            connection = runs.connect(run)
            rows = queries.ask(connection, run, "evals", iterations=queries.iterations(connection, run)).dicts()
            for row in rows:
                key = (arm, row["benchmark"], row["iteration"], row["version"])
                found.setdefault(key, []).append(row["pass_at_1"])
    names = ("arm", "benchmark", "iteration", "version")
    return [
        dict(zip(names, key, strict=True)) | {"pass_at_1": fmean(all), "low": min(all), "high": max(all)}
        for key, all in found.items()
    ]


def compared(files: Sequence[Path]) -> tuple[list[dict], list[dict]]:
    """Differences by iteration, and by difficulty, out of the files of ``evaluate compare --json``."""

    def told(found: Mapping) -> dict:
        points = {
            name: 100 * found[key] for name, key in (("points", "difference"), ("at_least", "low"), ("at_most", "high"))
        }
        return {"tasks": found["tasks"], "first": found["first"], "second": found["second"], **points}

    overall, levels = [], []
    for path in files:
        try:
            benchmarks = json.loads(path.read_text())["benchmarks"]
            for benchmark, result in benchmarks.items():
                place = {"arm": path.stem, "benchmark": benchmark}
                for one in result["iterations"]:
                    counts = {"won": len(one["won"]), "lost": len(one["lost"]), "p": one["p"]}
                    overall.append({**place, "iteration": one["iteration"], **told(one["overall"]), **counts})
                for level, one in result["by_difficulty"].items():
                    place |= {"iteration": result["iteration"], "difficulty": level or "unknown"}
                    levels.append({**place, **told(one)})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}: not what `stages.evaluate compare --json` writes ({error!r})") from None
    return overall, levels


def collect(arms: Mapping[str, Sequence[Path]], files: Sequence[Path]) -> Comparison:
    """Everything, counted; UserError where the arms have not as many runs each."""
    counts = {arm: len(folders) for arm, folders in arms.items()}
    if len(arms) < 2 or len(set(counts.values())) > 1:
        shown = ", ".join(f"{arm}: {count}" for arm, count in counts.items())
        raise UserError(f"--arm: give two arms or more with as many runs each, seed by seed ({shown})")
    return Comparison(tokens(arms), curves(arms), *compared(files))


def differing(arms: Mapping[str, Sequence[Path]]) -> dict[str, list[tuple[str, str]]]:
    """The settings recorded in each arm's tables that are not the same in all arms."""
    said: dict[str, dict[str, str]] = {}
    for arm, folders in arms.items():
        stages = page.settings_by_stage(runs.provenances(folders[0]))
        said[arm] = {f"{one['stage']}: {name}": text for one in stages for name, text in one["values"]}
    left_out = ("policy", "seed", "policies", "prompts", "init")
    names = sorted({name for values in said.values() for name in values})
    names = [name for name in names if len({values.get(name) for values in said.values()}) > 1]
    names = [name for name in names if not name.partition(": ")[2].startswith(left_out)]
    return {arm: [(name, values.get(name, "–")) for name in names] for arm, values in said.items()}


def _table(rows: list[dict], sql: str, id: str, title: str, note: str, drawn: Sequence = (), **more: bool) -> Figure:
    columns = tuple(rows[0]) if rows else ()
    return figure(runs.Query(sql, columns, [tuple(row.values()) for row in rows]), id, title, note, drawn, **more)


def sections(found: Comparison, baseline: str) -> list[Section]:
    """Differences, curves and costs, as the figures of a page."""
    benchmarks = list(dict.fromkeys(row["benchmark"] for row in found.differences))
    drawn = [(b, charts.differences([r for r in found.differences if r["benchmark"] == b])) for b in benchmarks]
    note = (
        f"pass@1 of each arm's last version (second) against {baseline}'s (first) on the same tasks, all seeds "
        "together; 95 % paired bootstrap over tasks; p of McNemar's exact test over tasks won and lost."
    )
    how = f"python -m stages.evaluate compare <runs of {baseline}> <runs of the arm> --json"
    results = [_table(found.differences, how, "differences", f"Against {baseline}", note, drawn, open=True, wide=True)]
    if any(row["difficulty"] != "unknown" for row in found.levels):
        results.append(_table(found.levels, how, "levels", "By difficulty", "", open=True, wide=True))
    lines = []
    for benchmark in dict.fromkeys(row["benchmark"] for row in found.curves):
        for k in sorted({row["iteration"] for row in found.curves}):
            rows = [row for row in found.curves if (row["benchmark"], row["iteration"]) == (benchmark, k)]
            caption = f"{benchmark}, {k} attempt{'s' * (k > 1)}"
            lines.append((caption, charts.by_version(rows, "pass_at_1", "arm", "pass@1", "low", "high")))
    note = "Mean over seeds; bars reach from the lowest to the highest seed. Policy versions on the axis."
    text = (queries.FOLDER / "evals.sql").read_text()
    learning = [_table(found.curves, text, "curves", "pass@1 by version", note, lines, wide=True)] if lines else []
    note = (
        f"Means over seeds. Apart: the seed farthest from {baseline}'s tokens with the same seed; "
        f"matched: within {MATCHED:.0%}."
    )
    cost = [
        _table(found.tokens, f"{TOKENS};\n{STEPS}", "tokens", "Sampled in each version", note, open=True, wide=True)
    ]
    return [
        Section("results", "Results", "", results),
        Section("learning", "Learning", "", learning, missing="No evaluations."),
        Section("cost", "Tokens and updates", "", cost),
    ]


def tiles(found: Comparison, baseline: str) -> list[Tile]:
    """Each arm's difference at the most attempts, and whether the arms sampled alike."""
    made = []
    for arm in dict.fromkeys(row["arm"] for row in found.differences):
        for benchmark in dict.fromkeys(row["benchmark"] for row in found.differences):
            rows = [row for row in found.differences if (row["arm"], row["benchmark"]) == (arm, benchmark)]
            last = max(rows, key=lambda row: row["iteration"])
            note = f"{benchmark}, {last['iteration']} attempts: {last['at_least']:+.1f} to {last['at_most']:+.1f}"
            made.append(Tile(f"{arm} against {baseline}", f"{last['points']:+.1f} points", note, "differences"))
    unlike = [f"{row['arm']} version {row['version']}" for row in found.tokens if not row["matched"]]
    worst = max((abs(row["apart"]) for row in found.tokens if row["apart"] is not None), default=0.0)
    note = f"more than {MATCHED:.0%} apart: {', '.join(unlike)}" if unlike else "every version, every seed"
    made.append(Tile("sampled tokens differ by at most", f"{worst:.1%}", note, "tokens"))
    return made


def render(name: str, arms: Mapping[str, Sequence[Path]], found: Comparison) -> str:
    """The page."""
    baseline = next(iter(arms))
    shown = sections(found, baseline)
    return page.template("comparison.jinja").render(
        name=name,
        tiles=tiles(found, baseline),
        sections=shown,
        arms={arm: [folder.name for folder in folders] for arm, folders in arms.items()},
        differing=differing(arms),
        specs=page.script_json(page.specs_of(shown)),
        style=(page.TEMPLATES / "page.css").read_text(),
        vega=page.vega_script(),
        script=(page.TEMPLATES / "charts.js").read_text(),
    )
