"""Words that messages share."""

from __future__ import annotations

import math
import re

#: Characters that steer a terminal or turn the order of what is shown: controls but tab and the end of a line, and
#: the marks of bidirectional text that reach beyond themselves.
_STEERING = re.compile("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]|\r(?!\n)")


def counted(n: int, noun: str) -> str:
    """A number with its noun, as in "1 row" and "2 rows"; the plural must end in a bare s."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def usd(amount: float, digits: int = 3) -> str:
    """US dollars, with cents from a dollar on and so many digits that count under it, as in "$1.20" and "$0.0123"."""
    decimals = 2 if amount >= 1 or amount <= 0 else min(9, digits - 1 - math.floor(math.log10(amount)))
    return f"${amount:,.{decimals}f}"


def visible(text: str) -> str:
    """A text fit for a terminal: what would steer it is shown as an escape of JSON, so that JSON stays JSON."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
