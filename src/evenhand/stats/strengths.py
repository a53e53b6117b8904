"""Strengths fitted to compared systems, their sandwich covariance, and refits to resampled clusters.

`evenhand.stats.bradley_terry` makes standings and ranks of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import sparse
from scipy.special import expit, logit, stdtrit

from evenhand.stats.davidson import Maximum, Outcomes, maximum, parts, residuals
from evenhand.stats.estimates import Estimate, few
from evenhand.stats.pairwise import Compared
from evenhand.stats.resample import percentile_interval
from evenhand.stats.table import Floats

Ties = Literal["davidson", "half"]
REFITS = 1000  #: Draws of the bootstrap of strengths.
_DENSE = 0.05  # filled share from which sums are multiplied as a dense array
_ALL_TIED = "every comparison is a tie"
_OTHERWISE = "; sandwich intervals need no draws, and ties as half a win leave fewer of them undefined"
_REACH = 50  # on a log or logit scale, from which an interval says nothing
_SETTLED = 1e-7  # largest step at which a refit stops
_STEPS = 25  # steps with the curvature of the first fit, before Newton's


@dataclass(frozen=True, slots=True)
class Fit:
    """Estimates and what their intervals are made of; `size` strengths, effects, then tau if ties are modelled."""

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
    level: float
    units: Floats  # what x was divided by, from effects of scale 1
    drawn: Floats | None = None  # x in each bootstrap draw, shape (draws, len(x)); None for sandwich intervals

    @property
    def tau(self) -> float | None:
        """Log of nu, None without modelled ties."""
        return float(self.x[-1]) if self.modelled else None

    def system(self, i: int, value: float, se: float, drawn: Floats | None, scale: str = "") -> Estimate:
        """A figure of one system; `drawn` are its values in the bootstrap draws."""
        return self._estimate(value, se, int(self.met[i]), int(self.seen[i]), drawn, scale)

    def effects(self) -> list[Estimate]:
        """Coefficients of the effects."""
        return [self._parameter(k) for k in range(self.size, len(self.x) - self.modelled)]

    def tie(self) -> Estimate:
        """Davidson's nu."""
        if self.all_tied:
            return Estimate(None, n=self.n, clusters=self.groups, reason=_ALL_TIED)
        if self.tau is None:
            return Estimate(0.0, n=self.n, clusters=self.groups, reason="no tie: no interval", level=self.level)
        return self._parameter(len(self.x) - 1, "log")

    def _parameter(self, k: int, scale: str = "") -> Estimate:
        value, se = float(self.x[k]), math.sqrt(self.covariance[k, k])
        drawn = None if self.drawn is None else self.drawn[:, k]
        if scale == "log":
            value, drawn = math.exp(value), None if drawn is None else np.exp(drawn)
            se *= value
        return self._estimate(value, se, self.n, self.groups, drawn, scale)

    def _estimate(self, value: float, se: float, n: int, groups: int, drawn: Floats | None, scale: str) -> Estimate:
        how = "Bradley-Terry" + (", ties by Davidson" if self.modelled else "")
        plain = Estimate(value, n=n, clusters=groups, method=how, level=self.level, reason="no variation: no interval")
        if self.all_tied or groups < 2:
            return replace(plain, reason=f"{_ALL_TIED if self.all_tied else f'one {self.unit}'}: no interval")
        if se <= 1e-9:
            return plain
        if drawn is not None:
            return self._of_draws(plain, drawn)
        reach = float(stdtrit(groups - 1, 0.5 + self.level / 2)) * se
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

    def _of_draws(self, plain: Estimate, drawn: Floats) -> Estimate:
        assert plain.value is not None
        found = percentile_interval(drawn, plain.value, plain.clusters, level=plain.level)
        told = f"percentile bootstrap over {self.unit}s, {len(drawn)} draws"
        warnings = tuple(w for w in found.warnings if w not in few(plain.clusters))
        warnings += few(plain.clusters, self.unit) if found.ci else ()
        how = f"{plain.method}; {told}"
        reason = found.reason + (_OTHERWISE if found.reason.startswith("undefined") else "")
        return replace(plain, ci=found.ci, se=found.se, method=how, reason=reason, warnings=warnings)


def fit(given: Compared, ties: Ties, unit: str, level: float) -> tuple[Fit, Compared, Maximum] | None:
    """Estimates and sandwich covariance; None where there is no finite estimate.

    Returns:
        The fit, and for `refits` what it was made of: outcomes with effects of scale 1, and their maximum.
    """
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
    x, met = found.parameters / units, sides[0] + sides[1]
    return Fit(x, covariance, o.size, modelled, all_tied, given.n, groups, met, seen, unit, level, units), given, found


def refits(fitted: tuple[Fit, Compared, Maximum], *, draws: int, seed: int) -> Floats:
    """The parameters of a fit in resamples of its clusters, in its units: shape (draws, parameters).

    A draw starts at the fit and takes steps with its curvature, which is much like that of the draw; where these don't
    settle, Newton's. NaN in draws that have no finite estimate.
    """
    base, given, found = fitted
    cells, (_, at) = given.cells(), given.joined()
    o, size = given.outcomes, len(cells.first)
    ids = np.arange(len(at)) if given.clusters is None else given.clusters
    counts = given.counts if given.clusters is None else np.ones(int(ids.max()) + 1)
    where = (np.concatenate([at, at + size, at + 2 * size]), np.tile(ids, 3))
    sums = sparse.csr_matrix((np.concatenate([o.wins, o.ties, o.losses]), where), (3 * size, len(counts)))
    sums.eliminate_zeros()
    rng = np.random.default_rng(seed)
    values = np.full((draws, len(base.x)), np.nan)
    for row in values:
        wins, ties, losses = (sums @ _drawn(counts, rng)).reshape(3, size)
        again = _refit(replace(cells, wins=wins, ties=ties, losses=losses), found, base.modelled)
        if again is not None:
            row[:] = again
    return values / base.units


def _drawn(counts: Floats, rng: np.random.Generator) -> Floats:
    """How often each cluster is drawn; per comparison, where a row stands for `counts` of them."""
    groups = round(float(counts.sum()))
    if groups == len(counts):
        return np.bincount(rng.integers(0, groups, groups), minlength=groups).astype(float)
    drawn: Floats = rng.multinomial(groups, counts / counts.sum()) / counts
    return drawn


def _refit(outcomes: Outcomes, found: Maximum, ties: bool) -> Floats | None:
    x = found.parameters
    for _ in range(_STEPS):
        pull, tied = residuals(outcomes, x, ties=ties)
        slope = outcomes.gathered(pull)
        step = found.inverse @ (np.append(slope, tied.sum()) if ties else slope)
        x = x + step
        reach = np.abs(step).max()
        if reach <= _SETTLED:
            return x
        if not reach < 1:
            break
    if parts(outcomes).any():  # some are separated: Newton's steps would take long to say so
        return None
    again = maximum(outcomes, ties=ties, start=found.parameters)
    return None if again is None else again.parameters


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
