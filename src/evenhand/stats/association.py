"""How two raters' numbers go together, and how far apart they are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evenhand.errors import StatisticError
from evenhand.stats.catalog import STANDARD, agreement, compact, left_out
from evenhand.stats.estimates import Estimate
from evenhand.stats.resample import Resampling, mean_interval
from evenhand.stats.table import Floats, Ratings


def pearson(ratings: Ratings, *, resampling: Resampling = STANDARD) -> Estimate:
    """Pearson's correlation of two raters: how well a straight line takes one rater's numbers to the other's.

    It says nothing of a shift or a stretch: a judge two points too lenient throughout has correlation 1.

    Args:
        ratings: Two raters; ordered labels count as 0, 1, 2, ...
        resampling: How the bootstrap interval is made.

    Returns:
        Estimate in [-1, 1]. Undefined where a rater gave one value throughout; no interval where the points lie
        on a line.

    Raises:
        StatisticError: not two raters, or more than two labels without an order.

    Source: checked against scipy.stats.pearsonr.
    """
    return agreement(ratings, "pearson", resampling=resampling)


def spearman(ratings: Ratings, *, resampling: Resampling = STANDARD) -> Estimate:
    """Spearman's rho: Pearson's correlation of mid-ranks; for ordinal scales, blind to any monotone change.

    Args, Returns and Raises as `pearson`.

    Source: checked against scipy.stats.spearmanr.
    """
    return agreement(ratings, "spearman", resampling=resampling)


def kendall(ratings: Ratings, *, resampling: Resampling = STANDARD) -> Estimate:
    """Kendall's tau-b: concordant less discordant pairs of units, over the pairs each rater tells apart.

    Args, Returns and Raises as `pearson`. With more than 2,000 different pairs of values each draw sorts anew,
    which is slow, and the interval is the percentile one.

    Source: Kendall (1945); checked against scipy.stats.kendalltau.
    """
    return agreement(ratings, "kendall", resampling=resampling)


def mean_absolute_error(ratings: Ratings, *, level: float = 0.95) -> Estimate:
    """Mean absolute difference of two raters' numbers, in points of the scale.

    Returns:
        Estimate >= 0 with a t interval clustered by item; no interval where all differences are the same.

    Raises:
        StatisticError: not two raters, or labels that are no numbers.
    """
    return _difference(ratings, np.abs, level, "mean absolute difference", low=0.0)


def bias(ratings: Ratings, *, level: float = 0.95) -> Estimate:
    """Mean signed difference, first rater less second, in points of the scale: above 0 the first is lenient.

    Returns and Raises as `mean_absolute_error`.
    """
    return _difference(ratings, lambda gap: gap, level, "mean difference", low=-np.inf)


def _difference(ratings: Ratings, of: Callable[[Floats], Floats], level: float, title: str, low: float) -> Estimate:
    if len(ratings.raters) != 2:
        raise StatisticError(f"the {title} is of two raters, not {len(ratings.raters)}")
    numbers = ratings.numbers
    gap = of(numbers[:, 0] - numbers[:, 1])
    used = ~np.isnan(gap)
    missing = left_out(ratings)
    if not used.any():
        return Estimate(None, missing=missing, method=title, level=level, reason="no unit has two ratings")
    found = mean_interval(gap[used], compact(ratings.clusters[used]), low=low, level=level)
    return replace(found, missing=missing, method=f"{title}, t interval clustered by item")
