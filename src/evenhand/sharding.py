"""Shards: the rows of an input dealt to N runs of their own, each with its part of the limits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from evenhand.errors import InputError

_WRITTEN = re.compile("([0-9]{1,9})/([0-9]{1,9})", re.ASCII)


class _Placed(Protocol):
    """Anything with a position in the input."""

    @property
    def row(self) -> int: ...


_Row = TypeVar("_Row", bound=_Placed)


@dataclass(frozen=True, slots=True)
class Shard:
    """One of the parts that an input is dealt into, row by row: shard I of N has the rows I, I + N, I + 2N ...

    Attributes:
        number: Which one, from 1.
        of: How many there are, at least ``number``.
    """

    number: int
    of: int

    def holds(self, row: int) -> bool:
        """Whether it has a row, by the row's 0-based position in the whole input."""
        return row % self.of == self.number - 1

    def part(self, whole: float | None) -> float | None:
        """Its part of a limit of the whole; None where there is none."""
        return None if whole is None else whole / self.of

    def slots(self, whole: int | None) -> int | None:
        """Its part of a whole number that can't be split further, at least 1; None where there is none."""
        return None if whole is None else max(1, whole // self.of + (self.number <= whole % self.of))

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


def read_shard(text: Any) -> Shard:
    """A shard as it is written: ``I/N``, with 1 <= I <= N.

    Raises:
        InputError: it is not written like that.
    """
    found = _WRITTEN.fullmatch(text) if isinstance(text, str) else None
    number, of = map(int, found.groups()) if found is not None else (0, 0)
    if not 1 <= number <= of:
        raise InputError(f"shard must be I/N, the I-th of N, as in 2/8, not {text!r:.60}")
    return Shard(number, of)


class Dealt(Generic[_Row]):
    """The rows of one shard out of all rows, read once.

    Args:
        rows: All rows.
        shard: The shard; None for the whole input.

    Attributes:
        seen: Rows so far, those of other shards included.
    """

    def __init__(self, rows: Iterable[_Row], shard: Shard | None) -> None:
        self.seen = 0
        self._rows, self._shard = rows, shard

    def __iter__(self) -> Iterator[_Row]:
        for row in self._rows:
            self.seen += 1
            if self._shard is None or self._shard.holds(row.row):
                yield row
