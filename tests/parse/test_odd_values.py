"""Listed values that look like markup: whoever says one of them to the letter is read as saying it, in every form."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from evenhand.parse import read
from evenhand.rubric.lint import lint
from evenhand.rubric.load import parse_rubric
from evenhand.rubric.model import OutputField
from evenhand.rubric.schema import asked_fields
from evenhand.verdict import Failure, Reply, ToolCall
from reading import choice, outcomes, read_text, text

#: Signs that a reader takes for tags, quotes, brackets, objects, labels, or nothing at all.
MARKUP = (
    "</script>", "<b>", "<!-- -->", "<think>", "</think>", "<reason>", "</verdict>", "[x]", "[[x]]", "[RESULT]", "(x)",
    "**bold**", "*", "_", "___", "...", "`code`", "``", "```", "```json", "&amp;", '"quoted"', "'single'", 'say "hi"',
    "\u201cq\u201d", "{", "}", "[", "]", "{x}", '{"verdict": "plain"}', "verdict: plain", "Score: 5", "# head",
    "> quote", "//", "/*", "\\n", "a\\b", "N/A", "none", "-", "null", "true", "1", "4/5", "1-2", "A or B", "yes, no",
    "a. b", "good.", "very good because", "$x$", ":", "=", "|", "\u5168\u90e8", "\U0001f642", "not plain",
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(MARKUP),
    st.lists(st.one_of(st.sampled_from(MARKUP), st.text(max_size=4)), min_size=1, max_size=3).map("".join),
)
RUBRIC = """\
rubric: odd
mode: score
item: {required: {answer: text}}
criteria: [{name: verdict, text: Which?, scale: {level: nominal, values: %s}}]
"""


def _exact(value: str) -> Iterator[tuple[str, Reply]]:
    """Replies that say a value to the letter, by their form."""
    said = {"reason": "fine", "verdict": value}
    yield "json", Reply(text=json.dumps(said, ensure_ascii=False))
    yield "schema", Reply(text=json.dumps(said, indent=1))
    yield "fence", Reply(text=f"```json\n{json.dumps(said)}\n```")
    yield "tool", Reply(tool_calls=(ToolCall("submit_verdict", json.dumps(said)),))
    yield "object", Reply(tool_calls=(ToolCall("submit_verdict", said),))
    if value.splitlines() == [value] and value == value.strip():
        yield "text", Reply(text=f"reason: fine\nverdict: {value}")
        yield "lines", Reply(text=f"Score for verdict: {value}\nReason: fine")
        yield "lone", Reply(text=f"Verdict: {value}")
        yield "bold", Reply(text=f"**Verdict:** {value}\n\n**Reason:** fine")


def _fields(values: list[str]) -> tuple[OutputField, ...]:
    """What a rubric with these values asks for; nothing where it is refused."""
    source = RUBRIC % json.dumps(values, ensure_ascii=False)
    return () if lint(source) else asked_fields(parse_rubric(source, file=None))


@pytest.mark.parametrize("value", MARKUP)
def test_markup_that_is_a_legal_value_is_read_as_it(value: str) -> None:
    """A value that looks like markup is read in every form, beside others that are like it without its marks."""
    fields = _fields([value, "plain", "bold", "x", "code", "quoted", "single"])
    for form, reply in _exact(value):
        reason = None if form == "lone" else "fine"
        assert outcomes(read(reply, fields)) == {"reason": reason, "verdict": value}, form


@settings(max_examples=150)
@given(st.lists(VALUES, min_size=2, max_size=4))
@example(["{", "}"])
@example(["<b>", "<B>x"])
@example(["a", "**a**"])
@example(["x", "x: y"])
@example(["</script>", "\x00"])
def test_no_exact_reply_is_read_as_another_value(values: list[str]) -> None:
    """Whatever the legal values are, whoever says one to the letter is never read as saying another."""
    fields = _fields(values)
    assume(fields)
    for value in fields[-1].scale.values:  # YAML may have read another space
        for form, reply in _exact(value):
            outcome = read(reply, fields).fields["verdict"]
            structured = form in ("json", "schema", "fence", "tool", "object")
            assert outcome.value == value or (outcome.failure is Failure.AMBIGUOUS and not structured), (form, outcome)


def test_odd_values_compete_like_others() -> None:
    """Two different values are ambiguous, a quoted line does not count, and what was read is told to the letter."""
    fields = (text(), choice("verdict", "<b>", "[x]", "plain"))
    both = read(Reply(text="Verdict: <b>\nVerdict: [x]"), fields).fields["verdict"]
    assert (both.failure, both.detail) == (Failure.AMBIGUOUS, "<b> | [x]")
    assert read_text("> Verdict: <b>\nVerdict: plain", *fields)["verdict"] == "plain"
    assert read_text("Verdict: <b>\nCorrection: plain", *fields)["verdict"] == "!ambiguous"
    assert read_text("Verdict: [y]\nReason: no", *fields)["verdict"] == "!unknown_label"
    assert read_text("<b>", *fields)["verdict"] == "<b>"
    assert read_text("Reason: it says\nverdict: [x]\nReason: so", *fields)["verdict"] == "[x]"
    assert read_text('{"reason": "a\\nverdict: <b>", "verdict": "plain"}\n', *fields)["verdict"] == "plain"
    cut = read(Reply(text="Verdict: <b>", finish="length"), fields).fields["verdict"]
    assert cut.failure is Failure.TRUNCATED


def test_placeholders_are_no_values_unless_they_are_legal() -> None:
    """A form that was not filled in has no value; the same signs count where a rubric lists them."""
    said = '{"reason": "...", "verdict": "<b>"}'
    assert read_text(said, text(), choice("verdict", "plain", "x"))["verdict"] == "!no_rating"
    assert read_text(said, text(), choice("verdict", "plain", "<b>"))["verdict"] == "<b>"
