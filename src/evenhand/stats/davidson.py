"""The likelihood of pairwise outcomes with ties, its maximum, and where it has none. `bradley_terry` builds on it.

The predictor of a comparison is ``eta = strength of the first slot - strength of the second + covariates``; then
P(first) : P(second) : P(tie) = exp(eta / 2) : exp(-eta / 2) : nu. With nu = exp(tau) this is a multinomial logit in
(strengths, effects, tau), so the log-likelihood is concave and one maximum is the maximum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.csgraph import connected_components

from evenhand.stats.table import Floats, Ints

_STEPS = 100
_FLAT = 1e-9  # largest slope at a maximum, per comparison of a million
_STILL = 1e-10  # largest step at a maximum
_SINGULAR = 1e-12  # curvature under which a step means nothing
_RUNAWAY = 1e-6  # least curvature at a maximum; where outcomes are separated it falls to the slope's size


@dataclass(frozen=True)
class Outcomes:
    """Compared slots, with weights of each outcome in a row.

    Attributes:
        first, second: Ids 0..size-1 of the systems in the two slots, shape (rows,).
        wins, ties, losses: Weights of what the first slot came to, shape (rows,), >= 0.
        effects: What else moves the predictor, shape (rows, k).
        size: Number of systems.
    """

    first: Ints
    second: Ints
    wins: Floats
    ties: Floats
    losses: Floats
    effects: Floats
    size: int

    @cached_property
    def total(self) -> Floats:
        """Weight of each row."""
        return self.wins + self.ties + self.losses

    @cached_property
    def pair(self) -> Ints:
        """Number of the ordered pair of systems of each row, shape (rows,)."""
        return self.first * self.size + self.second

    def predictor(self, x: Floats) -> Floats:
        """Predictor of each row, shape (rows,), from strengths and effects (and what else x holds)."""
        eta: Floats = x[self.first] - x[self.second]
        return eta + self.effects @ x[self.size : self.size + self.effects.shape[1]] if self.effects.size else eta

    def gathered(self, rows: Floats) -> Floats:
        """Sums of a value over rows as each strength and effect meets it: shape (size + k,)."""
        own = np.bincount(self.first, rows, self.size) - np.bincount(self.second, rows, self.size)
        return np.concatenate([own, self.effects.T @ rows])

    def squares(self, weights: Floats) -> Floats:
        """Sums of weighted products of what strengths and effects are multiplied by: shape (size + k, size + k)."""
        pairs = np.bincount(self.pair, weights, self.size**2).reshape(self.size, self.size)
        pairs = pairs + pairs.T
        found = np.zeros((self.size + self.effects.shape[1],) * 2)
        found[: self.size, : self.size] = np.diag(pairs.sum(axis=0)) - pairs
        for k, effect in enumerate(self.effects.T, self.size):
            found[k] = found[:, k] = self.gathered(weights * effect)
        return found


class Chances(NamedTuple):
    """Probabilities of the three outcomes of each row, shape (rows,) each."""

    first: Floats
    tie: Floats
    second: Floats

    @property
    def lean(self) -> Floats:
        """P(first) - P(second)."""
        return self.first - self.second

    @property
    def slope(self) -> Floats:
        """How fast the expected points (win 1, tie 0.5) grow with the predictor."""
        slope: Floats = (self.first + self.second - self.lean**2) / 4
        return slope


class Maximum(NamedTuple):
    """Where the likelihood is highest.

    Attributes:
        parameters: Strengths (mean 0), effects, then tau where ties are part of the model.
        inverse: Inverse of the curvature, the strengths' mean left out.
    """

    parameters: Floats
    inverse: Floats


def chances(eta: Floats, tau: float | None) -> Chances:
    """Probabilities at predictors ``eta``; no ties where tau is None."""
    half = eta / 2
    top = np.abs(half) if tau is None else np.maximum(np.abs(half), tau)
    first, second = np.exp(half - top), np.exp(-half - top)
    tie = np.zeros_like(half) if tau is None else np.exp(tau - top)
    total = first + second + tie
    return Chances(first / total, tie / total, second / total)


def maximum(outcomes: Outcomes, *, ties: bool, start: Floats | None = None) -> Maximum | None:
    """The maximum of the likelihood, by Newton steps that never go down.

    Args:
        outcomes: Rows that link all systems; weights of the order of one.
        ties: Ties are an outcome of their own. Otherwise there must be none.
        start: Parameters to start from; default: equal strengths.

    Returns:
        None where there is no finite maximum. That shows in the curvature: along a direction in which the likelihood
        never stops growing, curvature is at most slope times reach, so that it vanishes with the slope. At a true
        maximum outcomes for and against every direction keep it well above.
    """
    x: Floats = np.zeros(outcomes.size + outcomes.effects.shape[1] + ties) if start is None else start.copy()
    if ties and start is None:
        tied = outcomes.ties.sum()
        x[-1] = np.log(2 * tied / (outcomes.total.sum() - tied))
    flat = _FLAT * max(1.0, outcomes.total.sum() / 1e6)
    value, slope, curve = _at(outcomes, x, ties)
    for _ in range(_STEPS):
        root = _root(curve, _SINGULAR)
        if np.abs(slope).max() <= flat or root is None:
            break
        step = cho_solve(root, slope)
        if np.abs(step).max() <= _STILL:
            break
        for _ in range(_STEPS):
            better = _at(outcomes, x + step, ties)
            if better[0] >= value - 1e-12 * abs(value):
                break
            step = step / 2
        x = x + step
        value, slope, curve = better
    else:
        return None
    if _root(curve, _RUNAWAY) is None:
        return None
    x[: outcomes.size] -= x[: outcomes.size].mean()
    inverse = np.linalg.inv(curve).astype(float)
    inverse[: outcomes.size, : outcomes.size] -= 1 / outcomes.size
    return Maximum(x, inverse)


def _root(curve: Floats, least: float) -> tuple[Floats, bool] | None:
    """Cholesky factor of a curvature less `least` in every direction; None where some direction has no more than it."""
    try:
        factor: tuple[Floats, bool] = cho_factor(curve - least * np.eye(len(curve)), check_finite=False)
    except LinAlgError:
        return None
    return factor


def residuals(outcomes: Outcomes, x: Floats, *, ties: bool) -> tuple[Floats, Floats]:
    """Slopes of each row's log-likelihood along its predictor and along tau, shape (rows,) each."""
    return _residuals(outcomes, chances(outcomes.predictor(x), x[-1] if ties else None))


