"""The benchmarks with a real model in their smallest form."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from local_models import small_model

pytestmark = pytest.mark.local_model
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def told(name: str, *options: str) -> Any:
    """What a benchmark prints."""
    if not BENCHMARKS.exists():
        pytest.skip("benchmarks are not part of this copy")
    small_model()
    command = [sys.executable, str(BENCHMARKS / f"{name}.py"), *options]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_prompts_are_served_from_the_prefix_cache() -> None:
    """A server that keeps prefixes tells more than 60 % of the prompt tokens of a few items as cached."""
    found = told("prefix", "--items", "6", "--rubrics", "doc-qa", "--slots", "1")["doc-qa"]["asked"]["1"]
    assert found["requests"] == 5 and 0 < found["cached"] < found["prompt"]  # the other is blank: set in code
    assert found["share"] > 0.6


def test_the_local_judge_beside_the_bare_runtime() -> None:
    """Both sides are measured on the same tokens; the ratio of a busy machine's few seconds is not held to the bar."""
    found = told("local", "--items", "2", "--rounds", "1", "--rubrics", "doc-qa", "--least", "0.3")["doc-qa"]
    assert found["trials"] == 1 and found["tokens"] > 500
    assert found["ratio"] == pytest.approx(found["tokens_per_s"] / found["bare_tokens_per_s"], rel=0.01)
