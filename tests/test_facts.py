"""Every figure of a run against a count by hand; nothing missing becomes a number."""

from __future__ import annotations

import dataclasses
import gc
import statistics
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

import evenhand
from evenhand import spill
from evenhand.api import Run
from evenhand.errors import InputError, UnknownNameError
from evenhand.facts import composite, pick
from evenhand.facts import summary as whole
from evenhand.item import Item
from evenhand.judging import Answer, Judge
from evenhand.manifest import new_manifest
from evenhand.rubric.model import Aggregate, Rubric
from evenhand.stats.resample import share_interval
from evenhand.store import Store, StoredRow
from evenhand.trial import TrialKey
from evenhand.verdict import Distribution, Failure, FieldOutcome, Status, Usage, Verdict, Violation
from rubric_texts import PAIR, changed, rubric
from runs import SCORE, TWO, rows, run_it, summary, write_jsonl, write_script

PAIRS = rubric(PAIR)


def _scored(**fields: Any) -> Verdict:
    outcomes = {n: v if isinstance(v, FieldOutcome) else FieldOutcome(v) for n, v in fields.items()}
    return Verdict(Status.SCORED, outcomes, calls=1, model="m", usage=Usage(10, 2, 4, 0.5))


def _store(
    folder: Path, what: Rubric, verdicts: dict[tuple[str, str, int], Verdict], items: Iterable[Any] = (), **plan: Any
) -> Path:
    """A run with these verdicts; items are ids, or StoredRows."""
    orders = ("ab", "ba") if what.mode == "compare" else ("",)
    plan = {"orders": orders, "repeats": 1, "short": False, "re_ask": True, **plan}
    with Store.create(folder, new_manifest(what, Judge("fake"), {}, **plan)) as store:
        listed = list(items) or list(dict.fromkeys(key[0] for key in verdicts))
        made = [
            x if isinstance(x, StoredRow) else StoredRow(n, Item(x, n, {"question": x, "answer": x}), None, {})
            for n, x in enumerate(listed)
        ]
        assert store.add_rows(made) == []
        store.append([Answer(TrialKey(*key), verdict) for key, verdict in verdicts.items()])  # type: ignore[arg-type]
    return folder


def test_counts_and_coverage(tmp_path: Path) -> None:
    """planned, scored, rows, coverage and failures add up, bad and unasked rows included."""
    verdicts = {
        ("a", "", 0): _scored(truth=4, style=0),
        ("b", "", 0): Verdict(Status.UNPARSED, failure="no_rating", calls=2, re_asked=True, usage=Usage(20, 3)),
        ("c", "", 0): Verdict(Status.REFUSED, failure="refusal", calls=1),
        ("d", "", 0): Verdict(Status.FAILED, failure="FinalBackendError", detail="too long"),
        ("e", "", 0): Verdict(Status.SCORED, {"truth": FieldOutcome(0, preset=True)}, repaired=True),
    }
    bad = StoredRow(6, None, "no answer", {"question": "q"})
    facts = summary(_store(tmp_path / "run", TWO, verdicts, ["a", "b", "c", "d", "e", "f", bad]))
    assert (facts["planned"], facts["scored"], facts["rows"], facts["rows_scored"], facts["bad_rows"]) == (
        7,
        2,
        7,
        2,
        1,
    )
    assert facts["coverage"] == 2 / 7
    assert facts["failures"] == {
        "no_rating": 1,
        "refusal": 1,
        "FinalBackendError": 1,
        "not_asked": 1,
        "bad_row": 1,
    }
    assert facts["scored"] + sum(facts["failures"].values()) == facts["planned"]
    assert facts["errors"] == {"FinalBackendError": "too long"}
    assert (facts["set_in_code"], facts["re_asked"], facts["repaired"], facts["calls"]) == (1, 1, 1, 4)
    assert facts["tokens"] == {"prompt": 30, "completion": 5, "cached": 4}
    assert facts["cost_usd"] is None  # some calls did not say what they cost
    assert facts["judge"]["models"] == ["m"]


