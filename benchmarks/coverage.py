"""How often 95 % intervals contain the truth, by simulation: python benchmarks/coverage.py [--reps N] [--only TEXT].

Each case draws data of a known truth, and each of its estimators must give an interval that holds it. The bars are
92.5 % from 50 units on and 94 - 96.5 % from 500 units on; the standard error of a row is printed beside it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from evenhand.stats.agreement import exact_agreement
from evenhand.stats.association import bias, mean_absolute_error
from evenhand.stats.bradley_terry import bradley_terry
from evenhand.stats.calibration import isotonic_mean, two_stage_mean
from evenhand.stats.catalog import agreement
from evenhand.stats.components import variance_components
from evenhand.stats.correction import Sample, prediction_powered_difference, prediction_powered_mean
from evenhand.stats.estimates import Estimate
from evenhand.stats.paired import paired_comparison
from evenhand.stats.prevalence import rogan_gladen
from evenhand.stats.resample import Resampling, mean_interval, share_interval
from evenhand.stats.table import Floats, Ratings

Rng = np.random.Generator
Draw = Callable[[Rng, int], Ratings]
DRAWS = 1000


@dataclass(frozen=True)
class Case:
    """A source of data and an estimator with its true value."""

    name: str
    truth: float | Callable[[], float]  # the value, or what works it out when it is needed
    draw: Callable[[Rng, int], Any]  # ratings or plain numbers
    estimate: Callable[[Any, int], Estimate]


def by_name(statistic: str) -> Callable[[Ratings, int], Estimate]:
    """An agreement statistic, seeded by the repetition."""
    return lambda ratings, seed: agreement(ratings, statistic, resampling=Resampling(draws=DRAWS, seed=seed))


def labels(shares: tuple[float, ...], kappa: float, raters: int = 2, cluster: int = 1) -> Draw:
    """Units whose raters all give the true label with probability sqrt(kappa), else one by the shares: any chance-
    corrected agreement with pooled chance is kappa for each pair of raters. Clusters share the true label."""

    def draw(rng: Rng, n: int) -> Ratings:
        groups = n // cluster
        true = np.repeat(rng.choice(len(shares), groups, p=shares), cluster)
        own = rng.choice(len(shares), (groups * cluster, raters), p=shares)
        knows = rng.random(own.shape) < math.sqrt(kappa)
        codes = np.where(knows, true[:, None], own)
        ids = np.repeat(np.arange(groups), cluster)
        return Ratings.of(codes, "nominal", categories=range(len(shares)), clusters=ids)

    return draw


def graded(rho: float, shift: float = 0.0, cuts: tuple[float, ...] = (), raters: int = 2, gaps: float = 0.0) -> Draw:
    """Correlated normal ratings, cut into an ordinal scale where cuts are given; the first rater is shifted."""

    def draw(rng: Rng, n: int) -> Ratings:
        x = math.sqrt(rho) * rng.normal(size=(n, 1)) + math.sqrt(1 - rho) * rng.normal(size=(n, raters))
        x[:, 0] += shift
        if not cuts:
            return Ratings.of(x, "interval")
        codes = np.digitize(x, cuts).astype(float)
        codes[rng.random(codes.shape) < gaps] = np.nan
        return Ratings.of(codes, "ordinal", categories=range(len(cuts) + 1))

    return draw


def coin(p: float, rng: Rng, n: int) -> Floats:
    """Ones with probability p, else zeros."""
    return (rng.random(n) < p).astype(np.float64)


def votes(rng: Rng, n: int) -> dict[str, Any]:
    """Four comparisons a prompt among five systems, with ties and an edge of the first slot; prompts suit systems."""
    prompt = np.repeat(np.arange(n), 4)
    own = np.array([0.8, 0.3, 0.0, 0.0, -1.1]) + rng.normal(0, 0.8, (n, 5))
    first = rng.integers(0, 5, len(prompt))
    second = (first + rng.integers(1, 5, len(prompt))) % 5
    half = (own[prompt, first] - own[prompt, second] + 0.3) / 2
    odds = np.stack([np.exp(half), np.full(len(prompt), 0.5), np.exp(-half)])
    drawn = (rng.random(len(prompt)) * odds.sum(axis=0) > odds.cumsum(axis=0)).sum(axis=0)
    points = np.array([1, 0.5, 0])[np.minimum(drawn, 2)]
    return {"first": first, "second": second, "points": points, "clusters": prompt, "order": True}


def ranked(pick: Callable[[Any], Estimate], data: dict[str, Any], _: int) -> Estimate:
    """One figure of a ranking."""
    return pick(bradley_terry(**data, draws=0))


def of_a_ranking() -> list[Case]:
    """Figures of Bradley-Terry, whose truth is the value on 200,000 prompts."""
    picks: dict[str, Callable[[Any], Estimate]] = {
        "strength, best of 5": lambda r: r.standings[0].strength,
        "strength, worst of 5": lambda r: r.standings[4].strength,
        "expected win rate, best of 5": lambda r: r.standings[0].win_rate,
        "order effect": lambda r: r.order,
        "tie (nu)": lambda r: r.tie,
    }

    @cache
    def truth() -> Any:
        return bradley_terry(**votes(np.random.default_rng(99), 200_000), draws=0)

    def value(pick: Callable[[Any], Estimate]) -> float:
        found = pick(truth()).value
        assert found is not None
        return found

    return [Case(f"ranking: {n}", partial(value, p), votes, partial(ranked, p)) for n, p in picks.items()]


def lognormal(rng: Rng, n: int) -> Floats:
    """Skewed numbers."""
    return rng.lognormal(0, 0.5, n)


@cache
def large(draw: Draw, statistic: str) -> float:
    """A truth without a closed form: the value on a million units."""
    ratings = draw(np.random.default_rng(99), 1_000_000)
    value = agreement(ratings, statistic, resampling=Resampling(draws=0)).value
    assert value is not None
    return value


def cases() -> list[Case]:
    """The grid."""
    found = []
    even, skew, three = (0.5, 0.5), (0.2, 0.8), (0.45, 0.4, 0.15)
    for shares, kappa in ((even, 0.3), (even, 0.6), (even, 0.85), (skew, 0.6), (three, 0.7)):
        draw = labels(shares, kappa)
        agree = kappa + (1 - kappa) * sum(p * p for p in shares)
        found.append(Case(f"exact {shares} {kappa}", agree, draw, lambda r, _: exact_agreement(r)))
        found += [Case(f"{s} {shares} {kappa}", kappa, draw, by_name(s)) for s in ("kappa", "pi", "alpha")]
        q = len(shares)
        chance = sum(p * (1 - p) for p in shares) / (q - 1)
        found.append(Case(f"ac1 {shares} {kappa}", (agree - chance) / (1 - chance), draw, by_name("ac1")))
    found += [Case(f"{s} 4 raters", 0.5, labels(three, 0.5, 4), by_name(s)) for s in ("fleiss", "alpha")]
    found += [Case(f"{s} clusters of 5", 0.5, labels(even, 0.5, cluster=5), by_name(s)) for s in ("kappa", "alpha")]
    for rho in (0.3, 0.7, 0.9):
        smooth = graded(rho)
        found.append(Case(f"pearson normal {rho}", rho, smooth, by_name("pearson")))
        found.append(Case(f"spearman normal {rho}", 6 / math.pi * math.asin(rho / 2), smooth, by_name("spearman")))
        found.append(Case(f"kendall normal {rho}", 2 / math.pi * math.asin(rho), smooth, by_name("kendall")))
        found.append(Case(f"alpha normal 3 raters {rho}", rho, graded(rho, raters=3), by_name("alpha")))
    error = math.sqrt(2 * 0.3) * math.sqrt(2 / math.pi)
    found.append(Case("mae normal", error, graded(0.7), lambda r, _: mean_absolute_error(r)))
    found.append(Case("bias normal", 0.2, graded(0.7, 0.2), lambda r, _: bias(r)))
    for p in (0.5, 0.8, 0.95):
        found.append(Case(f"share {p}", p, partial(coin, p), lambda x, _: share_interval(x)))
    found.append(Case("mean lognormal", math.exp(0.125), lognormal, lambda x, _: mean_interval(x)))
    return found + simulated() + of_a_ranking() + of_components() + of_differences() + corrected()


def simulated() -> list[Case]:
    """Cases on a five-point scale, whose truth is the value on a million units."""
    found = []
    cuts = (-1.2, -0.4, 0.4, 1.2)
    for rho in (0.3, 0.7, 0.9):
        draw = graded(rho, 0.2, cuts)
        named = ("kappa-linear", "kappa-quadratic", "alpha", "ac2-quadratic", "spearman", "kendall", "pearson")
        found += [Case(f"{s} 5 points {rho}", partial(large, draw, s), draw, by_name(s)) for s in named]
    missing = graded(0.6, 0, cuts, raters=4, gaps=0.3)
    found.append(Case("alpha 4 raters, 30 % missing", partial(large, missing, "alpha"), missing, by_name("alpha")))
    return found


def repeated(rng: Rng, n: int) -> tuple[Floats, Any, Any]:
    """Scores of n groups of two paraphrases, three repeats each: variances 1, 0.25 and 0.5."""
    groups = np.repeat(np.arange(n), 6)
    items = np.repeat(np.arange(2 * n), 3)
    scores = rng.normal(0, 1, n)[groups] + rng.normal(0, 0.5, 2 * n)[items] + rng.normal(0, math.sqrt(0.5), 6 * n)
    return scores, groups, items


def of_components() -> list[Case]:
    """Variance components."""
    truths = {"item": 1.0, "paraphrase": 0.25, "repeat": 0.5}

    def part(name: str) -> Callable[[Any, int], Estimate]:
        return lambda given, seed: variance_components(*given, draws=DRAWS, seed=seed).parts[name].estimate

    return [Case(f"component {name}", truth, repeated, part(name)) for name, truth in truths.items()]


def gaps(rng: Rng, n: int) -> tuple[Floats, Floats]:
    """Ratings 1 to 5 of the same units, B a third of a point better."""
    base = rng.normal(3, 1, n)
    return (np.clip(np.rint(base + shift + rng.normal(0, 0.7, n)), 1, 5) for shift in (0.0, 0.33))  # type: ignore[return-value]


def of_differences() -> list[Case]:
    """Differences of two systems on the same units, and how likely B is the better one."""

    def truth(of: Callable[[Floats, Floats], float]) -> Callable[[], float]:
        return cache(lambda: of(*gaps(np.random.default_rng(1), 2_000_000)))

    mean = truth(lambda a, b: float((b - a).mean()))
    wins = truth(lambda a, b: float(((b > a) + 0.5 * (b == a)).mean()))
    return [
        Case("difference t", mean, gaps, lambda g, i: paired_comparison(*g, seed=i).difference),
        Case("difference bootstrap", mean, gaps,
             lambda g, i: paired_comparison(*g, interval="bootstrap", seed=i).difference),
        Case("superiority", wins, gaps, lambda g, i: paired_comparison(*g, seed=i).superiority),
    ]  # fmt: skip


def verdicts(share: float, sensitivity: float, specificity: float, rng: Rng, n: int) -> Sample:
    """A judge's yes and no on four times as many items as are labelled."""
    true = rng.random(4 * n) < share
    judge = np.where(true, rng.random(4 * n) < sensitivity, rng.random(4 * n) >= specificity)
    return Sample.of(judge, np.where(np.arange(4 * n) < n, true, np.nan))


