"""Measures of pairs of raters by name: those of the catalog, equality, nearness, error and bias."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.catalog import STATISTICS, Build, no_disagreement, setup
from evenhand.stats.estimates import Estimate
from evenhand.stats.measures import Difference
from evenhand.stats.planning import labels_for_kappa, labels_for_share, labels_from_pilot
from evenhand.stats.resample import Interval, share_interval
from evenhand.stats.table import Floats, Level, Ratings

EVERY = "all"  #: every statistic that fits
_WITHIN = "within:"
_ALPHA = "alpha:"
_LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
#: All names; ``within:K`` takes any K.
NAMES = ("exact", "within:1", *STATISTICS, *(f"{_ALPHA}{level}" for level in _LEVELS), "mae", "bias")
#: Names in the order of a full table; alpha stands there at the scale's own level alone.
TABLE = ("exact", "within:1", *STATISTICS, "mae", "bias")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """How a named measure reads ratings.

    Attributes:
        name: Its name.
        title: What it is called.
        ratings: The ratings, at the level of measurement at which they are read.
        codes: What is computed from, shape (units, raters).
        build: What builds the measure from the codes of a pair.
        statistic: The name in `STATISTICS`; "" for others.
        share: Whether it is a share of units.
    """

    name: str
    title: str
    ratings: Ratings
    codes: Floats
    build: Build
    statistic: str = ""
    share: bool = False

    def at_an_end(self, value: float, codes: Floats, groups: int, level: float) -> Interval | None:
        """The interval at full agreement, or none at all, where every draw is the same; None for other values.

        Args:
            value: The value found.
            codes: The codes it was found from.
            groups: Independent items, two or more.
            level: Confidence level.
        """
        if self.share and (value <= 1e-12 or value >= 1 - 1e-12):
            found = share_interval(np.full(groups, float(value > 0.5)), level=level)
            return Interval(found.ci, None, "Wilson bound of the items", warnings=found.warnings)
        if self.statistic and STATISTICS[self.statistic].chance and value >= 1 - 1e-12:
            return no_disagreement(self.ratings, STATISTICS[self.statistic], codes, groups, level)
        return None


def require_statistic(name: str, more: Iterable[str] = ()) -> None:
    """Refuse a name that there is not.

    Args:
        name: A name of `NAMES`, or ``within:K`` with a number K >= 0.
        more: Other names that there are.

    Raises:
        UnknownNameError: no such statistic; lists close names.
    """
    if name not in NAMES and name not in more and _distance(name) is None:
        raise UnknownNameError("statistic", name, [*NAMES, *more])


def reading(ratings: Ratings, name: str) -> Reading:
    """How a measure reads these ratings.

    Args:
        ratings: Any raters.
        name: ``exact``; ``within:K``, K points or places of ordered labels; a name of `STATISTICS`; ``alpha:LEVEL``,
            Krippendorff's alpha at another level; ``mae``; ``bias``, first rater less second.

    Raises:
        UnknownNameError: no such statistic.
        StatisticError: the statistic does not fit the level of measurement.
    """
    require_statistic(name)
    if name == "exact":
        return Reading(name, "exact agreement", ratings, ratings.codes, _equal, share=True)
    if (k := _distance(name)) is not None:
        return _near(ratings, name, k)
    if name in ("mae", "bias"):
        title = "mean absolute difference" if name == "mae" else "mean difference"
        of = np.abs if name == "mae" else np.positive
        return Reading(name, title, ratings, ratings.numbers, lambda _: Difference(of))
    statistic, _, level = name.partition(":")
    title = STATISTICS[statistic].title
    if level:
        title, ratings = f"{title}, {level}", ratings.at(next(known for known in _LEVELS if known == level))
    return Reading(name, title, ratings, *setup(ratings, statistic), statistic)


def labels_needed(what: Reading, found: Estimate, width: float, *, single: bool) -> int:
    """Items with labels, those there are included, that the interval of a figure needs to be so wide.

    A share of one pair of raters and one label an item by Wilson's interval; agreement beyond chance without any
    disagreement by the variance of Cohen's kappa at the lower end of its interval; all else from the interval there is.

    Args:
        what: The figure's measure.
        found: The figure.
        width: Whole width wished.
        single: It is of one pair of raters.

    Raises:
        StatisticError: no width of this figure, or no interval to reckon from.
    """
    if what.share and single and found.value is not None and found.n == found.clusters:
        return labels_for_share(width, share=found.value, level=found.level)
    value = found.value
    kappa = what.statistic.startswith("kappa")
    if kappa and value is not None and value >= 1 - 1e-12 and found.low is not None and what.ratings.categories:
        known = what.ratings.codes[~np.isnan(what.ratings.codes)].astype(np.intp)
        counts = np.bincount(known, minlength=len(what.ratings.categories)) + 0.5  # each category may turn up
        shares = [float(share) for share in counts / counts.sum()]
        weights = STATISTICS[what.statistic].weights
        least = max(0.0, found.low)
        return labels_for_kappa(width, kappa=least, shares=shares, weights=weights, level=found.level)
    return labels_from_pilot(found, width)


def _distance(name: str) -> float | None:
    """The K of ``within:K``; None for other names."""
    if not name.startswith(_WITHIN):
        return None
    try:
        k = float(name.removeprefix(_WITHIN))
    except ValueError:
        return None
    return k if 0 <= k < math.inf else None


def _equal(_: Floats) -> Difference:
    return Difference(lambda gap: (gap == 0) * 1.0)


def _near(ratings: Ratings, name: str, k: float) -> Reading:
    title = f"agreement within {k:g}"
    if ratings.level == "nominal":
        raise StatisticError(f"{title}: labels without an order have no distance", hint="use exact")
    labels = any(isinstance(c, str) for c in ratings.categories)
    reach = k + (1e-9 * max(1.0, k) if k else 0.0)  # 0.3 - 0.2 is within 0.1

    def near(gap: Floats) -> Floats:
        return np.asarray(np.abs(gap) <= reach, dtype=np.float64)

    codes = ratings.codes if labels else ratings.numbers
    return Reading(name, title, ratings, codes, lambda _: Difference(near), share=True)