def _residuals(outcomes: Outcomes, found: Chances) -> tuple[Floats, Floats]:
    pull = (outcomes.wins - outcomes.losses - outcomes.total * found.lean) / 2
    return pull, outcomes.ties - outcomes.total * found.tie


def _at(outcomes: Outcomes, x: Floats, ties: bool) -> tuple[float, Floats, Floats]:
    """Log-likelihood, slope and curvature (negative second derivative, with the gauge's 1 / size added)."""
    found = chances(outcomes.predictor(x), x[-1] if ties else None)
    seen = zip((outcomes.wins, outcomes.ties, outcomes.losses), found, strict=True)
    value = sum(float(weights[weights > 0] @ np.log(p[weights > 0])) for weights, p in seen)
    pull, tied = _residuals(outcomes, found)
    slope = outcomes.gathered(pull)
    curve = outcomes.squares(outcomes.total * found.slope)
    curve[: outcomes.size, : outcomes.size] += 1 / outcomes.size
    if ties:
        slope = np.append(slope, tied.sum())
        aside = outcomes.gathered(-outcomes.total * found.tie * found.lean / 2)
        last = outcomes.total @ (found.tie * (1 - found.tie))
        curve = np.block([[curve, aside[:, None]], [aside[None, :], np.full((1, 1), last)]])
    return value, slope, curve


def parts(outcomes: Outcomes) -> Ints:
    """Ids of the parts within which every system is linked to every other by wins in both directions.

    A tie links both ways. Between parts outcomes go one way only, if there are any, and no finite difference of
    strengths is the likeliest.

    Source: Ford (1957), "Solution of a ranking problem from binary comparisons".
    """
    ahead = outcomes.wins + outcomes.ties > 0
    behind = outcomes.losses + outcomes.ties > 0
    winners = np.concatenate([outcomes.first[ahead], outcomes.second[behind]])
    losers = np.concatenate([outcomes.second[ahead], outcomes.first[behind]])
    links = sparse.csr_matrix((np.ones(len(winners)), (winners, losers)), (outcomes.size, outcomes.size))
    ids: Ints = connected_components(links, directed=True, connection="strong")[1]
    return ids


def told_apart(outcomes: Outcomes) -> bool:
    """Whether the effects can be told from strengths and from each other, whatever the outcomes."""
    if not outcomes.effects.size:
        return True
    scale = np.sqrt((outcomes.effects**2).mean(axis=0))
    if not scale.all():
        return False
    moments = replace(outcomes, effects=outcomes.effects / scale).squares(np.ones(len(outcomes.first)))
    own, shared = moments[: outcomes.size, : outcomes.size], moments[: outcomes.size, outcomes.size :]
    apart = moments[outcomes.size :, outcomes.size :] - shared.T @ np.linalg.lstsq(own, shared, rcond=None)[0]
    return bool(np.linalg.eigvalsh(apart)[0] > 1e-8 * len(outcomes.first))
