"""Strengths: closed forms, an independent likelihood, a published table, known truth, and data that leave none."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.special import logsumexp

from evenhand.errors import StatisticError
from evenhand.stats.bradley_terry import Ranking, bradley_terry
from evenhand.stats.pairwise import Compared, separability
from evenhand.stats.strengths import fit, refits

#: Davidson (1970), example 2, six brands of chocolate pudding: i, j, i preferred, j preferred, no preference.
PUDDING = (
    (1, 2, 19, 22, 16), (1, 3, 16, 19, 12), (2, 3, 19, 19, 10), (1, 4, 18, 23, 13), (2, 4, 23, 19, 9),
    (3, 4, 19, 20, 15), (1, 5, 13, 19, 18), (2, 5, 16, 20, 12), (3, 5, 16, 15, 17), (4, 5, 17, 14, 16),
    (1, 6, 18, 21, 12), (2, 6, 22, 20, 12), (3, 6, 13, 18, 10), (4, 6, 14, 19, 18), (5, 6, 11, 21, 12),
)  # fmt: skip


def counted(*rows: tuple[int, int, int, int, int], **options: Any) -> Ranking:
    """From (first, second, wins, losses, ties)."""
    flat = [(i, j, p, n) for i, j, w, l, t in rows for p, n in ((1.0, w), (0.0, l), (0.5, t)) if n]  # noqa: E741
    first, second, points, counts = (np.array(column) for column in zip(*flat, strict=True))
    return bradley_terry(first, second, points, counts=counts, **options)


def values(found: Ranking) -> list[float | None]:
    """The strengths."""
    return [s.strength.value for s in found.standings]


def simulated(rng: np.random.Generator, prompts: int, strengths: Any, nu: float = 0.0, order: float = 0.0,
              spread: float = 0.0, each: int = 2) -> dict[str, Any]:  # fmt: skip
    """Comparisons of random systems; with `spread` a prompt suits some systems better than others."""
    strengths = np.asarray(strengths)
    prompt = np.repeat(np.arange(prompts), each)
    own = strengths + rng.normal(0, spread, (prompts, len(strengths)))
    first = rng.integers(0, len(strengths), len(prompt))
    second = (first + rng.integers(1, len(strengths), len(prompt))) % len(strengths)
    eta = own[prompt, first] - own[prompt, second] + order
    odds = np.stack([np.exp(eta / 2), np.full_like(eta, nu), np.exp(-eta / 2)], axis=1)
    at = (rng.random((len(prompt), 1)) > (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)).sum(axis=1)
    points = np.array([1, 0.5, 0])[np.minimum(at, 2)]
    return {"first": first, "second": second, "points": points, "clusters": prompt}


def test_two_systems_in_closed_form() -> None:
    """log(wins / losses), nu = ties / sqrt(wins * losses), and the points per comparison as the win rate."""
    found = counted((0, 1, 30, 12, 8))
    assert values(found) == pytest.approx([math.log(30 / 12) / 2, -math.log(30 / 12) / 2])
    assert found.tie.value == pytest.approx(8 / math.sqrt(30 * 12))
    assert [s.win_rate.value for s in found.standings] == pytest.approx([34 / 50, 16 / 50])
    assert [s.elo.value for s in found.standings] == pytest.approx(
        [1000 + 200 * math.log10(2.5), 1000 - 200 * math.log10(2.5)]
    )
    assert [(s.rank, s.rank_ci) for s in found.standings] == [(1, (1, 1)), (2, (2, 2))]
    # the delta method on the two counts, times g / (g - 1)
    assert found.standings[0].strength.se == pytest.approx(math.sqrt((1 / 30 + 1 / 12) * 50 / 49) / 2)
    assert (found.n, found.clusters, found.order) == (50, 50, None)
    half = counted((0, 1, 30, 12, 8), ties="half")
    assert values(half) == pytest.approx([math.log(34 / 16) / 2, -math.log(34 / 16) / 2])
    assert half.tie.value is None


def test_an_order_effect_in_closed_form() -> None:
    """From a table for either order: half the sum of the log-odds of the first slot."""
    found = counted((0, 1, 30, 10, 0), (1, 0, 24, 16, 0), order=True)
    first, second = math.log(3), math.log(24 / 16)
    assert found.order is not None and found.order.value == pytest.approx((first + second) / 2)
    assert values(found) == pytest.approx([(first - second) / 4, -(first - second) / 4])
    rates = [1 / (1 + math.exp(-first)), 1 / (1 + math.exp(second))]
    assert found.standings[0].win_rate.value == pytest.approx(sum(rates) / 2)
    assert (found.tie.value, found.tie.reason) == (0.0, "no tie: no interval")


def test_davidsons_own_example() -> None:
    """Worths and nu as the PlackettLuce package prints them for its seventh step; standard errors to sampling."""
    found = counted(*((i - 1, j - 1, w, l, t) for i, j, w, l, t in PUDDING))  # noqa: E741
    worth = np.exp(np.array(values(found), dtype=float))
    printed = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855]
    assert worth / worth.sum() == pytest.approx(printed, abs=3e-5)  # printed before it had converged
    assert found.tie.value == pytest.approx(0.7468147, abs=3e-5)
    errors = [0.121949, 0.121818, 0.126823, 0.122003, 0.127054, 0.126594]
    assert [s.strength.se for s in found.standings] == pytest.approx(errors, rel=0.06)


def _likelihood(x: Any, data: dict[str, Any], covariates: Any) -> Any:
    """Log-likelihood of each comparison, written from the three odds."""
    eta = x[data["first"]] - x[data["second"]] + x[-3] + x[-2] * covariates
    odds = np.stack([eta / 2, np.full_like(eta, x[-1]), -eta / 2])
    seen = np.select([data["points"] == 1, data["points"] == 0.5], [odds[0], odds[1]], odds[2])
    return seen - logsumexp(odds, axis=0)


def test_against_an_independent_likelihood() -> None:
    """Strengths, order, covariate and nu are those of a general optimizer, to 1e-6; so is the sandwich, to 1e-3."""
    rng = np.random.default_rng(5)
    data = simulated(rng, 150, rng.normal(0, 0.8, 6), nu=0.6, order=0.4, each=4)
    covariates = rng.normal(3, 2, 600)
    found = bradley_terry(**data, order=True, covariates=covariates)
    assert found.order is not None
    mine = np.array([*values(found), found.order.value, found.effects[0].value, math.log(found.tie.value or 0)])

    def loss(x: Any) -> float:
        return float(x[:6].mean() ** 2 - _likelihood(x, data, covariates).sum())

    start = mine + rng.normal(0, 0.3, 9)
    theirs = minimize(loss, start, method="BFGS", jac="3-point", options={"gtol": 1e-6}).x
    theirs[:6] -= theirs[:6].mean()
    assert mine == pytest.approx(theirs, abs=1e-6)

    def slopes(x: Any) -> Any:  # of each cluster
        gaps = [_likelihood(x + h, data, covariates) - _likelihood(x - h, data, covariates) for h in 1e-5 * np.eye(9)]
        return np.column_stack([np.bincount(data["clusters"], gap / 2e-5) for gap in gaps])

    curve = -np.array([(slopes(mine + h) - slopes(mine - h)).sum(axis=0) / 2e-4 for h in 1e-4 * np.eye(9)])
    inverse = np.linalg.pinv(curve, rcond=1e-4)
    errors = np.sqrt(np.diag(inverse @ slopes(mine).T @ slopes(mine) @ inverse) * 150 / 149)
    told = [*(s.strength.se for s in found.standings), found.order.se, found.effects[0].se]
    assert told == pytest.approx(list(errors[:8]), rel=1e-3)
    assert found.tie.se == pytest.approx((found.tie.value or 0) * errors[8], rel=1e-3)


def test_counts_are_so_many_rows() -> None:
    """A table of counts gives what its comparisons give one by one, and weights only count by their ratios."""
    rows = ((0, 1, 7, 3, 2), (1, 2, 5, 4, 1), (2, 0, 2, 6, 3), (1, 0, 2, 2, 0))
    flat = [(i, j, p) for i, j, w, l, t in rows for p, n in ((1, w), (0, l), (0.5, t)) for _ in range(n)]  # noqa: E741
    first, second, points = (np.array(column) for column in zip(*flat, strict=True))
    told = counted(*rows, order=True)
    one_by_one = bradley_terry(first, second, points, order=True)
    weighted = bradley_terry(first, second, points, order=True, weights=np.full(len(points), 1e-7))
    for other in (one_by_one, weighted):
        for mine, theirs in zip(told.standings, other.standings, strict=True):
            assert theirs.strength.value == pytest.approx(mine.strength.value, abs=1e-8)
            assert theirs.strength.ci == pytest.approx(mine.strength.ci, abs=1e-8)
            assert (theirs.rank_ci, theirs.strength.n) == (mine.rank_ci, mine.strength.n)


def test_intervals_cover_under_clustering() -> None:
    """With 200 prompts that suit systems differently, at least 92.5 % of 95 % intervals hold the truth.

    The truth of the marginal model is its fit to a million prompts. The rank intervals hold the true rank at least
    as often, also where two strengths are equal (then either rank is true).
    """
    strengths = [0.8, 0.3, 0.0, 0.0, -1.1]
    rng = np.random.default_rng(11)
    large = bradley_terry(**simulated(rng, 250_000, strengths, nu=0.5, order=0.3, spread=0.8, each=4), order=True)
    truth = np.array(values(large), dtype=float)
    assert large.order is not None
    hits, ranks, total = np.zeros(3), 0, 200
    for seed in range(total):
        data = simulated(rng, 200, strengths, nu=0.5, order=0.3, spread=0.8, each=4)
        found = bradley_terry(**data, order=True, draws=500, seed=seed)
        cis = [s.strength.ci for s in found.standings]
        hits[0] += np.mean([ci is not None and ci[0] <= t <= ci[1] for ci, t in zip(cis, truth, strict=True)])
        for k, (one, true) in enumerate(((found.order, large.order), (found.tie, large.tie)), 1):
            assert one is not None and one.ci is not None and true.value is not None
            hits[k] += one.ci[0] <= true.value <= one.ci[1]
        bounds = [s.rank_ci or (0, 0) for s in found.standings]
        ranks += sum(low <= true <= high for (low, high), true in zip(bounds, (1, 2, 3, 4, 5), strict=True))
    assert (hits / total >= 0.925).all()
    assert ranks / total / 5 >= 0.94


def test_clusters_widen_intervals() -> None:
    """Copies of a comparison add nothing when they are one cluster."""
    rng = np.random.default_rng(3)
    data = simulated(rng, 300, [0.5, 0, -0.5], each=1)
    copies = {name: np.repeat(column, 4) for name, column in data.items()}
    once, naive = bradley_terry(**data), bradley_terry(**{**copies, "clusters": None})
    clustered = bradley_terry(**copies)
    assert clustered.standings[0].strength.ci == pytest.approx(once.standings[0].strength.ci)
    assert (naive.standings[0].strength.se or 1) < 0.51 * (once.standings[0].strength.se or 0)
    assert (clustered.standings[0].strength.n, clustered.standings[0].strength.clusters) == (
        4 * once.standings[0].strength.n,
        once.standings[0].strength.clusters,
    )


def test_a_covariate_is_controlled_for() -> None:
    """Where one system is longer and length wins, the strengths are those at equal length."""
    rng = np.random.default_rng(2)
    data = simulated(rng, 6000, [0.0, 0.0], each=1)
    length = np.where(data["first"] == 0, 1.0, -1.0) + rng.normal(0, 1, 6000)
    data["points"] = (rng.random(6000) < 1 / (1 + np.exp(-0.7 * length))).astype(float)
    plain, controlled = bradley_terry(**data), bradley_terry(**data, covariates=length)
    low, high = controlled.standings[0].strength.ci or (1, 1)
    assert (values(plain)[0] or 0) > 0.25
    assert low < 0 < high
    low, high = controlled.effects[0].ci or (1, 1)
    assert low < 0.7 < high
    with pytest.raises(StatisticError, match="told"):
        bradley_terry(**data, covariates=np.where(data["first"] == 0, 1.0, -1.0))


def test_a_covariate_that_never_differs_has_a_reason() -> None:
    """It is left out; the others, before and behind it, keep their places."""
    data = simulated(np.random.default_rng(2), 500, [0.5, 0.0, -0.5])
    length = np.random.default_rng(3).normal(0, 1, len(data["points"]))
    both = bradley_terry(**data, covariates=np.column_stack([np.zeros_like(length), length]), order=True)
    alone = bradley_terry(**data, covariates=length, order=True)
    assert both.effects[0].reason == "equal in every comparison"
    assert both.effects[1] == alone.effects[0]
    assert (both.order, values(both)) == (alone.order, values(alone))


def test_a_covariate_that_tells_who_won_is_left_out() -> None:
    """Alone, beside others, and with an order: the strengths are those without it, and it has a reason."""
    data = simulated(np.random.default_rng(2), 500, [0.5, 0.0, -0.5], nu=0.2)
    rng = np.random.default_rng(3)
    points = np.asarray(data["points"])
    length = rng.normal(0, 1, len(points))
    won = np.where(np.arange(len(points)) < 40, np.sign(points - 0.5), 0.0)  # the side with more of it wins
    n = int((won != 0).sum())
    for order in (False, True):
        alone = bradley_terry(**data, covariates=length, order=order)
        both = bradley_terry(**data, covariates=np.column_stack([won, length, np.zeros(len(points))]), order=order)
        assert values(both) == values(alone)
        assert both.effects[1] == alone.effects[0]
        assert f"side with more of it won every comparison that differs in it ({n})" in both.effects[0].reason
        assert both.effects[2].reason == "equal in every comparison"
    less = bradley_terry(**data, covariates=-won)
    assert values(less) == values(bradley_terry(**data))
    assert "side with less of it won" in less.effects[0].reason
    for interval in ("sandwich", "bootstrap"):
        drawn = bradley_terry(**data, covariates=won, interval=interval, resamples=60)
        assert all(standing.strength.ci for standing in drawn.standings)
    mixed = bradley_terry(**data, covariates=np.column_stack([length, length + 2 * won]))  # won is their difference
    assert values(mixed) == values(bradley_terry(**data, covariates=length))
    assert "with the strengths and what else is controlled for" in mixed.effects[1].reason


@pytest.mark.parametrize("order", [False, True])
def test_bootstrap_intervals_are_those_of_refits(order: bool) -> None:
    """Near the sandwich where prompts are many; the same by the same seed; of strengths, nu, order and covariate."""
    data = simulated(np.random.default_rng(4), 600, [0.8, 0.2, 0.0, -1.0], nu=0.5, order=0.3, spread=0.8, each=3)
    data["covariates"] = np.random.default_rng(5).normal(0, 1, len(data["points"]))
    how = {"interval": "bootstrap", "resamples": 200, "order": order, "unit": "prompt"}
    found, again = bradley_terry(**data, **how), bradley_terry(**data, **how)
    sandwich = bradley_terry(**data, order=order, unit="prompt")
    assert found == again
    assert bradley_terry(**data, **how, seed=1) != found

    def figures(ranking: Ranking) -> list[Any]:
        own = [e for s in ranking.standings for e in (s.strength, s.elo, s.win_rate)]
        return [*own, ranking.tie, *ranking.effects, *([ranking.order] if ranking.order else [])]

    for mine, other in zip(figures(found), figures(sandwich), strict=True):
        assert (mine.value, mine.n, mine.clusters) == (other.value, other.n, other.clusters)
        assert mine.se == pytest.approx(other.se, rel=0.25)
        assert mine.ci == pytest.approx(other.ci, abs=0.5 * other.se)
        assert mine.method.endswith("percentile bootstrap over prompts, 200 draws")
    assert [s.rank_ci for s in found.standings] == [s.rank_ci for s in sandwich.standings]


def test_a_refit_is_the_fit_to_the_draw() -> None:
    """Each draw's parameters maximise its own likelihood, in the units that were given; counts are drawn one by one."""
    data = simulated(np.random.default_rng(6), 40, [0.5, 0.0, -0.5], nu=0.4, each=5)
    length = 100 * np.random.default_rng(7).normal(0, 1, len(data["points"]))
    columns = (data["first"], data["second"], data["points"], None, None, None, data["clusters"], length)
    fitted = fit(Compared.of(*columns), "davidson", "prompt", 0.95)
    assert fitted is not None
    drawn = refits(fitted, draws=20, seed=9)
    rng = np.random.default_rng(9)
    for x in drawn:
        times = np.bincount(rng.integers(0, 40, 40), minlength=40)[data["clusters"]]
        rows = np.repeat(np.arange(len(length)), times)
        own = bradley_terry(*(data[name][rows] for name in ("first", "second", "points")), covariates=length[rows])
        assert x[:3] == pytest.approx(np.array(values(own)), abs=1e-6)
        assert x[3] == pytest.approx(own.effects[0].value, abs=1e-8)
        assert math.exp(x[4]) == pytest.approx(own.tie.value, abs=1e-6)
    brands = [(i - 1, j - 1, *outcomes) for i, j, *outcomes in PUDDING]
    told, plain = counted(*brands, interval="bootstrap"), counted(*brands)
    for mine, other in zip(told.standings, plain.standings, strict=True):
        assert mine.strength.se == pytest.approx(other.strength.se, rel=0.12)


