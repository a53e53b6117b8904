"""What a ranking is controlled for: how the two responses of a comparison differ in length, markdown or any number.

What is counted in texts is compared as (a - b) / (a + b), 0 where neither has any, so that ten words more weigh more on
short responses than on long ones, and an exchange of A and B only changes the sign. Length is in characters. Markdown
is headers, list items and bold spans, outside fenced code. Numbers of other columns are compared as a - b.

Source: Li, Angelopoulos and Chiang (2024), "Does style matter? Disentangling style and substance in Chatbot Arena".
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.item_values import READERS, Mistake
from evenhand.keywords import texts

_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_HEADER = re.compile(r"^ {0,3}#{1,6}[ \t]+\S", re.MULTILINE)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S", re.MULTILINE)
_BOLD = re.compile(r"(\*\*|__)(?=\S)[^\n]{0,1000}?\S\1")  # bounded: long lines of stars are not read again and again
_COUNTS: Mapping[str, Callable[[str], int]] = {
    "length": len,
    "headers": lambda text: _found(_HEADER, text),
    "lists": lambda text: _found(_LIST_ITEM, text),
    "bold": lambda text: _found(_BOLD, text),
}
_GROUPS = {"markdown": ("headers", "lists", "bold")}


def control_names(control: str | Sequence[str]) -> tuple[str, ...]:
    """Names to control for, without repetition; "markdown" stands for headers, lists and bold.

    Args:
        control: Names, or a text of names joined by commas; none for "".

    Raises:
        InputError: a blank name, or what is no text.
    """
    given = [name.strip() for part in texts("control", () if control == "" else control) for name in part.split(",")]
    if not all(given):
        raise InputError("control takes names joined by commas, as in length,markdown")
    return tuple(dict.fromkeys(part for name in given for part in _GROUPS.get(name, (name,))))


def unavailable(names: Sequence[str], columns: Collection[str], *, texts: bool) -> list[str]:
    """What keeps names from being controlled for, a message each.

    Args:
        names: As `control_names` gives them.
        columns: The columns that there are.
        texts: Whether the responses' texts are there.
    """
    lacking = [name for name in names if not all(column in columns for column in _columns(name))]
    return [
        f"no {' and '.join(_columns(name))} to control for" + (", and no texts to count in" if name in _COUNTS else "")
        for name in lacking
        if name not in _COUNTS or not texts
    ]


def difference(name: str, row: Mapping[str, Any], texts: Sequence[Any]) -> float:
    """How much response A has of something more than response B.

    Args:
        name: Columns NAME_a and NAME_b of the row, if it has them; else what is to be counted in the texts.
        row: The comparison's columns.
        texts: Response A and B; null counts as empty.

    Raises:
        ValueError: a value that is no finite number, or a negative count; a response that is no text. The message goes
            after the place.
    """
    columns = _columns(name)
    if all(column in row for column in columns):
        a, b = (_number(column, row[column]) for column in columns)
        if name in _COUNTS and min(a, b) < 0:
            raise ValueError(f"{' or '.join(columns)} is below 0")
    else:
        a, b = (float(_COUNTS[name](_text(text))) for text in texts)
    if name in _COUNTS:
        if math.isinf(a + b):
            a, b = a / 2, b / 2
        return (a - b) / (a + b) if a + b else 0.0
    if not math.isfinite(a - b):
        raise ValueError(f"{' and '.join(columns)} differ by more than a number can hold")
    return a - b


def _columns(name: str) -> tuple[str, str]:
    return f"{name}_a", f"{name}_b"


def _found(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(_FENCE.sub("", text)))


def _text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise ValueError("a response is no text")
    return value or ""


def _number(column: str, value: Any) -> float:
    try:
        number = READERS["number"](value)
    except Mistake as mistake:
        raise ValueError(f"{column} {mistake}") from None
    if number is None:
        raise ValueError(f"{column} is blank")
    try:
        return float(number)
    except OverflowError:  # an int has no end
        raise ValueError(f"{column} is a number of too many digits") from None
