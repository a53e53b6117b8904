"""The true share of a class from a judge that errs in both directions: Rogan and Gladen's correction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from evenhand.errors import StatisticError
from evenhand.stats.correction import CLASSICAL, Sample, cluster_ids
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.resample import mean_interval, share_interval
from evenhand.stats.table import Floats, Ints

LEAST_CLASS = 5  #: labelled items that each class needs for its error rate


def adjusted_prevalence(
    apparent: float, n: float, sensitivity: float, n_sensitivity: float, specificity: float, n_specificity: float
) -> Estimate:
    """True share of a class from a test that errs, its error rates being estimates themselves.

    ``(apparent + specificity - 1) / (sensitivity + specificity - 1)``, cut to 0..1; the interval carries the
    uncertainty of all three shares, each with added observations.

    Args:
        apparent, n: Share that the judge calls positive, and of how many.
        sensitivity, n_sensitivity: Share of true positives that it calls so, and of how many.
        specificity, n_specificity: Share of true negatives that it calls so, and of how many.

    Returns:
        Refused where a class has fewer than 5 labels, and where sensitivity + specificity is not above 1, or its
        interval reaches down to 1: such a judge can't tell the classes apart, and the formula divides by nearly 0.

    Source: Rogan and Gladen (1978), "Estimating prevalence from the results of a screening test"; Lang and Reiczigel
        (2014), "Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity",
        equations 2, 4, 6, 7, 16 and 17.
    """
    method = "Rogan-Gladen, Lang-Reiczigel interval"
    for name, size in (("positive", n_sensitivity), ("negative", n_specificity)):
        if size < LEAST_CLASS:
            return Estimate(None, method=method, reason=f"{size:g} labels are {name}, {LEAST_CLASS} needed")
    z = float(ndtri(0.5 + CONFIDENCE / 2))
    youden = sensitivity + specificity - 1
    (p, vp), (se, vse), (sp, vsp) = (
        _agresti(share, size, extra)
        for share, size, extra in (
            (apparent, n, z * z),
            (sensitivity, n_sensitivity, 2.0),
            (specificity, n_specificity, 2.0),
        )
    )
    told = f"sensitivity {sensitivity:.3f} + specificity {specificity:.3f}"
    if youden <= 0 or se + sp - 1 - z * math.sqrt(vse + vsp) <= 0:
        clearly = "" if youden <= 0 else "clearly "
        return Estimate(None, method=method, reason=f"{told} is not {clearly}above 1: the judge can't be corrected")
    raw = (apparent - (1 - specificity)) / youden
    value = min(1.0, max(0.0, raw))
    centre = (p + sp - 1) / (se + sp - 1)
    error = math.sqrt(vp + centre**2 * vse + (1 - centre) ** 2 * vsp) / (se + sp - 1)
    centre += 2 * z * z * (centre * vse - (1 - centre) * vsp)
    low, high = (min(1.0, max(0.0, end)) for end in (centre - z * error, centre + z * error))
    warnings = () if raw == value else (f"the corrected share is {raw:.3f} before it is cut to 0..1",)
    return Estimate(
        value, (min(low, value), max(high, value)), round(n), method=f"{method}; {told}", warnings=warnings, se=error
    )


def rogan_gladen(sample: Sample) -> Estimate:
    """Share of positives that people would find among all items, from a judge's yes and no.

    Sensitivity and specificity come from the labelled units, the apparent share from all judged ones. Labels need not
    be a random sample of the items if they are one within each class. Clusters enter by their effective sizes.

    Args:
        sample: Values and labels 0 or 1.

    Returns:
        As `adjusted_prevalence`; refused with fewer than 20 labelled items too. Where all units are labelled, the
        share of positive labels with a Wilson interval. The interval is wider than need be where a large part of the
        units is labelled.

    Raises:
        StatisticError: a value or label that is neither 0 nor 1.
    """
    if (refused := sample.refused("Rogan-Gladen")) is not None:
        return refused
    labelled = sample.labelled
    if not np.isin(sample.judge, (0.0, 1.0)).all() or not np.isin(sample.labels[labelled], (0.0, 1.0)).all():
        raise StatisticError("Rogan-Gladen needs two values, 0 and 1")
    if labelled.all():
        found = share_interval(sample.labels, cluster_ids(sample.clusters))
        return replace(found, method=f"{CLASSICAL}, Wilson interval clustered by item")
    positive = labelled & (sample.labels == 1.0)
    negative = labelled & (sample.labels == 0.0)
    sizes = []
    for values, chosen in ((sample.judge, slice(None)), (sample.judge, positive), (1 - sample.judge, negative)):
        sizes += _effective(values[chosen], sample.clusters[chosen])
    found = adjusted_prevalence(*sizes)
    about = sample.about()
    return replace(found, **{**about, "warnings": (*found.warnings, *about["warnings"])})


def _agresti(share: float, n: float, extra: float) -> tuple[float, float]:
    """A share and its variance with `extra` observations added, half of them positive."""
    moved = (share * n + extra / 2) / (n + extra)
    return moved, moved * (1 - moved) / (n + extra)


def _effective(values: Floats, clusters: Ints) -> list[float]:
    """A share and the number of independent observations that it is worth."""
    n = len(values)
    if n < 2:
        return [float(values.mean()) if n else 0.0, float(n)]
    found = mean_interval(values, cluster_ids(clusters))
    share = found.value or 0.0
    if found.clusters == n:
        return [share, float(n)]
    if found.se is None:
        return [share, float(found.clusters)]
    return [share, min(float(n), share * (1 - share) / found.se**2 + 1)]