def test_draws_without_an_estimate_are_told() -> None:
    """Where one prompt alone keeps a system from having lost all, draws without it have no finite strengths."""
    first, second = [0] * 12, [1] * 12
    found = bradley_terry(first, second, [1.0] * 11 + [0.0], interval="bootstrap", unit="prompt")
    strength = found.standings[0].strength
    assert strength.value == pytest.approx(math.log(11) / 2)
    assert strength.ci is None
    assert strength.reason.startswith("undefined in ")
    assert "sandwich intervals need no draws" in strength.reason
    with pytest.raises(StatisticError, match="sandwich or bootstrap"):
        bradley_terry([0], [1], [1], interval="jackknife")  # type: ignore[arg-type]


def test_separability_by_hand() -> None:
    """Pairs whose intervals don't overlap; ends that meet are apart; fewer than two have none."""
    found = separability([(0.0, 1.0), (1.0, 2.0), (1.5, 3.0), (0.5, 0.9)])
    assert (found.value, found.n) == (4 / 6, 6)
    assert "no interval" in found.reason
    assert separability([(0.0, 1.0)]).reason == "fewer than two intervals"
    assert separability([]).value is None
    two = counted((0, 1, 90, 10, 0))
    assert two.separability.value == 1.0


def test_many_systems() -> None:
    """Above 1,000 systems there are no rank intervals, and a warning; all else stands."""
    rng = np.random.default_rng(8)
    size = 1001
    first = np.concatenate([np.arange(size), rng.integers(0, size, 20_000)])
    second = (first + np.concatenate([np.ones(size, dtype=int), rng.integers(1, size, 20_000)])) % size
    found = bradley_terry(first, second, rng.integers(0, 2, len(first)).astype(float), order=False)
    assert found.warnings == ("no rank intervals: more than 1,000 systems",)
    assert [s.rank_ci for s in found.standings] == [None] * size
    assert sum(s.strength.ci is not None for s in found.standings) == size


