"""From a reply to the value of each field, or the reason there is none. Strict; it never guesses. Pure.

The order of reading: valid JSON as a whole; then, without reasoning blocks, the patterns of a published text
format, objects in fences or prose (repaired where that is certain), and labelled ratings in free text. Values
that compete make a field ambiguous; what was cut off is truncated, even if closing the brackets would do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand._kept import kept
from evenhand.parse import labelled
from evenhand.parse.asked import Asked
from evenhand.parse.exact import Exact
from evenhand.parse.lenient import KEY, Bare, Number, Pairs
from evenhand.parse.odd import Odd
from evenhand.parse.refusals import declines
from evenhand.parse.structured import Found, search, take, whole
from evenhand.parse.thinking import without_thinking
from evenhand.parse.values import failed, read_value, read_words, settle
from evenhand.rubric.model import OutputField
from evenhand.verdict import Failure, FieldOutcome, Reading, Reply, ToolCall

__all__ = ["read"]

#: Off every scale, as anything beyond it.
_TOO_LARGE = 10**400
#: Longest text on which the patterns of a rubric are run, since their work may grow with its square.
_LONGEST_PATTERNED = 64_000
#: Longest prose that is searched for labels; more is not an honest reply.
_LONGEST_PROSE = 256_000
_INVISIBLE = " \t\r\n\f\v\0\ufeff\u200b\u200c\u200d\u2060\u3000\xa0"
_CUT_SHORT = ("length", "max_tokens", "model_length")
_FILTERED = ("content_filter", "refusal", "safety")
_OPEN_FENCE = re.compile(r"[^`]*`{1,2}\Z|[^`]*```\w*\s*\Z")
_EMPTY_FENCE = re.compile(r"```\w*\s*```")
_SPENT = "the limit of tokens was reached before the answer; raise --max-tokens"


_asked, _exact, _odd = kept(Asked), kept(Exact), kept(Odd)


def read(reply: Reply, fields: tuple[OutputField, ...], *, function: str | None = None) -> Reading:
    """Read one reply.

    Args:
        reply: What the backend returned; its reasoning is never looked at.
        fields: The fields that were asked for.
        function: Name of the function that was offered; where a reply calls it, calls of others don't count.

    Returns:
        An outcome for every field. One unreadable field does not void the rest; where nothing could be read,
        ``failure`` says why and every field carries it. Never raises, whatever the reply.
    """
    if not fields:
        return Reading({})
    ended = (reply.finish or "").lower() in _CUT_SHORT
    if not ended and (outcomes := _exactly(reply, fields, function)) is not None:
        return Reading(outcomes)
    return patiently(reply, fields, function, ended=ended)


def _exactly(reply: Reply, fields: tuple[OutputField, ...], function: str | None) -> dict[str, FieldOutcome] | None:
    """The outcomes of a reply that is one object with just the fields asked for, as nearly all are."""
    meant = _meant(reply.tool_calls, function)
    if len(meant) > 1:
        return None
    said = meant[0].arguments if meant else reply.text
    return _exact(fields).read(said) if type(said) is str else None


def patiently(reply: Reply, fields: tuple[OutputField, ...], function: str | None, *, ended: bool) -> Reading:
    """Read any reply; ``ended`` tells that it reached the limit of its tokens."""
    asked = _asked(fields)
    found = _from_calls(reply.tool_calls, asked, function) if reply.tool_calls else Found()
    text = reply.text or ""
    if not (found.values or found.broken or found.cut) and (text.strip(_INVISIBLE) or not reply.tool_calls):
        found = _from_text(text, asked, ended=ended)
    if not any(field.name in found.values for field in asked.values):
        filtered = (reply.finish or "").lower() in _FILTERED
        if filtered or reply.refusal or (found.failure is None and declines(found.outside)):
            found.failure, found.values = Failure.REFUSAL, {}
    return _conclude(asked, found, reply.refusal or text, ended=ended)


def _meant(calls: Sequence[ToolCall], function: str | None) -> Sequence[ToolCall]:
    """The calls that count: those of the function that was offered, or all where none is."""
    return [call for call in calls if call.name == function] or calls


def _from_calls(calls: tuple[ToolCall, ...], asked: Asked, function: str | None) -> Found:
    """What tool calls hold; the name of a single call does not matter."""
    found = Found()
    for call in _meant(calls, function):
        if not isinstance(call.arguments, str):
            try:
                take(found, asked, _as_read(call.arguments))
            except RecursionError:
                found.broken = True
            continue
        valid, value = whole(call.arguments)
        if valid and type(value) is str:
            valid, value = whole(value)
        if valid:
            take(found, asked, value)
        else:
            found.join(search(call.arguments, asked))
    return found


def _as_read(value: Any) -> Any:
    """Plain data in the form in which JSON is read; numbers that have no place there, and all else, are words."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and abs(value) >= _TOO_LARGE:
        return Number(_TOO_LARGE)  # Python refuses to write the digits of an endless one
    if isinstance(value, int | float):
        return Number(value) if value == value and abs(value) != float("inf") else Bare(value)
    if isinstance(value, list | tuple):
        return [_as_read(element) for element in value]
    if isinstance(value, Mapping):
        return Pairs((str(key), _as_read(element)) for key, element in value.items())
    return Bare(value)


