"""A run's figures corrected by the labels of some of its items."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from evenhand.api import Run
from evenhand.cli.main import cli
from evenhand.cli.main import run as command
from evenhand.errors import InputError, UnknownNameError
from evenhand.stats.correction import Sample, prediction_powered_mean
from evenhand.stats.resample import mean_interval
from rubric_texts import rubric
from runs import TWO, run_it, write_jsonl, write_script

YES = rubric(
    "rubric: yes\nmode: score\nitem: {required: {question: text, answer: text}}\n"
    "criteria:\n  - {name: ok, text: Is it right?, scale: {range: [0, 1]}}\n"
    "  - {name: tone, text: Which tone?, scale: {values: [warm, cool, cold], level: nominal}}\n"
)
PAIR = rubric(
    "rubric: two\nmode: compare\nitem: {required: {prompt: text, response_a: text, response_b: text}}\n"
    "scales: {side: {values: [A, B, tie], level: nominal, slots: true}}\n"
    "criteria: [{name: better, text: Which is better?, scale: side}]\n"
)


def items(n: int) -> list[dict[str, Any]]:
    """Answers of two systems to each question, in turn."""
    return [
        {"id": f"i{k:03}", "question": f"What is {k // 2}?", "answer": f"It is {k:03}.", "system": "ab"[k % 2]}
        for k in range(n)
    ]


def judged(tmp_path: Path, said: list[dict[str, Any]], of: Any = TWO, rows: list[dict[str, Any]] | None = None) -> Run:
    """A run whose judge says just this of each item."""
    rows = items(len(said)) if rows is None else rows
    rules = [(row.get("answer", row.get("prompt")), values) for row, values in zip(rows, said, strict=True)]
    run_it(rows, of, write_script(tmp_path / "s.jsonl", *rules), tmp_path / "run", reason=False)
    return Run(tmp_path / "run")


def scored(n: int, seed: int = 5) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What a generous judge says, and the truth."""
    draw = random.Random(seed)
    true = [{"truth": draw.randint(0, 3), "style": draw.randint(0, 4)} for _ in range(n)]
    return [{"truth": t["truth"] + (draw.random() < 0.7), "style": t["style"]} for t in true], true


@pytest.fixture(scope="module")
def generous(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, list[dict[str, Any]], list[dict[str, Any]]]:
    """A run of 160 items, what its judge says, and the truth."""
    said, true = scored(160)
    return judged(tmp_path_factory.mktemp("generous"), said), said, true


def labels(true: list[dict[str, Any]], chosen: list[int], raters: str = "x") -> list[dict[str, Any]]:
    """Labels of some items."""
    return [{"id": f"i{k:03}", "rater": who, **true[k]} for k in chosen for who in raters]


def chosen(n: int, of: int, seed: int = 1) -> list[int]:
    """A random choice of items."""
    return sorted(random.Random(seed).sample(range(of), n))


def test_figures_are_those_of_the_statistics(generous: Any) -> None:
    """Raw and corrected means of criteria and composite are those of the arrays; the counts say what they rest on."""
    run, said, true = generous
    known, asked = chosen(60, 160), np.arange(160) // 2
    told = run.correction(labels(true, known, "xy"))
    assert told["items"] == {"judged": 160, "labelled": 60}
    assert set(told["measures"]) == {"truth", "style", "composite"}
    judge = np.array([s["truth"] for s in said], dtype=float)
    truth = np.full(160, np.nan)
    truth[known] = [true[k]["truth"] for k in known]
    found = told["measures"]["truth"]
    assert found["raw"] == mean_interval(judge, asked, low=0, high=4).of_unit("question").as_dict()
    expected = prediction_powered_mean(Sample.of(judge, truth, asked), low=0, high=4, step=1)
    assert found["corrected"]["value"] == pytest.approx(expected.value, abs=1e-9)
    assert found["corrected"]["ci"] == pytest.approx(expected.ci, abs=1e-9)
    assert (found["judged"], found["labelled"]) == (160, 60)
    mean = np.mean([t["truth"] for t in true])
    assert found["raw"]["ci"][0] > mean
    assert found["corrected"]["ci"][0] < mean < found["corrected"]["ci"][1]
    composite = told["measures"]["composite"]
    assert composite["corrected"]["value"] == pytest.approx(
        0.75 * found["corrected"]["value"] + 0.25 * np.mean([t["style"] for t in true]), abs=0.15
    )
    assert told["warnings"] == []


def test_several_raters_count_by_their_mean(generous: Any) -> None:
    """Two people who differ by two points count as the point between them."""
    run, _, true = generous
    known = chosen(60, 160)
    apart = labels([{**t, "style": 1} for t in true], known, "x") + labels(
        [{**t, "style": 3} for t in true], known, "y"
    )
    told = run.correction(apart)["measures"]["style"]["corrected"]
    assert told["value"] == pytest.approx(2.0)
    assert told["reason"] == "all labels equal: no interval"


@pytest.mark.parametrize("method", ["isotonic", "two-stage"])
def test_calibration_corrects_too(generous: Any, method: Any) -> None:
    """The other methods for points: the truth lies in their intervals."""
    run, _, true = generous
    told = run.correction(labels(true, chosen(60, 160)), method=method)["measures"]["truth"]["corrected"]
    assert told["ci"][0] < np.mean([t["truth"] for t in true]) < told["ci"][1]
    assert "isotonic" in told["method"]