def test_a_system_that_always_wins_has_no_number() -> None:
    """It and one that always loses have a reason; the others have the figures they have without them."""
    inner = ((1, 2, 5, 3, 1), (2, 3, 4, 4, 0), (3, 1, 2, 6, 2))
    found = counted(*inner, (0, 1, 9, 0, 0), (2, 0, 0, 7, 0), (4, 3, 0, 5, 0))
    alone = counted(*((i - 1, j - 1, *rest) for i, j, *rest in inner))
    assert values(found) == [None, *values(alone), None]
    assert found.standings[0].strength.reason == "won every comparison: no finite strength"
    assert found.standings[4].strength.reason == "lost every comparison: no finite strength"
    assert [s.rank for s in found.standings] == [None, *(s.rank for s in alone.standings), None]
    assert found.warnings == ("left out: 21 comparisons with separated systems",)
    assert (found.n, found.tie.ci) == (alone.n, alone.tie.ci)


@pytest.mark.parametrize("ties", ["davidson", "half"])
def test_parts_that_never_meet_are_not_ranked_together(ties: Any) -> None:
    """The larger part has figures; two of the same size have none, nor has a system that nothing was decided about."""
    found = counted((0, 1, 3, 2, 1), (1, 2, 3, 2, 0), (3, 4, 2, 2, 1), size=6, ties=ties)
    assert [v is not None for v in values(found)] == [True, True, True, False, False, False]
    assert "never compared with the others" in found.standings[3].strength.reason
    assert found.standings[5].strength.reason == "nothing decided"
    even = counted((0, 1, 3, 2, 1), (2, 3, 2, 2, 1), ties=ties)
    assert values(even) == [None] * 4
    assert "never compared" in even.standings[0].strength.reason
    one_way = counted((0, 1, 3, 2, 0), (2, 3, 2, 2, 0), (0, 2, 5, 0, 0), ties=ties)
    assert (
        one_way.standings[2].strength.reason
        == "with the systems it is linked to, lost every comparison: no finite strength"
    )


