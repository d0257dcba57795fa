"""The questions of `python -m stages.inspect`: SQL files, and what is filled into them.

Every question is one query over a run's tables by path; `--sql` prints it, ready to be run by hand. The check of
credits needs to know how they were made, which the credit table's own metadata says.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.common import runs
from stages.common.cli import UserError
from stages.common.config import Credit

if TYPE_CHECKING:
    import duckdb

FOLDER = Path(__file__).parent / "sql"


@dataclass(frozen=True)
class Question:
    """A question by name, what it tells, and the argument it takes, if any."""

    name: str
    help: str
    argument: str | None = None


QUESTIONS = (
    Question("summary", "nodes, solved, reward, kept and tokens by version and turn"),
    Question("tree", "a task's rollout trees", "TASK"),
    Question("node", "one node: prompt, code, verdicts, feedback, credit", "NODE"),
    Question("failures", "what failing tests say most often"),
    Question("slowest", "the tests that took the longest"),
    Question("tokens", "lengths of completions, cut ones, those without code"),
    Question("cheats", "programs that pass only what they were shown, or reach for the harness"),
    Question("credit-check", "the credit table against credits and advantages worked out again"),
)


def ask(
    connection: "duckdb.DuckDBPyConnection", run: Path, name: str, evaluation: bool = False, **values: str
) -> runs.Query:
    """The answer to ``sql/<name>.sql`` with each ``$key`` replaced by SQL text.

    With `evaluation` it is asked of the evaluation's own trees, which have no credit.
    """
    text = (FOLDER / f"{name.replace('-', '_')}.sql").read_text()
    for key, value in values.items():
        text = text.replace(f"${key}", value)
    if evaluation:
        text = re.sub(r"'(rollouts|feedback|verdicts|test_times)/", r"'eval_\1/", text)
        text = text.replace(f"'{runs.glob_of('credit')}'", f"({runs.empty_select('credit')})")
    return runs.query(connection, run, text)


def credit_formula(settings: Credit, turns: int) -> str:
    """The credit of a node as SQL over its `reward`, `turn` and its children's `best` and `child_mean`."""
    if settings.strategy == "own":
        return "reward"
    if settings.strategy == "mars":
        return "greatest(reward, coalesce(best, reward))"
    left = f"({turns} - turn + 1)" if settings.normalise == "per_turn" else "1"
    return f"case when child_mean is null then reward else (reward + {settings.gamma} * child_mean) / {left} end"


def credit_check(connection: "duckdb.DuckDBPyConnection", run: Path) -> runs.Query:
    """Rows of the credit table that do not hold, by kind of problem; none when all is well."""
    made = [one for one in runs.provenances(run, ["credit"]) if one.get("settings")]
    told = {tuple(sorted((key, str(value)) for key, value in one["settings"].items())) for one in made}
    if not made:
        raise UserError(f"{run}/credit: its files do not say how they were made (or there are none); nothing to check")
    if len(told) > 1:
        raise UserError(f"{run}/credit: its versions were made with different settings; check them one by one")
    known = {key: value for key, value in made[0]["settings"].items() if key in Credit.model_fields}
    settings = Credit.model_validate(known)
    turns = made[0].get("turns") or max(runs.partition_values(run, "rollouts", "turn"), default=1)
    return ask(
        connection,
        run,
        "credit-check",
        credit=credit_formula(settings, int(turns)),
        strategy=settings.strategy,
        all_nodes=str(settings.stats_over == "all").lower(),
        scaled_by_group=str(settings.scale == "group").lower(),
    )
