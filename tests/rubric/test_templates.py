"""Messages kept as they were published: styles, what holes may lead to, and every mistake with its place."""

from __future__ import annotations

import pytest

from evenhand.rubric.model import Template
from evenhand.rubric.schema import rubric_format_schema
from evenhand.rubric.templates import split
from rubric_texts import TEN_LINES, changed, problems, rubric

PROMPT = "prompt:\n  - {role: user, template: 'Q: {question} A: {answer}', style: plain}\n"
TYPED = TEN_LINES.replace(
    "answer: text}", "answer: text, kind: text}\n  optional: {turns: turns, pictures: images}"
) + ("types: {field: kind, notes: {sums: [Count.]}}\n")


def test_styles() -> None:
    """plain and double find only their own holes; format reads doubled braces as single ones."""
    assert split("{a} {{b}} {} {1}", "plain") == [("", "a"), (" {", "b"), ("} {} {1}", "")]
    assert split("{a} {{ b }} {{c}}", "double") == [("{a} ", "b"), (" ", "c"), ("", "")]
    pieces = split("{a} {{b}} {c}", "format")
    assert "".join(f"{text}<{hole}>" if hole else text for text, hole in pieces) == "<a> {b} <c>"
    for text in ("{", "{}", "{0}", "{a!r}", "{a:>3}", "{a.b}", "{a[0]}"):
        with pytest.raises(ValueError):
            split(text, "format")


def test_template_in_place_of_blocks() -> None:
    """A message is either blocks or a template, whose holes lead to inputs, directly or by ``holes``."""
    text = TEN_LINES + "prompt:\n  - {role: user, template: '{q} {answer}', holes: {q: question}, strip: true}\n"
    assert rubric(text).prompt[0].template == Template((("", "question"), (" ", "answer"), ("", "")), strip=True)
    assert "template" in str(rubric_format_schema())


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "path", "part"),
    [
        (TEN_LINES + PROMPT, "{answer}", "{anser}", 10, "$.prompt[0].template", "did you mean answer?"),
        (TEN_LINES + PROMPT, "{answer}", "", 9, "$.prompt", "no user message shows answer"),
        (TEN_LINES + PROMPT, "role: user", "role: system", 9, "$.prompt", "no user message shows answer"),
        (TEN_LINES + PROMPT, "style: plain", "style: jinja", 10, "$.prompt[0].style", "not possible here"),
        (TEN_LINES + PROMPT, "style: plain", "blocks: [item]", 10, "$.prompt[0].blocks", "unknown key 'blocks'"),
        (TEN_LINES + PROMPT, "style: plain", "holes: {x: answer}", 10, "$.prompt[0].holes.x", "no hole 'x'"),
        (
            TEN_LINES + PROMPT,
            "style: plain",
            "holes: {answer: anser}",
            10,
            "$.prompt[0].holes.answer",
            "did you mean answer?",
        ),
        (
            TEN_LINES + PROMPT,
            "A: {answer}', style: plain",
            "A: {answer} {}', style: format",
            10,
            "$.prompt[0].template",
            "double the braces",
        ),
        (
            TEN_LINES + PROMPT,
            "A: {answer}",
            "A: {answer} {types}",
            10,
            "$.prompt[0].template",
            "no input for the hole {types}",
        ),
        (TYPED + PROMPT, "A: {answer}", "A: {answer} {types} {turns}", 12, "$.prompt[0].template", "add history.turn"),
        (
            TYPED + PROMPT,
            "A: {answer}",
            "A: {answer} {pictures}",
            12,
            "$.prompt[0].template",
            "no input for the hole {pictures}",
        ),
    ],
)
def test_mistakes(text: str, old: str, new: str, line: int, path: str, part: str) -> None:
    """Each mistake in a template is told with line, place and remedy."""
    found = problems(changed(text, old, new))
    assert any(p.line == line and p.path == path and part in f"{p.message} ({p.remedy})" for p in found), found
