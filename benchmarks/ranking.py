"""CPU seconds for Bradley-Terry on 1,000,000 comparisons among 200 systems: python benchmarks/ranking.py."""

from __future__ import annotations

import time

import numpy as np

from evenhand.stats.bradley_terry import bradley_terry

COMPARISONS, SYSTEMS, PROMPTS = 1_000_000, 200, 5_000


def main() -> None:
    """Print a row for each kind of fit."""
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
    for what, options in {
        "ties half a win": {"ties": "half"},
        "ties by Davidson": {},
        "ties by Davidson, clusters": {"clusters": prompts},
        "ties by Davidson, clusters, order": {"clusters": prompts, "order": True},
        "ties by Davidson, clusters, order, covariate": {"clusters": prompts, "order": True, "covariates": length},
    }.items():
        started = time.process_time()
        found = bradley_terry(first, second, points, **options)
        print(f"{what:46} {time.process_time() - started:6.2f} s  {found.standings[0].strength.ci}", flush=True)


if __name__ == "__main__":
    main()
