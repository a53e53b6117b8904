"""Is B better than A, by how much, how sure, and how many more units would settle it.

Tests of pairs:

- permutation: exchanges A and B within whole clusters at random (exactly, up to 14 clusters that differ; else
  9,999 draws, so that p is at least 0.0001). Of the mean difference.
- mcnemar: ratings of at most two values; the binomial test of the units that differ. Of equal shares.
- wilcoxon: signed ranks; equal pairs are ranked and then left out (Pratt), tied differences share their mean
  rank. Exact up to 13 units, or up to 50 without ties and equal pairs; else the normal approximation with its
  correction for ties. Of differences that lie evenly around 0, not of means.

The last two take units as independent: where clusters hold several, they give no p, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtr

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.means import joint_error
from evenhand.stats.planning import detectable_difference, units_for_difference
from evenhand.stats.resample import bootstrap, cluster_sums, mean_interval, share_interval
from evenhand.stats.table import Floats, Ints

Test = Literal["permutation", "mcnemar", "wilcoxon"]
IntervalKind = Literal["t", "bootstrap"]
TESTS: tuple[Test, ...] = get_args(Test)
INTERVALS: tuple[IntervalKind, ...] = get_args(IntervalKind)
_TITLES = {
    "permutation": "exchange of A and B within units",
    "mcnemar": "McNemar's exact test",
    "wilcoxon": "Wilcoxon's signed-rank test",
}
_EXACT = 14  #: clusters up to which all sign patterns are tried
_DRAWS = 9_999
_BLOCK = 4_000_000  #: signs drawn at a time
_DIGITS = 9  #: digits of a difference; what is left beyond is rounding, as of weighted sums


@dataclass(frozen=True, slots=True)
class Comparison:
    """B less A.

    Attributes:
        difference: Mean of B less mean of A.
        paired: Whether the same units were rated of both.
        p: Two-sided p value of no difference; None where it is undefined, and `note` says why.
        test: What test it is.
        effect: The difference in standard deviations (of the differences, paired; pooled, unpaired), None without
            variation.
        wins, ties, losses: Units on which B is above, level with, below A; None unpaired.
        superiority: Paired: share of units on which B is above A, ties half, in 0..1; with a clustered interval.
        odds_ratio: With McNemar's test: wins to losses, with its exact interval; no value without losses.
        needed: Independent units in all with which a difference of this size would be found with a power of 80 %;
            None without difference or variation.
        detectable: The true difference that the units there are find with a power of 80 %, in points; None without
            an interval.
        note: Why there is no p, or how the test took the data; "" where there is nothing to say.
    """

    difference: Estimate
    paired: bool
    p: float | None
    test: str
    effect: float | None
    wins: int | None = None
    ties: int | None = None
    losses: int | None = None
    superiority: Estimate | None = None
    odds_ratio: Estimate | None = None
    needed: int | None = None
    detectable: float | None = None
    note: str = ""


def paired_comparison(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Ints | None = None,
    *,
    test: Test = "permutation",
    interval: IntervalKind = "t",
    seed: int = 0,
    tests: int = 1,
) -> Comparison:
    """Compare ratings of the same units.

    Args:
        a, b: Ratings of the same units, shape (n,), without NaN.
        clusters: Ids 0..g-1, shape (n,); default: every unit is its own cluster.
        test: Which of the tests above.
        interval: Of the mean difference: "t", cluster-robust, or "bootstrap", BCa over clusters.
        seed: Seed of the draws.
        tests: Number of comparisons that p is to be adjusted for, >= 1; `needed` and `detectable` allow for it.

    Returns:
        Comparison; no interval for one cluster or where all differences are equal.

    Raises:
        StatisticError: a and b differ in length.
        UnknownNameError: no such test or interval.

    Source: Fisher's randomization test on cluster sums; McNemar (1947); Wilcoxon (1945) with Pratt (1959); for
        clusters of one the paired t interval; `evenhand.stats.resample.bootstrap`.
    """
    require_kinds(test, interval)
    x, y = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise StatisticError(f"paired ratings are of the same units, not {x.size} and {y.size}")
    gap = _gaps(x, y)
    ids = np.arange(gap.size) if clusters is None else clusters
    plain = mean_interval(gap, ids)
    if plain.clusters > 1 and plain.ci is None:
        plain = replace(plain, reason="all differences are equal: no interval")
    p, note = _tested(test, x, y, gap, ids, seed) if gap.size else (None, "")
    spread = float(gap.std(ddof=1)) if gap.size > 1 else 0.0
    wins, losses = int((gap > 0).sum()), int((gap < 0).sum())
    needed, detectable = _planned(plain, plain.clusters, paired=True, tests=tests)
    return Comparison(
        _bootstrapped(plain, gap, ids, seed) if interval == "bootstrap" and plain.ci is not None else plain,
        True,
        p,
        _TITLES[test],
        float(gap.mean()) / spread if plain.ci is not None and spread > 0 else None,
        wins,
        gap.size - wins - losses,
        losses,
        share_interval((1 + np.sign(gap)) / 2, ids),
        _odds(wins, losses) if test == "mcnemar" and p is not None else None,
        needed,
        detectable,
        note,
    )


def unpaired_comparison(
    a: ArrayLike, b: ArrayLike, clusters_a: Ints | None = None, clusters_b: Ints | None = None, *, tests: int = 1
) -> Comparison:
    """Compare ratings of different units; takes far more of them than a paired comparison.

    Args:
        a, b: Ratings, shapes (n,) and (m,), without NaN.
        clusters_a, clusters_b: Ids 0..g-1 of the units; default: every unit is its own cluster.
        tests: As for `paired_comparison`.

    Returns:
        Comparison; no interval and no p where a side has fewer than two clusters, or neither has any variation. Where
        one side's ratings are all equal, the other's variance is all there is, and a warning says so.

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
    parts = [(m.se**2 if m.se is not None else 0.0, m.clusters - 1) for m in means if m.clusters > 1]
    if len(parts) < 2 or math.fsum(v for v, _ in parts) <= 0:
        reason = "; ".join(dict.fromkeys(m.reason for m in means if m.reason))
        return Comparison(Estimate(value, n=n, clusters=groups, reason=reason), False, None, test, None)
    se, reach, freedom = joint_error(parts)
    flat = ("all ratings of one side are equal: the interval rests on the other's variation",)
    difference = Estimate(
        value,
        (value - reach, value + reach),
        n,
        groups,
        method="difference of means, t interval clustered by item",
        se=se,
        warnings=tuple(dict.fromkeys(w for m in means for w in (m.warnings if m.se is not None else flat))),
    )
    pooled = math.sqrt((float(x.var(ddof=1)) + float(y.var(ddof=1))) / 2)
    p = min(1.0, 2 * float(stdtr(freedom, -abs(value) / se)))
    needed, detectable = _planned(difference, groups, paired=False, tests=tests)
    return Comparison(
        difference, False, p, test, value / pooled if pooled > 0 else None, needed=needed, detectable=detectable
    )


