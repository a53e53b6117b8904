"""Corrected figures: against independent formulas, published examples, degenerate cases and known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.calibration import isotonic_mean, two_stage_mean
from evenhand.stats.correction import (
    Sample,
    power_tuning,
    prediction_powered_difference,
    prediction_powered_mean,
    prediction_powered_win_rate,
)
from evenhand.stats.prevalence import adjusted_prevalence, rogan_gladen
from evenhand.stats.resample import mean_interval, share_interval
from evenhand.stats.table import Floats

ALL = (prediction_powered_mean, isotonic_mean, two_stage_mean)


def drawn(n: int, labelled: int, seed: int = 3, *, bias: float = 1.0, noise: float = 1.0) -> tuple[Floats, Floats]:
    """A judge's values, and labels of the first few units."""
    rng = np.random.default_rng(seed)
    true = rng.normal(5, 2, n)
    judge = true + bias + rng.normal(0, noise, n)
    return judge, np.where(np.arange(n) < labelled, true, np.nan)


def plain(judge: Floats, labels: Floats) -> tuple[float, float, float]:
    """PPI++ by its own formulas: value, lambda, standard error."""
    known = ~np.isnan(labels)
    y, f, rest = labels[known], judge[known], judge[~known]
    n, m = len(y), len(rest)
    weight = ((y - y.mean()) * (f - f.mean())).mean() / ((1 + n / m) * judge.var(ddof=1))
    weight = min(1.0, max(0.0, weight))
    value = y.mean() + weight * (rest.mean() - f.mean())
    return value, weight, np.sqrt((y - weight * f).var(ddof=1) / n + weight**2 * rest.var(ddof=1) / m)


@pytest.mark.parametrize(("bias", "noise"), [(1.0, 1.0), (-2.0, 0.1), (0.0, 6.0)])
def test_powered_mean_is_that_of_the_formula(bias: float, noise: float) -> None:
    """Value, lambda, error and interval are those of the published formulas, written anew."""
    judge, labels = drawn(300, 60, bias=bias, noise=noise)
    value, weight, error = plain(judge, labels)
    sample = Sample.of(judge, labels)
    found = prediction_powered_mean(sample)
    assert power_tuning(sample) == pytest.approx(weight, abs=1e-9)
    assert (found.value, found.se) == pytest.approx((value, error), abs=1e-9)
    first = (labels[:60] - weight * judge[:60]).var(ddof=1) / 60
    rest = weight**2 * judge[60:].var(ddof=1) / 240
    freedom = (first + rest) ** 2 / (first**2 / 59 + rest**2 / 239)
    reach = stats.t.ppf(0.975, freedom) * error
    assert found.ci == pytest.approx((value - reach, value + reach), abs=1e-9)
    assert (found.n, found.clusters) == (300, 300)


def test_powered_mean_is_that_of_ppi_py() -> None:
    """The authors' own package gives the same value, and the same error but for its denominators."""
    ppi = pytest.importorskip("ppi_py")
    judge, labels = drawn(400, 80)
    known = ~np.isnan(labels)
    given = (labels[known], judge[known], judge[~known])
    found = prediction_powered_mean(Sample.of(judge, labels))
    assert found.value == pytest.approx(float(ppi.ppi_mean_pointestimate(*given).item()), abs=1e-9)
    weight = power_tuning(Sample.of(judge, labels))
    error = np.sqrt((given[0] - weight * given[1]).var() / 80 + weight**2 * given[2].var() / 320)
    low, high = (float(end.item()) for end in ppi.ppi_mean_ci(*given, alpha=0.05))
    assert (high - low) / 2 == pytest.approx(stats.norm.ppf(0.975) * error, abs=1e-9)


def test_lambda_is_none_for_a_judge_that_tells_nothing() -> None:
    """A constant judge, or one that runs against the labels, is not followed: the mean is that of the labels."""
    judge, labels = drawn(300, 60)
    for useless in (np.full(300, 4.0), -judge):
        found = prediction_powered_mean(Sample.of(useless, labels))
        expected = mean_interval(labels[:60])
        assert power_tuning(Sample.of(useless, labels)) == 0.0
        assert (found.value, found.se) == pytest.approx((expected.value, expected.se), abs=1e-12)
        assert found.ci == pytest.approx(expected.ci, abs=1e-9)


@pytest.mark.parametrize("correct", ALL)
def test_all_labelled_is_the_classical_mean(correct: type) -> None:
    """With a label for every item there is nothing to correct, however few they are."""
    judge, labels = drawn(12, 12)
    found, expected = correct(Sample.of(judge, labels)), mean_interval(labels)
    assert (found.value, found.ci) == (expected.value, expected.ci)
    assert "all items are labelled" in found.method


