"""Two evaluations of the same tasks, compared task by task.

The unit is the task: its value within k attempts is the share of its chains that were solved by then. The difference of
the means (second minus first) has a paired bootstrap interval: tasks are drawn with replacement, each with both its
values. McNemar's exact test asks whether as many tasks were won as lost: two-sided, binomial with p = 1/2, over the
tasks whose values differ. (With one chain per task this is McNemar's test; with several it is the sign test on tasks.)
Alone: :func:`compare` on two :class:`Evaluation`. Covers the chance in which tasks were chosen; that in the sampling of
a task's chains is seen only as far as it differs between tasks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from stages.evaluate.passes import solved_within, sort_levels

CHUNK = 4_000_000  # draws held at one time


@dataclass(frozen=True)
class Evaluation:
    """One EVALS table: `solved_at` of each task's chains, its tasks' difficulty, and its metadata."""

    label: str
    solved_at: Mapping[str, Sequence[int | None]]
    difficulty: Mapping[str, str]
    made_by: Mapping[str, object]


@dataclass(frozen=True)
class Difference:
    """Pass rates of both over `tasks` tasks, `second` minus `first`, and its 95 % interval."""

    tasks: int
    first: float
    second: float
    difference: float
    low: float
    high: float


@dataclass(frozen=True)
class Iteration:
    """The comparison within `iteration` attempts; `p` is that of McNemar's exact test."""

    iteration: int
    overall: Difference
    won: list[str]
    lost: list[str]
    p: float


@dataclass(frozen=True)
class Comparison:
    """All iterations, and the one that `by_difficulty` is about."""

    first: str
    second: str
    iterations: list[Iteration]
    iteration: int
    by_difficulty: dict[str, Difference]


def mcnemar(won: int, lost: int) -> float:
    """Exact two-sided p-value of McNemar's test: P(X as far from n/2 as this) for X ~ Binomial(won + lost, 1/2)."""
    n = won + lost
    tail = sum(comb(n, i) for i in range(min(won, lost) + 1))
    return min(1.0, 2 * tail / 2**n)


def bootstrap(values: np.ndarray, resamples: int, seed: int) -> np.ndarray:
    """Means over tasks drawn with replacement. `values` [tasks, columns] gives [resamples, columns]."""
    rng = np.random.default_rng(seed)
    tasks = len(values)
    means = np.empty((resamples, values.shape[1]))
    step = max(1, CHUNK // max(1, tasks))
    for start in range(0, resamples, step):
        drawn = rng.integers(0, tasks, (min(step, resamples - start), tasks))
        for column in range(values.shape[1]):  # the same draw for all columns
            means[start : start + len(drawn), column] = values[drawn, column].mean(axis=1)
    return means


def _differences(first: np.ndarray, second: np.ndarray, resamples: int, seed: int) -> list[Difference]:
    """One :class:`Difference` per column of two [tasks, columns] arrays."""
    means = bootstrap(second - first, resamples, seed)
    low, high = np.quantile(means, [0.025, 0.975], axis=0)
    return [
        Difference(len(first), a, b, b - a, float(low[i]), float(high[i]))
        for i, (a, b) in enumerate(zip(first.mean(axis=0).tolist(), second.mean(axis=0).tolist(), strict=True))
    ]


def _shares(evaluation: Evaluation, tasks: Sequence[str], iterations: int) -> np.ndarray:
    """[tasks, iterations]: the share of each task's chains that were solved within 1..iterations attempts."""
    return np.array(
        [
            [solved_within(solved, k) / len(solved) for k in range(1, iterations + 1)]
            for solved in (evaluation.solved_at[task] for task in tasks)
        ]
    )


def compare(
    first: Evaluation, second: Evaluation, iterations: int, iteration: int, resamples: int = 10_000, seed: int = 0
) -> Comparison:
    """Compare within 1..`iterations` attempts, and by difficulty within `iteration`. Both must hold the same tasks."""
    tasks = sorted(first.solved_at)
    if tasks != sorted(second.solved_at) or not tasks:
        raise ValueError("two evaluations of the same tasks, one at least")
    a, b = _shares(first, tasks, iterations), _shares(second, tasks, iterations)
    overall = _differences(a, b, resamples, seed)
    rounds = []
    for k in range(iterations):
        won = [task for task, x, y in zip(tasks, a[:, k], b[:, k], strict=True) if y > x]
        lost = [task for task, x, y in zip(tasks, a[:, k], b[:, k], strict=True) if y < x]
        rounds.append(Iteration(k + 1, overall[k], won, lost, mcnemar(len(won), len(lost))))
    levels: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        levels.setdefault(first.difficulty.get(task) or "", []).append(place)
    by_difficulty = {}
    for level in sort_levels(list(levels)):
        rows, column = levels[level], [iteration - 1]
        (by_difficulty[level],) = _differences(a[rows][:, column], b[rows][:, column], resamples, seed)
    return Comparison(first.label, second.label, rounds, iteration, by_difficulty)