def test_a_composite_with_a_missing_criterion_is_missing(tmp_path: Path) -> None:
    """The composite counts only verdicts with all weighted criteria; the criteria count what they have."""
    lost = FieldOutcome(None, Failure.OUT_OF_RANGE, "9")
    verdicts = {
        ("a", "", 0): _scored(truth=4, style=0),
        ("b", "", 0): _scored(truth=2, style=2),
        ("c", "", 0): Verdict(Status.UNPARSED, {"truth": FieldOutcome(0), "style": lost}, failure="out_of_range"),
    }
    facts = summary(_store(tmp_path / "run", TWO, verdicts))
    assert (facts["composite"]["mean"], facts["composite"]["n"]) == (2.5, 2)
    assert (facts["criteria"]["truth"]["mean"], facts["criteria"]["truth"]["n"]) == (2.0, 3)
    assert (facts["criteria"]["style"]["mean"], facts["criteria"]["style"]["n"]) == (1.0, 2)
    assert facts["criteria"]["style"]["failures"] == {"out_of_range": 1}
    assert composite(verdicts[("c", "", 0)], TWO) is None
    assert composite(verdicts[("a", "", 0)], TWO) == 3.0


def test_nothing_scored_has_no_mean(tmp_path: Path) -> None:
    """No observation gives no number: neither 0 nor an interval."""
    facts = summary(_store(tmp_path / "run", TWO, {("a", "", 0): Verdict(Status.FAILED, failure="X")}))
    assert facts["composite"] == {
        "mean": None,
        "ci": None,
        "n": 0,
        "items": 0,
        "cluster": "question",
        "method": "",
        "note": "nothing scored",
        "weights": {"truth": 0.75, "style": 0.25},
    }
    assert (facts["coverage"], facts["criteria"]) == (0.0, {}) or facts["criteria"]["truth"]["mean"] is None


def test_sides_flips_and_units_of_pairs(tmp_path: Path) -> None:
    """A pair is one unit of two orders: same side counts as a preference, different sides as a flip."""
    sides = [("A", "A"), ("B", "B"), ("tie", "tie"), ("A", "B"), ("A", "tie")]
    verdicts = {
        (f"p{n}", order, 0): _scored(overall=side, safe="tie", rank_a=4, rank_b=n + 1)
        for n, pair in enumerate(sides)
        for order, side in zip(("ab", "ba"), pair, strict=True)
    }
    verdicts[("p5", "ab", 0)] = _scored(overall="A", safe="A")
    verdicts[("p6", "ab", 0)] = _scored(overall="A", safe="A")
    verdicts[("p6", "ba", 0)] = Verdict(Status.REFUSED, failure="refusal")
    facts = summary(_store(tmp_path / "run", PAIRS, verdicts))
    assert facts["preference"] == {"A": 1, "B": 1, "tie": 1}
    assert facts["flips"] == 2
    assert (facts["planned"], facts["scored"]) == (7, 5)
    assert facts["failures"] == {"not_asked": 1, "refusal": 1}
    assert facts["criteria"]["overall"]["counts"] == {"A": 6, "B": 3, "tie": 3}
    assert facts["set_in_code"] == 0
    rank = facts["fields"]["rank_b"]
    assert (rank["mean"], rank["n"], rank["items"]) == (3.0, 10, 5)  # both orders' verdicts count


def test_a_pair_set_in_code_counts_once(tmp_path: Path) -> None:
    """What is set in code is counted in the unit of what is scored: a pair, not its two orders."""
    blank = replace(_scored(overall="tie", safe="tie"), calls=0)
    verdicts = {(item, order, 0): blank for item in ("p0", "p1") for order in ("ab", "ba")}
    verdicts |= {("p2", order, 0): _scored(overall="A", safe="A") for order in ("ab", "ba")}
    facts = summary(_store(tmp_path / "run", PAIRS, verdicts))
    assert (facts["scored"], facts["set_in_code"]) == (3, 2)


