"""Bars that a figure must meet, as in ``kappa>=0.6``: read from texts, and held against figures.

read_bar -> Bar; Bar.held(figure) -> what came of it; met(all of them)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.errors import InputError, UnknownNameError
from evenhand.stats.estimates import FEW

_BAR = re.compile(
    r"\s*(?P<figure>[^\s@<>=]+)\s*(?:@\s*(?P<place>.+?))?\s*(?P<sign>>=|<=)\s*(?P<limit>\S+)\s*", re.ASCII
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Bar:
    """What is required of a figure.

    Attributes:
        text: The bar as it was written, without space around it.
        figure: Name of the figure.
        place: Where it is required, as the name of a field; None: wherever there is such a figure.
        at_least: Whether the figure must be the limit or more; otherwise the limit or less.
        limit: The limit.
    """

    text: str
    figure: str
    place: str | None
    at_least: bool
    limit: float

    def held(self, place: str | None, found: Mapping[str, Any] | None) -> dict[str, Any]:
        """The bar against a figure: the figure's value counts, not its interval.

        Args:
            place: Where the figure stands.
            found: An `evenhand.stats.estimates.Estimate` as plain data; None where there is no such figure.

        Returns:
            ``bar``, ``place``, ``value``, ``ci``, ``n``, ``met`` and ``reason``. ``met`` is None, and ``reason`` says
            why, where it can't be told: no figure, no interval, or fewer than 50 independent items.
        """
        told = {key: None if found is None else found[key] for key in ("value", "ci", "n")}
        reason = _lacking(found)
        met = None
        if found is not None and not reason:
            met = bool(found["value"] >= self.limit if self.at_least else found["value"] <= self.limit)
        return {"bar": self.text, "place": place, **told, "met": met, "reason": reason}


def read_bar(text: str, *, require: Callable[[str], None], places: Iterable[str]) -> Bar:
    """A bar from its text: ``FIGURE>=X``, ``FIGURE<=X``, or with a place ``FIGURE@PLACE>=X``.

    Args:
        text: The text.
        require: Raises where there is no figure of a name.
        places: The places that there are.

    Raises:
        InputError: it is no bar.
        UnknownNameError: no such figure or place.
    """
    found = _BAR.fullmatch(text)
    if found is None or not _NUMBER.fullmatch(found["limit"]) or not math.isfinite(float(found["limit"])):
        raise InputError(f"{text!r:.80} is no bar", hint="a bar is FIGURE>=X or FIGURE<=X, as in kappa>=0.6")
    require(found["figure"])
    places = list(places)
    if found["place"] is not None and found["place"] not in places:
        raise UnknownNameError("field", found["place"], places)
    return Bar(text.strip(), found["figure"], found["place"], found["sign"] == ">=", float(found["limit"]))


def met(held: Iterable[Mapping[str, Any]]) -> bool:
    """Whether every bar is met; one that can't be told is not."""
    return all(one["met"] is True for one in held)


def _lacking(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "no such figure"
    if found["value"] is None:
        return str(found["reason"])
    if found["clusters"] < FEW:
        return f"too little data: {found['clusters']} independent {found['cluster']}s, {FEW} needed"
    return "" if found["ci"] else f"too little data: {found['reason']}"
