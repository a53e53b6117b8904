"""Scales of a rubric file: named, inline, one of several by option, or a bare list of choices."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

from evenhand.rubric.format import RANGE_KEY
from evenhand.rubric.problems import Problems, shown
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Anchor, Level, Scale, Span, Value, folded

#: Most points of a whole-number scale.
MAX_POINTS = 1001
#: Stands in for a scale that could not be read, so that the rest of the file is still checked.
UNKNOWN = Scale("", "nominal", values=("",))
_SAME = "use other words: letter case, width, spacing and invisible marks don't tell values apart in a reply"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SPAN = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)-(-?\d{1,9}(?:\.\d{1,9})?)")


def read_scale(node: Node, problems: Problems, *, name: str = "", compare: bool = False) -> Scale | None:
    """A scale given by ``range`` or ``values``; None when it has no usable values.

    Args:
        node: The mapping.
        problems: Where mistakes go.
        name: Its name.
        compare: Whether the rubric compares two responses, so that values may name slots.
    """
    bounds, values = node.get("range"), node.get("values")
    if (bounds is None) == (values is None):
        problems.add(node, "a scale needs either range or values", "as in range: [0, 10], or values: [bad, good]")
        return None
    scale = _range(node, bounds, name, problems) if bounds is not None else _values(node, name, problems)
    if scale is None:
        return None
    _check_level(node, scale, problems)
    _check_slots(node, scale, compare, problems)
    return Scale(
        name=name,
        level=scale.level,
        values=scale.values,
        low=scale.low,
        high=scale.high,
        integer=scale.integer,
        slots=scale.slots,
        anchors=read_anchors(node.get("anchors"), scale, problems),
        aliases=_aliases(node, scale, problems),
        bands={key: _band(key, band, scale, problems) for key, band in node.items("bands")},
    )


def range_scale(key: str) -> Scale | None:
    """The whole-number scale LOW-HIGH; None when the text is no such range."""
    match = RANGE_KEY.fullmatch(key)
    if match is None or not 0 < int(match[2]) - int(match[1]) < MAX_POINTS:
        return None
    return Scale("", "ordinal", low=int(match[1]), high=int(match[2]))


def choice_scale(node: Node, problems: Problems) -> Scale | None:
    """An anonymous nominal scale of the values in a list."""
    values = _distinct(node.value, problems)
    return Scale("", "nominal", values=values) if values else None


def read_anchors(node: Node | None, scale: Scale, problems: Problems) -> tuple[Anchor, ...]:
    """Meanings of points, from low to high; spans must be on the scale and may not overlap."""
    if node is None:
        return ()
    anchors = []
    for key, text in node.value.items():
        span = _span(key, scale)
        if span is None:
            problems.at(text.key_line, text.path, f"anchor {shown(key)} is not on the scale", describe(scale))
        else:
            anchors.append(Anchor(span, text.value))
    order = position(scale)
    anchors.sort(key=lambda anchor: order(anchor.span[0]))
    for one, other in pairwise(anchors):
        if order(other.span[0]) <= order(one.span[1]):
            problems.add(node, f"anchors {one.label} and {other.label} overlap")
    return tuple(anchors)


def describe(scale: Scale) -> str:
    """The legal values, for a remedy."""
    if scale.values is not None:
        return f"values: {', '.join(map(str, scale.values))}"
    return f"range: {scale.bottom} to {scale.top}{', whole numbers' if scale.integer else ''}"


def position(scale: Scale) -> Callable[[Value], float]:
    """How legal values are ordered: by number, or by place in the list."""
    if scale.values is None:
        return lambda value: float(value)
    return lambda value: float(scale.index(value))


def legal(scale: Scale, value: Value) -> Value | None:
    """The value as the scale writes it; None when it is not on the scale."""
    if not scale.legal(value):
        return None
    return int(value) if scale.values is None and scale.integer else value


def _range(node: Node, bounds: Node, name: str, problems: Problems) -> Scale | None:
    if len(bounds.value) != 2:  # told already
        return None
    low, high = (bound.value for bound in bounds.value)
    if low >= high:
        problems.add(bounds, "a range goes from low to high", "as in [0, 10]")
        return None
    integer = node.flag("integer", True)
    if integer and (low != int(low) or high != int(high)):
        problems.add(bounds, "bounds of a whole-number scale must be whole", "or add integer: false")
        return None
    if integer and high - low >= MAX_POINTS:
        problems.add(bounds, f"a whole-number scale has at most {MAX_POINTS} points", "add integer: false")
        return None
    level = cast(Level, node.text("level", "ordinal" if integer else "interval"))
    return Scale(name, level, low=low, high=high, integer=integer, slots=node.flag("slots"))


def _values(node: Node, name: str, problems: Problems) -> Scale | None:
    values = _distinct(node.elements("values"), problems)
    if not values:
        return None
    slots = node.flag("slots")
    numeric = not isinstance(values[0], str | bool)
    default = "nominal" if slots else "ordinal" if numeric else "binary" if len(values) == 2 else "nominal"
    level = cast(Level, node.text("level", default))
    if numeric and level in ("ordinal", "interval") and list(values) != sorted(cast(Any, values)):
        problems.add(node, "list the numbers of a scale from low to high")
    if node.get("integer") is not None:
        problems.add(node, "integer goes with range, not with values")
    return Scale(name, level, values=values, slots=slots)


def _distinct(nodes: list[Node], problems: Problems) -> tuple[Value, ...]:
    """Values of one kind, none twice; letter case and the like don't tell texts apart, as replies are read without."""
    values: list[Value] = []
    seen = set()
    for node in nodes:
        value = node.value
        said = folded(value) if isinstance(value, str) else value
        if said == "":
            problems.add(node, "a value must not be blank")
        elif isinstance(said, str) and _CONTROL.search(said):
            problems.add(node, f"value {shown(value)} holds a control character", "a judge can't write it")
        elif said in seen:
            problems.add(node, f"value {shown(value)} stands twice", _SAME)
        elif node.kind != nodes[0].kind:
            problems.add(node, "values must be all texts, all numbers or all true and false", "put it in quotes")
        else:
            seen.add(said)
            values.append(value)
    return tuple(values)


