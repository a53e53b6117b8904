"""Comparisons of two systems: against independent implementations, and simulations with known truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.paired import IntervalKind, Test, holm, paired_comparison, unpaired_comparison
from evenhand.stats.planning import detectable_difference, units_for_difference


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


def test_mcnemar_is_the_binomial_test_of_units_that_differ() -> None:
    """By hand, 9 wins to 3: its p is the exchange test's, and the odds have the exact interval of the share."""
    a = np.array([0] * 9 + [1] * 3 + [1] * 5 + [0] * 5, dtype=float)
    b = np.array([1] * 9 + [0] * 3 + [1] * 5 + [0] * 5, dtype=float)
    told = paired_comparison(a, b, test="mcnemar")
    below = sum(math.comb(12, k) for k in range(4)) / 2**12
    assert told.p == pytest.approx(2 * below)
    assert told.p == pytest.approx(paired_comparison(a, b).p)
    share = stats.binomtest(9, 12).proportion_ci(method="exact")
    assert told.odds_ratio is not None
    assert told.odds_ratio.value == pytest.approx(3)
    assert told.odds_ratio.ci == pytest.approx((share.low / (1 - share.low), share.high / (1 - share.high)))
    assert told.odds_ratio.n == 12
    assert (told.test, told.note) == ("McNemar's exact test", "")


def test_mcnemar_without_a_ratio_or_a_difference() -> None:
    """All that differ differ one way: a p, but no ratio; none differs: p is 1."""
    one_way = paired_comparison([0] * 7 + [1], [1] * 8, test="mcnemar")
    assert one_way.p == pytest.approx(2 / 2**7)
    assert one_way.odds_ratio is not None
    assert (one_way.odds_ratio.value, one_way.odds_ratio.reason[:8]) == (None, "all unit")
    none = paired_comparison([0, 1, 1], [0, 1, 1], test="mcnemar")
    assert none.p == 1.0
    assert none.odds_ratio is not None
    assert none.odds_ratio.reason == "no unit differs: no ratio"


@pytest.mark.parametrize("n", [10, 40])
def test_wilcoxon_ranks_equal_pairs_and_leaves_them_out(n: int) -> None:
    """Signed ranks by hand, all signs tried or drawn: equal pairs take the lowest ranks, ties share a mean rank."""
    draw = np.random.default_rng(n)
    a = draw.integers(0, 6, n).astype(float)
    b = a + np.resize([0, 1, -1, 2, 0, 3, 1, -2], n)
    gap = b - a
    ranks = stats.rankdata(np.abs(gap))[gap != 0]
    signs = np.sign(gap[gap != 0])
    flips = draw.choice([-1.0, 1.0], (200_000, len(ranks)))
    by_hand = float((np.abs(flips @ ranks) >= abs(signs @ ranks) - 1e-9).mean())
    told = paired_comparison(a, b, test="wilcoxon")
    assert told.p == pytest.approx(by_hand, abs=0.004)
    zeros = int((gap == 0).sum())
    assert told.note == f"{zeros} equal {'pair' if zeros == 1 else 'pairs'} ranked, then left out (Pratt)"
    assert zeros > 0


def test_tests_that_do_not_suit_give_a_reason() -> None:
    """Three values, or several units a cluster: no p, the reason; the interval stays. Unlike names are refused."""
    many = paired_comparison([0, 1, 2, 1], [1, 1, 0, 2], test="mcnemar")
    assert many.p is None
    assert many.odds_ratio is None
    assert many.difference.ci is not None
    assert many.note == "McNemar's exact test is for ratings of two values, and these have 3"
    ids = np.array([0, 0, 1, 1, 2, 2])
    for test in ("mcnemar", "wilcoxon"):
        told = paired_comparison([0, 1, 1, 0, 0, 1], [1, 1, 0, 1, 1, 1], ids, test=test)  # type: ignore[arg-type]
        assert told.p is None
        assert "several share a cluster" in told.note
    with pytest.raises(UnknownNameError, match="wilcox"):
        paired_comparison([1], [2], test="wilcox")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="bca"):
        paired_comparison([1], [2], interval="bca")  # type: ignore[arg-type]