def _from_text(text: str, asked: Asked, *, ended: bool, inner: bool = False) -> Found:
    text = text.strip(_INVISIBLE)
    if not text or _EMPTY_FENCE.fullmatch(text):
        return Found(failure=Failure.TRUNCATED if ended else Failure.EMPTY)
    valid, value = whole(text)
    odd = _odd(asked)
    if not valid and (hidden := odd.hide(text)) is not None:
        found = _from_text(hidden, odd.asked, ended=ended, inner=inner)
        found.values = odd.show(found.values)
        return found
    if not valid:
        answer = without_thinking(text, asked)
        if isinstance(answer, Failure):
            return Found(failure=answer)
        answer = answer.strip(_INVISIBLE)
        if not answer:
            return Found(failure=Failure.TRUNCATED if ended else Failure.EMPTY)
        valid, value = whole(answer) if answer != text else (False, None)
        if not valid and answer.startswith('{\\"'):
            valid, value = whole(f'"{answer}"')  # an object escaped once too often
        if not valid:
            return _from_prose(answer, asked, ended=ended)
        text = answer
    if ended and isinstance(value, Number):
        return Found(failure=Failure.TRUNCATED)  # more digits may have been due
    if type(value) is str and not inner:
        return _from_text(value, asked, ended=ended, inner=True)
    return _from_json(value, text, asked)


def _from_json(value: Any, text: str, asked: Asked) -> Found:
    """A reply that is valid JSON from end to end."""
    found = Found()
    take(found, asked, value)
    lone = asked.only
    if isinstance(value, Pairs) or found.values or lone is None:
        return found
    outcomes = labelled.ratings(text, lone, asked, ended=False) if isinstance(value, list) else []
    if outcomes:  # [[8]] is a labelled rating, and valid JSON by chance
        found.values[lone.name] = outcomes
    elif value != [] and not (isinstance(value, list) and any(isinstance(v, Pairs) for v in value)):
        found.add(lone.name, read_value(lone, value))
    return found


