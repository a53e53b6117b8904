"""Measures of agreement as functions of sums, so that one bootstrap serves them all.

A measure turns the codes of a unit into a row of numbers, and the sum of rows into its value. Codes are indices of
`points` (nominal, ordinal, and where distances need a table) or plain numbers; NaN is a missing rating.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, Protocol

import numpy as np
from scipy import sparse

from evenhand.stats.resample import Interval, Resampling, Sums, bootstrap, cluster_sums
from evenhand.stats.table import Floats, Ints

Weights = Literal["none", "linear", "quadratic"]
_ROUNDING = 1e-13  # a share of the largest possible value that is no more than rounding


class Measure(Protocol):
    """One measure over units of the same raters."""

    @property
    def symmetric(self) -> bool:
        """Whether raters may be exchanged within a unit."""

    def rows(self, codes: Floats) -> Sums:
        """Sufficient statistics, shape (units, d); a unit that does not count gives zeros."""

    def value(self, sums: Floats) -> Floats:
        """The measure of summed rows, shape (m, d) -> (m,); NaN where undefined."""


@dataclass(frozen=True, slots=True, eq=False)
class Kappa:
    """Weighted Cohen kappa (pooled: Scott's pi) of two raters; `points` are the numbers behind the codes."""

    points: Floats
    weights: Weights = "none"
    pooled: bool = False
    symmetric: bool = False

    def rows(self, codes: Floats) -> Floats:
        a, b = codes[:, 0].astype(np.intp), codes[:, 1].astype(np.intp)
        gap = np.abs(self.points[a] - self.points[b])
        far = {"none": (a != b).astype(float), "linear": gap, "quadratic": gap**2}[self.weights]
        return np.column_stack([far, _one_hot(a, len(self.points)), _one_hot(b, len(self.points))])

    def value(self, sums: Floats) -> Floats:
        k = len(self.points)
        a, b = sums[:, 1 : k + 1], sums[:, k + 1 :]
        if self.pooled:
            a = b = (a + b) / 2
        n = a.sum(axis=1)
        reach = {"none": 1.0, "linear": np.ptp(self.points), "quadratic": np.ptp(self.points) ** 2}[self.weights]
        return _beyond_chance(sums[:, 0] * n, self._chance(a, b, n), n * n * reach)

    def _chance(self, a: Floats, b: Floats, n: Floats) -> Floats:
        """Distance expected by chance times n squared."""
        points = self.points - self.points.mean()
        expected: Floats
        if self.weights == "none":
            expected = n * n - (a * b).sum(axis=1)
            return expected
        if self.weights == "quadratic":
            expected = n * (a @ points**2 + b @ points**2) - 2 * (a @ points) * (b @ points)
            return expected
        below_a, below_b = np.cumsum(a, axis=1)[:, :-1], np.cumsum(b, axis=1)[:, :-1]
        crossing = below_a * (n[:, None] - below_b) + below_b * (n[:, None] - below_a)
        expected = crossing @ np.diff(self.points)
        return expected


@dataclass(frozen=True, slots=True, eq=False)
class Gwet:
    """Weighted agreement of any number of raters: Gwet's AC1 / AC2, or Fleiss' kappa with `fleiss`."""

    agree: Floats  # (k, k) agreement weights, 1 on the diagonal
    fleiss: bool = False
    symmetric: bool = True

    def rows(self, codes: Floats) -> Floats:
        counts = _counts(codes, len(self.agree))
        rated = counts.sum(axis=1)
        both = rated >= 2
        pairs = np.where(both, rated * (rated - 1), 1)
        met = (counts * (counts @ self.agree - 1)).sum(axis=1) / pairs
        share = counts / np.maximum(rated, 1)[:, None]
        return np.column_stack([np.where(both, met, 0), both, rated >= 1, share])

    def value(self, sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            met = sums[:, 0] / sums[:, 1]
            share = sums[:, 3:] / sums[:, 2:3]
        if len(self.agree) == 1:
            return np.full(len(sums), np.nan)
        if self.fleiss:
            chance = 1 - np.einsum("mi,ij,mj->m", share, self.agree, share)
        else:
            k = len(self.agree)
            chance = 1 - self.agree.sum() / (k * (k - 1)) * (share * (1 - share)).sum(axis=1)
        return _beyond_chance(1 - met, chance)


@dataclass(frozen=True, slots=True, eq=False)
class Alpha:
    """Krippendorff's alpha by a table of the categories' counts; `distance` None means ordinal."""

    cells: Ints  # (c, 2) pairs of categories that meet in a unit (ordinal)
    size: int
    distance: Floats | None
    symmetric: bool = True

    @classmethod
    def nominal(cls, size: int) -> Alpha:
        """Every two different categories are equally far apart."""
        return cls(np.empty((0, 2), np.intp), size, 1 - np.eye(size))

    @classmethod
    def ratio(cls, points: Floats) -> Alpha:
        """Distances relative to the sum of two numbers."""
        total = points[:, None] + points
        gap = np.divide(points[:, None] - points, total, out=np.zeros_like(total), where=total > 0)
        return cls(np.empty((0, 2), np.intp), len(points), gap**2)

    @classmethod
    def ordinal(cls, codes: Floats, size: int) -> Alpha:
        """Distances between mid-ranks, which depend on how often each category is used."""
        met = [
            np.sort(_complete(codes[:, list(pair)]).astype(np.intp), axis=1)
            for pair in combinations(range(codes.shape[1]), 2)
        ]
        cells = np.unique(np.concatenate(met or [np.empty((0, 2), np.intp)]), axis=0)
        return cls(cells[cells[:, 0] != cells[:, 1]], size, None)

    def rows(self, codes: Floats) -> Sums:
        rated = (~np.isnan(codes)).sum(axis=1)
        counts = _counts(codes, self.size) * (rated >= 2)[:, None]
        per = 1 / np.maximum(rated - 1, 1)
        if self.distance is not None:
            far = ((counts @ self.distance) * counts).sum(axis=1) * per
            return np.column_stack([counts, far])
        i, j = self.cells.T
        return np.column_stack([counts, 2 * counts[:, i] * counts[:, j] * per[:, None]])

    def value(self, sums: Floats) -> Floats:
        counts = sums[:, : self.size]
        n = counts.sum(axis=1)
        if self.distance is not None:
            expected = ((counts @ self.distance) * counts).sum(axis=1)
            return _beyond_chance(sums[:, self.size] * (n - 1), expected, 0)
        ranks = np.cumsum(counts, axis=1) - (counts + n[:, None]) / 2
        i, j = self.cells.T
        met = (sums[:, self.size :] * (ranks[:, i] - ranks[:, j]) ** 2).sum(axis=1)
        expected = 2 * (n * (counts * ranks**2).sum(axis=1) - (counts * ranks).sum(axis=1) ** 2)
        return _beyond_chance(met * (n - 1), expected, 0)


@dataclass(frozen=True, slots=True, eq=False)
class IntervalAlpha:
    """Krippendorff's alpha with squared differences, by moments: any numbers, however many."""

    centre: float
    symmetric: bool = True

    def rows(self, codes: Floats) -> Floats:
        rated = (~np.isnan(codes)).sum(axis=1)
        many = np.maximum(rated, 1)
        both = rated >= 2
        x = np.where(both[:, None], np.nan_to_num(codes - self.centre), 0)
        mean = x.sum(axis=1) / many
        inner = (np.where(np.isnan(codes), 0, x - mean[:, None]) ** 2).sum(axis=1)
        far = np.where(both, 2 * rated * inner / np.maximum(rated - 1, 1), 0)
        return np.column_stack([far, rated * both, x.sum(axis=1), (x * x).sum(axis=1)])

    def value(self, sums: Floats) -> Floats:
        far, n, total, square = sums.T
        return _beyond_chance(far * (n - 1), 2 * _spread(n, total, square), 0)


@dataclass(frozen=True, slots=True, eq=False)
class Moments:
    """Pearson's correlation of two raters; with `concordance` the quadratic kappa of plain numbers."""

    centre: tuple[float, float]
    concordance: bool = False
    symmetric: bool = False

    @classmethod
    def of(cls, codes: Floats, *, concordance: bool = False) -> Moments:
        """Centred near the data, so that little is lost in subtractions."""
        both = _complete(codes)
        if not len(both):
            return cls((0.0, 0.0), concordance)
        a, b = both.mean(axis=0).tolist()
        return cls(((a + b) / 2, (a + b) / 2) if concordance else (a, b), concordance)

    def rows(self, codes: Floats) -> Floats:
        a, b = (codes - np.array(self.centre)).T
        far = (codes[:, 0] - codes[:, 1]) ** 2
        return np.column_stack([np.ones(len(a)), a, b, a * a, b * b, a * b, far])

    def value(self, sums: Floats) -> Floats:
        n, a, b, aa, bb, ab, far = sums.T
        if self.concordance:
            return _beyond_chance(far * n, _spread(n, a, aa) + _spread(n, b, bb) + (a - b) ** 2, 0)
        return _quotient(n * ab - a * b, np.sqrt(_spread(n, a, aa) * _spread(n, b, bb)))


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """Spearman's rho or Kendall's tau-b over the different pairs of codes that occur."""

    pairs: Floats  # (p, 2), sorted
    kendall: bool = False
    symmetric: bool = False

    @classmethod
    def of(cls, codes: Floats, *, kendall: bool = False) -> Ranked:
        """For the pairs that occur in `codes`."""
        return cls(np.unique(_complete(codes), axis=0), kendall)

    def rows(self, codes: Floats) -> Sums:
        known = len(self.pairs)
        place = np.unique(np.vstack([self.pairs, codes]), axis=0, return_inverse=True)[1].ravel()[known:]
        return sparse.csr_matrix((np.ones(len(codes)), (np.arange(len(codes)), place)), (len(codes), known))

    def value(self, sums: Floats) -> Floats:
        n = sums.sum(axis=1)
        uses = [self._uses(sums, column) for column in (0, 1)]
        free_a, free_b = (n * n - (counts**2).sum(axis=1) for counts, _ in uses)  # pairs of units told apart, twice
        if self.kendall:
            x, y = self.pairs.T
            signs = np.sign(np.subtract.outer(x, x)) * np.sign(np.subtract.outer(y, y))
            return _quotient(((sums @ signs) * sums).sum(axis=1), np.sqrt(free_a * free_b))
        a, b = ((np.cumsum(counts, axis=1) - (counts + n[:, None]) / 2)[:, place] for counts, place in uses)
        both = np.sqrt((sums * a * a).sum(axis=1) * (sums * b * b).sum(axis=1))
        return _quotient((sums * a * b).sum(axis=1), np.where((free_a > 0) & (free_b > 0), both, 0))

    def _uses(self, sums: Floats, column: int) -> tuple[Floats, Ints]:
        """How often each of a rater's values is used, shape (m, values), and which value each pair has."""
        points, place = np.unique(self.pairs[:, column], return_inverse=True)
        owner = sparse.csr_matrix((np.ones(len(place)), (place, np.arange(len(place)))), (len(points), len(place)))
        return np.asarray((owner @ sums.T).T), place


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Mean of a function of the difference of two raters' numbers: exact or near agreement, error, bias."""

    of: Callable[[Floats], Floats]
    symmetric: bool = False

    def rows(self, codes: Floats) -> Floats:
        return np.column_stack([self.of(codes[:, 0] - codes[:, 1]), np.ones(len(codes))])

    def value(self, sums: Floats) -> Floats:
        return _quotient(sums[:, 0], sums[:, 1])


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """A weighted sum of measures of pairs of raters, each over the units both rated."""

    parts: tuple[tuple[Measure, tuple[int, int], float], ...]
    symmetric: bool = False

    def rows(self, codes: Floats) -> Floats:
        return np.concatenate([_pair_rows(measure, codes[:, pair]) for measure, pair, _ in self.parts], axis=1)

    def value(self, sums: Floats) -> Floats:
        total, start = np.zeros(len(sums)), 0
        for measure, _, weight in self.parts:
            stop = start + measure.rows(np.empty((0, 2))).shape[1]
            total += weight * measure.value(sums[:, start:stop])
            start = stop
        return total


def _pair_rows(measure: Measure, codes: Floats) -> Floats:
    both = ~np.isnan(codes).any(axis=1)
    found = measure.rows(codes[both])
    rows = np.zeros((len(codes), found.shape[1]))
    rows[both] = found.toarray() if sparse.issparse(found) else found
    return rows


def evaluate(measure: Measure, codes: Floats, clusters: Ints, resampling: Resampling) -> tuple[float, Interval]:
    """Value of a measure (NaN where undefined) and its interval clustered by `clusters` (ids 0..g-1).

    Args:
        codes: Shape (units, raters), only units that count.
        clusters: Shape (units,).
        resampling: Draws, seed, level and method; with 0 draws no interval is made.
    """
    groups = int(clusters.max()) + 1
    counts: Ints | None = None
    if groups == len(codes):  # units with the same ratings are exchangeable
        known = np.where(np.isnan(codes), -np.inf, codes)
        patterns, counts = np.unique(np.sort(known, axis=1) if measure.symmetric else known, axis=0, return_counts=True)
        sums = measure.rows(np.where(np.isinf(patterns), np.nan, patterns))
        total = counts @ sums
    else:
        sums = cluster_sums(measure.rows(codes), clusters)
        total = np.asarray(sums.sum(axis=0))
    value = float(measure.value(np.asarray(total, dtype=np.float64).reshape(1, -1))[0])
    if np.isnan(value):
        return value, Interval(None)
    interval = bootstrap(
        sums,
        measure.value,
        counts=counts,
        draws=resampling.draws,
        seed=resampling.seed,
        level=resampling.level,
        method=resampling.method,
    )
    return value, interval


def _counts(codes: Floats, size: int) -> Floats:
    """How many raters chose each category, shape (units, size)."""
    units = len(codes)
    rated = ~np.isnan(codes)
    flat = (np.arange(units)[:, None] * size + np.where(rated, codes, 0).astype(np.intp))[rated]
    return np.bincount(flat, minlength=units * size).reshape(units, size).astype(np.float64)


def _one_hot(codes: Ints, size: int) -> Floats:
    return _counts(codes[:, None].astype(np.float64), size)


def _complete(codes: Floats) -> Floats:
    kept: Floats = codes[~np.isnan(codes).any(axis=1)]
    return kept


def _spread(n: Floats, total: Floats, square: Floats) -> Floats:
    """n squared times the variance; 0 where it is only rounding."""
    spread = n * square - total * total
    return np.where(spread <= _ROUNDING * n * square, 0, spread)


def _beyond_chance(observed: Floats, expected: Floats, scale: Floats | float = 1.0) -> Floats:
    """1 - observed / expected disagreement; NaN where none is expected, which is to `scale`."""
    possible = expected > _ROUNDING * scale
    return np.where(possible, 1 - observed / np.where(possible, expected, 1), np.nan)


def _quotient(above: Floats, below: Floats) -> Floats:
    return np.where(below > 0, above / np.where(below > 0, below, 1), np.nan)
