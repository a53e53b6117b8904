"""95 % intervals hold a known truth: a short form of benchmarks/coverage.py, which prints the whole grid."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _grid() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "coverage.py"
    spec = importlib.util.spec_from_file_location("coverage_grid", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_grid"] = module
    spec.loader.exec_module(module)
    return module


GRID = _grid()
CASES = {case.name: case for case in GRID.cases()}
SHORT = {
    "exact (0.5, 0.5) 0.6": 400,
    "kappa (0.2, 0.8) 0.6": 400,
    "alpha (0.45, 0.4, 0.15) 0.7": 400,
    "ac1 (0.5, 0.5) 0.3": 400,
    "fleiss 4 raters": 400,
    "kappa clusters of 5": 400,
    "pearson normal 0.7": 400,
    "spearman normal 0.3": 200,
    "kendall normal 0.7": 120,
    "alpha normal 3 raters 0.7": 1000,
    "mae normal": 1000,
    "bias normal": 1000,
    "share 0.95": 1000,
    "mean lognormal": 1000,
    "corrected ppi 0.7 0.95 0.6": 400,
    "corrected ppi 0.9 0.95 0.9": 400,
    "corrected ppi 6.0 2.0 1.5 1.0": 400,
    "corrected ppi gap 0.5": 400,
    "corrected rogan-gladen 0.7 0.95 0.6": 400,
    "corrected isotonic 6.0 2.0 1.5 1.0": 40,
    "component item": 120,
    "difference t": 400,
    "superiority": 400,
}


@pytest.mark.parametrize(("name", "reps"), SHORT.items())
def test_intervals_cover_at_50(name: str, reps: int) -> None:
    """With 50 units at least 92.5 % of the intervals hold the truth, over seeded repetitions."""
    share, none = GRID.coverage(CASES[name], 50, reps)
    assert share >= 0.925
    assert none <= (0.1 if name.startswith("corrected") else 0.01)  # too little labelled has no interval


@pytest.mark.parametrize("name", ["0.7 0.95 0.6", "6.0 2.0 1.5 1.0", "gap 0.5"])
def test_raw_figures_of_a_biased_judge_do_not_cover(name: str) -> None:
    """The interval of the judge's own mean misses the truth, however many items are judged."""
    assert GRID.coverage(CASES[f"biased raw {name}"], 50, 200)[0] < 0.8
    assert GRID.coverage(CASES[f"biased raw {name}"], 500, 50)[0] < 0.1


@pytest.mark.parametrize("name", ["kappa (0.2, 0.8) 0.6", "share 0.8"])
def test_intervals_cover_at_500(name: str) -> None:
    """With 500 units 94 - 96.5 % do, to two standard errors of 800 seeded repetitions."""
    share, none = GRID.coverage(CASES[name], 500, 800)
    assert 0.94 - 0.015 <= share <= 0.965 + 0.015
    assert none == 0