def points(mean: float, spread: float, shift: float, noise: float, rng: Rng, n: int) -> Sample:
    """A judge's points, 0 to 10, on four times as many items as are labelled."""
    quality = rng.normal(mean, spread, 4 * n)
    true = np.clip(np.rint(quality), 0, 10)
    judge = np.clip(np.rint(quality + shift + rng.normal(0, noise, 4 * n)), 0, 10)
    return Sample.of(judge, np.where(np.arange(4 * n) < n, true, np.nan))


def mean_points(mean: float, spread: float) -> float:
    """The true mean of points."""
    cuts = (np.arange(0.5, 10) - mean) / spread
    return float(sum(0.5 * math.erfc(cut / math.sqrt(2)) for cut in cuts))


def two_systems(share: float, rng: Rng, n: int) -> tuple[Sample, Sample]:
    """Points of two systems on the same questions, the second half a point better, which the judge does not see; a
    share of the labelled questions has labels of both answers, the others of one in turn."""
    quality, place = rng.normal(5, 2, 4 * n), np.arange(4 * n)
    found = []
    for k, (better, kind) in enumerate(((0.0, 1.0), (0.5, 0.5))):
        true = quality + better + rng.normal(0, 1, 4 * n)
        known = (place < n) & ((place < share * n) | (place % 2 == k))
        found.append(Sample.of(true + kind + rng.normal(0, 1, 4 * n), np.where(known, true, np.nan)))
    return found[0], found[1]