def test_all_labelled_is_the_share_of_labels() -> None:
    """For yes and no too: the share of yes among the labels, with its Wilson interval."""
    labels = np.array([1.0, 0, 1, 1, 1, 0, 1, 1, 0, 1])
    found, expected = rogan_gladen(Sample.of(1 - labels, labels)), share_interval(labels)
    assert (found.value, found.ci) == (expected.value, expected.ci)


@pytest.mark.parametrize("correct", (*ALL, rogan_gladen))
@pytest.mark.parametrize(
    ("labelled", "reason"), [(0, "nothing labelled"), (19, "19 labelled items, 20 needed")], ids=["none", "few"]
)
def test_too_few_labels_are_refused(correct: type, labelled: int, reason: str) -> None:
    """No label, and fewer than twenty, give no figure but a reason."""
    judge = np.tile([0.0, 1.0], 50)
    labels = np.where(np.arange(100) < labelled, judge, np.nan)
    found = correct(Sample.of(judge, labels))
    assert (found.value, found.ci, found.reason, found.n) == (None, None, reason, 100)


@pytest.mark.parametrize("correct", ALL)
def test_equal_labels_have_a_mean_without_interval(correct: type) -> None:
    """All labels equal: the value stands, the interval is refused with its reason."""
    found = correct(Sample.of(np.tile(np.arange(5.0), 40), np.where(np.arange(200) < 50, 4.0, np.nan)))
    assert found.value == pytest.approx(4.0)
    assert found.ci is None
    assert found.reason in ("all labels equal: no interval", "no variation between draws: no interval")


def test_copies_of_a_unit_are_no_news() -> None:
    """Units of one cluster count once: copies change neither figure nor interval."""
    judge, labels = drawn(200, 60)
    once = prediction_powered_mean(Sample.of(judge, labels))
    often = prediction_powered_mean(Sample.of(judge.repeat(4), labels.repeat(4), np.arange(200).repeat(4)))
    assert (often.n, often.clusters) == (800, 200)
    assert (often.value, often.se) == pytest.approx((once.value, once.se), abs=1e-9)
    assert often.ci == pytest.approx(once.ci, abs=1e-9)
    yes = (judge > 6).astype(float), np.where(np.isnan(labels), np.nan, labels > 5)
    one, four = (
        rogan_gladen(Sample.of(*yes)),
        rogan_gladen(Sample.of(yes[0].repeat(4), yes[1].repeat(4), np.arange(200).repeat(4))),
    )
    assert four.value == pytest.approx(one.value)
    assert four.ci == pytest.approx(one.ci, abs=0.02)


def test_paired_difference_is_the_mean_of_differences() -> None:
    """With labels of both answers or of neither, it is the powered mean of the differences."""
    judge_a, labels_a = drawn(300, 70, seed=1)
    judge_b, labels_b = judge_a + 0.5 + np.random.default_rng(2).normal(0, 1, 300), labels_a + 0.4
    labels_b = labels_b + np.random.default_rng(4).normal(0, 0.5, 300)
    found = prediction_powered_difference(Sample.of(judge_a, labels_a), Sample.of(judge_b, labels_b))
    value, _, error = plain(judge_b - judge_a, labels_b - labels_a)
    assert (found.value, found.se) == pytest.approx((value, error), abs=1e-9)
    assert "paired by question" in found.method


def test_difference_with_labels_of_other_questions() -> None:
    """Where the two have labels on other questions, all labels count; independent systems add their variances."""
    judge_a, labels_a = drawn(300, 70, seed=1)
    judge_b, labels_b = drawn(300, 70, seed=8)
    first = Sample.of(judge_a, labels_a)
    second = Sample.of(judge_b, labels_b[::-1], np.arange(300) + 1000)
    second = replace(second, judge=judge_b[::-1])
    found = prediction_powered_difference(first, second)
    (x, _, ex), (y, _, ey) = plain(judge_a, labels_a), plain(judge_b, labels_b)
    assert found.value == pytest.approx(y - x, abs=1e-9)
    assert found.se == pytest.approx(np.hypot(ex, ey), rel=0.01)
    assert prediction_powered_difference(first, Sample.of(judge_b, labels_b * np.nan)).reason == "nothing labelled"