def test_the_bootstrap_interval_is_scipys() -> None:
    """Of skewed differences it is scipy's BCa interval, a little wider for the number of units; the p stays."""
    draw = np.random.default_rng(11)
    gap = draw.exponential(1, 80) - 0.7
    told = paired_comparison(np.zeros(80), gap, interval="bootstrap")
    theirs = stats.bootstrap((gap,), np.mean, method="BCa", n_resamples=4000, rng=1).confidence_interval
    assert told.difference.ci is not None
    wide = theirs.high - theirs.low
    assert told.difference.ci[0] == pytest.approx(theirs.low, abs=0.06 * wide)
    assert told.difference.ci[1] == pytest.approx(theirs.high, abs=0.06 * wide)
    assert told.difference.method.startswith("mean, BCa bootstrap")
    plain = paired_comparison(np.zeros(80), gap)
    assert (told.p, told.needed, told.difference.value) == (plain.p, plain.needed, plain.difference.value)


def test_superiority_counts_ties_half() -> None:
    """Wins and half the ties over n, with an interval also where all are wins; clusters widen it."""
    told = paired_comparison([1, 2, 3, 4], [2, 2, 3, 3]).superiority
    assert told is not None
    assert (told.value, told.n) == (0.5, 4)
    wins = paired_comparison(np.zeros(10), np.arange(1.0, 11)).superiority
    assert wins is not None
    assert wins.ci is not None
    assert wins.ci[0] < wins.value == wins.ci[1] == 1
    a, b = np.zeros(20), np.tile([1.0, 1.0, -1.0, 1.0], 5)
    own = paired_comparison(a, b).superiority
    copies = paired_comparison(np.repeat(a, 4), np.repeat(b, 4), np.repeat(np.arange(20), 4)).superiority
    assert own is not None and copies is not None
    assert copies.ci == pytest.approx(own.ci)


def test_rounding_makes_no_winner() -> None:
    """Weighted sums that are equal but for the last digit are a tie, in every test."""
    a = np.array([0.1 + 0.2, 0.6 * 7 + 0.2 * 5, 3.0, 0.7])
    b = np.array([0.3, 5.2, 3.0, 0.7])
    assert (a != b).any()
    for test in ("permutation", "wilcoxon"):
        told = paired_comparison(a, b, test=test)  # type: ignore[arg-type]
        assert (told.wins, told.ties, told.losses, told.p) == (0, 4, 0, 1.0)


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


@pytest.mark.parametrize(
    ("test", "interval", "values"),
    [("mcnemar", "bootstrap", 2), ("wilcoxon", "bootstrap", 5), ("wilcoxon", "t", 11)],
)
def test_levels_and_cover_on_ratings(test: Test, interval: IntervalKind, values: int) -> None:
    """Two equal systems on 40 related ratings: about 5 of 100 tests reject at most, about 95 of 100 intervals hold."""
    draw = np.random.default_rng(values)
    held = rejected = 0
    sets = 200
    for seed in range(sets):
        ease = draw.normal(0, 1, 40)
        a, b = (np.digitize(ease + draw.normal(0, 1, 40), np.linspace(-1.5, 1.5, values - 1)) for _ in range(2))
        told = paired_comparison(a, b, test=test, interval=interval, seed=seed)
        assert told.difference.ci is not None
        assert told.p is not None
        held += told.difference.ci[0] <= 0 <= told.difference.ci[1]
        rejected += told.p < 0.05
    assert 0.91 <= held / sets <= 0.985
    assert rejected / sets <= 0.085
    assert rejected > 0


def test_superiority_intervals_cover() -> None:
    """B above A on 65 of 100 units, level on 10: about 95 of 100 intervals hold 0.7."""
    draw = np.random.default_rng(9)
    held = 0
    for _ in range(300):
        told = paired_comparison(np.zeros(12), draw.choice([1.0, 0.0, -1.0], 12, p=[0.65, 0.1, 0.25])).superiority
        held += told is not None and told.ci is not None and told.ci[0] <= 0.7 <= told.ci[1]
    assert 0.92 <= held / 300 <= 0.99


