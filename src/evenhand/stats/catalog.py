"""The statistics of agreement by name: what each takes, how it is set up, and the estimate it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.estimates import Estimate
from evenhand.stats.measures import Alpha, Gwet, IntervalAlpha, Kappa, Measure, Moments, Ranked, Weights, evaluate
from evenhand.stats.resample import Interval, Resampling, bootstrap_rows, share_interval
from evenhand.stats.table import Floats, Ints, Ratings

MAX_POINTS = 512  #: different values beyond which a table of them is of no use
MAX_PAIRS = 2000  #: different pairs of values beyond which Kendall's tau is computed draw by draw
PREVALENT = 0.9  #: share of one category from which agreement beyond chance is called unstable
STANDARD = Resampling()

Build = Callable[[Floats], Measure]  # codes of the units that count -> the measure


@dataclass(frozen=True, slots=True)
class Statistic:
    """One entry of `STATISTICS`.

    Attributes:
        title: What it is called.
        pair: Whether it is of exactly two raters; otherwise of two or more.
        weights: Distances between categories.
        chance: Whether it is agreement beyond chance (1 = no disagreement), not a correlation.
        single: Whether units with one rating count too, for how often categories are used.
    """

    title: str
    pair: bool = False
    weights: Weights = "none"
    chance: bool = True
    single: bool = False


STATISTICS = {
    "kappa": Statistic("Cohen's kappa", pair=True),
    "kappa-linear": Statistic("Cohen's kappa, linear weights", pair=True, weights="linear"),
    "kappa-quadratic": Statistic("Cohen's kappa, quadratic weights", pair=True, weights="quadratic"),
    "pi": Statistic("Scott's pi", pair=True),
    "fleiss": Statistic("Fleiss' kappa", single=True),
    "alpha": Statistic("Krippendorff's alpha"),
    "ac1": Statistic("Gwet's AC1", single=True),
    "ac2-linear": Statistic("Gwet's AC2, linear weights", weights="linear", single=True),
    "ac2-quadratic": Statistic("Gwet's AC2, quadratic weights", weights="quadratic", single=True),
    "pearson": Statistic("Pearson's r", pair=True, chance=False),
    "spearman": Statistic("Spearman's rho", pair=True, chance=False),
    "kendall": Statistic("Kendall's tau-b", pair=True, chance=False),
}


def agreement(ratings: Ratings, statistic: str, *, resampling: Resampling = STANDARD) -> Estimate:
    """A statistic by its name in `STATISTICS`; the modules agreement and association say what each one is.

    Raises:
        UnknownNameError: no such statistic.
        StatisticError: the statistic does not fit the number of raters or the level of measurement.
    """
    codes, build = setup(ratings, statistic)
    what = STATISTICS[statistic]
    raters = codes.shape[1]
    if raters < 2 or (what.pair and raters != 2):
        raise StatisticError(f"{what.title} is of two raters{'' if what.pair else ' or more'}, not {raters}")
    rated = (~np.isnan(codes)).sum(axis=1)
    n, missing, level = int((rated >= 2).sum()), left_out(ratings), resampling.level
    if n == 0:
        return Estimate(None, missing=missing, method=what.title, level=level, reason="no unit has two ratings")
    kept = rated >= (1 if what.single else 2)
    codes, clusters = codes[kept], compact(ratings.clusters[kept])
    groups = int(clusters.max()) + 1
    measure = build(codes)
    if isinstance(measure, Ranked) and measure.kendall and len(measure.pairs) > MAX_PAIRS:
        value, interval = _kendall(codes, clusters, resampling)
    else:
        value, interval = evaluate(measure, codes, clusters, resampling)
    if np.isnan(value):
        reason = "no disagreement is possible by chance" if what.chance else "a rater gave one value throughout"
        return Estimate(None, None, n, groups, missing, what.title, level, f"{reason}: undefined")
    if what.chance and value >= 1 - 1e-12 and groups > 1 and resampling.draws:
        interval = no_disagreement(ratings, what, codes, groups, level)
    method = f"{what.title}, {interval.method}" if interval.method else what.title
    warnings = interval.warnings + (prevalence(ratings) if what.chance and not statistic.startswith("ac") else ())
    value = min(1.0, max(-1.0, value)) if not what.chance else min(1.0, value)
    return Estimate(value, interval.ci, n, groups, missing, method, level, interval.reason, warnings, interval.se)


def setup(ratings: Ratings, statistic: str) -> tuple[Floats, Build]:
    """Codes of ratings as a statistic wants them, and what builds its measure from (some of) these codes.

    Raises:
        UnknownNameError: no such statistic.
        StatisticError: the statistic does not fit the level of measurement.
    """
    if statistic not in STATISTICS:
        raise UnknownNameError("statistic", statistic, STATISTICS)
    what = STATISTICS[statistic]
    if not what.chance:
        return _for_correlation(ratings, statistic)
    if what.weights != "none" and ratings.level == "nominal" and len(ratings.categories) > 2:
        raise StatisticError(f"{what.title}: labels without an order have no distance", hint="use no weights")
    if statistic == "alpha" and ratings.level == "interval":
        centre = float(np.nanmean(ratings.codes)) if not np.isnan(ratings.codes).all() else 0.0
        return ratings.codes, lambda _: IntervalAlpha(centre)
    points = _points(ratings)
    if len(points) > MAX_POINTS:
        if statistic == "kappa-quadratic":
            return ratings.codes, lambda codes: Moments.of(codes, concordance=True)
        raise StatisticError(
            f"{what.title}: {len(points)} different values are more than {MAX_POINTS}",
            hint="round the values, or use alpha at level interval or kappa-quadratic",
        )
    codes = ratings.codes if ratings.categories else _places(ratings.codes, points)
    return codes, _with_points(ratings, statistic, points)


def _with_points(ratings: Ratings, statistic: str, points: Floats) -> Build:
    weights, size = STATISTICS[statistic].weights, len(points)
    if statistic.startswith("kappa"):
        return lambda _: Kappa(points, weights)
    if statistic == "pi":
        return lambda _: Kappa(points, pooled=True)
    if statistic == "alpha":
        if ratings.level == "ordinal":
            return lambda codes: Alpha.ordinal(codes, size)
        return lambda _: Alpha.ratio(points) if ratings.level == "ratio" else Alpha.nominal(size)
    gap = np.abs(points[:, None] - points)
    far = {"none": (gap > 0) * 1.0, "linear": gap, "quadratic": gap**2}[weights]
    return lambda _: Gwet(1 - far / max(far.max(initial=0.0), 1e-300), fleiss=statistic == "fleiss")


def _for_correlation(ratings: Ratings, statistic: str) -> tuple[Floats, Build]:
    title = STATISTICS[statistic].title
    if ratings.level == "nominal" and len(ratings.categories) > 2:
        raise StatisticError(f"{title}: labels without an order have no correlation", hint="use kappa")
    labels = any(isinstance(c, str) for c in ratings.categories)
    codes = ratings.codes if labels else ratings.numbers
    if statistic == "pearson":
        return codes, Moments.of
    return codes, lambda some: Ranked.of(some, kendall=statistic == "kendall")


def _points(ratings: Ratings) -> Floats:
    """The numbers between which distances are taken: positions of categories, or the values that occur."""
    if ratings.categories:
        return np.arange(len(ratings.categories), dtype=np.float64)
    return np.unique(ratings.codes[~np.isnan(ratings.codes)])


def _places(codes: Floats, points: Floats) -> Floats:
    return np.where(np.isnan(codes), np.nan, np.searchsorted(points, codes))


def _kendall(codes: Floats, clusters: Ints, resampling: Resampling) -> tuple[float, Interval]:
    """Kendall's tau-b of many different values: sorted anew for each draw."""
    from scipy.stats import kendalltau  # slow to import, and seldom needed

    def tau(rows: Ints) -> float:
        return float(kendalltau(codes[rows, 0], codes[rows, 1], method="asymptotic").statistic)

    value = tau(np.arange(len(codes)))
    if np.isnan(value):
        return value, Interval(None)
    draws, seed, level = resampling.draws, resampling.seed, resampling.level
    return value, bootstrap_rows(clusters, tau, draws=draws, seed=seed, level=level)