def test_no_finite_estimate_is_a_reason() -> None:
    """Never lost but tied: no maximum by Davidson, one with half a win. None where the first slot wins always."""
    found = counted((0, 1, 5, 0, 3))
    assert values(found) == [None, None]
    assert "no finite estimate; with ties as half a win there is one" in found.standings[0].strength.reason
    assert values(counted((0, 1, 5, 0, 3), ties="half"))[0] == pytest.approx(math.log(6.5 / 1.5) / 2)
    first_wins = counted((0, 1, 9, 0, 0), (1, 0, 9, 0, 0), (1, 2, 9, 0, 0), (2, 1, 9, 0, 0), order=True)
    assert values(first_wins) == [None] * 3
    assert first_wins.order is not None and first_wins.order.value is None


def _has_a_maximum(rows: Any, size: int, order: bool, free_nu: bool) -> bool:
    """Whether no direction of (strengths, order, log nu) keeps or raises the likelihood of every comparison."""
    constraints, tied = [], any(p == 0.5 for *_, p in rows)
    for i, j, p in rows:
        eta = np.zeros(size + 2)
        eta[[i, j]], eta[size] = (0.5, -0.5), 0.5 * order
        tie = np.eye(size + 2)[size + 1] * (free_nu and tied)
        if p == 0.5 and not free_nu:
            constraints += [eta, -eta]
        else:
            odds = {1.0: eta, 0.0: -eta, 0.5: tie}
            constraints += [odds[p] - odds[q] for q in ((1.0, 0.0, 0.5) if tied and free_nu else (1.0, 0.0)) if q != p]
    a = np.array(constraints)
    free = 1 + (not order) + (not (free_nu and tied))  # the strengths' mean, and what is not in the model
    if np.linalg.matrix_rank(a) < size + 2 - free:
        return False
    return bool(linprog(-a.sum(axis=0), A_ub=-a, b_ub=np.zeros(len(a)), bounds=(-1, 1)).fun > -1e-7)


