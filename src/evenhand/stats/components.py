"""Variance components of scores: how much items, paraphrases, judges, orders and repeats each make them differ.

A score is ``mean + judge, order and judge x order (few levels: fixed effects) + item + paraphrase + judge x item +
order x item + judge x order x item (random effects) + repeat``. Cells may be missing and counts unequal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from evenhand.errors import StatisticError
from evenhand.stats.estimates import CONFIDENCE, Estimate, few
from evenhand.stats.resample import DRAWS, Interval, Statistic, bootstrap_each, cluster_sums, mean_interval
from evenhand.stats.squares import Division, Squares
from evenhand.stats.table import Floats, Ints

ITEM, PARAPHRASE, JUDGE, ORDER, REPEAT = "item", "paraphrase", "judge", "order", "repeat"
JUDGE_ITEM, ORDER_ITEM, JUDGE_ORDER, ALL = "judge x item", "order x item", "judge x order", "judge x order x item"
NAMES = (ITEM, PARAPHRASE, JUDGE, JUDGE_ITEM, ORDER, ORDER_ITEM, JUDGE_ORDER, ALL, REPEAT)
METHOD = "equated sums of squares (ANOVA estimator)"
_BLOCKS = 1000  #: clusters from which a bootstrap draws random blocks of them
_ZERO = 1e-12  #: share of the total under which a variance is rounding
_SINGULAR = 1e-8
_BELOW = "the estimate fell below 0 and is set to 0"


@dataclass(frozen=True, slots=True)
class Component:
    """One source of variance.

    Attributes:
        estimate: The variance, in squared points; at least 0. Its reason says why there is none.
        levels: Levels of the facet, or cells of the interaction.
        raw: The estimate before it was set to 0, where that was needed; else the same.
    """

    estimate: Estimate
    levels: int
    raw: float | None = None


@dataclass(frozen=True, slots=True)
class Components:
    """Sources of variance of one score.

    Attributes:
        parts: Name of `NAMES` -> component, of all that vary in the design.
        noise: The component that holds all that no other does; `REPEAT` where cells have repeats, else the finest
            component of the design, with what repeats would have shown in it.
        mean: Mean of all scores, with a clustered interval.
        shift: Mean of order 1 less mean of order 0, within items; None where the order does not vary.
        clusters, groups, items, judges, orders: Levels there are.
        repeats: Mean number of scores of an item by one judge in one order.
    """

    parts: Mapping[str, Component]
    noise: str
    mean: Estimate
    shift: Estimate | None
    clusters: int
    groups: int
    items: int
    judges: int
    orders: int
    repeats: float

    def variance(self, name: str) -> float:
        """A component's variance; 0 where there is none, or none is known."""
        part = self.parts.get(name)
        return part.estimate.value or 0.0 if part is not None else 0.0

    @property
    def total(self) -> float:
        """Variance of one score: an item, a judge and an order taken at random."""
        return math.fsum(self.variance(name) for name in self.parts)


@dataclass(frozen=True, slots=True)
class _Data:
    """Scores and where they stand; all codes are 0..levels-1, items lie in groups, groups in clusters."""

    values: Floats
    clusters: Ints
    groups: Ints
    items: Ints
    judges: Ints
    orders: Ints
    unit: str
    draws: int
    seed: int
    level: float
    cells: Ints = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", self.judges * self.count("orders") + self.orders)

    def count(self, name: str) -> int:
        return int(getattr(self, name).max()) + 1

    def variance(self, value: float, interval: Interval, warnings: tuple[str, ...] = ()) -> Estimate:
        """A variance with its interval, neither below 0."""
        groups, ends = self.count("clusters"), interval.ci
        ci = None if ends is None else (max(0.0, ends[0]), max(0.0, ends[1]))
        notes = (*((_BELOW,) if value < 0 else ()), *warnings, *(few(groups, self.unit) if ci else ()))
        method = f"{METHOD}; {interval.method}" if interval.method else METHOD
        n, told = len(self.values), max(0.0, value)
        found = Estimate(told, ci, n, groups, {}, method, self.level, interval.reason, notes, interval.se)
        return found.of_unit(self.unit)


