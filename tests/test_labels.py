"""Label sets of published preference data, both ways."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from evenhand.errors import InputError, UnknownNameError
from evenhand.labels import LABEL_SETS, LABELS, Preference, read_label, write_label

EVERY = [Preference("about the same", "tie"), *(Preference(*told) for told in product(LABELS[1:], "AB"))]
READ: list[tuple[str, Any, str | None, Preference]] = [
    ("helpsteer2", -3, None, Preference("significantly better", "A")),
    ("helpsteer2", "-2", None, Preference("better", "A")),
    ("helpsteer2", -1.0, None, Preference("slightly better", "A")),
    ("helpsteer2", 0, None, Preference("about the same", "tie")),
    ("helpsteer2", "+1", None, Preference("slightly better", "B")),
    ("helpsteer2", " 2 ", None, Preference("better", "B")),
    ("helpsteer2", 3, None, Preference("significantly better", "B")),
    ("llama2", "Significantly better", "A", Preference("significantly better", "A")),
    ("llama2", "better", None, Preference("better")),
    ("llama2", "negligibly better/ unsure", "B", Preference("about the same", "tie")),
    ("llama2", "unsure", None, Preference("about the same", "tie")),
    ("fastchat", "[[A]]", None, Preference(side="A")),
    ("fastchat", "b", None, Preference(side="B")),
    ("fastchat", "[[C]]", None, Preference("about the same", "tie")),
    ("fastchat", "tie", None, Preference("about the same", "tie")),
]


@pytest.mark.parametrize(("name", "value", "side", "preference"), READ)
def test_reading(name: str, value: Any, side: str | None, preference: Preference) -> None:
    """A value is read as the preference it stands for; what the set does not tell is unknown."""
    assert read_label(name, value, side) == preference


@pytest.mark.parametrize(
    ("name", "value"),
    [("helpsteer2", v) for v in (4, 1.5, "better", None, True, "", "-100", float("nan"))]
    + [("llama2", v) for v in ("much better", 2, "", None)]
    + [("fastchat", v) for v in ("[[D]]", "error", "", "AB", 1, None)],
)
def test_what_has_no_counterpart_is_an_error(name: str, value: Any) -> None:
    """A value that is none of the set is an error that shows it."""
    with pytest.raises(InputError) as caught:
        read_label(name, value)
    assert repr(value) in str(caught.value)


def test_the_mark_of_invalid_pairs_is_explained() -> None:
    """HelpSteer2 marks a pair without a valid response with -100."""
    with pytest.raises(InputError, match="without a valid response"):
        read_label("helpsteer2", -100)


@pytest.mark.parametrize("preference", EVERY)
@pytest.mark.parametrize("name", LABEL_SETS)
def test_there_and_back(name: str, preference: Preference) -> None:
    """What a set can tell survives: strength and side in HelpSteer2, the side in FastChat, the degree in Llama 2."""
    back = read_label(name, write_label(name, preference), side=preference.side)
    assert back == (preference if name != "fastchat" or preference.side == "tie" else Preference(side=preference.side))


@pytest.mark.parametrize(
    ("name", "preference", "lacking"),
    [
        ("helpsteer2", Preference(side="A"), "label"),
        ("helpsteer2", Preference("better"), "side"),
        ("llama2", Preference(side="B"), "label"),
        ("fastchat", Preference("better"), "side"),
    ],
)
def test_writing_less_than_a_set_needs(name: str, preference: Preference, lacking: str) -> None:
    """A verdict without strength has no HelpSteer2 value, and so on; the error says what is lacking."""
    with pytest.raises(InputError, match=f"has no {lacking}"):
        write_label(name, preference)


def test_preferences_are_whole() -> None:
    """'about the same' and 'tie' give each other; other labels and sides contradict them; unknown names are refused."""
    assert Preference("about the same") == Preference(side="tie") == Preference("about the same", "tie")
    for label, side in (("better", "tie"), ("about the same", "A")):
        with pytest.raises(InputError, match="contradict"):
            Preference(label, side)
    with pytest.raises(UnknownNameError, match="slightly better"):
        Preference("slightly beter")
    with pytest.raises(UnknownNameError):
        Preference("better", "C")
    with pytest.raises(UnknownNameError, match="helpsteer2"):
        read_label("helpsteer", 1)
    with pytest.raises(InputError, match="needs a chosen response"):
        read_label("llama2", "better", "tie")
