"""Pairwise outcomes, checked, and the systems that they link to each other. What `bradley_terry` fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import StatisticError
from evenhand.stats.davidson import Outcomes, parts
from evenhand.stats.estimates import Estimate
from evenhand.stats.table import Floats, Ints

#: (won, lost) against other parts -> why a part has no strength among them.
_ONE_WAY = {
    (True, True): "never lost where it won, never won where it lost: no finite strength",
    (True, False): "won every comparison: no finite strength",
    (False, True): "lost every comparison: no finite strength",
    (False, False): "never compared with the others, not even by way of a third",
}


class Compared(NamedTuple):
    """Checked outcomes and what goes with them.

    Attributes:
        outcomes: A row for each comparison, or for several equal ones.
        counts: How many comparisons a row stands for, shape (rows,).
        clusters: Ids 0..g-1 of what is drawn together, shape (rows,); None where comparisons are independent.
        order: Whether the first effect is that of the first slot.
    """

    outcomes: Outcomes
    counts: Floats
    clusters: Ints | None
    order: bool = False

    @property
    def n(self) -> int:
        """Comparisons."""
        return round(float(self.counts.sum()))

    @classmethod
    def of(
        cls,
        first: ArrayLike,
        second: ArrayLike,
        points: ArrayLike,
        size: int | None,
        counts: ArrayLike | None,
        weights: ArrayLike | None,
        clusters: ArrayLike | None,
        covariates: ArrayLike | None,
    ) -> Compared:
        """From the arguments of `evenhand.stats.bradley_terry.bradley_terry`.

        Raises:
            StatisticError: they differ in length or are out of range.
        """
        a, b, y = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp), np.asarray(points, dtype=float)
        n = len(y)
        many = np.ones(n) if counts is None else np.asarray(counts, dtype=float)
        weight = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
        extra = np.zeros((n, 0)) if covariates is None else np.asarray(covariates, dtype=float)
        extra = extra[:, None] if extra.ndim == 1 else extra
        ids = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
        if any(len(x) != n for x in (a, b, many, weight, extra, *([] if ids is None else [ids]))):
            raise StatisticError("every argument has one entry a comparison")
        size = size if size is not None else int(max(a.max(), b.max())) + 1 if n else 0
        if n and (min(a.min(), b.min()) < 0 or max(a.max(), b.max()) >= size):
            raise StatisticError(f"systems are numbered 0 to {size - 1}")
        if (a == b).any():
            raise StatisticError("a system is compared with itself")
        if not np.isin(y, (0, 0.5, 1)).all():
            raise StatisticError("points are 1, 0.5 or 0")
        if not all((x > 0).all() and np.isfinite(x).all() for x in (many, weight)) or not np.isfinite(extra).all():
            raise StatisticError("counts and weights are above 0, covariates are finite")
        each = many * weight * (many.sum() / (many @ weight) if n else 1)  # weights of the order of one
        return cls(Outcomes(a, b, each * (y == 1), each * (y == 0.5), each * (y == 0), extra, size), many, ids)

    def within(self, main: Ints) -> Compared:
        """Only comparisons among some systems, numbered anew."""
        o = self.outcomes
        if len(main) == o.size:
            return self
        number = np.full(o.size, -1)
        number[main] = np.arange(len(main))
        keep = (number[o.first] >= 0) & (number[o.second] >= 0)
        ids = None if self.clusters is None else np.unique(self.clusters[keep], return_inverse=True)[1]
        wins, ties, losses, effects = (x[keep] for x in (o.wins, o.ties, o.losses, o.effects))
        rows = Outcomes(number[o.first[keep]], number[o.second[keep]], wins, ties, losses, effects, len(main))
        return Compared(rows, self.counts[keep], ids)

    def with_order(self) -> Compared:
        """With a first effect that is 1 for all."""
        effects = np.column_stack([np.ones(len(self.counts)), self.outcomes.effects])
        return self._replace(outcomes=replace(self.outcomes, effects=effects), order=True)

    def only_order(self) -> Compared:
        """Without the other effects."""
        return self.with_effects([0])

    def with_effects(self, columns: Sequence[int]) -> Compared:
        """With those effects only."""
        return self._replace(outcomes=replace(self.outcomes, effects=self.outcomes.effects[:, list(columns)]))

    def with_effects_that_vary(self) -> tuple[Compared, NDArray[np.bool_]]:
        """Without effects that are 0 throughout; and which of them are kept, shape (k,)."""
        live = np.asarray(self.outcomes.effects.any(axis=0))
        return self._replace(outcomes=replace(self.outcomes, effects=self.outcomes.effects[:, live])), live

    def joined(self) -> tuple[Ints, Ints]:
        """The first row of each cell of `cells`, and the cell of each row."""
        o = self.outcomes
        if o.effects.size and np.ptp(o.effects, axis=0).any():
            own = np.arange(len(o.first))
            return own, own
        _, rows, at = np.unique(o.pair, return_index=True, return_inverse=True)
        return rows, at

    def cells(self) -> Outcomes:
        """Rows with the same systems and effects joined; as they are where a covariate differs."""
        o = self.outcomes
        rows, at = self.joined()
        if len(rows) == len(at):
            return o
        wins, ties, losses = (np.bincount(at, w, len(rows)).astype(float) for w in (o.wins, o.ties, o.losses))
        return Outcomes(o.first[rows], o.second[rows], wins, ties, losses, o.effects[rows], o.size)


def separability(intervals: Sequence[tuple[float, float]]) -> Estimate:
    """Share of pairs of systems whose intervals don't overlap; ends that meet don't.

    A description of how well a set of comparisons tells systems apart; it has no interval of its own. The share falls
    with systems that are alike, so it compares judges or sets of prompts on the same systems only.

    Args:
        intervals: (low, high) of each system.

    Returns:
        n counts pairs; no value for fewer than two systems.

    Source: Li et al. (2024), "From Crowdsourced Data to High-Quality Benchmarks: Arena-Hard and BenchBuilder
        Pipeline", separability with confidence.
    """
    size = len(intervals)
    pairs = size * (size - 1) // 2
    if not pairs:
        return Estimate(None, reason="fewer than two intervals")
    ends = np.array(sorted(intervals), dtype=float)
    apart = sum(int((ends[:i, 1] <= low).sum()) for i, low in enumerate(ends[:, 0]))
    reason = "a count of the pairs that there are: no interval"
    return Estimate(apart / pairs, n=pairs, method="share of pairs whose intervals don't overlap", reason=reason)


def main_part(outcomes: Outcomes) -> tuple[Ints | None, list[str]]:
    """The systems that get figures, if any, and for each of the others why not."""
    ids = parts(outcomes)
    sizes = np.bincount(ids, minlength=1) if len(ids) else np.zeros(1, dtype=np.intp)
    largest = np.flatnonzero(sizes == sizes.max())
    alone = len(largest) == 1 and sizes.max() > 1
    main = np.flatnonzero(ids == largest[0]) if alone else None
    across = ids[outcomes.first] != ids[outcomes.second]
    won = np.zeros((2, outcomes.size), dtype=bool)  # [0] lost, [1] won against another part, by part
    for side, mine in ((outcomes.first, 1), (outcomes.second, 0)):
        for weight, result in ((outcomes.wins, mine), (outcomes.losses, 1 - mine)):
            won[result, ids[side[across & (weight > 0)]]] = True
    met = np.bincount(np.concatenate([outcomes.first, outcomes.second]), minlength=outcomes.size)
    reasons = []
    for system, part in enumerate(ids):
        who = "" if sizes[part] == 1 else "with the systems it is linked to, "
        if alone and part == largest[0]:
            reasons.append("")
        elif not met[system]:
            reasons.append("nothing decided")
        else:
            reasons.append(who + _ONE_WAY[bool(won[1, part]), bool(won[0, part])])
    return main, reasons
