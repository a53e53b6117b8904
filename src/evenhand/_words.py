"""Words that messages share."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence

#: Characters that steer a terminal or turn the order of what is shown: controls but tab and the end of a line, and
#: the marks of bidirectional text that reach beyond themselves.
_STEERING = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")

#: A name in a sentence whose direction is kept to itself, as `contained` makes it.
_CONTAINED = re.compile("\u2068([^\u202a-\u202e\u2066-\u2069]*)\u2069")

_FAILURES = {
    "RetryableBackendError": "no answer in time",
    "FinalBackendError": "request failed",
    "AccessError": "key, model or address refused",
    "UnsupportedFeatureError": "feature not offered",
}
_ZERO = 1e-9
_MOST_DECIMALS = 9


def counted(n: int, noun: str) -> str:
    """A number with its noun, as in "1 row" and "2 rows"; the plural must end in a bare s."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def listed(names: Sequence[str], most: int) -> str:
    """Names in a row, of more than ``most`` the first so many, as in "a, b and 3 more"."""
    rest = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{rest}"


def failure(name: str) -> str:
    """Why there is no verdict, in a person's words; names that are words already stay."""
    return _FAILURES.get(name, name)


def rounded(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """A number with so many decimals, or as many more as show that it is not 0; never "-0.00".

    Args:
        value: Any finite number; what is closer to 0 than 1e-9 is 0.
        digits: Decimals at least.
        sign: Whether numbers above 0 have a plus.
    """
    return f"{value:{'+' if sign else ''}z.{_decimals(value, digits)}f}"


def span(ends: Sequence[float], digits: int = 2, *, sign: bool = False) -> str:
    """The ends of an interval, as in "0.12 to 0.56": with as many decimals as show on which side of 0 each is."""
    most = max(_decimals(end, digits) for end in ends)
    return " to ".join(f"{end:{'+' if sign else ''}z.{most}f}" for end in ends)


def percent(share: float, digits: int = 1) -> str:
    """A share as in "97.5%", with as many more decimals as show that it is neither 0 nor 1."""
    part = 100 * share
    return f"{part:z.{max(_decimals(part, digits), _decimals(100 - part, digits))}f}%"


def _decimals(value: float, digits: int) -> int:
    while abs(value) >= _ZERO and digits < _MOST_DECIMALS and not round(value, digits):
        digits += 1
    return digits


def usd(amount: float, digits: int = 3) -> str:
    """US dollars, with cents from a dollar on and so many digits that count under it, as in "$1.20" and "$0.0123"."""
    decimals = 2 if amount >= 1 or amount <= 0 else min(9, digits - 1 - math.floor(math.log10(amount)))
    return f"${amount:,.{decimals}f}"


def visible(text: str) -> str:
    """A text fit for a terminal: what would steer it is shown as an escape of JSON, so that JSON stays JSON."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def contained(name: str) -> str:
    """A name from outside as it may stand in a sentence: what would steer it is an escape, and it turns nothing else.

    A name with signs that run from right to left stands between U+2068 and U+2069; any other is as it was.
    """
    told = visible(name)
    turns = any(unicodedata.bidirectional(sign) in ("R", "AL", "AN") for sign in told) if not told.isascii() else False
    return f"\u2068{told}\u2069" if turns else told


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The pieces of a text, each fit to be shown, with whether it is a name whose direction is kept to itself."""
    for number, piece in enumerate(_CONTAINED.split(text)):
        if piece:
            yield visible(piece), bool(number % 2)


def bare(text: str) -> str:
    """A text fit to be shown where directions can't be kept apart."""
    return "".join(piece for piece, _ in pieces(text))
