"""The converters of public sets write valid items of the built-in rubrics, whole or as a stratified sample."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.item import check_row
from evenhand.rubric.load import load_rubric

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Shared = Callable[[str], Path]
Row = dict[str, Any]


def convert(name: str, source: Path, out: Path, *options: str) -> list[Row]:
    script = EXAMPLES / "converters" / f"{name}.py"
    subprocess.run([sys.executable, script, source, "--out", out, *options], check=True, capture_output=True)
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("name", "rubric", "column", "counts"),
    [
        ("hhh_alignment", "hhh", "subset", {"harmless": 58, "helpful": 59, "honest": 61, "other": 43}),
        ("saf", "doc-qa", "label", {"Correct": 239, "Partially correct": 195, "Incorrect": 89}),
        ("openqa_eval", "doc-qa", "label", {"Yes": 816, "No": 674}),
        (
            "gaokao_bench",
            "alignmm-critic",
            "type",
            {"Problem": 81 + 86 + 123 + 47 + 9 + 26, "Reasoning": 29 + 29 + 24, "Knowledge": 28 + 60, "Writing": 42},
        ),
    ],
)
def test_all_items(name: str, rubric: str, column: str, counts: dict[str, int], shared: Shared, tmp_path: Path) -> None:
    """Every row of the set becomes one valid item with an id of its own, and labels are kept."""
    rows = convert(name, shared(f"data/{name}"), tmp_path / "items.jsonl")
    spec = load_rubric(rubric).item
    assert Counter(row[column] for row in rows) == counts
    assert len({row["id"] for row in rows}) == len(rows)
    assert [p for row in rows for p in check_row(row, spec).problems] == []


def test_samples_keep_shares(shared: Shared, tmp_path: Path) -> None:
    """A sample has each stratum's share, is the same for the same seed and another for another."""
    source = shared("data/openqa_eval")
    first = convert("openqa_eval", source, tmp_path / "a", "--n", "100", "--seed", "7")
    assert Counter(row["label"] for row in first) == {"Yes": 55, "No": 45}
    assert first == convert("openqa_eval", source, tmp_path / "b", "--n", "100", "--seed", "7")
    assert first != convert("openqa_eval", source, tmp_path / "c", "--n", "100", "--seed", "8")


def test_hhh_positions_are_random(shared: Shared, tmp_path: Path) -> None:
    """The better response stands first about half of the time, as the seed decides; the texts stay the same."""
    source = shared("data/hhh_alignment")
    first = convert("hhh_alignment", source, tmp_path / "a", "--seed", "1")
    other = convert("hhh_alignment", source, tmp_path / "b", "--seed", "2")
    better = {row["id"]: row[f"response_{row['label'].lower()}"] for row in first}
    assert better == {row["id"]: row[f"response_{row['label'].lower()}"] for row in other}
    assert [row["label"] for row in first] != [row["label"] for row in other]
    assert 80 < sum(row["label"] == "A" for row in first) < 140


def test_saf_scores(shared: Shared, tmp_path: Path) -> None:
    """Human scores are ten times the published ones, and the reference is marked as such."""
    rows = convert("saf", shared("data/saf"), tmp_path / "items.jsonl")
    english = [row["human_score"] for row in rows if row["subset"] == "english"]
    assert sum(english) / len(english) == pytest.approx(7.212, abs=5e-4)
    german = [row["human_score"] for row in rows if row["subset"] == "german"]
    assert sum(german) / len(german) == pytest.approx(6.116, abs=5e-4)
    assert {row["context_is"] for row in rows} == {"reference"}


def test_openqa_judge_labels(shared: Shared, tmp_path: Path) -> None:
    """The published judge's label is joined by question and answer; two are blank."""
    rows = convert("openqa_eval", shared("data/openqa_eval"), tmp_path / "items.jsonl")
    keyed = {(row["question"], row["answer"]): (row["label"], row["gpt4_label"]) for row in rows}
    pairs = Counter(keyed.values())
    assert (pairs["Yes", "Yes"], pairs["No", "No"], pairs["Yes", "No"], pairs["No", "Yes"]) == (678, 582, 137, 89)


def test_gaokao_points(shared: Shared, tmp_path: Path) -> None:
    """Recorded points are within full points but for the one item the set's notes name."""
    rows = convert("gaokao_bench", shared("data/gaokao_bench"), tmp_path / "items.jsonl")
    above = [row["id"] for row in rows if row["recorded_points"] > row["full_points"]]
    assert above == ["Chinese_Language_Language_and_Writing_Skills_Open_ended_Questions_002"]


@pytest.mark.parametrize("script", [path.stem for path in sorted((EXAMPLES / "converters").glob("[a-z]*.py"))])
def test_a_folder_that_does_not_exist_is_told(script: str, tmp_path: Path) -> None:
    """The converter ends with 2, names the folder and writes nothing."""
    command = [sys.executable, EXAMPLES / "converters" / f"{script}.py", tmp_path / "none", "--out", tmp_path / "out"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"no folder {tmp_path / 'none'}" in done.stderr
    assert not list(tmp_path.iterdir())
