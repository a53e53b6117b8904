"""JSON in a reply: whole, in fences or in prose, almost right, or broken off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.parse.asked import Asked, by_key, folded_key, has_any, under
from evenhand.parse.leading import APART
from evenhand.parse.lenient import STRICT, BrokenError, Budget, CutError, Pairs, Scanner, TooDeepError
from evenhand.parse.quoted import set_aside
from evenhand.parse.values import failed, is_placeholder, over, read_value
from evenhand.verdict import Failure, FieldOutcome

#: Keys under which a tool call, or a schema that was filled in, holds the object asked for.
_SHELLS = ("tool_calls", "tool_call", "function_call", "function")
_WRAPPERS = ("arguments", "parameters", "properties", "input", "args")
_OPENING = re.compile(r"[{｛]|\[(?=\s{0,99}(?:[{｛]|\Z))")
_KEY_AHEAD = re.compile(r"""\s*(?:["'“”‘’＂]|[\w$][\w$.-]{0,119}\s{0,99}[:：]|//|/\*|\#|\Z)""")
_LOOK_BACK = 40
_KEY_BEFORE = re.compile(r"""["'”’＂]\s{0,9}[:：]\s*\Z""")
_QUOTE_AHEAD = re.compile(r"""\s*["'“”‘’＂]""")
_GOES_ON = re.compile(r"""\s{0,99}["'”’＂,，:：\]}｝]""")
_BRACES = re.compile(r"[{}｛｝]")


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of text that is, or was meant to be, a JSON object or a list of them.

    Attributes:
        start, end: Its place in the text.
        kind: "clean" (its limits are certain), "guessed" (a quote inside a string made its limits a guess),
            "cut" (the text ends first; ``value`` holds the pairs that were complete), "broken" (it has an asked
            key and can't be read) or "other" (not readable, without an asked key).
        value: Pairs or a list; None when broken.
        strict: Valid JSON as it stands.
        last: The pair a cut object ends with, certain enough for a text only.
    """

    start: int
    end: int
    kind: Literal["clean", "guessed", "cut", "broken", "other"]
    value: Any = None
    strict: bool = False
    last: tuple[str, Any] | None = None


@dataclass(slots=True)
class Found:
    """What was found in a reply.

    Attributes:
        values: field name -> the outcomes found for it; several of them may compete.
        repaired: Something was read that is not valid JSON.
        cut: The text ends inside an object.
        broken: There is an object with an asked key that can't be read for certain.
        outside: The text beyond all objects.
        doubtful: Text of objects whose limits are not certain; it may hold rivals.
        failure: A failure of the reply as a whole.
    """

    values: dict[str, list[FieldOutcome]] = field(default_factory=dict)
    repaired: bool = False
    cut: bool = False
    broken: bool = False
    outside: str = ""
    doubtful: str = ""
    failure: Failure | None = None

    @property
    def unread(self) -> bool:
        """There is nothing but an object that can't be read."""
        return bool(self.doubtful) and not self.outside.strip(" `\n\tjson")

    def add(self, name: str, outcome: FieldOutcome) -> None:
        self.values.setdefault(name, []).append(outcome)

    def join(self, other: Found) -> None:
        """Add what was found in another part of the reply."""
        self.repaired, self.cut = self.repaired or other.repaired, self.cut or other.cut
        self.broken = self.broken or other.broken
        for name, outcomes in other.values.items():
            self.values.setdefault(name, []).extend(outcomes)


def budget_for(text: str) -> Budget:
    """Enough for any honest reply of this length, and linear in it."""
    return Budget(1_000_000 + 4 * len(text))


def whole(text: str) -> tuple[bool, Any]:
    """Whether a text is valid JSON from end to end, and its value."""
    try:
        return True, STRICT.decode(text)
    except (ValueError, RecursionError):
        return False, None


def take(found: Found, asked: Asked, value: Any, *, strict: bool = True) -> None:
    """Add what one JSON value holds of the fields asked for."""
    for pairs in _candidates(found, asked, value):
        _take_pairs(found, asked, pairs, strict=strict)


def search(text: str, asked: Asked) -> Found:
    """All that the objects in a text hold of the fields asked for."""
    found = Found()
    outside, doubtful, last = [], [], 0
    regions = list(_regions(text, asked, budget_for(text)))
    for region, aside in zip(regions, set_aside(text, [(r.start, r.end) for r in regions]), strict=True):
        outside.append(text[last : region.start])
        last = region.end
        if aside and region.kind in ("clean", "guessed"):
            continue
        inner = _KEY_BEFORE.search(text, max(0, region.start - _LOOK_BACK), region.start)
        if region.kind == "broken" or inner:
            found.broken = True  # an object behind a key belongs to one that could not be read
        elif region.kind == "cut":
            _take_cut(found, asked, region)
        elif region.kind != "other":
            take(found, asked, region.value, strict=region.strict)
            _divide(found, asked, APART.match(text, region.end))
        if region.kind in ("guessed", "broken", "other"):
            doubtful.append(text[region.start : region.end])
    found.outside = "\n".join([*outside, text[last:]])
    found.doubtful = "\n".join(doubtful)
    return found


def region_at(text: str, start: int, asked: Asked, budget: Budget) -> Region | None:
    """The region that begins at a brace or bracket; None where what follows is not meant as one."""
    if text[start] != "[" and not _KEY_AHEAD.match(text, start + 1):
        return None
    try:
        value, end = STRICT.raw_decode(text, start)
        return Region(start, end, "clean", value, strict=True)
    except json.JSONDecodeError as error:
        unended = error.msg.startswith("Unterminated") or error.pos >= len(text)
        seen = len(text) if unended else error.pos
        budget.left -= seen - start + error.pos // 64  # the error has counted lines from the text's beginning
    except RecursionError:
        return Region(start, len(text), "broken")
    scanner = Scanner(text, budget)
    try:
        value, end = scanner.scan(start)
        return Region(start, end, "guessed" if scanner.guessed else "clean", value)
    except TooDeepError:
        return Region(start, len(text), "broken")
    except CutError:
        if scanner.guessed:
            return Region(start, len(text), "cut", Pairs())  # a guess before the end leaves nothing certain
        return Region(start, len(text), "cut", scanner.complete, last=scanner.last)
    except BrokenError:
        if unended:
            return Region(start, len(text), "cut", Pairs())
        end = _extent(text, start, budget)
        if asked.value_key.search(text, start, end):
            return Region(start, end, "broken")
        return Region(start, end, "other") if _QUOTE_AHEAD.match(text, start + 1) else None


def next_opening(text: str, start: int) -> int | None:
    """Where the next object or list of objects may begin."""
    found = _OPENING.search(text, start)
    return found.start() if found else None


def _regions(text: str, asked: Asked, budget: Budget) -> Iterator[Region]:
    at = next_opening(text, 0)
    while at is not None:
        region = region_at(text, at, asked, budget)
        if region is not None:
            yield region
        at = next_opening(text, region.end if region is not None else at + 1)


def _extent(text: str, start: int, budget: Budget) -> int:
    """Where the braces opened at ``start`` are closed again; the end of the text, if they are not.

    A brace after which JSON goes on was part of a string.
    """
    depth = 0
    for brace in _BRACES.finditer(text, start):
        depth += 1 if brace[0] in "{｛" else -1
        if depth <= 0 and not _GOES_ON.match(text, brace.end()):
            budget.left -= brace.end() - start  # when it is used up, the next scan gives up
            return brace.end()
    budget.left -= len(text) - start
    return len(text)


def _take_pairs(found: Found, asked: Asked, pairs: Pairs, *, strict: bool) -> None:
    held = by_key(pairs)
    empty = [is_placeholder(wanted, raw) for wanted in asked.values for raw in held.get(wanted.name.casefold(), ())]
    if empty and all(empty):
        return  # the form that was asked for, not filled in
    found.repaired = found.repaired or not strict
    for wanted in asked.fields:
        for raw in held.get(wanted.name.casefold(), ()):
            if not is_placeholder(wanted, raw):
                found.add(wanted.name, read_value(wanted, raw))


def _divide(found: Found, asked: Asked, divisor: re.Match[str] | None) -> None:
    """Heed a denominator behind an object."""
    lone = asked.only
    if divisor is None or lone is None or lone.scale is None or lone.name not in found.values:
        return
    if not over(lone.scale, divisor["number"]):
        found.values[lone.name] = [failed(Failure.SCALE_MISMATCH, divisor[0].strip())]


def _take_cut(found: Found, asked: Asked, region: Region) -> None:
    """An object that was cut off: complete values count, any other value field may have come later."""
    found.cut = True
    pairs: Pairs = region.value
    texts = {f.name.casefold() for f in asked.texts}
    if region.last is not None and folded_key(region.last[0]) in texts:
        pairs = Pairs([*pairs, region.last])
    if has_any(pairs, asked.fields):
        _take_pairs(found, asked, pairs, strict=False)
    for wanted in asked.values:
        if not under(pairs, wanted.name) and wanted.name in found.values:
            found.add(wanted.name, FieldOutcome(failure=Failure.TRUNCATED))


def _candidates(found: Found, asked: Asked, value: Any) -> list[Pairs]:
    """The objects of equal standing in a value: itself, the elements of a list, or what one wrapper holds."""
    if isinstance(value, Pairs):
        return _open(found, asked, value)
    if isinstance(value, list):
        return [c for element in value if isinstance(element, Pairs) for c in _candidates(found, asked, element)]
    return []


def _open(found: Found, asked: Asked, value: Pairs) -> list[Pairs]:
    """The object itself if it has an asked key, else those inside its wrapper; equal keys are wrappers alike."""
    if asked.has_value(value):
        return [value]
    if {folded_key(key) for key, _ in value}.isdisjoint((*_SHELLS, *_WRAPPERS)):
        opened = [_lone(value[0][1])] if len(value) == 1 else []
    else:
        shells: list[Any] = [value]
        for key in _SHELLS:
            shells = [_lone(v) for shell in shells for v in (under(shell, key) if has_key(shell, key) else [shell])]
        held = [v for shell in shells if isinstance(shell, Pairs) for key in _WRAPPERS for v in under(shell, key)]
        opened = [_arguments(found, asked, v) for v in held] or shells
    inside = [inner for inner in opened if isinstance(inner, Pairs) and asked.has_value(inner)]
    return inside or ([value] if has_any(value, asked.fields) else [])


def has_key(value: Any, key: str) -> bool:
    """Whether a value is an object with this key, letter case aside."""
    return isinstance(value, Pairs) and bool(under(value, key))


def _lone(value: Any) -> Any:
    """A list's one element; anything else as it is."""
    return value[0] if type(value) is list and len(value) == 1 else value


def _arguments(found: Found, asked: Asked, value: Any) -> Any:
    """Arguments as an object; some judges send them as a text."""
    if type(value) is not str:
        return value
    valid, parsed = whole(value)
    if not valid:
        found.join(search(value, asked))
    return parsed
