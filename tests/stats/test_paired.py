"""Comparisons of two systems: against independent implementations, and simulations with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.paired import holm, paired_comparison, unpaired_comparison


def test_the_paired_interval_is_scipys() -> None:
    """For independent units it is the t interval of the differences, with the same effect and counts."""
    draw = np.random.default_rng(1)
    a = draw.integers(0, 11, 70).astype(float)
    b = np.clip(a + draw.integers(-2, 4, 70), 0, 10)
    told = paired_comparison(a, b)
    theirs = stats.ttest_rel(b, a).confidence_interval(0.95)
    assert told.difference.ci == pytest.approx((theirs.low, theirs.high))
    assert told.effect == pytest.approx((b - a).mean() / (b - a).std(ddof=1))
    assert (told.wins, told.ties, told.losses) == ((b > a).sum(), (b == a).sum(), (b < a).sum())


@pytest.mark.parametrize("n", [5, 9, 12])
def test_the_exact_test_is_scipys(n: int) -> None:
    """With few units all exchanges are tried, as scipy's exact permutation test does."""
    draw = np.random.default_rng(n)
    a, b = draw.normal(0, 1, n), draw.normal(0.5, 1, n)
    theirs = stats.permutation_test(
        (b, a),
        lambda x, y, axis: (x - y).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert paired_comparison(a, b).p == pytest.approx(theirs.pvalue)


def test_the_drawn_test_is_near_the_t_test() -> None:
    """With many units the drawn p value is near that of the paired t test, and the same for the same seed."""
    draw = np.random.default_rng(3)
    a = draw.normal(0, 1, 200)
    b = a + draw.normal(0.12, 1, 200)
    told = paired_comparison(a, b)
    assert told.p == pytest.approx(stats.ttest_rel(a, b).pvalue, abs=0.02)
    assert told.p == paired_comparison(a, b).p


def test_binary_ratings_are_tested_as_by_mcnemar() -> None:
    """On yes and no the exchange test is the exact McNemar test: a binomial test of the discordant units."""
    a = np.array([1] * 9 + [0] * 3 + [1] * 5 + [0] * 5, dtype=float)
    b = np.array([0] * 9 + [1] * 3 + [1] * 5 + [0] * 5, dtype=float)
    assert paired_comparison(a, b).p == pytest.approx(stats.binomtest(3, 12).pvalue)


def test_the_unpaired_comparison_is_welchs() -> None:
    """Interval and p value agree with scipy's Welch test."""
    draw = np.random.default_rng(4)
    a, b = draw.normal(5, 1, 30), draw.normal(6, 2, 50)
    told, theirs = unpaired_comparison(a, b), stats.ttest_ind(b, a, equal_var=False)
    interval = theirs.confidence_interval(0.95)
    assert told.difference.ci == pytest.approx((interval.low, interval.high))
    assert told.p == pytest.approx(theirs.pvalue)
    assert told.wins is None


def test_copies_of_a_unit_prove_nothing() -> None:
    """Ten copies of each unit, clustered, give the interval and p value of the units themselves."""
    draw = np.random.default_rng(5)
    a, b = draw.normal(0, 1, 12), draw.normal(0.4, 1, 12)
    one = paired_comparison(a, b)
    many = paired_comparison(np.repeat(a, 10), np.repeat(b, 10), np.repeat(np.arange(12), 10))
    assert many.difference.ci == pytest.approx(one.difference.ci)
    assert many.p == pytest.approx(one.p)
    assert many.needed == one.needed


def test_holm_by_hand() -> None:
    """The smallest is times three, later ones never below earlier ones, none above 1; missing ones don't count."""
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06], nan_ok=True)
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_needed_units_have_the_power_they_promise() -> None:
    """Drawn at the number told, a true difference of the size seen is found in about 80 of 100 sets."""
    draw = np.random.default_rng(6)
    pilot = draw.normal(0.3, 1, 400)
    shift = float(pilot.mean())
    needed = paired_comparison(np.zeros(400), pilot).needed
    assert needed is not None
    found = 0
    for _ in range(400):
        sample = draw.normal(shift, float(pilot.std(ddof=1)), needed)
        found += bool(stats.ttest_1samp(sample, 0).pvalue < 0.05)
    assert 0.74 <= found / 400 <= 0.86


def test_intervals_cover_and_tests_hold_their_level() -> None:
    """Clustered data without any difference: about 95 of 100 intervals hold 0, about 5 of 100 tests reject."""
    draw = np.random.default_rng(7)
    held = rejected = 0
    ids = np.repeat(np.arange(60), 3)
    for n in range(400):
        shared = np.repeat(draw.normal(0, 1, 60), 3)
        gap = shared + draw.normal(0, 1, 180)
        told = paired_comparison(np.zeros(180), gap, ids, seed=n)
        assert told.difference.ci is not None
        assert told.p is not None
        held += told.difference.ci[0] <= 0 <= told.difference.ci[1]
        rejected += told.p < 0.05
    assert 0.925 <= held / 400 <= 0.98
    assert rejected / 400 <= 0.08


def test_degenerate_cases_have_their_reason() -> None:
    """No units, one unit, no variation, unlike lengths: a reason or an error, never NaN."""
    none = paired_comparison([], [])
    assert (none.difference.value, none.p, none.effect, none.needed) == (None, None, None, None)
    assert none.difference.reason
    same = paired_comparison([1, 2, 3], [1, 2, 3])
    assert (same.difference.value, same.p, same.needed, same.ties) == (0.0, 1.0, None, 3)
    shifted = paired_comparison([1, 2, 3], [2, 3, 4])
    assert shifted.difference.ci is None
    assert shifted.p == 0.25
    with pytest.raises(StatisticError):
        paired_comparison([1], [1, 2])
    assert unpaired_comparison([], [1.0]).difference.reason == "a side has no rating"
    assert unpaired_comparison([1.0], [1.0, 2.0]).difference.ci is None
    assert unpaired_comparison([1.0, 1.0], [2.0, 2.0]).p is None