def test_figures_wherever_there_is_a_maximum() -> None:
    """On small random tables all systems have figures exactly where a linear program finds no endless direction.

    And whatever the data: nothing raises, nothing is NaN or runs away.
    """
    rng, seen = np.random.default_rng(4), set()
    for _ in range(250):
        size, n = int(rng.integers(2, 5)), int(rng.integers(1, 14))
        first = rng.integers(0, size, n)
        second = (first + rng.integers(1, size, n)) % size
        points = rng.choice([1, 1, 0, 0.5], n)
        order, ties = bool(rng.integers(2)), ("davidson", "half")[int(rng.integers(2))]
        found = bradley_terry(first, second, points, size=size, order=order, ties=ties, draws=50,
                              clusters=rng.integers(0, 5, n))  # fmt: skip
        told = [v for v in values(found) if v is not None]
        assert all(abs(v) < 12 for v in told)
        modelled = found.order is not None and "one order only" not in found.order.reason
        if len(told) in (0, size) and (points != 0.5).any():
            rows = list(zip(first, second, points, strict=True))
            finite = _has_a_maximum(rows, size, order and modelled, ties == "davidson")
            assert (len(told) == size) == finite, (rows, order, ties)
            seen.add((finite, order, ties))
    assert len(seen) == 8


def test_an_order_effect_that_shows_nowhere_is_left_out() -> None:
    """A baseline that always comes second: strengths without the effect, which has a reason."""
    found = counted((0, 2, 6, 3, 0), (1, 2, 4, 5, 0), order=True)
    assert values(found) == values(counted((0, 2, 6, 3, 0), (1, 2, 4, 5, 0)))
    assert found.order is not None and found.order.value is None and "one order only" in found.order.reason
    assert "strengths include an order effect" in found.warnings[0]