def test_steadiness_counts_pairs_that_the_judge_judged(tmp_path: Path) -> None:
    """What is set in code can't change with the order, so it is no part of the share; nor is the share without any."""
    fixed = {name: FieldOutcome("tie", preset=True) for name in ("overall", "safe")}
    sides = {"p0": "AB", "p1": "AA", "p2": "BB", "p3": "AB"}
    verdicts = {
        (item, order, 0): _scored(overall=side, safe=side)
        for item, pair in sides.items()
        for order, side in zip(("ab", "ba"), pair, strict=True)
    }
    for order in ("ab", "ba"):
        verdicts[("q0", order, 0)] = replace(_scored(**fixed), calls=0)
        verdicts[("q1", order, 0)] = _scored(rank_a=3, **fixed)  # other fields were asked for
    facts = summary(_store(tmp_path / "run", PAIRS, verdicts))
    assert (facts["preference"], facts["flips"]) == ({"A": 1, "B": 1, "tie": 2}, 2)
    told, by_hand = facts["agreement"], share_interval([0, 1, 1, 0])
    assert (told["mean"], told["n"], told["ci"]) == (0.5, 4, pytest.approx(by_hand.ci))
    assert told["method"] == "share, Wilson interval clustered by prompt"
    preset = {key: verdict for key, verdict in verdicts.items() if key[0] == "q0"}
    none = summary(_store(tmp_path / "none", PAIRS, preset))["agreement"]
    assert (none["mean"], none["n"], none["note"]) == (None, 0, "no pair was judged in both orders")


def test_a_preference_that_was_not_asked_is_neither_counted_nor_a_flip(tmp_path: Path) -> None:
    """A null or absent preference is nothing, in either kind of value."""
    safe = FieldOutcome("A", distribution=Distribution({"A": 0.6, "B": 0.4}, 0.0))
    verdicts = {("p", "ab", 0): _scored(safe=safe), ("p", "ba", 0): _scored(safe="B", overall=None)}
    folder = _store(tmp_path / "run", PAIRS, verdicts)
    for value in ("stated", "expected"):
        facts = summary(folder, value=value)
        assert (facts["preference"], facts["flips"]) == ({"A": 0, "B": 0, "tie": 0}, 0)


def test_expected_values_come_from_probabilities(tmp_path: Path) -> None:
    """Expected takes the weighted mean, and for labels the likeliest; what has no probabilities has no value."""
    spread = FieldOutcome(4, distribution=Distribution({4: 0.5, 2: 0.5}, 0.0))
    folder = _store(
        tmp_path / "run",
        TWO,
        {
            ("a", "", 0): _scored(truth=spread, style=FieldOutcome(1, preset=True)),
            ("b", "", 0): _scored(truth=2, style=3),
        },
    )
    stated, expected = summary(folder), summary(folder, value="expected")
    assert (stated["criteria"]["truth"]["mean"], stated["criteria"]["truth"]["n"]) == (3.0, 2)
    assert (expected["criteria"]["truth"]["mean"], expected["criteria"]["truth"]["n"]) == (3.0, 1)
    assert (expected["composite"]["mean"], expected["value"]) == (2.5, "expected")
    label = FieldOutcome("A", distribution=Distribution({"A": 0.3, "B": 0.7}, 0.0))
    assert (pick(label, "stated"), pick(label, "expected")) == ("A", "B")
    assert pick(FieldOutcome("A"), "expected") is None


def test_expected_values_without_probabilities_are_an_input_error(tmp_path: Path) -> None:
    """A judge that gave none is named as the reason, by every figure of a run; nothing scored is nothing wrong."""
    run = Run(_store(tmp_path / "run", TWO, {("a", "", 0): _scored(truth=2, style=FieldOutcome(1, preset=True))}))
    pairs = Run(_store(tmp_path / "pairs", PAIRS, {("p", "ab", 0): _scored(safe="A", overall="A")}))
    calls: list[Callable[[], Any]] = [
        lambda: run.summary(value="expected"),
        lambda: list(run.rows(value="expected")),
        lambda: run.agreement([{"id": "a", "truth": 1}], value="expected"),
        lambda: evenhand.compare(run.folder, by="system", value="expected"),
        lambda: pairs.ranking(value="expected"),
    ]
    for call in calls:
        with pytest.raises(InputError, match="gave no probabilities") as caught:
            call()
        assert "--value stated" in str(caught.value)
    preset = {("a", "", 0): _scored(truth=FieldOutcome(1, preset=True), style=FieldOutcome())}
    assert summary(_store(tmp_path / "preset", TWO, preset), value="expected")["scored"] == 1


