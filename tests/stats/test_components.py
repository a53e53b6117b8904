"""Variance components: against analysis of variance by hand, a likelihood, and simulations with known truth."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from evenhand.errors import StatisticError
from evenhand.stats.components import (
    ALL,
    ITEM,
    JUDGE,
    JUDGE_ITEM,
    JUDGE_ORDER,
    ORDER,
    ORDER_ITEM,
    PARAPHRASE,
    REPEAT,
    Components,
    variance_components,
)
from evenhand.stats.generalizability import Design, error_parts, item_reliability, standard_error
from evenhand.stats.resample import mean_interval

TRUE = {ITEM: 4.0, PARAPHRASE: 1.0, JUDGE_ITEM: 0.5, ORDER_ITEM: 0.6, ALL: 0.3, REPEAT: 0.25}
BIAS = np.array([-1.0, 1.0, 0.3, -0.3])
SHIFT = 1.0


def drawn(
    seed: int, g: int, p: int = 1, j: int = 1, o: int = 1, r: int = 1, gaps: float = 0.0
) -> tuple[np.ndarray, ...]:
    """Scores with the true components, groups, items, judges, orders; a share of the scores left out."""
    draw = np.random.default_rng(seed)
    group, par, judge, order, _ = (a.ravel() for a in np.meshgrid(*map(np.arange, (g, p, j, o, r)), indexing="ij"))
    item = group * p + par
    sd = {name: math.sqrt(variance) for name, variance in TRUE.items()}
    score = 5 + sd[ITEM] * draw.normal(size=g)[group] + BIAS[judge] * (j > 1)
    score = score + sd[PARAPHRASE] * draw.normal(size=g * p)[item] * (p > 1)
    score = score + sd[JUDGE_ITEM] * draw.normal(size=(g * p, j))[item, judge] * (j > 1)
    side = SHIFT / 2 + sd[ORDER_ITEM] * draw.normal(size=g * p)[item]
    side = side + (sd[ALL] * draw.normal(size=(g * p, j))[item, judge] + 0.2 * BIAS[judge]) * (j > 1)
    score = score + (2 * order - 1) * side * (o > 1) + sd[REPEAT] * draw.normal(size=len(score))
    kept = draw.random(len(score)) >= gaps
    return score[kept], group[kept], item[kept], judge[kept], order[kept]


def anova(scores: np.ndarray) -> dict[str, float]:
    """Components of a balanced table items x judges x orders x repeats, from textbook mean squares."""
    n, j, o, r = scores.shape
    cell, grand = scores.mean(axis=3), scores.mean()
    i_, j_, o_ = cell.mean((1, 2)), cell.mean((0, 2)), cell.mean((0, 1))
    ij, io, jo = cell.mean(2), cell.mean(1), cell.mean(0)
    error = float(scores.var(axis=3, ddof=1).mean())
    three = cell - ij[:, :, None] - io[:, None, :] - jo + i_[:, None, None] + j_[:, None] + o_ - grand
    ms_all = r * float((three**2).sum()) / ((n - 1) * (j - 1) * (o - 1))
    ms_ij = o * r * float(((ij - i_[:, None] - j_ + grand) ** 2).sum()) / ((n - 1) * (j - 1))
    ms_io = j * r * float(((io - i_[:, None] - o_ + grand) ** 2).sum()) / ((n - 1) * (o - 1))
    ms_jo = n * r * float(((jo - j_[:, None] - o_ + grand) ** 2).sum()) / ((j - 1) * (o - 1))
    ms_i, ms_j, ms_o = j * o * r * i_.var(ddof=1), n * o * r * j_.var(ddof=1), n * j * r * o_.var(ddof=1)
    # orders are fixed, both are there: mean squares of the rest have no interaction with them
    return {
        ITEM: (ms_i - ms_ij) / (j * o * r),
        JUDGE: (ms_j - ms_ij) / (n * o * r),
        JUDGE_ITEM: (ms_ij - error) / (o * r),
        ORDER: (ms_o - ms_io) / (n * j * r) / 2,
        ORDER_ITEM: (ms_io - ms_all) / (j * r) / 2,
        JUDGE_ORDER: (ms_jo - ms_all) / (n * r) / 2,
        ALL: (ms_all - error) / r / 2,
        REPEAT: error,
    }


def raw(found: Components) -> dict[str, float | None]:
    """Estimates before any was set to 0."""
    return {name: part.raw for name, part in found.parts.items()}


def test_balanced_crossed_design_is_analysis_of_variance() -> None:
    """Items x judges x two orders x repeats give the estimates of the textbook's mean squares."""
    y, group, item, judge, order = drawn(1, 25, j=3, o=2, r=2)
    found = variance_components(y, group, item, judge, order, draws=0)
    assert raw(found) == pytest.approx(anova(y.reshape(25, 3, 2, 2)), abs=1e-9)
    assert found.noise == REPEAT
    assert (found.groups, found.judges, found.orders, found.repeats) == (25, 3, 2, 2.0)


