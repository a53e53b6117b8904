"""Correlations and differences of two raters: against scipy, degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.association import bias, kendall, mean_absolute_error, pearson, spearman
from evenhand.stats.resample import Resampling
from evenhand.stats.table import Ratings

PLAIN = Resampling(draws=0)
PAIRS = [(pearson, stats.pearsonr), (spearman, stats.spearmanr), (kendall, stats.kendalltau)]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
@pytest.mark.parametrize("units", [40, 2500])
@pytest.mark.parametrize("tied", [True, False])
def test_correlations_against_scipy(ours, theirs, units: int, tied: bool) -> None:  # type: ignore[no-untyped-def]
    """With and without ties, few units and many, the value is scipy's."""
    x = np.random.default_rng(units).normal(size=(units, 1)) + np.random.default_rng(1).normal(size=(units, 2))
    x = np.round(x) if tied else x
    assert ours(Ratings.of(x, "interval"), resampling=PLAIN).value == pytest.approx(theirs(*x.T)[0], abs=1e-12)


def test_large_offsets_lose_nothing() -> None:
    """Numbers far from zero, with small differences, keep their correlation."""
    x = np.random.default_rng(2).normal(loc=(1e6, -3e6), size=(100, 2))
    assert pearson(Ratings.of(x, "interval"), resampling=PLAIN).value == pytest.approx(
        stats.pearsonr(*x.T)[0], abs=1e-9
    )


def test_kendall_of_many_values_has_an_interval() -> None:
    """Beyond 2,000 different pairs of values each draw is sorted anew, and the method says percentile."""
    x = np.random.default_rng(3).normal(size=(2100, 1)) + np.random.default_rng(4).normal(size=(2100, 2))
    found = kendall(Ratings.of(x, "interval"), resampling=Resampling(draws=100))
    assert found.ci is not None and found.value is not None
    assert found.ci[0] < found.value < found.ci[1]
    assert "percentile" in found.method


def test_ordered_labels_have_ranks() -> None:
    """Ordered labels correlate by position; labels without an order do not."""
    rows = [["low", "low"], ["mid", "high"], ["high", "mid"], ["high", "high"]]
    ordered = Ratings.of(rows, "ordinal", categories=["low", "mid", "high"])
    expected = stats.spearmanr([0, 1, 2, 2], [0, 2, 1, 2])[0]
    assert spearman(ordered, resampling=PLAIN).value == pytest.approx(expected, abs=1e-12)
    with pytest.raises(StatisticError, match="no correlation"):
        spearman(Ratings.of(rows, "nominal"))


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall])
def test_degenerate_correlations(statistic) -> None:  # type: ignore[no-untyped-def]
    """A constant rater has no correlation; points on a line have 1 and no interval."""
    flat = statistic(Ratings.of([[0.1, x] for x in range(60)], "interval"))
    assert (flat.value, flat.reason) == (None, "a rater gave one value throughout: undefined")
    line = statistic(Ratings.of([[x, 3 * x - 1] for x in range(60)], "interval"))
    assert (line.value, line.ci) == (pytest.approx(1.0), None)
    assert line.value <= 1 and line.reason == "no variation between draws: no interval"


def test_error_and_bias() -> None:
    """Mean absolute and signed difference, first rater less second, with a t interval."""
    ratings = Ratings.of([[1, 2], [4, 2], [5, None], [3, 3]], "interval", raters=["judge", "person"])
    lenient, error = bias(ratings), mean_absolute_error(ratings)
    assert (lenient.value, error.value, lenient.n) == (pytest.approx(1 / 3), 1.0, 3)
    interval = stats.ttest_1samp([-1, 2, 0], 0).confidence_interval(0.95)
    assert lenient.ci == pytest.approx((interval.low, interval.high))
    assert error.ci is not None and error.ci[0] == 0.0
    assert lenient.missing == {"no rating by person": 1}
    scale = Ratings.of([[0, 10], [10, 10]], "ordinal", categories=[0, 5, 10])
    assert bias(scale).value == -5
    empty = bias(Ratings.of([[1, None]], "interval"))
    assert (empty.value, empty.reason) == (None, "no unit has two ratings")
    with pytest.raises(StatisticError, match="not numbers"):
        bias(Ratings.of([["a", "b"]], "nominal"))
    with pytest.raises(StatisticError, match="of two raters, not 3"):
        bias(Ratings.of([[1, 2, 3]], "interval"))
