"""Intervals that respect clusters: bootstrap over sums of sufficient statistics, and the analytic mean.

Most statistics here are functions of a sum over units (a confusion table, moments). A bootstrap draw then only
needs new counts of how often each cluster is drawn: draws x clusters counts times clusters x sums. Clusters
with the same sums are exchangeable, so they are drawn together, which makes large sets of discrete ratings cheap.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri, stdtrit

from evenhand.stats.estimates import CONFIDENCE, Estimate, few
from evenhand.stats.means import as_share
from evenhand.stats.table import Floats, Ints

Sums = Any  #: shape (clusters, d): a float array, or a scipy.sparse matrix where d is large
Statistic = Callable[[Floats], Floats]  #: sums, shape (m, d) -> values, shape (m,); NaN where undefined
Method = Literal["bca", "percentile"]

DRAWS = 2000
_BLOCK = 4_000_000  # floats held at a time
_JACKKNIFE = 20_000_000  # rows x width from which no jackknife is made
_UNDEFINED = 0.05  # share of undefined draws from which there is no interval


@dataclass(frozen=True, slots=True)
class Resampling:
    """How a bootstrap is to be made.

    Attributes:
        draws: Bootstrap draws; 0 for no interval.
        seed: Seed of the draws.
        level: Confidence level, in (0, 1).
        method: "bca" or "percentile".
    """

    draws: int = DRAWS
    seed: int = 0
    level: float = CONFIDENCE
    method: Method = "bca"


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap interval.

    Attributes:
        ci: (low, high); None when there is none, and `reason` says why.
        se: Standard error; None when there is no interval.
        method: How it was made, in a few words.
        reason: Why there is no interval.
        warnings: Why to read it with care.
    """

    ci: tuple[float, float] | None
    se: float | None = None
    method: str = ""
    reason: str = ""
    warnings: tuple[str, ...] = ()


def bootstrap(
    sums: Sums,
    statistic: Statistic,
    *,
    counts: Ints | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = CONFIDENCE,
    method: Method = "bca",
) -> Interval:
    """Bootstrap interval of a statistic of summed clusters.

    Clusters are drawn with replacement. The quantiles are widened from the normal to Student's t with
    clusters - 1 degrees of freedom and by sqrt(g / (g - 1)), because a plain bootstrap of few clusters is too
    narrow; BCa also corrects bias and skewness, its acceleration from the jackknife over clusters. The order of
    the clusters does not matter, and the same seed gives the same interval.

    Args:
        sums: Sufficient statistics of each cluster, shape (clusters, d).
        statistic: The statistic of summed rows, for many sums at once.
        counts: How many clusters each row stands for, shape (rows,); default: one each.
        draws: Bootstrap draws; 0 for no interval.
        seed: Seed of the draws.
        level: Confidence level.
        method: "bca" or "percentile".

    Returns:
        No interval, with its reason: fewer than two clusters, a statistic without variation, or more than 5 %
        undefined draws. Fewer undefined draws are left out with a warning. BCa needs the statistic once per
        distinct row; where that is too much (wide sums of many clusters) the interval is the percentile one, and
        `method` says so.

    Source: Efron (1987) for BCa; Hesterberg (2015), "What Teachers Should Know about the Bootstrap", section
        4.2, for the widened quantiles.
    """
    groups = sums.shape[0] if counts is None else int(counts.sum())
    if (none := _without_draws(groups, draws)) is not None:
        return none
    return _bootstrap(sums, lambda rows: statistic(rows)[:, None], counts, Resampling(draws, seed, level, method))[0]


def bootstrap_each(
    sums: Sums, statistic: Statistic, many: int, *, draws: int = DRAWS, seed: int = 0, level: float = CONFIDENCE
) -> list[Interval]:
    """`bootstrap` (BCa) of several statistics at once, from the same draws.

    Args:
        sums, draws, seed, level: As in `bootstrap`.
        statistic: Sums, shape (m, d) -> values, shape (m, many).
        many: Number of statistics.
    """
    if (none := _without_draws(sums.shape[0], draws)) is not None:
        return [none] * many
    return _bootstrap(sums, statistic, None, Resampling(draws, seed, level))


