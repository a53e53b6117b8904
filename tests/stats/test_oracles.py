"""Figures against other packages: what they compute the same way must come out the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenhand.stats.agreement import cohen_kappa, fleiss_kappa, gwet_ac, krippendorff_alpha
from evenhand.stats.bradley_terry import bradley_terry
from evenhand.stats.paired import holm, paired_comparison
from evenhand.stats.planning import power_of_difference, units_for_difference
from evenhand.stats.resample import Resampling, mean_interval
from evenhand.stats.table import Ratings

PLAIN = Resampling(draws=0)


def comparisons(seed: int, systems: int = 12, n: int = 4000) -> tuple[Any, Any, Any]:
    """Ids and points, decided ones only."""
    rng = np.random.default_rng(seed)
    strengths = rng.normal(0, 1, systems)
    first = rng.integers(0, systems, n)
    second = (first + rng.integers(1, systems, n)) % systems
    won = rng.random(n) < 1 / (1 + np.exp(strengths[second] - strengths[first]))
    return first, second, won.astype(float)


def strengths(first: Any, second: Any, points: Any) -> Any:
    found = bradley_terry(first, second, points, draws=0)
    return np.array([standing.strength.value for standing in found.standings], dtype=float)


@pytest.mark.parametrize("seed", range(3))
def test_strengths_of_choix(seed: int) -> None:
    """The maximum of the likelihood, means set to 0."""
    choix = pytest.importorskip("choix")
    first, second, points = comparisons(seed)
    data = [(a, b) if won else (b, a) for a, b, won in zip(first, second, points, strict=True)]
    theirs = choix.ilsr_pairwise(12, data, alpha=0.0, tol=1e-12)
    assert strengths(first, second, points) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_strengths_of_evalica() -> None:
    """Their scores are odds."""
    evalica = pytest.importorskip("evalica")
    first, second, points = comparisons(7)
    winners = [evalica.Winner.X if won else evalica.Winner.Y for won in points]
    names = [f"{i:02d}" for i in range(12)]
    told = evalica.bradley_terry(
        [names[i] for i in first], [names[i] for i in second], winners, tolerance=1e-12, limit=10_000
    )
    theirs = np.log([told.scores[name] for name in names])
    assert strengths(first, second, points) == pytest.approx(theirs - theirs.mean(), abs=1e-6)


def test_cluster_robust_errors_of_statsmodels() -> None:
    """The error of a mean over clusters of unlike sizes, with the correction g / (g - 1)."""
    api = pytest.importorskip("statsmodels.api")
    rng = np.random.default_rng(1)
    ids = np.repeat(np.arange(60), rng.integers(1, 5, 60))
    values = rng.normal(0, 1, 60)[ids] + rng.normal(0, 1, len(ids))
    fit = api.OLS(values, np.ones(len(ids))).fit(cov_type="cluster", cov_kwds={"groups": ids, "use_correction": False})
    found = mean_interval(values, ids)
    assert found.value == pytest.approx(fit.params[0], abs=1e-9)
    assert found.se == pytest.approx(fit.bse[0] * np.sqrt(60 / 59), abs=1e-9)


def test_tests_of_statsmodels() -> None:
    """McNemar's exact test, and Holm's adjustment."""
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    multiple = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(2)
    a, b = (rng.random(90) < share for share in (0.5, 0.65))
    table = [[int((a & b).sum()), int((a & ~b).sum())], [int((~a & b).sum()), int((~a & ~b).sum())]]
    found = paired_comparison(a.astype(float), b.astype(float), test="mcnemar")
    assert found.p == pytest.approx(tables.mcnemar(table, exact=True).pvalue, abs=1e-9)
    p = [0.01, 0.04, 0.03, 0.005, 0.6]
    assert holm(p) == pytest.approx(multiple.multipletests(p, method="holm")[1], abs=1e-12)


def test_power_of_statsmodels() -> None:
    """Power and the number of units of paired and unpaired t tests."""
    power = pytest.importorskip("statsmodels.stats.power")
    for effect in (0.2, 0.5, 0.8):
        paired = power.TTestPower().power(effect, 40, 0.05)
        assert power_of_difference(effect, sd=1.0, n=40, paired=True) == pytest.approx(paired, abs=1e-6)
        needed = np.ceil(power.TTestPower().solve_power(effect, alpha=0.05, power=0.8))
        assert units_for_difference(effect, sd=1.0, paired=True) == needed
        both = 2 * np.ceil(power.TTestIndPower().solve_power(effect, alpha=0.05, power=0.8))
        assert units_for_difference(effect, sd=1.0, paired=False) == both


def rated(seed: int, raters: int, missing: float) -> Any:
    """Ratings 1 to 4 that agree somewhat, some of them missing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 5, 80)
    table = np.where(rng.random((80, raters)) < 0.6, truth[:, None], rng.integers(1, 5, (80, raters))).astype(float)
    table[rng.random(table.shape) < missing] = np.nan
    return table


