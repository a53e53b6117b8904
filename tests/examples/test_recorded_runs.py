"""Recorded judge outputs of public sets, judged through ``replay:`` from file to summary: the published counts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand

CONVERTER = Path(__file__).resolve().parents[2] / "examples" / "converters" / "recorded.py"
Shared = Callable[[str], Path]
#: LLMBar recording -> (items, same winner in both orders), from the authors' own statistics.
LLMBAR = {
    "FairEval-GPT-4-Vanilla_NoRules": (66, 46),
    "GPTInst-GPT-4-CoT": (92, 83),
    "GPTOut-Falcon-CoT": (47, 5),
    "MT-Bench-GPT-4-Vanilla_NoRules": (200, 174),
    "Manual-GPT-4-Vanilla": (46, 38),
    "Natural-GPT-4-Swap_CoT": (100, 100),
    "Natural-GPT-4-Metrics_Reference": (100, 96),
}


def judged(source: Path, out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Convert a recorded set and judge each of its recordings again without a call."""
    subprocess.run([sys.executable, CONVERTER, source, "--out", out], check=True, capture_output=True)
    for line in (out / "index.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if source.name == "llmbar" and entry["name"] not in LLMBAR:
            continue
        base = out / entry["name"]
        run = evenhand.judge(
            Path(f"{base}.items.jsonl"),
            rubric=entry["rubric"],
            judge=f"replay:{base}.replies.jsonl",
            orders=entry["orders"] or "both",
            out=out / f"run-{entry['name']}",
        )
        yield entry["name"], run.summary()


@pytest.mark.parametrize(
    ("name", "planned", "scored", "mean"), [("arena_bench_v1", 300, 297, 8.548822), ("japanese_mt_bench", 80, 80, 2.6)]
)
def test_bracketed_ratings(shared: Shared, tmp_path: Path, name: str, planned: int, scored: int, mean: float) -> None:
    """Ratings in [[n]] give the published number of scores and their mean; the unreadable ones stay missing."""
    ((_, facts),) = judged(shared(f"data/{name}"), tmp_path)
    assert (facts["planned"], facts["scored"]) == (planned, scored)
    assert facts["criteria"]["rating"]["mean"] == pytest.approx(mean, abs=5e-7)
    assert facts["criteria"]["rating"]["n"] == scored


def test_qlora_classes(shared: Shared, tmp_path: Path) -> None:
    """4,467 of 4,480 verdicts are read; 2,227 pairs in both orders, 1,367 of them consistent; 600 ties."""
    ((_, facts),) = judged(shared("data/qlora_gpt4_pairwise"), tmp_path)
    assert (facts["planned"], facts["scored"], facts["flips"]) == (2240, 2227, 2227 - 1367)
    assert sum(facts["preference"].values()) == 1367
    assert facts["criteria"]["better"]["n"] == 4467
    assert facts["criteria"]["better"]["counts"]["tie"] == 600


def test_llmbar_orders(shared: Shared, tmp_path: Path) -> None:
    """The number of pairs with the same winner in both orders is the authors' own."""
    found = {
        name: (facts["planned"], sum(facts["preference"].values()))
        for name, facts in judged(shared("data/llmbar"), tmp_path)
    }
    assert found == LLMBAR


def test_vicuna_scores(shared: Shared, tmp_path: Path) -> None:
    """All 80 reviews of each of the five files are read; sums are as published but for two contradicted records."""
    sums = {
        name: tuple(round(facts["criteria"][f"score_{slot}"]["mean"] * facts["scored"], 6) for slot in "ab")
        for name, facts in judged(shared("data/vicuna_blog_eval"), tmp_path)
    }
    published = {
        "alpaca-13b-vs-vicuna-13b": (583.0, 704.0),
        "bard-vs-vicuna-13b": (664.0, 655.5 + 2),  # question 70 is recorded as 2 where its text says 4
        "gpt35-vs-vicuna-13b": (693.0, 638.0),
        "llama-13b-vs-vicuna-13b": (513.0, 694.0 + 2),  # likewise
        "llama-vs-alpaca-13b": (525.0, 605.0),
    }
    assert sums == published
