"""Figures published with public data sets, reproduced from the data."""

from __future__ import annotations

import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.stats.agreement import cohen_kappa, confusion, exact_agreement, fleiss_kappa, krippendorff_alpha
from evenhand.stats.association import bias, kendall, mean_absolute_error, pearson, spearman
from evenhand.stats.elo import sequential_elo
from evenhand.stats.pairwise import separability
from evenhand.stats.resample import Resampling, mean_interval
from evenhand.stats.table import Ratings

Shared = Callable[[str], Path]
PLAIN = Resampling(draws=0)


def _pairs(a: list[Any], b: list[Any], categories: tuple[Any, ...]) -> Ratings:
    return Ratings.of(list(zip(a, b, strict=True)), "nominal", categories=categories, raters=("judge", "person"))


def _kappa(a: list[Any], b: list[Any]) -> float:
    kappa = cohen_kappa(_pairs(a, b, tuple(dict.fromkeys([*a, *b]))), resampling=PLAIN)
    assert kappa.value is not None
    return kappa.value


LLMBAR = """
FairEval / GPT-4 / Vanilla_NoRules | 66 | 72.7273 | 38 | 46 | 0.427083 | 0 | 0.513274 / 0.394760
GPTInst / GPT-4 / CoT | 92 | 83.1522 | 72 | 83 | 0.803977 | 0 | 0.631132 / 0.695796
GPTInst / LLaMA2 / CoT | 92 | 35.8696 | 12 | 48 | 0.183320 | 2 | -0.271790 / -0.264678
GPTOut / ChatGPT / CoT | 47 | 44.6809 | 7 | 19 | 0.113208 | 1 | -0.058925 / -0.115982
GPTOut / Falcon / CoT | 47 | 51.0638 | 3 | 5 | 0.006042 | 0 | -0.005133 / 0.053691
GPTOut / GPT-4 / CoT | 47 | 74.4681 | 32 | 41 | 0.741758 | 0 | 0.577338 / 0.408273
GPTOut / LLaMA2 / CoT | 47 | 44.6809 | 6 | 17 | 0.019471 | 0 | -0.064460 / -0.142056
GPTOut / PaLM2 / CoT | 47 | 58.5106 | 13 | 18 | 0.060648 | 0 | 0.022530 / 0.342964
MT-Bench / GPT-4 / Vanilla_NoRules | 200 | 81.0000 | 149 | 174 | 0.740104 | 0 | 0.589918 / 0.650070
Manual / ChatGPT / CoT | 46 | 35.8696 | 5 | 23 | 0.164297 | 1 | -0.188192 / -0.337711
Manual / GPT-4 / CoT | 46 | 73.9130 | 30 | 38 | 0.646833 | 0 | 0.432638 / 0.518095
Manual / GPT-4 / Rating_Metrics_Reference | 46 | 84.7826 | 35 | 38 | 0.662385 | 0 | 0.780952 / 0.611632
Manual / GPT-4 / Vanilla | 46 | 80.4348 | 33 | 38 | 0.652174 | 0 | 0.521739 / 0.693333
Manual / LLaMA2 / CoT | 46 | 39.1304 | 6 | 22 | 0.150769 | 1 | -0.166667 / -0.243243
Manual / PaLM2 / CoT | 46 | 55.4348 | 13 | 20 | 0.132075 | 2 | -0.055046 / 0.322284
Natural / ChatGPT / CoT | 100 | 74.0000 | 56 | 64 | 0.361780 | 1 | 0.426825 / 0.526678
Natural / ChatGPT / Rating | 100 | 68.5000 | 45 | 53 | 0.228496 | 0 | 0.432810 / 0.306597
Natural / Falcon / CoT | 100 | 57.0000 | 14 | 14 | 0.011267 | 0 | 0.103376 / 0.188312
Natural / GPT-4 / CoT | 100 | 94.5000 | 90 | 91 | 0.816026 | 0 | 0.877651 / 0.897035
Natural / GPT-4 / Metrics_Reference | 100 | 96.0000 | 94 | 96 | 0.917932 | 0 | 0.897709 / 0.938221
Natural / GPT-4 / Rating | 100 | 92.0000 | 87 | 90 | 0.795417 | 0 | 0.832496 / 0.837925
Natural / GPT-4 / Swap_CoT | 100 | 94.0000 | 94 | 100 | 1.000000 | 0 | 0.877651 / 0.877651
Natural / GPT-4 / Vanilla | 100 | 95.5000 | 93 | 95 | 0.897709 | 0 | 0.897709 / 0.917898
Natural / LLaMA2 / CoT | 100 | 75.5000 | 59 | 67 | 0.362442 | 0 | 0.453978 / 0.564677
Natural / LLaMA2 / Vanilla | 100 | 80.5000 | 70 | 79 | 0.573171 | 0 | 0.573171 / 0.630542
Natural / PaLM2 / CoT | 100 | 73.0000 | 55 | 64 | 0.343066 | 2 | 0.405903 / 0.507916
Natural / PaLM2 / Vanilla | 100 | 83.0000 | 73 | 80 | 0.584027 | 4 | 0.561753 / 0.753086
""".strip().splitlines()


