"""Replies made to break a reader: deep, long, malformed. They end in an outcome, in linear work."""

from __future__ import annotations

import pytest

from evenhand.parse import read
from evenhand.parse.lenient import Budget, Scanner, TooDeepError
from evenhand.verdict import Failure, Reply, ToolCall
from reading import outcomes, rating, read_text, text

MANY = 100_000
RIGHT = '{"rating": 4, "reason": "x"}'
UNREADABLE = {
    "brackets": ("[" * MANY, "truncated"),
    "objects": ('{"a":' * MANY, "unparseable"),
    "ratings": ('{"rating":' * MANY, "unparseable"),
    "mixed": ("[{" * MANY, "unparseable"),
    "closed": ('{"rating":' * MANY + "4" + "}" * MANY, "unparseable"),
    "quotes": ('{"reason": "' + 'a "b" ' * MANY, "truncated"),
    "backslashes": ('{"reason": "' + "x\\" * MANY, "truncated"),
    "comments": ("{/*" * MANY, "truncated"),
    "strings": ('{"a": "' * MANY, "truncated"),
    "opening tags": ("<think>" * MANY, "truncated"),
    "closing tags": ("</think>{" * MANY, "truncated"),
    "tags in strings": ('{"x": "</think>' * MANY, "unparseable"),
    "labels": ("Rating: " * MANY, "unparseable"),
    "marks": ("[[" * MANY, "truncated"),
    "stars": ("*" * MANY, "no_rating"),
    "surrogates": ("\ud800" * MANY, "no_rating"),
    "nothing visible": ("\0\u200b\ufeff " * MANY, "empty"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_bombs(name: str) -> None:
    """A reply of a hundred thousand openings, quotes or tags has an outcome like any other."""
    reply, failure = UNREADABLE[name]
    assert read_text(reply, rating(), text())["rating"] == f"!{failure}"


def test_depth_in_tool_arguments() -> None:
    """Arguments nested too deep are unparseable."""
    reply = Reply(tool_calls=(ToolCall("submit", '{"a":' * MANY),))
    assert read(reply, (rating(),)).failure is Failure.UNPARSEABLE


def test_megabyte_reason_comes_back() -> None:
    """A long reply is read whole, valid or repaired."""
    reason = "A line with 5 words.\n" * 50_000
    valid = '{"rating": 4, "reason": "' + reason.replace("\n", "\\n") + '"}'
    for reply in (valid, f"```json\n{valid}\n```", valid[:-1] + ",}"):
        assert read_text(reply, rating(), text()) == {"rating": 4, "reason": reason}


def test_endless_prose_is_not_searched() -> None:
    """Prose beyond all measure is not read for labels, even where it has one."""
    assert read_text("word " * MANY + "\nRating: 4", rating())["rating"] == "!unparseable"


def test_budget_stops_the_scanner() -> None:
    """The scanner gives up when its work is used up, instead of going on."""
    with pytest.raises(TooDeepError):
        Scanner("{" + '"a": 1,' * 1000 + "}", Budget(100)).scan(0)


@pytest.mark.parametrize("digits", [400, 5_000, 500_000])
def test_endless_numbers(digits: int) -> None:
    """A number of any length is a number; it is off the scale."""
    assert read_text('{"rating": ' + "4" * digits + "}", rating())["rating"] == "!out_of_range"
    assert read_text('{"rating": "' + "4" * digits + '"}', rating())["rating"] == "!out_of_range"


def test_lone_surrogates_are_kept() -> None:
    """A text is kept letter for letter, half characters included."""
    assert read_text('{"rating": 4, "reason": "\\ud83d"}', rating(), text())["reason"] == "\ud83d"
    assert read_text('{"rating": 4, "reason": "\\ud83d\\ude00",}', rating(), text())["reason"] == "\U0001f600"


def test_no_fields_no_reading() -> None:
    """Where nothing is asked, nothing is read."""
    assert read(Reply(text=RIGHT), ()).fields == {}


def test_reasoning_is_never_mined() -> None:
    """A rating in the reasoning field is none."""
    assert outcomes(read(Reply(text=None, reasoning=RIGHT), (rating(),))) == {"rating": "!empty"}


def test_detail_shows_the_piece_shortened() -> None:
    """A failure says what it is about, in at most a line."""
    outcome = read(Reply(text='{"rating": "' + "very " * 100 + '"}'), (rating(),)).fields["rating"]
    assert outcome.failure is Failure.WRONG_TYPE
    assert outcome.detail.startswith("very very")
    assert len(outcome.detail) < 100
