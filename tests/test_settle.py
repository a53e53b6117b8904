"""From replies to verdicts: presentation order, values set in code, what is re-asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.item import Item
from evenhand.rules import compile_rubric
from evenhand.settle import better, complaints, question, re_asked, settle, swap_item
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Distribution, Failure, Reply, Status, Verdict
from rubric_texts import PAIR, changed, rubric

FAIR = changed(
    PAIR, "each: slot, when: blank(response_x),", "each: slot, when: blank(response_x) and not blank(response_y),"
)
RUBRIC = rubric(FAIR)
RULES = compile_rubric(RUBRIC)
OTHER = {"A": "B", "B": "A"}
ITEM = {"prompt": "p", "response_a": "first", "response_b": "second"}
#: A consistent reply, in presentation terms.
REPLY = {"reason_a": "x", "reason_b": "y", "rank_a": 5, "rank_b": 2, "safe": "tie", "overall": "A"}


def _trial(item: Mapping[str, Any], order: str = "ab") -> Trial:
    return Trial(TrialKey("i", order, 0), Item("i", 0, dict(item)))  # type: ignore[arg-type]


def _verdict(item: Mapping[str, Any], order: str, said: Mapping[str, Any], **more: Any) -> Verdict:
    asked = question(RUBRIC, RULES, _trial(item, order), short=False)
    return settle(RUBRIC, RULES, asked, Reply(text=json.dumps(said), **more))


def _mirrored(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a judge says that sees the responses the other way round."""
    names = {"reason_a": "reason_b", "reason_b": "reason_a", "rank_a": "rank_b", "rank_b": "rank_a"}
    return {names.get(k, k): OTHER.get(v, v) if k in ("safe", "overall") else v for k, v in said.items()}


sides = st.sampled_from(["A", "B", "tie", "neither"])
ranks = st.sampled_from([1, 2, 4, 7, 9, "x"])
texts = st.sampled_from(["", "A", "about B"])
replies = st.fixed_dictionaries(
    {"reason_a": texts, "reason_b": texts, "safe": sides, "overall": sides},
    optional={"rank_a": ranks, "rank_b": ranks, "note_safe": texts},
)
items = st.fixed_dictionaries({"prompt": st.just("p"), "response_a": texts, "response_b": texts})


@settings(deadline=None, max_examples=150)
@given(items, replies)
def test_a_mirrored_judge_gives_the_same_verdict(item: dict[str, Any], said: dict[str, Any]) -> None:
    """Order ba with a judge that mirrors its answers gives the verdict of order ab, rules and failures included."""
    assert _verdict(item, "ba", _mirrored(said)) == _verdict(item, "ab", said)


@settings(deadline=None, max_examples=150)
@given(items, replies)
def test_a_mirrored_item_asks_the_same_and_gets_the_mirrored_verdict(
    item: dict[str, Any], said: dict[str, Any]
) -> None:
    """Item (A, B) in order ab and item (B, A) in order ba are one question; complaints are the same words."""
    twin = swap_item(RUBRIC, item)
    first = question(RUBRIC, RULES, _trial(item, "ab"), short=False)
    second = question(RUBRIC, RULES, _trial(twin, "ba"), short=False)
    assert (first.item, first.fields) == (second.item, second.fields)
    verdict, other = _verdict(item, "ab", said), _verdict(twin, "ba", said)
    assert _mirrored({k: v.value for k, v in verdict.fields.items() if k[:6] != "reason"}) == {
        k: v.value for k, v in other.fields.items() if k[:6] != "reason"
    }
    if first.fields:
        assert complaints(RUBRIC, RULES, first, verdict) == complaints(RUBRIC, RULES, second, other)


