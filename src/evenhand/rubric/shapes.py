"""A small language for the structure of a file: one table checks the file and gives its JSON schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from evenhand.rubric.problems import Problems, known_names, shown
from evenhand.rubric.yaml_tree import Kind, Node

_WORDS: Mapping[Kind, str] = {
    "map": "a mapping",
    "list": "a list",
    "text": "a text",
    "number": "a number",
    "bool": "true or false",
    "null": "nothing",
}
_JSON: Mapping[Kind, str] = {"text": "string", "number": "number", "bool": "boolean", "null": "null"}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar of certain kinds, perhaps one of certain values or of a certain pattern."""

    kinds: tuple[Kind, ...] = ("text",)
    choices: tuple[str, ...] = ()
    pattern: str = ""
    about: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list; ``least`` and ``most`` bound its length."""

    item: Shape
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, slots=True)
class MapOf:
    """A mapping with keys of the author's choosing; ``keys`` are the kinds of key allowed."""

    value: Shape
    keys: tuple[Kind, ...] = ("text",)
    least: int = 0


@dataclass(frozen=True, slots=True)
class Keys:
    """A mapping with fixed keys."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ByKind:
    """One shape for each kind of value."""

    shapes: Mapping[Kind, Shape]


@dataclass(frozen=True, slots=True)
class ByTest:
    """One of two shapes, decided by looking at the value."""

    test: Callable[[Node], bool]
    yes: Shape
    no: Shape


Shape = Leaf | ListOf | MapOf | Keys | ByKind | ByTest


def check(node: Node, shape: Shape, problems: Problems) -> Node | None:
    """Hold a value against its shape, noting every mistake.

    Returns:
        The value without its faulty parts, a legal value in place of an impossible one; None when nothing of it can
        be used.
    """
    match shape:
        case ByKind():
            if node.kind not in shape.shapes:
                return _wrong_kind(node, tuple(shape.shapes), problems)
            return check(node, shape.shapes[node.kind], problems)
        case ByTest():
            return check(node, shape.yes if shape.test(node) else shape.no, problems)
        case Leaf():
            return _leaf(node, shape, problems)
        case ListOf():
            return _list(node, shape, problems)
        case MapOf():
            return _map(node, shape, problems)
        case Keys():
            return _keys(node, shape, problems)


def _wrong_kind(node: Node, wanted: tuple[Kind, ...], problems: Problems) -> Node | None:
    words = [_WORDS[kind] for kind in wanted]
    remedy = ""
    if "text" in wanted and node.kind in ("number", "bool"):
        remedy = "put it in quotes"
    elif "text" in wanted and node.kind == "map":
        remedy = "put a text with a colon in quotes"
    problems.add(node, f"must be {' or '.join(words)}, not {_WORDS[node.kind]}", remedy)
    return None


def _leaf(node: Node, shape: Leaf, problems: Problems) -> Node | None:
    if node.kind not in shape.kinds:
        return _wrong_kind(node, shape.kinds, problems)
    if shape.choices and node.kind == "text" and node.value not in shape.choices:
        problems.add(node, f"{shown(node.value)} is not possible here", known_names(node.value, shape.choices))
        return node.with_value(shape.choices[0])  # so that what depends on it is not reported too
    if shape.pattern and node.kind == "text" and not re.fullmatch(shape.pattern, node.value):
        problems.add(node, f"{shown(node.value)} is not {shape.about}")
        return None
    if shape.whole and node.value != int(node.value):
        problems.add(node, f"must be a whole number, not {node.value}")
        return None
    return node


def _list(node: Node, shape: ListOf, problems: Problems) -> Node | None:
    if node.kind != "list":
        return _wrong_kind(node, ("list",), problems)
    length = len(node.value)
    if length < shape.least or (shape.most is not None and length > shape.most):
        wanted = f"{shape.least}" if shape.least == shape.most else f"at least {shape.least}"
        problems.add(node, f"needs {wanted} {'entry' if wanted.endswith('1') else 'entries'}, has {length}")
    checked = (check(element, shape.item, problems) for element in node.value)
    return node.with_value([element for element in checked if element is not None])


def _map(node: Node, shape: MapOf, problems: Problems) -> Node | None:
    if node.kind != "map":
        return _wrong_kind(node, ("map",), problems)
    if len(node.value) < shape.least:
        problems.add(node, f"needs at least {shape.least} {'entry' if shape.least == 1 else 'entries'}")
    kept = {}
    for key, value in node.value.items():
        kind: Kind = "bool" if isinstance(key, bool) else "text" if isinstance(key, str) else "number"
        if kind not in shape.keys:
            wanted = " or ".join(_WORDS[k] for k in shape.keys)
            problems.at(value.key_line, value.path, f"the key {key!r} must be {wanted}", "put it in quotes")
            continue
        checked = check(value, shape.value, problems)
        if checked is not None:
            kept[key] = checked
    return node.with_value(kept)


def _keys(node: Node, shape: Keys, problems: Problems) -> Node | None:
    if node.kind != "map":
        return _wrong_kind(node, ("map",), problems)
    known = {**shape.required, **shape.optional}
    kept = {}
    for key, value in node.value.items():
        if key not in known:
            remedy = known_names(str(key), known)
            problems.at(value.key_line, value.path, f"unknown key {shown(key)}", remedy)
            continue
        checked = check(value, known[key], problems)
        if checked is not None:
            kept[key] = checked
    for key in shape.required:
        if key not in node.value:
            problems.add(node, f"key {key!r} is missing")
    return node.with_value(kept)


def json_schema(shape: Shape) -> dict[str, Any]:
    """The shape as JSON schema; keys that are numbers in the file are texts in JSON."""
    match shape:
        case Leaf():
            return _leaf_schema(shape)
        case ListOf():
            most = {} if shape.most is None else {"maxItems": shape.most}
            return {"type": "array", "items": json_schema(shape.item), "minItems": shape.least, **most}
        case MapOf():
            return {
                "type": "object",
                "additionalProperties": json_schema(shape.value),
                "minProperties": shape.least,
            }
        case Keys():
            known = {**shape.required, **shape.optional}
            return {
                "type": "object",
                "properties": {key: json_schema(value) for key, value in known.items()},
                "required": list(shape.required),
                "additionalProperties": False,
            }
        case ByKind():
            return {"anyOf": [json_schema(inner) for inner in shape.shapes.values()]}
        case ByTest():
            return {"anyOf": [json_schema(shape.yes), json_schema(shape.no)]}


def _leaf_schema(shape: Leaf) -> dict[str, Any]:
    kinds = ["integer" if kind == "number" and shape.whole else _JSON[kind] for kind in shape.kinds]
    schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    if shape.choices:
        schema["enum"] = list(shape.choices)
    if shape.pattern:
        schema["pattern"] = f"^(?:{shape.pattern})$"
    return schema