def _from_prose(text: str, asked: Asked, *, ended: bool) -> Found:
    """Free text, with or without objects in it."""
    begun = KEY.match(text) is not None  # a judge whose reply was begun with a brace does not repeat it
    text = "{" + text if begun else text
    patterned = {f.name: _matches(text, f, ended=ended) for f in asked.fields if f.patterns}
    found = search(text, asked)
    found.repaired = found.repaired or begun
    if len(found.outside) + len(found.doubtful) > _LONGEST_PROSE:
        return Found(broken=True)
    found.cut = found.cut or bool(_OPEN_FENCE.match(found.outside))
    # A piece of JSON beyond the objects belongs to one that could not be read.
    unread = [failed(Failure.UNPARSEABLE, found.outside)] if asked.fragment.search(found.outside) else []
    for field in asked.values:
        if patterned.get(field.name):
            found.values[field.name] = patterned[field.name]
            continue
        if field.name in found.values:
            rivals = labelled.ratings(f"{found.outside}\n", field, asked, ended=False)
            rivals += labelled.corrections(found.outside, field, asked)
            rivals += labelled.ratings(found.doubtful, field, asked, ended=False, quotes=False)
            outcomes = [*found.values[field.name], *(o for o in rivals if o.failure in _DEFINITE)]
            found.values[field.name] = [*outcomes, *(unread if settle(outcomes).failure is None else [])]
        elif unread:
            found.broken = True
        elif not found.cut and not found.broken:
            outcomes = labelled.ratings(found.outside, field, asked, ended=ended)
            if not outcomes and asked.only is field and found.outside == text:
                outcomes = _all_there_is(text, field, ended=ended)
            if outcomes:
                rivals = labelled.corrections(found.outside, field, asked)
                found.values[field.name] = outcomes + (rivals if settle(outcomes).failure is None else [])
    for field in asked.texts:
        texts = patterned.get(field.name) or (
            [] if field.name in found.values else labelled.explained(found.outside, field, asked)
        )
        if texts:
            found.values[field.name] = texts
    return found


#: Outcomes of a label in prose that stand against a value found in an object.
_DEFINITE = (None, Failure.OUT_OF_RANGE, Failure.NOT_INTEGER, Failure.SCALE_MISMATCH, Failure.UNKNOWN_LABEL)


def _all_there_is(text: str, field: OutputField, *, ended: bool) -> list[FieldOutcome]:
    """The outcome of a reply that is nothing but the value; empty where it is more than that."""
    outcome = labelled.nothing_but(text, field)
    if outcome is None:
        return []
    return [failed(Failure.TRUNCATED, text)] if ended else [outcome]


def _matches(text: str, field: OutputField, *, ended: bool) -> list[FieldOutcome]:
    """What the patterns of a published text format find; the first that matches counts. An endless text isn't read."""
    if field.patterns and len(text) > _LONGEST_PATTERNED:
        return [failed(Failure.UNPARSEABLE, text)]
    for pattern in field.patterns:
        found = [m for m in re.finditer(pattern, text) if m[1] is not None]
        if found:
            chosen = {"only": found, "first": found[:1], "last": found[-1:]}[field.take]
            return [
                failed(Failure.TRUNCATED, m[1])
                if ended and m.end(1) == len(text)
                else FieldOutcome(m[1].strip())
                if field.kind == "text"
                else read_words(field, m[1])
                for m in chosen
            ]
    return []


def _conclude(asked: Asked, found: Found, said: str, *, ended: bool) -> Reading:
    """The outcome of every field asked for."""
    absent = Failure.UNPARSEABLE if found.broken else Failure.TRUNCATED if found.cut or ended else None
    failure = found.failure
    if failure is None and not found.values:
        failure = absent or (Failure.UNPARSEABLE if found.unread else Failure.NO_RATING)
    if failure is not None:
        detail = said.strip() or (_SPENT if ended and failure is Failure.TRUNCATED else "")
        return Reading({f.name: failed(failure, detail) for f in asked.fields}, failure=failure)
    rated = any(f.name in found.values for f in asked.values)
    outcomes = {
        f.name: settle(found.values[f.name]) if f.name in found.values else _absent(f, absent, rated=rated)
        for f in asked.fields
    }
    return Reading(outcomes, repaired=found.repaired)


def _absent(field: OutputField, absent: Failure | None, *, rated: bool) -> FieldOutcome:
    """The outcome of a field of which nothing was found."""
    if absent is not None:
        return FieldOutcome(failure=absent)
    if not field.required and field.criterion != field.name:
        return FieldOutcome()
    if field.kind in ("scale", "bool") and not rated:
        return FieldOutcome(failure=Failure.NO_RATING)
    return FieldOutcome(failure=Failure.MISSING_FIELD)
