"""Expansion of ``each: slot`` and ``each: criterion``, token by token."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_OTHER = {"a": "b", "b": "a"}
_CRITERION = "{criterion}"
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\W\d]\w*""")
_SUFFIX = re.compile(r"(?<=\w)_([xy])(?![A-Za-z0-9_])")
_LETTER = re.compile(r"\{([XY])\}|(?<![A-Za-z0-9_-])([XY])(?![A-Za-z0-9_-])")


@dataclass(frozen=True, slots=True)
class Binding:
    """What one copy of an expanded entry stands for.

    Attributes:
        slot: "a" or "b": x is this slot, y the other one; None outside ``each: slot``.
        criterion: Name of a criterion; None outside ``each: criterion``.
    """

    slot: str | None = None
    criterion: str | None = None

    @property
    def suffix(self) -> str:
        """What an expanded rule's id ends in."""
        return f":{self.slot or self.criterion}" if self.slot or self.criterion else ""

    def name(self, text: str) -> str:
        """An expanded name."""
        text = self._criterion(text)
        return _SUFFIX.sub(self._suffix, text) if self.slot else text

    def expression(self, text: str) -> str:
        """An expanded expression: names that end in _x or _y, and the literals 'X' and 'Y'."""
        text = self._criterion(text)
        return _TOKEN.sub(self._token, text) if self.slot else text

    def text(self, text: str) -> str:
        """An expanded text: names that end in _x or _y, {X} and {Y}, and X and Y as words."""
        text = self._criterion(text)
        if self.slot is None:
            return text
        return _LETTER.sub(lambda m: self._letter(m[1] or m[2]), _SUFFIX.sub(self._suffix, text))

    def _criterion(self, text: str) -> str:
        return text.replace(_CRITERION, self.criterion) if self.criterion else text

    def _suffix(self, match: re.Match[str]) -> str:
        return f"_{self._slot(match[1])}"

    def _token(self, match: re.Match[str]) -> str:
        token = match[0]
        if token[0] in "'\"":
            return token[0] + self._letter(token[1]) + token[0] if token[1:-1] in ("X", "Y") else token
        return _SUFFIX.sub(self._suffix, token)

    def _slot(self, letter: str) -> str:
        assert self.slot is not None
        return self.slot if letter in "xX" else _OTHER[self.slot]

    def _letter(self, letter: str) -> str:
        return self._slot(letter).upper()


def bindings(each: str, criteria: Iterable[str]) -> list[Binding]:
    """The copies an entry expands to: one for no ``each``, two for slots, one a criterion."""
    if each == "slot":
        return [Binding(slot=slot) for slot in _OTHER]
    if each == "criterion":
        return [Binding(criterion=name) for name in criteria]
    return [Binding()]
