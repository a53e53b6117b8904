"""What a person reads of a run: complete, plain without colour, nothing taken for markup."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from evenhand import write_report
from evenhand._words import visible
from evenhand.api import make_spec
from evenhand.cli.main import run as command
from evenhand.report import progress
from evenhand.report.console import Terminal
from evenhand.report.progress import Bar
from evenhand.report.terminal import item_lines, print_summary
from evenhand.rubric.load import load_rubric
from evenhand.run import run
from rubric_texts import PAIR, rubric
from runs import TWO, rows, run_it, summary, write_script


def _printed(out: Path, by: str | None = None) -> str:
    text = io.StringIO()
    print_summary(summary(out, by=by), Console(file=text, width=100, highlight=False, emoji=False))
    return text.getvalue()


def test_figures_gaps_and_rules_are_told(tmp_path: Path) -> None:
    """Means with n and interval, what is missing and why, broken rules, calls and tokens."""
    judge = write_script(
        tmp_path / "s.jsonl",
        ("What is 1?", "no value"),
        ("What is 2?", {"truth": 0, "style": 4}),
        ("What is 3?", {"truth": 2, "style": 9}),
        (None, {"truth": 3, "style": 2}),
    )
    run_it([*rows(5), {"id": "b", "question": "q", "answer": ""}], TWO, judge, tmp_path / "run")
    lines = [" ".join(line.split()) for line in _printed(tmp_path / "run").splitlines()]
    assert lines[0].startswith("two v1 judged by fake:")
    assert "4 of 6 scored; coverage 66.7% of 6 rows; 1 set in code" in lines
    assert any(line.startswith("truth 1.60 0.00 to ") and line.endswith(" 5 missing: no_rating 1") for line in lines)
    assert any("missing: no_rating 1, out_of_range 1" in line for line in lines)
    assert any(line.startswith("composite 1.62 ") and line.endswith(" 4") for line in lines)
    assert "weights of the composite: 0.75 truth, 0.25 style" in lines
    assert "not scored: no_rating 1, out_of_range 1" in lines
    assert "rules broken: lie 1" in lines
    assert "calls 8; re-asked 3; repaired 0; inconsistent 1" in lines


def test_what_the_re_ask_mended_is_told(tmp_path: Path) -> None:
    """Where the re-ask changes how many replies clash, both counts are told with their shares."""
    lie, good = {"reason": "r", "truth": 0, "style": 4}, {"reason": "r", "truth": 3, "style": 2}
    judge = write_script(tmp_path / "s.jsonl", ("What is 1?", lie), (None, good), times=1)
    run_it(rows(4), TWO, judge, tmp_path / "run")
    told = (
        "replies that violate a rule: 1 of 4 (25.0%, 1.6% to 86.9%) before the re-ask, 0 of 4 (0.0%, 0.0% to 71.7%) "
        "after it"
    )
    assert told in " ".join(_printed(tmp_path / "run").split())


def test_a_run_without_rows_has_no_coverage(tmp_path: Path) -> None:
    """A run that was stopped before its rows were read says so, and no share."""
    run_it(rows(1), TWO, "fake", tmp_path / "run")
    text = io.StringIO()
    facts = {**summary(tmp_path / "run"), "coverage": None, "rows": 0, "planned": 0, "scored": 0}
    print_summary(facts, Console(file=text, width=100))
    assert "0 of 0 scored; no rows\n" in text.getvalue()


def test_names_are_never_markup(tmp_path: Path) -> None:
    """Slice names with brackets and colons are printed as they are."""
    run_it([{**row, "system": "[red]:smile:[/x]"} for row in rows(2)], TWO, "fake", tmp_path / "run")
    assert "[red]:smile:[/x]  2 of 2 scored" in _printed(tmp_path / "run", by="system")


def test_preferences_and_flips(tmp_path: Path) -> None:
    """Pairs are told with their sides and how many changed with the order."""
    pairs = [{"id": str(k), "prompt": f"p{k}", "response_a": "x", "response_b": "y"} for k in range(3)]
    run_it(pairs, rubric(PAIR), "fake:first", tmp_path / "run")
    told = _printed(tmp_path / "run")
    assert "preferred: A 0  B 0  tie 0  changed with the order 3" in told
    assert "same side in both orders: 0.00 (0.00 to " in told and ", n 3; share, Wilson interval clustered by " in told


def test_one_order_says_what_was_not_controlled(tmp_path: Path) -> None:
    """Pairs that were asked in one order say that nothing tells the side from the place."""
    pairs = [{"id": str(k), "prompt": "p", "response_a": "x", "response_b": "y"} for k in range(3)]
    run_it(pairs, rubric(PAIR), "fake:first", tmp_path / "run", orders="ab")
    assert "asked in one order only: position bias was not controlled" in _printed(tmp_path / "run")
    report = write_report(tmp_path / "run", tmp_path / "r.md").read_text(encoding="utf-8")
    assert "Asked in one order only: position bias was not controlled." in report
    assert "the same in" not in report


def test_an_item_not_asked_yet_says_so() -> None:
    """An item without trials is no empty page."""
    assert list(item_lines({"id": "x", "row": 0, "texts_stored": True, "trials": []})) == [
        "item x, row 1",
        "not asked yet",
    ]


@pytest.mark.parametrize("terminal", [True, False])
async def test_progress_on_a_terminal_and_elsewhere(tmp_path: Path, terminal: bool) -> None:
    """A bar with rate and failures by class on a terminal; one line elsewhere."""
    text = io.StringIO()
    bar = Bar(Console(file=text, force_terminal=terminal, width=100, color_system=None))
    judge = write_script(tmp_path / "s.jsonl", ("What is 1?", "no value"), (None, {"truth": 3, "style": 2}))
    await run(make_spec(rows(3), TWO, judge, out=tmp_path / "run"), progress=bar)
    bar.stop()
    assert text.getvalue().startswith("3 trials, 0 of them stored already\n")
    assert ("no_rating 1" in text.getvalue()) is terminal
    assert terminal or text.getvalue().count("\n") == 1


async def test_a_sign_of_life_every_half_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where stderr is no terminal, a line tells from time to time how far the run is, how fast, and what is left."""
    monkeypatch.setattr(progress, "_EVERY_S", 0.0)
    text = io.StringIO()
    bar = Bar(Console(file=text, force_terminal=False, width=40))
    judge = write_script(tmp_path / "s.jsonl", ("What is 1?", "no value"), (None, {"truth": 3, "style": 2}))
    await run(make_spec(rows(3), TWO, judge, out=tmp_path / "run", concurrency=1), progress=bar)
    lines = text.getvalue().splitlines()[1:]
    failures = ("", ", no_rating 1", ", no_rating 1")
    for k, (line, failed) in enumerate(zip(lines, failures, strict=True), 1):
        assert re.fullmatch(rf"{k} of 3 trials, [\d.e+]+/s, about 0:00:\d\d left{failed}", line)


