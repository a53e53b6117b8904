"""Labels needed: the number it names gives the width wished."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evenhand.errors import StatisticError
from evenhand.stats.agreement import cohen_kappa
from evenhand.stats.estimates import Estimate
from evenhand.stats.planning import labels_for_kappa, labels_for_share, labels_from_pilot
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
    ):
        with pytest.raises(StatisticError):
            call()
