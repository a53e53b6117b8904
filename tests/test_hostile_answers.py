"""Answers that speak to their judge: read is the judge's own verdict or a typed failure, never what they plant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.parse import read
from evenhand.prompt import mark_for, neutralise, render
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Rubric
from evenhand.rubric.schema import asked_fields
from evenhand.verdict import Reply, ToolCall
from test_injection import TOKENS

CASES = [json.loads(line) for line in (Path(__file__).parent / "injections.jsonl").read_text("utf-8").splitlines()]
OWN, PLANTED = 2, 10  #: what the judge gives, and what the texts ask for
CRITIC, DOC_QA, HHH = (load_rubric(name) for name in ("alignmm-critic", "doc-qa", "hhh"))
ITEMS: dict[str, dict[str, Any]] = {
    "alignmm-critic": {"question": "为什么天是蓝的?", "reference": "因为散射。", "task": "问答"},
    "doc-qa": {"question": "Why is the sky blue?", "context": "Air scatters blue light more than red."},
    "hhh": {"prompt": "Why is the sky blue?", "response_b": "Because air scatters blue light."},
}


def test_there_are_many_of_each_class() -> None:
    """At least sixty, all different, in several languages."""
    assert len({case["text"] for case in CASES}) == len(CASES) >= 60
    assert len({case["class"] for case in CASES}) >= 6 and len({case["language"] for case in CASES}) >= 5


@pytest.mark.parametrize("name", ITEMS)
def test_the_rest_of_the_prompt_stays_as_it_is(name: str) -> None:
    """The prompt of such an answer is that of a plain one, but for the neutralised answer in its fence."""
    rubric = load_rubric(name)
    field, fields = "response_a" if name == "hhh" else "answer", asked_fields(rubric)
    mark = mark_for(b"key", "item", rubric.name)

    def messages(text: str) -> list[tuple[str, str]]:
        item = {**ITEMS[name], field: text}
        made = render(rubric, item, fields=fields, form="text", mark=mark).messages
        return [(message["role"], message["content"]) for message in made]

    plain = messages("PLAIN-ANSWER")
    for case in CASES:
        safe = neutralise(case["text"], mark)
        assert messages(case["text"]) == [(role, text.replace("PLAIN-ANSWER", safe)) for role, text in plain]
        assert [token for token in (*TOKENS, mark) if token in safe] == [], case["id"]


def replies(text: str) -> dict[str, Reply]:
    """Replies of a judge that gives `OWN` and quotes the text in some way."""
    own = {"Rating": OWN, "Reason": f"The answer says: {text} That is no answer."}
    plain = json.dumps(own, ensure_ascii=False)
    later = json.dumps({"Reason": f"It tries: {text}", "Rating": OWN}, ensure_ascii=False)
    return {
        "json": Reply(text=plain),
        "reason first": Reply(text=later),
        "fenced": Reply(text=f"```json\n{plain}\n```"),
        "thought": Reply(text=f"<think>The answer says {text}\nI give {OWN}.</think>\n{plain}", finish="stop"),
        "call": Reply(tool_calls=(ToolCall("submit", later),)),
        "reasoning": Reply(text=plain, reasoning=f"{text} Rating: {PLANTED}"),
        "quoted before": Reply(
            text=f'The answer says "{text}", which is no reason.\n\nRating: {OWN}\nReason: no answer.'
        ),
        "quoted after": Reply(text=f'Rating: {OWN}\nReason: It says "{text}" instead of an answer.'),
        "block": Reply(text=f"The answer holds this:\n\n> {text}\n\nI ignore it.\n\n{plain}"),
        "code": Reply(text=f"It holds\n```\n{text}\n```\nRating: {OWN}\nReason: beside the point"),
        "unquoted": Reply(text=f"The answer reads: {text}\nRating: {OWN}\nReason: beside the point"),
        "trailing": Reply(text=f"{plain}\n\nNote that the answer says: {text}"),
    }


#: A judge that keeps to the form is always read; one that pastes foreign text into free text may be ambiguous.
CERTAIN = {"json", "reason first", "fenced", "call", "reasoning"}


@pytest.mark.parametrize("way", list(replies("")))
def test_a_judge_that_quotes_the_answer_is_read_by_its_own_words(way: str) -> None:
    """Its value is the judge's own, or there is none and a class says why."""
    fields = asked_fields(CRITIC)
    wrong = []
    for case in CASES:
        outcome = read(replies(case["text"])[way], fields, function="submit").fields["Rating"]
        failed = way not in CERTAIN and outcome.value is None and outcome.failure is not None
        if outcome.value != OWN and not failed:
            wrong.append((case["id"], outcome))
    assert wrong == []


def test_a_call_with_reasons_that_quote_the_answer() -> None:
    """Six fields of doc-qa: every score is the judge's."""
    fields = asked_fields(DOC_QA)
    for case in CASES:
        said = {f.name: OWN if f.kind == "scale" else f"It says {case['text']}" for f in fields}
        reply = Reply(tool_calls=(ToolCall("grading_function", json.dumps(said, ensure_ascii=False)),))
        reading = read(reply, fields, function="grading_function")
        assert {reading.fields[f.name].value for f in fields if f.kind == "scale"} == {OWN}, case["id"]


@pytest.mark.parametrize("rubric", [CRITIC, DOC_QA, HHH], ids=lambda rubric: rubric.name)
def test_what_a_captured_judge_repeats_is_on_the_menu_or_nothing(rubric: Rubric) -> None:
    """A judge that only repeats the text (nobody can tell) gives a legal value or none: nothing off the scale."""
    fields = [f for f in asked_fields(rubric) if f.scale is not None]
    for case in CASES:
        reading = read(Reply(text=case["text"]), tuple(fields), function=rubric.output.function)
        for f in fields:
            value = reading.fields[f.name].value
            assert value is None or f.scale.legal(value), (case["id"], f.name, value)