def powered(sample: Sample, top: float) -> Estimate:
    """The prediction-powered mean on a scale from 0."""
    return prediction_powered_mean(sample, low=0.0, high=top, step=1.0)


def corrected() -> list[Case]:
    """Figures of a biased judge, raw (which should miss) and corrected; units are labelled items."""
    found = []
    for p, se, sp in ((0.5, 0.9, 0.7), (0.7, 0.95, 0.6), (0.9, 0.95, 0.9), (0.95, 0.99, 0.6), (0.3, 0.8, 0.97)):
        draw, name = partial(verdicts, p, se, sp), f"{p} {se} {sp}"
        found.append(Case(f"biased raw {name}", p, draw, lambda s, _: share_interval(s.judge)))
        found.append(Case(f"corrected ppi {name}", p, draw, lambda s, _: powered(s, 1.0)))
        found.append(Case(f"corrected rogan-gladen {name}", p, draw, lambda s, _: rogan_gladen(s)))
    for given in ((6.0, 2.0, 1.5, 1.0), (6.0, 2.0, 0.5, 0.3), (6.0, 2.0, -1.0, 4.0), (9.0, 1.5, 1.0, 1.0)):
        dots, truth, name = partial(points, *given), mean_points(*given[:2]), " ".join(map(str, given))
        found.append(Case(f"biased raw {name}", truth, dots, lambda s, _: mean_interval(s.judge)))
        found.append(Case(f"corrected ppi {name}", truth, dots, lambda s, _: powered(s, 10.0)))
        found.append(Case(f"corrected isotonic {name}", truth, dots, lambda s, i: isotonic_mean(s, draws=400, seed=i)))
        found.append(
            Case(f"corrected two-stage {name}", truth, dots, lambda s, i: two_stage_mean(s, draws=400, seed=i))
        )
    for share in (1.0, 0.5):
        pair = partial(two_systems, share)
        found.append(Case(f"biased raw gap {share}", 0.5, pair, lambda s, _: mean_interval(s[1].judge - s[0].judge)))
        found.append(Case(f"corrected ppi gap {share}", 0.5, pair, lambda s, _: prediction_powered_difference(*s)))
    return found


