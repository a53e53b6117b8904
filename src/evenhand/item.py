"""Items: rows of a data file, checked and given stable ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of a conversation."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to be judged.

    Attributes:
        id: Stable id: the row's own, else content digest and occurrence number.
        row: 0-based position in the input.
        fields: The rubric's item fields -> value (text, bool, number, tuple of Turn, tuple of images, or None).
        extra: All other columns of the row, untouched, for slices and export.
        place: Where it came from, as in "data.jsonl:17"; for messages only.
    """

    id: str
    row: int
    fields: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)
    place: str = ""
