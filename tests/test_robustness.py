"""What scores of runs vary with, and what is said about the next call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import evenhand
from evenhand.cli.main import cli
from evenhand.errors import InputError
from evenhand.rubric.load import load_rubric
from rubric_texts import TEN_LINES, rubric
from runs import TWO, rows, run_it, write_jsonl

SHORT = rubric(TEN_LINES)
GROUPED = rubric(
    TEN_LINES.replace("question: text", "question: text, topic: text")
    + 'aggregate: {per: [topic], robustness: {group-by: "id before the last -", min: 2}}\n'
)
WAVERS = [(1, 2, 2), (3, 3, 5), (5, 5, 4), (2, 2, 1), (4, 5, 5)]


def scripted(folder: Path, scores: list[tuple[int, ...]], of: Any = SHORT, asked: int = 1, **options: Any) -> Path:
    """A run in which item k gets the k-th scores, one a repeat; 0, which comes last, can't be read.

    So many items after each other ask the same question.
    """
    folder.mkdir(exist_ok=True)
    script = [
        {"contains": f"answer {k}."}
        | ({"reply": {"reason": "r", "truth": s}, "times": 1} if s else {"reply": "no verdict"})
        for k, given in enumerate(scores)
        for s in given
    ]
    items = [
        {"id": f"q{k // 2}-{k % 2}", "question": f"q{k // asked}", "answer": f"answer {k}.", "topic": "t"}
        for k in range(len(scores))
    ]
    spec = f"fake:{write_jsonl(folder / 's.jsonl', script)}"
    run_it(items, of, spec, folder / "run", repeats=len(scores[0]), re_ask=False, **options)
    return folder / "run"


def preferring(folder: Path, reply: dict[str, Any], n: int = 6) -> Path:
    """A run of pairs in both orders whose judge always gives the same reply, as the slots are shown."""
    pairs = [{"prompt": f"p{k}", "response_a": f"x{k}", "response_b": f"y{k}"} for k in range(n)]
    folder.mkdir(exist_ok=True)
    spec = f"fake:{write_jsonl(folder / 's.jsonl', [{'contains': None, 'reply': reply}])}"
    run_it(pairs, SIDES, spec, folder / "run")
    return folder / "run"


SIDES = rubric("""\
rubric: sides
mode: compare
item:
  required: {prompt: text, response_a: text, response_b: text}
scales:
  side: {values: [A, B, tie], level: nominal, slots: true}
criteria:
  - {name: side, text: Which is better?, scale: side}
""")


def test_repeats_are_told_from_items(tmp_path: Path) -> None:
    """The components are those of a one-way analysis of variance of the verdicts."""
    told = evenhand.variance(scripted(tmp_path / "a", WAVERS))["measures"]["truth"]
    table = np.array(WAVERS)
    within = table.var(axis=1, ddof=1).mean()
    between = table.mean(axis=1).var(ddof=1) - within / 3
    assert told["components"]["repeat"]["variance"]["value"] == pytest.approx(within)
    assert told["components"]["item"]["variance"]["value"] == pytest.approx(between)
    assert told["components"]["item"]["share"] == pytest.approx(between / (between + within))
    assert told["reliability"]["value"] == pytest.approx(between / (between + within / 3))
    assert told["error"]["se"] == pytest.approx(table.mean(axis=1).std(ddof=1) / 5**0.5)
    assert list(told["absent"]) == ["paraphrase", "judge", "order"]


def test_alternatives_have_the_errors_that_follow_from_the_components(tmp_path: Path) -> None:
    """Twice the items, twice the repeats, and the same calls as more items with one repeat, worked out by hand."""
    told = evenhand.variance(scripted(tmp_path / "a", WAVERS))["measures"]["truth"]
    item, repeat = (told["components"][name]["variance"]["value"] for name in ("item", "repeat"))
    ways = {way["change"]: way for way in told["alternatives"]}
    assert ways["as now"]["se"] ** 2 == pytest.approx(item / 5 + repeat / 15)
    assert ways["twice the items"]["se"] ** 2 == pytest.approx(item / 10 + repeat / 30)
    assert ways["twice the repeats"]["se"] ** 2 == pytest.approx(item / 5 + repeat / 30)
    assert ways["twice the repeats"]["se_same_items"] ** 2 == pytest.approx(repeat / 30)
    swap = ways["one repeat, 3 times the items"]
    assert (swap["calls"], swap["se"] ** 2) == (pytest.approx(1), pytest.approx(item / 15 + repeat / 15))
    assert ways["twice the judges"]["se"] is None and "second run" in ways["twice the judges"]["reason"]
    best, same, stay = told["advice"]
    assert best.startswith("The next call is best spent on more items: twice the calls")
    assert f"from {told['error']['se']:.3f} to {ways['twice the items']['se']:.3f} with twice the items" in best
    assert same == f"The same calls as one repeat, 3 times the items would have {swap['se']:.3f}."
    assert stay.startswith("Where there are no more items, twice the repeats bring")


def test_an_unread_verdict_is_missing_and_counted(tmp_path: Path) -> None:
    """A verdict that can't be read is no number; planned still counts it, and an item with one verdict left stays."""
    told = evenhand.variance(scripted(tmp_path / "a", [(1, 2, 0), (3, 0, 0), (5, 4, 4)]))["measures"]["truth"]
    assert (told["n"], told["planned"], told["design"]["items"]) == (6, 9, 3)
    assert told["components"]["repeat"]["variance"]["value"] == pytest.approx((0.5 + 2 / 3) / 3)