@pytest.mark.parametrize("weights", ["identity", "linear", "quadratic"])
@pytest.mark.parametrize("missing", [0.0, 0.15])
def test_coefficients_of_irrcac(weights: str, missing: float) -> None:
    """Gwet's AC1 and AC2, Fleiss' kappa and Krippendorff's alpha, missing ratings included."""
    raw = pytest.importorskip("irrCAC.raw")
    pandas = pytest.importorskip("pandas")
    table = rated(3, 4, missing)
    ratings = Ratings.of(table, "ordinal", categories=(1.0, 2.0, 3.0, 4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = raw.CAC(pandas.DataFrame(table), weights=weights, digits=12)
        gwet = theirs.gwet()["est"]["coefficient_value"]
        fleiss = theirs.fleiss()["est"]["coefficient_value"]
        alpha = theirs.krippendorff()["est"]["coefficient_value"]
    own = "none" if weights == "identity" else weights
    assert gwet_ac(ratings, weights=own, resampling=PLAIN).value == pytest.approx(gwet, abs=1e-9)  # type: ignore[arg-type]
    if own == "none":
        assert fleiss_kappa(ratings, resampling=PLAIN).value == pytest.approx(fleiss, abs=1e-9)
        found = krippendorff_alpha(ratings, level="nominal", resampling=PLAIN)
        assert found.value == pytest.approx(alpha, abs=1e-9)


def test_kappa_and_fleiss_of_statsmodels() -> None:
    """Cohen's kappa with all weights, and Fleiss' kappa of a full table."""
    inter = pytest.importorskip("statsmodels.stats.inter_rater")
    table = rated(5, 2, 0.0)
    ratings = Ratings.of(table, "ordinal", categories=(1.0, 2.0, 3.0, 4.0))
    crossed = np.zeros((4, 4))
    np.add.at(crossed, tuple((table - 1).astype(int).T), 1)
    for own, theirs in (("none", None), ("linear", "linear"), ("quadratic", "quadratic")):
        expected = inter.cohens_kappa(crossed, wt=theirs, return_results=False)
        assert cohen_kappa(ratings, weights=own, resampling=PLAIN).value == pytest.approx(expected, abs=1e-9)  # type: ignore[arg-type]
    full = rated(6, 5, 0.0)
    counts = np.stack([(full == k).sum(axis=1) for k in (1, 2, 3, 4)], axis=1)
    ratings = Ratings.of(full, "nominal")
    assert fleiss_kappa(ratings, resampling=PLAIN).value == pytest.approx(inter.fleiss_kappa(counts), abs=1e-9)


def test_correlations_match_scipy_with_ties() -> None:
    """The permutation p of scipy on the same signs."""
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 4, 10), rng.integers(0, 4, 10)
    found = paired_comparison(a.astype(float), b.astype(float))
    theirs = stats.permutation_test(
        (b - a,), lambda x, axis: np.sum(x, axis=axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
    )
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-9)