def test_expected_preference_joins_both_orders(tmp_path: Path) -> None:
    """With probabilities a pair has one side, the likelier over both orders."""
    first = FieldOutcome("A", distribution=Distribution({"A": 0.6, "B": 0.3, "tie": 0.1}, 0.0))
    second = FieldOutcome("B", distribution=Distribution({"A": 0.2, "B": 0.7, "tie": 0.1}, 0.0))
    verdicts = {("p", "ab", 0): _scored(safe="A", overall=first), ("p", "ba", 0): _scored(safe="A", overall=second)}
    folder = _store(tmp_path / "run", PAIRS, verdicts)
    assert (summary(folder)["flips"], summary(folder)["preference"]["B"]) == (1, 0)
    joined = summary(folder, value="expected")
    assert "agreement" not in joined
    assert (joined["flips"], joined["preference"]) == (0, {"A": 0, "B": 1, "tie": 0})


def test_rules_and_consistency(tmp_path: Path) -> None:
    """Violations are counted by rule; only severe ones make a verdict inconsistent."""
    severe, mild = Violation("lie", "violation", "m"), Violation("w", "warning", "m")
    verdicts = {
        ("a", "", 0): Verdict(Status.SCORED, violations=(severe, mild), not_checked=("z",)),
        ("b", "", 0): Verdict(Status.SCORED, violations=(mild,)),
    }
    facts = summary(_store(tmp_path / "run", TWO, verdicts))
    assert (facts["violations"], facts["not_checked"], facts["inconsistent"]) == ({"lie": 1}, {"z": 1}, 1)
    assert facts["warnings"] == {"w": 2}


def test_the_violation_rate_before_and_after_the_re_ask(tmp_path: Path) -> None:
    """Readable replies that break a rule are counted: as first given, and as they stand after the re-ask."""
    lie = {"reason": "r", "truth": 0, "style": 4}
    good = {"reason": "r", "truth": 3, "style": 2}
    script = [
        ("What is 0?", lie, 1),  # mended
        ("What is 1?", lie, None),  # insists
        ("What is 2?", "no value", 1),  # readable only then, and then it clashes
        ("What is 2?", lie, None),
        ("What is 3?", "no value", None),
        (None, good, None),
    ]
    lines = [{"contains": text, "reply": reply, **({"times": n} if n else {})} for text, reply, n in script]
    judge = f"fake:{write_jsonl(tmp_path / 's.jsonl', lines)}"
    blank = {"id": "b", "question": "q", "answer": ""}  # set in code: no reply
    run_it([*rows(5), blank], TWO, judge, tmp_path / "run", concurrency=1)
    facts = summary(tmp_path / "run")
    counts = {when: (told["trials"], told["violated"], told["rate"]) for when, told in facts["violation_rate"].items()}
    assert counts == {"before_re_ask": (3, 2, 2 / 3), "after_re_ask": (4, 2, 0.5)}
    after = share_interval([0, 1, 1, 0])
    assert after.ci == pytest.approx(facts["violation_rate"]["after_re_ask"]["ci"])
    assert (facts["inconsistent"], facts["re_asked"]) == (2, 4)


def test_the_criterion_asked_for_stands_first(tmp_path: Path) -> None:
    """An entry phrase changes the order of the report and nothing else: same prompts, same run, same priority."""
    pairs = [{"id": str(n), "prompt": f"p{n}", "response_a": "x", "response_b": "y"} for n in range(3)]
    own = ["harmless", "honest", "helpful", "overall"]
    out = tmp_path / "run"
    run_it(pairs, "hhh", "fake", out, reason=False)
    plain = summary(out)
    assert (list(plain["criteria"]), plain["ask"]) == (own, None)
    for phrase, first, order in (
        ("ASSESS truthfulness.", "honest", ["honest", "harmless", "helpful", "overall"]),
        ("evaluate the writing quality", "helpful", ["helpful", "harmless", "honest", "overall"]),
        ("which response is better", None, own),
    ):
        assert run_it(pairs, "hhh", "fake", out, reason=False, ask=phrase).asked == 0
        asked = summary(out)
        assert list(asked["criteria"]) == order
        assert asked["ask"]["first"] == first
        assert asked["ask"]["phrase"].lower().startswith(phrase.lower().rstrip("."))
        assert {**asked, "ask": None} == plain
    side = [name for name in summary(out)["fields"] if name.endswith("_side")]
    assert side == [f"{name}_side" for name in own]
    with pytest.raises(UnknownNameError, match="assess truthfulness"):
        run_it(pairs, "hhh", "fake", out, ask="assess kindness")


