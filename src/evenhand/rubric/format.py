"""The structure of a rubric file, as one table."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evenhand.rubric.shapes import ByKind, ByTest, Keys, Leaf, ListOf, MapOf, Shape
from evenhand.rubric.yaml_tree import Kind, Node

#: A whole-number range as written in keys and option values: LOW-HIGH.
RANGE_KEY = re.compile(r"(-?\d{1,9})-(-?\d{1,9})")

ITEM_TYPES = ("text", "bool", "number", "turns", "images")
FORMS = ("schema", "tool", "json", "text", "lines")
DETAILS = ("bare", "anchors", "examples")
FILLS = ("given", "group")
STYLES = ("plain", "format", "double")
LEVELS = ("binary", "nominal", "ordinal", "interval")

_TEXT = Leaf()
_BOOL = Leaf(("bool",))
_SCALAR = Leaf(("text", "number", "bool"))
_ANY_KEY: tuple[Kind, ...] = ("text", "number", "bool")
_TEXTS = ListOf(_TEXT)
_ANCHORS = MapOf(_TEXT, keys=_ANY_KEY)
_IF_OPTION: Mapping[str, Shape] = {"needs": _TEXT, "unless": _TEXT}
_EACH = Leaf(choices=("slot", "criterion"))


def several_scales(node: Node) -> bool:
    """Whether a criterion's ``scale`` maps LOW-HIGH to anchors, one range for each value of the option ``scale``."""
    return bool(node.value) and any(isinstance(key, str) and RANGE_KEY.fullmatch(key) for key in node.value)


def is_group(node: Node) -> bool:
    """Whether an entry of ``output.fields`` is a group that expands."""
    return node.kind == "map" and ("each" in node.value or "fields" in node.value)


def is_template(node: Node) -> bool:
    """Whether a message of ``prompt`` is a text as it was published."""
    return node.kind == "map" and "template" in node.value


_SCALE = Keys(
    {},
    {
        "range": ListOf(Leaf(("number",)), 2, 2),
        "values": ListOf(_SCALAR, 2),
        "level": Leaf(choices=LEVELS),
        "integer": _BOOL,
        "anchors": _ANCHORS,
        "aliases": MapOf(_SCALAR, keys=_ANY_KEY),
        "slots": _BOOL,
        "bands": MapOf(ListOf(_SCALAR, 1)),
    },
)
_EXAMPLES = ListOf(Keys({"at": _SCALAR, "question": _TEXT, "answers": ListOf(_TEXT, 1)}, {"note": _TEXT}))
_CRITERION = Keys(
    {
        "name": _TEXT,
        "text": _TEXT,
        "scale": ByKind({"text": _TEXT, "map": ByTest(several_scales, MapOf(_ANCHORS), _SCALE)}),
    },
    {"weight": Leaf(("number",)), "examples": ByKind({"list": _EXAMPLES, "map": MapOf(_EXAMPLES)})},
)
_CHOICE = ListOf(_SCALAR, 2)
_FIELD = Keys(
    {"name": _TEXT},
    {
        "type": ByKind({"text": Leaf(choices=("text", "bool", "list")), "list": _CHOICE}),
        "scale": ByKind({"text": _TEXT, "map": _SCALE}),
        "text": _TEXT,
        "nullable": _BOOL,
        "required": _BOOL,
        "language": _TEXT,
        "of": ByKind(
            {
                "text": Leaf(choices=("text",)),
                "map": MapOf(ByKind({"text": Leaf(choices=("text", "bool")), "list": _CHOICE}), least=1),
            }
        ),
        "pattern": ByKind({"text": _TEXT, "list": ListOf(_TEXT, 1)}),
        "take": Leaf(choices=("only", "first", "last")),
        **_IF_OPTION,
    },
)
_GROUP = Keys({"each": _EACH, "fields": ListOf(_FIELD, 1)}, _IF_OPTION)
_OUTPUT = Keys(
    {},
    {
        "forms": ListOf(Leaf(choices=FORMS), 1),
        "function": Leaf(pattern="[A-Za-z0-9_-]{1,64}", about="a function name (letters, digits, _ and -, at most 64)"),
        "answer": _TEXT,
        "short": ListOf(_TEXT, 1),
        "fields": ListOf(ByTest(is_group, _GROUP, _FIELD), 1),
    },
)
_PRESET = Keys(
    {"when": _TEXT, "set": MapOf(Leaf(("text", "number", "bool", "null")), least=1)},
    {"call": Leaf(choices=("none", "ask")), "each": _EACH, **_IF_OPTION},
)
_RULE = Keys(
    {"id": _TEXT, "if": _TEXT, "say": _TEXT},
    {"severity": Leaf(choices=("violation", "warning")), "each": _EACH, **_IF_OPTION},
)
_TYPES = Keys(
    {
        "field": _TEXT,
        "notes": MapOf(
            ListOf(ByKind({"text": _TEXT, "map": Keys({"text": _TEXT}, {"example": _TEXT, "score": _SCALAR})}))
        ),
    },
    {"fill": Leaf(choices=FILLS), "names": MapOf(_TEXT), "categories": MapOf(_TEXTS)},
)
_ITEM_FIELDS = MapOf(Leaf(choices=ITEM_TYPES))
_ITEM = Keys(
    {"required": MapOf(Leaf(choices=ITEM_TYPES), least=1)},
    {"optional": _ITEM_FIELDS, "aliases": MapOf(_TEXT), "responses": _TEXTS, "blank": _TEXTS, "judged": _TEXTS},
)
_ROLE = Leaf(choices=("system", "user"))
_TEMPLATE = Keys(
    {"role": _ROLE, "template": _TEXT},
    {"style": Leaf(choices=STYLES), "strip": _BOOL, "holes": MapOf(_TEXT)},
)
_ROBUSTNESS = Keys({}, {"group-by": _TEXT, "min": Leaf(("number",), whole=True)})