def test_balanced_nested_design_is_analysis_of_variance() -> None:
    """Groups, paraphrases in them and repeats give the estimates of the nested analysis."""
    y, group, item, *_ = drawn(2, 15, p=3, r=4)
    table = y.reshape(15, 3, 4)
    means = table.mean(2)
    error, within = table.var(axis=2, ddof=1).mean(), means.var(axis=1, ddof=1).mean()
    want = {REPEAT: error, PARAPHRASE: within - error / 4, ITEM: means.mean(1).var(ddof=1) - within / 3}
    assert raw(variance_components(y, group, item, draws=0)) == pytest.approx(want, abs=1e-9)


def test_unbalanced_one_way_design_is_the_textbooks() -> None:
    """Groups of unequal size: the estimator with n0 = (N - sum n^2 / N) / (g - 1)."""
    sizes = np.array([1, 2, 5, 3, 3, 7])
    ids = np.repeat(np.arange(6), sizes)
    y = np.random.default_rng(3).normal(ids % 3, 1.0)
    means, n = np.bincount(ids, y) / sizes, len(y)
    within = float(((y - means[ids]) ** 2).sum()) / (n - 6)
    between = float((sizes * (means - y.mean()) ** 2).sum()) / 5
    size = (n - (sizes**2).sum() / n) / 5
    found = raw(variance_components(y, ids, draws=0))
    assert found == pytest.approx({ITEM: (between - within) / size, REPEAT: within}, abs=1e-9)