def test_answers_to_one_question_are_items_and_one_cluster(tmp_path: Path) -> None:
    """The component of items stays that of single items; intervals go by the questions, and say so."""
    scores = [(k % 4 + 1, (k + k // 3) % 4 + 1) for k in range(12)]
    alone = evenhand.variance(scripted(tmp_path / "a", scores))["measures"]["truth"]
    facts = evenhand.variance(scripted(tmp_path / "b", scores, asked=2))
    told = facts["measures"]["truth"]
    parts = [one["components"]["item"]["variance"] for one in (alone, told)]
    assert parts[0]["value"] == pytest.approx(parts[1]["value"])
    assert [(part["clusters"], part["cluster"]) for part in parts] == [(12, "question"), (6, "question")]
    assert told["mean"]["method"] == "mean, t interval clustered by question"
    assert told["mean"]["ci"] == pytest.approx(list(clustered(np.array(scores).reshape(6, 4))))
    assert (facts["unit"], told["design"]["clusters"], told["design"]["items"]) == ("question", 6, 12)


def clustered(table: Any) -> Any:
    """The t interval of the mean of equal clusters, a row each."""
    return stats.ttest_1samp(table.mean(axis=1), 0).confidence_interval(0.95)


def test_judges_are_runs_over_the_same_items(tmp_path: Path) -> None:
    """Two runs give a component of judges, told for these two, and what another judge would bring."""
    runs = [scripted(tmp_path / "a", [(1,), (3,), (4,), (2,)]), scripted(tmp_path / "b", [(3,), (4,), (5,), (4,)])]
    facts = evenhand.variance(runs)
    told = facts["measures"]["truth"]
    a, b = np.array([1, 3, 4, 2]), np.array([3, 4, 5, 4])
    noise = (b - a).var(ddof=1)
    assert told["components"]["judge"]["variance"]["value"] == pytest.approx((1.5**2 - noise / 4) / 2)
    assert told["components"]["judge x item"]["variance"]["value"] == pytest.approx(noise / 2)
    assert told["noise"] == "judge x item"
    assert "two judges only: others may differ far more" in told["components"]["judge"]["variance"]["warnings"]
    assert "--repeats 3" in told["absent"]["repeat"]
    assert next(way for way in told["alternatives"] if way["change"] == "twice the judges")["se"] is not None
    assert list(facts["judges"]) == [str(run) for run in runs]


def test_paraphrases_are_a_component_where_the_rubric_has_groups(tmp_path: Path) -> None:
    """Items of one group are paraphrases: groups are independent, and what differs within them is told."""
    scores = [(1,), (2,), (4,), (5,), (3,), (3,)]
    told = evenhand.variance(scripted(tmp_path / "a", scores, GROUPED))
    within = np.array([[1, 2], [4, 5], [3, 3]]).var(axis=1, ddof=1).mean()
    part = told["measures"]["truth"]["components"]["paraphrase"]
    assert part["variance"]["value"] == pytest.approx(within)
    assert (told["unit"], told["measures"]["truth"]["design"]["groups"]) == ("paraphrase group", 3)
    assert any(way["change"] == "twice the paraphrases" for way in told["measures"]["truth"]["alternatives"])


def test_a_judge_that_prefers_the_first_shows_as_an_order_shift(tmp_path: Path) -> None:
    """Points are response A's in its own slot, so that always taking the first is a shift of 1 and half the points."""
    told = evenhand.variance(preferring(tmp_path / "a", {"reason": "r", "side": "A"}))
    assert told["preference"] == "side"
    side = told["measures"]["side"]
    assert (side["order_shift"]["value"], side["mean"]["value"]) == (pytest.approx(1.0), 0.5)
    assert side["components"]["order"]["variance"]["value"] == pytest.approx(0.25)
    assert side["components"]["item"]["variance"]["value"] == 0
    second = evenhand.variance(preferring(tmp_path / "b", {"reason": "r", "side": "B"}))["measures"]["side"]
    assert second["order_shift"]["value"] == pytest.approx(-1.0)


def test_ties_everywhere_vary_in_nothing(tmp_path: Path) -> None:
    """All values equal: variances of 0 with their reason, no share, and no call worth its cost."""
    side = evenhand.variance(preferring(tmp_path / "a", {"reason": "r", "side": "tie"}))["measures"]["side"]
    assert {part["variance"]["value"] for part in side["components"].values()} == {0.0}
    assert all(part["share"] is None and part["variance"]["reason"] for part in side["components"].values())
    assert side["advice"] == ["The standard error of the mean is 0.000; twice the calls would not bring it down."]
    assert side["reliability"] == {"value": None, "reason": "nothing varies"}


def test_a_judge_that_repeats_itself_is_told(tmp_path: Path) -> None:
    """Equal repeats: their variance is 0 and the advice says that they buy nothing."""
    told = evenhand.variance(scripted(tmp_path / "a", [(1, 1), (3, 3), (5, 5)]))["measures"]["truth"]
    assert told["components"]["repeat"]["variance"]["value"] == 0
    assert any("repeats never differ, so they buy nothing" in line for line in told["advice"])


def test_one_item_has_reasons_instead_of_figures(tmp_path: Path) -> None:
    """Of one item only its repeats can be told, without interval."""
    told = evenhand.variance(scripted(tmp_path / "a", [(1, 3)]))["measures"]["truth"]
    assert told["components"]["repeat"]["variance"]["value"] == pytest.approx(2.0)
    assert told["components"]["repeat"]["variance"]["reason"] == "one question: no interval"
    assert told["components"]["item"]["variance"]["value"] is None
    assert told["reliability"]["value"] is None and told["reliability"]["reason"]
    assert told["error"]["se"] is None
    assert told["advice"][0] == "Where the next call is best spent can't be told: a component has no value."


def test_the_composite_is_a_measure(tmp_path: Path) -> None:
    """A rubric with weights has its composite taken apart beside its criteria."""
    run_it(rows(4), TWO, "fake", tmp_path / "run", repeats=2)
    assert list(evenhand.variance(tmp_path / "run")["measures"]) == ["composite", "truth", "style"]


def test_composites_of_unlike_weights_are_left_out(tmp_path: Path) -> None:
    """They would vary with the weights too; a warning tells both."""
    for name, weights in (("a", {"truth": 0.5, "style": 0.5}), ("b", {"truth": 0.3, "style": 0.7})):
        evenhand.judge(rows(4), TWO, "fake", out=tmp_path / name, weights=weights, repeats=2)
    told = evenhand.variance([tmp_path / "a", tmp_path / "b"])
    assert list(told["measures"]) == ["truth", "style"]
    assert "0.3 truth, 0.7 style" in told["warnings"][-1]


def test_uses_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    """One verdict an item, a run given twice, other items or scales, nothing scored, no expected values."""
    once = scripted(tmp_path / "once", [(1,), (3,)])
    with pytest.raises(InputError, match="each item was judged once") as caught:
        evenhand.variance(once)
    assert "--repeats 3" in str(caught.value)
    with pytest.raises(InputError, match="given twice"):
        evenhand.variance([once, once])
    with pytest.raises(InputError, match="no run"):
        evenhand.variance([])
    others = scripted(tmp_path / "others", [(1,), (3,)])
    run_it([{"id": "q0-0", "question": "q0", "answer": "another."}], SHORT, "fake", tmp_path / "more")
    with pytest.raises(InputError, match="is not the item of that id before"):
        evenhand.variance([others, tmp_path / "more"])
    run_it(rows(2), load_rubric("doc-qa"), "fake", tmp_path / "scales")
    with pytest.raises(InputError, match="other criteria or scales"):
        evenhand.variance([once, tmp_path / "scales"])
    with pytest.raises(InputError, match="nothing is scored"):
        evenhand.variance(scripted(tmp_path / "none", [(0, 0), (0, 0)]))
    with pytest.raises(InputError, match="no item has two readable verdicts"):
        evenhand.variance(scripted(tmp_path / "few", [(1, 0), (3, 0)]))
    with pytest.raises(InputError, match="no probabilities"):
        evenhand.variance(once, value="expected")


def test_the_command_prints_the_table_and_json(tmp_path: Path) -> None:
    """Components, alternatives and advice in the terminal; the same figures as JSON."""
    run = scripted(tmp_path / "a", WAVERS)
    printed = CliRunner().invoke(cli, ["variance", str(run)], catch_exceptions=False).output
    text = " ".join(printed.split())
    assert "15 of 15 scores, 5 items; mean 3.267" in text
    assert "differs by levels variance 95% interval share sd item 5" in text
    assert "one repeat, 3 times the items x1" in text
    assert "The next call is best spent on more items" in text
    assert "not told, judge: one judge" in text
    told = json.loads(CliRunner().invoke(cli, ["variance", str(run), "--json"], catch_exceptions=False).output)
    assert told == evenhand.variance(run)