def variance_components(
    values: ArrayLike,
    groups: ArrayLike,
    items: ArrayLike | None = None,
    judges: ArrayLike | None = None,
    orders: ArrayLike | None = None,
    *,
    clusters: ArrayLike | None = None,
    unit: str = "item",
    draws: int = DRAWS,
    seed: int = 0,
    level: float = CONFIDENCE,
) -> Components:
    """Variance components of scores over groups, paraphrases in them, judges, two orders, and repeats.

    Scores of one item, judge and order are repeats. Random components come from sums of squares set equal to their
    expectations, after the mean of each cell of judge x order is taken away: unbiased whatever is missing, as long
    as it is missing at random, and the ANOVA estimates in balanced designs. Judges and orders are compared within
    items; the variance of their estimated effects is taken off. The two orders are all there are: the component
    ``order`` is what one order taken at random adds, a quarter of the squared shift, and ``item`` is the spread of
    items over both orders. Interactions are those of single items; what paraphrases share of them counts as item.

    Args:
        values: Scores in points, shape (n,), finite.
        groups: Ids of paraphrase groups, or of items, shape (n,).
        items: Ids of paraphrases, shape (n,); each in one group. Default: the groups.
        judges: Ids, shape (n,). Default: one judge.
        orders: 0 or 1, shape (n,). Default: one order.
        clusters: Ids of what is independent, a ``unit``, shape (n,); each group in one. Default: the groups.
        draws: Bootstrap draws over clusters (over 1000 random blocks of them where there are more); 0 for none.
        seed, level: As in `evenhand.stats.resample.bootstrap`.

    Returns:
        Components; estimates below 0 are set to 0 and say so. Intervals are those of drawing clusters anew. For judges
        they hold for these judges: how much others would differ is not known from few. One group gives no value for
        what compares groups, and no interval; a component that the design can't tell from others has a reason.

    Raises:
        StatisticError: scores that are none or not finite, unlike lengths, ids that don't nest, another order.

    Source: Henderson (1953), "Estimation of variance and covariance components", methods 1 and 3; Searle, Casella and
        McCulloch (1992), "Variance Components", chapter 5; for finite facets Cornfield and Tukey (1956), "Average
        values of mean squares in factorials"; Cameron and Miller (2015) for the errors of fixed effects.
    """
    given = (groups if clusters is None else clusters, groups, items, judges, orders)
    data = _data(values, given, unit, draws, seed, level)
    shape = {name: data.count(name) for name in ("clusters", "groups", "items", "judges", "orders")}
    divisions = _divisions(data)
    fixed = _Fixed(data)
    parts = {**_random(data, divisions), **fixed.components()}
    noise = divisions[-1].name
    judged = divisions[-2 if noise == REPEAT else -1].levels
    return Components(
        {name: parts[name] for name in NAMES if name in parts},
        noise,
        mean_interval(data.values, data.clusters, level=level).of_unit(unit),
        fixed.shift() if shape["orders"] > 1 else None,
        repeats=len(data.values) / judged,
        **shape,
    )


def _data(
    values: ArrayLike,
    ids: Sequence[ArrayLike | None],
    unit: str,
    draws: int,
    seed: int,
    level: float,
) -> _Data:
    scores = np.asarray(values, dtype=np.float64)
    same = np.zeros(scores.shape, dtype=np.intp)
    clusters, groups, items, judges, orders = ids
    assert clusters is not None and groups is not None
    items = groups if items is None else items
    given = [clusters, groups, items, *(same if x is None else x for x in (judges, orders))]
    if scores.ndim != 1 or not scores.size or any(np.shape(x) != scores.shape for x in given):
        raise StatisticError("scores and their ids need the same length, at least 1")
    if not np.isfinite(scores).all():
        raise StatisticError("a score is not finite")
    if not set(np.unique(given[4]).tolist()) <= {0, 1}:
        raise StatisticError("an order is 0 or 1")
    cluster, group, item, judge, order = (np.unique(x, return_inverse=True)[1].astype(np.intp) for x in given)
    for outer, inner, wrong in (
        (group, item, "an item lies in two groups"),
        (cluster, group, "a group in two clusters"),
    ):
        if len(np.unique(np.stack([outer, inner]), axis=1).T) > int(inner.max()) + 1:
            raise StatisticError(wrong)
    return _Data(scores, cluster, group, item, judge, order, unit, draws, seed, level)


