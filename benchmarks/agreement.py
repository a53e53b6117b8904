"""Seconds for agreement with 2,000 bootstrap draws on 100,000 units x 5 raters: python benchmarks/agreement.py."""

from __future__ import annotations

import time

import numpy as np

from evenhand.stats.catalog import STATISTICS, agreement
from evenhand.stats.table import Level, Ratings

UNITS, RATERS = 100_000, 5


def draw(level: Level, points: int, per_item: int = 1) -> Ratings:
    """Noisy ratings with a tenth missing, `per_item` units an item."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, points, (UNITS, 1))
    codes = np.clip(true + rng.integers(-1, 2, (UNITS, RATERS)), 0, points - 1).astype(float)
    codes[rng.random(codes.shape) < 0.1] = np.nan
    return Ratings.of(codes, level, categories=range(points), clusters=np.arange(UNITS) // per_item)


def main() -> None:
    """Print a row per statistic."""
    for level in ("nominal", "ordinal", "interval", "ratio"):
        for points in (5, 11):
            clock("alpha", draw(level, points), f"{level}, {points} points")
    clock("alpha", draw("ordinal", 11, per_item=2), "ordinal, 11 points, 2 units an item")
    normal = np.random.default_rng(1).normal(size=(UNITS, RATERS))
    clock("alpha", Ratings.of(normal, "interval"), "interval, all values different")
    for name, what in STATISTICS.items():
        ratings = draw("ordinal", 11)
        clock(name, ratings.select([0, 1]) if what.pair else ratings, "ordinal, 11 points")


def clock(statistic: str, ratings: Ratings, what: str) -> None:
    """Time one statistic, interval included."""
    started = time.perf_counter()
    found = agreement(ratings, statistic)
    print(f"{statistic:16} {what:40} {time.perf_counter() - started:6.2f} s  {found.value:.4f} {found.ci}", flush=True)


if __name__ == "__main__":
    main()
