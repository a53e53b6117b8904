"""Is B better than A, by how much, how sure, and how many more units would settle it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr, stdtrit

from evenhand.errors import StatisticError
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.means import joint_error
from evenhand.stats.resample import cluster_sums, mean_interval
from evenhand.stats.table import Floats, Ints

POWER = 0.8
_EXACT = 14  #: clusters up to which all sign patterns are tried
_DRAWS = 9_999
_BLOCK = 4_000_000  #: signs drawn at a time


@dataclass(frozen=True, slots=True)
class Comparison:
    """B less A.

    Attributes:
        difference: Mean of B less mean of A.
        paired: Whether the same units were rated of both.
        p: Two-sided p value of no difference; None where it is undefined.
        test: What test it is.
        effect: The difference in standard deviations (of the differences, paired; pooled, unpaired), None without
            variation.
        wins, ties, losses: Units on which B is above, level with, below A; None unpaired.
        needed: Independent units in all with which a difference of this size would be found with a power of 80 %;
            None without difference or variation.
    """

    difference: Estimate
    paired: bool
    p: float | None
    test: str
    effect: float | None
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    needed: int | None = None


def paired_comparison(a: ArrayLike, b: ArrayLike, clusters: Ints | None = None, *, seed: int = 0) -> Comparison:
    """Compare ratings of the same units.

    The interval is the cluster-robust t interval of the mean difference; the test exchanges A and B within whole
    clusters at random (exactly, up to 14 clusters; else 9,999 draws, so that p is at least 0.0001).

    Args:
        a, b: Ratings of the same units, shape (n,), without NaN.
        clusters: Ids 0..g-1, shape (n,); default: every unit is its own cluster.
        seed: Seed of the draws.

    Returns:
        Comparison; no interval for one cluster or where all differences are equal.

    Raises:
        StatisticError: a and b differ in length.

    Source: Fisher's randomization test on cluster sums; for clusters of one the paired t interval.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise StatisticError(f"paired ratings are of the same units, not {x.size} and {y.size}")
    gap = y - x
    difference = mean_interval(gap, clusters)
    ids = np.arange(gap.size) if clusters is None else clusters
    p = _exchange(cluster_sums(gap[:, None], ids)[:, 0], seed) if gap.size else None
    spread = float(gap.std(ddof=1)) if gap.size > 1 else 0.0
    return Comparison(
        difference,
        True,
        p,
        "exchange of A and B within units",
        float(gap.mean()) / spread if spread > 0 else None,
        int((gap > 0).sum()),
        int((gap == 0).sum()),
        int((gap < 0).sum()),
        _needed(difference, difference.clusters),
    )


def unpaired_comparison(
    a: ArrayLike, b: ArrayLike, clusters_a: Ints | None = None, clusters_b: Ints | None = None
) -> Comparison:
    """Compare ratings of different units; takes far more of them than a paired comparison.

    Args:
        a, b: Ratings, shapes (n,) and (m,), without NaN.
        clusters_a, clusters_b: Ids 0..g-1 of the units; default: every unit is its own cluster.

    Returns:
        Comparison; no interval and no p where a side has fewer than two clusters or no variation.

    Source: Welch (1947), with cluster-robust standard errors.
    """
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    means = [mean_interval(values, ids) for values, ids in ((x, clusters_a), (y, clusters_b))]
    n, groups = sum(m.n for m in means), sum(m.clusters for m in means)
    first, second = means[0].value, means[1].value
    test = "Welch's t test"
    if first is None or second is None:
        return Comparison(Estimate(None, n=n, reason="a side has no rating"), False, None, test, None)
    value = second - first
    parts = [(m.se**2, m.clusters - 1) for m in means if m.se is not None]
    if len(parts) < 2 or math.fsum(v for v, _ in parts) <= 0:
        reason = "; ".join(dict.fromkeys(m.reason for m in means if m.reason)) or "no variation"
        return Comparison(Estimate(value, n=n, clusters=groups, reason=reason), False, None, test, None)
    se, reach, freedom = joint_error(parts)
    difference = Estimate(
        value,
        (value - reach, value + reach),
        n,
        groups,
        method="difference of means, t interval clustered by item",
        se=se,
        warnings=tuple(dict.fromkeys(w for m in means for w in m.warnings)),
    )
    pooled = math.sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / 2)
    p = min(1.0, 2 * float(stdtr(freedom, -abs(value) / se)))
    return Comparison(
        difference, False, p, test, value / pooled if pooled > 0 else None, needed=_needed(difference, groups)
    )


def holm(values: Sequence[float | None]) -> list[float | None]:
    """P values adjusted for how many there are, by Holm's steps; None stays None and is not counted.

    Source: Holm (1979), "A simple sequentially rejective multiple test procedure".
    """
    order = sorted((i for i, p in enumerate(values) if p is not None), key=lambda i: values[i] or 0.0)
    adjusted: list[float | None] = [None] * len(values)
    least = 0.0
    for rank, i in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * (values[i] or 0.0)))
        adjusted[i] = least
    return adjusted


def _exchange(sums: Floats, seed: int) -> float:
    """P value of the sum when each cluster's sign is as good as the other."""
    sums = sums[sums != 0]
    total, groups = abs(float(sums.sum())), len(sums)
    close = total - 1e-9 * float(np.abs(sums).sum())
    if groups <= _EXACT:
        signs = 1 - 2 * ((np.arange(1 << groups)[:, None] >> np.arange(groups)) & 1)
        return float((np.abs(signs @ sums) >= close).mean())
    draw = np.random.default_rng(seed)
    found, left = 0, _DRAWS
    while left:
        block = min(left, max(1, _BLOCK // groups))
        signs = 1 - 2 * draw.integers(0, 2, (block, groups), dtype=np.int8)
        found += int((np.abs(signs @ sums) >= close).sum())
        left -= block
    return (1 + found) / (1 + _DRAWS)


def _needed(difference: Estimate, groups: int) -> int | None:
    if not difference.value or difference.se is None:
        return None
    ratio = groups * (difference.se / difference.value) ** 2
    needed = ratio * (float(ndtri(0.5 + CONFIDENCE / 2)) + float(ndtri(POWER))) ** 2
    for _ in range(20):  # with Student's t, whose quantiles depend on the number looked for
        freedom = max(2.0, needed) - 1
        reach = float(stdtrit(freedom, 0.5 + CONFIDENCE / 2)) + float(stdtrit(freedom, POWER))
        needed, before = ratio * reach**2, needed
        if abs(needed - before) < 0.1:
            break
    return max(2, math.ceil(needed))
