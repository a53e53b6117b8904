"""Reply schemas in the parts of the language that providers take; the reader checks every reply in full anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Longest range of whole numbers that is written out.
_MOST_VALUES = 128
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For providers that take no bounds of numbers: short ranges of whole numbers become a list of values."""
    return _mapped(schema, _listed)


def without_mixed_values(schema: Mapping[str, Any]) -> dict[str, Any]:
    """For providers whose lists of values hold numbers or texts of one type; keys keep their order."""
    return _mapped(schema, _apart)


def _mapped(schema: Mapping[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    made = dict(schema)
    if "properties" in made:
        made["properties"] = {name: _mapped(part, change) for name, part in made["properties"].items()}
    if "items" in made:
        made["items"] = _mapped(made["items"], change)
    return change(made)


def _listed(schema: dict[str, Any]) -> dict[str, Any]:
    low, high = schema.pop("minimum", None), schema.pop("maximum", None)
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    if low is not None and "integer" in kinds and high - low < _MOST_VALUES:
        schema["enum"] = [*range(low, high + 1), *([None] if "null" in kinds else [])]
    return schema


def _apart(schema: dict[str, Any]) -> dict[str, Any]:
    if "properties" in schema:
        return {**schema, "propertyOrdering": list(schema["properties"])}
    if "enum" not in schema:
        return schema
    groups: dict[str, list[Any]] = {}
    for value in schema.pop("enum"):
        groups.setdefault(_TYPES.get(type(value), "null"), []).append(value)
    whole = {"boolean", "null"}  # types without a list of values
    kinds = [{"type": kind} if kind in whole else {"type": kind, "enum": values} for kind, values in groups.items()]
    schema.pop("type", None)
    return {**schema, **(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}
