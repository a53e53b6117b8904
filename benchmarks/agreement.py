"""CPU seconds for agreement with 2,000 bootstrap draws on 100,000 units x 5 raters, beside the krippendorff package.

    python benchmarks/agreement.py
    python benchmarks/agreement.py --units 500          # a smoke test

Prints one JSON object: seconds of each statistic with its interval, and for alpha those of the package, which gives no
interval, for the same table in the same process: ``ratio`` is its seconds by ours, ``apart`` how far the values are.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import krippendorff
import numpy as np

from evenhand.stats.catalog import STATISTICS, agreement
from evenhand.stats.table import Level, Ratings

RATERS = 5


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=100_000)
    given = parser.parse_args()
    told = {"units": given.units, "raters": RATERS, "alpha": list(alphas(given.units))}
    print(json.dumps({**told, "others": list(others(given.units))}))


def draw(units: int, level: Level, points: int, per_item: int = 1) -> Ratings:
    """Noisy ratings with a tenth missing, `per_item` units an item."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, points, (units, 1))
    codes = np.clip(true + rng.integers(-1, 2, (units, RATERS)), 0, points - 1).astype(float)
    codes[rng.random(codes.shape) < 0.1] = np.nan
    return Ratings.of(codes, level, categories=range(points), clusters=np.arange(units) // per_item)


def alphas(units: int) -> Iterator[dict[str, Any]]:
    """Alpha of each level and number of points, beside the package."""
    levels: tuple[Level, ...] = ("nominal", "ordinal", "interval", "ratio")
    for level, points, per_item in [*((lv, p, 1) for lv in levels for p in (5, 11)), ("ordinal", 11, 2)]:
        ratings = draw(units, level, points, per_item)
        ours, seconds = timed(lambda ratings=ratings: agreement(ratings, "alpha"))
        table = ratings.codes.T
        theirs, taken = timed(
            lambda table=table, level=level, points=points: krippendorff.alpha(
                table, value_domain=list(range(points)), level_of_measurement=level
            )
        )
        yield {
            "level": level,
            "points": points,
            "units_an_item": per_item,
            "cpu_s": round(seconds, 3),
            "without_interval_cpu_s": round(taken, 3),
            "ratio": round(taken / seconds, 2),
            "apart": abs(ours.value - theirs),
        }


def others(units: int) -> Iterator[dict[str, Any]]:
    """Every statistic at one level."""
    for name, what in STATISTICS.items():
        ratings = draw(units, "ordinal", 11)
        ratings = ratings.select([0, 1]) if what.pair else ratings
        found, seconds = timed(lambda ratings=ratings, name=name: agreement(ratings, name))
        yield {"statistic": name, "cpu_s": round(seconds, 3), "value": found.value, "ci": found.ci}


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its CPU seconds."""
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


if __name__ == "__main__":
    main()
