"""A tolerant scanner for almost-JSON: reads what a model meant, and says how far that is certain.

Used only after strict reading has failed. Off-the-shelf repair would not do: it drops the first of two
equal keys, closes what was cut off, trims texts and cannot say which of these it did.

Tolerated: trailing and missing commas, comments, bare keys and words, Python's literals, single, curly and
full-width quotes and punctuation, raw line breaks, stray backslashes, and quotes inside a string (then
``guessed`` is set, since the end of such a string is a guess). Linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_DEEPEST = 40
_LONGEST_BARE = 200
_QUOTES = {'"': '"', "＂": "＂", "“": "“”", "”": "“”", "'": "'", "‘": "‘’", "’": "‘’"}
_OPEN, _CLOSE, _COMMA = "{｛", "}｝", ",，"
#: Not possessive: some releases of Python 3.11 lose their place in a possessive repeat of alternatives.
_SKIPPED = re.compile(r"(?:[\s\ufeff\u200b-\u200d\u2060]+|/\*[\s\S]*?\*/|(?://|\#)[^\n]*)*")
#: A quoted key and its colon.
KEY = re.compile(
    r"""(?:"((?:\\.|[^"\\\n]){0,200})"|[“”＂]([^"“”＂\n]{1,200})["“”＂]|['‘’]([^'‘’\n]{1,200})['‘’])\s{0,99}[:：]"""
)
_KEY_BARE = re.compile(r"([\w$][\w$.-]{0,119})\s{0,99}[:：]")
_KEY_BARE_CUT = re.compile(r"[\w$.-]*\s{0,99}\Z")
_KEY_CUT = re.compile(r"""(?:"(?:\\.|[^"\\\n]){0,200}\\?"?|[“”＂'‘’][^"“”＂'‘’\n]{0,200}["“”＂'‘’]?)\s{0,99}\Z""")
_BARE = re.compile(r"[^\s,，}｝\]\[{｛\"“”＂][^,，}｝\]\[{｛\"“”＂\n]*")
_ELEMENT = "]\"'“‘＂{｛[-0123456789tfnTFN"
_COMMENT = re.compile(r"//|/\*|#")
#: A comment that names the top of the scale of the number before it.
_COMMENT_OVER = re.compile(
    r"(?://|\#|/\*)\s{0,9}(?:(?:on\s+|from\s+)?(?:an?\s+)?(?:scale\s+(?:of\s+|from\s+)?)?\(?[0-9.]+\s?(?:[-–]|to)\s?"
    r"|(?:max(?:imum)?|out\s+of|/)\s?[:=]?\s?)([0-9]+(?:\.[0-9]+)?)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[\s\S]|\Z)")
_KEY_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
_STRAY = re.compile(r"\\(?!u[0-9a-fA-F]{4}|[\"\\/bfnrt'])")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_PLAIN_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "'": "'", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: Commands of TeX that begin with the letter of a JSON escape.
_TEX = re.compile(
    r"\\(?:bar|begin|beta|bf|big|binom|boldsymbol|boxed|bullet|forall|frac|nabla|neg|neq?|not|notin|nu"
    r"|rangle|rho|right|rightarrow|rm|tan|tau|text\w*|tfrac|theta|times|to|top|triangle)(?![a-zA-Z])"
)
_LITERALS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NULLS = {"null", "None", "NULL", "undefined"}


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class Bare(str):
    """A value written without quotes that is no JSON literal, as ``NaN``, ``4/5`` or ``high``."""

    __slots__ = ()


class Pairs(list[tuple[str, Any]]):
    """An object as its key-value pairs: equal keys are kept."""

    __slots__ = ()


STRICT = json.JSONDecoder(object_pairs_hook=Pairs, parse_int=Number, parse_float=Number, parse_constant=Bare)


class BrokenError(Exception):
    """Not readable at this place."""


class TooDeepError(Exception):
    """Nested too deep, or too much work: not worth another try."""


class CutError(Exception):
    """The text ended first."""