def _llmbar(shared: Shared, where: str) -> tuple[list[str], list[str], list[str], dict[str, Any]]:
    """Labels, winners in either order ("none" where unread), and what the authors wrote."""
    subset, judge, strategy = where.split(" / ")
    folder = shared(f"data/llmbar/{subset}/evaluators/{judge}/{strategy}")
    items = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    published = json.loads((folder / "statistics.json").read_text(encoding="utf-8"))
    orders = [[item["results"][-1][f"swap = {swap}"]["winner"] or "none" for item in items] for swap in (False, True)]
    return [str(item["label"]) for item in items], *orders, published


@pytest.mark.parametrize("line", LLMBAR, ids=[line.split(" |")[0] for line in LLMBAR])
def test_llmbar_counts_and_kappas(shared: Shared, line: str) -> None:
    """Counts, order agreement and kappas of every LLMBar result file; an unread winner is a class of its own."""
    where, n, correct, both, equal, between, unread, against = (part.strip() for part in line.split("|"))
    label, first, second, _ = _llmbar(shared, where)
    assert len(label) == int(n)
    right = [sum(a == b for a, b in zip(order, label, strict=True)) for order in (first, second)]
    assert round(100 * sum(right) / (2 * len(label)), 4) == float(correct)
    agree = exact_agreement(_pairs(first, second, ("1", "2", "none")))
    assert agree.value is not None and round(agree.value * agree.n) == int(equal)
    assert sum(a == b == c for a, b, c in zip(first, second, label, strict=True)) == int(both)
    assert [*first, *second].count("none") == int(unread)
    truths = [float(k) for k in against.split("/")]
    assert [round(_kappa(order, label), 6) for order in (first, second)] == pytest.approx(truths, abs=1.01e-6)
    as_published = [["2" if w == "none" else w for w in order] for order in (first, second)]
    assert round(_kappa(*as_published), 6) == pytest.approx(float(between), abs=1.01e-6)


@pytest.mark.parametrize("line", LLMBAR, ids=[line.split(" |")[0] for line in LLMBAR])
def test_llmbar_published_kappas_are_miscoded(shared: Shared, line: str) -> None:
    """The authors' kappas against the label compare winners coded 1 / 0 with labels coded 1 / 2: not agreement."""
    where = line.split(" |")[0]
    label, first, second, published = _llmbar(shared, where)
    for order, key in ((first, "kappa_False"), (second, "kappa_True")):
        miscoded = ["1" if winner == "1" else "0" for winner in order]
        assert _kappa(miscoded, label) == pytest.approx(published[key], abs=1e-9)
        assert published[key] != pytest.approx(_kappa(order, label), abs=1e-3)
    as_published = [["2" if w == "none" else w for w in order] for order in (first, second)]
    assert _kappa(*as_published) == pytest.approx(published["kappa_agreement"], abs=1e-9)
    correct = float(re.match(r"(\d+) / ", published["correct_both"])[1])  # type: ignore[index]
    assert correct == sum(a == b == c for a, b, c in zip(first, second, label, strict=True))


def test_hhh_alignment_sizes(shared: Shared) -> None:
    """The four subsets have 58, 59, 61 and 43 pairs."""
    items = json.loads(shared("data/hhh_alignment/hhh_alignment_eval.json").read_text(encoding="utf-8"))
    sizes = {"harmless": 58, "helpful": 59, "honest": 61, "other": 43}
    assert Counter(item["source"] for item in items) == sizes
    assert len(items) == 221


def _pandalm(shared: Shared, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        shared(f"data/pandalm/{name}-testset-v1.json".replace("/-", "/")).read_text()
    )
    return sorted(found, key=lambda row: row["idx"])


