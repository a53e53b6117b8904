"""Entry phrases: found however they are typed, told when there are none."""

from __future__ import annotations

import pytest

from evenhand.errors import UnknownNameError
from evenhand.rubric.asking import find_phrase
from evenhand.rubric.load import load_rubric
from rubric_texts import TEN_LINES, rubric

HHH = load_rubric("hhh")


@pytest.mark.parametrize(
    ("said", "first"),
    [
        ("Evaluate these two responses", None),
        ("Which response is better?", None),
        ("Compare response A and response B", None),
        ("Rate the quality of these answers", None),
        ("evaluate the writing quality", "helpful"),
        ("assess truthfulness", "honest"),
        ("  WHICH response is\n better ", None),
        ("Assess  Truthfulness!", "honest"),
        ("evaluate the writing quality。", "helpful"),
    ],
)
def test_the_six_phrases_lead_to_what_is_shown_first(said: str, first: str | None) -> None:
    """Case, spaces and punctuation at the end don't matter; only the two phrases on one aspect put it first."""
    assert HHH.ask[find_phrase(HHH, said)] == first


def test_an_unknown_phrase_is_told_with_those_that_exist() -> None:
    """All phrases are listed; a rubric without any says so."""
    with pytest.raises(UnknownNameError) as unknown:
        find_phrase(HHH, "assess usefulness")
    assert all(phrase in str(unknown.value) for phrase in HHH.ask)
    with pytest.raises(UnknownNameError, match="rubric short has no phrases"):
        find_phrase(rubric(TEN_LINES), "Which response is better?")
