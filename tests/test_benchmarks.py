"""Short forms of the benchmarks: they run on their own server, and print what they say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


def printed(name: str, *arguments: str) -> str:
    """What a benchmark prints."""
    if not FOLDER.exists():
        pytest.skip("benchmarks are not part of this copy")
    command = [sys.executable, str(FOLDER / name), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_throughput_compares_the_run_with_the_bare_loop() -> None:
    """Every setting tells CPU and wall time of both, and their ratio."""
    settings: list[dict[str, Any]] = [
        json.loads(line) for line in printed("throughput.py", "--share", "0.005", "--rounds", "1").splitlines()
    ]
    assert [one["setting"].split(",")[0] for one in settings] == ["0 ms", "50 ms", "log-normal 800 ms"]
    for one in settings:
        assert one["cpu_s_ratio"] == pytest.approx(one["run_cpu_ms_each"] / one["bare_cpu_ms_each"], rel=0.01)
        assert one["wall_s_ratio"] == pytest.approx(one["run_wall_s"] / one["bare_wall_s"], rel=0.01)
        assert 0 < one["run_cpu_ms_each"] < one["run_whole_cpu_ms_each"]


def test_start_up_is_told_in_milliseconds() -> None:
    """From the bare interpreter to the first request, each takes longer than what it holds."""
    told = json.loads(printed("startup.py", "--rounds", "1"))
    assert 0 < told["python"] < told["import evenhand"] < told["first request"]


def test_memory_of_two_sizes_is_held_against_the_bar() -> None:
    """A tenfold input takes no more than the bar above the small one, in every command."""
    told = json.loads(printed("memory.py", "--sizes", "100,1000"))
    assert set(told["peak_mb"]) == {"100", "1000"}
    assert told["over_first_mb"] <= told["bar_mb"]


def test_agreement_is_set_beside_another_implementation() -> None:
    """Alpha is the package's to the last digits, whatever the level; each statistic has a time and an interval."""
    told = json.loads(printed("agreement.py", "--units", "300"))
    assert {one["level"] for one in told["alpha"]} == {"nominal", "ordinal", "interval", "ratio"}
    for one in told["alpha"]:
        assert one["apart"] < 1e-9
        assert one["cpu_s"] > 0
    assert all(one["ci"][0] <= one["value"] <= one["ci"][1] for one in told["others"])


def test_rankings_are_set_beside_other_implementations() -> None:
    """Strengths are those of each library, and every kind of fit has an interval."""
    told = json.loads(printed("ranking.py", "--comparisons", "20000", "--resamples", "2"))
    assert [one["by"] for one in told["without_ties"]] == ["evenhand", "choix", "evalica"]
    assert all(one["apart"] < 1e-3 for one in told["without_ties"][1:])
    assert all(len(one["ci"]) == 2 for one in told["fits"])
