"""Values that satisfy a JSON schema, chosen by a draw: what judges without a model answer with."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, Literal

Choice = Literal["any", "top", "bottom", "first"]

_REMARK = "The response was read in full and rated as asked."
_DEPTH = 12


class Draw:
    """A repeatable sequence of choices.

    Args:
        seed: Decides every choice of "any".
        choice: "any" takes any legal value; "first" the first one listed, or the lowest of a range; "bottom"
            and "top" the lowest and the highest number, or the first and the last value listed.
    """

    def __init__(self, seed: int, choice: Choice = "any") -> None:
        self._random = random.Random(seed)
        self._choice = choice

    def index(self, n: int) -> int:
        """A position in ``range(n)``."""
        if self._choice == "any":
            return self._random.randrange(n)
        return n - 1 if self._choice == "top" else 0

    def number(self, low: float, high: float) -> float:
        """A number of a range that is not limited to whole numbers, in steps of a hundredth of it."""
        return round(low + (high - low) * self.index(101) / 100, 6)

    def listed(self, values: list[Any]) -> Any:
        """One of the values of an enumeration; null only where nothing else is listed."""
        given = [value for value in values if value is not None] or [None]
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)
        if numbers and self._choice in ("top", "bottom"):
            given = sorted(given)
        return given[self.index(len(given))]


def legal_value(schema: Mapping[str, Any], draw: Draw) -> Any:
    """A value that satisfies a JSON schema, as far as types, bounds, enumerations and lengths go.

    Objects get every declared property, in order. Patterns and formats are not looked at.
    """
    return _value(schema, draw, schema, 0)


def _value(schema: Mapping[str, Any], draw: Draw, root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth > _DEPTH:
        return None
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.listed(list(schema["enum"]))
    for key in ("anyOf", "oneOf"):
        if key in schema:
            variants = [v for v in schema[key] if v.get("type") != "null"] or list(schema[key])
            return _value(variants[draw.index(len(variants))], draw, root, depth + 1)
    kind = _kind(schema)
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _value(inner, draw, root, depth + 1) for name, inner in properties.items()}
    if kind == "array":
        length = max(int(schema.get("minItems", 0)), min(1, int(schema.get("maxItems", 1))))
        return [_value(schema.get("items", {}), draw, root, depth + 1) for _ in range(length)]
    return _scalar(kind, schema, draw)


def _scalar(kind: str, schema: Mapping[str, Any], draw: Draw) -> Any:
    if kind == "boolean":
        return bool(draw.index(2))
    if kind == "null":
        return None
    if kind == "integer":
        low = int(schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1))
        high = int(schema.get("maximum", schema.get("exclusiveMaximum", max(low, 10) + 1) - 1))
        return low + draw.index(high - low + 1)
    if kind == "number":
        low = schema.get("minimum", 0)
        return draw.number(low, schema.get("maximum", low + 10))
    text = _REMARK.ljust(int(schema.get("minLength", 0)), ".")
    return text[: int(schema["maxLength"])] if "maxLength" in schema else text


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        return next((str(k) for k in kind if k != "null"), "null")
    return str(kind)


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with a local ``$ref`` followed and ``allOf`` parts merged in."""
    for _ in range(_DEPTH):
        if "$ref" not in schema:
            break
        target: Any = root
        for part in str(schema["$ref"]).lstrip("#/").split("/"):
            target = target[part]
        schema = target
    if "allOf" not in schema:
        return schema
    merged = {key: value for key, value in schema.items() if key != "allOf"}
    for part in schema["allOf"]:
        merged.update(_resolved(part, root))
    return merged