def test_pandalm_annotators(shared: Shared) -> None:
    """Kappas of the three PandaLM annotators, and their common agreement."""
    rows = _pandalm(shared, "")
    votes = [[row[f"annotator{i}"] for i in (1, 2, 3)] for row in rows]
    ratings = Ratings.of(votes, "nominal", categories=(0, 1, 2), raters=("1", "2", "3"))
    for a, b, kappa in (("1", "2", 0.852023), ("1", "3", 0.878944), ("2", "3", 0.861661)):
        found = cohen_kappa(ratings.select([a, b]))
        assert found.value == pytest.approx(kappa, abs=5.1e-7)
        assert found.n == 999 and found.low is not None and found.high is not None
        assert 0.01 < found.high - found.low < 0.1
    assert fleiss_kappa(ratings, resampling=PLAIN).value == pytest.approx(0.864175, abs=5.1e-7)
    assert krippendorff_alpha(ratings, resampling=PLAIN).value == pytest.approx(0.864221, abs=5.1e-7)
    assert sum(len(set(v)) == 1 for v in votes) == 879
    assert Counter(_majority(v) for v in votes) == {0: 105, 1: 422, 2: 472}


def _majority(votes: list[int]) -> int:
    return Counter(votes).most_common(1)[0][0]


@pytest.mark.parametrize(
    ("name", "field", "figures", "kappa"),
    [
        ("gpt-3.5-turbo", "gpt_result", (0.710711, 0.587919, 0.573623, 0.575538), 0.495784),
        ("pandalm-7b", "pandalm_result", (0.667668, 0.573831, 0.574969, 0.574305), 0.435355),
    ],
)
def test_pandalm_judges(shared: Shared, name: str, field: str, figures: tuple[float, ...], kappa: float) -> None:
    """Accuracy, macro precision, recall, F1 and kappa of the two published judges against the majority."""
    people = [_majority([row[f"annotator{i}"] for i in (1, 2, 3)]) for row in _pandalm(shared, "")]
    raw = [str(row[field]) for row in _pandalm(shared, name)]
    judge = [int(r) if r in ("0", "1", "2") else 0 for r in raw]  # as published: a tie and garbage are class 0
    ratings = _pairs(judge, people, (0, 1, 2))
    table = confusion(ratings)
    found = (table.accuracy, table.macro("precision"), table.macro("recall"), table.macro("f1"))
    assert found == pytest.approx(figures, abs=5.1e-7)
    assert cohen_kappa(ratings, resampling=PLAIN).value == pytest.approx(kappa, abs=5.1e-7)
    if name == "gpt-3.5-turbo":
        assert Counter(raw) == {"2": 476, "1": 460, "Tie": 38, "garbage": 25}
        honest = [None if r == "garbage" else j for r, j in zip(raw, judge, strict=True)]
        exact = exact_agreement(_pairs(honest, people, (0, 1, 2)))
        assert exact.value == pytest.approx(0.715606, abs=5.1e-7)
        assert (exact.n, exact.missing) == (974, {"no rating by judge": 25})


def test_faireval_agreement(shared: Shared) -> None:
    """GPT-4's single-order review against the FairEval people: agreement 0.525, kappa 0.228."""
    people = shared("data/faireval_human/review_gpt35_vicuna-13b_human.txt").read_text().split()
    reviews = shared("data/vicuna_blog_eval/review/review_gpt35_vicuna-13b.jsonl").read_text().splitlines()
    scores = {r["question_id"]: r["score"] for r in map(json.loads, reviews)}
    judge = [("TIE", "CHATGPT", "VICUNA13B")[int(np.sign(a - b))] for _, (a, b) in sorted(scores.items())]
    assert Counter(people) == {"CHATGPT": 41, "VICUNA13B": 25, "TIE": 14}
    assert [judge.count(c) for c in ("CHATGPT", "VICUNA13B", "TIE")] == [44, 14, 22]
    ratings = _pairs(judge, people, ("CHATGPT", "TIE", "VICUNA13B"))
    assert exact_agreement(ratings).value == pytest.approx(0.525, abs=1e-12)
    assert cohen_kappa(ratings, resampling=PLAIN).value == pytest.approx(0.228035, abs=5.1e-7)