def test_systems_and_their_differences(generous: Any) -> None:
    """With --by each system has figures, and each two a corrected difference and a win rate on the same questions."""
    run, _, true = generous
    pairs = [k for p in chosen(30, 80) for k in (2 * p, 2 * p + 1)]
    told = run.correction(labels(true, pairs), by="system")["by"]
    assert {name: of["truth"]["labelled"] for name, of in told["groups"].items()} == {"a": 30, "b": 30}
    first = next(d for d in told["differences"] if d["measure"] == "truth")
    gap = [true[2 * k + 1]["truth"] - true[2 * k]["truth"] for k in range(80)]
    assert (first["a"], first["b"]) == ("a", "b")
    assert first["corrected"]["ci"][0] < np.mean(gap) < first["corrected"]["ci"][1]
    assert first["win_rate"]["ci"][0] < np.mean(np.sign(gap) / 2 + 0.5) < first["win_rate"]["ci"][1]
    assert "paired by question" in first["corrected"]["method"]
    with pytest.raises(UnknownNameError, match="nope"):
        run.correction(labels(true, pairs), by="nope")


def test_the_figures_of_all_do_not_depend_on_by(generous: Any) -> None:
    """Answers to one question are one cluster, whether or not the run is broken down; the method says so."""
    run, _, true = generous
    known = labels(true, chosen(60, 160))
    plain, broken = run.correction(known), run.correction(known, by="system")
    assert plain["measures"] == broken["measures"]
    for figure in (plain["measures"]["truth"][name] for name in ("raw", "corrected")):
        assert (figure["clusters"], figure["cluster"]) == (80, "question")
        assert figure["method"].endswith("clustered by question")


def test_labels_of_one_system_are_told(generous: Any) -> None:
    """Labels that are all of one system's answers are no random sample, and the figures say so."""
    run, _, true = generous
    told = run.correction(labels(true, list(range(0, 100, 2))))
    assert any("50 of 50 labelled items have system 'a'" in text for text in told["warnings"])


def test_labels_of_good_answers_only_are_told(generous: Any) -> None:
    """Labels of what the judge liked are no random sample either."""
    run, said, true = generous
    told = run.correction(labels(true, [k for k in range(160) if said[k]["truth"] >= 3]))
    assert any(text.startswith("truth: the judge's mean is") for text in told["warnings"])


def test_too_few_labels_have_a_reason(generous: Any) -> None:
    """Labels of 19 questions give no figure, however many answers; other items and methods are errors."""
    run, _, true = generous
    told = run.correction(labels(true, list(range(38))))["measures"]["truth"]["corrected"]
    assert (told["value"], told["reason"]) == (None, "19 labelled questions, 20 needed")
    with pytest.raises(InputError, match="no label is of an item"):
        run.correction([{"id": "z", "truth": 1}])
    with pytest.raises(UnknownNameError, match="magic"):
        run.correction(labels(true, [1]), method="magic")
    with pytest.raises(InputError, match="can be corrected by rogan-gladen"):
        run.correction(labels(true, [1]), method="rogan-gladen")


def test_yes_and_no_by_their_error_rates(tmp_path: Path) -> None:
    """Rogan-Gladen takes fields of two values; three labels without order have no mean, and are left out."""
    draw = random.Random(2)
    true = [{"ok": int(draw.random() < 0.6), "tone": "warm"} for _ in range(200)]
    said = [{**t, "ok": t["ok"] if draw.random() < 0.9 else 1 - t["ok"]} for t in true]
    told = judged(tmp_path, said, YES).correction(labels(true, chosen(80, 200)), method="rogan-gladen")
    found = told["measures"]["ok"]["corrected"]
    assert found["ci"][0] < np.mean([t["ok"] for t in true]) < found["ci"][1]
    assert "sensitivity 0." in found["method"]
    assert told["left_out"] == {"tone": "its values are labels, which have no mean"}


def test_sides_of_pairs(tmp_path: Path) -> None:
    """Of pairs it is the share that prefers A, a tie counting half."""
    rows = [{"id": f"p{k:03}", "prompt": f"p{k:03}", "response_a": "x", "response_b": "y"} for k in range(40)]
    said = [{"better": "A" if k % 2 else "tie"} for k in range(40)]
    run_it(rows, PAIR, write_script(tmp_path / "s.jsonl", (None, {"better": "tie"})), tmp_path / "run")
    told = Run(tmp_path / "run").correction([{"id": row["id"], **s} for row, s in zip(rows, said, strict=True)])
    found = told["measures"]["better"]
    assert found["what"] == "share of A, others half"
    assert (found["raw"]["value"], found["corrected"]["value"]) == (0.5, 0.75)


def test_the_command_prints_a_table_and_json(generous: Any, tmp_path: Path) -> None:
    """A table for people, all figures as JSON for scripts; input at fault ends with 2."""
    run, _, true = generous
    file = write_jsonl(tmp_path / "labels.jsonl", labels(true, chosen(60, 160)))
    here = CliRunner()
    args = ["correct", str(run.folder), "--labels", str(file)]
    printed = here.invoke(cli, [*args, "--by", "system"], catch_exceptions=False).output
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert "160 items judged, 60 of them labelled" in lines
    assert any(line.startswith("(all) truth ") and line.endswith(" 160 60") for line in lines)
    assert any(line.startswith("b less a truth ") for line in lines)
    assert "nan" not in printed.lower()
    told = json.loads(here.invoke(cli, [*args, "--json"], catch_exceptions=False).output)
    assert told["measures"]["truth"]["labelled"] == 60
    assert told["by"] is None
    assert command(args) == 0
    assert command([*args, "--by", "nope"]) == 2
    assert command([*args, "--method", "rogan-gladen"]) == 2
    assert command(["correct", str(run.folder), "--labels", str(tmp_path / "none.csv")]) == 2
