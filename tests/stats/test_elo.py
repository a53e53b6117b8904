"""Sequential Elo: by hand, its mean over orders, and what it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import StatisticError
from evenhand.stats.elo import sequential_elo


def test_one_comparison_by_hand() -> None:
    """Between equals a win moves K / 2 points, a tie none; who met nobody keeps the start."""
    found = sequential_elo([0], [1], [1], k=32, size=3)
    assert found.mean == pytest.approx([1016, 984, 1000])
    assert (found.spread == 0).all()
    assert sequential_elo([0], [1], [0.5], k=32, start=1500).mean == pytest.approx([1500, 1500])


def test_two_comparisons_in_either_order() -> None:
    """The mean over random orders, against both orders step by step."""

    def one(points: list[float]) -> float:
        rating = 0.0  # of the first from the start; the second has the opposite
        for y in points:
            rating += 40 * (y - 1 / (1 + 10 ** (-2 * rating / 400)))
        return 1000 + rating

    ends = one([1.0, 0.0]), one([0.0, 1.0])
    found = sequential_elo([0, 0], [1, 1], [1.0, 0.0], k=40, orders=4000)
    assert found.mean[0] == pytest.approx(np.mean(ends), abs=0.2)
    assert found.spread[0] == pytest.approx(abs(ends[0] - ends[1]) / 2, rel=0.01)
    again = sequential_elo([0, 0], [1, 1], [1.0, 0.0], k=40, orders=4000)
    assert (found.mean == again.mean).all()


def test_many_comparisons_get_fewer_orders() -> None:
    """A thousand orders, fewer from 5,000 comparisons on; nothing compared leaves all at the start."""
    assert sequential_elo([], [], [], k=4, size=2).mean == pytest.approx([1000, 1000])
    assert sequential_elo([0] * 10, [1] * 10, [1] * 10, k=4).orders == 1000
    assert sequential_elo([0] * 10_000, [1] * 10_000, [1] * 10_000, k=4).orders == 500


@pytest.mark.parametrize(
    "arguments",
    [
        {"k": 0}, {"k": float("nan")}, {"points": [0.7]}, {"points": [1, 1]}, {"second": [0]}, {"size": 1},
        {"first": [-1]}, {"orders": 0},
    ],
    ids=str,
)  # fmt: skip
def test_impossible_arguments_are_refused(arguments: dict[str, Any]) -> None:
    """K above 0, points of a comparison, two different systems, one order at least."""
    given = {"first": [0], "second": [1], "points": [1], "k": 4, **arguments}
    with pytest.raises(StatisticError):
        sequential_elo(given.pop("first"), given.pop("second"), given.pop("points"), **given)
