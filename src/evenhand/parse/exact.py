"""Replies that hold exactly what was asked for, read in one step. What is read here, the patient reader reads alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from evenhand.parse.lenient import Number
from evenhand.parse.values import is_placeholder, read_value
from evenhand.rubric.model import OutputField
from evenhand.verdict import FieldOutcome

#: Most legal values of one field that are listed beforehand.
_LISTED = 1001
_decode = msgspec.json.Decoder().decode


class Exact:
    """Reads one object with each of some fields once, under its own name, legal to the letter.

    Args:
        fields: The fields asked for.
    """

    def __init__(self, fields: Sequence[OutputField]) -> None:
        self._names = {field.name for field in fields}
        self._quoted = [f'"{field.name}"' for field in fields]
        self._once = [1] * len(fields)
        self._legal = {field.name: None if field.kind == "text" else _legal(field) for field in fields}
        valued = any(field.kind in ("scale", "bool") for field in fields)
        self._usable = valued and len({name.casefold() for name in self._names}) == len(fields)

    def read(self, text: str) -> dict[str, FieldOutcome] | None:
        """The outcome of every field, in their order; None for any other text."""
        if not self._usable or "\\u" in text:
            return None
        if list(map(text.count, self._quoted)) != self._once:
            return None  # a key that may be there twice: the decoder would keep its last value
        try:
            held = _decode(text)
        except (ValueError, RecursionError):
            return None
        if type(held) is not dict or held.keys() != self._names:
            return None
        found = {}
        for name, legal in self._legal.items():
            value = held[name]
            if legal is not None:
                outcome = legal.get((type(value), value)) if type(value) in _PLAIN else None
                if outcome is None:
                    return None
                found[name] = outcome
            elif type(value) is str:
                found[name] = FieldOutcome(value)
            else:
                return None
        return found


_PLAIN = (int, str, bool, type(None))


def _legal(field: OutputField) -> Mapping[tuple[type, Any], FieldOutcome]:
    """Type and value of what is legal -> its outcome, as the patient reader tells it."""
    scale = field.scale
    raws: list[Any] = [None, True, False]
    if scale is not None and scale.values is not None:
        raws += [value for value in scale.values if type(value) in (int, str)]
    elif scale is not None and scale.low is not None and scale.high is not None and scale.high - scale.low < _LISTED:
        raws += range(int(scale.low), int(scale.high) + 1)
    read = {(type(raw), raw): _told(field, raw) for raw in raws}
    return {key: outcome for key, outcome in read.items() if outcome is not None}


def _told(field: OutputField, raw: Any) -> FieldOutcome | None:
    """The outcome of a value; None for one that is not legal."""
    written = Number(raw) if type(raw) is int else raw
    outcome = read_value(field, written)
    return outcome if outcome.failure is None and not is_placeholder(field, written) else None
