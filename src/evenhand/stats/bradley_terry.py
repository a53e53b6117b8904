"""Strengths and ranks of systems from pairwise outcomes: Bradley and Terry's model, with ties and effects.

With ``eta = strength(first) - strength(second) + order + covariates * coefficients`` the outcomes of a comparison are
likely as ``P(first) : P(second) : P(tie) = exp(eta / 2) : exp(-eta / 2) : nu`` (Davidson 1970, "On extending the
Bradley-Terry model to accommodate ties in paired comparison experiments"). Where a tie counts as half a
win for both there is no nu, as is usual for Elo scales; an estimate exists in more cases, and intervals hold all the
same, since they don't rest on the model.

Intervals are t intervals from the sandwich covariance ``H^-1 (sum_g s_g s_g') H^-1 g / (g - 1)`` of cluster scores s_g;
the degrees of freedom are the clusters that a system is part of, less one. That of nu is on the log scale, that of a
win rate on the logit scale. The rank interval of a system counts the rivals that are surely stronger and those that are
surely weaker, all rivals at a time: the bound is the largest studentized difference in Gaussian multiplier bootstraps
over clusters. It holds the true rank (any of them, where strengths are equal) at the confidence level or more.
Source: Mogstad, Romano, Shaikh and Wilhelm (2024), "Inference for ranks with applications to mobility across
neighbourhoods and academic achievement across countries".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit, logit, ndtr, stdtrit

from evenhand._words import counted
from evenhand.errors import StatisticError
from evenhand.stats.davidson import Maximum, chances, maximum, residuals, told_apart
from evenhand.stats.estimates import CONFIDENCE, Estimate, few
from evenhand.stats.pairwise import Compared, main_part
from evenhand.stats.resample import DRAWS
from evenhand.stats.table import Floats

Ties = Literal["davidson", "half"]
ELO_MEAN = 1000.0
ELO_SCALE = 400 / math.log(10)  #: Elo points of one unit of log-odds
_DENSE = 0.05  # filled share from which sums are multiplied as a dense array
_ALL_TIED = "every comparison is a tie"
_ENDLESS = "the outcomes leave no finite estimate"
_TRY_HALF = "; with ties as half a win there may be one"
_ONE_ORDER = "not to be told from the strengths: each pair of systems is in one order only"
_REACH = 50  # on a log or logit scale, from which an interval says nothing


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
    finite estimate otherwise (A never loses to B, but some are ties: with ties as half a win there is one). All ties
    are equal strengths without interval. An order effect that can't be told from the strengths (each pair of systems
    always in the same order, and no cycle of them) is left out with a reason. No interval for a system in one cluster
    only, or without variation.

    Attributes:
        standings: One for each system, by its id.
        tie: Davidson's nu: odds of a tie to winning, between equals without an order effect, are nu. 0 where
            nothing was tied; no value where ties count half.
        order: Log-odds of the first slot between equals; None where it was not asked for.
        effects: Coefficients of the covariates, in their order and units.
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
        draws, seed: Number and seed of the bootstrap draws for the rank intervals.
        unit: What a cluster is, for the words beside the figures.

    Returns:
        Never NaN, never a runaway figure; `Ranking` tells what has no figures, and why.

    Raises:
        StatisticError: arguments of different lengths or out of range; covariates that can't be told from the
            strengths or from each other.

    Source: Bradley and Terry (1952); Davidson (1970); checked against his example 2 and scipy.optimize.
    """
    if ties not in ("davidson", "half"):
        raise StatisticError(f"ties are counted by davidson or half, not {ties!r}")
    given = Compared.of(first, second, points, size, counts, weights, clusters, covariates)
    main, reasons = main_part(given.cells())
    if main is None:
        return _nothing(reasons, order, given)
    told, warnings = _told_apart(given.within(main), order)
    if left_out := given.n - told.n:
        warnings.append(f"left out: {counted(left_out, 'comparison')} with separated systems")
    fit = _fit(told, ties, unit)
    if fit is None:
        why = _ENDLESS + (_TRY_HALF if ties == "davidson" and told.outcomes.ties.any() else "")
        return _nothing([reason or why for reason in reasons], order, given)
    inside = iter(_standings(fit, _rank_intervals(fit, level, draws, seed), told.order, level))
    standings = [_unranked(reason) if reason else next(inside) for reason in reasons]
    return _ranking(fit, standings, told.order if order else None, ties, level, warnings)


def _told_apart(given: Compared, order: bool) -> tuple[Compared, list[str]]:
    """With the order's effect where it can be told from the strengths, and a warning where it can't."""
    warnings = []
    ordered = given.with_order() if order else given
    if order and not told_apart(ordered.only_order().cells()):
        ordered = given
        warnings.append("strengths include an order effect that can't be told from them")
    if given.outcomes.effects.size and not told_apart(ordered.outcomes):
        raise StatisticError("covariates can't be told from the strengths, the order or each other")
    return ordered, warnings


