"""A run that is killed again and again loses nothing, doubles nothing and pays little twice."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def benchmark() -> ModuleType:
    """The benchmark of kills, as a module."""
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "kill.py"
    if not path.exists():
        pytest.skip("benchmarks are not part of this copy")
    spec = importlib.util.spec_from_file_location("kill_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_lost_or_doubled_by_kills(benchmark: ModuleType) -> None:
    """300 trials under 5 kills end with the verdicts of an undisturbed run; each kill costs what was in flight."""
    told = benchmark.measure(trials=300, kills=5, concurrency=8, seed=3)
    assert (told["lost"], told["doubled"], told["equal"]) == (0, 0, True)
    assert 0 <= told["paid_twice"] <= told["bound"] == 40
    assert told["stored_when_killed"] == sorted(told["stored_when_killed"])
    assert 0 < told["stored_when_killed"][0] < 300
