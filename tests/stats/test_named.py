"""Statistics by name: each as its own function has it, and the labels that a wished width takes."""

from __future__ import annotations

import krippendorff
import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.agreement import agreement_within, cohen_kappa, exact_agreement, krippendorff_alpha, scott_pi
from evenhand.stats.annotators import human_ceiling, judges_apart
from evenhand.stats.estimates import Estimate
from evenhand.stats.named import NAMES, labels_needed, reading, require_statistic
from evenhand.stats.planning import labels_for_share, labels_from_pilot
from evenhand.stats.resample import Resampling
from evenhand.stats.table import Level, Ratings

PLAIN = Resampling(draws=0)


def drawn(units: int = 80, level: Level = "ordinal", seed: int = 3) -> Ratings:
    """Two raters on five points who mostly agree."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 6, units)
    b = np.clip(a + rng.choice([-1, 0, 0, 0, 1], units), 1, 5)
    return Ratings.of(np.stack([a, b], axis=1), level, categories=range(1, 6), raters=["j", "p"])


def value(ratings: Ratings, name: str) -> float:
    found = human_ceiling(ratings, people=["p"], judges=["j"], statistic=name, resampling=PLAIN).judges["j"].value
    assert found is not None
    return found


def test_every_name_gives_the_figure_of_its_function() -> None:
    """Of one pair of raters each statistic is what scikit-learn, krippendorff and its own function make of it."""
    ratings = drawn()
    a, b = ratings.numbers.T
    for name, weights in (("kappa", None), ("kappa-linear", "linear"), ("kappa-quadratic", "quadratic")):
        assert value(ratings, name) == pytest.approx(cohen_kappa_score(a, b, weights=weights))
    for level in ("nominal", "ordinal", "interval", "ratio"):
        other = krippendorff.alpha(ratings.numbers.T, level_of_measurement=level)
        assert value(ratings, f"alpha:{level}") == pytest.approx(other)
    assert value(ratings, "alpha") == value(ratings, "alpha:ordinal")
    assert value(ratings, "exact") == exact_agreement(ratings).value
    assert value(ratings, "within:1") == agreement_within(ratings, 1).value == 1.0
    assert value(ratings, "pi") == pytest.approx(scott_pi(ratings, resampling=PLAIN).value)
    assert value(ratings, "bias") == pytest.approx((a - b).mean())
    assert value(ratings, "mae") == pytest.approx(np.abs(a - b).mean())
    assert {name for name in NAMES if np.isfinite(value(ratings, name))} == set(NAMES)


@pytest.mark.parametrize("name", ["within:1", "kappa-linear", "ac2-quadratic", "spearman", "mae", "alpha:ordinal"])
def test_labels_without_order_say_what_does_not_fit(name: str) -> None:
    """A distance between labels that have no order is refused with its reason."""
    labels = Ratings.of([["a", "b"], ["b", "c"], ["c", "c"]], "nominal", raters=["j", "p"])
    with pytest.raises(StatisticError, match=r"order|not numbers"):
        reading(labels, name)


@pytest.mark.parametrize("name", ["kapa", "within", "within:-1", "within:x", "within:nan", "alpha:", "alpha:x", ""])
def test_unknown_names_are_refused(name: str) -> None:
    """What is no statistic is an error that lists the names there are."""
    with pytest.raises(UnknownNameError, match="known: ac1"):
        require_statistic(name)


@pytest.mark.parametrize("name", ["exact", "within:0", "kappa", "kappa-quadratic", "pi", "alpha", "fleiss", "ac1"])
def test_full_agreement_has_an_interval(name: str) -> None:
    """Where all draws are the same the interval is that of the items that might disagree, for several pairs too."""
    column = np.tile([1, 2, 3, 4], 20)
    ratings = Ratings.of(np.stack([column] * 3, axis=1), "ordinal", categories=range(1, 5), raters=["j", "p", "q"])
    found = human_ceiling(ratings, people=["p", "q"], judges=["j"], statistic=name)
    for figure in (found.judges["j"], found.people):
        assert figure.value == pytest.approx(1.0)
        assert figure.ci is not None and 0.8 < figure.ci[0] < 1.0 == figure.ci[1]
    assert found.gaps["j"].value == 0.0


def test_judges_apart_is_the_difference_on_shared_items() -> None:
    """The difference of two judges' kappas with a person, on what both judged; a judge and itself differ by nothing."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 3, 200)
    good, poor = (np.where(rng.random(200) < skill, truth, rng.integers(0, 3, 200)) for skill in (0.9, 0.5))
    codes = np.stack([poor, good, truth], axis=1).astype(float)
    codes[:40, 0] = np.nan
    ratings = Ratings.of(codes, "nominal", categories=range(3), raters=["poor", "good", "p"])
    found = judges_apart(ratings, "poor", "good", people=["p"])
    after = [cohen_kappa_score(column[40:], truth[40:]) for column in (good, poor)]
    assert found.value == pytest.approx(after[0] - after[1])
    assert (found.n, found.clusters) == (160, 160)
    assert found.ci is not None and 0 < found.ci[0] < found.value < found.ci[1]


def test_labels_needed() -> None:
    """A share by Wilson, another figure by the interval there is; no disagreement by the lower end of its interval."""
    ratings = drawn()
    exact = exact_agreement(ratings)
    assert exact.value is not None
    told = labels_needed(reading(ratings, "exact"), exact, 0.1, single=True)
    assert told == labels_for_share(0.1, share=exact.value)
    alpha = krippendorff_alpha(ratings)
    assert labels_needed(reading(ratings, "alpha"), alpha, 0.1, single=True) == labels_from_pilot(alpha, 0.1)
    same = Ratings.of([[1, 1], [2, 2], [3, 3], [2, 2]] * 20, "ordinal", categories=(1, 2, 3), raters=["j", "p"])
    kappa = cohen_kappa(same, weights="quadratic")
    few, many = (labels_needed(reading(same, "kappa-quadratic"), kappa, w, single=True) for w in (0.2, 0.1))
    assert 2 <= few < many < 1000
    with pytest.raises(StatisticError, match="no interval"):
        labels_needed(reading(ratings, "alpha"), Estimate(None, reason="nothing"), 0.1, single=True)
