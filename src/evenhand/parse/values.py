"""One value of one field: from what stands in the reply to a legal value, or the reason there is none. Pure.

Strict on purpose: no clamping, rounding, rescaling or default; a word is never a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from evenhand.parse.asked import under
from evenhand.parse.lenient import Bare, Number, Pairs
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale, Value, folded, plain
from evenhand.verdict import Failure, FieldOutcome

_SHOWN = 80
_MOST_RIVALS = 4
_LONGEST_NUMBER = 400
NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
#: Between a rating and its denominator.
OVER = r"(?:/|out\s+of|of|满分)"
#: Between two alternatives.
BETWEEN = r"(?:-+>?|–|—|~|→|\.{2,3}|…+|\bto\b|\bthrough\b|\bor\b|\band\b|&|至|到|或者?|和|与)"
_WHOLE_NUMBER = re.compile(NUMBER)
_FRACTION = re.compile(rf"({NUMBER})\s*{OVER}\s*({NUMBER})", re.IGNORECASE)
_RANGE = re.compile(rf"{NUMBER}\s*(?:{BETWEEN}|,)\s*{NUMBER}", re.IGNORECASE)
_NOTHING = {"", "n/a", "na", "n.a.", "null", "none", "nil", "-", "--", "not applicable", "no rating", "无", "不适用"}
_PLACEHOLDER = re.compile(r"\.{2,}|…+|<[^<>]*>|_+")
_SCHEMA_KEYS = {"type", "$ref", "anyof", "oneof", "enum", "const"}
_MARKS = " \t\r\n*_`\"'“”‘’[](){}（）【】「」.。,，;；:：!！"
#: What may stand before the name of a side: "Assistant A", "回答 B".
SIDE = r"(?:(?:assistant|response|answer|model|option|candidate|助手|模型|回答|选项)\s*)"
_SIDE = re.compile(rf"{SIDE}(?=\w\Z)", re.IGNORECASE)


def failed(failure: Failure, what: object) -> FieldOutcome:
    """A failure, with the piece of the reply it is about."""
    text = str(what)
    return FieldOutcome(failure=failure, detail=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def settle(outcomes: Sequence[FieldOutcome]) -> FieldOutcome:
    """One outcome of several: equal ones are one, different ones compete, one that could not be told decides."""
    untold = next((o for o in outcomes if o.failure in (Failure.TRUNCATED, Failure.UNPARSEABLE)), None)
    if untold is not None:
        return untold
    distinct: list[FieldOutcome] = []
    for outcome in outcomes:
        if not any(outcome.value == o.value and outcome.failure == o.failure for o in distinct):
            distinct.append(outcome)
        if len(distinct) > _MOST_RIVALS:
            break
    if len(distinct) == 1:
        return distinct[0]
    return failed(Failure.AMBIGUOUS, " | ".join(str(o.value if o.failure is None else o.detail) for o in distinct))


def is_placeholder(field: OutputField, raw: object) -> bool:
    """Whether a value only shows the form: the piece of a schema, or dots and angle brackets to fill in.

    What is a legal value is one, whatever it looks like.
    """
    if isinstance(raw, Pairs):
        return any(key.casefold() in _SCHEMA_KEYS for key, _ in raw)
    if field.kind == "text" or not isinstance(raw, str) or not _PLACEHOLDER.fullmatch(raw.strip()):
        return False
    return field.scale is None or folded(raw) not in menu(field.scale)


def read_value(field: OutputField, raw: Any) -> FieldOutcome:
    """The outcome of a field from the JSON value under its key."""
    if raw is None:
        return _null(field)
    if field.kind == "text":
        return FieldOutcome(raw) if type(raw) is str else failed(Failure.WRONG_TYPE, _shown(raw))
    if field.kind == "list":
        return _list(field, raw)
    if isinstance(raw, bool):
        if field.kind == "bool":
            return FieldOutcome(raw)
        return _boolean_choice(field, raw)
    if isinstance(raw, str):
        return read_words(field, raw)
    return failed(Failure.WRONG_TYPE, _shown(raw))


def read_words(field: OutputField, text: str) -> FieldOutcome:
    """The outcome of a value field from a text that holds the value and nothing else."""
    words = plain(text).strip()
    legal = _truth(words) if field.kind == "bool" else _label(field.scale, words)
    if legal is not None:
        return FieldOutcome(legal)
    if words.casefold() in _NOTHING:
        return _null(field)
    if field.kind == "bool" or field.scale is None:
        return failed(Failure.WRONG_TYPE, text)
    return _number(field.scale, words) if field.scale.numeric else _choice(field.scale, words)


def on_scale(scale: Scale, token: str) -> FieldOutcome:
    """The outcome of a definite number, written as `NUMBER` says; range and wholeness are checked here, last."""
    if len(token) > _LONGEST_NUMBER:
        return failed(Failure.OUT_OF_RANGE, token)
    try:
        exact = Decimal(token)
    except ArithmeticError:
        return failed(Failure.OUT_OF_RANGE, token)
    if scale.values is not None:
        return _listed(scale.values, exact, token)
    low, high = Decimal(str(scale.low)), Decimal(str(scale.high))
    if not low <= exact <= high:
        return failed(Failure.OUT_OF_RANGE, token)
    if not scale.integer:
        return FieldOutcome(float(token))
    whole = exact == exact.to_integral_value()
    return FieldOutcome(int(exact)) if whole else failed(Failure.NOT_INTEGER, token)


def over(scale: Scale, denominator: str) -> bool:
    """Whether a denominator is the top of a scale."""
    top = scale.top
    return isinstance(top, int | float) and len(denominator) <= _LONGEST_NUMBER and float(denominator) == top


def menu(scale: Scale) -> dict[str, Value]:
    """What may stand for each listed value, in lower case, longest first."""
    entries = {folded(str(value)): value for value in scale.values or ()}
    entries = {**{folded(alias): value for alias, value in scale.aliases.items()}, **entries}
    return dict(sorted(entries.items(), key=lambda entry: -len(entry[0])))


def _null(field: OutputField) -> FieldOutcome:
    if field.nullable:
        return FieldOutcome()
    if field.kind in ("scale", "bool"):
        return failed(Failure.NO_RATING, "null")
    return failed(Failure.MISSING_FIELD, "null") if field.required else FieldOutcome()


def _truth(words: str) -> bool | None:
    return {"true": True, "false": False}.get(words.casefold())


def _boolean_choice(field: OutputField, raw: bool) -> FieldOutcome:
    values = field.scale.values if field.scale is not None else None
    if values is not None and any(value is raw for value in values):
        return FieldOutcome(raw)
    return failed(Failure.WRONG_TYPE, str(raw).lower())


def _label(scale: Scale | None, words: str) -> Value | None:
    """The listed value a text names as a whole, marks around it aside."""
    if scale is None or scale.values is None or scale.numeric:
        return None
    options = menu(scale)
    bare = words.strip(_MARKS)
    if all(len(str(value)) == 1 or scale.slots for value in scale.values):
        bare = _SIDE.sub("", bare)
    for candidate in (words, bare):
        if (said := folded(candidate)) in options:
            return options[said]
    return None


def _choice(scale: Scale, words: str) -> FieldOutcome:
    either = "|".join(re.escape(option) for option in menu(scale))
    several = re.compile(rf"(?:{either})(?:\s*(?:[/,;|+]|{BETWEEN})\s*(?:{either}))+", re.IGNORECASE)
    if len(words) <= _LONGEST_NUMBER and several.fullmatch(folded(words.strip(_MARKS))):
        return failed(Failure.AMBIGUOUS, words)
    return failed(Failure.UNKNOWN_LABEL, words)


def _number(scale: Scale, words: str) -> FieldOutcome:
    if len(words) > _LONGEST_NUMBER:
        return on_scale(scale, words) if _WHOLE_NUMBER.fullmatch(words) else failed(Failure.WRONG_TYPE, words)
    if _WHOLE_NUMBER.fullmatch(words):
        return on_scale(scale, words)
    if found := _FRACTION.fullmatch(words):
        return on_scale(scale, found[1]) if over(scale, found[2]) else failed(Failure.SCALE_MISMATCH, words)
    return failed(Failure.AMBIGUOUS if _RANGE.fullmatch(words) else Failure.WRONG_TYPE, words)


def _listed(values: Iterable[Value], exact: Decimal, token: str) -> FieldOutcome:
    numbers = [v for v in values if isinstance(v, int | float)]
    for value in numbers:
        if exact == Decimal(str(value)):
            return FieldOutcome(value)
    inside = min(numbers) <= exact <= max(numbers)
    fraction = inside and exact != exact.to_integral_value() and all(isinstance(v, int) for v in numbers)
    return failed(Failure.NOT_INTEGER if fraction else Failure.OUT_OF_RANGE, token)


def _list(field: OutputField, raw: Any) -> FieldOutcome:
    if not isinstance(raw, list) or isinstance(raw, Pairs):
        return failed(Failure.WRONG_TYPE, _shown(raw))
    read = []
    for n, element in enumerate(raw):
        value = _element(field, element)
        if value is None:
            return failed(Failure.WRONG_TYPE, f"[{n}] {_shown(element)}")
        read.append(value)
    return FieldOutcome(read)


def _element(field: OutputField, raw: Any) -> str | dict[str, Any] | None:
    """One element of a list, None where it can't be read."""
    if not field.items:
        return raw if type(raw) is str else None
    if not isinstance(raw, Pairs):
        return None
    element = {}
    for part in field.items:
        found = under(raw, part.name)
        if not found and not part.required:
            continue
        outcome = settle([read_value(part, value) for value in found]) if found else failed(Failure.MISSING_FIELD, "")
        if outcome.failure is not None:
            return None
        element[part.name] = outcome.value
    return element


def _shown(raw: Any) -> str:
    """A JSON value in a few words."""
    if isinstance(raw, Pairs):
        return "an object"
    if isinstance(raw, list):
        return "a list"
    if isinstance(raw, bool):
        return str(raw).lower()
    return raw[: _SHOWN + 1] if isinstance(raw, Number | Bare) else repr(raw)[: _SHOWN + 1]