def test_slots_sides_and_distributions_map_back() -> None:
    """In order ba rank_a is about response_b, "A" means response_b, and so do its probabilities."""
    spreads = {
        "rank_a": Distribution({5: 0.75, 3: 0.25}, 0.0),
        "overall": Distribution({"A": 0.7, "B": 0.2, "tie": 0.1}, 0.1),
    }
    fields = _verdict(ITEM, "ba", REPLY, distributions=spreads).fields
    assert (fields["rank_a"].value, fields["rank_b"].value) == (2, 5)
    assert (fields["reason_a"].value, fields["reason_b"].value) == ("y", "x")
    assert (fields["safe"].value, fields["overall"].value) == ("tie", "B")
    assert fields["rank_b"].distribution == Distribution({5: 0.75, 3: 0.25}, 0.0)
    assert fields["rank_a"].distribution is None
    assert fields["overall"].distribution == Distribution({"B": 0.7, "A": 0.2, "tie": 0.1}, 0.1)
    assert list(fields) == ["reason_a", "rank_a", "reason_b", "rank_b", "note_safe", "safe", "note_overall", "overall"]


def test_text_that_looks_like_a_side_is_left_alone() -> None:
    """Only fields on a slots scale are exchanged; a reason that reads "A" stays."""
    assert _verdict(ITEM, "ba", {**REPLY, "reason_a": "A"}).value("reason_b") == "A"


def test_what_the_item_decides_is_not_asked_in_either_order() -> None:
    """A blank response_a sets its own fields; in order ba the fields of slot b are left out of the question."""
    blank = {**ITEM, "response_a": " "}
    ab = question(RUBRIC, RULES, _trial(blank, "ab"), short=False)
    ba = question(RUBRIC, RULES, _trial(blank, "ba"), short=False)
    assert ab.fixed == ba.fixed == {"rank_a": 1, "overall": "B", "reason_a": "Blank, so B wins."}
    assert [f.name for f in ab.fields] == ["reason_b", "rank_b", "note_safe", "safe", "note_overall"]
    assert [f.name for f in ba.fields] == ["reason_a", "rank_a", "note_safe", "safe", "note_overall"]
    verdict = _verdict(blank, "ba", {"reason_a": "fine", "rank_a": 6, "safe": "A"})
    assert verdict.status is Status.SCORED
    assert {n: verdict.value(n) for n in ("rank_a", "rank_b", "safe", "overall")} == {
        "rank_a": 1,
        "rank_b": 6,
        "safe": "B",
        "overall": "B",
    }
    assert [n for n, o in verdict.fields.items() if o.preset] == ["reason_a", "rank_a", "overall"]


def test_nothing_is_asked_where_everything_is_decided() -> None:
    """A preset with call none leaves no field to ask, and the verdict needs no reply."""
    blank = {**ITEM, "response_a": "", "response_b": None}
    asked = question(RUBRIC, RULES, _trial(blank), short=False)
    assert asked.fields == ()
    verdict = settle(RUBRIC, RULES, asked, None)
    assert (verdict.status, verdict.value("safe"), verdict.calls) == (Status.SCORED, "tie", 0)


def test_a_value_given_with_the_item_is_taken_and_not_asked() -> None:
    """An item column with an output field's name fixes that field, in the item's own order."""
    item = {**ITEM, "rank_a": 3}
    asked = question(RUBRIC, RULES, _trial(item, "ba"), short=True)
    assert [f.name for f in asked.fields] == ["rank_a", "safe", "overall"]
    verdict = _verdict(item, "ba", {"rank_a": 6, "safe": "tie", "overall": "A"})
    assert (verdict.value("rank_a"), verdict.value("rank_b"), verdict.value("overall")) == (3, 6, "B")
    assert verdict.fields["rank_a"].preset


def test_complaints_speak_of_what_the_judge_saw() -> None:
    """A broken rule is told in presentation terms, the stored violation in the item's."""
    said = {**REPLY, "overall": "B"}
    asked = question(RUBRIC, RULES, _trial(ITEM, "ba"), short=False)
    verdict = _verdict(ITEM, "ba", said)
    assert complaints(RUBRIC, RULES, asked, verdict) == ["rank:a: A ranks 5, B ranks 2; make rank_a low or overall A."]
    assert [(v.rule, v.message) for v in verdict.violations] == [
        ("rank:b", "B ranks 5, A ranks 2; make rank_b low or overall B.")
    ]