#: The whole file.
RUBRIC = Keys(
    {
        "rubric": Leaf(pattern="[a-z0-9]+(?:[-.][a-z0-9]+)*", about="a name in kebab-case, as in my-rubric"),
        "mode": Leaf(choices=("score", "compare")),
        "item": _ITEM,
        "criteria": ListOf(_CRITERION, 1),
    },
    {
        "version": Leaf(("number",), whole=True),
        "title": _TEXT,
        "language": Leaf(pattern="[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", about="a language code, as in en or zh"),
        "requirements": Keys({"ids": _TEXTS}, {"elsewhere": _TEXTS}),
        "options": MapOf(Keys({"default": _SCALAR}, {"values": ListOf(_SCALAR, 1)})),
        "scales": MapOf(_SCALE),
        "output": _OUTPUT,
        "preset": ListOf(_PRESET),
        "let": MapOf(ByKind({"text": _TEXT, "map": Keys({"value": _TEXT}, _IF_OPTION)})),
        "rules": ListOf(_RULE),
        "types": _TYPES,
        "history": Keys({}, {"heading": _TEXT, "turn": _TEXT, "empty": _TEXT}),
        "images": Keys({}, {"shown": _BOOL}),
        "text": MapOf(_TEXT),
        "general": ListOf(ByKind({"text": _TEXT, "map": Keys({"text": _TEXT, "asked": _TEXT}, {})})),
        "labels": MapOf(_TEXT),
        "ask": MapOf(Leaf(("text", "null"))),
        "aggregate": Keys(
            {}, {"per": _TEXTS, "means": ListOf(Leaf(choices=("item", "task")), 1), "robustness": _ROBUSTNESS}
        ),
        "report": Keys({}, {"preference": _TEXT}),
        "prompt": ListOf(ByTest(is_template, _TEMPLATE, Keys({"role": _ROLE, "blocks": ListOf(_TEXT, 1)})), 1),
    },
)
