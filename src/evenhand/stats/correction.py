"""Figures corrected for a judge's errors: all items judged, some of them labelled by people.

Labels are taken for a random sample of the judged items. Sample -> Estimate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import StatisticError
from evenhand.stats.estimates import FEW, Estimate
from evenhand.stats.means import joint_error
from evenhand.stats.resample import mean_interval
from evenhand.stats.table import Floats, Ints

LEAST = 20  #: labelled items (clusters) under which nothing is corrected
CLASSICAL = "mean of the labels, as all items are labelled"


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Units that a judge rated, some of them labelled.

    Attributes:
        judge: What the judge said, shape (n,).
        labels: What people said, shape (n,); NaN where a unit has no label.
        clusters: Ids, shape (n,): units of one cluster (an item) are not independent.
        questions: Ids, shape (n,): what each unit answers, to pair two systems by.
        left_out: Labels whose unit has no value of the judge.
    """

    judge: Floats
    labels: Floats
    clusters: Ints
    questions: Ints
    left_out: int = 0

    @classmethod
    def of(
        cls,
        judge: ArrayLike,
        labels: ArrayLike,
        clusters: ArrayLike | None = None,
        questions: ArrayLike | None = None,
    ) -> Sample:
        """A sample from arrays of one length; units without a value of the judge (NaN) are left out.

        Every unit is its own cluster, and every cluster a question, where nothing else is said.

        Raises:
            StatisticError: arrays of unlike length.
        """
        said, true = np.asarray(judge, dtype=np.float64), np.asarray(labels, dtype=np.float64)
        ids = np.arange(said.size) if clusters is None else np.asarray(clusters)
        asked = ids if questions is None else np.asarray(questions)
        if not said.shape == true.shape == ids.shape == asked.shape or said.ndim != 1:
            raise StatisticError(f"judge, labels and clusters differ in length: {said.size}, {true.size}, {ids.size}")
        there = ~np.isnan(said)
        lost = int(np.count_nonzero(~np.isnan(true[~there])))
        return cls(said[there], true[there], ids[there].astype(np.intp), asked[there].astype(np.intp), lost)

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which units have a label."""
        return ~np.isnan(self.labels)

    @property
    def items(self) -> int:
        """Number of clusters."""
        return len(np.unique(self.clusters))

    @property
    def labelled_items(self) -> int:
        """Number of clusters with a label."""
        return len(np.unique(self.clusters[self.labelled]))

    def about(self, **told: Any) -> dict[str, Any]:
        """What every estimate of this sample says: n and clusters of the judged, labels left out, few labels."""
        few = self.labelled_items
        warnings = (f"fewer than {FEW} labelled items: the interval is rough",) if LEAST <= few < FEW else ()
        missing = {"labelled, not judged": self.left_out} if self.left_out else {}
        return {"n": len(self.judge), "clusters": self.items, "missing": missing, "warnings": warnings, **told}

    def refused(self, method: str) -> Estimate | None:
        """No estimate where too little is labelled; None where there is enough, or nothing left to correct."""
        found = self.labelled_items
        if not len(self.judge):
            reason = "nothing judged"
        elif not found:
            reason = "nothing labelled"
        elif found < LEAST and not self.labelled.all():
            reason = f"{found} labelled items, {LEAST} needed"
        else:
            return None
        return Estimate(None, method=method, reason=reason, **self.about())

    def classical(self, low: float, high: float) -> Estimate | None:
        """The mean of the labels where every unit has one; None otherwise."""
        if not self.labelled.all():
            return None
        found = mean_interval(self.labels, cluster_ids(self.clusters), low=low, high=high)
        return replace(found, method=f"{CLASSICAL}, t interval clustered by item")


@dataclass(frozen=True, slots=True, eq=False)
class _Powered:
    """A prediction-powered mean.

    Attributes:
        value: The mean.
        weight: Lambda, how far the judge is followed.
        influence: What each cluster adds to the error, shape (clusters,).
        labelled: Which clusters have a label.
    """

    value: float
    weight: float
    influence: Floats
    labelled: NDArray[np.bool_]


def prediction_powered_mean(
    sample: Sample, *, low: float = -math.inf, high: float = math.inf, step: float = 0.0
) -> Estimate:
    """Mean of what people would say of all items, from the judge on all and people on some (PPI++).

    ``mean(Y) + lambda (mean of f, not labelled - mean of f, labelled)`` for labels Y and the judge's values f. Lambda
    is tuned for the least variance and clipped to [0, 1]: a judge that tells nothing is not followed, and the figure
    is the mean of the labels. The variance is cluster-robust, the interval Student's t with Satterthwaite's degrees
    of freedom. Not for labels chosen by what the judge, or anyone, thought of the items.

    Args:
        sample: Judged and labelled units.
        low, high: Ends of the scale.
        step: Distance of neighbouring points of the scale, 0 for a smooth one. The error counts as if one labelled
            item more disagreed by a step: a good judge may not err at all on few items.

    Returns:
        Estimate; n and clusters are those judged. Refused with fewer than 20 labelled items; no interval where
        nothing varies. Where all units are labelled, the plain mean of the labels with its t interval.

    Source: Angelopoulos, Duchi and Zrnic (2023), "PPI++: Efficient Prediction-Powered Inference", section 6; value
        and lambda checked against ppi_py 0.2.3.
    """
    method = "prediction-powered mean (PPI++)"
    if (refused := sample.refused(method)) is not None:
        return refused
    if (plain := sample.classical(low, high)) is not None:
        return plain
    ids = cluster_ids(sample.clusters)
    return _interval(_powered(sample, ids, int(ids.max()) + 1), sample, (low, high), step, method)


def prediction_powered_difference(
    a: Sample, b: Sample, *, low: float = -math.inf, high: float = math.inf, step: float = 0.0
) -> Estimate:
    """Mean of system B less mean of system A, each corrected, paired by question (PPI++).

    Where each system answers a question once, with labels of both answers or of neither, the prediction-powered mean
    of the differences. Otherwise the difference of the two prediction-powered means, its error by clusters: what two
    answers of one question share cancels out.

    Args:
        a, b: Units of the two systems; questions and clusters have the same ids in both.
        low, high, step: As for `prediction_powered_mean`, of the scores.

    Returns:
        As `prediction_powered_mean`; refused where either system lacks labels.

    Source: as `prediction_powered_mean`.
    """
    method = "difference of prediction-powered means (PPI++)"
    for sample in (a, b):
        if (refused := sample.refused(method)) is not None:
            return refused
    reach = high - low
    paired = _paired(a, b)
    if paired is not None and paired[0].labelled.sum() == a.labelled.sum() == b.labelled.sum():
        x, y = paired
        gap = replace(y, judge=y.judge - x.judge, labels=y.labels - x.labels)
        found = prediction_powered_mean(gap, low=-reach, high=reach, step=step)
        return replace(found, method=f"{found.method}, paired by question")
    both = Sample(
        np.concatenate([a.judge, b.judge]),
        np.concatenate([a.labels, b.labels]),
        np.concatenate([a.clusters, b.clusters]),
        np.concatenate([a.questions, b.questions]),
        a.left_out + b.left_out,
    )
    ids = cluster_ids(both.clusters)
    groups, size = int(ids.max()) + 1, len(a.judge)
    first, second = _powered(a, ids[:size], groups), _powered(b, ids[size:], groups)
    joined = _Powered(
        second.value - first.value,
        max(first.weight, second.weight),
        second.influence - first.influence,
        first.labelled | second.labelled,
    )
    return _interval(joined, both, (-reach, reach), step, method)


def prediction_powered_win_rate(a: Sample, b: Sample) -> Estimate:
    """Share of questions on which B is above A, a tie counting half, corrected (PPI++).

    Args:
        a, b: Units of the two systems; questions and clusters have the same ids in both. A question counts as judged
            with values of both systems, and as labelled with labels of both.

    Returns:
        As `prediction_powered_mean`, in 0..1.

    Raises:
        StatisticError: a system has several units of one question.
    """
    paired = _paired(a, b)
    if paired is None:
        raise StatisticError("a win rate is of questions that each system answered once")
    x, y = paired
    if not len(x.judge):
        return Estimate(None, reason="no question was judged of both")
    judge, labels = (np.sign(getattr(y, n) - getattr(x, n)) / 2 + 0.5 for n in ("judge", "labels"))
    return prediction_powered_mean(replace(y, judge=judge, labels=labels), low=0.0, high=1.0, step=1.0)


def power_tuning(sample: Sample) -> float:
    """Lambda of PPI++: ``cov(Y, f) / ((1 + n/N) var(f))`` by clusters, clipped to [0, 1]; 0 where f does not vary."""
    labelled, ids = sample.labelled, cluster_ids(sample.clusters)
    n, rest = int(labelled.sum()), int((~labelled).sum())
    said = _sums(sample.judge, ids)
    groups = len(said)
    variance = groups / max(1, groups - 1) * float(said @ said) / len(ids)
    if not n or not rest or variance <= 1e-24 * max(1.0, float(np.abs(sample.judge).max()) ** 2):
        return 0.0
    y, f = (_sums(values[labelled], ids[labelled], groups) for values in (sample.labels, sample.judge))
    return min(1.0, max(0.0, float(y @ f) / n / ((1 + n / rest) * variance)))


def _powered(sample: Sample, ids: Ints, groups: int) -> _Powered:
    labelled = sample.labelled
    weight = power_tuning(sample)
    y, f, rest = sample.labels[labelled], sample.judge[labelled], sample.judge[~labelled]
    value = float(y.mean())
    influence = _sums(y - weight * f, ids[labelled], groups) / len(y)
    if len(rest):
        value += weight * (float(rest.mean()) - float(f.mean()))
        influence += weight * _sums(rest, ids[~labelled], groups) / len(rest)
    return _Powered(value, weight, influence, np.bincount(ids[labelled], minlength=groups) > 0)


def _interval(found: _Powered, sample: Sample, bounds: tuple[float, float], step: float, method: str) -> Estimate:
    """The interval of a powered mean: labelled and other clusters are two samples, independent of each other."""
    told = sample.about(method=f"{method}, lambda {found.weight:.2f}, t interval clustered by item")
    parts = []
    for chosen in (found.labelled, ~found.labelled):
        influence = found.influence[chosen]
        size = len(influence)
        if size >= 2:
            parts.append((size / (size - 1) * float(influence @ influence), size - 1))
    scale = max(1.0, float(np.abs(sample.judge).max()), float(np.nanmax(np.abs(sample.labels))))
    if math.fsum(variance for variance, _ in parts) <= (1e-12 * scale) ** 2:
        return Estimate(found.value, reason="all labels equal: no interval", **told)
    size = int(found.labelled.sum())
    parts[0] = (parts[0][0] + (step / size) ** 2, parts[0][1])
    se, reach, _ = joint_error(parts)
    value = min(bounds[1], max(bounds[0], found.value))
    ci = (min(value, max(bounds[0], found.value - reach)), max(value, min(bounds[1], found.value + reach)))
    return Estimate(value, ci, se=se, **told)


def _sums(values: Floats, ids: Ints, groups: int | None = None) -> Floats:
    """Sums of the values less their mean, by cluster."""
    sums: Floats = np.bincount(ids, weights=values - values.mean(), minlength=groups or 0).astype(np.float64)
    return sums


def cluster_ids(clusters: Ints) -> Ints:
    """Cluster ids as 0..g-1."""
    return np.unique(clusters, return_inverse=True)[1].astype(np.intp)


def _paired(a: Sample, b: Sample) -> tuple[Sample, Sample] | None:
    """The questions that both were judged on, in the same order, with labels of both or none; None where not single."""
    if any(len(np.unique(s.questions)) < len(s.questions) for s in (a, b)):
        return None
    _, first, second = np.intersect1d(a.questions, b.questions, assume_unique=True, return_indices=True)
    x, y = (
        Sample(s.judge[rows], s.labels[rows], s.clusters[rows], s.questions[rows], s.left_out)
        for s, rows in ((a, first), (b, second))
    )
    whole = x.labelled & y.labelled
    return replace(x, labels=np.where(whole, x.labels, np.nan)), replace(y, labels=np.where(whole, y.labels, np.nan))
