"""Where in a reply the value of a field stands. Pure.

The reader itself tells: a value stands where another legal value, put in its stead, would be read. So the place agrees
with what is read whatever the form of the reply, and what a reply merely quotes has none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal

from evenhand.parse.values import menu
from evenhand.rubric.model import OutputField
from evenhand.scale import Value
from evenhand.verdict import Failure, Reading

#: Places of a value that are tried, the likeliest first.
_MOST_TRIES = 12
#: What a value mostly follows: a colon, a bracket, and marks around it.
_SET_OFF = r"[:：=>|\[(【是为][\s\\\"'“*_`]{0,16}\Z"
_CLOSERS = r"[\s\\\"'”’*_`)\]]{0,8}"
_LOOK_BACK = 40
_Span = tuple[int, int]
_NUMBER = re.compile(r"(?<![0-9A-Za-z.])[+-]?(?:[0-9]{1,30}(?:\.[0-9]{1,30})?|\.[0-9]{1,30})(?![0-9A-Za-z])")
_MOST_POINTS = 1000


def points_of(field: OutputField) -> tuple[Value, ...]:
    """The legal values of a field, null aside; none for texts, lists, and numbers without end or beyond 1000."""
    scale = field.scale
    if scale is None:
        return (True, False) if field.kind == "bool" else ()
    if scale.values is None and (scale.low is None or scale.high is None or scale.high - scale.low > _MOST_POINTS):
        return ()
    return scale.points or ()


def places_of(
    stated: Mapping[str, Value], fields: Iterable[OutputField], text: str, reads: Callable[[str], Reading]
) -> dict[str, _Span]:
    """Start and end of values in the text they were read from.

    Args:
        stated: Field name -> the value that is read of it.
        fields: These fields.
        text: The text.
        reads: What is read of another text.

    Returns:
        For each field the last place where another legal value would be read instead, or would compete with one that
        stands elsewhere too; places behind the field's name, a colon or a bracket come first. None for a field without
        such a place among the first 12, or without another legal value.
    """
    known = {field.name: field for field in fields}
    others = {name: put for name, value in stated.items() if (put := _other(known[name], value)) is not None}
    waiting = {name: _candidates(known[name], stated[name], text) for name in others}
    found: dict[str, _Span] = {}
    for _ in range(_MOST_TRIES):
        tried = _apart(waiting)
        found |= _confirmed(tried, stated, others, text, reads)
        waiting = {name: spans[name in tried :] for name, spans in waiting.items() if name not in found}
    return found


def _other(field: OutputField, value: Value) -> Value | None:
    return next((point for point in points_of(field) if str(point) != str(value)), None)


def _candidates(field: OutputField, value: Value, text: str) -> list[_Span]:
    """All places where the value is written, the likeliest first."""
    name = r"[\s_-]{1,3}".join(re.escape(part) for part in re.split(r"[\s_-]+", field.name))
    set_off, named = re.compile(_SET_OFF), re.compile(rf"{name}{_CLOSERS}{_SET_OFF}", re.IGNORECASE)

    def likeliest(span: _Span) -> tuple[bool, bool, int]:
        start = max(0, span[0] - len(field.name) - _LOOK_BACK)
        return bool(named.search(text, start, span[0])), bool(set_off.search(text, start, span[0])), span[0]

    return sorted(_written(field, value, text), key=likeliest, reverse=True)[:_MOST_TRIES]


def _apart(waiting: Mapping[str, list[_Span]]) -> dict[str, _Span]:
    """The first place of each field, but for those that another field has."""
    chosen: dict[str, _Span] = {}
    for name, spans in waiting.items():
        if spans and all(end <= spans[0][0] or spans[0][1] <= start for start, end in chosen.values()):
            chosen[name] = spans[0]
    return chosen


def _confirmed(
    tried: Mapping[str, _Span],
    stated: Mapping[str, Value],
    others: Mapping[str, Value],
    text: str,
    reads: Callable[[str], Reading],
) -> dict[str, _Span]:
    """The places at which another value changes what is read of the field, and of no other field.

    Many are tried at once: in the n-th text those are changed whose number has the n-th bit. So no two fields are
    always changed together.
    """
    right = dict(tried)
    for bit in range(len(tried).bit_length()):
        changed = [name for number, name in enumerate(tried, 1) if number >> bit & 1]
        pieces, end = [], 0
        for (start, stop), name in sorted((tried[name], name) for name in changed):
            pieces += [text[end:start], _plain(others[name])]
            end = stop
        outcomes = reads("".join([*pieces, text[end:]])).fields
        for name in tried:
            outcome = outcomes[name]
            meant = outcome.failure is None and outcome.value == (others if name in changed else stated)[name]
            if not meant and not (name in changed and outcome.failure is Failure.AMBIGUOUS):
                right.pop(name, None)
    return right


def _plain(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def spellings(field: OutputField, value: Value) -> Iterator[str]:
    """What may stand for a legal value: a label and its aliases, a number with and without decimals, true or false."""
    scale = field.scale
    if isinstance(value, bool):
        yield _plain(value)
    elif scale is not None and not scale.numeric:
        yield str(value)
        yield from (text for text, meant in menu(scale).items() if meant == value and type(meant) is type(value))
    else:
        yield str(value)
        if value == int(value):
            yield from (f"{int(value)}", f"{int(value)}.0")


def _written(field: OutputField, value: Value, text: str) -> Iterator[_Span]:
    """All places where the value is written."""
    if field.scale is not None and field.scale.numeric:
        exact = Decimal(str(value))
        yield from (m.span() for m in _NUMBER.finditer(text) if Decimal(m[0]) == exact)
        return
    either = sorted({_pattern(spelling) for spelling in spellings(field, value)}, key=len, reverse=True)
    yield from (m.span() for m in re.finditer("|".join(either), text, re.IGNORECASE))


def _pattern(label: str) -> str:
    """A label as a pattern: any spacing, and whole words where it begins or ends with one."""
    words = r"\s+".join(re.escape(word) for word in label.split()) or r"(?!)"
    before = r"(?<![0-9A-Za-z])" if re.match(r"[0-9A-Za-z]", label) else ""
    after = r"(?![0-9A-Za-z])" if re.search(r"[0-9A-Za-z]\Z", label) else ""
    return f"{before}{words}{after}"
