"""Means with intervals that respect repeated looks at the same item, in one pass and constant memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evenhand.stats.estimates import CONFIDENCE, Estimate, few


class ClusteredMean:
    """Mean of observations that come in clusters, with a cluster-robust interval.

    Feed one cluster at a time with `add`. The estimand is the mean over all observations; its standard
    error treats clusters, not observations, as independent: ``sqrt(G/(G-1) * sum_g (S_g - n_g m)^2) / N``
    with cluster sums ``S_g`` and sizes ``n_g``. The interval uses Student's t with G - 1 degrees of
    freedom, cut to the given bounds. With one observation per cluster it is the ordinary t interval.

    Args:
        low, high: Bounds the true mean can't pass, None for none.

    Source: Cameron and Miller (2015), "A Practitioner's Guide to Cluster-Robust Inference", section II;
        checked against scipy.stats.ttest_1samp for clusters of one.
    """

    def __init__(self, *, low: float | None = None, high: float | None = None) -> None:
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
        total = math.fsum(v - self._shift for v in values)
        size = len(values)
        self._clusters += 1
        self._n += size
        self._sum += total
        self._sum_squares += total * total
        self._sum_cross += total * size
        self._size_squares += size * size

    def estimate(self) -> Estimate:
        """The mean so far."""
        if self._n == 0 or self._shift is None:
            return Estimate(None, reason="nothing scored")
        centred = self._sum / self._n
        mean = centred + self._shift
        groups = self._clusters
        if groups < 2:
            return Estimate(mean, n=self._n, clusters=groups, reason="one item: no interval")
        spread = self._sum_squares - 2 * centred * self._sum_cross + centred * centred * self._size_squares
        if spread <= 1e-12 * max(1.0, self._sum_squares):
            return Estimate(mean, n=self._n, clusters=groups, reason="all values equal: no interval")
        error = math.sqrt(groups / (groups - 1) * spread) / self._n
        reach = _t_quantile(groups - 1) * error
        low, high = self._bounds
        return Estimate(
            mean,
            (max(low, mean - reach), min(high, mean + reach)),
            self._n,
            groups,
            method="mean, t interval clustered by item",
            warnings=few(groups),
            se=error,
        )


def joint_error(parts: Sequence[tuple[float, int]]) -> tuple[float, float, float]:
    """Standard error of a sum of independent means, the reach of its interval to either side, degrees of freedom.

    Args:
        parts: Variance (> 0 in sum) and degrees of freedom of each mean.

    Source: Satterthwaite (1946), "An approximate distribution of estimates of variance components".
    """
    variance = math.fsum(part for part, _ in parts)
    freedom = variance**2 / math.fsum(part**2 / degrees for part, degrees in parts)
    return math.sqrt(variance), _t_quantile(freedom) * math.sqrt(variance), freedom


def _t_quantile(freedom: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 0.5 + CONFIDENCE / 2))
