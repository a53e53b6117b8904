"""Systems against each other on the same questions."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

import evenhand
from evenhand.cli.main import cli
from evenhand.errors import InputError, UnknownNameError
from evenhand.rubric.load import load_rubric
from rubric_texts import TEN_LINES, rubric
from runs import TWO, rows, run_it, write_script

SHORT = rubric(TEN_LINES)


def answers(*systems: str, n: int = 12) -> list[dict[str, Any]]:
    """Long form: one row per question and system; the wanted score is in the answer."""
    draw = random.Random(8)
    scores = {
        system: [min(5, max(1, draw.randint(1, 4) + place)) for _ in range(n)] for place, system in enumerate(systems)
    }
    return [
        {"question": f"q{k}", "answer": f"score {scores[s][k]}.", "system": s, "want": scores[s][k]}
        for k in range(n)
        for s in systems
    ]


def judged(items: list[dict[str, Any]], folder: Path) -> Path:
    """A run whose judge gives the score that stands in the answer, and nothing readable for "score 0"."""
    script = [(f"score {k}.", {"reason": "r", "truth": k} if k else "no verdict") for k in range(6)]
    folder.mkdir(exist_ok=True)
    run_it(items, SHORT, write_script(folder / "s.jsonl", *script, (None, {"reason": "r", "truth": 1})), folder / "run")
    return folder / "run"


def test_systems_of_one_run_are_paired_by_question(tmp_path: Path) -> None:
    """Difference, interval and counts are those of the paired scores, worked out from the rows with scipy."""
    items = answers("a", "b", n=40)
    told = evenhand.compare(judged(items, tmp_path), by="system")
    want = {s: [row["want"] for row in items if row["system"] == s] for s in "ab"}
    (found,) = told["comparisons"]
    theirs = stats.ttest_rel(want["b"], want["a"]).confidence_interval(0.95)
    assert found["difference"]["ci"] == pytest.approx([theirs.low, theirs.high])
    assert (found["a"], found["b"], found["measure"], found["paired"], found["questions"]) == (
        "a",
        "b",
        "truth",
        True,
        40,
    )
    assert found["wins"] == sum(b > a for a, b in zip(want["a"], want["b"], strict=True))
    assert found["verdict"].startswith("b is better than a by ")
    assert told["systems"]["a"]["planned"] == 40
    assert told["systems"]["a"]["truth"]["mean"] == pytest.approx(sum(want["a"]) / 40)


def test_a_question_without_a_score_of_both_is_left_out(tmp_path: Path) -> None:
    """An unread verdict takes its question out of the pairs, never in as a number; planned keeps count."""
    items = answers("a", "b")
    items[0]["answer"] = "score 0."
    told = evenhand.compare(judged(items, tmp_path), by="system")
    assert told["comparisons"][0]["questions"] == 11
    assert (told["systems"]["a"]["planned"], told["systems"]["a"]["truth"]["n"]) == (12, 11)


def test_more_systems_have_their_p_values_adjusted(tmp_path: Path) -> None:
    """Three systems are three comparisons: Holm's p is never below the plain one, and the answer goes by it."""
    told = evenhand.compare(judged(answers("a", "b", "c", n=20), tmp_path), by="system")
    found = told["comparisons"]
    assert [(c["a"], c["b"]) for c in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert all(c["p_adjusted"] >= c["p"] for c in found)
    assert min(c["p_adjusted"] for c in found) == pytest.approx(3 * min(c["p"] for c in found))


def test_systems_without_shared_questions_are_not_paired(tmp_path: Path) -> None:
    """They are compared all the same, with Welch's test, and told to be unpaired."""
    items = [row for k, row in enumerate(answers("a", "b", n=20)) if (k // 2) % 2 == k % 2]
    told = evenhand.compare(judged(items, tmp_path), by="system")["comparisons"][0]
    assert (told["paired"], told["questions"], told["wins"]) == (False, 0, None)
    assert told["test"] == "Welch's t test"


def test_runs_are_paired_by_id(tmp_path: Path) -> None:
    """Two runs over the same items, say of two versions of a system, are compared item by item."""
    first = [{**row, "id": row["question"]} for row in answers("a")]
    second = [{**row, "answer": "score 5."} for row in first]
    runs = [judged(first, tmp_path / "one"), judged(second, tmp_path / "two")]
    told = evenhand.compare(runs, margin=0.5)
    (found,) = told["comparisons"]
    assert (found["paired"], found["questions"], found["losses"]) == (True, 12, 0)
    assert found["not_worse"] is True
    assert list(told["systems"]) == [str(run) for run in runs]


def test_runs_whose_ids_name_other_questions_are_refused(tmp_path: Path) -> None:
    """Row numbers as ids would pair what has nothing to do with each other."""
    runs = [
        judged([{"id": str(k), "question": f"{what} {k}", "answer": "score 5."} for k in range(3)], tmp_path / what)
        for what in ("apples", "pears")
    ]
    with pytest.raises(InputError, match=r"item 0 of .*pears.* asks another question"):
        evenhand.compare(runs)


def test_an_unsure_difference_says_what_would_settle_it(tmp_path: Path) -> None:
    """Where the interval holds 0 the answer names the number of further questions for a power of 80 %."""
    items = answers("a", "b")
    for k, row in enumerate(items):
        row["answer"] = f"score {3 + (k % 3 == 0) if row['system'] == 'b' else 3 + (k % 4 == 0)}."
    found = evenhand.compare(judged(items, tmp_path), by="system")["comparisons"][0]
    assert "is not shown to be better" in found["verdict"]
    assert f"about {found['more']:,} more questions" in found["verdict"]
    assert found["more"] == found["needed"] - 12


def test_equal_systems_have_the_same_mean(tmp_path: Path) -> None:
    """No difference at all is said in so many words; no p below 1, no number of questions."""
    items = [{"question": f"q{k}", "answer": "score 3.", "system": s} for k in range(5) for s in "ab"]
    found = evenhand.compare(judged(items, tmp_path), by="system")["comparisons"][0]
    assert (found["verdict"], found["p"], found["more"]) == ("b and a have the same mean", 1.0, None)


def test_uses_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    """One system, an unknown column, pairs, runs of other scales, a column and several runs: each with its reason."""
    run = judged(answers("a"), tmp_path / "x")
    with pytest.raises(InputError, match="nothing to compare it with"):
        evenhand.compare(run, by="system")
    with pytest.raises(UnknownNameError, match="system"):
        evenhand.compare(run, by="sytem")
    with pytest.raises(InputError, match="one run needs the column"):
        evenhand.compare(run)
    with pytest.raises(InputError, match="one run needs the column"):
        evenhand.compare([run, tmp_path / "y"], by="system")
    with pytest.raises(InputError, match="given twice"):
        evenhand.compare([run, run], by="system")
    run_it([{"question": "q", "answer": "a"}], load_rubric("doc-qa"), "fake", tmp_path / "other")
    with pytest.raises(InputError, match="other criteria or scales"):
        evenhand.compare([run, tmp_path / "other"])
    pair = {"prompt": "p", "response_a": "x", "response_b": "y", "system": "s"}
    run_it([pair], load_rubric("hhh"), "fake", tmp_path / "pairs")
    with pytest.raises(InputError, match="evenhand rank"):
        evenhand.compare(tmp_path / "pairs", by="system")


def test_a_run_given_twice_is_refused(tmp_path: Path) -> None:
    """Under whatever name: it differs in nothing from itself."""
    run = judged(answers("a"), tmp_path / "x")
    with pytest.raises(InputError, match="given twice"):
        evenhand.compare([run, run.parent / ".." / "x" / "run"])


def test_the_test_and_the_interval_can_be_chosen(tmp_path: Path) -> None:
    """Yes or no by McNemar's test with its odds; scores by Wilcoxon's with a bootstrap interval; both told in print."""
    draw = random.Random(5)
    scores = {s: [draw.random() < share for _ in range(60)] for s, share in (("a", 0.3), ("b", 0.7))}
    items = [
        {"question": f"q{k}", "answer": f"score {1 + scores[s][k]}.", "system": s} for k in range(60) for s in "ab"
    ]
    run = judged(items, tmp_path)
    wins = sum(b > a for a, b in zip(scores["a"], scores["b"], strict=True))
    losses = sum(b < a for a, b in zip(scores["a"], scores["b"], strict=True))
    told = evenhand.compare(run, by="system", test="mcnemar")["comparisons"][0]
    assert told["p"] == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
    assert told["odds_ratio"]["value"] == pytest.approx(wins / losses)
    assert told["superiority"]["value"] == pytest.approx((wins + (60 - wins - losses) / 2) / 60)
    other = evenhand.compare(run, by="system", test="wilcoxon", interval="bootstrap")["comparisons"][0]
    assert other["odds_ratio"] is None
    assert other["difference"]["method"].startswith("mean, BCa bootstrap")
    command = ["compare", str(run), "--by", "system", "--test", "mcnemar", "--interval", "bootstrap"]
    text = " ".join(CliRunner().invoke(cli, command, catch_exceptions=False).output.split())
    assert f"; odds of b over a where they differ {wins / losses:.2f} (" in text
    assert "80 % power for a difference of" in text
    assert text.endswith("method: McNemar's exact test; mean, BCa bootstrap over questions, 2000 draws")
    with pytest.raises(UnknownNameError, match="sign"):
        evenhand.compare(run, by="system", test="sign")  # type: ignore[arg-type]


def test_a_test_that_does_not_suit_says_why(tmp_path: Path) -> None:
    """Scores of many values have no McNemar's test, and unpaired ones none but Welch's: a reason, no other p."""
    items = answers("a", "b")
    told = evenhand.compare(judged(items, tmp_path / "x"), by="system", test="mcnemar")["comparisons"][0]
    assert (told["p"], told["p_adjusted"], told["tests"]) == (None, None, 0)
    assert told["verdict"].endswith("not tested: " + told["note"])
    assert "ratings of two values" in told["note"]
    apart = [row for k, row in enumerate(answers("a", "b", n=20)) if (k // 2) % 2 == k % 2]
    run = judged(apart, tmp_path / "y")
    told = evenhand.compare(run, by="system", test="wilcoxon", interval="bootstrap")["comparisons"][0]
    assert (told["p"], told["note"]) == (
        None,
        "a wilcoxon test needs two questions or more with a score of both systems",
    )
    assert "not paired: the t interval, no bootstrap" in told["difference"]["warnings"]


def test_paraphrases_are_one_unit_and_have_no_rank_test(tmp_path: Path) -> None:
    """Where a rubric groups items, tests that take questions as independent are refused, the others go by groups."""
    text = TEN_LINES + "aggregate: {robustness: {group-by: id before the last -, min: 2}}\n"
    script = write_script(tmp_path / "s.jsonl", *[(f"score {k}.", {"reason": "r", "truth": k}) for k in range(1, 6)])
    runs = []
    for name, more in (("one", 0), ("two", 1)):
        items = [
            {"id": f"g{g}-{k}", "question": f"q{g} {k}", "answer": f"score {1 + g % 3 + more * (k + g) % 3}."}
            for g in range(8)
            for k in range(3)
        ]
        run_it(items, rubric(text), script, tmp_path / name)
        runs.append(tmp_path / name)
    told = evenhand.compare(runs, test="wilcoxon")["comparisons"][0]
    assert (told["p"], told["difference"]["clusters"], told["difference"]["n"]) == (None, 8, 24)
    assert "several share a cluster" in told["note"]
    assert evenhand.compare(runs)["comparisons"][0]["p"] is not None


def test_odd_systems_are_told_in_words(tmp_path: Path) -> None:
    """A system without a score, one question, differences that are all equal, names that look like markup."""
    items = answers("a", "b")
    for row in items:
        row["answer"] = row["answer"] if row["system"] == "a" else "score 0."
    told = evenhand.compare(judged(items, tmp_path / "1"), by="system")["comparisons"][0]
    assert told["verdict"] == "b and a can't be compared: b without any score"
    told = evenhand.compare(judged(answers("a", "b", n=1), tmp_path / "2"), by="system")["comparisons"][0]
    assert "one question: no interval" in told["verdict"]
    even = [{"question": f"q{k}", "answer": f"score {2 + (s == 'b')}.", "system": s} for k in range(7) for s in "ab"]
    told = evenhand.compare(judged(even, tmp_path / "3"), by="system")["comparisons"][0]
    assert told["verdict"].endswith("can't be told: all differences are equal: no interval")
    named = [{**row, "system": {"a": "[bold]x", "b": "[/]y\\"}[row["system"]]} for row in answers("a", "b")]
    out = CliRunner().invoke(cli, ["compare", str(judged(named, tmp_path / "4")), "--by", "system"]).output
    assert "[bold]x" in out
    assert "\n[/]y\\ " in out


def test_the_number_of_comparisons_stands_beside_the_adjusted_p(tmp_path: Path) -> None:
    """Five systems are ten comparisons: the answer's p is Holm's, and says so; of two systems nothing is adjusted."""
    run = judged(answers(*"abcde", n=10), tmp_path / "five")
    found = evenhand.compare(run, by="system")["comparisons"]
    assert len(found) == 10
    assert all(f"p {c['p_adjusted']:.4f} (Holm, 10 comparisons)" in c["verdict"] for c in found if c["p"] < 1)
    told = evenhand.compare(judged(answers("a", "b", n=10), tmp_path / "two"), by="system")["comparisons"][0]
    assert "Holm" not in told["verdict"]


def test_counts_are_of_the_system_the_answer_names(tmp_path: Path) -> None:
    """Where the first system is the better one, its wins are told as better, not as worse."""
    items = answers("a", "b", n=60)
    turned = [items[k ^ 1] for k in range(len(items))]
    text = " ".join(
        CliRunner().invoke(cli, ["compare", str(judged(turned, tmp_path)), "--by", "system"]).output.split()
    )
    found = evenhand.compare(tmp_path / "run", by="system")["comparisons"][0]
    assert (found["a"], found["b"]) == ("b", "a")
    assert f"b is better than a by {-found['difference']['value']:.2f}" in text
    assert f"{found['losses']} better, {found['ties']} equal, {found['wins']} worse; effect " in text


def test_the_command_prints_answers_and_json(tmp_path: Path) -> None:
    """Means first, then an answer in words for each two systems with what it rests on; the same as JSON."""
    run = judged(answers("a", "b"), tmp_path)
    printed = CliRunner().invoke(cli, ["compare", str(run), "--by", "system"], catch_exceptions=False).output
    text = " ".join(printed.split())
    assert "b is better than a by" in text
    assert "12 questions answered by both:" in text
    assert "fewer than 50 questions: the interval is rough" in text
    told = json.loads(CliRunner().invoke(cli, ["compare", str(run), "--by", "system", "--json"]).output)
    assert told["comparisons"][0]["questions"] == 12


@pytest.mark.parametrize("shared", [True, False], ids=["paired", "unpaired"])
def test_an_interval_ends_where_the_scale_does(shared: bool, tmp_path: Path) -> None:
    """On a scale from 1 to 5 no difference is beyond 4 points, however few questions there are, nor one to look for."""
    rows = [
        {"question": f"q{k}{'' if shared else system}", "answer": f"score {score}.", "system": system}
        for system, scores in (("a", (1, 5)), ("b", (5, 2)))
        for k, score in enumerate(scores)
    ]
    (found,) = evenhand.compare(judged(rows, tmp_path), by="system")["comparisons"]
    assert found["difference"]["value"] == 0.5
    assert found["difference"]["ci"] == [-4, 4]
    assert found["detectable"] is None
    assert found["paired"] is shared


def test_a_system_that_is_a_number_has_one_name(tmp_path: Path) -> None:
    """A whole number is one system, written as a float or not."""
    rows = [
        {"question": f"q{k}", "answer": f"score {score}.", "system": system if k % 2 else float(system)}
        for system in (1, 2)
        for k, score in enumerate((1, 5, 2))
    ]
    told = evenhand.compare(judged(rows, tmp_path), by="system")
    assert {name: system["planned"] for name, system in told["systems"].items()} == {"1": 3, "2": 3}


def test_runs_of_several_answers_are_counted_by_question(tmp_path: Path) -> None:
    """Two runs of three systems' answers share items, and their questions are what is independent, and what is told."""
    first = [{**row, "id": f"{row['question']}-{row['system']}"} for row in answers("a", "b", "c", n=20)]
    draw = random.Random(3)
    second = [{**row, "answer": f"score {min(5, max(1, row['want'] + draw.randint(-1, 1)))}."} for row in first]
    runs = [judged(first, tmp_path / "one"), judged(second, tmp_path / "two")]
    (found,) = evenhand.compare(runs)["comparisons"]
    assert (found["pairs"], found["questions"], found["difference"]["clusters"]) == (60, 20, 20)
    gaps = np.array([int(b["answer"][6]) - a["want"] for a, b in zip(first, second, strict=True)]).reshape(20, 3)
    theirs = stats.ttest_1samp(gaps.mean(axis=1), 0).confidence_interval(0.95)
    assert found["difference"]["ci"] == pytest.approx([theirs.low, theirs.high])
    printed = CliRunner().invoke(cli, ["compare", *map(str, runs)], catch_exceptions=False).output
    assert "60 answers to 20 questions by both: " in " ".join(printed.split())


def test_composites_of_other_weights_are_not_compared(tmp_path: Path) -> None:
    """The criteria still are; a warning tells the weights of both runs, and show has its own beside the composite."""
    script = write_script(tmp_path / "s.jsonl", (None, {"reason": "r", "truth": 3, "style": 1}))
    runs = [str(tmp_path / name) for name in "ab"]
    for run in runs:
        run_it(rows(4), TWO, script, run)
    assert {c["measure"] for c in evenhand.compare(runs)["comparisons"]} == {"composite", "truth", "style"}
    CliRunner().invoke(cli, ["rescore", runs[1], "--weights", "truth=0.5,style=0.5"], catch_exceptions=False)
    told = evenhand.compare(runs)
    assert {c["measure"] for c in told["comparisons"]} == {"truth", "style"}
    (warning,) = told["warnings"]
    assert f"{runs[0]}: 0.75 truth, 0.25 style; {runs[1]}: 0.5 truth, 0.5 style" in warning
    assert evenhand.Run(runs[1]).summary()["composite"]["weights"] == {"truth": 0.5, "style": 0.5}
    assert "0.5 truth, 0.5 style" in CliRunner().invoke(cli, ["show", runs[1]], catch_exceptions=False).output


def test_a_question_answered_twice_is_told(tmp_path: Path) -> None:
    """Its answers count by their mean; planned and n are both of questions."""
    items = answers("a", "b", n=3)
    items.append({**items[0], "answer": "score 5."})
    told = evenhand.compare(judged(items, tmp_path), by="system")
    assert told["warnings"] == ["a gave 4 answers to 3 questions: those to one question count by their mean"]
    a = told["systems"]["a"]
    assert (a["planned"], a["answers"], a["truth"]["n"]) == (3, 4, 3)


def test_runs_of_unlike_items_are_compared_on_the_shared_ones(tmp_path: Path) -> None:
    """The answer says so, and the means on them stand beside those of each run."""
    first = [{**row, "id": row["question"]} for row in answers("a", n=9)]
    runs = [judged(first, tmp_path / "one"), judged(first[:3], tmp_path / "two")]
    (found,) = evenhand.compare(runs)["comparisons"]
    mean = sum(row["want"] for row in first[:3]) / 3
    assert (found["unlike"], found["means"]) == (True, pytest.approx([mean, mean]))
    assert "have the same mean on the 3 questions of both" in found["verdict"]
    printed = CliRunner().invoke(cli, ["compare", *map(str, runs)], catch_exceptions=False).output
    assert f"their means there {mean:.2f} (" in " ".join(printed.split())


def test_runs_without_a_common_id_are_paired_by_question(tmp_path: Path) -> None:
    """The same questions under other ids are still the same questions; a warning says how they were paired."""
    first = [{**row, "id": f"x{k}"} for k, row in enumerate(answers("a"))]
    second = [{**row, "id": f"y{k}"} for k, row in enumerate(reversed(first))]
    runs = [judged(first, tmp_path / "one"), judged(second, tmp_path / "two")]
    told = evenhand.compare(runs)
    (found,) = told["comparisons"]
    assert (found["paired"], found["questions"], found["ties"]) == (True, 12, 12)
    assert told["warnings"] == ["the runs have no id in common: their answers are paired by question"]
