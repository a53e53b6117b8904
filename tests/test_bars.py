"""Bars that a figure must meet: how they are written, and when one can't be told."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.bars import met, read_bar
from evenhand.errors import InputError, UnknownNameError
from evenhand.stats.estimates import Estimate
from evenhand.stats.named import require_statistic

FIELDS = ("truth", "overall side")


def read(text: str) -> Any:
    return read_bar(text, require=require_statistic, places=FIELDS)


@pytest.mark.parametrize(
    ("text", "figure", "place", "at_least", "limit"),
    [
        ("kappa>=0.6", "kappa", None, True, 0.6),
        (" kappa-quadratic @ truth >= .5 ", "kappa-quadratic", "truth", True, 0.5),
        ("mae@overall side<=1", "mae", "overall side", False, 1.0),
        ("within:0.5>=9e-1", "within:0.5", None, True, 0.9),
        ("bias<=-1", "bias", None, False, -1.0),
    ],
)
def test_a_bar_is_read(text: str, figure: str, place: str | None, at_least: bool, limit: float) -> None:
    """A figure, perhaps a place, at least or at most, and a number."""
    bar = read(text)
    assert (bar.figure, bar.place, bar.at_least, bar.limit) == (figure, place, at_least, limit)


@pytest.mark.parametrize(
    "text", ["", "kappa", "kappa>0.6", "kappa>=", "kappa>=nan", "kappa>=1e999", ">=1", "kappa>=0,6", "kappa>=0_6"]
)
def test_what_is_no_bar_is_refused(text: str) -> None:
    """Another sign, no number or no figure is told with how a bar is written."""
    with pytest.raises(InputError, match=r"is no bar\n.*kappa>=0.6"):
        read(text)


def test_unknown_names_are_told_with_close_ones() -> None:
    """A slip in a figure or a field lists what is near."""
    with pytest.raises(UnknownNameError, match="did you mean kappa"):
        read("kapa>=0.6")
    with pytest.raises(UnknownNameError, match="did you mean truth"):
        read("kappa@trut>=0.6")


def figure(value: float | None, clusters: int, ci: tuple[float, float] | None, reason: str = "") -> dict[str, Any]:
    return Estimate(value, ci, clusters, clusters, reason=reason).as_dict()


@pytest.mark.parametrize(
    ("found", "held", "reason"),
    [
        (figure(0.6, 50, (0.3, 0.8)), True, ""),
        (figure(0.59, 500, (0.5, 0.7)), False, ""),
        (figure(0.9, 49, (0.8, 1.0)), None, "too little data: 49 independent items, 50 needed"),
        (figure(0.9, 60, None, "no variation"), None, "too little data: no variation"),
        (figure(None, 0, None, "nobody rated"), None, "nobody rated"),
        (None, None, "no such figure"),
    ],
)
def test_a_bar_holds_the_value(found: dict[str, Any] | None, held: bool | None, reason: str) -> None:
    """The value counts, not the interval; without interval, value or 50 items it can't be told, and is no pass."""
    told = read("kappa>=0.6").held("truth", found)
    assert (told["met"], told["reason"]) == (held, reason)
    assert met([told]) is (held is True)


def test_at_most() -> None:
    """A bar may hold a figure down."""
    assert read("mae<=1").held(None, figure(1.0, 80, (0.5, 1.5)))["met"] is True
    assert read("mae<=1").held(None, figure(1.1, 80, (0.5, 1.5)))["met"] is False
