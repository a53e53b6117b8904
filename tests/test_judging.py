"""One trial: at most one re-ask, both replies kept, errors sorted, usage added up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.errors import AccessError, FinalBackendError, InputError, RetryableBackendError
from evenhand.intake import plain_text
from evenhand.item import Item
from evenhand.judging import Answer, Asker, Judge, parse_judge, reply_text
from evenhand.rubric.model import Form
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import (
    Distribution,
    Failure,
    FieldOutcome,
    Reply,
    Status,
    ToolCall,
    Usage,
    Verdict,
    Violation,
    reply_from_plain,
    reply_to_plain,
    reply_to_stored,
    verdict_from_plain,
    verdict_to_plain,
    verdict_to_stored,
)
from rubric_texts import rubric
from runs import GOOD, LIE, SCORE


class Scripted:
    """A backend that says or raises one thing after another."""

    name = "scripted"
    model = "m"
    identity: Mapping[str, Any] = {"backend": "scripted", "model": "m"}
    forms: tuple[Form, ...] = ("json",)
    deterministic = True
    max_concurrency: int | None = None

    def __init__(self, *script: Any) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.requests.append(request)
        told = self.script.pop(0)
        if isinstance(told, Exception):
            raise told
        if isinstance(told, Reply):
            return told
        text = told if isinstance(told, str) else json.dumps(told)
        return Reply(text=text, model="m1", usage=Usage(10, 2, 5, 0.5, 0.25))

    async def aclose(self) -> None:
        pass


async def _ask(*script: Any, may_re_ask: bool = True, **fields: Any) -> tuple[Answer, Scripted]:
    backend = Scripted(*script)
    asker = Asker(rubric(SCORE), Judge("scripted", "m"), backend, keys=[b"k" * 16], may_re_ask=may_re_ask)
    item = Item("i", 0, {"question": "q", "answer": "a", **fields})
    return await asker.ask(Trial(TrialKey("i", "", 0), item)), backend


async def test_a_good_reply_is_asked_for_once() -> None:
    """A readable, consistent reply is the verdict of one call."""
    answer, backend = await _ask(GOOD)
    assert (answer.verdict.status, answer.verdict.calls, answer.verdict.re_asked) == (Status.SCORED, 1, False)
    assert answer.verdict.reply_digests == (backend.requests[0].digest,)
    assert answer.verdict.model == "m1"


@pytest.mark.parametrize("first", ["no value here", LIE])
async def test_one_re_ask_that_quotes_what_is_wrong(first: Any) -> None:
    """An unreadable or inconsistent reply is asked again once, and the second reply counts."""
    answer, backend = await _ask(first, GOOD)
    assert (answer.verdict.status, answer.verdict.value("truth"), answer.verdict.re_asked) == (Status.SCORED, 3, True)
    assert [e.attempt for e in answer.exchanges] == [0, 1]
    assert backend.requests[1].attempt == 1
    said = first if isinstance(first, str) else json.dumps(first)
    assert [m["content"] for m in backend.requests[1].messages if m["role"] == "assistant"] == [said]
    assert ("lie: a clear lie" if first is LIE else "truth") in backend.requests[1].messages[-1]["content"]


async def test_there_is_never_a_second_re_ask() -> None:
    """When the re-ask is no better the trial ends, both replies kept."""
    answer, backend = await _ask("nothing", "nothing again", GOOD)
    assert (answer.verdict.status, answer.verdict.calls) == (Status.UNPARSED, 2)
    assert [e.reply.text for e in answer.exchanges] == ["nothing", "nothing again"]
    assert len({e.digest for e in answer.exchanges}) == 2
    assert backend.script == [GOOD]


async def test_usage_is_the_sum_of_both_replies() -> None:
    """Tokens, cost and time of the re-ask count too."""
    answer, _ = await _ask(LIE, GOOD)
    assert answer.verdict.usage == Usage(20, 4, 10, 1.0, 0.5)
    assert answer.verdict.calls == 2


async def test_a_readable_first_reply_outlives_an_unreadable_second() -> None:
    """A verdict that only broke a rule is kept when the re-ask brings nothing readable."""
    answer, _ = await _ask(LIE, "sorry, what?")
    assert (answer.verdict.status, answer.verdict.value("style"), answer.verdict.re_asked) == (Status.SCORED, 4, True)
    assert [v.rule for v in answer.verdict.violations] == ["lie"]
    assert len(answer.exchanges) == 2


async def test_a_partly_readable_first_reply_outlives_a_worse_second() -> None:
    """An Unparsed verdict keeps the values it has when the re-ask brings fewer; both replies are kept."""
    answer, _ = await _ask({"reason": "r", "truth": 3, "style": 9}, "nothing at all")
    assert (answer.verdict.status, answer.verdict.value("truth")) == (Status.UNPARSED, 3)
    assert (answer.verdict.failure, answer.verdict.re_asked, answer.verdict.calls) == ("out_of_range", True, 2)
    assert [e.attempt for e in answer.exchanges] == [0, 1]


async def test_a_failed_re_ask_keeps_the_first_reply() -> None:
    """When the second request fails the first verdict stands, and is marked as re-asked."""
    answer, _ = await _ask(LIE, RetryableBackendError("busy"))
    assert (answer.verdict.status, answer.verdict.calls, answer.verdict.re_asked) == (Status.SCORED, 1, True)
    assert [e.attempt for e in answer.exchanges] == [0]


@pytest.mark.parametrize(
    ("script", "first", "last"),
    [
        ([LIE, GOOD], ("lie",), ()),
        ([LIE, LIE], ("lie",), ("lie",)),
        ([LIE, "what?"], ("lie",), ("lie",)),
        ([LIE, RetryableBackendError("busy")], ("lie",), ("lie",)),
        (["what?", GOOD], None, ()),
        (["what?", LIE], None, ("lie",)),
        ([GOOD], None, ()),
    ],
)
async def test_what_the_first_reply_broke_is_kept(
    script: list[Any], first: tuple[str, ...] | None, last: tuple[str, ...]
) -> None:
    """A re-asked verdict tells which rules its first reply broke, if that could be read, beside what still clashes."""
    verdict = (await _ask(*script))[0].verdict
    assert (verdict.first_violations, verdict.broken) == (first, last)
    assert verdict_from_plain(verdict_to_plain(verdict)) == verdict


SPREAD = Distribution({1: 0.25, False: 0.5, "x": 0.25}, 0.1)


@pytest.mark.parametrize(
    "outcome",
    [
        FieldOutcome(3),
        FieldOutcome(None, preset=True),
        FieldOutcome([{"kind": "safety", "text": "half a pair: \ud83d"}]),
        FieldOutcome(failure=Failure.AMBIGUOUS, detail="3 or 4"),
        FieldOutcome(2.5, distribution=SPREAD),
    ],
)
def test_stored_form_holds_what_the_plain_one_does(outcome: FieldOutcome) -> None:
    """Verdict and reply are the same when they are read from the store as from their plain data."""
    broken = (Violation("r", "violation", "why"), Violation("s", "warning", ""))
    verdict = Verdict(Status.UNPARSED, {"f": outcome}, broken, ("t",), "ambiguous", usage=Usage(1, 2, 3, 0.5))
    assert verdict_from_plain(json.loads(plain_text(verdict_to_stored(verdict)))) == verdict
    assert verdict_from_plain(verdict_to_plain(verdict)) == verdict
    reply = Reply(outcome.detail or None, (ToolCall("f", '{"a": 1}'), ToolCall("g", {"b": "\ud83d"})), model="m")
    for kept in (reply, replace(reply, wait_s=3.0, distributions={"f": SPREAD}, usage=Usage(latency_s=0.1))):
        stored = reply_from_plain(json.loads(plain_text(reply_to_stored(kept))))
        assert stored == replace(kept, wait_s=None) == reply_from_plain(reply_to_plain(kept))


async def test_no_re_ask_where_it_is_switched_off() -> None:
    """Without leave to re-ask an unreadable reply is the end."""
    answer, backend = await _ask("nothing", GOOD, may_re_ask=False)
    assert (answer.verdict.status, answer.verdict.re_asked, len(backend.requests)) == (Status.UNPARSED, False, 1)


async def test_a_refusal_is_an_outcome_and_not_asked_again() -> None:
    """A refusal costs one call."""
    answer, backend = await _ask(Reply(refusal="I can't"), GOOD)
    assert (answer.verdict.status, answer.verdict.failure, len(backend.requests)) == (Status.REFUSED, "refusal", 1)


async def test_a_failed_request_is_a_failed_verdict() -> None:
    """One item's failure has its class and text in the verdict, and no value."""
    answer, _ = await _ask(FinalBackendError("context too long"))
    verdict = answer.verdict
    assert (verdict.status, verdict.failure, verdict.detail) == (
        Status.FAILED,
        "FinalBackendError",
        "context too long",
    )
    assert (verdict.calls, dict(verdict.fields), answer.exchanges) == (0, {}, ())


