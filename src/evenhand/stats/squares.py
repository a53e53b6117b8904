"""Sums of squares of divisions of scores, and what they are expected to be: the algebra of `stats.components`.

The scores' cell means (fixed effects) are taken away first. A division f has the sum of squares
``sum over its levels of (sum of the rest)^2 / size``. Where a random effect of variance v belongs to each level of a
division k, its expectation grows by v times ``trace(A_f M V_k M)``, where ``A_f`` averages over f, ``V_k`` marks what
lies in one level of k and M takes cell means away. Divisions lie within groups, so all but what M adds is a sum over
groups, which a bootstrap over groups can draw from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from evenhand.stats.table import Floats, Ints

_SINGULAR = 1e-8


@dataclass(frozen=True, slots=True)
class Division:
    """Scores divided into levels.

    Attributes:
        name: What the levels are.
        codes: Level of each score, 0..levels-1, shape (n,).
        first: One score of each level.
        sizes: Scores of each level.
        cells: Scores of each level in each cell, shape (levels, cells).
    """

    name: str
    codes: Ints
    first: Ints
    sizes: Floats
    cells: sparse.csr_matrix

    @classmethod
    def of(cls, name: str, keys: Sequence[Ints], cells: Ints) -> Division:
        """Scores that agree in all keys are of one level; without keys each score is one."""
        if keys:
            key = keys[0]
            for other in keys[1:]:
                key = key * (int(other.max()) + 1) + other
            _, first, codes, sizes = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        else:
            first = codes = np.arange(len(cells))
            sizes = np.ones(len(cells), dtype=np.intp)
        shape = (len(sizes), int(cells.max()) + 1)
        return cls(
            name,
            codes,
            first,
            sizes.astype(np.float64),
            sparse.csr_matrix((np.ones(len(cells)), (codes, cells)), shape),
        )

    @property
    def levels(self) -> int:
        """Number of levels."""
        return len(self.sizes)


@dataclass(frozen=True, slots=True)
class Squares:
    """Sums of squares of some divisions, group by group.

    Attributes:
        sums: Shape (groups, k).
        plain: Expectation per unit of variance before cell means are taken away, shape (groups, k, k): rows are
            sums of squares, columns effects.
        lost: What taking cell means away takes from it over all groups, shape (k, k).
    """

    sums: Floats
    plain: Floats
    lost: Floats

    @classmethod
    def of(
        cls, rest: Floats, divisions: Sequence[Division], groups: Ints, counts: Floats, crossed: int | None = None
    ) -> Squares:
        """Sums of squares of scores less their cells' means.

        Args:
            rest: Scores less the mean of their cell, shape (n,).
            divisions: From coarse to fine, each within the ones before it.
            groups: Group of each score; all divisions lie within groups.
            counts: Scores of each cell.
            crossed: Place of a division that the one after it is crossed with; what they have in common comes next.
        """
        many, size = int(groups.max()) + 1, len(divisions)
        weights = np.divide(1.0, counts, out=np.zeros(len(counts)), where=counts > 0)
        found = cls(np.empty((many, size)), np.empty((many, size, size)), np.empty((size, size)))
        averaged = [(f.cells.T @ f.cells.multiply(1 / f.sizes[:, None]).tocsr()).toarray() for f in divisions]
        summed = [(f.cells.T @ f.cells).toarray() for f in divisions]
        for i, f in enumerate(divisions):
            squares = np.bincount(f.codes, weights=rest) ** 2 / f.sizes
            found.sums[:, i] = np.bincount(groups[f.first], weights=squares, minlength=many)
            for j, k in enumerate(divisions):
                both = divisions[max(i, j) + ({i, j} == {crossed, (crossed or 0) + 1})]
                part = both.sizes**2 / f.sizes[f.codes[both.first]]
                found.plain[:, i, j] = np.bincount(groups[both.first], weights=part, minlength=many)
                found.lost[i, j] = 2 * _once(f, k, both, weights) - float(weights @ (averaged[i] * summed[j]) @ weights)
        return found

    def keep(self, kept: Sequence[int]) -> Squares:
        """Some of the divisions only."""
        chosen = list(kept)
        return Squares(self.sums[:, chosen], self.plain[:, chosen][:, :, chosen], self.lost[np.ix_(chosen, chosen)])

    def separable(self) -> list[int]:
        """The divisions whose effects can be told apart, taken from the finest and then from coarse to fine."""
        expected = self.plain.sum(axis=0) - self.lost
        last = len(expected) - 1
        kept: list[int] = []
        for i in [last, *range(last)]:
            some = [*kept, i]
            part = expected[np.ix_(some, some)]
            size = np.sqrt(np.abs(np.diag(part)))
            if (size > _SINGULAR).all():
                values = np.linalg.svd(part / np.outer(size, size), compute_uv=False)
                kept = some if values[-1] > _SINGULAR else kept
        return sorted(kept)

    @property
    def flat(self) -> Floats:
        """All that is summed over groups, shape (groups, k + k * k); for `solve`."""
        return np.concatenate([self.sums, self.plain.reshape(len(self.sums), -1)], axis=1)

    def solve(self, flat: Floats) -> Floats:
        """Variances from sums over groups of `flat`, shape (m, k + k * k) -> (m, k); NaN where there are none."""
        size = self.sums.shape[1]
        matrix = flat[:, size:].reshape(-1, size, size) - self.lost
        scale = np.sqrt(np.abs(np.einsum("mii->mi", matrix)))
        good = (scale > _SINGULAR).all(axis=1)
        matrix, scale, right = matrix[good], scale[good], flat[good, :size]
        matrix = matrix / (scale[:, :, None] * scale[:, None, :])
        far = np.linalg.svd(matrix, compute_uv=False)[:, -1] > _SINGULAR
        good[good] = far
        found = np.full((len(flat), size), np.nan)
        found[good] = np.linalg.solve(matrix[far], (right[far] / scale[far])[:, :, None])[:, :, 0] / scale[far]
        return found


def _once(f: Division, k: Division, both: Division, weights: Floats) -> float:
    """trace(A_f V_k P), where P averages over cells."""
    in_f, in_k = f.codes[both.first], k.codes[both.first]
    if max(f.levels, k.levels) == len(both.codes):  # single scores: a sum over the other one's levels
        other = f if k.levels == both.levels else k
        share = 1 / other.sizes if other is f else np.ones(other.levels)
        return float(share @ (other.cells.multiply(other.cells) @ weights))
    shared = np.asarray(f.cells[in_f].multiply(k.cells[in_k]) @ weights).ravel()
    return float((both.sizes / f.sizes[in_f]) @ shared)
