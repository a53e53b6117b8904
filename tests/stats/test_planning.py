"""Labels and units needed: the number it names gives the width, or the power, wished."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.agreement import cohen_kappa
from evenhand.stats.estimates import Estimate
from evenhand.stats.planning import (
    detectable_difference,
    labels_for_kappa,
    labels_for_share,
    labels_from_pilot,
    power_of_difference,
    units_for_difference,
)
from evenhand.stats.resample import Resampling
from evenhand.stats.table import Ratings


@pytest.mark.parametrize(("width", "share"), [(0.1, 0.5), (0.05, 0.8), (0.2, 0.9), (0.02, 0.5)])
def test_share_reaches_the_width(width: float, share: float) -> None:
    """Wilson's interval is as narrow as wished at n, and wider with a tenth fewer."""
    n = labels_for_share(width, share=share)

    def reached(units: int) -> float:
        ends = [
            stats.binomtest(k, units).proportion_ci(method="wilson")
            for k in (int(share * units), int(share * units) + 1)
        ]
        weight = share * units % 1  # between whole numbers of successes
        return float((1 - weight) * (ends[0].high - ends[0].low) + weight * (ends[1].high - ends[1].low))

    assert reached(n) <= width * 1.001
    assert reached(int(n * 0.9)) > width


def test_even_shares_need_most() -> None:
    """A width of 0.1 at one half takes 381 labels; a share far from a half takes fewer."""
    assert labels_for_share(0.1) == 381
    assert labels_for_share(0.1, share=0.9) < 200 < labels_for_share(0.1, share=0.6)


@pytest.mark.parametrize("weights", ["none", "quadratic"])
def test_kappa_reaches_the_width(weights: str) -> None:
    """Bootstrap intervals of data as supposed are about as wide as wished."""
    shares, kappa, width = (0.5, 0.3, 0.2), 0.6, 0.2
    n = labels_for_kappa(width, kappa=kappa, shares=shares, weights=weights)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    widths = []
    for seed in range(20):
        own = rng.choice(3, (n, 2), p=shares)
        codes = np.where(rng.random((n, 1)) < kappa, own[:, :1], own)
        ratings = Ratings.of(codes.astype(float), "ordinal", categories=range(3))
        found = cohen_kappa(ratings, weights=weights, resampling=Resampling(500, seed))  # type: ignore[arg-type]
        assert found.ci is not None
        widths.append(found.ci[1] - found.ci[0])
    assert np.mean(widths) == pytest.approx(width, rel=0.06)


def test_kappa_against_the_published_variance() -> None:
    """Two labels in equal shares: the variance is 1 - kappa squared over n, as for an intraclass correlation."""
    z = stats.norm.ppf(0.975)
    assert labels_for_kappa(0.2, kappa=0.5, shares=(0.5, 0.5)) == pytest.approx((1 - 0.25) * (2 * z / 0.2) ** 2, abs=1)


def test_pilot_scales_by_the_root() -> None:
    """Half the width takes four times the items."""
    pilot = Estimate(0.6, (0.5, 0.7), n=300, clusters=100)
    assert labels_from_pilot(pilot, 0.1) == pytest.approx(400, abs=1)
    with pytest.raises(StatisticError, match="one item: no interval"):
        labels_from_pilot(Estimate(0.5, reason="one item: no interval"), 0.1)
    for width in (0, -1, 1e-300, math.nan):
        with pytest.raises(StatisticError, match="a width is 1e-09 or more"):
            labels_from_pilot(pilot, width)
        with pytest.raises(StatisticError, match="a width is from 1e-09"):
            labels_for_share(width)


def test_power_is_that_of_published_tables() -> None:
    """Units and power of Cohen's (1988) worked cases, as other programs give them for the same t tests."""
    assert units_for_difference(0.5, 1, paired=False) == 128  # 64 in each group
    assert units_for_difference(0.2, 1, paired=False) == 788  # 394 in each group
    assert units_for_difference(0.5, 1) == 34
    assert power_of_difference(0.5, 1, 30) == pytest.approx(0.754, abs=0.001)


@pytest.mark.parametrize(("size", "n", "paired"), [(0.4, 12, True), (0.9, 6, True), (0.7, 40, False), (2.5, 4, False)])
def test_power_is_scipys_and_a_simulations(size: float, n: int, paired: bool) -> None:
    """Power agrees with scipy's noncentral t, and with the share of drawn samples whose t test rejects."""
    draw = np.random.default_rng(n)
    told = power_of_difference(-3 * size, 3, n, paired=paired)
    freedom, shift = (n - 1, size * np.sqrt(n)) if paired else (n - 2, size * np.sqrt(n) / 2)
    reach = stats.t.ppf(0.975, freedom)
    assert told == pytest.approx(stats.nct.sf(reach, freedom, shift) + stats.nct.cdf(-reach, freedom, shift))
    half = n if paired else n // 2
    second = draw.normal(size, 1, (20_000, half))
    found = (
        stats.ttest_1samp(second, 0, axis=1)
        if paired
        else stats.ttest_ind(draw.normal(0, 1, (20_000, half)), second, axis=1)
    )
    assert told == pytest.approx((found.pvalue < 0.05).mean(), abs=0.015)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("size", [3.0, 0.8, 0.05, 1e-4])
def test_units_are_the_least_that_reach_the_power(size: float, paired: bool) -> None:
    """At the number told the power is 90 %, with fewer it is not; and they find just that difference."""
    n = units_for_difference(2 * size, 2, paired=paired, power=0.9)
    step = 1 if paired else 2
    assert power_of_difference(2 * size, 2, n, paired=paired) >= 0.9
    assert n == 2 * step or power_of_difference(2 * size, 2, n - step, paired=paired) < 0.9
    assert detectable_difference(2, n, paired=paired, power=0.9) <= 2 * size * (1 + 1e-8)


@pytest.mark.parametrize(("n", "paired"), [(2, True), (4, False), (10**7, True)])
def test_the_detectable_difference_has_the_power(n: int, paired: bool) -> None:
    """From two units to ten millions, the power for the difference told is the one wished."""
    size = detectable_difference(1.5, n, paired=paired)
    assert power_of_difference(size, 1.5, n, paired=paired) == pytest.approx(0.8)


def test_arguments_out_of_range() -> None:
    """Widths, shares and kappas that can't be are refused."""
    for call in (
        lambda: labels_for_share(0),
        lambda: labels_for_share(0.1, share=1.2),
        lambda: labels_for_share(0.1, level=1),
        lambda: labels_for_kappa(0.1, kappa=1, shares=(0.5, 0.5)),
        lambda: labels_for_kappa(0.1, kappa=0.5, shares=(0.5, 0.6)),
        lambda: labels_for_kappa(2.5, kappa=0.5, shares=(0.5, 0.5)),
        lambda: labels_from_pilot(Estimate(0.5, (0.4, 0.6), clusters=9), -1),
        lambda: power_of_difference(1, 0, 10),
        lambda: power_of_difference(1, 1, 1),
        lambda: power_of_difference(1, 1, 2, paired=False),
        lambda: power_of_difference(float("inf"), 1, 10),
        lambda: units_for_difference(0, 1),
        lambda: units_for_difference(1, 1, power=0.05),
        lambda: units_for_difference(1e-12, 1),
        lambda: detectable_difference(1, 1),
        lambda: detectable_difference(1, 10, level=0),
    ):
        with pytest.raises(StatisticError):
            call()
