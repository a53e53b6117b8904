"""Ratings: units by raters, with missing cells, a level of measurement and clusters. What agreement counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.scale import Value

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Level = Literal["nominal", "ordinal", "interval", "ratio"]
_NO_RATING = "no rating"


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What raters said of the same units.

    Attributes:
        codes: Shape (units, raters); NaN where a rating is missing. At the nominal and ordinal levels an index
            into `categories`, otherwise the number itself.
        level: Level of measurement; a binary scale is nominal.
        categories: All legal values in order, also those nobody used; () at the interval and ratio levels.
        raters: Names of the columns.
        clusters: Shape (units,), ids 0..g-1: units of one cluster (an item) are not independent of each other.
        missing: Reason -> number of missing cells.
    """

    codes: Floats
    level: Level
    categories: tuple[Value, ...]
    raters: tuple[str, ...]
    clusters: Ints
    missing: Mapping[str, int]

    @classmethod
    def of(
        cls,
        rows: Sequence[Sequence[Value | None]] | NDArray[Any],
        level: Level,
        *,
        categories: Sequence[Value] = (),
        raters: Sequence[str] = (),
        clusters: Iterable[Hashable] | None = None,
        missing: Mapping[str, int] | None = None,
    ) -> Ratings:
        """Ratings from rows of values.

        Args:
            rows: One row per unit, one cell per rater; None or NaN is a missing rating.
            level: Level of measurement.
            categories: Legal values, in order at the ordinal level. Default: the values that occur, sorted; at
                the ordinal level that needs numbers. Not used at the interval and ratio levels.
            raters: Names of the raters. Default: "1", "2", ...
            clusters: One id per unit. Default: every unit is its own cluster.
            missing: Reason -> number of missing cells, where the reasons are known.

        Raises:
            StatisticError: rows of unlike length, a value that is no category or no number, texts at the
                ordinal level without their order, or a negative number at the ratio level.
        """
        cells = _cells(rows)
        if level in ("nominal", "ordinal"):
            codes, known = _encode(cells, level, tuple(categories))
        else:
            codes, known = _numbers(cells), ()
            if level == "ratio" and bool((codes < 0).any()):
                raise StatisticError("a ratio scale has no negative values", hint="use level interval")
        units, columns = codes.shape
        names = tuple(raters) or tuple(str(i + 1) for i in range(columns))
        if len(names) != columns or len(set(names)) != columns:
            raise StatisticError(f"{columns} columns of ratings need {columns} different rater names, not {names}")
        gaps = int(np.isnan(codes).sum())
        return cls(
            codes, level, known, names, _ids(clusters, units), dict(missing or ({_NO_RATING: gaps} if gaps else {}))
        )

    @property
    def units(self) -> int:
        """Number of units, rated or not."""
        return int(self.codes.shape[0])

    @property
    def numbers(self) -> Floats:
        """The ratings as numbers, shape (units, raters); NaN where missing.

        Raises:
            StatisticError: the categories are not numbers.
        """
        if not self.categories:
            return self.codes
        if any(isinstance(c, str) for c in self.categories):
            raise StatisticError(f"the labels {list(self.categories)} are not numbers")
        points = np.array([float(c) for c in self.categories] + [np.nan])
        return points[np.where(np.isnan(self.codes), len(self.categories), self.codes).astype(np.intp)]

    def select(self, raters: Sequence[str | int]) -> Ratings:
        """The same units with some of the raters, by name or position, in the order given.

        Raises:
            UnknownNameError: no such rater.
        """
        columns = [self._column(rater) for rater in raters]
        codes = self.codes[:, columns]
        gaps = int(np.isnan(codes).sum())
        known = self.missing if gaps == sum(self.missing.values()) else {_NO_RATING: gaps} if gaps else {}
        return Ratings(codes, self.level, self.categories, tuple(self.raters[c] for c in columns), self.clusters, known)

    def at(self, level: Level) -> Ratings:
        """The same ratings read at another level of measurement.

        Raises:
            StatisticError: labels that are no numbers have no place at the level, or texts have no known order.
        """
        coded = level in ("nominal", "ordinal")
        if coded and self.categories:
            texts = any(isinstance(c, str) for c in self.categories)
            if level == "ordinal" and self.level == "nominal" and texts:
                raise StatisticError("the order of the labels is not known", hint="give categories, lowest first")
            return replace(self, level=level)
        return Ratings.of(self.numbers, level, raters=self.raters, clusters=self.clusters, missing=self.missing or None)

    def where(self, keep: ArrayLike) -> Ratings:
        """A slice of the units.

        Args:
            keep: Boolean, shape (units,).
        """
        mask = np.asarray(keep, dtype=bool)
        codes = self.codes[mask]
        gaps = int(np.isnan(codes).sum())
        clusters = _ids(self.clusters[mask], len(codes))
        return Ratings(codes, self.level, self.categories, self.raters, clusters, {_NO_RATING: gaps} if gaps else {})

    def _column(self, rater: str | int) -> int:
        if isinstance(rater, int):
            return rater
        if rater not in self.raters:
            raise UnknownNameError("rater", rater, self.raters)
        return self.raters.index(rater)