def test_unread_fields_are_complained_of_before_rules() -> None:
    """A field that can't be read is named with what was found; optional texts and warnings are no reason to ask."""
    asked = question(RUBRIC, RULES, _trial(ITEM, "ba"), short=False)
    wrong = complaints(RUBRIC, RULES, asked, _verdict(ITEM, "ba", {**REPLY, "rank_a": 70}))
    assert len(wrong) == 1
    assert wrong[0].startswith("rank_a: out_of_range")
    warned = _verdict(ITEM, "ab", {**REPLY, "rank_a": 7, "rank_b": 1, "safe": "tie"})
    assert [v.severity for v in warned.violations] == ["warning"]
    assert complaints(RUBRIC, RULES, asked, warned) == []


def test_refused_and_failed_are_not_asked_again() -> None:
    """There is nothing to mend in a refusal or a failed request."""
    asked = question(RUBRIC, RULES, _trial(ITEM), short=False)
    refused = settle(RUBRIC, RULES, asked, Reply(refusal="no"))
    assert (refused.status, refused.failure) == (Status.REFUSED, "refusal")
    assert complaints(RUBRIC, RULES, asked, refused) == []
    assert complaints(RUBRIC, RULES, asked, Verdict(Status.FAILED)) == []


def test_a_verdict_without_a_criterion_is_unparsed_but_keeps_the_rest() -> None:
    """One unreadable criterion makes it Unparsed; the other fields keep their values."""
    verdict = _verdict(ITEM, "ab", {**REPLY, "overall": "the first"})
    assert (verdict.status, verdict.failure) == (Status.UNPARSED, "unknown_label")
    assert verdict.value("safe") == "tie"
    assert verdict.fields["overall"].value is None
    supporting = _verdict(ITEM, "ab", {k: v for k, v in REPLY.items() if k != "rank_a"})
    assert (supporting.status, supporting.fields["rank_a"].failure) == (Status.SCORED, Failure.MISSING_FIELD)


def _without(*missing: str, **values: Any) -> Verdict:
    return _verdict(ITEM, "ab", {k: v for k, v in {**REPLY, **values}.items() if k not in missing})


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_without(), _without(overall="B")),  # both whole
        (_without("overall"), _without("overall", rank_a=3)),  # both lack the same
        (_without("overall"), _without("safe")),
        (_without("overall", "safe"), _without("overall")),
        (_without(rank_a=1), _without("reason_a", "reason_b")),  # optional texts don't count
        (_without("overall"), _without("rank_a", "rank_b")),  # a scored one beats an unparsed one
        (_verdict(ITEM, "ab", {}), settle(RUBRIC, RULES, question(RUBRIC, RULES, _trial(ITEM), short=False),
                                          Reply(refusal="no"))),
    ],
)  # fmt: skip
def test_after_a_re_ask_the_second_verdict_counts_where_it_lacks_no_more(first: Verdict, second: Verdict) -> None:
    """The second of two verdicts that lack the same, or less, is the one that is kept."""
    assert better(RUBRIC, first, second) == re_asked(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (_without(), _without("overall")),
        (_without("overall"), _without("overall", "safe")),
        (_without("overall"), _without("overall", "rank_a")),
        (_without("overall"), _without(*REPLY)),
        (_without("rank_a", "rank_b"), _without("overall")),
        (_without("rank_a"), _without("rank_a", "rank_b")),
        (_without("overall"), settle(RUBRIC, RULES, question(RUBRIC, RULES, _trial(ITEM), short=False),
                                     Reply(refusal="no"))),
    ],
)  # fmt: skip
def test_a_second_verdict_that_lacks_more_replaces_nothing(first: Verdict, second: Verdict) -> None:
    """What could be read of the first reply is not given up for a worse second one, scored or not."""
    assert better(RUBRIC, first, second) == re_asked(first, first)
