"""The example items are valid for the rubrics that the examples' page names, and varied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.item import check_row
from evenhand.prompt import render
from evenhand.rubric.load import load_rubric
from evenhand.rubric.schema import asked_fields

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "rubric", "count"),
    [
        ("doc-qa.jsonl", "doc-qa", 12),
        ("hhh.jsonl", "hhh", 8),
        ("critic.jsonl", "alignmm-critic", 8),
        ("doc-qa.jsonl", str(EXAMPLES / "politeness.yaml"), 12),
    ],
)
def test_items_are_valid_and_render(name: str, rubric: str, count: int) -> None:
    """Each row is read without a problem, has an id of its own, and shows all its texts in the prompt."""
    loaded = load_rubric(rubric)
    checked = [check_row(row, loaded.item) for row in rows(name)]
    assert [problem for row in checked for problem in row.problems] == []
    assert len({row.id for row in checked} - {None}) == count
    for row in checked:
        prompt = render(loaded, row.fields, fields=asked_fields(loaded), form="json", mark="qlvxwmta")
        user = prompt.messages[-1]["content"]
        assert all(value in user for name in loaded.item.judged if isinstance(value := row.fields[name], str))


def test_blank_answers_are_among_them() -> None:
    """The examples hold a blank answer, a pair with one blank response and one with two."""
    assert [row["id"] for row in rows("doc-qa.jsonl") if not row["answer"]] == ["library-05"]
    assert [row["id"] for row in rows("hhh.jsonl") if not row["response_b"]] == ["thank-you-note", "empty-replies"]
    assert [row["id"] for row in rows("hhh.jsonl") if not row["response_a"]] == ["empty-replies"]
    assert [row["task"] for row in rows("critic.jsonl") if not row["predict"]] == ["Problem"]


def test_recorded_formats_load() -> None:
    """Every rubric of a recorded text format is free of mistakes and named like its file."""
    files = sorted((EXAMPLES / "recorded").glob("*.yaml"))
    assert len(files) == 6
    assert [load_rubric(file).name for file in files] == [file.stem for file in files]