@pytest.mark.parametrize("ties", ["davidson", "half"])
def test_all_ties_are_equals_without_interval(ties: Any) -> None:
    """Every comparison a tie: equal strengths and ranks, and why there is no interval."""
    found = counted((0, 1, 0, 0, 4), (1, 2, 0, 0, 2), ties=ties, order=True)
    assert values(found) == pytest.approx([0, 0, 0])
    assert [s.rank for s in found.standings] == [1, 1, 1]
    assert [s.win_rate.value for s in found.standings] == pytest.approx([0.5] * 3)
    assert {s.strength.reason for s in found.standings} == {"every comparison is a tie: no interval"}
    assert [s.rank_ci for s in found.standings] == [None] * 3


def test_little_data() -> None:
    """One system, no comparison, one prompt: no figures, or figures without interval."""
    assert values(bradley_terry([], [], [], size=1)) == [None]
    assert bradley_terry([], [], [], size=2).standings[1].strength.reason == "nothing decided"
    assert bradley_terry([], [], []).standings == ()
    one = bradley_terry([0, 0, 0], [1, 1, 1], [1, 1, 0], clusters=[7, 7, 7])
    assert one.standings[0].strength.value == pytest.approx(math.log(2) / 2)
    assert (one.standings[0].strength.ci, one.standings[0].rank_ci) == (None, None)
    assert one.standings[0].strength.reason == "one item: no interval"
    same = bradley_terry([0, 0] * 3, [1, 1] * 3, [1, 0] * 3, clusters=[1, 1, 2, 2, 3, 3])
    assert same.standings[0].strength.reason == "no variation: no interval"


