"""Items: one row checked against what a rubric reads, column by column.

Opening files and frames is the business of `evenhand.sources`; here a row is a mapping of plain data already.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand._canon import digest
from evenhand.errors import Problem, UnknownNameError, close_names
from evenhand.rubric.model import ItemField, ItemSpec

#: Most bytes one row may have: longer ones are a mistake in the file far more often than a text to be judged.
MAX_ROW_BYTES = 2_000_000
#: Fields that may be given as a whole conversation, whose last message is the text.
PROMPT_FIELDS = ("question", "prompt", "input")
_ID = "id"
_DEPTH = 100
_SHOWN_COLUMNS = 20
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


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


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """What a row says, and what is wrong with it.

    Attributes:
        fields: Every item field of the rubric -> value; None (``()`` for turns and images) where not given.
        extra: Columns that no field was read from.
        id: The row's own id, None when it has none.
        problems: Mistakes, without line; the row is usable only when there are none.
    """

    fields: Mapping[str, Any]
    extra: Mapping[str, Any]
    id: str | None
    problems: tuple[Problem, ...]


class _Mistake(ValueError):
    """A value that is not of its field's type; the message follows the field's name."""


def check_row(
    row: Mapping[str, Any],
    spec: ItemSpec,
    *,
    mapping: Mapping[str, str] | None = None,
    max_bytes: int = MAX_ROW_BYTES,
) -> CheckedRow:
    """Read a rubric's item fields from one row of plain data.

    A field is read from the column ``mapping`` names, else from the column of its own name, else from the first
    alias that the row has. A number where text is due becomes its JSON text; text where a truth value, number,
    turns or images are due is read as such, so that CSV serves as well as JSON. A list of chat messages in one of
    ``PROMPT_FIELDS`` gives its last message as the text; the earlier ones become the turns field if there is one,
    not given in the row, else they stand before the text as "role: text" lines.

    Args:
        row: Column -> value.
        spec: What the rubric reads.
        mapping: Field name or "id" -> column.
        max_bytes: Most UTF-8 bytes that the row's texts may have.

    Returns:
        The fields and all problems found. A required text may be null or blank only where it is a response;
        null and "" stay apart.
    """
    mapping = mapping or {}
    problems = [*_text_problems(row, max_bytes), *missing_columns(row, spec, mapping)]
    columns = {name: _column(name, row, spec, mapping) for name in (_ID, *(f.name for f in spec.fields))}
    fields: dict[str, Any] = {}
    given_id = None
    for name in columns:
        column = columns[name]
        value = row.get(column) if column is not None else None
        item_field = spec.field(name)
        try:
            if item_field is None:
                given_id = _given_id(value)
            else:
                fields[name] = _READERS[item_field.type](value)
                _require_value(item_field, fields[name], spec, given=column in row)
        except _Mistake as mistake:
            label = name if column in (name, None) else f"{name} (column {column})"
            problems.append(Problem(None, "", f"{label} {mistake}"))
    if not problems:
        _spread_conversations(fields, spec)
        problems += [Problem(None, "", f"{n} {v}") for n, v in fields.items() if isinstance(v, _Mistake)]
    used = set(columns.values())
    extra = {column: value for column, value in row.items() if column not in used}
    return CheckedRow(fields, extra, given_id, tuple(problems))