def require_kinds(test: str, interval: str) -> None:
    """Refuse tests and intervals that there are not.

    Raises:
        UnknownNameError: there is one.
    """
    for kind, name, known in (("test", test, TESTS), ("interval", interval, INTERVALS)):
        if name not in known:
            raise UnknownNameError(kind, name, known)


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


def _gaps(x: Floats, y: Floats) -> Floats:
    """B less A, without the rounding errors that would make a win of a tie."""
    largest = max((float(np.abs(side).max()) for side in (x, y) if side.size), default=0.0)
    return np.round(y - x, _DIGITS - math.ceil(math.log10(largest))) if largest else y - x


def _tested(test: Test, x: Floats, y: Floats, gap: Floats, ids: Ints, seed: int) -> tuple[float | None, str]:
    """P value, and what there is to say of it."""
    if test == "permutation":
        return _exchange(cluster_sums(gap[:, None], ids)[:, 0], seed), ""
    if int(ids.max()) + 1 < gap.size:
        return None, f"{_TITLES[test]} takes units as independent, and here several share a cluster"
    if test == "wilcoxon":
        return _signed_ranks(gap)
    values = len(np.unique(np.concatenate([x, y])))
    if values > 2:
        return None, f"{_TITLES[test]} is for ratings of two values, and these have {values}"
    return _binomial(int((gap > 0).sum()), int((gap < 0).sum())), ""


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


def _binomial(wins: int, losses: int) -> float:
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def _signed_ranks(gap: Floats) -> tuple[float, str]:
    from scipy.stats import wilcoxon

    zeros = int((gap == 0).sum())
    p = float(wilcoxon(gap, zero_method="pratt").pvalue) if zeros < gap.size else 1.0
    return p, f"{zeros} equal {'pair' if zeros == 1 else 'pairs'} ranked, then left out (Pratt)" if zeros else ""


def _odds(wins: int, losses: int) -> Estimate:
    """Wins to losses: what McNemar's test is about, with the interval of the binomial share."""
    from scipy.stats import binomtest

    n, method = wins + losses, "odds of the units that differ, exact binomial interval"
    if not losses:
        reason = "all units that differ do so one way: no ratio" if wins else "no unit differs: no ratio"
        return Estimate(None, n=n, clusters=n, method=method, reason=reason)
    found = binomtest(wins, n).proportion_ci()
    return Estimate(wins / losses, (found.low / (1 - found.low), found.high / (1 - found.high)), n, n, method=method)


def _bootstrapped(plain: Estimate, gap: Floats, ids: Ints, seed: int) -> Estimate:
    sums = cluster_sums(np.column_stack([gap, np.ones_like(gap)]), ids)
    found = bootstrap(sums, lambda s: s[:, 0] / s[:, 1], seed=seed)
    method = f"mean, {found.method}"
    return replace(plain, ci=found.ci, se=found.se, method=method, reason=found.reason, warnings=found.warnings)


def _planned(difference: Estimate, groups: int, *, paired: bool, tests: int) -> tuple[int | None, float | None]:
    """Units needed for a difference of this size, and the difference that those there are find.

    Of several tests each is taken at its share of the level, the least that Holm's adjustment leaves it.
    """
    if difference.value is None or difference.se is None:
        return None, None
    sd = difference.se * math.sqrt(groups) / (1 if paired else 2)  # as if units were independent
    share = (1 - CONFIDENCE) / tests
    detectable = detectable_difference(sd, groups, paired=paired, level=1 - share)
    if abs(difference.value) < 1e-6 * sd:  # rounding, or so little that no number of units tells it from none
        return None, detectable
    needed = units_for_difference(difference.value, sd, paired=paired, level=1 - share)
    least = math.ceil(math.log2(2 / share))  # pairs under which no test of signs or ranks gives so small a p: 2 / 2^n
    return max(needed, least) if paired else needed, detectable
