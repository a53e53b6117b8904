"""The functions a rule condition may call, and nothing else they could reach. Pure, and safe on any value."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Function(NamedTuple):
    """A function of the language.

    Attributes:
        run: What it does.
        least, most: Number of arguments; ``most`` None means any number.
        doc: One line for the documentation.
        bare: Its argument is a bare name, and may be missing (then ``run`` gets None).
    """

    run: Callable[..., Any]
    least: int
    most: int | None
    doc: str
    bare: bool = False


# Han characters and kana. Korean is written with spaces between words, so Hangul counts as other word characters.
_CJK = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9d\U00020000-\U000323af"
)
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_WORD = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+(?:['’][^\W{_CJK}]+)*")
_ASCII_WORD = re.compile(r"\w+(?:'\w+)*", re.ASCII)  # the same of such texts, and quicker


def _text(function: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{function}() needs a text, not {kind(value)}")
    return value


def _list(function: str, value: Any) -> list[Any] | tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{function}() needs a list, not {kind(value)}")
    return value


def kind(value: Any) -> str:
    """The kind of a value, in words."""
    kinds = {str: "a text", bool: "a truth value", int: "a number", float: "a number", list: "a list", tuple: "a list"}
    return kinds.get(type(value), type(value).__name__)


def blank(value: Any) -> bool:
    """Whether a value is missing, a text of white space only, or an empty list."""
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, list | tuple) and not value)


def words(text: str) -> int:
    """Number of words: each Han character or kana is one, any other run of word characters is one."""
    return _words(_text("words", text))


@functools.lru_cache(maxsize=32)  # a rule has a lower and an upper bound
def _words(text: str) -> int:
    return len((_ASCII_WORD if text.isascii() else _WORD).findall(text))


def cjk(text: str) -> int:
    """Number of Han characters and kana."""
    return 0 if _text("cjk", text).isascii() else len(_CJK_CHARACTER.findall(text))


def missing_quotes(quotes: list[str], text: str) -> int:
    """Number of quotes that don't occur in a text, however white space is laid out; a blank quote never occurs."""
    folded = " ".join(_text("missing_quotes", text).split())
    found = (" ".join(_text("missing_quotes", quote).split()) for quote in _list("missing_quotes", quotes))
    return sum(not quote or quote not in folded for quote in found)


#: Every function an expression may call.
FUNCTIONS: Mapping[str, Function] = {
    "abs": Function(abs, 1, 1, "distance of a number from 0"),
    "min": Function(min, 2, None, "least of two or more values"),
    "max": Function(max, 2, None, "greatest of two or more values"),
    "given": Function(lambda x: x is not None, 1, 1, "whether the value is there; a missing one is not", bare=True),
    "blank": Function(blank, 1, 1, "whether it is missing, white space only, or an empty list", bare=True),
    "turns": Function(
        lambda x: 0 if x is None else len(_list("turns", x)), 1, 1, "number of earlier turns; 0 when missing", bare=True
    ),
    "count": Function(lambda x: len(_list("count", x)), 1, 1, "number of entries of a list"),
    "chars": Function(lambda x: len(_text("chars", x)), 1, 1, "number of characters of a text"),
    "words": Function(words, 1, 1, "number of words; each Chinese or Japanese character counts as one"),
    "cjk": Function(cjk, 1, 1, "number of Chinese and Japanese characters"),
    "missing_quotes": Function(missing_quotes, 2, 2, "number of quotes that do not occur in a text (quotes, text)"),
}
