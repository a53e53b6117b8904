"""Published templates, filled: one pass, byte for byte. Pure.

Nothing is added, fenced or neutralised: a value stands where its hole was, whatever it holds, and is never read as a
template itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evenhand.rubric.model import Rubric, Template
from evenhand.rubric.templates import NOTES

_TURN_HOLE = re.compile(r"\{(n|user|assistant)\}")


def filled(rubric: Rubric, template: Template, item: Mapping[str, Any]) -> str:
    """A template with an item's values in its holes.

    Texts and numbers stand as they are; what is missing is "". Earlier turns are ``history.heading`` and the turns in
    the layout ``history.turn``, one after another, or ``history.empty``. The notes of a type are put together by line
    breaks; a type is shown as the rubric's ``fill`` says.

    Args:
        rubric: The contract.
        template: One of its messages.
        item: Item field -> value, in presentation order.
    """
    text = "".join(text + _value(rubric, name, item) for text, name in template.pieces)
    return text.strip() if template.strip else text


def laid_out(layout: str, turns: Sequence[Any], clean: Callable[[str], str] = str) -> list[str]:
    """Earlier turns, each in a layout with {n}, {user} and {assistant}; what the two said goes through ``clean``."""
    pieces = _TURN_HOLE.split(layout)  # literal, hole, literal, hole, ...
    shown = []
    for number, turn in enumerate(turns, 1):
        values = {"n": str(number), "user": clean(turn.user), "assistant": clean(turn.assistant)}
        shown.append("".join(values[piece] if n % 2 else piece for n, piece in enumerate(pieces)))
    return shown


def shown_type(rubric: Rubric, given: str) -> str:
    """A type of question as the prompt names it."""
    types = rubric.types
    return types.names.get(given, given) if types is not None and types.fill == "group" else given


def _value(rubric: Rubric, name: str, item: Mapping[str, Any]) -> str:
    if not name:
        return ""
    field, types = rubric.item.field(name), rubric.types
    if field is None:
        return _notes(rubric, item) if name == NOTES else ""
    value = item.get(name)
    if field.type == "turns":
        return _history(rubric, value or ())
    if value is None:
        return ""
    return shown_type(rubric, str(value)) if types is not None and name == types.item_field else str(value)


def _notes(rubric: Rubric, item: Mapping[str, Any]) -> str:
    types = rubric.types
    group = types.names.get(item.get(types.item_field) or "") if types is not None else None
    return "\n".join(note.text for note in types.notes[group]) if types is not None and group is not None else ""


def _history(rubric: Rubric, turns: Sequence[Any]) -> str:
    layout = rubric.history
    return layout.heading + "".join(laid_out(layout.turn, turns)) if turns else layout.empty
