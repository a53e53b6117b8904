"""Both presentation orders of a pair: one unit, a resolved side, and nothing that depends on the names A and B."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.api import Run
from evenhand.inspection import inspect_item
from evenhand.item import Item
from evenhand.judging import first_request
from evenhand.report.terminal import item_lines
from evenhand.rubric.load import load_rubric
from evenhand.rules import compile_rubric
from evenhand.settle import question, settle, swap_item
from evenhand.sides import CHANGED, likeliest, preferred
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Distribution, FieldOutcome, Reply, Status, Verdict
from rubric_texts import PAIR, rubric
from runs import run_it, summary

PAIRS = rubric(PAIR)
RULES = compile_rubric(PAIRS)
OTHER = {"A": "B", "B": "A", "tie": "tie", CHANGED: CHANGED}
#: From the two responses as shown to the side, "A" being the one shown first.
Taste = Callable[[str, str], str]


def _resolved(item: Mapping[str, Any], taste: Taste) -> str | None:
    """What a judge of this taste prefers, asked in both orders."""
    unit = []
    for order in ("ab", "ba"):
        trial = Trial(TrialKey("i", order, 0), Item("i", 0, dict(item)))  # type: ignore[arg-type]
        asked = question(PAIRS, RULES, trial, short=True)
        side = taste(asked.item["response_a"], asked.item["response_b"])
        said = {"rank_a": 4, "rank_b": 4, "safe": side, "overall": side}
        unit.append(settle(PAIRS, RULES, asked, Reply(text=json.dumps(said))))
    return preferred(unit, PAIRS)


responses = st.text("abc", min_size=1, max_size=3)
pairs = st.fixed_dictionaries({"prompt": st.just("p"), "response_a": responses, "response_b": responses})


@settings(deadline=None, max_examples=100)
@given(pairs, st.dictionaries(responses, st.integers(0, 2)))
def test_a_judge_that_looks_at_texts_alone_never_flips(item: dict[str, Any], worth: dict[str, int]) -> None:
    """Its side is the same in both orders, ties included, and goes with the response when the two are exchanged."""

    def by_worth(first: str, second: str) -> str:
        difference = worth.get(first, 1) - worth.get(second, 1)
        return "A" if difference > 0 else "B" if difference < 0 else "tie"

    side = _resolved(item, by_worth)
    assert side == by_worth(item["response_a"], item["response_b"])
    assert _resolved(swap_item(PAIRS, item), by_worth) == OTHER[str(side)]


@settings(deadline=None, max_examples=50)
@given(pairs, st.sampled_from("AB"))
def test_a_judge_that_looks_at_places_alone_always_flips(item: dict[str, Any], place: str) -> None:
    """Always "A", or always "B", is neither a win nor a tie for any response, but a change with the order."""
    assert _resolved(item, lambda first, second: place) == CHANGED


@settings(deadline=None, max_examples=100)
@given(pairs, st.dictionaries(st.tuples(responses, responses), st.sampled_from(["A", "B", "tie"])))
def test_exchanging_the_responses_mirrors_whatever_a_judge_says(
    item: dict[str, Any], taste: dict[tuple[str, str], str]
) -> None:
    """Whatever the judge's taste, even an unsteady one, item (A, B) and item (B, A) resolve to mirrored sides."""

    def judge(first: str, second: str) -> str:
        return taste.get((first, second), "A")

    assert _resolved(swap_item(PAIRS, item), judge) == OTHER[str(_resolved(item, judge))]


def test_probabilities_of_both_orders_are_averaged() -> None:
    """A slight leaning in one order does not hold against a strong one in the other; without any, values count."""

    def said(value: str, **shares: float) -> Verdict:
        spread = Distribution(shares, 0.0) if shares else None
        return Verdict(Status.SCORED, fields={"overall": FieldOutcome(value, distribution=spread)})

    leaning, sure = said("A", A=0.6, B=0.4), said("B", A=0.1, B=0.9)
    assert likeliest([leaning, sure], "overall") == "B"
    assert likeliest([leaning, said("A")], "overall") == "A"


def test_figures_and_rows_of_both_orders(tmp_path: Path) -> None:
    """Sides that hold in both orders are counted, ties too; the others are flips; agreement is the former's share."""
    script = tmp_path / "s.jsonl"
    sides = {"p0": "tie", "p1": "A"}  # "A" in both orders: a flip
    lines = [
        {"contains": prompt, "reply": {"rank_a": 4, "rank_b": 4, "safe": "tie", "overall": side}}
        for prompt, side in sides.items()
    ]
    script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    items = [{"id": p, "prompt": p, "response_a": "x", "response_b": "y"} for p in sides]
    run_it(items, PAIRS, f"fake:{script}", tmp_path / "run", reason=False)
    facts = summary(tmp_path / "run")
    assert (facts["preference"], facts["flips"]) == ({"A": 0, "B": 0, "tie": 1}, 1)
    assert (facts["agreement"]["mean"], facts["agreement"]["n"], facts["agreement"]["items"]) == (0.5, 2, 2)
    rows = list(Run(tmp_path / "run").rows())
    assert [(row["overall"], row["flip"]) for row in rows] == [("tie", False), (None, True)]
    long = list(Run(tmp_path / "run").rows(long=True))
    assert [(row["id"], row["order"], row["overall"]) for row in long[2:]] == [("p1", "ab", "A"), ("p1", "ba", "B")]


def test_one_item_tells_what_holds_of_both_orders(tmp_path: Path) -> None:
    """`show --item` ends with the side of each order, in the item's own terms, and what they come to."""
    items = [{"id": "x", "prompt": "p", "response_a": "x", "response_b": "y"}]
    run_it(items, PAIRS, "fake:first", tmp_path / "run")
    told = inspect_item(tmp_path / "run", "x")
    assert told["preferred"] == [{"repeat": 0, "sides": {"ab": "A", "ba": "B"}, "side": None, "flip": True}]
    last = list(item_lines(told))[-1]
    assert last == "\n=== preferred in both orders, repeat 0: changes with the order (ab A, ba B)"
    run_it(items, PAIRS, "fake:refuse", tmp_path / "refused")
    told = inspect_item(tmp_path / "refused", "x")
    assert (told["preferred"][0]["side"], told["preferred"][0]["flip"]) == (None, None)
    run_it(items, PAIRS, "fake:first", tmp_path / "one", orders="ab")
    assert "preferred" not in inspect_item(tmp_path / "one", "x")


def test_the_judge_sees_neutral_names_only() -> None:
    """Whatever the rows say of systems, the judge reads of responses A and B."""
    built_in = load_rubric("hhh")
    fields = {"prompt": "p", "response_a": "x", "response_b": "y"}
    item = Item("q~gpt~llama", 0, fields, {"system_a": "gpt", "system_b": "llama", "prompt_id": "q"})
    for order in ("ab", "ba"):
        trial = Trial(TrialKey(item.id, order, 0), item)  # type: ignore[arg-type]
        asked = question(built_in, compile_rubric(built_in), trial, short=False)
        request = first_request(built_in, trial, asked, "json", keys=(b"k" * 16,), settings={}, identity={})
        text = "\n".join(str(message["content"]) for message in request.messages)
        assert "Response A" in text
        assert "gpt" not in text
        assert "llama" not in text
