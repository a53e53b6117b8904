"""CPU seconds for Bradley-Terry on 1,000,000 comparisons among 200 systems: python benchmarks/ranking.py [RESAMPLES].

Beside choix and evalica, where they are installed: the same comparisons without ties, in the same process, and how far
apart the strengths are. RESAMPLES are the refits of the bootstrap row, 100 by default; its cost grows in proportion.
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.stats.bradley_terry import bradley_terry

COMPARISONS, SYSTEMS, PROMPTS = 1_000_000, 200, 5_000


def main() -> None:
    """Print a row for each kind of fit, then for each library beside ours."""
    rng = np.random.default_rng(1)
    strengths = rng.normal(0, 1, SYSTEMS)
    first = rng.integers(0, SYSTEMS, COMPARISONS)
    second = (first + rng.integers(1, SYSTEMS, COMPARISONS)) % SYSTEMS
    length = rng.normal(0, 1, COMPARISONS)
    half = (strengths[first] - strengths[second] + 0.2 + 0.3 * length) / 2
    odds = np.stack([np.exp(half), np.full(COMPARISONS, 0.5), np.exp(-half)])
    drawn = (rng.random(COMPARISONS) * odds.sum(axis=0) > odds.cumsum(axis=0)).sum(axis=0)
    points = np.array([1, 0.5, 0])[np.minimum(drawn, 2)]
    prompts = rng.integers(0, PROMPTS, COMPARISONS)
    resamples = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    refits = {"clusters": prompts, "interval": "bootstrap", "resamples": resamples}
    for what, options in {
        "ties half a win": {"ties": "half"},
        "ties by Davidson": {},
        "ties by Davidson, clusters": {"clusters": prompts},
        "ties by Davidson, clusters, order": {"clusters": prompts, "order": True},
        "ties by Davidson, clusters, order, covariate": {"clusters": prompts, "order": True, "covariates": length},
        f"ties by Davidson, {resamples} resamples of clusters": refits,
    }.items():
        found, seconds = timed(lambda options=options: bradley_terry(first, second, points, **options))
        print(f"{what:48} {seconds:6.2f} s  {found.standings[0].strength.ci}", flush=True)
    beside(first, second, points != 0.5, points)


def beside(first: Any, second: Any, decided: Any, points: Any) -> None:
    """The decided comparisons fitted by each library, and how far its strengths are from ours."""
    a, b = first[decided], second[decided]
    won = points[decided] == 1
    ours, seconds = timed(lambda: bradley_terry(a, b, points[decided], draws=0))
    told = np.array([standing.strength.value for standing in ours.standings])
    print(f"{'no ties: evenhand, with sandwich intervals':48} {seconds:6.2f} s")
    fits: dict[str, Callable[[Any], Any]] = {
        "choix": lambda choix: choix.ilsr_pairwise(
            SYSTEMS, np.column_stack([np.where(won, a, b), np.where(won, b, a)]).tolist()
        ),
        "evalica": lambda evalica: np.log(_evalica(evalica, a, b, won)),
    }
    for name, fit in fits.items():
        try:
            library = importlib.import_module(name)
        except ImportError:
            print(f"{name}: not installed, so nothing to set beside")
            continue
        theirs, taken = timed(lambda fit=fit, library=library: fit(library))
        far = np.abs(theirs - theirs.mean() - told).max()
        print(f"{f'no ties: {name}, no intervals':48} {taken:6.2f} s  ratio {taken / seconds:.1f}  apart {far:.0e}")


def _evalica(library: Any, a: Any, b: Any, won: Any) -> Any:
    winners = [library.Winner.X if x else library.Winner.Y for x in won]
    found = library.bradley_terry(a.tolist(), b.tolist(), winners, tolerance=1e-12, limit=10_000)
    return found.scores.sort_index().to_numpy()


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its CPU seconds."""
    started = time.process_time()
    found = work()
    return found, time.process_time() - started


if __name__ == "__main__":
    main()