def likelihood(y: np.ndarray, group: np.ndarray, item: np.ndarray) -> tuple[float, float, float]:
    """Components of a nested design by restricted maximum likelihood, straight from the matrices."""
    same_group = (group[:, None] == group).astype(float)
    same_item = (item[:, None] == item).astype(float)

    def loss(logs: Any) -> float:
        a, b, e = np.exp(logs)
        inverse = np.linalg.inv(v := a * same_group + b * same_item + e * np.eye(len(y)))
        mean = inverse.sum(axis=0) @ y / inverse.sum()
        rest = y - mean
        return float(np.linalg.slogdet(v)[1] + math.log(inverse.sum()) + rest @ inverse @ rest) / 2

    found = optimize.minimize(loss, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    a, b, e = np.exp(found.x)
    return float(a), float(b), float(e)


def test_balanced_estimates_are_those_of_the_likelihood() -> None:
    """Where no estimate is below 0, restricted maximum likelihood finds the same variances."""
    y, group, item, *_ = drawn(4, 12, p=2, r=2)
    found = variance_components(y, group, item, draws=0)
    told = [found.variance(name) for name in (ITEM, PARAPHRASE, REPEAT)]
    assert told == pytest.approx(likelihood(y, group, item), rel=1e-3)


def test_unbalanced_estimates_are_near_the_likelihood() -> None:
    """With a fifth of the scores missing the two methods differ by far less than either is unsure."""
    y, group, item, *_ = drawn(5, 24, p=2, r=2, gaps=0.2)
    found = variance_components(y, group, item)
    for name, theirs in zip((ITEM, PARAPHRASE, REPEAT), likelihood(y, group, item), strict=True):
        estimate = found.parts[name].estimate
        assert estimate.value is not None and estimate.se is not None
        assert abs(estimate.value - theirs) < 0.5 * estimate.se


def test_estimates_are_unbiased_with_missing_scores() -> None:
    """With 30 % of the scores missing, the mean over many samples is the truth, within its own error."""
    true = {**TRUE, JUDGE: BIAS[:3].var(ddof=1), ORDER: SHIFT**2 / 4, JUDGE_ORDER: 0.04 * BIAS[:3].var(ddof=1)}
    # paraphrases carry the judge and order interactions; the shift has the judges' mean bias in it
    true[ORDER] = (SHIFT + 0.4 * float(BIAS[:3].mean())) ** 2 / 4
    told: dict[str, list[float]] = {name: [] for name in true}
    for seed in range(100):
        found = raw(variance_components(*drawn(seed, 25, p=2, j=3, o=2, r=2, gaps=0.3), draws=0))
        for name, value in found.items():
            assert value is not None
            told[name].append(value)
    for name, values in told.items():
        off = abs(np.mean(values) - true[name]) / (np.std(values) / math.sqrt(len(values)))
        assert off < 3.5, (name, np.mean(values), true[name])


def test_intervals_hold_the_truth() -> None:
    """About 95 of 100 intervals of each component, and of the shift, hold the truth."""
    true = {**TRUE, JUDGE: BIAS[:2].var(ddof=1), ORDER: SHIFT**2 / 4}
    del true[PARAPHRASE], true[ALL]
    held = dict.fromkeys([*true, "shift"], 0)
    for seed in range(100):
        found = variance_components(*drawn(1000 + seed, 60, j=2, o=2, r=2, gaps=0.1), draws=300)
        for name, value in true.items():
            ci = found.parts[name].estimate.ci
            assert ci is not None
            held[name] += ci[0] <= value <= ci[1]
        assert found.shift is not None and found.shift.ci is not None
        held["shift"] += found.shift.ci[0] <= SHIFT <= found.shift.ci[1]
    assert all(88 <= count <= 100 for count in held.values()), held


def test_order_shift_is_the_mean_difference_within_items() -> None:
    """The shift is order 1 less order 0; it is of the items judged in both, so a missing order biases nothing."""
    y, group, item, judge, order = drawn(6, 30, o=2)
    both = y.reshape(30, 2)
    theirs = mean_interval(both[:, 1] - both[:, 0])
    shift = variance_components(y, group, item, judge, order, draws=0).shift
    assert shift is not None
    assert (shift.value, shift.se, *(shift.ci or ())) == pytest.approx((theirs.value, theirs.se, *(theirs.ci or ())))
    lonely = y + 100 * (group == 0)
    kept = ~((group == 0) & (order == 1))
    again = variance_components(lonely[kept], group[kept], item[kept], judge[kept], order[kept], draws=0).shift
    assert again is not None
    assert again.value == pytest.approx((both[1:, 1] - both[1:, 0]).mean())


@pytest.mark.parametrize("shape", [{"r": 3}, {"j": 3}, {"o": 2}, {"j": 2, "o": 2}, {"o": 2, "r": 2}, {"p": 2}])
def test_predicted_error_of_the_present_design_is_the_clustered_one(shape: dict[str, int]) -> None:
    """In a balanced design with its judges held fixed, parts add up to the squared clustered standard error."""
    y, *ids = drawn(7, 80, **shape)
    found = variance_components(y, *ids, draws=0)
    parts = error_parts(found, Design.of(found))
    parts.pop(JUDGE, None)
    theirs = mean_interval(y, ids[0]).se
    assert theirs is not None
    assert math.sqrt(sum(parts.values())) == pytest.approx(theirs, rel=1e-9)


def test_another_design_has_the_error_it_is_told() -> None:
    """The error predicted for three repeats from two is that of means that have three."""
    found = variance_components(*drawn(8, 3000, r=2), draws=0)
    means = [drawn(seed, 20, r=3)[0].mean() for seed in range(600)]
    assert standard_error(found, Design(20, repeats=3)) == pytest.approx(np.std(means), rel=0.08)
    assert standard_error(found, Design(20, repeats=3), same_items=True) == pytest.approx(
        math.sqrt(0.25 / 60), rel=0.05
    )


def test_reliability_is_the_correlation_of_two_judgings() -> None:
    """The generalizability coefficient of an item's mean is how two independent judgings of the items correlate."""
    y, *_ = drawn(9, 4000, r=4)
    table = y.reshape(4000, 4)
    found = variance_components(table[:, :2].ravel(), np.repeat(np.arange(4000), 2), draws=0)
    correlation = np.corrcoef(table[:, :2].mean(1), table[:, 2:].mean(1))[0, 1]
    assert item_reliability(found, Design.of(found)) == pytest.approx(correlation, abs=0.01)


def test_without_repeats_the_finest_component_is_the_noise() -> None:
    """What repeats would show stays in the finest component, which is told as noise; repeat is no component then."""
    found = variance_components(*drawn(10, 30, j=2), draws=0)
    assert (found.noise, REPEAT in found.parts) == (JUDGE_ITEM, False)
    alone = variance_components(*drawn(10, 30), draws=0)
    assert (alone.noise, list(alone.parts)) == (ITEM, [ITEM])
    assert item_reliability(alone, Design.of(alone)) is None


def test_estimates_below_zero_are_set_to_zero_and_say_so() -> None:
    """Items that are all alike on average give an estimate below 0."""
    found = variance_components([1, 3, 3, 1, 1, 3], [0, 0, 1, 1, 2, 2])
    item = found.parts[ITEM]
    assert (item.estimate.value, item.raw) == (0.0, pytest.approx(-1.0))
    assert "the estimate fell below 0 and is set to 0" in item.estimate.warnings


def test_a_judge_that_repeats_itself_has_no_variance_of_repeats() -> None:
    """Equal repeats are a variance of exactly 0, and all the rest is the items'."""
    found = variance_components(np.repeat([1.1, 2.7, 4.9, 3.3], 3), np.repeat(np.arange(4), 3))
    assert found.variance(REPEAT) == 0.0
    assert found.variance(ITEM) == pytest.approx(np.var([1.1, 2.7, 4.9, 3.3], ddof=1))
    assert found.parts[REPEAT].estimate.ci is None


def test_degenerate_designs_have_their_reason() -> None:
    """One item, one score, equal values, judges or orders without a shared item: reasons, never NaN."""
    one = variance_components([1.0, 2.0, 4.0], [0, 0, 0])
    assert one.variance(REPEAT) == pytest.approx(np.var([1, 2, 4], ddof=1))
    assert one.parts[REPEAT].estimate.reason == "one item: no interval"
    assert one.parts[ITEM].estimate.value is None
    single = variance_components([3.0], [0])
    assert single.parts[ITEM].estimate.value is None
    equal = variance_components([3.0] * 8, np.repeat(np.arange(4), 2), orders=[0, 1] * 4)
    assert [part.estimate.value for part in equal.parts.values()] == [0.0] * 3
    apart = variance_components([1.0, 2, 3, 4], [0, 1, 2, 3], judges=[0, 0, 1, 1], orders=[0, 1, 0, 1])
    assert apart.parts[JUDGE].estimate.reason == "no item was judged by all judges"
    assert apart.shift is not None and apart.shift.reason == "no item was judged in both orders"
    pair = variance_components([1.0, 0.0], [0, 0], orders=[0, 1])
    assert pair.shift is not None and pair.shift.value == pytest.approx(-1)
    assert pair.shift.reason == "one item: no interval"
    biased = variance_components([1.0, 0.0] * 5, np.repeat(np.arange(5), 2), orders=[0, 1] * 5)
    assert biased.shift is not None and biased.shift.value == pytest.approx(-1)
    assert biased.variance(ORDER) == pytest.approx(0.25)


def test_bad_input_is_refused() -> None:
    """No scores, unlike lengths, NaN, an item in two groups, a third order."""
    for values, ids in (([], []), ([1.0], [0, 1]), ([math.nan], [0])):
        with pytest.raises(StatisticError):
            variance_components(values, ids)
    with pytest.raises(StatisticError, match="two groups"):
        variance_components([1, 2], [0, 1], [0, 0])
    with pytest.raises(StatisticError, match="an order is 0 or 1"):
        variance_components([1, 2], [0, 1], orders=[0, 2])
