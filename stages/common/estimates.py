"""Pass rates and how sure they are: pass@k, and 95 % intervals over tasks. Pure functions of counts."""

from collections.abc import Sequence
from math import comb, sqrt

Z = 1.96  # 95 %
RESAMPLES = 10_000


def pass_at(n: int, correct: int, k: int) -> float:
    """Unbiased estimate of the chance that one of k samples is right, from `correct` right ones among n >= k.

    Source: Chen et al. 2021 (arXiv 2107.03374), equation 1.
    """
    if not 0 <= correct <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} of {correct} right among {n}")
    return 1.0 - comb(n - correct, k) / comb(n, k)


def wilson(p: float, n: int) -> tuple[float, float]:
    """95 % Wilson interval of a share `p` of n observations (tasks), n > 0; the report's charts show the same."""
    middle, spread = p + Z**2 / (2 * n), Z * sqrt(p * (1 - p) / n + Z**2 / (4 * n**2))
    return (middle - spread) / (1 + Z**2 / n), (middle + spread) / (1 + Z**2 / n)


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """95 % percentile bootstrap of the mean of `values`, one per task; the same for the same values and seed."""
    import numpy as np

    rng, data, means = np.random.default_rng(seed), np.asarray(values, dtype=float), []
    step = max(1, 2_000_000 // len(data))  # resamples drawn at one time
    for start in range(0, RESAMPLES, step):
        size = (min(step, RESAMPLES - start), len(data))
        means.append(data[rng.integers(0, len(data), size)].mean(axis=1))
    low, high = np.quantile(np.concatenate(means), [0.025, 0.975])
    return float(low), float(high)


def interval(values: Sequence[float]) -> tuple[float, float, str]:
    """95 % interval of the mean of one value in 0..1 per task, and its name.

    Wilson's where every value is 0 or 1, or all are alike (the bootstrap is too sure there), else the bootstrap.
    """
    if all(value in (0.0, 1.0) for value in values) or len(set(values)) == 1:
        return (*wilson(sum(values) / len(values), len(values)), "Wilson")
    return (*bootstrap(values), "bootstrap")