def _divisions(data: _Data) -> list[Division]:
    """The random components, coarse to fine; the last one is the noise."""
    keys: dict[str, tuple[Ints, ...]] = {ITEM: (data.groups,)}
    if data.count("items") > data.count("groups"):
        keys[PARAPHRASE] = (data.items,)
    if data.count("judges") > 1:
        keys[JUDGE_ITEM] = (data.items, data.judges)
    if data.count("orders") > 1:
        keys[ORDER_ITEM] = (data.items, data.orders)
    if len({JUDGE_ITEM, ORDER_ITEM} & keys.keys()) > 1:
        keys[ALL] = (data.items, data.cells)
    found = [Division.of(name, of, data.cells) for name, of in keys.items()]
    return found if found[-1].levels == len(data.values) else [*found, Division.of(REPEAT, (), data.cells)]


def _random(data: _Data, divisions: list[Division]) -> dict[str, Component]:
    """Components of what is drawn at random."""
    counts = np.bincount(data.cells).astype(np.float64)
    means = np.bincount(data.cells, weights=data.values) / np.maximum(counts, 1)
    rest = data.values - means[data.cells]
    rest[np.abs(rest) <= _ZERO * float(np.abs(data.values).max())] = 0.0
    names = [division.name for division in divisions]
    crossed = names.index(JUDGE_ITEM) if ALL in names else None
    squares = Squares.of(rest, divisions, data.clusters, counts, crossed)
    kept = squares.separable()
    told = _estimates(data, squares.keep(kept), [names[i] for i in kept]) if kept else {}
    one = data.count("groups") < 2
    why = f"one {data.unit}: not told apart" if one else "this design can't tell it from the other components"
    absent = Component(_none(data, why), 0)
    return {d.name: replace(told.get(d.name, absent), levels=d.levels) for d in divisions}


def _none(data: _Data, why: str) -> Estimate:
    return Estimate(
        None, n=len(data.values), clusters=data.count("clusters"), reason=why, level=data.level, unit=data.unit
    )


def _estimates(data: _Data, squares: Squares, names: list[str]) -> dict[str, Component]:
    turn = _over_both_orders(names)
    sums = squares.flat
    values = (squares.solve(sums.sum(axis=0)[None, :]) @ turn.T)[0]
    values[np.abs(values) <= _ZERO * np.abs(values).sum()] = 0.0
    intervals = _intervals(data, sums, lambda rows: squares.solve(rows) @ turn.T, len(names))
    raw = [float(value) for value in values]
    return {
        name: Component(data.variance(value, interval), 0, value)
        for name, value, interval in zip(names, raw, intervals, strict=True)
    }


def _intervals(data: _Data, sums: Floats, statistic: Statistic, many: int) -> list[Interval]:
    """Intervals of statistics of summed groups, drawn in blocks where there are very many groups."""
    if len(sums) < 2:
        return [Interval(None, reason=f"one {data.unit}: no interval")] * many
    if len(sums) > _BLOCKS:
        blocks = np.random.default_rng(data.seed).permutation(len(sums)) % _BLOCKS
        sums = cluster_sums(sums, blocks)
    found = bootstrap_each(sums, statistic, many, draws=data.draws, seed=data.seed, level=data.level)
    return [replace(interval, warnings=()) for interval in found]  # those of few groups are told once, by name


def _over_both_orders(names: list[str]) -> Floats:
    """Takes an item's spread as that over both orders, and an interaction with the order as that of one order.

    The noise stays: what repeats would show is in it.
    """
    turn: Floats = np.eye(len(names))
    base = PARAPHRASE if PARAPHRASE in names else ITEM
    for inner, outer in ((ORDER_ITEM, base), (ALL, JUDGE_ITEM)):
        if {inner, outer} <= set(names[:-1]):
            turn[names.index(inner), names.index(inner)] = turn[names.index(outer), names.index(inner)] = 0.5
    return turn


