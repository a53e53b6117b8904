"""From the token probabilities of a chat-completions server to a distribution for each value in its reply. Pure.

All is conditional on what was written before the value: the reason, the key, the space. Where a value is spelled in
several tokens, alternatives are known at each token of the path that was taken, and nowhere else.
"""

from __future__ import annotations

import bisect
import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import partial
from typing import Any

from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.backends.http_errors import Fault
from evenhand.parse import read
from evenhand.parse.places import places_of, points_of, spellings
from evenhand.rubric.model import OutputField
from evenhand.scale import Value
from evenhand.verdict import Distribution, Reading, Reply

#: Bytes of a reply; no honest one is longer.
_LONGEST = 32_000
#: Probabilities of one place may sum to this much; more, and they are none.
_MOST_MASS = 1.05
#: Log probabilities: of a certain token, after rounding; of one that might as well be impossible.
_ROUNDING, _LEAST = 1e-3, -9999.0
_TOP = "top_logprobs"
#: Key of what is learned of an endpoint for the most alternatives it lists.
_MOST_TOP = "most top_logprobs"
_LIMIT = re.compile(
    r"(?:at most|less than or equal to|<=|up to|no more than|not exceed|max(?:imum)?(?: allowed| value)?(?: of| is)?)"
    r"[\s:`'\"]{0,3}(\d{1,4})\b|(?:between 0 and|0 to|\[0,) ?(\d{1,4})\b",
    re.IGNORECASE,
)
#: What may stand between the colon and a value, within the value's token.
_LEADS = b" \t\r\n\"':*_`[("

#: What is left to write of each way to spell a value.
_Left = Sequence[tuple[Value, bytes]]


@dataclass(frozen=True, slots=True)
class _View:
    """A text of the reply: where it begins among the bytes generated, and the reply that has another in its stead."""

    start: int
    text: str
    reply: Callable[[str], Reply]


def distributions(reply: Reply, logprobs: Any, request: Request) -> dict[str, Distribution]:
    """How probable each legal value of the fields asked was.

    The value's tokens are found where the reader reads it (see `evenhand.parse.places.places_of`). Up to the token
    that decides among the legal values, each alternative that goes on with exactly one of them counts for it, with
    the probability of the path so far times its own. The stated value has the rest of the path. An alternative that
    may become several values counts for none, except for the one it spells in full where the others are tokens of
    their own at this place.

    Args:
        reply: The reply, without distributions.
        logprobs: ``choices[0].logprobs`` as the server sent it, or anything else.
        request: What was asked.

    Returns:
        Field name -> distribution over all its legal values (up to 1001 of them; not null). Its missing mass is
        all else: tokens that are no legal value, that may be several, or beyond the ones listed. A field is left out
        where its value was not read, its tokens can't be found, or the probabilities at its place make no sense or
        list no alternative. Never raises.
    """
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    fields = [f for f in request.fields if len(points_of(f)) > 1]
    if not fields or not isinstance(content, list):
        return {}
    pieces = [_data(entry) for entry in content]
    known = [piece for piece in pieces if piece is not None]
    stream = b"".join(known)
    if len(known) < len(pieces) or not 0 < len(stream) <= _LONGEST:
        return {}
    ends = list(itertools.accumulate(len(piece) for piece in known))
    reading = read(reply, request.fields, function=request.function).fields
    read_of = {f.name: reading[f.name].value for f in fields if reading[f.name].failure is None}
    stated = {name: value for name, value in read_of.items() if isinstance(value, int | float | str)}
    places = _places(fields, stated, _views(reply, stream), request)
    found = {}
    for field in fields:
        if field.name not in places:
            continue
        value, (start, end) = stated[field.name], places[field.name]
        first = bisect.bisect_right(ends, start)
        lead = known[first][: start - ends[first]].lower()
        ways = _ways(field, value, stream[start:end].lower())
        path = zip(content[first:], known[first:], strict=True)
        spread = _spread(path, lead, ways, value, quoted=stream[:start].endswith(b'"'))
        if spread is not None:
            found[field.name] = spread
    return found