@dataclass(frozen=True, slots=True)
class _Fit:
    """Estimates and their covariance; `size` strengths, effects, then tau if ties are modelled."""

    x: Floats
    covariance: Floats  # zeros without variation or with one cluster
    size: int
    modelled: bool
    all_tied: bool
    n: int
    groups: int
    met: Floats  # comparisons of each system
    seen: Floats  # clusters of each system
    unit: str  # what a cluster is

    @property
    def tau(self) -> float | None:
        """Log of nu, None without modelled ties."""
        return float(self.x[-1]) if self.modelled else None

    def system(self, i: int, value: float, se: float, level: float, scale: str = "") -> Estimate:
        """A figure of one system."""
        return self._estimate(value, se, int(self.met[i]), int(self.seen[i]), level, scale)

    def effects(self, level: float) -> list[Estimate]:
        """Coefficients of the effects."""
        which = range(self.size, len(self.x) - self.modelled)
        se = np.sqrt(np.diag(self.covariance))
        return [self._estimate(float(self.x[k]), float(se[k]), self.n, self.groups, level) for k in which]

    def tie(self, level: float) -> Estimate:
        """Davidson's nu."""
        if self.all_tied:
            return Estimate(None, n=self.n, clusters=self.groups, reason=_ALL_TIED)
        if self.tau is None:
            return Estimate(0.0, n=self.n, clusters=self.groups, reason="no tie: no interval", level=level)
        nu = math.exp(self.tau)
        se = nu * math.sqrt(self.covariance[-1, -1])
        return self._estimate(nu, se, self.n, self.groups, level, "log")

    def _estimate(self, value: float, se: float, n: int, groups: int, level: float, scale: str = "") -> Estimate:
        how = "Bradley-Terry" + (", ties by Davidson" if self.modelled else "")
        plain = Estimate(value, n=n, clusters=groups, method=how, level=level, reason="no variation: no interval")
        if self.all_tied or groups < 2:
            return replace(plain, reason=f"{_ALL_TIED if self.all_tied else f'one {self.unit}'}: no interval")
        if se <= 1e-9:
            return plain
        reach = float(stdtrit(groups - 1, 0.5 + level / 2)) * se
        slope = {"log": value, "logit": value * (1 - value)}.get(scale, 1.0)
        if scale and reach > _REACH * slope:
            return replace(plain, reason="too little data: no interval")
        if scale == "log":
            ci = (value * math.exp(-reach / slope), value * math.exp(reach / slope))
        elif scale == "logit":
            ci = (float(expit(logit(value) - reach / slope)), float(expit(logit(value) + reach / slope)))
        else:
            ci = (value - reach, value + reach)
        method = f"{how}; sandwich t interval clustered by {self.unit}"
        return replace(plain, ci=ci, se=se, method=method, reason="", warnings=few(groups, self.unit))


def _fit(given: Compared, ties: Ties, unit: str) -> _Fit | None:
    """Estimates and sandwich covariance; None where there is no finite estimate."""
    o = given.outcomes
    all_tied = not (o.wins.any() or o.losses.any())
    modelled = ties == "davidson" and bool(o.ties.any()) and not all_tied
    if not modelled:
        half = o.ties / 2
        o = replace(o, wins=o.wins + half, ties=np.zeros_like(half), losses=o.losses + half)
    scale = np.sqrt((o.effects**2).mean(axis=0))
    given = given._replace(outcomes=replace(o, effects=o.effects / scale))
    found = maximum(given.cells(), ties=modelled)
    if found is None:
        return None
    covariance, groups, seen = _sandwich(given, found, modelled)
    if all_tied:
        covariance = np.zeros_like(covariance)
    units = np.concatenate([np.ones(o.size), scale, np.ones(int(modelled))])
    covariance = covariance / np.outer(units, units)
    sides = [np.bincount(side, given.counts, o.size).astype(float) for side in (o.first, o.second)]
    met = sides[0] + sides[1]
    return _Fit(found.parameters / units, covariance, o.size, modelled, all_tied, given.n, groups, met, seen, unit)


def _sandwich(given: Compared, found: Maximum, modelled: bool) -> tuple[Floats, int, Floats]:
    """Covariance (zeros for one cluster), number of clusters, and of those that each system is part of."""
    o = given.outcomes
    pull, tied = residuals(o, found.parameters, ties=modelled)
    if given.clusters is None:  # the comparisons of a row are independent
        pull, tied = pull / np.sqrt(given.counts), tied / np.sqrt(given.counts)
        ids, groups = np.arange(len(pull)), given.n
    else:
        ids = given.clusters
        groups = int(ids.max()) + 1
    at = (np.tile(ids, 2), np.concatenate([o.first, o.second]))
    own = sparse.csr_matrix((np.concatenate([pull, -pull]), at), (int(ids.max()) + 1, o.size))
    seen = np.bincount(own.indices, minlength=o.size).astype(float)
    if given.clusters is None:
        seen = np.bincount(o.first, given.counts, o.size) + np.bincount(o.second, given.counts, o.size)
    rest = [np.bincount(ids, pull * effect) for effect in o.effects.T] + [np.bincount(ids, tied)] * modelled
    if own.nnz > _DENSE * own.shape[0] * own.shape[1]:
        own = own.toarray()
    sums = np.column_stack(rest) if rest else np.zeros((own.shape[0], 0))
    across = own.T @ sums
    squares = own.T @ own
    squares = squares.toarray() if sparse.issparse(squares) else squares
    meat = np.block([[squares, across], [across.T, sums.T @ sums]])
    covariance: Floats = found.inverse @ meat @ found.inverse
    return covariance * (groups / (groups - 1) if groups > 1 else 0.0), groups, seen