def test_impossible_arguments_are_refused() -> None:
    """Self-comparisons, other points, unknown systems, and columns of other lengths."""
    for arguments, message in (
        (([0], [0], [1]), "itself"),
        (([0], [1], [0.7]), "points"),
        (([0], [1], [math.nan]), "points"),
        (([0, 1], [1], [1]), "one entry"),
        (([-1], [1], [1]), "numbered"),
    ):
        with pytest.raises(StatisticError, match=message):
            bradley_terry(*arguments)
    with pytest.raises(StatisticError, match="above 0"):
        bradley_terry([0], [1], [1], weights=[0])
    with pytest.raises(StatisticError, match="davidson or half"):
        bradley_terry([0], [1], [1], ties="drop")  # type: ignore[arg-type]


def test_the_published_comparisons_of_qlora(shared: Callable[[str], Path]) -> None:
    """Elo-scale strengths and win rates of 8 systems from 4,467 verdicts; the first slot's edge; nothing unparsed."""
    folder = shared("data/qlora_gpt4_pairwise")
    names = ["gpt4", "65b-guanaco", "30b-guanaco", "vicuna-13b", "gpt35", "13b-guanaco", "bard", "7b-guanaco"]
    rows = []
    for path in sorted(folder.glob("*.jsonl")):
        sides = path.name.split("-gpt-4-reviewer")[0].split("-vs-")
        first, second = (names.index(s.removeprefix("answer-").split("-vicuna-generations")[0]) for s in sides)
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["score"] != -1:
                rows.append((first, second, {1: 1.0, 2: 0.0, 3: 0.5}[row["score"]], row["question_id"]))
    first, second, points, question = (np.array(column) for column in zip(*rows, strict=True))
    assert len(rows) == 4467
    found = bradley_terry(first, second, points, clusters=question, ties="half")
    elo = [1366.30, 1020.37, 989.22, 971.52, 963.91, 913.21, 899.20, 876.27]
    assert [s.elo.value for s in found.standings] == pytest.approx(elo, abs=0.006)
    rates = [0.91510, 0.54692, 0.50045, 0.47540, 0.46429, 0.38988, 0.36953, 0.33694]
    assert [s.win_rate.value for s in found.standings] == pytest.approx(rates, abs=0.002)  # 13 verdicts are missing
    assert [s.rank for s in found.standings] == [*range(1, 9)]
    assert found.standings[0].rank_ci == (1, 1)
    full = bradley_terry(first, second, points, clusters=question, order=True)
    assert full.order is not None and full.order.low is not None and full.order.low > 0.5
    assert full.clusters == 80