def lessen(fault: Fault, sent: Mapping[str, Any], learned: dict[str, str | None]) -> str | None:
    """Note that an endpoint lists fewer alternatives than were asked for, or tells no probabilities at all.

    Returns:
        What it refuses; None where the fault does not speak of probabilities that were asked for.
    """
    if _TOP not in sent or not re.search(r"logprobs\b", fault.words):
        return None
    said = _LIMIT.search(fault.message)
    most = int(said[1] or said[2]) if said else 0
    if 0 < most < sent[_TOP]:
        learned[_MOST_TOP] = str(most)
        return f"{_TOP} above {most}"
    learned.update({"logprobs": None, _TOP: None})
    return "logprobs"


def within(sampling: dict[str, Any], learned: Mapping[str, str | None]) -> dict[str, Any]:
    """Sampling settings with no more alternatives than the endpoint lists, as `lessen` has learned."""
    most = learned.get(_MOST_TOP)
    return sampling if most is None or _TOP not in sampling else {**sampling, _TOP: min(sampling[_TOP], int(most))}


def _views(reply: Reply, stream: bytes) -> Iterator[_View]:
    """The texts that a value may be read from: content, arguments, or all that was generated where neither is in it."""
    texts: list[tuple[str, Callable[[str], Reply]]] = []
    if reply.text:
        texts.append((reply.text, lambda text: replace(reply, text=text)))
    for n, call in enumerate(reply.tool_calls):
        if isinstance(call.arguments, str):
            texts.append((call.arguments, partial(_with_call, reply, n)))
    for text, other in texts:
        start = stream.rfind(_encoded(text))  # the answer ends what was generated
        if start >= 0:
            yield _View(start, text, other)
    yield _View(0, stream.decode("utf-8", "surrogateescape"), lambda text: Reply(text=text, finish=reply.finish))


def _with_call(reply: Reply, n: int, arguments: str) -> Reply:
    calls = [*reply.tool_calls]
    calls[n] = replace(calls[n], arguments=arguments)
    return replace(reply, tool_calls=tuple(calls))


def _places(
    fields: Sequence[OutputField], stated: Mapping[str, Value], views: Iterable[_View], request: Request
) -> dict[str, tuple[int, int]]:
    """Start and end of values in the stream of tokens, in bytes."""
    places: dict[str, tuple[int, int]] = {}
    for view in views:

        def reads(text: str, view: _View = view) -> Reading:
            return read(view.reply(text), request.fields, function=request.function)

        left = {name: v for name, v in stated.items() if name not in places}
        here = reads(view.text).fields if left else {}
        same = {n: v for n, v in left.items() if here[n].failure is None and _same(here[n].value, v)}
        for name, span in places_of(same, fields, view.text, reads).items() if same else ():
            start, end = (view.start + len(_encoded(view.text[:at])) for at in span)
            places[name] = start, end
    return places


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _ways(field: OutputField, stated: Value, written: bytes) -> _Left:
    """All ways to spell the legal values, in lower case; numbers with as many digits as the one that is written."""
    ways = [(value, text.lower().encode()) for value in points_of(field) for text in spellings(field, value)]
    ways.append((stated, written))
    if written[:1] == b"0" and written.isdigit():
        ways += [(value, text.zfill(len(written))) for value, text in ways if text.isdigit()]
    return list(dict.fromkeys(ways))


