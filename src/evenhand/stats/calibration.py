"""Figures corrected by a curve from judge values to labels, fitted on the labelled items; its error by bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from evenhand.stats.correction import Sample, power_tuning
from evenhand.stats.estimates import Estimate
from evenhand.stats.resample import bootstrap_rows
from evenhand.stats.table import Floats, Ints

DRAWS = 1000
FOLDS = 5
_OUTSIDE = 0.05  #: share of the judged that may lie outside the labelled judge values


def isotonic_mean(
    sample: Sample, *, low: float = -math.inf, high: float = math.inf, draws: int = DRAWS, seed: int = 0
) -> Estimate:
    """Mean over all judged items of the label that an isotonic curve gives for the judge's value.

    The curve is the least-squares rising fit of labels on judge values, straight between the values that occur. It
    takes the judge to be right about order on average; where it is not, the curve goes flat and the figure is that of
    the labels. The bootstrap draws items, and fits anew in each draw.

    Args:
        sample: Judged and labelled units; labels are of a random sample.
        low, high: Ends of the scale.
        draws, seed: Of the bootstrap.

    Returns:
        Estimate; n and clusters are those judged. Refused with fewer than 20 labelled items, and where more than 5 %
        of the judged lie outside the range of labelled judge values, for which the curve says nothing. No interval
        where nothing varies. Where all units are labelled, the plain mean of the labels with its t interval.

    Source: Barlow, Bartholomew, Bremner and Brunk (1972), "Statistical Inference under Order Restrictions"; the fit
        is scipy.optimize.isotonic_regression.
    """

    def statistic(rows: Ints) -> float:
        said, true = sample.judge[rows], sample.labels[rows]
        known = ~np.isnan(true)
        return float(_calibrated(said[known], true[known], said).mean()) if known.any() else math.nan

    return _estimate(sample, statistic, "isotonic calibration", (low, high), draws, seed)


def two_stage_mean(
    sample: Sample,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    folds: int = FOLDS,
    draws: int = DRAWS,
    seed: int = 0,
) -> Estimate:
    """Prediction-powered mean of a judge that is calibrated first; no label corrects a curve it was fitted to.

    An isotonic curve is fitted on all but one fold of the labelled items, and gives the values of that fold; items
    without label get the mean over the curves. Then the mean is as in `prediction_powered_mean`, with lambda. The
    bootstrap draws items, and does all stages anew in each draw.

    Args:
        sample: Judged and labelled units; labels are of a random sample.
        low, high: Ends of the scale.
        folds: Number of folds, at least 2.
        draws, seed: Of the bootstrap; the seed makes the folds too.

    Returns:
        As `isotonic_mean`.

    Source: Zrnic and Candès (2024), "Cross-Prediction-Powered Inference"; power tuning as PPI++.
    """
    fold = _folds(sample, folds, seed)

    def statistic(rows: Ints) -> float:
        said, true, place = sample.judge[rows], sample.labels[rows], fold[rows]
        known = ~np.isnan(true)
        if not known.any():
            return math.nan
        if known.all():
            return float(true.mean())
        curve, rest = np.zeros(len(rows)), ~known
        for k in range(folds):
            others, own = known & (place != k), known & (place == k)
            if not others.any():
                return math.nan
            found = _calibrated(said[others], true[others], said[own | rest])
            inside = own[own | rest]
            curve[own] = found[inside]
            curve[rest] += found[~inside] / folds
        weight = power_tuning(replace(sample, judge=curve, labels=true, clusters=np.arange(len(rows))))
        return float(true[known].mean()) + weight * float(curve[rest].mean() - curve[known].mean())

    return _estimate(sample, statistic, f"isotonic calibration, {folds} folds, and PPI++", (low, high), draws, seed)


def _estimate(
    sample: Sample,
    statistic: Callable[[Ints], float],
    method: str,
    bounds: tuple[float, float],
    draws: int,
    seed: int,
) -> Estimate:
    if (refused := sample.refused(method) or _uncovered(sample, method)) is not None:
        return refused
    if (plain := sample.classical(*bounds)) is not None:
        return plain
    value = statistic(np.arange(len(sample.judge)))
    found = bootstrap_rows(np.unique(sample.clusters, return_inverse=True)[1], statistic, draws=draws, seed=seed)
    told = sample.about(method=f"{method}; {found.method}")
    if (outside := _outside(sample)) > 0:
        told["warnings"] += (f"{outside:.1%} of the judged lie outside the labelled judge values",)
    value = min(bounds[1], max(bounds[0], value))
    if found.ci is None:
        return Estimate(value, reason=found.reason, **told)
    low, high = (min(bounds[1], max(bounds[0], end)) for end in found.ci)
    return Estimate(value, (min(low, value), max(high, value)), se=found.se, **told)


def _outside(sample: Sample) -> float:
    known = sample.judge[sample.labelled]
    return float(np.mean((sample.judge < known.min()) | (sample.judge > known.max())))


def _uncovered(sample: Sample, method: str) -> Estimate | None:
    share = _outside(sample)
    if share <= _OUTSIDE:
        return None
    known = sample.judge[sample.labelled]
    reason = (
        f"{share:.1%} of the judged lie outside the judge values that are labelled ({known.min():g} to {known.max():g})"
    )
    return Estimate(None, method=method, reason=reason, **sample.about())


def _calibrated(said: Floats, true: Floats, at: Floats) -> Floats:
    """The isotonic fit of true on said, at other values of the judge; flat outside those it was fitted to."""
    from scipy.optimize import isotonic_regression

    levels, place = np.unique(said, return_inverse=True)
    weights = np.bincount(place).astype(np.float64)
    means = np.bincount(place, weights=true) / weights
    found: Floats = np.interp(at, levels, isotonic_regression(means, weights=weights).x)
    return found


def _folds(sample: Sample, folds: int, seed: int) -> Ints:
    """A fold for each unit: whole clusters, the labelled ones spread evenly."""
    labelled = np.unique(sample.clusters[sample.labelled])
    rest = np.setdiff1d(sample.clusters, labelled)
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(labelled), rng.permutation(rest)])
    fold = dict(zip(order.tolist(), (np.arange(len(order)) % folds).tolist(), strict=True))
    return np.array([fold[own] for own in sample.clusters.tolist()], dtype=np.intp)
