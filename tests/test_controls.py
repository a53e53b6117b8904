"""What is counted in responses, and how two of them are set against each other."""

from __future__ import annotations

import pytest

from evenhand.controls import control_names, difference, unavailable
from evenhand.errors import InputError

TEXT = """# Head
Some **bold** and __bold__ text, 2 ** 3 ** 4.
- one
* two
  1. three
12) four
#no header
```
# comment
- **no**
```
####### seven
**bold
not**
"""


def test_names() -> None:
    """Markdown stands for three; nothing twice; a text is split at commas; blank names are refused."""
    assert control_names("length, markdown,bold") == ("length", "headers", "lists", "bold")
    assert control_names(["words"]) == ("words",)
    assert control_names(()) == control_names("") == ()
    with pytest.raises(InputError, match="joined by commas"):
        control_names("length,")


@pytest.mark.parametrize(("name", "count"), [("headers", 1), ("lists", 4), ("bold", 2), ("length", len(TEXT))])
def test_counts(name: str, count: int) -> None:
    """Of headers, list items, bold spans and characters; fenced code has none, a fence left open runs to the end."""
    other = {"headers": "# a\n# b\n# c", "lists": "- a\n- b\n- c", "bold": "**a** **b** **c**", "length": "abc"}[name]
    assert difference(name, {}, [TEXT, other]) == pytest.approx((count - 3) / (count + 3))
    assert difference(name, {}, [other, TEXT]) == pytest.approx((3 - count) / (count + 3))
    assert difference(name, {}, [other, None]) == 1
    assert difference(name, {}, ["", None]) == 0
    if name != "length":
        assert difference(name, {}, [f"~~~\n{other}", "x"]) == 0


def test_columns_come_before_texts() -> None:
    """NAME_a and NAME_b; counts relative to their sum, any other number as it is, from text too."""
    assert difference("length", {"length_a": "30", "length_b": 10}, ["x", "x"]) == 0.5
    assert difference("mood", {"mood_a": -1.5, "mood_b": "2"}, []) == -3.5
    for unit in (1e308, 5e-324):  # neither the sum of the counts nor a half of one is a number
        assert difference("length", {"length_a": unit, "length_b": unit}, []) == 0
        assert difference("length", {"length_a": unit, "length_b": 0}, []) == 1


@pytest.mark.parametrize(
    ("name", "row", "message"),
    [
        ("mood", {"mood_a": 1, "mood_b": ""}, "mood_b is blank"),
        ("mood", {"mood_a": 1, "mood_b": None}, "mood_b is blank"),
        ("mood", {"mood_a": "high", "mood_b": 1}, "mood_a is 'high'"),
        ("mood", {"mood_a": float("nan"), "mood_b": 1}, "finite number"),
        ("length", {"length_a": -1, "length_b": 1}, "below 0"),
        ("length", {}, "no text"),
        ("mood", {"mood_a": 10**400, "mood_b": 1}, "too many digits"),
        ("mood", {"mood_a": 1.7e308, "mood_b": -1.7e308}, "differ by more than a number can hold"),
    ],
)
def test_what_is_no_number(name: str, row: dict[str, object], message: str) -> None:
    """Blank, words, NaN, negative counts and responses of another kind are refused."""
    with pytest.raises(ValueError, match=message):
        difference(name, row, [["turn"], "x"])


def test_what_is_not_there() -> None:
    """A message a name: its columns, and the texts where they would do."""
    assert unavailable(["length", "mood"], {"mood_a", "mood_b"}, texts=True) == []
    assert unavailable(["length", "mood"], {"mood_a"}, texts=False) == [
        "no length_a and length_b to control for, and no texts to count in",
        "no mood_a and mood_b to control for",
    ]