def _tsv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_openqa_people(shared: Shared) -> None:
    """The two annotators of OpenQA-eval, blanks left out and, as published, as a class of their own."""
    rows = _tsv(shared("data/openqa_eval/NQ301_human.tsv"))
    assert Counter(row["Acceptable?"] for row in rows) == {"Yes": 816, "No": 674}
    assert sum(bool(row["annotator3"]) for row in rows) == 223
    first, second = ([row[f"annotator{i}"] or None for row in rows] for i in (1, 2))
    ratings = Ratings.of(list(zip(first, second, strict=True)), "nominal", raters=("1", "2"))
    exact, kappa = exact_agreement(ratings), cohen_kappa(ratings, resampling=PLAIN)
    assert (round(exact.value or 0, 6), round(kappa.value or 0, 6), exact.n) == (0.86851, 0.734719, 1483)
    assert exact.missing == kappa.missing == {"no rating by 2": 7}
    blanks = _pairs([a or "" for a in first], [b or "" for b in second], ("Yes", "No", ""))
    assert round(exact_agreement(blanks).value or 0, 6) == 0.86443
    assert round(cohen_kappa(blanks, resampling=PLAIN).value or 0, 6) == 0.727699


def test_openqa_judge(shared: Shared) -> None:
    """GPT-4 against the people of OpenQA-eval: accuracy, kappa, sensitivity and specificity."""
    people = {
        (r["Question"], r["Model answer"]): r["Acceptable?"] for r in _tsv(shared("data/openqa_eval/NQ301_human.tsv"))
    }
    judge = {
        (r["Question"], r["Model answer"]): r["Acceptable?"] for r in _tsv(shared("data/openqa_eval/NQ301_gpt-4.tsv"))
    }
    common = [key for key in people if key in judge]
    ratings = _pairs([judge[k] or None for k in common], [people[k] for k in common], ("No", "Yes"))
    table = confusion(ratings)
    assert table.counts == ((582, 137), (89, 678))
    assert (len(common), table.n, table.missing) == (1488, 1486, {"no rating by judge": 2})
    assert round(table.accuracy or 0, 6) == 0.847914
    assert round(cohen_kappa(ratings, resampling=PLAIN).value or 0, 6) == 0.694873
    assert (round(table.recall("Yes") or 0, 6), round(table.recall("No") or 0, 6)) == (0.831902, 0.867362)