def test_figures_by_task_stand_beside_the_item_mean(tmp_path: Path) -> None:
    """A rubric that sums up by task gets tasks by category, item mean and task mean, and the unofficial steadiness."""
    judge = write_script(
        tmp_path / "s.jsonl",
        ("first", {"Rating": 4, "Reason": "尚可"}),
        ("second", {"Rating": 6, "Reason": "尚可"}),
        (None, {"Rating": 9, "Reason": "很好"}),
    )
    items = [
        {"question_id": "a-0", "prompt": "first", "ref_answer": "r", "predict": "p", "task": "OCR"},
        {"question_id": "a-1", "prompt": "second", "ref_answer": "r", "predict": "p", "task": "OCR"},
        {"question_id": "b-0", "prompt": "third", "ref_answer": "r", "predict": "p", "task": "Chart"},
        {"question_id": "c-0", "prompt": "fourth", "ref_answer": "r", "predict": "p", "task": "Chart"},
    ]
    run_it(items, load_rubric("alignmm-critic"), judge, tmp_path / "run")
    lines = [" ".join(line.split()) for line in _printed(tmp_path / "run").splitlines()]
    assert any(re.fullmatch(r"OCR 5\.00 .* 2 2 1\.00", line) for line in lines)
    assert any(re.fullmatch(r"Chart 9\.00 .* 2 2 -", line) for line in lines)
    assert any(line.startswith("all, item mean 7.00 ") for line in lines)
    assert any(line.startswith("all, task mean 7.00 ") for line in lines)
    assert any(
        line.startswith("* unofficial: one over the mean variance of scores within 1 paraphrase groups")
        for line in lines
    )


STEERING = "a\x1b[31m\x9b2J\u202eb\u2066\x07\rc"
SHOWN = "a\\u001b[31m\\u009b2J\\u202eb\\u2066\\u0007\\u000dc"


def _texts(told: Any) -> Iterator[str]:
    """All keys and texts of a JSON value."""
    if isinstance(told, dict):
        yield from told
    for part in told.values() if isinstance(told, dict) else told if isinstance(told, list) else ():
        yield from _texts(part)
    if isinstance(told, str):
        yield told


def test_no_text_from_outside_steers_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Controls and marks that turn the order of text are shown as escapes, in tables, lines and JSON; the data
    keep them."""
    out = tmp_path / "run"
    run_it([{**row, "id": f"{STEERING}{k}", "system": STEERING} for k, row in enumerate(rows(2))], TWO, "fake", out)
    for more in (["--by", "system"], ["--item", f"{STEERING}0"]):
        assert command(["show", str(out), *more]) == 0
        shown = capsys.readouterr().out
        assert SHOWN in shown and not set(STEERING) & set(shown) - set("abc[31m2J")
        assert command(["show", str(out), *more, "--json"]) == 0
        printed = capsys.readouterr().out
        assert not set("\x1b\x9b\u202e\u2066") & set(printed)
        assert STEERING in " ".join(_texts(json.loads(printed)))
    assert command(["show", str(out), "--item", STEERING]) == 2
    assert SHOWN in capsys.readouterr().err
    table = Table(STEERING, title=STEERING)
    table.add_row(STEERING)
    text = io.StringIO()
    Terminal(file=text, width=100, force_terminal=True).print(table)
    assert text.getvalue().count(SHOWN) == 3


def test_lines_tabs_and_other_scripts_are_printed_as_they_are() -> None:
    """What steers nothing stays, line ends of both kinds too."""
    for text in ("a\tb\n\r\n评😀é", "\u05d0\u200f\u0661", '{"a": "\\u001b"}'):
        assert visible(text) == text
