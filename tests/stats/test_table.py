"""Ratings: how values become codes, what is missing, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import StatisticError, UnknownNameError
from evenhand.stats.table import Ratings


def test_labels_become_positions() -> None:
    """Labels are coded by their place among the categories; None is missing and counted."""
    rows = [["good", "bad"], [None, "good"], ["fair", None]]
    ratings = Ratings.of(rows, "ordinal", categories=["bad", "fair", "good"], raters=["judge", "ann"])
    assert np.array_equal(ratings.codes, [[2, 0], [np.nan, 2], [1, np.nan]], equal_nan=True)
    assert (ratings.units, ratings.missing, list(ratings.clusters)) == (3, {"no rating": 2}, [0, 1, 2])
    with pytest.raises(StatisticError, match="not numbers"):
        _ = ratings.numbers


def test_arrays_and_lists_agree() -> None:
    """A float array with NaN and a list with None give the same ratings."""
    rows = [[3, 1], [None, 5], [1, 1]]
    listed = Ratings.of(rows, "ordinal", categories=range(6))
    array = Ratings.of(np.array(rows, dtype=float), "ordinal", categories=range(6))
    assert np.array_equal(listed.codes, array.codes, equal_nan=True)
    assert np.array_equal(listed.numbers, array.numbers, equal_nan=True)


def test_categories_default_to_the_values_that_occur() -> None:
    """Without categories the values that occur are sorted; truth values count as 0 and 1."""
    assert Ratings.of([["b", "a"], ["a", None]], "nominal").categories == ("a", "b")
    flags = Ratings.of([[True, False], [True, True]], "nominal")
    assert flags.categories == (False, True)
    assert flags.numbers.tolist() == [[1, 0], [1, 1]]
    assert Ratings.of([[4, 2], [2, 9]], "ordinal").codes.tolist() == [[1, 0], [0, 2]]


def test_raters_and_slices() -> None:
    """Raters are picked by name, units by a mask; clusters are renumbered."""
    ratings = Ratings.of([[1, 2, 3], [4, 5, None], [7, 8, 9]], "interval", raters="abc", clusters=["x", "y", "y"])
    assert ratings.select(["c", "a"]).raters == ("c", "a")
    assert ratings.select(["a", "b"]).missing == {}
    kept = ratings.where([False, True, True])
    assert (kept.units, list(kept.clusters), kept.missing) == (2, [0, 0], {"no rating": 1})
    with pytest.raises(UnknownNameError, match="rater 'd'"):
        ratings.select(["d"])


def test_reading_at_another_level() -> None:
    """Numbers move between levels; labels without an order do not."""
    ratings = Ratings.of([[1, 5], [10, None]], "interval", clusters=["i", "i"])
    ranked = ratings.at("ordinal")
    assert (ranked.categories, list(ranked.clusters)) == ((1.0, 5.0, 10.0), [0, 0])
    assert np.array_equal(ranked.at("interval").codes, ratings.codes, equal_nan=True)
    words = Ratings.of([["x", "y"]], "nominal")
    for level in ("ordinal", "interval", "ratio"):
        with pytest.raises(StatisticError):
            words.at(level)


@pytest.mark.parametrize(
    ("rows", "level", "more", "message"),
    [
        ([[1, 2], [3]], "nominal", {}, "one cell per rater"),
        ([["a", "b"]], "interval", {}, "not a number"),
        ([["a", "b"]], "ordinal", {}, "order of the labels"),
        ([[1, 7]], "ordinal", {"categories": [1, 2, 3]}, "7 is not one of the categories"),
        ([[1, -2]], "ratio", {}, "no negative"),
        ([[1, float("inf")]], "interval", {}, "infinite"),
        ([[1, 2]], "interval", {"raters": ["a", "a"]}, "different rater names"),
        ([[1, 2]], "interval", {"clusters": [1, 2]}, "1 units need 1 cluster ids"),
    ],
)
def test_what_is_refused(rows: list[list[object]], level: str, more: dict[str, object], message: str) -> None:
    """Bad input is an error that says what is wrong, never a number."""
    with pytest.raises(StatisticError, match=message):
        Ratings.of(rows, level, **more)  # type: ignore[arg-type]
