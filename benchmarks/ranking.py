"""CPU seconds for Bradley-Terry on 1,000,000 comparisons among 200 systems, beside choix and evalica.

    python benchmarks/ranking.py
    python benchmarks/ranking.py --comparisons 20000 --resamples 2        # a smoke test

Prints one JSON object: seconds of each kind of fit, with an interval of the first strength; and the same comparisons
without ties fitted by each library that is installed, in the same process: ``ratio`` is its seconds by ours, ``apart``
how far the strengths are. The cost of the bootstrap grows with its resamples.
"""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from evenhand.stats.bradley_terry import bradley_terry

SYSTEMS, PROMPTS = 200, 5_000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=1_000_000)
    parser.add_argument("--resamples", type=int, default=100, help="refits of the bootstrap row")
    given = parser.parse_args()
    print(json.dumps({"systems": SYSTEMS, **vars(given), **measured(given.comparisons, given.resamples)}))


def measured(comparisons: int, resamples: int) -> dict[str, Any]:
    """Each kind of fit, and each library beside the plain one."""
    rng = np.random.default_rng(1)
    strengths = rng.normal(0, 1, SYSTEMS)
    first = rng.integers(0, SYSTEMS, comparisons)
    second = (first + rng.integers(1, SYSTEMS, comparisons)) % SYSTEMS
    length = rng.normal(0, 1, comparisons)
    half = (strengths[first] - strengths[second] + 0.2 + 0.3 * length) / 2
    odds = np.stack([np.exp(half), np.full(comparisons, 0.5), np.exp(-half)])
    drawn = (rng.random(comparisons) * odds.sum(axis=0) > odds.cumsum(axis=0)).sum(axis=0)
    points = np.array([1, 0.5, 0])[np.minimum(drawn, 2)]
    prompts = rng.integers(0, PROMPTS, comparisons)
    refits = {"clusters": prompts, "interval": "bootstrap", "resamples": resamples}
    fits = []
    for what, options in {
        "ties half a win": {"ties": "half"},
        "ties by Davidson": {},
        "ties by Davidson, clusters": {"clusters": prompts},
        "ties by Davidson, clusters, order": {"clusters": prompts, "order": True},
        "ties by Davidson, clusters, order, covariate": {"clusters": prompts, "order": True, "covariates": length},
        f"ties by Davidson, {resamples} resamples of clusters": refits,
    }.items():
        found, seconds = timed(lambda options=options: bradley_terry(first, second, points, **options))
        fits.append({"fit": what, "cpu_s": round(seconds, 3), "ci": found.standings[0].strength.ci})
    return {"fits": fits, "without_ties": list(beside(first, second, points != 0.5, points))}


def beside(first: Any, second: Any, decided: Any, points: Any) -> Iterator[dict[str, Any]]:
    """The decided comparisons fitted with sandwich intervals, then by each library, which gives none."""
    a, b = first[decided], second[decided]
    won = points[decided] == 1
    ours, seconds = timed(lambda: bradley_terry(a, b, points[decided], draws=0))
    told = np.array([standing.strength.value for standing in ours.standings])
    yield {"by": "evenhand", "cpu_s": round(seconds, 3)}
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
            continue
        theirs, taken = timed(lambda fit=fit, library=library: fit(library))
        far = np.abs(theirs - theirs.mean() - told).max()
        yield {"by": name, "cpu_s": round(taken, 3), "ratio": round(taken / seconds, 2), "apart": float(far)}


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
