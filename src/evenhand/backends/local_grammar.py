"""GBNF grammars of the parts of an answer that a local model writes by itself: texts, lists, fractions."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any

from evenhand.rubric.model import OutputField
from evenhand.scale import Scale

#: Most elements of a list, and most characters of a text inside one: a small model may never stop by itself.
LIST_ITEMS = 4
LIST_TEXT = 160

_CHARACTER = 'char ::= [^"\\\\\\x00-\\x1F\\x7F] | "\\\\" ["\\\\/bfnrt]\n'
#: The rest of a JSON text after its opening quote.
TEXT_REST = 'root ::= char* "\\""\n' + _CHARACTER


def one_of(texts: Iterable[str]) -> str:
    """A grammar of fixed texts."""
    return f"root ::= {_alternatives(texts)}\n"


def number(scale: Scale) -> str:
    """A grammar of the numbers on a scale without a finite list of points, with a space before."""
    return f'root ::= " " ({_number(scale)})\n'


def list_value(field: OutputField) -> str:
    """A grammar of a list of texts or of flat objects, with a space before; at most 4 elements."""
    item = _object(field.items) if field.items else "text"
    none = ' | " null"' if field.nullable else ""
    return (
        f'root ::= " []" | " [" item (", " item){{0,{LIST_ITEMS - 1}}} "]"{none}\n'
        f"item ::= {item}\n"
        f'text ::= "\\"" char{{0,{LIST_TEXT}}} "\\""\n'
        f"{_CHARACTER}"
    )


def _object(fields: Sequence[OutputField]) -> str:
    parts = []
    for position, field in enumerate(fields):
        lead = "{" if position == 0 else ", "
        parts.append(f"{_literal(f'{lead}{_json(field.name)}: ')} ({_scalar(field)})")
    return " ".join(parts) + ' "}"'


def _scalar(field: OutputField) -> str:
    if field.kind == "bool":
        value = _alternatives(("true", "false"))
    elif field.scale is None:
        value = "text"
    elif (points := field.scale.points) is not None:
        value = _alternatives(_json(point) for point in points)
    else:
        value = _number(field.scale)
    return f'{value} | "null"' if field.nullable else value


def _number(scale: Scale) -> str:
    """Whole parts with up to two decimals, where all of them lie in the range; else any such number."""
    low, high = scale.low, scale.high
    if low is None or high is None or low < 0 or not float(low).is_integer() or high - low > 100:
        return '"-"? [0-9]{1,6} ("." [0-9]{1,2})?'
    below = [f'{_literal(str(whole))} ("." [0-9]{{1,2}})?' for whole in range(int(low), math.floor(high))]
    return " | ".join([*below, _literal(str(math.floor(high)))])


def _alternatives(texts: Iterable[str]) -> str:
    return " | ".join(_literal(text) for text in texts)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