@pytest.mark.parametrize(("system", "acceptable", "judge"), [("zeroshot", 71.1, 68.4), ("fewshot-n64", 75.1, 68.4)])
def test_openqa_systems(shared: Shared, system: str, acceptable: float, judge: float) -> None:
    """Shares of acceptable answers of a system, by people and by GPT-4; an answer nobody rated counts against it."""

    def key(question: str, answer: str) -> tuple[str, str]:
        return question, re.sub(r"[^\w\s]", "", answer.lower()).strip()

    lines = shared(f"data/openqa_eval/NQ301_text-davinci-003_{system}.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [(row["question"], row["prediction"]) for row in map(json.loads, lines)]
    answers = [key(question, text[0] if isinstance(text, list) else text) for question, text in texts]
    assert len(answers) == 301
    for name, share in (("human", acceptable), ("gpt-4", judge)):
        rated = _tsv(shared(f"data/openqa_eval/NQ301_{name}.tsv"))
        verdicts = {key(row["Question"], row["Model answer"]): row["Acceptable?"] for row in rated}
        assert round(100 * sum(verdicts.get(a) == "Yes" for a in answers) / 301, 1) == share


def test_gaokao_subjects(shared: Shared) -> None:
    """The judge's scoring rates of ten Gaokao subjects against those of human teachers."""
    total = json.loads(shared("data/gaokao_bench/model_score.json").read_text(encoding="utf-8"))
    assert (total["correct_score"], total["total_score"], total["question_num"]) == (7672.83, 11839.0, 1030)
    people = {
        "Chinese": 51.5, "English": 88.3, "Math_1": 24.1, "Math_2": 27.9, "Physics": 56.7, "Chemistry": 35.0,
        "Biology": 85.6, "Politics": 50.0, "History": 63.1, "Geography": 70.0,
    }  # fmt: skip
    rates = {name: 100 * s["correct_score"] / s["total_score"] for name, s in total["subject"].items()}
    listed = [70.87, 76.12, 27.07, 33.48, 50.79, 53.08, 79.89, 93.59, 88.45, 84.64]
    assert [round(rates[name], 2) for name in people] == listed
    ratings = Ratings.of([[rates[name], people[name]] for name in people], "interval", raters=("judge", "people"))
    figures = [f(ratings).value for f in (pearson, spearman, kendall)]
    assert [round(f or 0, 6) for f in figures] == [0.723674, 0.575758, 0.377778]
    lenient = bias(ratings)
    assert round(lenient.value or 0, 3) == 10.578
    assert round(mean_absolute_error(ratings).value or 0, 3) == 15.338
    assert lenient.warnings == ("fewer than 50 items: the interval is rough",)


def test_gaokao_types(shared: Shared) -> None:
    """The points of every question type here add up to the total its authors wrote."""
    total = json.loads(shared("data/gaokao_bench/model_score.json").read_text(encoding="utf-8"))
    written = {name: t for s in total["subject"].values() for name, t in s["type"].items()}
    folder = shared("data/gaokao_bench")
    seen = 0
    for name, figures in written.items():
        path = folder / f"gpt-4-0314_{name}_wo_marking_criterion.json"
        if not path.exists():
            continue
        seen += 1
        items = json.loads(path.read_text(encoding="utf-8"))["example"]
        points = math.fsum(x for item in items for x in item["model_correction_score"])
        assert points == pytest.approx(figures["correct_score"], abs=0.005), name
        assert math.fsum(item["score"] for item in items) == figures["total_score"], name
        assert len(items) == figures["question_num"], name
    assert seen == 12


def test_qlora_elo(shared: Shared) -> None:
    """The paper's Elo table within 1 point: K = 4, start 1000, ties half, mean over random orders. K = 32 is not it."""
    table = {
        "gpt4": 1348, "65b-guanaco": 1022, "30b-guanaco": 992, "vicuna-13b": 974, "gpt35": 966, "13b-guanaco": 916,
        "bard": 902, "7b-guanaco": 879,
    }  # fmt: skip
    names, rows = list(table), []
    for path in sorted(shared("data/qlora_gpt4_pairwise").glob("*.jsonl")):
        sides = path.name.split("-gpt-4-reviewer")[0].split("-vs-")
        pair = [names.index(s.removeprefix("answer-").split("-vicuna-generations")[0]) for s in sides]
        scores = [json.loads(line)["score"] for line in path.read_text(encoding="utf-8").splitlines()]
        rows += [(*pair, {1: 1.0, 2: 0.0, 3: 0.5}[score]) for score in scores if score != -1]
    first, second, points = zip(*rows, strict=True)
    assert (len(rows), points.count(1.0), points.count(0.0), points.count(0.5)) == (4467, 2512, 1355, 600)
    found = sequential_elo(first, second, points, k=4, orders=4000)
    assert found.mean == pytest.approx(list(table.values()), abs=1)
    assert found.mean.sum() == pytest.approx(8000)
    faster = sequential_elo(first, second, points, k=32, orders=200)
    assert faster.mean[[0, 7]] == pytest.approx([1375, 873], abs=3)


Stats = dict[str, dict[str, Any]]
ARENA = {"mt_bench": "arena_to_mt_bench", "arena_hard": "arena_to_arena_hard", "alpaca_LC": "alpaca_to_arena"}


def _arena(shared: Shared, name: str) -> Stats:
    lines = shared(f"data/arena_hard_stats/bootstrap_stats_{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["model"]: row for row in map(json.loads, lines)}


def _in_arena(shared: Shared, name: str) -> Stats:
    """The 20 models that all have, by their names in Chatbot Arena."""
    names = json.loads(shared(f"data/arena_hard_stats/{ARENA[name]}.json").read_text(encoding="utf-8"))
    found = {model.lower(): row for model, row in _arena(shared, name).items()}  # the map's case is not the files'
    pairs = ((theirs, arena) if name == "alpaca_LC" else (arena, theirs) for arena, theirs in names.items())
    return {arena: found[theirs.lower()] for arena, theirs in pairs}


@pytest.mark.parametrize(
    ("name", "models", "overlapping", "separable"),
    [
        ("mt_bench", 25, 197, 34.33), ("alpaca_LC", 20, 23, 87.89), ("arena_hard", 28, 76, 79.89),
        ("20k_votes_elo", 20, 51, 73.16), ("arena_hard:20", 20, 30, 84.21), ("mt_bench:20", 20, 121, 36.32),
    ],
)  # fmt: skip
def test_separability(shared: Shared, name: str, models: int, overlapping: int, separable: float) -> None:
    """The published shares of pairs of models with separate 95 % intervals, of all models and of the 20 in common."""
    benchmark, _, common = name.partition(":")
    rows = _in_arena(shared, benchmark) if common else _arena(shared, benchmark)
    assert len(rows) == models
    found = separability([(row["lower"], row["upper"]) for row in rows.values()])
    assert found.value is not None and found.n == models * (models - 1) // 2
    assert round(found.n * (1 - found.value)) == overlapping
    assert round(100 * found.value, 2) == separable


@pytest.mark.parametrize(
    ("name", "rho", "tau"),
    [("arena_hard", 0.921805, 0.789474), ("mt_bench", 0.887218, 0.736842), ("alpaca_LC", 0.870677, 0.684211)],
)
def test_benchmarks_rank_as_people_vote(shared: Shared, name: str, rho: float, tau: float) -> None:
    """Rank correlations of three benchmarks with 20,000 votes over 20 models."""
    votes, scores = _arena(shared, "20k_votes_elo"), _in_arena(shared, name)
    assert votes.keys() == scores.keys()
    pairs = [[scores[model]["score"], votes[model]["score"]] for model in votes]
    ratings = Ratings.of(pairs, "interval", raters=("benchmark", "votes"))
    assert round(spearman(ratings).value or 0, 6) == rho
    assert round(kendall(ratings).value or 0, 6) == tau


def test_arena_hard_percentiles(shared: Shared) -> None:
    """The bounds of every model are the 2.5 and 97.5 percentiles of its bootstrap replicates."""
    rows = _arena(shared, "arena_hard")
    for row in rows.values():
        assert np.quantile(row["results"], [0.025, 0.975]) == pytest.approx([row["lower"], row["upper"]], abs=1e-9)
    turbo = rows["gpt-3.5-turbo-1106"]
    assert [turbo[name] for name in ("score", "lower", "upper")] == pytest.approx([18.87, 16.2795, 21.80075], abs=1e-9)
    assert len(turbo["results"]) == 1000


def _alpaca(shared: Shared, name: str) -> Stats:
    with shared(f"data/alpaca_eval_leaderboards/{name}_leaderboard.csv").open(encoding="utf-8", newline="") as file:
        return {row[""]: row for row in csv.DictReader(file)}


def _of_counts(row: dict[str, str]) -> tuple[float, float]:
    """Win rate and its standard error in percent from wins, losses and draws alone."""
    counts = [int(float(row[name])) for name in ("n_wins", "n_draws", "n_wins_base")]
    assert sum(counts) == int(float(row["n_total"]))
    found = mean_interval(np.repeat([1.0, 0.5, 0.0], counts))
    assert found.value is not None
    assert found.se is not None or found.reason == "all values equal: no interval"
    return 100 * found.value, 100 * (found.se or 0.0)


def test_alpaca_eval_1_from_counts(shared: Shared) -> None:
    """All 102 win rates and 99 of the 102 standard errors; the other three were written with other errors."""
    rows = _alpaca(shared, "alpaca_eval_gpt4")
    found = {name: _of_counts(row) for name, row in rows.items()}
    assert len(rows) == 102
    assert [rate for rate, _ in found.values()] == pytest.approx(
        [float(r["win_rate"]) for r in rows.values()], abs=6e-9
    )
    off = {name for name, row in rows.items() if abs(found[name][1] - float(row["standard_error"])) > 5e-9}
    assert off == {"humpback-llama2-70b", "humpback-llama-65b", "baize-v2-7b"}
    assert found["alpaca-7b"] == pytest.approx((26.459627329192543, 1.535711469748), abs=1e-12)


def test_alpaca_eval_2_from_counts(shared: Shared) -> None:
    """222 of 223 unweighted win rates; one row's counts and rate don't go together. Weighted rates need more."""
    rows = _alpaca(shared, "weighted_alpaca_eval_gpt4_turbo")
    off = {n for n, row in rows.items() if abs(_of_counts(row)[0] - float(row["discrete_win_rate"])) > 1e-9}
    assert len(rows) == 223
    assert off == {"aligner-2b_gpt-4-turbo-2024-04-09"}
    weighted = {n for n, row in rows.items() if abs(_of_counts(row)[0] - float(row["win_rate"])) > 1e-6}
    assert len(weighted) == 221
