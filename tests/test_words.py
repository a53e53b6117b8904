"""Words that messages share."""

from __future__ import annotations

import pytest

from evenhand._words import counted, failure, percent, rounded, span


@pytest.mark.parametrize(("n", "told"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows"), (1000, "1000 rows")])
def test_a_noun_goes_with_its_number(n: int, told: str) -> None:
    """Only one is singular."""
    assert counted(n, "row") == told


@pytest.mark.parametrize(
    ("value", "digits", "told"),
    [(0.456, 2, "0.46"), (0.0, 2, "0.00"), (-0.004, 2, "-0.004"), (0.0004, 3, "0.0004"), (1e-12, 2, "0.00"),
     (-1e-12, 2, "0.00"), (0.995, 1, "1.0"), (-3.0, 2, "-3.00"), (2e-8, 2, "0.00000002")],
)  # fmt: skip
def test_a_number_that_is_not_0_is_not_shown_as_0(value: float, digits: int, told: str) -> None:
    """Decimals grow until the first digit that counts; dust is 0, and 0 has no sign."""
    assert rounded(value, digits) == told


def test_an_interval_shows_on_which_side_of_0_it_lies() -> None:
    """Both ends have the decimals that the closer one needs."""
    assert span((0.0012, 0.09)) == "0.001 to 0.090"
    assert span((-0.0012, 0.09)) == "-0.001 to 0.090"
    assert span((0.0, 0.09)) == "0.00 to 0.09"
    assert span((-0.5, 0.25), 1, sign=True) == "-0.5 to +0.2"


def test_a_share_is_0_or_all_only_where_it_is() -> None:
    """Decimals grow until a share differs from 0 % and 100 %."""
    told = {0: "0.0%", 1: "100.0%", 0.5: "50.0%", 0.9996: "99.96%", 0.00001: "0.001%"}
    assert {share: percent(share) for share in told} == told
    assert percent(0.996, 0) == "99.6%" and percent(0.42, 0) == "42%"


def test_failures_are_told_in_words() -> None:
    """Class names are for programs; other names stay as they are."""
    assert failure("RetryableBackendError") == "no answer in time"
    assert failure("missing_field") == "missing_field"
