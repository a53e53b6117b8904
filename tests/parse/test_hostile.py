"""Replies made to break a reader: deep, long, malformed. They end in an outcome, in linear work."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from evenhand.parse import read
from evenhand.parse.lenient import Budget, Scanner, TooDeepError
from evenhand.verdict import Failure, Reply, ToolCall
from reading import field_from, outcomes, rating, read_text, text

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


#: Pieces that make a careless reader begin anew at each of them.
PIECES = (
    "Score: ", "Score:\n", "Score: 4 ", "Score: 4 (", "Score: 4...", "the ", "{", "[[", "[[4", "[{", "<x>", "<rating>",
    "<rating>4   ", "<reason>", "Reason: x\n", "</think>", "<think>", "<think>a</think>", "</think>{", "[RESULT] ",
    "```", '"', ' "a', " 'a", "“", "\n> a", '{"a":1}', '{"rating": 4}', '{"rating" 4}', '"rating": ', "评分：4分",
)  # fmt: skip


@pytest.mark.parametrize("piece", PIECES)
def test_work_is_linear(piece: str) -> None:
    """A reply four times as long takes about four times the work; work that grows with its square takes sixteen."""
    assert any(_work(piece, 60_000) < 9 * max(_work(piece, 15_000), 0.01) for _ in range(3))


def _work(piece: str, length: int) -> float:
    """Processor seconds, of which only the ratio matters."""
    reply = Reply(text="Well " + piece * (length // len(piece)) + " so")
    start = time.process_time()
    read(reply, (rating(), text()))
    return time.process_time() - start


def nested(depth: int) -> dict[str, Any]:
    """An object of some depth."""
    inner: dict[str, Any] = {}
    for _ in range(depth):
        inner = {"a": inner}
    return inner


@pytest.mark.parametrize("arguments", ['{"a":' * MANY, '{"a":' * MANY + "1" + "}" * MANY, nested(400), nested(20_000)])
def test_depth_in_tool_arguments(arguments: str | Mapping[str, Any]) -> None:
    """Arguments nested too deep have no rating, be they text or an object."""
    reading = read(Reply(tool_calls=(ToolCall("submit", arguments),)), (rating(),))
    assert reading.failure in (Failure.UNPARSEABLE, Failure.NO_RATING)


def test_odd_arguments_of_a_call() -> None:
    """Values that JSON can't hold are no ratings; an endless number is off every scale."""

    def read_value(value: Any) -> Any:
        return outcomes(read(Reply(tool_calls=(ToolCall("submit", {"rating": value}),)), (rating(),)))["rating"]

    assert [read_value(v) for v in (4, 4.0, "4")] == [4, 4, 4]
    assert [read_value(v) for v in (10**5000, -(10**5000), 1e300)] == ["!out_of_range"] * 3
    assert [read_value(v) for v in (float("nan"), float("inf"), b"4", {4}, [4])] == ["!wrong_type"] * 5


def test_endless_text_is_not_searched_for_patterns() -> None:
    """A field with a pattern is unparseable in a text beyond all measure, since the last match may be cut off."""
    field = field_from({"name": "rating", "range": [1, 5], "patterns": [r"\[\[(\d)\]\]"], "take": "last"})
    assert read_text("[[3]] " + "word " * 1000 + "[[4]]", field)["rating"] == 4
    assert read_text("[[3]] " + "word " * MANY + "[[4]]", field)["rating"] == "!unparseable"


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
