"""Strengths and ranks of systems from pairwise outcomes: Bradley and Terry's model, with ties and effects.

With ``eta = strength(first) - strength(second) + order + covariates * coefficients`` the outcomes of a comparison are
likely as ``P(first) : P(second) : P(tie) = exp(eta / 2) : exp(-eta / 2) : nu`` (Davidson 1970, "On extending the
Bradley-Terry model to accommodate ties in paired comparison experiments"). Where a tie counts as half a
win for both there is no nu, as is usual for Elo scales; an estimate exists in more cases, and intervals hold all the
same, since they don't rest on the model.

Intervals are t intervals from the sandwich covariance ``H^-1 (sum_g s_g s_g') H^-1 g / (g - 1)`` of cluster scores s_g;
the degrees of freedom are the clusters that a system is part of, less one. That of nu is on the log scale, that of a
win rate on the logit scale. Or they are percentile intervals of refits to resampled clusters. The rank interval of a
system counts the rivals that are surely stronger and those that are surely weaker, all rivals at a time: the bound is
the largest studentized difference in Gaussian multiplier bootstraps over clusters. It holds the true rank (any of them,
where strengths are equal) at the confidence level or more.
Source: Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from evenhand._words import counted
from evenhand.errors import StatisticError
from evenhand.stats.davidson import Maximum, chances, told_apart
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.pairwise import Compared, main_part, separability
from evenhand.stats.resample import DRAWS
from evenhand.stats.strengths import REFITS, Fit, Ties, fit, refits
from evenhand.stats.table import Floats

Intervals = Literal["sandwich", "bootstrap"]
ELO_MEAN = 1000.0
ELO_SCALE = 400 / math.log(10)  #: Elo points of one unit of log-odds
_ENDLESS = "the outcomes leave no finite estimate"
_TRY_HALF = "; with ties as half a win there is one"
_EQUAL = "equal in every comparison"
_ONE_SIDED = "the side with {} of it won every comparison that differs in it ({}): no finite effect"
_SEPARATES = "with the strengths and what else is controlled for it tells who won: no finite effect"
_MANY = 1000  # systems above which comparing each with all others would take minutes
_ONE_ORDER = "not to be told from the strengths: each pair of systems is in one order only"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one system stands.

    Attributes:
        strength: Log-odds of winning a decided comparison against a system of mean strength; the strengths' mean is 0.
        elo: The same on the Elo scale: 1000 + 400 / ln(10) * strength.
        win_rate: Expected points (win 1, tie 0.5) against the average rival: the mean over all others, in both orders.
        rank: 1 + the number of systems with a greater strength; None without one.
        rank_ci: Ranks (best, worst) that the data leave open; None without an interval.
    """

    strength: Estimate
    elo: Estimate
    win_rate: Estimate
    rank: int | None = None
    rank_ci: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Strengths of systems and what else moves outcomes.

    Systems are comparable within a part that wins or ties link in both directions. The largest part has figures, and
    its comparisons with others, whose likeliest difference is infinite, are left out with a warning; systems outside
    have a reason instead. So have all where no part, or more than one, is the largest, and where the outcomes leave no
    finite estimate otherwise (A never loses to B, but some are ties: with ties as half a win there is one). A covariate
    that leaves no finite estimate, since it tells who won, is left out with a reason, covariates taken in their order.
    All ties are equal strengths without interval. An order effect that can't be told from the strengths (each pair of
    systems always in the same order, and no cycle of them) is left out with a reason. No interval for a system in one
    cluster only, or without variation.

    Attributes:
        standings: One for each system, by its id.
        tie: Davidson's nu: odds of a tie to winning, between equals without an order effect, are nu. 0 where
            nothing was tied; no value where ties count half.
        order: Log-odds of the first slot between equals; None where it was not asked for.
        effects: Coefficients of the covariates, in their order and units; no value for one that is 0 throughout.
        n: Comparisons used.
        clusters: Independent groups among them.
        warnings: Why to read the figures with care.
    """

    standings: tuple[Standing, ...]
    tie: Estimate
    order: Estimate | None
    effects: tuple[Estimate, ...]
    n: int
    clusters: int
    warnings: tuple[str, ...] = ()

    @property
    def separability(self) -> Estimate:
        """Share of pairs of systems whose strengths' intervals don't overlap; see `pairwise.separability`."""
        return separability([s.strength.ci for s in self.standings if s.strength.ci is not None])


def bradley_terry(
    first: ArrayLike,
    second: ArrayLike,
    points: ArrayLike,
    *,
    size: int | None = None,
    counts: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    order: bool = False,
    ties: Ties = "davidson",
    covariates: ArrayLike | None = None,
    level: float = CONFIDENCE,
    interval: Intervals = "sandwich",
    resamples: int = REFITS,
    draws: int = DRAWS,
    seed: int = 0,
    unit: str = "item",
) -> Ranking:
    """Strengths of systems that were compared two at a time, by maximum likelihood; the model is described above.

    Not for outcomes that go in circles (A over B over C over A): one number a system can't tell them.

    Args:
        first, second: Ids 0..size-1 of the systems in the two slots, shape (n,); never the same system.
        points: What the first slot came to, shape (n,): 1, 0.5 (a tie) or 0.
        size: Number of systems; default: the greatest id + 1.
        counts: How many equal comparisons a row stands for, shape (n,), > 0; default: one each.
        weights: How much a comparison counts, shape (n,), > 0; default: the same for all. Only ratios matter.
        clusters: Ids of what is drawn together (prompts), shape (n,); default: every comparison is its own cluster.
        order: Estimate the effect of the first slot. Leave it out where a point already joins both orders.
        ties: "davidson", or "half": half a win for both.
        covariates: First slot's value less the second's, shape (n,) or (n, k). Strengths are those at 0.
        level: Confidence level.
        interval: "sandwich", or "bootstrap": percentiles of refits to clusters drawn with replacement.
        resamples: Number of refits.
        draws: Number of Gaussian draws for the rank intervals, which are the same for both kinds of interval. None are
            made for more than 1,000 systems.
        seed: Of resamples and draws.
        unit: What a cluster is, for the words beside the figures.

    Returns:
        Never NaN, never a runaway figure; `Ranking` tells what has no figures, and why.

    Raises:
        StatisticError: arguments of different lengths or out of range; covariates that can't be told from the
            strengths or from each other.

    Source: Bradley and Terry (1952); Davidson (1970); checked against his example 2 and scipy.optimize.
    """
    how = _How(order, ties, level, interval, resamples, draws, seed, unit)
    return _ranked(Compared.of(first, second, points, size, counts, weights, clusters, covariates), how)


@dataclass(frozen=True, slots=True)
class _How:
    """What `bradley_terry` was asked for."""

    order: bool
    ties: Ties
    level: float
    interval: Intervals
    resamples: int
    draws: int
    seed: int
    unit: str

    def __post_init__(self) -> None:
        for what, given, legal in (
            ("ties are counted by", self.ties, ("davidson", "half")),
            ("intervals are made by", self.interval, ("sandwich", "bootstrap")),
        ):
            if given not in legal:
                raise StatisticError(f"{what} {' or '.join(legal)}, not {given!r}")


def _ranked(given: Compared, how: _How) -> Ranking:
    main, reasons = main_part(given.cells())
    if main is None:
        return _nothing(reasons, how.order, given.with_effects_that_vary()[1])
    inside, live = given.within(main).with_effects_that_vary()
    told, warnings = _told_apart(inside, how.order)
    if left_out := given.n - told.n:
        warnings.append(f"left out: {counted(left_out, 'comparison')} with separated systems")
    told, fitted, why_not = _fitted(told, how)
    if fitted is None:
        why = _ENDLESS + _instead(told, how)
        return _nothing([reason or why for reason in reasons], how.order, live)
    found = fitted[0]
    if how.interval == "bootstrap":
        found = replace(found, drawn=refits(fitted, draws=how.resamples, seed=how.seed))
    if len(main) > _MANY:
        warnings.append(f"no rank intervals: more than {_MANY:,} systems")
    bounds = _rank_intervals(found, how.level, how.draws if len(main) <= _MANY else 0, how.seed)
    ranked = iter(_standings(found, bounds, told.order))
    standings = tuple(_unranked(reason) if reason else next(ranked) for reason in reasons)
    varying = iter(found.effects())
    shift = None if not how.order else next(varying) if told.order else Estimate(None, reason=_ONE_ORDER)
    lacking = iter(why_not)
    whys = [next(lacking) if here else _EQUAL for here in live]
    effects = tuple(Estimate(None, n=told.n, reason=why) if why else next(varying) for why in whys)
    tie = found.tie() if how.ties == "davidson" else Estimate(None, reason="ties count half")
    return Ranking(standings, tie, shift, effects, found.n, found.groups, tuple(warnings))


def _told_apart(given: Compared, order: bool) -> tuple[Compared, list[str]]:
    """With the order's effect where it can be told from the strengths, and a warning where it can't."""
    warnings = []
    ordered = given.with_order() if order else given
    if order and not told_apart(ordered.only_order().cells()):
        ordered = given
        warnings.append("strengths include an order effect that can't be told from them")
    if given.outcomes.effects.size and not told_apart(ordered.outcomes):
        raise StatisticError(
            "covariates can't be told from the strengths, the order or each other",
            hint="comparisons of the same two systems must differ in each, and not in all alike",
        )
    return ordered, warnings


def _fitted(given: Compared, how: _How) -> tuple[Compared, tuple[Fit, Compared, Maximum] | None, list[str]]:
    """What is fitted, the fit, and for each covariate why it is left out, "" where it isn't.

    Covariates are left out where there is no fit with them and one without.
    """
    first, end = int(given.order), given.outcomes.effects.shape[1]

    def tried(columns: Sequence[int]) -> tuple[Fit, Compared, Maximum] | None:
        return fit(given.with_effects(columns), how.ties, how.unit, how.level)

    kept, reasons = list(range(first)), [""] * (end - first)
    whole = tried(range(end))
    if whole is not None or first == end or (found := tried(kept)) is None:
        return given, whole, reasons
    for column in range(first, end):
        if (more := tried([*kept, column])) is None:
            reasons[column - first] = _separating(given, given.outcomes.effects[:, column])
        else:
            kept, found = [*kept, column], more
    return given.with_effects(kept), found, reasons


def _separating(given: Compared, effect: Floats) -> str:
    """Why a covariate has no finite effect."""
    o = given.outcomes
    for sign, word in ((1, "more"), (-1, "less")):
        lean = sign * effect
        if not (o.wins[lean < 0].any() or o.losses[lean > 0].any() or o.ties[lean != 0].any()):
            return _ONE_SIDED.format(word, round(float(given.counts[lean != 0].sum())))
    return _SEPARATES


def _instead(given: Compared, how: _How) -> str:
    """What else gives an estimate where there is none."""
    half = how.ties == "davidson" and fit(given, "half", how.unit, how.level) is not None
    return _TRY_HALF if half else ""


def _standings(found: Fit, bounds: list[tuple[int, int] | None], order: bool) -> Iterator[Standing]:
    strengths = found.x[: found.size]
    errors = np.sqrt(np.diag(found.covariance))
    rates, rate_errors = _win_rates(found, order)
    drawn = found.drawn
    drawn_rates = None if drawn is None else np.array([_expected(found, x, order)[0] for x in drawn])
    for i, value in enumerate(strengths):
        own, of_rate = (None, None) if drawn is None or drawn_rates is None else (drawn[:, i], drawn_rates[:, i])
        strength = found.system(i, float(value), float(errors[i]), own)
        elo = replace(
            strength,
            value=ELO_MEAN + ELO_SCALE * float(value),
            ci=strength.ci and (ELO_MEAN + ELO_SCALE * strength.ci[0], ELO_MEAN + ELO_SCALE * strength.ci[1]),
            se=strength.se and ELO_SCALE * strength.se,
        )
        rate = found.system(i, float(rates[i]), float(rate_errors[i]), of_rate, "logit")
        rank = 1 + int((strengths > value + 1e-9).sum())
        yield Standing(strength, elo, rate, rank, bounds[i] if strength.ci else None)


def _win_rates(found: Fit, order: bool) -> tuple[Floats, Floats]:
    """Expected points against the average rival and their standard errors, by the delta method."""
    rates, along = _expected(found, found.x, order)
    variance = ((along @ found.covariance) * along).sum(axis=1)
    return rates, np.sqrt(np.maximum(variance, 0))


def _expected(found: Fit, x: Floats, order: bool) -> tuple[Floats, Floats]:
    """Expected points against the average rival at parameters x, and their slopes along x."""
    size, many = found.size, found.size - 1
    gaps = x[:size, None] - x[None, :size]
    shifts = (x[size], -x[size]) if order else (0.0,)
    points = np.zeros((size, size))
    slopes = np.zeros((size, size))
    along = np.zeros((size, len(x)))
    others = ~np.eye(size, dtype=bool)
    for sign, shift in zip((1, -1), shifts, strict=False):
        chance = chances(gaps + shift, float(x[-1]) if found.modelled else None)
        points += (chance.first + chance.tie / 2) * others / len(shifts)
        slopes += chance.slope * others / len(shifts)
        if order:
            along[:, size] += sign * (chance.slope * others).sum(axis=1) / many / len(shifts)
        if found.modelled:
            along[:, -1] -= (chance.tie * chance.lean / 2 * others).sum(axis=1) / many / len(shifts)
    along[:, :size] = (np.diag(slopes.sum(axis=1)) - slopes) / many
    return points.sum(axis=1) / many, along


def _rank_intervals(found: Fit, level: float, draws: int, seed: int) -> list[tuple[int, int] | None]:
    """Ranks that are left when the rivals that are surely stronger or weaker are counted."""
    strengths, covariance = found.x[: found.size], found.covariance[: found.size, : found.size]
    if not covariance.any() or draws < 1:
        return [None] * found.size
    values, vectors = np.linalg.eigh(covariance)
    normal = np.random.default_rng(seed).standard_normal((draws, found.size))
    moved = (normal * np.sqrt(np.maximum(values, 0))) @ vectors.T
    own = np.diag(covariance)
    told: list[tuple[int, int] | None] = []
    for i in range(found.size):
        se = np.sqrt(np.maximum(own[i] + own - 2 * covariance[i], 0))
        freedom = np.minimum(found.seen[i], found.seen) - 1
        tried = (se > 1e-9) & (freedom > 0)
        if not tried.any():
            told.append((1, found.size))
            continue
        largest = (np.abs(moved[:, tried] - moved[:, [i]]) / se[tried]).max(axis=1)
        reach = stdtrit(freedom[tried], ndtr(np.quantile(largest, level))) * se[tried]
        ahead = strengths[tried] - strengths[i]
        told.append((1 + int((ahead > reach).sum()), found.size - int((ahead < -reach).sum())))
    return told


def _unranked(reason: str) -> Standing:
    none = Estimate(None, reason=reason)
    return Standing(none, none, none)


def _nothing(reasons: Sequence[str], order: bool, live: NDArray[np.bool_]) -> Ranking:
    none = Estimate(None, reason="no strengths to tell it from")
    effects = tuple(none if here else Estimate(None, reason=_EQUAL) for here in live)
    return Ranking(tuple(map(_unranked, reasons)), none, none if order else None, effects, 0, 0)