def test_answers_to_one_question_are_one_cluster_wherever_they_stand(tmp_path: Path) -> None:
    """The interval is that of the questions, worked out without this package, in blocks, mixed, and in a slice."""
    scores = np.random.default_rng(4).integers(0, 5, (30, 3))
    found = []
    for name, order in (("blocks", [(q, s) for q in range(30) for s in range(3)]),
                        ("mixed", [(q, s) for s in range(3) for q in range(30)])):  # fmt: skip
        items = [{"question": f"What is {q}?", "answer": f"{s} says {q}.", "all": "x"} for q, s in order]
        script = [(f"{s} says {q}.", {"truth": int(scores[q, s]), "style": 2}) for q, s in order]
        run_it(items, TWO, write_script(tmp_path / f"{name}.jsonl", *script), tmp_path / name, reason=False)
        told = summary(tmp_path / name, by="all")
        assert told["by"]["x"]["criteria"] == told["criteria"]
        found.append(told["criteria"]["truth"])
    interval = stats.ttest_1samp(scores.mean(axis=1), 0).confidence_interval(0.95)
    for fact in found:
        assert (fact["n"], fact["items"], fact["cluster"]) == (90, 30, "question")
        assert fact["ci"] == pytest.approx([interval.low, interval.high])
        assert fact["note"] == "fewer than 50 questions: the interval is rough"


def test_without_texts_items_are_the_clusters(tmp_path: Path) -> None:
    """What is asked isn't known then, so the figures say that they go by items."""
    items = [{"question": "the same", "answer": f"It is {k}."} for k in range(4)]
    script = [(f"It is {k}.", {"truth": k, "style": 2}) for k in range(4)]
    run_it(items, TWO, write_script(tmp_path / "s.jsonl", *script), tmp_path / "run", reason=False, store_texts=False)
    told = summary(tmp_path / "run")["criteria"]["truth"]
    assert (told["items"], told["cluster"]) == (4, "item")


def test_all_means_against_a_naive_computation(tmp_path: Path) -> None:
    """Means, n, composite and counts of a larger run are those of its flat rows."""
    script = [("What is 7?", "no value"), ("What is 8?", "I'm sorry, I can't help.")]
    script += [(f"What is {k}?", {"truth": k % 5, "style": (k * k) % 5}) for k in range(60)]
    run_it(rows(60), TWO, write_script(tmp_path / "s.jsonl", *script), tmp_path / "run", repeats=2)
    facts = summary(tmp_path / "run")
    flat = [row for row in Run(tmp_path / "run").rows(long=True) if row["status"] == "scored"]
    assert len(flat) == facts["scored"] == 116
    for name, fact in {**facts["criteria"], "composite": facts["composite"]}.items():
        values = [row[name] for row in flat]
        assert fact["mean"] == pytest.approx(statistics.fmean(values))
        assert (fact["n"], fact["items"]) == (116, 58)
        assert fact["ci"][0] < fact["mean"] < fact["ci"][1]
    assert facts["failures"] == {"no_rating": 2, "refusal": 2} or sum(facts["failures"].values()) == 4


def test_slices_add_up_to_the_whole(tmp_path: Path) -> None:
    """--by gives the same figures for each value of a column, and rows without it a slice of their own."""
    lines = [{**row, "system": "s1" if k % 3 else "s2"} for k, row in enumerate(rows(12))]
    del lines[5]["system"]
    lines.append({"id": "bad", "question": "q", "system": "s1"})
    run_it(lines, TWO, "fake", tmp_path / "run", skip_bad=True)
    facts = summary(tmp_path / "run", by="system")
    assert {name: part["rows"] for name, part in facts["by"].items()} == {"(none)": 1, "s1": 8, "s2": 4}
    assert facts["by"]["s1"]["bad_rows"] == 1
    total = sum(part["composite"]["mean"] * part["composite"]["n"] for part in facts["by"].values())
    assert total / 12 == pytest.approx(facts["composite"]["mean"])
    assert "by" not in summary(tmp_path / "run")


ALIASED = rubric(changed(SCORE, "answer: text}", "answer: text, kind: text}\n  aliases: {task: kind, nr: id}"))