class _Fixed:
    """Effects of judges and orders, compared within items by least squares, errors by cluster."""

    def __init__(self, data: _Data) -> None:
        self._data = data
        self._orders = data.count("orders")
        self._groups = data.count("clusters")
        width = data.count("judges") * self._orders
        items = Division.of("", (data.items,), data.cells)
        per_item = items.cells.multiply(1 / items.sizes[:, None]).tocsr()
        counts = np.bincount(data.cells, minlength=width).astype(np.float64)
        shared: Floats = np.zeros((width, width))
        seen = per_item.shape[1]
        shared[:seen, :seen] = (items.cells.T @ per_item).toarray()
        information = np.diag(counts) - shared
        inverse = np.linalg.pinv(information, rcond=_SINGULAR, hermitian=True)
        self._known = information @ inverse  #: keeps exactly the contrasts that can be estimated
        away = self._within(items, data.values)
        self._effects = inverse @ np.bincount(data.cells, weights=away, minlength=width)
        error = away - self._within(items, self._effects[data.cells])
        error[np.abs(error) <= _ZERO * max(1.0, float(np.abs(data.values).max()))] = 0.0
        key = data.clusters * width + data.cells
        scores = np.bincount(key, weights=error, minlength=self._groups * width).reshape(self._groups, width)
        self._influence = scores @ inverse

    @staticmethod
    def _within(items: Division, values: Floats) -> Floats:
        means = np.bincount(items.codes, weights=values) / items.sizes
        found: Floats = values - means[items.codes]
        return found

    def components(self) -> dict[str, Component]:
        """Judge, order and judge x order, where they vary."""
        judges = self._data.count("judges")
        found = {}
        if judges > 1:
            found[JUDGE] = self._spread(np.kron(np.eye(judges), np.full(self._orders, 1 / self._orders)), 1.0)
        if self._orders > 1:
            found[ORDER] = self._order(self.shift())
            if judges > 1:
                found[JUDGE_ORDER] = self._spread(np.kron(np.eye(judges), np.array([-1.0, 1.0])), 0.25)
        return found

    def shift(self) -> Estimate:
        """Mean of order 1 less mean of order 0, each judge one voice."""
        data, judges = self._data, self._data.count("judges")
        contrast = np.kron(np.full(judges, 1 / judges), np.array([-1.0, 1.0]))
        if not self._estimable(contrast[None, :]):
            return _none(data, f"no {data.unit} was judged in both orders")
        value = float(contrast @ self._effects)
        told = {"n": len(data.values), "clusters": self._groups, "level": data.level, "unit": data.unit}
        method = f"difference of the orders within items, t interval clustered by {data.unit}"
        if self._groups < 2:
            return Estimate(value, method=method, reason=f"one {data.unit}: no interval", **told)  # type: ignore[arg-type]
        se = math.sqrt(self._groups / (self._groups - 1) * float(((self._influence @ contrast) ** 2).sum()))
        if se <= _ZERO:
            return Estimate(value, method=method, reason="the same in all items: no interval", **told)  # type: ignore[arg-type]
        reach = float(stdtrit(self._groups - 1, 0.5 + data.level / 2)) * se
        ci, warnings = (value - reach, value + reach), few(self._groups, data.unit)
        return Estimate(value, ci, method=method, se=se, warnings=warnings, **told)  # type: ignore[arg-type]

    def _estimable(self, contrasts: Floats) -> bool:
        return bool(np.abs(contrasts @ self._known - contrasts).max() < 1e-6)

    def _order(self, shift: Estimate) -> Component:
        """A quarter of the squared shift; its interval is the shift's, squared."""
        data = self._data
        if shift.value is None or (shift.se is None and shift.clusters < 2):
            return Component(_none(data, shift.reason), self._orders)
        raw = (shift.value**2 - (shift.se or 0.0) ** 2) / 4
        if shift.ci is None:
            return Component(data.variance(raw, Interval(None, reason=shift.reason)), self._orders, raw)
        ends = sorted(end**2 / 4 for end in shift.ci)
        low = 0.0 if shift.ci[0] <= 0 <= shift.ci[1] else ends[0]
        interval = Interval((low, ends[1]), method="from the interval of the shift")
        return Component(data.variance(raw, interval), self._orders, raw)

    def _spread(self, rows: Floats, share: float) -> Component:
        """`share` times the variance over judges of what `rows` makes of the effects."""
        data, judges = self._data, len(rows)
        centred = rows - rows.mean(axis=0)
        if not self._estimable(centred):
            return Component(_none(data, f"no {data.unit} was judged by all judges"), judges)
        if self._groups < 2:
            return Component(_none(data, f"one {data.unit}: chance can't be told from a difference"), judges)
        sums = self._influence @ centred.T
        noise = self._groups / (self._groups - 1) * float((sums**2).sum())
        effects = centred @ self._effects

        def statistic(moved: Floats) -> Floats:
            found: Floats = share * (((effects + moved) ** 2).sum(axis=1) - noise) / (judges - 1)
            return found[:, None]

        raw = float(statistic(np.zeros((1, judges)))[0, 0])
        raw = 0.0 if abs(raw) <= _ZERO * float(np.abs(data.values).max()) ** 2 else raw
        (interval,) = _intervals(data, sums, statistic, 1)
        others = "two judges only: others may differ far more" if judges == 2 else "holds for these judges only"
        return Component(data.variance(raw, interval, (others,)), judges, raw)
