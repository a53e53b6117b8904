"""Words that messages share."""

from __future__ import annotations

import pytest

from evenhand._words import counted


@pytest.mark.parametrize(("n", "told"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1000, "1000 rows")])
def test_a_noun_goes_with_its_number(n: int, told: str) -> None:
    """Only one is singular."""
    assert counted(n, "row") == told