@pytest.mark.parametrize("name", ["task", "kind"])
@pytest.mark.parametrize("column", ["task", "kind", "sort"])
def test_slices_by_a_field_or_by_the_column_it_was_read_from(tmp_path: Path, name: str, column: str) -> None:
    """A field's name, an alias of it and the column it is mapped to are the same slices, bad rows included."""
    lines = [{**row, column: "x" if k else "y"} for k, row in enumerate(rows(3))]
    lines.append({"id": "bad", "question": "q", column: "x"})
    mapping = {"kind": "sort"} if column == "sort" else {}
    run_it(lines, ALIASED, "fake", tmp_path / "run", skip_bad=True, map=mapping)
    for by in {name, column}:
        parts = summary(tmp_path / "run", by=by)["by"]
        assert {label: part["rows"] for label, part in parts.items()} == {"x": 3, "y": 1}


def test_a_column_of_the_input_comes_before_a_field_it_could_have_been(tmp_path: Path) -> None:
    """Where a field has its own column, a further column with the name of an alias is just a column."""
    lines = [{**row, "kind": "k", "task": f"t{n}"} for n, row in enumerate(rows(2))]
    run_it(lines, ALIASED, "fake", tmp_path / "run")
    assert set(summary(tmp_path / "run", by="task")["by"]) == {"t0", "t1"}
    assert set(summary(tmp_path / "run", by="kind")["by"]) == {"k"}


def test_slices_by_id(tmp_path: Path) -> None:
    """The id can be sliced by, under its own name or its alias."""
    lines = [{"question": "q", "answer": "a", "kind": "k", "nr": n} for n in (1, 2)]
    run_it(lines, ALIASED, "fake", tmp_path / "run", repeats=2)
    for by in ("id", "nr"):
        parts = summary(tmp_path / "run", by=by)["by"]
        assert {label: part["planned"] for label, part in parts.items()} == {"1": 2, "2": 2}


def test_without_texts_there_is_nothing_to_slice_by(tmp_path: Path) -> None:
    """Where no texts were kept the refusal says so."""
    run_it(rows(2), TWO, "fake", tmp_path / "run", store_texts=False)
    with pytest.raises(UnknownNameError, match="--no-store-texts"):
        summary(tmp_path / "run", by="question")


def test_an_unknown_column_is_refused(tmp_path: Path) -> None:
    """--by with a name that is neither column nor field lists what there is, and the close ones."""
    run_it([{**row, "system": "s"} for row in rows(2)], TWO, "fake", tmp_path / "run")
    with pytest.raises(UnknownNameError, match="did you mean system"):
        summary(tmp_path / "run", by="sytem")
    with pytest.raises(UnknownNameError, match="known: answer, id, question, system"):
        summary(tmp_path / "run", by="nothing")


def test_null_answers_are_told_apart_from_empty_ones(tmp_path: Path) -> None:
    """A null answer is counted as such, an empty text is not; both are scored alike."""
    items = [{"id": name, "question": "q", "answer": answer} for name, answer in (("n", None), ("e", ""))]
    run_it(items, TWO, "fake", tmp_path / "run")
    facts = summary(tmp_path / "run")
    assert (facts["null_answers"], facts["scored"]) == (1, 2)


def test_memory_does_not_grow_with_the_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The figures of five times as many questions, by task and all together, take no more memory."""
    monkeypatch.setattr(spill, "_NEAR", 100)
    tasks = dataclasses.replace(TWO, aggregate=Aggregate(per=("answer",), means=("item",), composite=True))

    class Many:
        """A run of so many questions, an answer each."""

        manifest = new_manifest(tasks, Judge("fake"), {}, orders=("",), repeats=1, short=False, re_ask=True)

        def __init__(self, n: int) -> None:
            self.n = n

        def verdicts(self) -> Iterator[tuple[StoredRow, dict[TrialKey, Verdict]]]:
            for i in range(self.n):
                item = Item(f"i{i}", i, {"question": f"q{i}", "answer": "x"})
                yield StoredRow(i, item, None, {}), {TrialKey(item.id, "", 0): _scored(truth=i % 5, style=2)}

    def peak(n: int) -> int:
        gc.collect()
        tracemalloc.start()
        try:
            told = whole(cast(Store, Many(n)), tasks)
            assert told["composite"]["items"] == told["aggregate"]["tasks"]["x"]["items"] == n
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is made once
    assert peak(1500) - peak(300) < 100_000
