"""What the options of a run may be: one table for the keywords of Python and the options of the command line."""

from __future__ import annotations

import contextlib
import numbers
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, UnknownNameError

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,30}\s*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number within bounds.

    Attributes:
        low: Smallest value; excluded if ``above``.
        high: Largest value.
        whole: Only whole numbers.
        above: ``low`` itself is too small.
    """

    low: float
    high: float
    whole: bool = True
    above: bool = False

    def read(self, text: str) -> int | float:
        """The number that a text writes in plain ASCII digits.

        Raises:
            ValueError: it writes none, or one out of bounds; the message follows the option's name.
        """
        if self.whole:
            return self.check(int(text) if _WHOLE.fullmatch(text) else text)
        number: float | str = text
        if text.isascii() and "_" not in text:
            with contextlib.suppress(ValueError):
                number = float(text)
        return self.check(number)

    def check(self, value: Any) -> int | float:
        """A value as a plain number.

        Raises:
            ValueError: it is none, or out of bounds; the message follows the option's name.
        """
        kind = numbers.Integral if self.whole else numbers.Real
        good = not isinstance(value, bool) and isinstance(value, kind)
        if not good or not self.low <= value <= self.high or (self.above and value == self.low):
            raise ValueError(f"must be {self}, not {value!r:.60}")
        return int(value) if self.whole else float(value)

    def __str__(self) -> str:
        start = f"above {self.low:g} and" if self.above else f"from {self.low:g}"
        joint = "at most" if self.above else "to"
        return f"a {'whole ' if self.whole else ''}number {start} {joint} {_shown_bound(self.high)}"


def _shown_bound(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


_ROWS = Number(1, 10**15)
#: Options that are numbers.
NUMBERS: Mapping[str, Number] = {
    "limit": _ROWS,
    "sample": _ROWS,
    "seed": Number(-(2**63), 2**63),
    "repeats": Number(1, 10_000),
    "concurrency": Number(1, 10**18),
    "attempts": Number(1, 1000),
    "rpm": Number(0, 10**12, whole=False, above=True),
    "tpm": Number(0, 10**12, whole=False, above=True),
    "timeout": Number(0, 1_000_000, whole=False, above=True),
    "deadline": Number(0, 1_000_000, whole=False, above=True),
    "max_cost": Number(0, 10**9, whole=False, above=True),
    "temperature": Number(0, 100, whole=False),
    "max_tokens": Number(1, 2**31 - 1),
    "max_bytes": Number(1, 2**31 - 1),
    "coverage": Number(0, 1, whole=False),
    "margin": Number(0, 1_000_000, whole=False),
    "width": Number(1e-6, 1_000_000, whole=False),
    "held_out": Number(0, 0.9, whole=False),
    "elo": Number(0, 1000, whole=False, above=True),
    "weight": Number(0, 1, whole=False),
}
_KINDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(
        ("reason", "skip_bad", "re_ask", "retry", "fresh", "store_texts", "batch", "partial", "logprobs"),
        ((bool,), "True or False"),
    ),
    **dict.fromkeys(("ask", "pairs", "shard", "orders", "base_url", "format", "label_set"), ((str,), "a text")),
    **dict.fromkeys(("engine", "ray_address"), ((str,), "a text")),
    **dict.fromkeys(("map", "variant", "weights", "headers"), ((Mapping,), "a mapping")),
    **dict.fromkeys(("out", "prices"), ((str, os.PathLike), "a path")),
    "responses": ((object,), "rows"),
}
_NEVER_NONE = {
    "seed", "repeats", "attempts", "timeout", "orders", "reason", "skip_bad", "re_ask", "retry", "fresh",
    "store_texts", "batch", "partial", "logprobs", "engine",
}  # fmt: skip
_OF_TEXT = ("map", "headers")
#: Options of a check of ratings.
OF_CHECK = ("map", "variant", "format", "label_set", "partial", "skip_bad")
#: What is no option of a run.
_OTHERS = ("max_bytes", "coverage", "margin", "width", "held_out", "elo", "weight", "label_set", "partial")
_OF_RUN = tuple(name for name in (*_KINDS, *NUMBERS) if name not in _OTHERS)
#: Their values may hold keys.
_SECRET = ("headers", "base_url")


def number(name: str, value: Any) -> Any:
    """A numeric option's value as a plain number.

    Raises:
        InputError: not a number, or out of its bounds.
    """
    try:
        return NUMBERS[name].check(value)
    except ValueError as error:
        raise InputError(f"{name} {error}") from None


def checked(options: Mapping[str, Any], known: Iterable[str] = _OF_RUN) -> dict[str, Any]:
    """Options, each of a fitting kind, numbers as plain numbers.

    Args:
        options: Name -> value.
        known: The names that there are; those of a run.

    Raises:
        UnknownNameError: there is no such option.
        InputError: a value of the wrong kind, or out of bounds.
    """
    found: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            raise UnknownNameError("keyword", name, known)
        if value is None and name not in _NEVER_NONE:
            found[name] = None
        elif name in NUMBERS:
            found[name] = number(name, value)
        else:
            _require_kind(name, value)
            found[name] = value
    return found


def text(name: str, value: Any) -> str:
    """A value that must be a text, as the name of a column is.

    Raises:
        InputError: it is none.
    """
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, not {value!r:.60}")
    return value


def texts(name: str, value: Any) -> list[str]:
    """A text or several, as a list; none for None.

    Raises:
        InputError: it is neither.
    """
    found = [value] if isinstance(value, str) else [] if value is None else value
    if isinstance(found, bytes | Mapping) or not isinstance(found, Iterable):
        raise InputError(f"{name} must be a text or several, not {value!r:.60}")
    return [text(name, one) for one in found]


def path(name: str, value: Any) -> Path:
    """A value that must be a path.

    Raises:
        InputError: it is none, or no file system can have it.
    """
    found = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    try:
        if isinstance(found, str) and b"\0" not in os.fsencode(found):
            return Path(found)
    except UnicodeEncodeError:
        pass
    raise InputError(f"{name} must be a path, not {value!r:.60}")


def _require_kind(name: str, value: Any) -> None:
    kinds, told = _KINDS[name]
    if not isinstance(value, kinds):
        raise InputError(f"{name} must be {told}, not {_shown(name, value)}")
    if isinstance(value, str | os.PathLike) and name in ("out", "prices") and "\0" in os.fspath(value):
        raise InputError(f"{name} must be a path, not {value!r:.60}")
    if not isinstance(value, Mapping):
        return
    if name in _OF_TEXT and not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise InputError(f"{name} must map texts to texts, not {_shown(name, value)}")
    if name == "weights":
        for criterion, weight in value.items():
            if isinstance(weight, bool) or not isinstance(weight, int | float | numbers.Real):
                raise InputError(f"the weight of {criterion!r:.60} must be a number, not {weight!r:.60}")


def _shown(name: str, value: Any) -> str:
    return f"this {type(value).__name__}" if name in _SECRET else f"{value!r:.60}"
