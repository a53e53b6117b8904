"""The manifest: what a stored run was planned as."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import RunError
from evenhand.manifest import stored_rubric
from evenhand.store import Store
from runs import TWO, rows, run_it


def test_the_stored_rubric_is_the_one_that_was_used(tmp_path: Path) -> None:
    """Rubric and weights come back as they were given."""
    run_it(rows(1), TWO, "fake", tmp_path / "run", weights={"truth": 0.5, "style": 0.5})
    with Store.open(tmp_path / "run") as store:
        rubric = stored_rubric(store.manifest)
    assert (rubric.source, [c.weight for c in rubric.criteria]) == (TWO.source, [0.5, 0.5])


def test_a_stored_rubric_that_is_not_taken_any_more_is_the_runs_fault(tmp_path: Path) -> None:
    """A rubric of another version's format ends with 4 and names the version, not with the mistakes of a file."""
    run_it(rows(1), TWO, "fake", tmp_path / "run")
    with Store.open(tmp_path / "run") as store:
        manifest = store.manifest
    manifest["rubric"]["source"] += "shape: round\n"
    with pytest.raises(RunError, match=r"shape(.|\n)*made with evenhand \d") as caught:
        stored_rubric(manifest)
    assert caught.value.exit_code == 4
