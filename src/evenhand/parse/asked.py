"""What a reply was asked for, in the form the readers need."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from evenhand.parse.lenient import Pairs
from evenhand.rubric.model import OutputField
from evenhand.scale import INVISIBLE


@dataclass(frozen=True)
class Asked:
    """The fields asked for.

    Attributes:
        fields: All of them, in order.
    """

    fields: tuple[OutputField, ...]

    @functools.cached_property
    def values(self) -> tuple[OutputField, ...]:
        """Fields that are read strictly: scales, choices and booleans."""
        return tuple(f for f in self.fields if f.kind in ("scale", "bool"))

    @functools.cached_property
    def texts(self) -> tuple[OutputField, ...]:
        return tuple(f for f in self.fields if f.kind == "text")

    @property
    def only(self) -> OutputField | None:
        """The one value field, to which labels like "Rating" may refer; None where there are several."""
        return self.values[0] if len(self.values) == 1 else None

    @functools.cached_property
    def value_key(self) -> re.Pattern[str]:
        """Finds the key of a value field in broken JSON."""
        names = "|".join(re.escape(f.name) for f in self.values) or r"(?!)"
        return re.compile(rf"(?<!\w)(?:{names})\\?[\"'“”‘’＂]?\s{{0,9}}[:：]", re.IGNORECASE)

    @functools.cached_property
    def fragment(self) -> re.Pattern[str]:
        """Finds a piece of JSON: the quoted key of any field, or a quote and a brace at the end."""
        names = "|".join(re.escape(f.name) for f in self.fields)
        quote = r"\\?[\"'“”‘’＂]"
        return re.compile(
            rf"{quote}(?:{names}){quote}\s{{0,9}}[:：]|{quote}\s{{0,9}}[}}｝][\s`]{{0,9}}\Z", re.IGNORECASE
        )

    @functools.cached_property
    def names(self) -> frozenset[str]:
        return frozenset(f.name.casefold() for f in self.fields)

    def has_value(self, pairs: Pairs) -> bool:
        """Whether an object has the key of a value field."""
        return has_any(pairs, self.values)


def has_any(pairs: Pairs, fields: Iterable[OutputField]) -> bool:
    """Whether an object has the key of one of some fields."""
    names = {f.name.casefold() for f in fields}
    return any(folded_key(key) in names for key, _ in pairs)


def under(pairs: Pairs, name: str) -> list[Any]:
    """All values an object has under a key, letter case aside."""
    wanted = name.casefold()
    return [value for key, value in pairs if folded_key(key) == wanted]


def by_key(pairs: Pairs) -> dict[str, list[Any]]:
    """All values of an object under each key, letter case aside."""
    held: dict[str, list[Any]] = {}
    for key, value in pairs:
        held.setdefault(folded_key(key), []).append(value)
    return held


def folded_key(key: str) -> str:
    """A key without letter case, invisible marks and space around it."""
    return key.strip().lower() if key.isascii() else key.translate(INVISIBLE).strip().casefold()