def no_disagreement(ratings: Ratings, what: Statistic, codes: Floats, groups: int, level: float) -> Interval:
    """Interval of a measure at 1, where every draw is 1 too: Wilson's bound of the items that disagree.

    Nominal disagreement is complete; where distances are graded, one as large as chance gives is supposed.
    """
    bound = share_interval(np.zeros(groups), level=level)
    assert bound.ci is not None
    chance = 1.0
    if what.weights == "none" and (what.title != "Krippendorff's alpha" or ratings.level == "nominal"):
        size = max(2, len(ratings.categories))
        used = np.unique(codes[~np.isnan(codes)], return_counts=True)[1]
        same = float(((used / used.sum()) ** 2).sum())
        chance = 1 - (1 - same) / (size - 1) if what.title == "Gwet's AC1" else 1 - same
    method = "no disagreement seen: Wilson bound of the items that disagree"
    return Interval((max(-1.0, 1 - bound.ci[1] / chance), 1.0), None, method, warnings=bound.warnings)


def prevalence(ratings: Ratings) -> tuple[str, ...]:
    """The warning that one value has 90 % of all ratings or more; empty otherwise."""
    known = ratings.codes[~np.isnan(ratings.codes)]
    values, counts = np.unique(known, return_counts=True)
    if not len(known) or counts.max() < PREVALENT * len(known):
        return ()
    top = values[counts.argmax()]
    told = repr(ratings.categories[int(top)]) if ratings.categories else f"{top:g}"
    share = f"{counts.max() / len(known):.0%} of the ratings are {told}"
    return (f"{share}: agreement beyond chance is unstable and may be low; see exact agreement and AC1 too",)


def left_out(ratings: Ratings) -> dict[str, int]:
    """Why units have no pair of ratings -> how many; empty where all have one."""
    gone = np.isnan(ratings.codes)
    if gone.shape[1] != 2:
        short = int(((~gone).sum(axis=1) < 2).sum())
        return {"fewer than two ratings": short} if short else {}
    a, b = gone.T
    first, second = ratings.raters
    counts = {
        f"no rating by {first}": int((a & ~b).sum()),
        f"no rating by {second}": int((b & ~a).sum()),
        f"no rating by {first} or {second}": int((a & b).sum()),
    }
    return {reason: count for reason, count in counts.items() if count}


def compact(clusters: Ints) -> Ints:
    """Cluster ids renumbered 0..g-1 after some units were left out."""
    return np.unique(clusters, return_inverse=True)[1].astype(np.intp)
