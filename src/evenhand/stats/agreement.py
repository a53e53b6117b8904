"""How far raters agree on the same units: exactly, nearly, and beyond chance.

All functions take `Ratings` and give an `Estimate` whose interval is clustered by item. Units that lack the
ratings a measure needs are left out and counted in ``missing``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from evenhand.errors import StatisticError
from evenhand.scale import Value
from evenhand.stats.catalog import STANDARD, agreement, compact, left_out
from evenhand.stats.estimates import Estimate
from evenhand.stats.measures import Weights
from evenhand.stats.resample import Resampling, share_interval
from evenhand.stats.table import Floats, Level, Ratings


def exact_agreement(ratings: Ratings, *, level: float = 0.95) -> Estimate:
    """Share of pairs of raters that give the same rating, averaged over units.

    For two raters the share of units they agree on. It does not allow for chance: with two labels, or one label
    that is nearly always right, it is high for raters who guess.

    Args:
        ratings: Two or more raters; units with fewer than two ratings are left out.
        level: Confidence level.

    Returns:
        Estimate in 0..1 with a Wilson interval clustered by item, which is not empty at 0 and 1.
    """
    return _near(ratings, ratings.codes, 0.0, level, "exact agreement")


def agreement_within(ratings: Ratings, k: float, *, level: float = 0.95) -> Estimate:
    """Share of pairs of raters whose ratings differ by at most k, averaged over units.

    Args:
        ratings: Two or more raters. Distances are between numbers, or between positions of ordered labels.
        k: Largest difference that still counts as agreement, in points of the scale, >= 0.
        level: Confidence level.

    Returns:
        As `exact_agreement`.

    Raises:
        StatisticError: the level is nominal, or k is negative.
    """
    if ratings.level == "nominal":
        raise StatisticError("labels without an order have no distance", hint="use exact agreement")
    if k < 0:
        raise StatisticError(f"agreement within k needs k >= 0, not {k}")
    labels = any(isinstance(c, str) for c in ratings.categories)
    return _near(ratings, ratings.codes if labels else ratings.numbers, k, level, f"agreement within {k:g}")


def cohen_kappa(ratings: Ratings, *, weights: Weights = "none", resampling: Resampling = STANDARD) -> Estimate:
    """Cohen's kappa: agreement of two raters beyond what their own habits give by chance.

    ``1 - D_o / D_e``: the mean distance of the two ratings of a unit over the mean distance of any rating of
    the first to any rating of the second. The distance is 1 for different categories, or the difference
    ("linear") or squared difference ("quadratic") of positions (ordinal) or numbers (interval, ratio). Not for
    more than two raters; unstable where one category is rare.

    Args:
        ratings: Two raters.
        weights: "none", "linear" or "quadratic".
        resampling: How the bootstrap interval is made.

    Returns:
        Estimate in [-1, 1]; 1 = identical, 0 = chance. Undefined (value None) where both raters use one and the
        same category only, or share no unit. Where they never disagree the lower end of the interval is the
        kappa at Wilson's upper bound of the share of items they disagree on.

    Raises:
        StatisticError: not two raters; weights for a nominal scale of more than two categories; linear weights
            for more than 512 different numbers.

    Source: Cohen (1960, 1968); checked against scikit-learn's cohen_kappa_score.
    """
    names = {"none": "kappa", "linear": "kappa-linear", "quadratic": "kappa-quadratic"}
    return agreement(ratings, names[weights], resampling=resampling)


def scott_pi(ratings: Ratings, *, resampling: Resampling = STANDARD) -> Estimate:
    """Scott's pi: as Cohen's kappa, with chance from the pooled use of categories by both raters.

    Returns:
        As `cohen_kappa`, never above it.

    Source: Scott (1955); for two raters the same as Fleiss' kappa.
    """
    return agreement(ratings, "pi", resampling=resampling)


def fleiss_kappa(ratings: Ratings, *, resampling: Resampling = STANDARD) -> Estimate:
    """Fleiss' kappa: nominal agreement of any number of raters, chance from the pooled use of categories.

    Agreement is averaged over units with two or more ratings; the use of categories over all rated units, each
    with weight one. With the same number of ratings on every unit it is Fleiss' own. Raters need not be the
    same people on every unit.

    Returns:
        Estimate in [-1, 1]; degenerate cases as `cohen_kappa`.

    Source: Fleiss (1971); missing ratings as Gwet (2014), "Handbook of Inter-Rater Reliability"; checked against
        irrCAC.
    """
    return agreement(ratings, "fleiss", resampling=resampling)


def krippendorff_alpha(ratings: Ratings, *, level: Level | None = None, resampling: Resampling = STANDARD) -> Estimate:
    """Krippendorff's alpha: agreement of any number of raters at any level, missing ratings allowed.

    ``1 - D_o / D_e`` over pairable ratings: those of units with two or more. Distances are 0 / 1 (nominal),
    squared differences of mid-ranks (ordinal) or of numbers (interval), or squared differences over squared
    sums (ratio). Corrected for small samples: for two raters a little above Scott's pi.

    Args:
        ratings: Two or more raters.
        level: Level of measurement to read the ratings at; default their own.
        resampling: How the bootstrap interval is made: units are drawn, as they are, within their items.

    Returns:
        Estimate <= 1; 1 = no disagreement, 0 = chance, below 0 = less than chance. Undefined where all pairable
        ratings are the same; an interval without disagreement as in `cohen_kappa`.

    Raises:
        StatisticError: the ratings can't be read at the level, or more than 512 different values at a level
            other than interval.

    Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability"; checked against the package
        krippendorff and that paper's example.
    """
    return agreement(ratings if level is None else ratings.at(level), "alpha", resampling=resampling)


def gwet_ac(ratings: Ratings, *, weights: Weights = "none", resampling: Resampling = STANDARD) -> Estimate:
    """Gwet's AC1 (no weights) or AC2: agreement beyond chance that stays stable where one category prevails.

    Chance is that of raters who guess on hard units only: ``T / (q (q - 1)) * sum_k p_k (1 - p_k)`` with q
    categories (all legal ones, used or not), T the sum of agreement weights and p_k the mean share of category
    k. Agreement weights are 1 - distance / largest distance.

    Args:
        ratings: Two or more raters.
        weights: Distances as in `cohen_kappa`.
        resampling: How the bootstrap interval is made.

    Returns:
        Estimate <= 1. Undefined with one category; without disagreement as in `cohen_kappa`.

    Raises:
        StatisticError: as `cohen_kappa`; more than 512 different numbers.

    Source: Gwet (2008), "Computing inter-rater reliability and its variance in the presence of high agreement";
        checked against irrCAC.
    """
    names = {"none": "ac1", "linear": "ac2-linear", "quadratic": "ac2-quadratic"}
    return agreement(ratings, names[weights], resampling=resampling)


@dataclass(frozen=True, slots=True)
class Confusion:
    """How two raters' categories meet.

    Attributes:
        categories: Labels of rows and columns.
        counts: counts[i][j] units that the first rater calls category i and the second category j.
        missing: Reason -> units left out.
    """

    categories: tuple[Value, ...]
    counts: tuple[tuple[int, ...], ...]
    missing: dict[str, int]

    @property
    def n(self) -> int:
        """Units both rated."""
        return sum(map(sum, self.counts))

    @property
    def accuracy(self) -> float | None:
        """Share on the diagonal; None without units."""
        return sum(row[i] for i, row in enumerate(self.counts)) / self.n if self.n else None

    def precision(self, category: Value) -> float | None:
        """Of the units the first rater calls so, the share the second does too; None where there are none."""
        i = self.categories.index(category)
        return _share(self.counts[i][i], sum(self.counts[i]))

    def recall(self, category: Value) -> float | None:
        """Of the units the second rater calls so, the share the first does too; None where there are none.

        With the reference second this is the sensitivity for a category, and for the other category of two the
        specificity.
        """
        i = self.categories.index(category)
        return _share(self.counts[i][i], sum(row[i] for row in self.counts))

    def f1(self, category: Value) -> float | None:
        """Harmonic mean of precision and recall; None where neither rater uses the category."""
        i = self.categories.index(category)
        return _share(2 * self.counts[i][i], sum(self.counts[i]) + sum(row[i] for row in self.counts))

    def macro(self, figure: str) -> float | None:
        """Plain mean of "precision", "recall" or "f1" over categories; None where one of them is undefined."""
        of = {"precision": self.precision, "recall": self.recall, "f1": self.f1}[figure]
        each = [of(category) for category in self.categories]
        known = [value for value in each if value is not None]
        return sum(known) / len(known) if known and len(known) == len(each) else None


def confusion(ratings: Ratings) -> Confusion:
    """Confusion table of two raters: the first (the judge) in rows, the second (the reference) in columns.

    Raises:
        StatisticError: not two raters, or an interval or ratio scale.
    """
    if len(ratings.raters) != 2 or not ratings.categories:
        raise StatisticError("a confusion table needs two raters and categories")
    size = len(ratings.categories)
    both = ratings.codes[~np.isnan(ratings.codes).any(axis=1)].astype(np.intp)
    cells = np.bincount(both[:, 0] * size + both[:, 1], minlength=size * size).reshape(size, size)
    return Confusion(ratings.categories, tuple(tuple(row) for row in cells.tolist()), left_out(ratings))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _near(ratings: Ratings, numbers: Floats, k: float, level: float, title: str) -> Estimate:
    """Mean over units of the share of rater pairs within k."""
    if numbers.shape[1] < 2:
        raise StatisticError(f"{title} needs two raters or more, not {numbers.shape[1]}")
    met, pairs = np.zeros(len(numbers)), np.zeros(len(numbers))
    slack = 1e-9 * max(1.0, k) if k else 0.0  # 0.3 - 0.2 is within 0.1
    for a, b in combinations(range(numbers.shape[1]), 2):
        gap = np.abs(numbers[:, a] - numbers[:, b])
        met += gap <= k + slack
        pairs += ~np.isnan(gap)
    used = pairs > 0
    missing = left_out(ratings)
    if not used.any():
        return Estimate(None, missing=missing, method=title, level=level, reason="no unit has two ratings")
    found = share_interval(met[used] / pairs[used], compact(ratings.clusters[used]), level=level)
    return replace(found, missing=missing, method=found.method.replace("share", title))
