"""Expansion of slots and criteria, token by token."""

from __future__ import annotations

import pytest

from evenhand.rubric.expand import Binding, bindings

A, B = bindings("slot", [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rank_x > rank_y", "rank_b > rank_a"),
        ("side == 'X' or side == \"Y\"", "side == 'B' or side == \"A\""),
        ("side == 'XY' and note == 'rank_x' and x == X", "side == 'XY' and note == 'rank_x' and x == X"),
        ("max_x_y + prefix_xy + _x", "max_x_a + prefix_xy + _x"),
        ("note == 'it\\'s X' and rank_x", "note == 'it\\'s X' and rank_b"),
        ("问题_x == 'X'", "问题_b == 'B'"),
        ("blank(response_x)", "blank(response_b)"),
    ],
)
def test_expressions(text: str, expected: str) -> None:
    """Names that end in _x or _y and the literals 'X' and 'Y' change; nothing inside other texts does."""
    assert B.expression(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Response X ranks {rank_x}, {Y} ranks {rank_y}.", "Response A ranks {rank_a}, B ranks {rank_b}."),
        ("make rank_x 1, not X's", "make rank_a 1, not A's"),
        ("X-ray, eXtra, XY, X_1, box", "X-ray, eXtra, XY, X_1, box"),
        ("回答X是空的,请改rank_x。", "回答A是空的,请改rank_a。"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    """Letters stand for slots as words of their own, names by their ending, also between Chinese characters."""
    assert A.text(text) == expected


def test_criteria() -> None:
    """{criterion} becomes the criterion's name, inside placeholders and literals too."""
    (safe,) = bindings("criterion", ["safe"])
    assert safe.expression("{criterion} == '{criterion}' and {criterion}_side") == "safe == 'safe' and safe_side"
    assert safe.text("{criterion} is {{criterion}}, X") == "safe is {safe}, X"
    assert safe.suffix == ":safe"


def test_nothing_expands_without_each() -> None:
    """An entry without `each` stays as it is."""
    (plain,) = bindings("", ["safe"])
    assert plain == Binding()
    text = "rank_x X {Y} {criterion}"
    assert (plain.name(text), plain.expression(text), plain.text(text), plain.suffix) == (text, text, text, "")
