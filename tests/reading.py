"""What the tests of the reader share: fields and replies from short plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.parse import read
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale
from evenhand.verdict import Reading, Reply, ToolCall


def rating(name: str = "rating", low: float = 1, high: float = 5, *, integer: bool = True) -> OutputField:
    """A criterion on a numeric scale."""
    return OutputField(name, "scale", scale=Scale("", "ordinal", low=low, high=high, integer=integer), criterion=name)


def choice(name: str, *values: str, **more: Any) -> OutputField:
    """A criterion with listed values."""
    scale = Scale("", "nominal", values=values, aliases=more.pop("aliases", {}), slots=more.pop("slots", False))
    return OutputField(name, "scale", scale=scale, criterion=name, **more)


def text(name: str = "reason", *, required: bool = False) -> OutputField:
    """A text beside the criteria."""
    return OutputField(name, "text", required=required)


def field_from(plain: Mapping[str, Any]) -> OutputField:
    """An output field from its plain data: ``range`` or ``labels`` make a scale field, else ``kind``."""
    more = {k: v for k, v in plain.items() if k in ("name", "nullable", "required", "take", "criterion")}
    more["patterns"] = tuple(plain.get("patterns", ()))
    if "range" in plain:
        low, high = plain["range"]
        scale = Scale("", "ordinal", low=low, high=high, integer=plain.get("integer", True))
    elif "labels" in plain:
        aliases, slots = plain.get("aliases", {}), plain.get("slots", False)
        scale = Scale("", "nominal", values=tuple(plain["labels"]), aliases=aliases, slots=slots)
    else:
        kind = plain["kind"]
        more.setdefault("required", kind == "bool")
        return OutputField(kind=kind, items=tuple(field_from(part) for part in plain.get("items", ())), **more)
    return OutputField(kind="scale", scale=scale, **{"criterion": plain["name"], **more})


def reply_from(plain: str | Mapping[str, Any]) -> Reply:
    """A reply from its text, or from its plain data."""
    if isinstance(plain, str):
        return Reply(text=plain)
    calls = tuple(ToolCall(name, arguments) for name, arguments in plain.get("tool_calls", ()))
    return Reply(tool_calls=calls, **{k: v for k, v in plain.items() if k != "tool_calls"})


def outcomes(reading: Reading) -> dict[str, Any]:
    """field -> value, or "!class" of its failure."""
    return {n: o.value if o.failure is None else f"!{o.failure.value}" for n, o in reading.fields.items()}


def read_text(reply: str, *fields: OutputField) -> dict[str, Any]:
    """The outcomes of a reply that is a text."""
    return outcomes(read(Reply(text=reply), tuple(fields)))


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down (4 is not 4.0, nor True 1)."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, Sequence) and isinstance(b, Sequence) and not isinstance(a, str):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return type(a) is type(b) and bool(a == b)