@dataclass(slots=True)
class Budget:
    """Characters that may still be looked at; keeps hostile texts linear."""

    left: int

    def spend(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise TooDeepError


@dataclass(slots=True)
class Scanner:
    """One pass over one object or list.

    Attributes:
        text: The whole text.
        budget: Work that is left.
        guessed: The end of some string had to be guessed.
        complete: Pairs of the outermost object whose value is followed by a delimiter.
        last: The pair after which the text ends: its quotes are closed, but no delimiter follows.
    """

    text: str
    budget: Budget
    guessed: bool = False
    complete: Pairs = field(default_factory=Pairs)
    last: tuple[str, Any] | None = None

    def scan(self, start: int) -> tuple[Any, int]:
        """The value that begins at ``start`` (a brace or bracket), and where it ends.

        Raises:
            BrokenError, CutError, TooDeepError: no whole value here; after a CutError ``complete`` holds
                what was certain before the end.
        """
        return self._value(start, "", 0, self.complete)

    def _value(self, at: int, inside: str, depth: int, pairs: Pairs) -> tuple[Any, int]:
        if depth > _DEEPEST:
            raise TooDeepError
        mark = self._char(at)
        if mark in _OPEN:
            return self._object(at, depth, pairs)
        if mark == "[":
            return self._list(at, depth)
        if mark in _QUOTES:
            return self._string(at, inside)
        return self._bare(at)

    def _object(self, at: int, depth: int, pairs: Pairs) -> tuple[Pairs, int]:
        at = self._skip(at + 1)
        bare_keys = False
        while self._char(at) not in _CLOSE:
            key, after = self._key(at, first=not pairs)
            bare_keys = bare_keys or key[1]
            value, after = self._value(self._skip(after), "loose" if bare_keys else "object", depth + 1, Pairs())
            ended, at = after, self._skip(after)
            if depth == 0 and at == len(self.text):
                self.last = (key[0], value)
            if self._char(at) in _COMMA:
                at = self._skip(at + 1)
            elif self._char(at) not in _CLOSE and not KEY.match(self.text, at):
                raise BrokenError
            pairs.append((key[0], _with_comment(value, self.text[ended:at])))
            self._char(at)
        return pairs, at + 1

    def _key(self, at: int, *, first: bool) -> tuple[tuple[str, bool], int]:
        if match := KEY.match(self.text, at):
            return (_KEY_ESCAPE.sub(_character, match[match.lastindex or 0]).replace("\\", ""), False), match.end()
        if match := _KEY_BARE.match(self.text, at):
            return (match[1], True), match.end()
        if _KEY_CUT.match(self.text, at) or (not first and _KEY_BARE_CUT.match(self.text, at)):
            raise CutError
        raise BrokenError

    def _list(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        at = self._skip(at + 1)
        while self._char(at) != "]":
            value, after = self._value(at, "list", depth + 1, Pairs())
            values.append(value)
            at = self._skip(after)
            if self._char(at) in _COMMA:
                at = self._skip(at + 1)
            elif self._char(at) != "]":
                raise BrokenError
        return values, at + 1

    def _bare(self, at: int) -> tuple[Any, int]:
        match = _BARE.match(self.text, at, at + _LONGEST_BARE)
        if match is None:
            raise BrokenError
        comment = _COMMENT.search(match[0])
        word = (match[0][: comment.start()] if comment else match[0]).rstrip()
        end = at + len(word)
        if not word or match.end() - at == _LONGEST_BARE:
            raise BrokenError
        self._char(match.end())
        self.budget.spend(len(word))
        if word in _LITERALS:
            return _LITERALS[word], end
        if word in _NULLS:
            return None, end
        return (Number(word) if _NUMBER.match(word) else Bare(word)), end

    def _string(self, at: int, inside: str) -> tuple[str, int]:
        closers = re.compile(rf"\\[\s\S]|[{_QUOTES[self.text[at]]}]")
        start = at = at + 1
        skipped = False
        for match in closers.finditer(self.text, start):
            self.budget.spend(match.end() - at)
            at = match.end()
            if match[0][0] == "\\":
                continue
            if self._closes(at, inside):
                self.guessed = self.guessed or skipped
                return _unescape(self.text[start : match.start()]), at
            skipped = True
        self.guessed = self.guessed or skipped
        raise CutError

    def _closes(self, at: int, inside: str) -> bool:
        """Whether a quote that ends at ``at`` ends its string, by what comes next."""
        after = self._skip(at)
        if after == len(self.text):
            return not self.text[at:].strip()  # what looks like a comment up to the end is more of the string
        mark = self._char(after)
        if inside == "list":
            return mark == "]" or (mark in _COMMA and self._char(self._skip(after + 1)) in _ELEMENT)
        if mark in _CLOSE:
            return True
        if mark not in _COMMA:
            return after > at and bool(KEY.match(self.text, after))
        after = self._skip(after + 1)
        if self._char(after) in _CLOSE or KEY.match(self.text, after):
            return True
        if _KEY_CUT.match(self.text, after):
            raise CutError
        return inside == "loose" and bool(_KEY_BARE.match(self.text, after))

    def _skip(self, at: int) -> int:
        """The next place that is neither white space nor comment; the end of the text, if there is none."""
        end = _SKIPPED.match(self.text, at).end()  # type: ignore[union-attr]  # matches the empty text too
        if self.text.startswith("/*", end):
            end = len(self.text)  # a comment that never ends
        self.budget.spend(end - at + 1)
        return end

    def _char(self, at: int) -> str:
        if at >= len(self.text):
            raise CutError
        return self.text[at]


def _with_comment(value: Any, gap: str) -> Any:
    """A number together with the denominator that a comment on its line names; any other value as it is."""
    said = _COMMENT_OVER.search(gap.partition("\n")[0]) if isinstance(value, str) and _NUMBER.match(value) else None
    return Bare(f"{value} out of {said[1]}") if said else value


def _unescape(body: str) -> str:
    """The text a string stands for; backslashes that escape nothing stay."""
    if "\\" not in body:
        return body
    stray = _STRAY.search(body) is not None

    def meant(match: re.Match[str]) -> str:
        code = match[1]
        if stray and code in "bfnrt" and code and _TEX.match(body, match.start()):
            return match[0]
        if len(code) == 5:
            return chr(int(code[1:], 16))
        return _PLAIN_ESCAPES.get(code, match[0])

    return _SURROGATES.sub(_joined, _ESCAPE.sub(meant, body))


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16))


def _joined(pair: re.Match[str]) -> str:
    """The one character that an escaped pair of surrogates stands for."""
    return pair[0].encode("utf-16", "surrogatepass").decode("utf-16")