def coverage(case: Case, n: int, reps: int, seed: int = 0) -> tuple[float, float]:
    """Share of intervals that hold the truth, and share of repetitions without an interval (they don't count)."""
    rng = np.random.default_rng([seed, n])
    truth = case.truth() if callable(case.truth) else case.truth
    hits = none = 0
    for rep in range(reps):
        ci = case.estimate(case.draw(rng, n), rep).ci
        none += ci is None
        hits += ci is not None and ci[0] <= truth <= ci[1]
    return hits / max(1, reps - none), none / reps


def main() -> None:
    """Print the grid; rows outside the bars by more than two standard errors are marked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reps", type=int, default=1000)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--units", type=int, nargs="*", default=[50, 500])
    given = parser.parse_args()
    print(f"{'case':40} {'units':>6} {'covered':>8} {'+-':>6} {'none':>6}")
    for case in cases():
        if given.only not in case.name:
            continue
        for n in given.units:
            share, none = coverage(case, n, given.reps)
            se = math.sqrt(0.95 * 0.05 / given.reps)
            low, high = (0.94, 0.965) if n >= 500 else (0.925, 1.0)
            inside = case.name.startswith("biased") or low - 2 * se <= share <= high + 2 * se
            mark = "" if inside else "  <-"
            print(f"{case.name:40} {n:6} {share:8.3f} {se:6.3f} {none:6.3f}{mark}", flush=True)


if __name__ == "__main__":
    main()
