"""Means with intervals that respect repeated looks at the same item, in one pass and constant memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from evenhand.stats.estimates import CONFIDENCE, Estimate, few


class ClusteredMean:
    """Mean of observations that come in clusters, with a cluster-robust interval.

    Feed one cluster at a time with `add`. The estimand is the mean over all observations; its standard
    error treats clusters, not observations, as independent: ``sqrt(G/(G-1) * sum_g (S_g - n_g m)^2) / N``
    with cluster sums ``S_g`` and sizes ``n_g``. The interval uses Student's t with G - 1 degrees of
    freedom, cut to the given bounds. With one observation per cluster it is the ordinary t interval.

    Args:
        low, high: Bounds the true mean can't pass, None for none.
        unit: What a cluster is, for the words beside the figure.

    Source: Cameron and Miller (2015), "A Practitioner's Guide to Cluster-Robust Inference", section II;
        checked against scipy.stats.ttest_1samp for clusters of one.
    """

    def __init__(self, *, low: float | None = None, high: float | None = None, unit: str = "item") -> None:
        self._unit = unit
        self._bounds = (-math.inf if low is None else low, math.inf if high is None else high)
        self._shift: float | None = None
        self._clusters = 0
        self._n = 0
        self._sum = 0.0
        self._sum_squares = 0.0
        self._sum_cross = 0.0
        self._size_squares = 0

    def add(self, values: Iterable[float]) -> None:
        """Add one cluster; an empty one counts for nothing."""
        values = list(values)
        if not values:
            return
        if self._shift is None:
            self._shift = values[0]  # keeps the sums small, so that little is lost in the subtraction below
        self._grow(math.fsum(v - self._shift for v in values), len(values), 0.0, 0)

    def _grow(self, total: float, size: int, before: float, were: int) -> None:
        """Take the sum and size of a cluster in place of those that it had before."""
        self._clusters += not were
        self._n += size - were
        self._sum += total - before
        self._sum_squares += total * total - before * before
        self._sum_cross += total * size - before * were
        self._size_squares += size * size - were * were

    def estimate(self, unit: str | None = None) -> Estimate:
        """The mean so far; ``unit`` says what a cluster is where that is known only now."""
        self._unit = unit or self._unit
        if self._n == 0 or self._shift is None:
            return Estimate(None, reason="nothing scored", unit=self._unit)
        centred = self._sum / self._n
        mean = centred + self._shift
        groups = self._clusters
        if groups < 2:
            return Estimate(mean, n=self._n, clusters=groups, unit=self._unit, reason=f"one {self._unit}: no interval")
        spread = self._sum_squares - 2 * centred * self._sum_cross + centred * centred * self._size_squares
        if spread <= 1e-12 * max(1.0, self._sum_squares):
            reason = "all values equal: no interval"
            return Estimate(mean, n=self._n, clusters=groups, unit=self._unit, reason=reason)
        error = math.sqrt(groups / (groups - 1) * spread) / self._n
        reach = _t_quantile(groups - 1) * error
        low, high = self._bounds
        return Estimate(
            mean,
            (max(low, mean - reach), min(high, mean + reach)),
            self._n,
            groups,
            method=f"mean, t interval clustered by {self._unit}",
            warnings=few(groups, self._unit),
            se=error,
            unit=self._unit,
        )


class ScatteredMean(ClusteredMean):
    """The same where a cluster comes in pieces, in any order; who feeds it keeps what each cluster has so far.

    Args:
        low, high, unit: As for `ClusteredMean`.
    """

    def add_to(self, before: float, were: int, values: Sequence[float]) -> tuple[float, int]:
        """Add to a cluster that has such a sum and size so far, 0 and 0 at first; those that it has now.

        Sums are of differences to the first value of all, so they are of use here only.
        """
        if not values:
            return before, were
        if self._shift is None:
            self._shift = values[0]
        total = before + math.fsum(v - self._shift for v in values)
        self._grow(total, were + len(values), before, were)
        return total, were + len(values)


def as_share(mean: Estimate) -> Estimate:
    """A clustered mean of observations in 0..1 (a share, a rate) with a Wilson interval in place of its t interval.

    Wilson's score interval at the effective sample size ``p (1 - p) / se^2``, with the clustered standard error and
    Student's t with clusters - 1 degrees of freedom. It stays in 0..1 and is not empty at 0 and 1, where every
    cluster counts as one observation.

    Args:
        mean: Of `ClusteredMean.estimate` or `evenhand.stats.resample.mean_interval`.

    Returns:
        No interval for one cluster, or without variation inside (0, 1).

    Source: Wilson (1927); effective sample size as in Korn and Graubard (1998), "Confidence intervals for
        proportions with small expected number of positive counts".
    """
    groups, p = mean.clusters, mean.value
    if p is None or groups < 2 or (mean.se is None and 0 < p < 1):
        return mean
    size = p * (1 - p) / mean.se**2 if mean.se else groups
    square = _t_quantile(groups - 1, mean.level) ** 2
    centre = (p + square / (2 * size)) / (1 + square / size)
    reach = math.sqrt(square * (p * (1 - p) / size + square / (4 * size * size))) / (1 + square / size)
    return replace(
        mean,
        ci=(max(0.0, centre - reach), min(1.0, centre + reach)),
        method=f"share, Wilson interval clustered by {mean.unit}",
        reason="",
        warnings=few(groups, mean.unit),
    )


def mean_of_means(means: Sequence[Estimate], bounds: tuple[float, float]) -> Estimate:
    """The unweighted mean of the means of independent tasks (strata), each one voice.

    ``se² = sum(se_k²) / K²``; the interval uses Student's t with Satterthwaite's degrees of freedom. Without any
    value where a task has none, and without interval where a task has none: a mean over fewer tasks would be
    another quantity.

    Args:
        means: One estimate a task, at least one.
        bounds: Ends of the scale.

    Source: Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    n, clusters = sum(mean.n for mean in means), sum(mean.clusters for mean in means)
    unit = means[0].unit if means else "item"
    empty = sum(mean.value is None for mean in means)
    if empty or not means:
        return Estimate(None, n=n, clusters=clusters, unit=unit, reason=f"{empty} of {len(means)} tasks have no score")
    value = math.fsum(mean.value for mean in means if mean.value is not None) / len(means)
    parts = [(mean.se**2 / len(means) ** 2, mean.clusters - 1) for mean in means if mean.se is not None]
    if len(parts) < len(means):
        lacking = len(means) - len(parts)
        reason = f"{lacking} of {len(means)} tasks have no interval"
        return Estimate(value, n=n, clusters=clusters, unit=unit, reason=reason)
    se, reach, _ = joint_error(parts)
    ci = (max(bounds[0], value - reach), min(bounds[1], value + reach))
    return Estimate(value, ci, n, clusters, method="mean of task means, t interval", se=se, unit=unit)


def joint_error(parts: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Standard error of a sum of independent means, the reach of its interval to either side, degrees of freedom.

    Args:
        parts: Variance (> 0 in sum) and degrees of freedom of each mean.

    Source: Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    variance = math.fsum(part for part, _ in parts)
    freedom = variance**2 / math.fsum(part**2 / degrees for part, degrees in parts)
    return math.sqrt(variance), _t_quantile(freedom) * math.sqrt(variance), freedom


def _t_quantile(freedom: float, level: float = CONFIDENCE) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + level / 2))