def _spread(
    path: Iterable[tuple[Any, bytes]], lead: bytes, ways: _Left, stated: Value, *, quoted: bool
) -> Distribution | None:
    """The distribution over the legal values; None where it can't be told.

    Args:
        path: The tokens from the one in which the value begins, as sent, with their bytes.
        lead: What stands in the first of them before the value, in lower case.
        ways: All ways to spell the legal values.
        stated: The value that was written.
        quoted: It stands in quotes, so that a space does not end it.
    """
    mass = {value: 0.0 for value, _ in ways}
    reach, left = 1.0, ways
    marks = bytes(mark for mark in _LEADS if not any(text[:1] == bytes([mark]) for _, text in ways))
    for n, (entry, piece) in enumerate(path):
        nexts = _nexts(entry, piece)
        if nexts is None:
            return None
        p, others = nexts
        taken = piece.lower()
        if n == 0:
            taken = taken[len(lead) :]
            others = [(text.removeprefix(lead).lstrip(marks), q) for text, q in others]
        after = [(_after(left, text, quoted=quoted), q) for text, q in others]
        left = _after(left, taken, quoted=quoted)
        whole = {value for ends in (left, *(ends for ends, _ in after)) for value, rest in ends if not rest}
        for ends, q in after:
            for value in _meant(ends, whole):
                mass[value] += reach * q
        reach *= p
        if all(value == stated for value, _ in left) or not any(rest for _, rest in left):
            break
    mass[stated] += reach
    total = sum(mass.values())
    if total <= 0.0:
        return None
    return Distribution({value: p / total for value, p in mass.items()}, min(1.0, max(0.0, 1.0 - total)))


def _after(left: _Left, token: bytes, *, quoted: bool) -> _Left:
    """What is left to write of each value after a token: of those that it goes on with, or else of the one it ends."""
    going = [(value, text[len(token) :]) for value, text in left if text.startswith(token)] if token else []
    if going:
        return going
    ended = [(value, text) for value, text in left if token.startswith(text) and _ends(token[len(text) :], quoted)]
    longest = max((len(text) for _, text in ended), default=0)
    return [(value, b"") for value, text in ended if len(text) == longest]


def _ends(rest: bytes, quoted: bool) -> bool:
    """Whether a value ends before these bytes."""
    goes_on = rest[:1].isalnum() or (quoted and rest[:1] == b" ") or (rest[:1] == b"." and rest[1:2].isdigit())
    return bool(rest) and not goes_on


def _meant(ends: _Left, whole: Set[Value]) -> Set[Value]:
    """The one value that a token stands for; empty where it is none, or may become several.

    A token that spells one value and begins others ("1" before "10") means the one where each of the others is a token
    of its own here: a tokenizer that has them would not spell them in pieces.
    """
    values = {value for value, _ in ends}
    if len(values) > 1:
        spelled = {value for value, rest in ends if not rest}
        values = spelled if len(spelled) == 1 and values - spelled <= whole else set()
    return values


def _nexts(entry: Any, piece: bytes) -> tuple[float, list[tuple[bytes, float]]] | None:
    """The probability of a token that was taken, and the others listed at its place in lower case.

    None where none are listed, or the numbers are no probabilities.
    """
    listed = entry.get("top_logprobs")
    if isinstance(listed, Mapping):
        listed = [{"token": token, "logprob": logprob} for token, logprob in listed.items()]
    if not isinstance(listed, list) or not listed:
        return None
    by_token: dict[bytes, float] = {}
    for other in listed:
        data, p = _data(other), _probability(other.get("logprob")) if isinstance(other, Mapping) else None
        if data and p is not None:
            by_token[data] = max(p, by_token.get(data, 0.0))
    own = by_token.pop(piece, None)  # of the same kind as the others, which its own may not be
    if own is None:
        own = _probability(entry.get("logprob"))
    if own is None or own + sum(by_token.values()) > _MOST_MASS:
        return None
    return own, [(data.lower(), p) for data, p in by_token.items()]


def _data(entry: Any) -> bytes | None:
    """The bytes of a token; None for what is no token."""
    if not isinstance(entry, Mapping):
        return None
    raw = entry.get("bytes")
    if isinstance(raw, list) and raw and all(type(byte) is int and 0 <= byte <= 255 for byte in raw):
        return bytes(raw)
    token = entry.get("token")
    return _encoded(token) if isinstance(token, str) else None


def _probability(logprob: Any) -> float | None:
    """From a log probability; -9999 and "-inf" are those of an impossible token. None for what is no such number."""
    if isinstance(logprob, str) and logprob.lower() in ("-inf", "-infinity"):
        return 0.0
    if type(logprob) not in (int, float) or not logprob <= _ROUNDING:
        return None
    return math.exp(min(0.0, max(logprob, _LEAST)))


def _encoded(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")