def test_the_detectable_difference_is_found_four_times_in_five() -> None:
    """A true difference of the size told is found in about 80 of 100 sets of as many units, paired and unpaired."""
    draw = np.random.default_rng(12)
    x, y = draw.normal(0, 1, 60), draw.normal(0, 1, 60)
    for told, paired in ((paired_comparison(x, y), True), (unpaired_comparison(x, y), False)):
        size, se = told.detectable, told.difference.se
        assert size is not None and se is not None
        sd = se * np.sqrt(60 if paired else 30)
        first, second = draw.normal(0, sd, (2000, 60)), draw.normal(size, sd, (2000, 60))
        found = stats.ttest_1samp(second, 0, axis=1) if paired else stats.ttest_ind(first, second, axis=1)
        assert (found.pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.03)


def test_a_side_without_variation_leaves_the_others() -> None:
    """All ratings of A are equal: the unpaired interval is the t interval of B's mean less A's, with a warning."""
    draw = np.random.default_rng(13)
    b = draw.normal(4, 1, 25)
    told = unpaired_comparison(np.full(10, 3.0), b)
    theirs = stats.ttest_1samp(b, 3)
    interval = theirs.confidence_interval(0.95)
    assert told.difference.ci == pytest.approx((interval.low - 3, interval.high - 3))
    assert told.p == pytest.approx(theirs.pvalue)
    assert any("all ratings of one side are equal" in warning for warning in told.difference.warnings)


def test_few_pairs_are_never_said_to_be_enough() -> None:
    """Five pairs can't give a p under 0.05 by signs or ranks, so six at least are needed."""
    told = paired_comparison([0, 0, 0, 0, 0], [5.0, 5.1, 4.9, 5.0, 5.2])
    assert told.p == pytest.approx(2 / 2**5)
    assert told.needed == 6


def test_degenerate_cases_have_their_reason() -> None:
    """No units, one unit, no variation, unlike lengths: a reason or an error, never NaN."""
    none = paired_comparison([], [])
    assert (none.difference.value, none.p, none.effect, none.needed) == (None, None, None, None)
    assert none.difference.reason
    same = paired_comparison([1, 2, 3], [1, 2, 3])
    assert (same.difference.value, same.p, same.needed, same.ties) == (0.0, 1.0, None, 3)
    shifted = paired_comparison([1, 2, 3], [2, 3, 4])
    assert (shifted.difference.ci, shifted.effect) == (None, None)
    assert shifted.difference.reason == "all differences are equal: no interval"
    assert shifted.p == 0.25
    with pytest.raises(StatisticError):
        paired_comparison([1], [1, 2])
    assert unpaired_comparison([], [1.0]).difference.reason == "a side has no rating"
    assert unpaired_comparison([1.0], [1.0, 2.0]).difference.ci is None
    flat = unpaired_comparison([1.0, 1.0], [2.0, 2.0])
    assert (flat.p, flat.difference.reason) == (None, "all values equal: no interval")


def test_what_is_needed_allows_for_the_number_of_tests() -> None:
    """Each of several tests has its share of the level: more units, at least so many that signs can give such a p."""
    draw = np.random.default_rng(4)
    a, b = draw.normal(0, 1, 60), draw.normal(0.4, 1, 60)
    one, three = paired_comparison(a, b), paired_comparison(a, b, tests=3)
    assert one.needed is not None
    assert three.needed is not None
    sd = float((b - a).std(ddof=1))
    assert three.needed == units_for_difference(float((b - a).mean()), sd, level=1 - 0.05 / 3) > one.needed
    assert three.detectable == pytest.approx(detectable_difference(sd, 60, level=1 - 0.05 / 3))
    assert (three.p, three.difference) == (one.p, one.difference)
    apart, apart3 = unpaired_comparison(a, b), unpaired_comparison(a, b, tests=3)
    assert apart.needed is not None
    assert apart3.needed is not None
    assert apart3.needed > apart.needed
    few = np.array([1.0, 1.01, 0.99, 1.0])
    assert [paired_comparison(np.zeros(4), few, tests=n).needed for n in (1, 3)] == [6, 7]  # 3 * 2 / 2**7 < 0.05
