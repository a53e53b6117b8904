"""A scale: the legal values of an answer, their order, and how they are written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Value = int | float | str | bool
Level = Literal["binary", "nominal", "ordinal", "interval"]

#: Marks without a width.
INVISIBLE = dict.fromkeys(
    [0xAD, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065)]
)
_FULL_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_PLAIN = {**_FULL_WIDTH, **INVISIBLE, 0x3000: " ", 0x00A0: " ", 0x2212: "-", 0x2044: "/"}

#: A span of points that share one anchor or form one band: (low, high), both included.
Span = tuple[Value, Value]


def plain(text: str) -> str:
    """A text with full-width signs narrowed and invisible marks removed."""
    return text.translate(_PLAIN)


def folded(text: str) -> str:
    """A listed value as replies are compared with it: plain, without letter case, spaces as one."""
    return " ".join(plain(text).casefold().split())


@dataclass(frozen=True, slots=True)
class Anchor:
    """What one point of a scale (or a span of points) means.

    Attributes:
        span: First and last point, both included; equal for a single point.
        text: The meaning, in the rubric's language.
    """

    span: Span
    text: str

    @property
    def label(self) -> str:
        low, high = self.span
        return str(low) if low == high else f"{low}-{high}"


@dataclass(frozen=True, slots=True)
class Scale:
    """The legal values and their level of measurement.

    Either ``values`` lists all legal values in order (nominal: order means nothing), or ``low`` and
    ``high`` bound a numeric scale.

    Attributes:
        name: Name in the rubric; "" for an anonymous scale.
        level: binary, nominal, ordinal or interval.
        values: All legal values, in order; None for a numeric range.
        low, high: Bounds of a numeric range, both legal; None for listed values.
        integer: Whole numbers only (numeric range).
        anchors: Meanings of points, in order from low to high.
        aliases: Other spellings of listed values that a reply may use (lower case) -> value.
        slots: The values name presentation slots ("A", "B", others), so that an order swap exchanges A and B.
        bands: Named partitions of the scale, each a tuple of spans (for band agreement).
    """

    name: str
    level: Level
    values: tuple[Value, ...] | None = None
    low: float | None = None
    high: float | None = None
    integer: bool = True
    anchors: tuple[Anchor, ...] = ()
    aliases: Mapping[str, Value] = field(default_factory=dict)
    slots: bool = False
    bands: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)

    @property
    def numeric(self) -> bool:
        """Whether values are numbers (so that a mean may be shown)."""
        if self.values is None:
            return True
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.values)

    @property
    def points(self) -> tuple[Value, ...] | None:
        """All legal values in order, or None where there are infinitely many (a non-integer range)."""
        if self.values is not None:
            return self.values
        if self.integer and self.low is not None and self.high is not None:
            return tuple(range(int(self.low), int(self.high) + 1))
        return None

    @property
    def bottom(self) -> Value:
        """The lowest value (ordinal, interval), or the first listed one."""
        return self.values[0] if self.values is not None else self._number(self.low)

    @property
    def top(self) -> Value:
        """The highest value (ordinal, interval), or the last listed one."""
        return self.values[-1] if self.values is not None else self._number(self.high)

    def index(self, value: Value) -> int:
        """Position of a legal value among ``points``.

        Raises:
            ValueError: not a legal value, or the scale has no finite list of points.
        """
        points = self.points
        if points is None:
            raise ValueError(f"scale {self.name!r} has no finite list of points")
        return points.index(value)

    def legal(self, value: object) -> bool:
        """Whether a value, already of the right type, is on the scale."""
        if self.values is not None:
            return any(value == v and type(value) is type(v) for v in self.values)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if self.integer and value != int(value):
            return False
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    def json_schema(self) -> dict[str, Any]:
        """JSON schema of one value."""
        if self.values is not None:
            kinds = {bool: "boolean", int: "integer", float: "number", str: "string"}
            types = sorted({kinds[type(v)] for v in self.values})
            return {"type": types[0] if len(types) == 1 else types, "enum": list(self.values)}
        return {
            "type": "integer" if self.integer else "number",
            "minimum": self._number(self.low),
            "maximum": self._number(self.high),
        }

    def _number(self, bound: float | None) -> int | float:
        if bound is None:
            raise ValueError(f"scale {self.name!r} has no bounds")
        return int(bound) if float(bound).is_integer() else bound