def _standings(fit: _Fit, bounds: list[tuple[int, int] | None], order: bool, level: float) -> Iterator[Standing]:
    strengths = fit.x[: fit.size]
    errors = np.sqrt(np.diag(fit.covariance))
    rates, rate_errors = _win_rates(fit, order)
    for i, value in enumerate(strengths):
        strength = fit.system(i, float(value), float(errors[i]), level)
        elo = replace(
            strength,
            value=ELO_MEAN + ELO_SCALE * float(value),
            ci=strength.ci and (ELO_MEAN + ELO_SCALE * strength.ci[0], ELO_MEAN + ELO_SCALE * strength.ci[1]),
            se=strength.se and ELO_SCALE * strength.se,
        )
        rate = fit.system(i, float(rates[i]), float(rate_errors[i]), level, "logit")
        rank = 1 + int((strengths > value + 1e-9).sum())
        yield Standing(strength, elo, rate, rank, bounds[i] if strength.ci else None)


def _win_rates(fit: _Fit, order: bool) -> tuple[Floats, Floats]:
    """Expected points against the average rival and their standard errors, by the delta method."""
    size, many = fit.size, fit.size - 1
    gaps = fit.x[:size, None] - fit.x[None, :size]
    shifts = (fit.x[size], -fit.x[size]) if order else (0.0,)
    points = np.zeros((size, size))
    slopes = np.zeros((size, size))
    along = np.zeros((size, len(fit.x)))
    others = ~np.eye(size, dtype=bool)
    for sign, shift in zip((1, -1), shifts, strict=False):
        found = chances(gaps + shift, fit.tau)
        points += (found.first + found.tie / 2) * others / len(shifts)
        slopes += found.slope * others / len(shifts)
        if order:
            along[:, size] += sign * (found.slope * others).sum(axis=1) / many / len(shifts)
        if fit.modelled:
            along[:, -1] -= (found.tie * found.lean / 2 * others).sum(axis=1) / many / len(shifts)
    along[:, :size] = (np.diag(slopes.sum(axis=1)) - slopes) / many
    variance = np.einsum("ij,jk,ik->i", along, fit.covariance, along, optimize=True)
    return points.sum(axis=1) / many, np.sqrt(np.maximum(variance, 0))


def _rank_intervals(fit: _Fit, level: float, draws: int, seed: int) -> list[tuple[int, int] | None]:
    """Ranks that are left when the rivals that are surely stronger or weaker are counted."""
    strengths, covariance = fit.x[: fit.size], fit.covariance[: fit.size, : fit.size]
    if not covariance.any() or draws < 1:
        return [None] * fit.size
    values, vectors = np.linalg.eigh(covariance)
    normal = np.random.default_rng(seed).standard_normal((draws, fit.size))
    moved = (normal * np.sqrt(np.maximum(values, 0))) @ vectors.T
    own = np.diag(covariance)
    found: list[tuple[int, int] | None] = []
    for i in range(fit.size):
        se = np.sqrt(np.maximum(own[i] + own - 2 * covariance[i], 0))
        freedom = np.minimum(fit.seen[i], fit.seen) - 1
        tried = (se > 1e-9) & (freedom > 0)
        if not tried.any():
            found.append((1, fit.size))
            continue
        largest = (np.abs(moved[:, tried] - moved[:, [i]]) / se[tried]).max(axis=1)
        reach = stdtrit(freedom[tried], ndtr(np.quantile(largest, level))) * se[tried]
        ahead = strengths[tried] - strengths[i]
        found.append((1 + int((ahead > reach).sum()), fit.size - int((ahead < -reach).sum())))
    return found


def _ranking(
    fit: _Fit, standings: list[Standing], ordered: bool | None, ties: Ties, level: float, warnings: list[str]
) -> Ranking:
    """All figures; `ordered` is None where no order effect was asked for, False where there is none to be had."""
    effects = fit.effects(level)
    shift = effects.pop(0) if ordered else None if ordered is None else Estimate(None, reason=_ONE_ORDER)
    tie = fit.tie(level) if ties == "davidson" else Estimate(None, reason="ties count half")
    return Ranking(tuple(standings), tie, shift, tuple(effects), fit.n, fit.groups, tuple(warnings))


def _unranked(reason: str) -> Standing:
    none = Estimate(None, reason=reason)
    return Standing(none, none, none)


def _nothing(reasons: Sequence[str], order: bool, given: Compared) -> Ranking:
    none = Estimate(None, reason="no strengths to tell it from")
    return Ranking(
        tuple(map(_unranked, reasons)), none, none if order else None, (none,) * given.outcomes.effects.shape[1], 0, 0
    )