def _check_level(node: Node, scale: Scale, problems: Problems) -> None:
    level = node.get("level") or node
    if scale.level == "binary" and len(scale.points or ()) != 2:
        problems.add(level, "a binary scale has exactly two values")
    if scale.level == "interval" and not scale.numeric:
        problems.add(level, "an interval scale needs numbers", "level: ordinal for ordered labels")
    if scale.values is None and scale.level == "nominal":
        problems.add(level, "a range is ordered, so it can't be nominal", "level: ordinal")


def _check_slots(node: Node, scale: Scale, compare: bool, problems: Problems) -> None:
    if not scale.slots:
        return
    slots = node.get("slots") or node
    if not compare:
        problems.add(slots, "slots only make sense in compare mode")
    if scale.values is None or not {"A", "B"} <= set(scale.values):
        problems.add(slots, "a scale of slots needs the values A and B", "as in values: [A, B, tie]")


def _aliases(node: Node, scale: Scale, problems: Problems) -> dict[str, Value]:
    if scale.values is None:
        if node.get("aliases") is not None:
            problems.add(node, "aliases go with values, not with range")
        return {}
    own = {folded(str(value)) for value in scale.values}
    aliases: dict[str, Value] = {}
    for key, target in node.items("aliases"):
        said = folded(str(key))
        if not scale.legal(target.value):
            problems.add(target, f"alias of {shown(target.value)}, which is not on the scale", describe(scale))
        elif said in own or said in aliases:
            problems.at(target.key_line, target.path, f"alias {shown(key)} already means something")
        else:
            aliases[said] = target.value
    return aliases


def _band(name: str, node: Node, scale: Scale, problems: Problems) -> tuple[Span, ...]:
    """A partition: every point in exactly one span."""
    spans = []
    for entry in node.value:
        span = _span(entry.value, scale)
        if span is None:
            problems.add(entry, f"{shown(entry.value)} is not on the scale", describe(scale))
        else:
            spans.append(span)
    order = position(scale)
    spans.sort(key=lambda span: order(span[0]))
    if len(spans) == len(node.value) and scale.points is not None:
        points = [order(point) for point in scale.points]
        covered = [p for low, high in spans for p in points if order(low) <= p <= order(high)]
        if covered != points:
            problems.add(node, f"bands {name!r} must hold every point of the scale once")
    return tuple(spans)


def _span(key: object, scale: Scale) -> Span | None:
    """A point, or first and last point of a span; None when not on the scale."""
    point = _point(key, scale)
    if point is not None:
        return point, point
    match = _SPAN.fullmatch(key) if isinstance(key, str) else None
    if match is None:
        return None
    low, high = (_point(_as_number(end), scale) for end in match.groups())
    if low is None or high is None or position(scale)(low) > position(scale)(high):
        return None
    return low, high


def _point(key: object, scale: Scale) -> Value | None:
    if not isinstance(key, str | int | float):
        return None
    found = legal(scale, key)
    if found is None and isinstance(key, int) and not isinstance(key, bool):
        found = legal(scale, str(key))  # labels "1", "2": a key written without quotes
    return found


def _as_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)
