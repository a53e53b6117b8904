"""Clustered means: against an independent implementation, degenerate cases, and known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ClusteredMean, mean_of_means


def test_clusters_of_one_are_the_ordinary_t_interval() -> None:
    """With one value per item the interval is the one-sample t interval."""
    values = np.random.default_rng(7).normal(5, 2, 83)
    mean = ClusteredMean()
    for value in values:
        mean.add([float(value)])
    found = mean.estimate()
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert found.value == pytest.approx(values.mean(), abs=1e-12)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert (found.n, found.clusters, found.note) == (83, 83, "")


def test_unequal_clusters_against_the_formula() -> None:
    """Clusters of different sizes follow the sandwich formula computed directly."""
    clusters = [[1.0, 2.0], [4.0], [3.0, 3.0, 5.0], [2.0]]
    mean = ClusteredMean()
    for cluster in clusters:
        mean.add(cluster)
    flat = np.concatenate(clusters)
    squares = sum((sum(c) - len(c) * flat.mean()) ** 2 for c in clusters)
    error = np.sqrt(4 / 3 * squares) / len(flat)
    reach = stats.t.ppf(0.975, 3) * error
    found = mean.estimate()
    assert (found.low, found.high) == pytest.approx((flat.mean() - reach, flat.mean() + reach), abs=1e-9)


def test_order_and_offset_do_not_matter() -> None:
    """A far-off origin loses no precision."""
    values = [1e9 + x for x in (0.0, 1.0, 2.0, 4.0)]
    mean = ClusteredMean()
    for value in values:
        mean.add([value])
    found = mean.estimate()
    near = ClusteredMean()
    for x in (0.0, 1.0, 2.0, 4.0):
        near.add([x])
    assert found.high is not None and near.estimate().high is not None
    assert found.high - 1e9 == pytest.approx(near.estimate().high, abs=1e-5)


def test_degenerate_cases_say_why() -> None:
    """Nothing, one item and no variation give no interval and a stated reason."""
    empty = ClusteredMean()
    empty.add([])
    assert (empty.estimate().value, empty.estimate().note) == (None, "nothing scored")
    one = ClusteredMean()
    one.add([3.0, 4.0])
    assert (one.estimate().value, one.estimate().low, one.estimate().note) == (3.5, None, "one item: no interval")
    same = ClusteredMean(unit="prompt")
    for _ in range(9):
        same.add([2.0])
    assert (same.estimate().value, same.estimate().low) == (2.0, None)
    assert same.estimate().note == "all values equal: no interval"
    same.add([3.0])
    assert same.estimate().note == "fewer than 50 prompts: the interval is rough"


def test_the_interval_stays_on_the_scale() -> None:
    """An interval never passes the scale's ends."""
    mean = ClusteredMean(low=0, high=10)
    for value in (10.0, 10.0, 9.0):
        mean.add([value])
    assert mean.estimate().high == 10


def test_intervals_cover_the_truth_under_clustering() -> None:
    """With four correlated repeats an item, 95 % intervals cover the true mean about 95 times in 100."""
    rng = np.random.default_rng(20)
    covered = 0
    for _ in range(800):
        mean = ClusteredMean()
        for item in rng.normal(3, 1, 60):
            mean.add([float(v) for v in item + rng.normal(0, 0.3, 4)])
        found = mean.estimate()
        assert found.low is not None and found.high is not None
        covered += found.low <= 3 <= found.high
    assert 0.925 <= covered / 800 <= 0.975


def test_the_task_mean_of_two_tasks_has_the_interval_of_welch() -> None:
    """Half the width is half that of Welch's interval of the difference, as scipy gives it."""
    draw = np.random.default_rng(5)
    one, two = draw.normal(5, 1, 12), draw.normal(6, 2, 30)
    means = []
    for values in (one, two):
        mean = ClusteredMean()
        for value in values:
            mean.add([float(value)])
        means.append(mean.estimate())
    told = mean_of_means(means, (-100.0, 100.0))
    theirs = stats.ttest_ind(one, two, equal_var=False).confidence_interval(0.95)
    assert told.ci is not None
    assert told.value == pytest.approx((one.mean() + two.mean()) / 2)
    assert told.ci[1] - told.ci[0] == pytest.approx((theirs.high - theirs.low) / 2)


def test_no_strata_no_mean() -> None:
    """A mean over no task has no value, with a reason."""
    assert mean_of_means([], (0.0, 1.0)).value is None
    assert isinstance(mean_of_means([Estimate(None, reason="nothing")], (0.0, 1.0)).reason, str)
