"""Verdicts as flat rows: every input row, in input order, nothing overwritten."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.api import Run
from evenhand.judging import Answer
from evenhand.manifest import with_weights
from evenhand.store import Store
from evenhand.trial import TrialKey
from evenhand.verdict import FieldOutcome, Status, Verdict
from rubric_texts import PAIR, rubric
from runs import GOOD, SCORE, TWO, rows, run_it, write_script

PAIRS = rubric(PAIR)
OURS = ["status", "failure", "reason", "truth", "style", "composite", "violations", "set_in_code", "re_asked"]
OURS += ["repaired", "calls", "model"]


def _rows(out: Path, **options: Any) -> list[dict[str, Any]]:
    return list(Run(out).rows(**options))


def test_one_row_per_input_row_in_input_order(tmp_path: Path) -> None:
    """Bad, unreadable and blank rows stand where they stood in the input, with their reason and no value."""
    lines = [*rows(2), {"id": "bad", "question": "q", "system": "s"}, {"id": "blank", "question": "q", "answer": ""}]
    judge = write_script(tmp_path / "s.jsonl", ("What is 1?", "no value"), (None, GOOD))
    run_it(lines, TWO, judge, tmp_path / "run", skip_bad=True)
    told = _rows(tmp_path / "run")
    assert [(r["id"], r["status"], r["failure"], r["truth"], r["composite"]) for r in told] == [
        ("i0", "scored", None, 3, 2.75),
        ("i1", "unparsed", "no_rating", None, None),
        ("bad", "bad_row", "no answer; columns: id, question, system", None, None),
        ("blank", "scored", None, 0, 0.0),
    ]
    assert [r["set_in_code"] for r in told] == [False, False, None, True]
    assert [list(r)[-len(OURS) :] for r in told] == [OURS] * 4
    assert (told[2]["system"], told[0]["question"]) == ("s", "What is 0?")


def test_columns_of_the_input_are_never_overwritten(tmp_path: Path) -> None:
    """An input column with one of our names is kept under a free name, even when the first choice is taken."""
    line = {**rows(1)[0], "status": "theirs", "input_status": "older", "truth": 9, "other": {"a": [1, None]}}
    run_it([line], TWO, "fake:top", tmp_path / "run")
    (told,) = _rows(tmp_path / "run")
    assert (told["status"], told["input_input_status"], told["input_status"]) == ("scored", "theirs", "older")
    assert (told["truth"], told["input_truth"]) == (4, 9)
    assert told["other"] == {"a": [1, None]}


def test_long_rows_are_trials(tmp_path: Path) -> None:
    """Per trial: order and repeat beside the item's columns."""
    run_it(rows(2), TWO, "fake", tmp_path / "run", repeats=2)
    told = _rows(tmp_path / "run", long=True)
    assert [(r["id"], r["order"], r["repeat"]) for r in told] == [
        ("i0", "", 0),
        ("i0", "", 1),
        ("i1", "", 0),
        ("i1", "", 1),
    ]
    assert len(_rows(tmp_path / "run")) == 2


def _pair(out: Path, *verdicts: tuple[str, Verdict]) -> dict[str, Any]:
    """The wide row of one pair with these verdicts by order."""
    run_it([{"id": "p", "prompt": "q", "response_a": "x", "response_b": "y"}], PAIRS, "fake:first", out)
    with Store.open(out, write=True) as store:
        store._db.execute("DELETE FROM trial")
        store.append([Answer(TrialKey("p", order, 0), verdict) for order, verdict in verdicts])  # type: ignore[arg-type]
    return _rows(out)[0]


def _scored(**values: Any) -> Verdict:
    return Verdict(Status.SCORED, {n: FieldOutcome(v) for n, v in values.items()}, calls=1, model="m")


def test_two_orders_in_one_row(tmp_path: Path) -> None:
    """Equal values are told, numbers averaged, differing labels left out and the flip marked."""
    row = _pair(
        tmp_path / "run",
        ("ab", _scored(overall="A", safe="tie", rank_a=5, rank_b=2, reason_a="u")),
        ("ba", _scored(overall="B", safe="tie", rank_a=6, rank_b=None, reason_a="v")),
    )
    assert {
        n: row[n] for n in ("status", "overall", "safe", "rank_a", "rank_b", "reason_a", "flip", "calls", "model")
    } == {
        "status": "scored",
        "overall": None,
        "safe": "tie",
        "rank_a": 5.5,
        "rank_b": None,
        "reason_a": None,
        "flip": True,
        "calls": 2,
        "model": "m",
    }


def test_a_pair_is_scored_only_when_both_orders_are(tmp_path: Path) -> None:
    """One order refused, or not asked, is told as the row's status, and there is no flip."""
    refused = Verdict(Status.REFUSED, failure="refusal", calls=1)
    row = _pair(tmp_path / "run", ("ab", _scored(overall="A")), ("ba", refused))
    assert (row["status"], row["failure"], row["overall"], row["flip"]) == ("refused", "refusal", None, None)
    row = _pair(tmp_path / "two", ("ab", _scored(overall="A")))
    assert (row["status"], row["overall"], row["flip"]) == ("not_asked", None, None)


def test_rows_keep_the_order_and_the_kinds_of_the_input(tmp_path: Path) -> None:
    """Columns stand as in the input, under the names of the fields read from them; numbers and lists are themselves."""
    line = {"tags": ["x"], "q": "Why?", "id": 7, "other": {"a": 1}, "answer": "So."}
    run_it([line], TWO, "fake", tmp_path / "run", map={"question": "q"})
    (told,) = _rows(tmp_path / "run")
    assert list(told) == ["tags", "question", "id", "other", "answer", *OURS]
    assert (told["tags"], told["id"], told["other"]) == (["x"], 7, {"a": 1})


def test_turns_are_plain_data(tmp_path: Path) -> None:
    """A conversation comes back as a list of objects."""
    history = [{"user": "hi", "assistant": "yo"}]
    told = rubric(SCORE.replace("  required:", "  optional: {history: turns}\n  required:"))
    run_it([{**rows(1)[0], "history": history}], told, "fake", tmp_path / "run")
    assert _rows(tmp_path / "run")[0]["history"] == history


def test_composites_carry_no_dust(tmp_path: Path) -> None:
    """A weighted mean is told with 12 significant digits."""
    judge = write_script(tmp_path / "s.jsonl", (None, {"reason": "r", "truth": 4, "style": 1}))
    weights = {"truth": 0.8, "style": 0.2}
    run_it(rows(1), with_weights(TWO, weights), judge, tmp_path / "run")
    assert 0.8 * 4 + 0.2 * 1 != 3.4
    assert _rows(tmp_path / "run")[0]["composite"] == 3.4