def test_win_rate_counts_ties_half() -> None:
    """It is the powered mean of 1, 0.5 and 0; several answers of one question have none."""
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 4, (2, 250)).astype(float)
    said_a, said_b = a, np.minimum(3, b + (rng.random(250) < 0.2))
    known = np.where(np.arange(250) < 80, 0.0, np.nan)
    found = prediction_powered_win_rate(Sample.of(said_a, a + known), Sample.of(said_b, b + known))
    value, _, _ = plain(np.sign(said_b - said_a) / 2 + 0.5, np.sign(b - a) / 2 + 0.5 + known)
    assert found.value == pytest.approx(value, abs=1e-9)
    twice = Sample.of(said_a, a + known, questions=np.arange(250) // 2)
    with pytest.raises(StatisticError, match="answered once"):
        prediction_powered_win_rate(twice, twice)


def test_prevalence_of_the_published_examples() -> None:
    """Rogan-Gladen: the cows and the children of epiR's manual, with its values (5.1 and 0 per 100)."""
    cows = adjusted_prevalence(23 / 150, 150, 0.96, 1e9, 0.89, 1e9)
    assert cows.value is not None and round(100 * cows.value, 1) == 5.1
    assert cows.ci is not None and cows.ci[0] == 0.0 and round(100 * cows.ci[1]) == 13
    children = adjusted_prevalence(6 / 151, 151, 0.964, 1e9, 0.927, 1e9)
    assert children.value == 0.0
    assert "before it is cut" in children.note


def test_prevalence_interval_is_that_of_the_formula() -> None:
    """The Lang-Reiczigel interval, from counts with two observations added to each class."""
    found = adjusted_prevalence(90 / 300, 300, 45 / 50, 50, 76 / 80, 80)
    z = stats.norm.ppf(0.975)
    n, se, sp = 300 + z**2, 46 / 52, 77 / 82
    ap = (90 + z**2 / 2) / n
    p = (ap + sp - 1) / (se + sp - 1)
    shift = 2 * z**2 * (p * se * (1 - se) / 52 - (1 - p) * sp * (1 - sp) / 82)
    variance = ap * (1 - ap) / n + p**2 * se * (1 - se) / 52 + (1 - p) ** 2 * sp * (1 - sp) / 82
    reach = z * np.sqrt(variance) / (se + sp - 1)
    assert found.value == pytest.approx((0.3 - 0.05) / 0.85, abs=1e-12)
    assert found.ci == pytest.approx((p + shift - reach, p + shift + reach), abs=1e-9)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ((0.5, 200, 0.5, 50, 0.5, 50), "is not above 1"),
        ((0.5, 200, 0.55, 40, 0.55, 40), "is not clearly above 1"),
        ((0.5, 200, 0.9, 4, 0.9, 50), "4 labels are positive, 5 needed"),
        ((0.5, 200, 0.9, 50, 0.0, 0), "0 labels are negative, 5 needed"),
    ],
)
def test_a_judge_that_cant_be_corrected_is_refused(given: tuple[float, ...], reason: str) -> None:
    """A judge no better than chance, or one not shown to be, and a class without labels: no figure, but why."""
    found = adjusted_prevalence(*given)
    assert (found.value, found.ci) == (None, None)
    assert reason in found.reason


def test_shares_need_two_values() -> None:
    """A five-point judge has no sensitivity."""
    with pytest.raises(StatisticError, match="two values"):
        rogan_gladen(Sample.of(np.arange(50.0), np.arange(50.0)))


def test_labels_must_cover_the_judged_range() -> None:
    """A curve says nothing outside the values it was fitted to."""
    judge = np.repeat(np.arange(10.0), 20)
    labels = np.where((judge > 4) & (np.arange(200) % 2 == 0), judge - 1, np.nan)
    for correct in (isotonic_mean, two_stage_mean):
        found = correct(Sample.of(judge, labels))
        assert found.value is None
        assert found.reason == "50.0% of the judged lie outside the judge values that are labelled (5 to 9)"


def test_isotonic_mean_is_that_of_the_curve() -> None:
    """Where the means of the labels rise with the judge's value, each value counts as the mean of its labels."""
    judge = np.repeat([0.0, 1.0, 2.0], 100)
    labels = np.full(300, np.nan)
    labels[0:20], labels[100:120], labels[200:220] = np.tile([0, 1], 10), np.tile([1, 3], 10), np.tile([5, 5], 10)
    found = isotonic_mean(Sample.of(np.append(judge, [2.0] * 100), np.append(labels, [np.nan] * 100)))
    assert found.value == pytest.approx((0.5 * 100 + 2 * 100 + 5 * 200) / 400, abs=1e-12)
    assert found.ci is not None and found.ci[0] < found.value < found.ci[1]


def test_units_without_a_value_of_the_judge_are_counted() -> None:
    """A label whose item the judge did not answer counts as left out."""
    judge, labels = drawn(100, 50)
    judge[:3] = np.nan
    found = prediction_powered_mean(Sample.of(judge, labels))
    assert (found.n, dict(found.missing)) == (97, {"labelled, not judged": 3})
    with pytest.raises(StatisticError, match="differ in length"):
        Sample.of(judge, labels[:5])
