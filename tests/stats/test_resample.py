"""The clustered bootstrap and the analytic intervals: against scipy, invariances, degenerate cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ClusteredMean, ScatteredMean
from evenhand.stats.resample import bootstrap, bootstrap_rows, cluster_sums, draw_counts, mean_interval, share_interval
from evenhand.stats.table import Floats


def _mean(sums: Floats) -> Floats:
    return sums[:, 0] / sums[:, 1]


def _with_ones(values: Floats) -> Floats:
    return np.column_stack([values, np.ones(len(values))])


def test_bca_against_scipy() -> None:
    """On many units, where the small-sample widening vanishes, BCa is scipy's to Monte Carlo error."""
    x = np.random.default_rng(3).lognormal(0, 1, 2000)
    found = bootstrap(_with_ones(x), _mean, draws=20_000, seed=1)
    expected = stats.bootstrap((x,), np.mean, n_resamples=20_000, method="BCa", rng=2, batch=500)
    assert found.ci is not None and found.se is not None
    width = found.ci[1] - found.ci[0]
    interval = expected.confidence_interval
    assert found.ci == pytest.approx((interval.low, interval.high), abs=0.03 * width)
    assert found.se == pytest.approx(expected.standard_error, rel=0.03)


def test_discrete_and_sparse_sums_give_one_answer() -> None:
    """Clusters with the same sums are drawn together, dense or sparse, in any order, with the same result."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 3, 400).astype(float)
    sums = _with_ones(x)
    first = bootstrap(sums, _mean, seed=5)
    assert first == bootstrap(rng.permutation(sums), _mean, seed=5)
    values, counts = np.unique(x, return_counts=True)
    assert first == bootstrap(_with_ones(values), _mean, counts=counts, seed=5)
    scattered = bootstrap(sparse.csr_matrix(sums), _mean, seed=5)
    assert first.ci is not None and scattered.ci is not None
    assert scattered.ci == pytest.approx(first.ci, abs=0.02)
    assert first != bootstrap(sums, _mean, seed=6)


def test_rows_and_sums_agree() -> None:
    """The bootstrap of rows and that of sums give the same percentile interval to Monte Carlo error."""
    rng = np.random.default_rng(8)
    clusters = np.repeat(np.arange(60), 3)
    x = rng.normal(size=60)[clusters] + rng.normal(size=180)
    rows = bootstrap_rows(clusters, lambda index: float(x[index].mean()), draws=4000)
    sums = bootstrap(cluster_sums(_with_ones(x), clusters), _mean, draws=4000, method="percentile")
    assert rows.ci is not None and sums.ci is not None
    assert rows.ci == pytest.approx(sums.ci, abs=0.05 * (sums.ci[1] - sums.ci[0]))


def test_degenerate_bootstraps_say_why() -> None:
    """One cluster, no variation, undefined draws and no draws give no interval and a reason."""
    ones = np.ones((30, 2))
    assert bootstrap(ones[:1], _mean).reason == "one item: no interval"
    assert bootstrap(ones, _mean).reason == "no variation between draws: no interval"
    assert bootstrap(ones, _mean, draws=0).reason == "no interval asked for"
    rare = np.zeros((30, 2))
    rare[0] = 1, 1
    with np.errstate(invalid="ignore"):
        found = bootstrap(rare, _mean, seed=1)
    assert found.ci is None and "undefined in" in found.reason
    assert bootstrap_rows(np.zeros(3, dtype=np.intp), lambda _: 1.0).reason == "one item: no interval"


def test_draw_counts_are_bootstrap_draws() -> None:
    """Each draw takes as many clusters as there are."""
    blocks = np.concatenate(list(draw_counts(7, draws=50, seed=2)))
    assert blocks.shape == (50, 7)
    assert set(blocks.sum(axis=1)) == {7.0}


def test_array_mean_is_the_streaming_mean() -> None:
    """The array form gives what `ClusteredMean` gives."""
    rng = np.random.default_rng(2)
    clusters = np.sort(rng.integers(0, 20, 90))
    clusters = np.unique(clusters, return_inverse=True)[1]
    x = rng.normal(size=90)
    stream = ClusteredMean(low=-1, high=1)
    for group in range(clusters.max() + 1):
        stream.add(x[clusters == group].tolist())
    a, b = mean_interval(x, clusters, low=-1, high=1), stream.estimate()
    assert (a.value, a.low, a.high, a.se) == pytest.approx((b.value, b.low, b.high, b.se), abs=1e-12)
    assert (a.n, a.clusters, a.note) == (b.n, b.clusters, b.note)
    pieces = ScatteredMean(low=-1, high=1)
    kept: dict[int, tuple[float, int]] = {}
    for i in rng.permutation(90):
        kept[clusters[i]] = pieces.add_to(*kept.get(clusters[i], (0.0, 0)), [float(x[i])])
    c = pieces.estimate("question")
    assert (a.value, a.low, a.high, a.se) == pytest.approx((c.value, c.low, c.high, c.se), abs=1e-12)
    assert (c.n, c.clusters, c.method) == (90, a.clusters, "mean, t interval clustered by question")
    assert a.of_unit("question") == replace(c, value=a.value, ci=a.ci, se=a.se)
    for found in (mean_interval([]), mean_interval([1.0]), mean_interval([2.0, 2.0])):
        assert found.ci is None and found.reason


def test_share_interval_is_wilson() -> None:
    """For many single observations the interval is Wilson's; at 0 and 1 it is not empty."""
    x = np.r_[np.ones(600), np.zeros(400)]
    found = share_interval(x)
    expected = stats.binomtest(600, 1000).proportion_ci(method="wilson")
    assert found.ci == pytest.approx((expected.low, expected.high), abs=2e-4)
    nobody = share_interval(np.zeros(60))
    assert nobody.value == 0 and nobody.ci is not None
    assert nobody.ci[0] == 0 and 0.05 < nobody.ci[1] < 0.08
    assert share_interval([0.5, 0.5, 0.5]).reason == "all values equal: no interval"


def test_repeats_of_an_item_are_no_new_items() -> None:
    """Looking at each item ten times gives the interval of looking once."""
    x = np.r_[np.ones(30), np.zeros(20)]
    once = share_interval(x)
    often = share_interval(np.repeat(x, 10), np.repeat(np.arange(50), 10))
    assert once.ci is not None and often.ci == pytest.approx(once.ci, abs=1e-12)


def test_an_estimate_is_finite_and_explains_itself() -> None:
    """NaN is refused, and so is a missing value without a reason; a dict of it is plain data."""
    with pytest.raises(ValueError, match="finite"):
        Estimate(float("nan"))
    with pytest.raises(ValueError, match="reason"):
        Estimate(None)
    found = Estimate(0.5, (0.4, 0.6), 10, 5, {"refused": 2}, "share", warnings=("rough",))
    assert found.as_dict()["ci"] == [0.4, 0.6]
    assert found.as_dict()["missing"] == {"refused": 2}
    assert (found.low, found.high, found.note) == (0.4, 0.6, "rough")