def _cells(rows: Sequence[Sequence[Value | None]] | NDArray[Any]) -> NDArray[Any]:
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2:
            raise StatisticError(f"ratings have shape (units, raters), not {rows.shape}")
        return rows if rows.dtype == object or rows.dtype.kind in "iufb" else rows.astype(object)
    widths = Counter(len(row) for row in rows)
    if len(widths) > 1:
        raise StatisticError(f"every unit needs one cell per rater; rows have {sorted(widths)} cells")
    cells = np.empty((len(rows), next(iter(widths), 0)), dtype=object)
    for i, row in enumerate(rows):
        cells[i] = list(row)
    return cells


def _numbers(cells: NDArray[Any]) -> Floats:
    if cells.dtype != object:
        return _finite(cells.astype(np.float64))
    for value in cells.flat:
        if value is not None and not isinstance(value, int | float | np.number):
            raise StatisticError(f"{value!r} is not a number", hint="labels need level nominal or ordinal")
    return _finite(np.array(cells, dtype=np.float64))


def _finite(codes: Floats) -> Floats:
    if bool(np.isinf(codes).any()):
        raise StatisticError("a rating is infinite")
    return codes


def _encode(cells: NDArray[Any], level: str, categories: tuple[Value, ...]) -> tuple[Floats, tuple[Value, ...]]:
    """Positions of the cells in the categories; the categories that occur where none are given."""
    if cells.dtype != object:
        cells = cells.astype(np.float64)
        found = [v.item() for v in np.unique(cells[~np.isnan(cells)])]
    else:
        cells = np.where(cells == None, np.nan, cells)  # noqa: E711  (elementwise)
        found = [v for v in dict.fromkeys(cells.flat) if v == v]  # NaN is missing
    if not categories:
        if level == "ordinal" and any(isinstance(v, str) for v in found):
            raise StatisticError("the order of the labels is not known", hint="give categories, lowest first")
        categories = tuple(sorted(found, key=lambda v: (isinstance(v, str), v)))
    place = {value: i for i, value in enumerate(categories)}
    unknown = [v for v in found if v not in place]
    if unknown:
        raise StatisticError(f"{unknown[0]!r} is not one of the categories {list(categories)}")
    if cells.dtype != object:
        values = np.array(found)
        spots = np.array([place[v] for v in found] + [np.nan])
        return spots[np.where(np.isnan(cells), len(found), np.searchsorted(values, cells))], categories
    codes = np.array([place.get(v, np.nan) for v in cells.flat], dtype=np.float64)
    return codes.reshape(cells.shape), categories


def _ids(clusters: Iterable[Hashable] | None, units: int) -> Ints:
    if clusters is None:
        return np.arange(units, dtype=np.intp)
    if isinstance(clusters, np.ndarray) and clusters.dtype != object:
        ids = np.unique(clusters, return_inverse=True)[1].astype(np.intp)
    else:
        seen: dict[Hashable, int] = {}
        ids = np.array([seen.setdefault(c, len(seen)) for c in clusters], dtype=np.intp)
    if len(ids) != units:
        raise StatisticError(f"{units} units need {units} cluster ids, not {len(ids)}")
    return ids