def _bootstrap(sums: Sums, statistic: Statistic, counts: Ints | None, how: Resampling) -> list[Interval]:
    """An interval for each column of what the statistic gives."""
    patterns, counts = _patterns(sums) if counts is None else (sums, counts)
    size, width = patterns.shape
    blocks = _draws(counts, how.draws, how.seed, max(1, _BLOCK // max(size, width)))
    values = np.concatenate([statistic(_product(block, patterns)) for block in blocks])
    method = "percentile" if size * width > _JACKKNIFE else how.method
    total = _product(counts[None, :].astype(float), patterns)
    told = statistic(total)[0]
    left_out = _left_out(total, patterns, statistic) if method == "bca" else None
    tilts = [0.0 if left_out is None else _acceleration(left_out[:, k], counts) for k in range(len(told))]
    groups = int(counts.sum())
    return [_interval(values[:, k], float(told[k]), groups, how.level, method, tilt) for k, tilt in enumerate(tilts)]


def bootstrap_rows(
    clusters: Ints,
    statistic: Callable[[Ints], float],
    *,
    draws: int = DRAWS,
    seed: int = 0,
    level: float = CONFIDENCE,
) -> Interval:
    """Percentile bootstrap of a statistic that needs the rows themselves: one Python call a draw.

    Args:
        clusters: Cluster ids 0..g-1 of the rows, shape (rows,).
        statistic: Row numbers (with repetitions) -> value; NaN where undefined.
        draws, seed, level: As in `bootstrap`.
    """
    groups = int(clusters.max()) + 1 if len(clusters) else 0
    if (none := _without_draws(groups, draws)) is not None:
        return none
    order = np.argsort(clusters, kind="stable")
    bounds = np.searchsorted(clusters[order], np.arange(groups + 1))
    members = [order[a:b] for a, b in itertools.pairwise(bounds)]
    single = len(clusters) == groups
    rng = np.random.default_rng(seed)
    values = np.empty(draws)
    for i in range(draws):
        picked = rng.integers(0, groups, groups)
        values[i] = statistic(order[picked] if single else np.concatenate([members[g] for g in picked]))
    return _interval(values, statistic(np.arange(len(clusters))), groups, level, "percentile", 0.0)


def draw_counts(groups: int, *, draws: int = DRAWS, seed: int = 0) -> Iterator[Floats]:
    """How often each of `groups` clusters is drawn, in blocks of shape (some draws, groups)."""
    yield from _draws(np.ones(groups, dtype=np.intp), draws, seed, max(1, _BLOCK // max(1, groups)))


def cluster_sums(rows: Sums, clusters: Ints) -> Sums:
    """Sums of the rows of each cluster, shape (clusters, d); sparse where the rows are sparse.

    Args:
        rows: Shape (units, d).
        clusters: Ids 0..g-1, shape (units,).
    """
    groups = int(clusters.max()) + 1 if len(clusters) else 0
    if groups == len(clusters):
        return rows
    member = sparse.csr_matrix((np.ones(len(clusters)), (clusters, np.arange(len(clusters)))), (groups, len(clusters)))
    return member @ rows


def mean_interval(
    values: ArrayLike,
    clusters: Ints | None = None,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    level: float = CONFIDENCE,
) -> Estimate:
    """Mean with a cluster-robust t interval; the array form of `evenhand.stats.means.ClusteredMean`.

    The standard error is ``sqrt(g/(g-1) * sum_g (S_g - n_g m)^2) / n`` with cluster sums S_g and sizes n_g,
    the quantile Student's t with g - 1 degrees of freedom.

    Args:
        values: Observations, shape (n,), without NaN.
        clusters: Ids 0..g-1, shape (n,); default: every observation is its own cluster.
        low, high: Bounds the true mean can't pass.
        level: Confidence level.

    Returns:
        No value without observations; no interval for one cluster or without variation, with the reason.

    Source: Cameron and Miller (2015), section II; for clusters of one the ordinary t interval.
    """
    x = np.asarray(values, dtype=np.float64)
    if x.size == 0:
        return Estimate(None, reason="nothing observed", level=level)
    ids = np.arange(x.size) if clusters is None else clusters
    groups = int(ids.max()) + 1
    mean = float(x.mean())
    method = "mean, t interval clustered by item"
    if groups < 2:
        return Estimate(mean, n=x.size, clusters=groups, level=level, method=method, reason="one item: no interval")
    residuals = np.bincount(ids, weights=x - mean, minlength=groups)
    se = math.sqrt(groups / (groups - 1) * float(residuals @ residuals)) / x.size
    if se <= 1e-12 * max(1.0, float(np.abs(x).max())):
        reason = "all values equal: no interval"
        return Estimate(mean, n=x.size, clusters=groups, level=level, method=method, reason=reason)
    reach = float(stdtrit(groups - 1, 0.5 + level / 2)) * se
    ci = (max(low, mean - reach), min(high, mean + reach))
    return Estimate(mean, ci, x.size, groups, method=method, level=level, warnings=few(groups), se=se)


def share_interval(values: ArrayLike, clusters: Ints | None = None, *, level: float = CONFIDENCE) -> Estimate:
    """Mean of observations in 0..1 (a share, a rate) with a Wilson interval for clustered data.

    The array form of `evenhand.stats.means.as_share`, which says how.

    Args:
        values: Observations in 0..1, shape (n,), without NaN.
        clusters, level: As in `mean_interval`.

    Returns:
        No value without observations; no interval for one cluster, or without variation inside (0, 1).
    """
    return as_share(mean_interval(values, clusters, low=0.0, high=1.0, level=level))


def _without_draws(groups: int, draws: int) -> Interval | None:
    if groups >= 2 and draws > 0:
        return None
    return Interval(None, reason="one item: no interval" if draws else "no interval asked for")


def _patterns(sums: Sums) -> tuple[Sums, Ints]:
    """Different rows and how often each occurs, in an order that does not depend on the input's."""
    if not sparse.issparse(sums):
        patterns, counts = np.unique(np.asarray(sums, dtype=np.float64), axis=0, return_counts=True)
        return patterns, counts
    rows = sparse.csr_matrix(sums)
    rows.sum_duplicates()
    parts = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    keys = [rows.indices[a:b].tobytes() + rows.data[a:b].tobytes() for a, b in parts]
    _, first, counts = np.unique(np.array(keys, dtype=object), return_index=True, return_counts=True)
    return rows[first], counts


def _draws(counts: Ints, draws: int, seed: int, block: int) -> Iterator[Floats]:
    """Multinomial counts of patterns that stand for `counts` clusters each, block by block."""
    rng = np.random.default_rng(seed)
    groups = int(counts.sum())
    size = len(counts)
    owner = None if size == groups else np.repeat(np.arange(size), counts)
    for start in range(0, draws, block):
        many = min(block, draws - start)
        if size * 4 <= groups:
            yield rng.multinomial(groups, counts / groups, size=many).astype(np.float64)
            continue
        drawn = np.empty((many, size))
        for row in drawn:
            picked = rng.integers(0, groups, groups)
            row[:] = np.bincount(picked if owner is None else owner[picked], minlength=size)
        yield drawn


def _product(counts: Floats, patterns: Sums) -> Floats:
    if sparse.issparse(patterns):
        return np.asarray((patterns.T @ counts.T).T)
    product: Floats = counts @ patterns
    return product


def _left_out(total: Floats, patterns: Sums, statistic: Statistic) -> Floats:
    """The statistic without one cluster of each pattern, shape (patterns,)."""
    size, width = patterns.shape
    block = max(1, _BLOCK // max(1, width))
    parts = []
    for start in range(0, size, block):
        part = patterns[start : start + block]
        parts.append(statistic(total - (part.toarray() if sparse.issparse(part) else part)))
    return np.concatenate(parts)


def _acceleration(left_out: Floats, counts: Ints) -> float:
    """Efron's acceleration from jackknife values that occur `counts` times each."""
    good = np.isfinite(left_out)
    if not good.any():
        return 0.0
    values, weights = left_out[good], counts[good]
    away = np.average(values, weights=weights) - values
    spread = float(weights @ away**2)
    return float(weights @ away**3) / (6 * spread**1.5) if spread > 0 else 0.0


def _interval(values: Floats, value: float, groups: int, level: float, method: Method, tilt: float) -> Interval:
    text = f"{'BCa' if method == 'bca' else 'percentile'} bootstrap over items, {len(values)} draws"
    good: NDArray[np.float64] = np.sort(values[np.isfinite(values)])
    lost = len(values) - len(good)
    if not math.isfinite(value) or lost > _UNDEFINED * len(values):
        return Interval(None, method=text, reason=f"undefined in {lost} of {len(values)} draws: no interval")
    slack = 1e-12 * max(1.0, abs(value))
    if good[-1] - good[0] <= slack:
        return Interval(None, method=text, reason="no variation between draws: no interval")
    warnings = (f"{lost} of {len(values)} draws left out as undefined",) if lost else ()
    widen = math.sqrt(groups / (groups - 1))
    reach = widen * float(stdtrit(groups - 1, 0.5 + level / 2))
    centre = 0.0
    if method == "bca":
        below = np.count_nonzero(good < value - slack) + np.count_nonzero(np.abs(good - value) <= slack) / 2
        centre = float(ndtri(min(max(below / len(good), 0.5 / len(good)), 1 - 0.5 / len(good))))
    ends = [ndtr(centre + (centre + z) / max(1e-6, 1 - tilt * (centre + z))) for z in (-reach, reach)]
    low, high = (float(q) for q in np.quantile(good, ends))
    return Interval((low, high), widen * float(good.std(ddof=1)), text, warnings=warnings + few(groups))


def percentile_interval(values: Floats, value: float, groups: int, *, level: float = CONFIDENCE) -> Interval:
    """Percentile interval of a value from bootstrap draws made elsewhere, widened as in `bootstrap`.

    Args:
        values: The statistic in each draw, shape (draws,); NaN where undefined.
        value: The statistic of the data.
        groups: Clusters, 2 or more.
        level: Confidence level.
    """
    return _interval(values, value, groups, level, "percentile", 0.0)
