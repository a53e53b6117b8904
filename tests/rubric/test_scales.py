"""Scales as written in a rubric: values, levels, anchors, aliases, bands."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.scale import Anchor, Scale
from rubric_texts import PAIR, TEN_LINES, changed, problems, rubric

INLINE = "{range: [1, 5], anchors: {1: wrong, 5: right}}"


def scale(text: str) -> Scale:
    return rubric(changed(TEN_LINES, INLINE, text)).criteria[0].scale


def mistakes(text: str, base: str = TEN_LINES) -> list[str]:
    return [p.message for p in problems(changed(base, INLINE, text))]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{range: [0, 10]}", {"level": "ordinal", "low": 0, "high": 10, "integer": True}),
        ("{range: [-2, 2], level: interval}", {"level": "interval", "low": -2, "high": 2, "integer": True}),
        ("{range: [0, 1.5], integer: false}", {"level": "interval", "low": 0, "high": 1.5, "integer": False}),
        ("{range: [0, 1], level: binary}", {"level": "binary", "low": 0, "high": 1}),
        ("{values: [bad, fair, good]}", {"level": "nominal", "values": ("bad", "fair", "good")}),
        ("{values: [bad, fair, good], level: ordinal}", {"level": "ordinal", "values": ("bad", "fair", "good")}),
        ("{values: [no, yes]}", {"level": "binary", "values": ("no", "yes")}),
        ("{values: [false, true]}", {"level": "binary", "values": (False, True)}),
        ("{values: [0, 0.5, 1]}", {"level": "ordinal", "values": (0, 0.5, 1)}),
    ],
)
def test_values_and_levels(text: str, expected: dict[str, Any]) -> None:
    """A range is ordinal (interval with fractions), two values are binary, numbers ordinal, other lists nominal."""
    assert scale(text) == Scale("", **expected)


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("{range: [1, 10], anchors: {9-10: x, 1: x, 4-5: x}}", [(1, 1), (4, 5), (9, 10)]),
        ("{range: [-3, 3], anchors: {-3--1: x, 0: x, 1-3: x}}", [(-3, -1), (0, 0), (1, 3)]),
        ("{range: [0, 1], integer: false, anchors: {0: x, 0.5-1: x}}", [(0, 0), (0.5, 1)]),
        ("{values: [bad, good], anchors: {good: x, bad: x}}", [("bad", "bad"), ("good", "good")]),
        ('{values: ["1", "2"], anchors: {2: x, "1": x}}', [("1", "1"), ("2", "2")]),
        ("{values: [1-2, 3-4], anchors: {1-2: x}}", [("1-2", "1-2")]),
        ("{values: [false, true], anchors: {true: x}}", [(True, True)]),
        ("{values: [0, 5, 10], anchors: {0-5: x}}", [(0, 5)]),
    ],
)
def test_anchors_are_points_or_spans_from_low_to_high(text: str, spans: list[Any]) -> None:
    """Anchors may be given in any order; LOW-HIGH is a span unless it is a value itself."""
    assert scale(text).anchors == tuple(Anchor(span, "x") for span in spans)


def test_aliases_and_bands() -> None:
    """Aliases are kept in lower case; bands are partitions, in order."""
    labels = scale("{values: [bad, good], aliases: {POOR: bad, fine : good}}")
    assert labels.aliases == {"poor": "bad", "fine": "good"}
    banded = scale("{range: [1, 5], bands: {coarse: [4-5, 1-3], fine: [1, 2, 3, 4-5]}}")
    assert banded.bands == {"coarse": ((1, 3), (4, 5)), "fine": ((1, 1), (2, 2), (3, 3), (4, 5))}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "a scale needs either range or values"),
        ("{range: [1, 5], values: [a, b]}", "a scale needs either range or values"),
        ("{range: [5, 1]}", "a range goes from low to high"),
        ("{range: [1, 1]}", "a range goes from low to high"),
        ("{range: [1]}", "needs 2 entries, has 1"),
        ("{range: [1, 2, 3]}", "needs 2 entries, has 3"),
        ("{range: [1, 2.5]}", "bounds of a whole-number scale must be whole"),
        ("{range: [0, 1000000]}", "a whole-number scale has at most 1001 points"),
        ("{range: [1, 5], level: nominal}", "a range is ordered, so it can't be nominal"),
        ("{range: [1, 5], level: binary}", "a binary scale has exactly two values"),
        ("{values: [a]}", "needs at least 2 entries, has 1"),
        ("{values: [a, A]}", "value 'A' stands twice"),
        ('{values: ["a b", "a  B"]}', "value 'a  B' stands twice"),
        ('{values: ["A", "\uff21"]}', "value '\uff21' stands twice"),
        ('{values: ["ab", "a\u200bb"]}', "value 'a\\u200bb' stands twice"),
        ('{values: [a, "\u200b"]}', "a value must not be blank"),
        ('{values: [a, b], aliases: {"\uff42": a}}', "alias '\uff42' already means something"),
        ("{values: [a, ' ']}", "a value must not be blank"),
        ('{values: [a, "b\\0"]}', "value 'b\\x00' holds a control character"),
        ("{values: [a, 1]}", "values must be all texts, all numbers or all true and false"),
        ("{values: [3, 2, 1]}", "list the numbers of a scale from low to high"),
        ("{values: [a, b], integer: true}", "integer goes with range, not with values"),
        ("{values: [a, b], level: interval}", "an interval scale needs numbers"),
        ("{values: [a, b, c], level: binary}", "a binary scale has exactly two values"),
        ("{values: [A, B], slots: true}", "slots only make sense in compare mode"),
        ("{values: [a, b], aliases: {c: d}}", "alias of 'd', which is not on the scale"),
        ("{values: [a, b], aliases: {B: a}}", "alias 'B' already means something"),
        ("{range: [1, 5], aliases: {one: 1}}", "aliases go with values, not with range"),
        ("{range: [1, 5], bands: {x: [1-2, 4-5]}}", "bands 'x' must hold every point of the scale once"),
        ("{range: [1, 5], bands: {x: [1-3, 3-5]}}", "bands 'x' must hold every point of the scale once"),
        ("{range: [1, 5], bands: {x: [1-9]}}", "'1-9' is not on the scale"),
        ("{range: [1, 5], anchors: {5-1: x}}", "anchor '5-1' is not on the scale"),
        ("{range: [1, 5], anchors: {1.5: x}}", "anchor 1.5 is not on the scale"),
        ("{range: [1, 5], anchors: {true: x}}", "anchor True is not on the scale"),
        ("{range: [1, 5], anchors: {1-3: x, 3: y}}", "anchors 1-3 and 3 overlap"),
    ],
)
def test_mistakes_of_scales(text: str, message: str) -> None:
    """What no scale can be is a mistake, and the only one."""
    assert mistakes(text) == [message]


def test_slots_need_a_and_b() -> None:
    """A scale of slots has the values A and B."""
    found = problems(changed(PAIR, "values: [A, B, tie]", "values: [first, second, tie]"))
    assert "a scale of slots needs the values A and B" in [p.message for p in found]
