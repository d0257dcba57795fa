"""Comparisons of evaluations: McNemar against scipy, the bootstrap against cases with known answers."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binomtest

from stages.evaluate.compare import Evaluation, bootstrap, compare, mcnemar


def evaluation(label, solved_at, difficulty={}):
    chains = {task: at if isinstance(at, list) else [at] for task, at in solved_at.items()}
    return Evaluation(label, chains, {task: difficulty.get(task) for task in chains}, {})


def test_mcnemar_agrees_with_scipy():
    for won, lost in product(range(12), repeat=2):
        want = binomtest(won, won + lost, 0.5).pvalue if won + lost else 1.0
        assert mcnemar(won, lost) == pytest.approx(want, rel=1e-12)
    assert mcnemar(0, 5) == 0.0625
    assert mcnemar(400, 300) == pytest.approx(binomtest(400, 700, 0.5).pvalue, rel=1e-9)


FIRST = evaluation(
    "first",
    {"t1": 1, "t2": 2, "t3": None, "t4": 3, "t5": None, "t6": None},
    {"t1": "easy", "t2": "easy", "t3": "medium", "t4": "hard", "t5": "hard", "t6": "odd"},
)
SECOND = evaluation("second", {"t1": None, "t2": 1, "t3": 1, "t4": 1, "t5": 3, "t6": None})


def test_wins_losses_and_rates_counted_by_hand():
    found = compare(FIRST, SECOND, 3, 3)
    one, two, three = found.iterations
    assert (one.overall.first, one.overall.second) == (pytest.approx(1 / 6), pytest.approx(3 / 6))
    assert one.won == ["t2", "t3", "t4"] and one.lost == ["t1"] and one.p == pytest.approx(0.625)
    assert two.won == ["t3", "t4"] and two.lost == ["t1"] and two.p == 1.0
    assert two.overall.difference == pytest.approx(3 / 6 - 2 / 6)
    assert three.won == ["t3", "t5"] and three.lost == ["t1"]
    assert (three.overall.first, three.overall.second) == (pytest.approx(3 / 6), pytest.approx(4 / 6))
    assert [(one.iteration, one.overall.tasks) for one in found.iterations] == [(1, 6), (2, 6), (3, 6)]


def test_difficulties_counted_by_hand():
    found = compare(FIRST, SECOND, 3, 1)
    assert list(found.by_difficulty) == ["easy", "medium", "hard", "odd"]
    rates = {level: (d.tasks, d.first, d.second) for level, d in found.by_difficulty.items()}
    assert rates == {"easy": (2, 0.5, 0.5), "medium": (1, 0.0, 1.0), "hard": (2, 0.0, 0.5), "odd": (1, 0.0, 0.0)}
    assert (found.by_difficulty["medium"].low, found.by_difficulty["medium"].high) == (1.0, 1.0), "one task, no spread"


def test_several_chains_are_compared_by_their_share():
    first = evaluation("first", {"a": [1, None, None], "b": [1, 1, None], "c": [None] * 3})
    second = evaluation("second", {"a": [1, 1, None], "b": [1, None, None], "c": [None, None, 2]})
    one, two = compare(first, second, 2, 1).iterations
    assert (one.won, one.lost) == (["a"], ["b"]) and one.overall.difference == pytest.approx(0)
    assert (two.won, two.lost) == (["a", "c"], ["b"]) and two.overall.difference == pytest.approx(1 / 9)


def test_the_bootstrap_of_two_tasks_has_its_exact_distribution():
    means = bootstrap(np.array([[1.0, 0.0], [0.0, 0.0]]), 40_000, seed=3)
    shares = [float((means[:, 0] == value).mean()) for value in (0.0, 0.5, 1.0)]
    assert shares == pytest.approx([0.25, 0.5, 0.25], abs=0.01)
    assert not means[:, 1].any()


def test_the_interval_of_a_small_case_equals_full_enumeration():
    values = [-1, 0, 0, 1, 1]
    everything = sorted(Fraction(sum(draw), 5) for draw in product(values, repeat=5))
    first = evaluation("first", {f"t{i}": 1 if value < 0 else None for i, value in enumerate(values)})
    second = evaluation("second", {f"t{i}": 1 if value > 0 else None for i, value in enumerate(values)})
    overall = compare(first, second, 1, 1).iterations[0].overall
    assert overall.difference == pytest.approx(0.2)
    n = len(everything)
    assert overall.low == pytest.approx(float(everything[int(0.025 * n)]))
    assert overall.high == pytest.approx(float(everything[int(0.975 * n)]))


def test_pairing_narrows_the_interval():
    """Forty tasks that both solve alike and ten that only the second solves: apart, the rates would be far noisier."""
    alike = {f"a{i}": 1 if i % 2 else None for i in range(40)}
    first = evaluation("first", alike | {f"b{i}": None for i in range(10)})
    second = evaluation("second", alike | {f"b{i}": 1 for i in range(10)})
    overall = compare(first, second, 1, 1).iterations[0].overall
    assert overall.low > 0.08 and overall.high < 0.33
    assert (overall.high - overall.low) / 2 == pytest.approx(1.96 * np.sqrt(0.2 * 0.8 / 50), rel=0.08)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(11)
    tasks, truth, runs = 60, 0.15, 300
    covered = 0
    for seed in range(runs):
        drawn = rng.choice([1, 0, -1], size=tasks, p=[0.25, 0.65, 0.10])
        means = bootstrap(drawn[:, None].astype(float), 400, seed)[:, 0]
        low, high = np.quantile(means, [0.025, 0.975])
        covered += low <= truth <= high
    assert 0.90 <= covered / runs <= 0.98


def test_the_seed_decides_the_resamples():
    first = evaluation("first", {f"t{i}": 1 if i % 3 else None for i in range(37)})
    second = evaluation("second", {f"t{i}": 1 if i % 5 else None for i in range(37)})
    values = np.array([[float(i % 3 == 0) - float(i % 5 == 0)] for i in range(37)])
    assert compare(first, second, 1, 1, seed=1) == compare(first, second, 1, 1, seed=1)
    assert (bootstrap(values, 50, 1) == bootstrap(values, 50, 1)).all()
    assert (bootstrap(values, 50, 1) != bootstrap(values, 50, 2)).any()


def test_a_comparison_with_itself_shows_nothing():
    found = compare(FIRST, FIRST, 3, 3).iterations[-1]
    assert (found.overall.difference, found.overall.low, found.overall.high) == (0, 0, 0)
    assert (found.won, found.lost, found.p) == ([], [], 1.0)


def test_different_tasks_are_not_paired():
    with pytest.raises(ValueError, match="same tasks"):
        compare(FIRST, evaluation("other", {"t1": 1}), 3, 3)
