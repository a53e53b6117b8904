"""Elo ratings that follow one comparison after the other: for setting beside tables that have them, not for ranking.

A rating moves by K times the points less those expected, so that it depends on K and on the order of the comparisons.
The mean over random orders takes the latter away. `evenhand.stats.bradley_terry` depends on neither.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from evenhand.errors import StatisticError
from evenhand.stats.table import Floats

START = 1000.0
_SCALE = 400 / np.log(10)
_STEPS = 5_000_000  # ratings moved at most, where the number of orders is left open
_ORDERS = (10, 1000)


@dataclass(frozen=True, slots=True)
class SequentialElo:
    """Ratings after all comparisons.

    Attributes:
        mean: Of each system, over the orders, shape (size,).
        spread: Standard deviation over the orders, shape (size,): how much the order of the comparisons matters. It
            says nothing of chance in the comparisons.
        k: Points moved by a comparison at most.
        start: Rating before the first comparison.
        orders: Random orders.
    """

    mean: Floats
    spread: Floats
    k: float
    start: float
    orders: int


def sequential_elo(
    first: ArrayLike,
    second: ArrayLike,
    points: ArrayLike,
    *,
    k: float,
    size: int | None = None,
    start: float = START,
    orders: int | None = None,
    seed: int = 0,
) -> SequentialElo:
    """Elo ratings, as the mean over random orders of the comparisons.

    Args:
        first, second: Ids 0..size-1 of the systems compared, shape (n,).
        points: What the first came to, shape (n,): 1, 0.5 (a tie) or 0.
        k: Points moved by a comparison at most, > 0. 4 and 32 are usual.
        size: Number of systems; default: the greatest id + 1.
        start: Rating before the first comparison.
        orders: Random orders; default: 1000, fewer (10 at least) from 5,000 comparisons on.
        seed: Of the orders.

    Returns:
        Systems without comparisons keep the start.

    Raises:
        StatisticError: arguments of different lengths or out of range.

    Source: Elo (1978), "The Rating of Chessplayers, Past and Present".
    """
    a, b, y = np.asarray(first, dtype=np.intp), np.asarray(second, dtype=np.intp), np.asarray(points, dtype=float)
    n = len(y)
    size = size if size is not None else int(max(a.max(), b.max())) + 1 if n else 0
    if len(a) != n or len(b) != n or not np.isin(y, (0, 0.5, 1)).all() or not 0 < k < np.inf:
        raise StatisticError("every comparison has two systems and points 1, 0.5 or 0; K is above 0")
    if n and (min(a.min(), b.min()) < 0 or max(a.max(), b.max()) >= size or (a == b).any()):
        raise StatisticError(f"two different systems, numbered 0 to {size - 1}")
    many = orders if orders is not None else int(np.clip(_STEPS // max(n, 1), *_ORDERS))
    if many < 1:
        raise StatisticError("one order at least")
    rng = np.random.default_rng(seed)
    drawn = np.stack([rng.permutation(n).astype(np.int32) for _ in range(many)], axis=1)  # step by order
    ratings = np.full(many * size, float(start))
    base = np.arange(many) * size
    for step in drawn:
        i, j = base + a[step], base + b[step]
        moved = k * (y[step] - expit((ratings[i] - ratings[j]) / _SCALE))
        ratings[i] += moved
        ratings[j] -= moved
    told = ratings.reshape(many, size)
    return SequentialElo(told.mean(axis=0), told.std(axis=0), k, start, many)