@pytest.mark.parametrize("script", [[AccessError("key refused")], [LIE, AccessError("key refused")]])
async def test_an_access_error_goes_up(script: list[Any]) -> None:
    """Key or model refused ends the run, at the first request or at the re-ask."""
    with pytest.raises(AccessError, match="key refused"):
        await _ask(*script)


async def test_a_decided_item_costs_nothing() -> None:
    """A blank answer gets its verdict without a call."""
    answer, backend = await _ask(answer=" ")
    assert (answer.verdict.status, answer.verdict.value("truth"), answer.verdict.calls) == (Status.SCORED, 0, 0)
    assert (backend.requests, answer.exchanges) == ([], ())


def test_reply_text_is_the_call_or_the_content() -> None:
    """What is quoted back is what the judge wrote; arguments sent as an object are quoted as JSON."""
    assert reply_text(Reply(text="x")) == "x"
    assert reply_text(Reply(text="x", tool_calls=(ToolCall("f", '{"a": 1}'),))) == '{"a": 1}'
    assert reply_text(Reply(tool_calls=(ToolCall("f", {"ok": True, "t": "é"}),))) == '{"ok": true, "t": "é"}'
    assert reply_text(Reply()) == ""


def test_judge_specs() -> None:
    """Backend and model are split at the first colon; a spec without a backend is refused."""
    assert parse_judge("openai:a:b") == Judge("openai", "a:b")
    assert parse_judge("fake").spec == "fake"
    assert parse_judge("replay:x", {}).settings == {}
    with pytest.raises(InputError, match="names no backend"):
        parse_judge(":x")
