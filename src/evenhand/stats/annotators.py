"""A judge among people: the human ceiling, and whether the judge may stand in for an annotator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import stdtr

from evenhand.errors import StatisticError
from evenhand.stats.catalog import STANDARD, compact
from evenhand.stats.estimates import Estimate
from evenhand.stats.measures import Combined, evaluate
from evenhand.stats.named import Reading, reading
from evenhand.stats.resample import Resampling, mean_interval
from evenhand.stats.table import Floats, Ints, Ratings

COMMON = 10  #: units two raters must share for their pair to count
MIN_UNITS = 30  #: units an annotator must have for a test against the judge


@dataclass(frozen=True, slots=True)
class Ceiling:
    """How far people agree with each other, and judges with people, by one measure of pairs.

    Attributes:
        statistic: The measure.
        people: Mean over pairs of people; the ceiling.
        judges: Judge -> mean over its pairs with a person.
        gaps: Judge -> its mean less the ceiling, with a paired interval.
    """

    statistic: str
    people: Estimate
    judges: Mapping[str, Estimate]
    gaps: Mapping[str, Estimate]


def human_ceiling(
    ratings: Ratings,
    *,
    people: Sequence[str],
    judges: Sequence[str],
    statistic: str = "kappa",
    resampling: Resampling = STANDARD,
) -> Ceiling:
    """People against people beside judge against people.

    Both are plain means over pairs of single raters, so that they can be compared: agreement with a majority
    would be higher than with any one person. A judge at the ceiling agrees with a person as people do.

    Args:
        ratings: People and judges as raters of the same units.
        people: Raters that are people.
        judges: Raters to hold against them.
        statistic: A name that `evenhand.stats.named.reading` knows. A measure of more raters than two is taken of
            pairs, each over the units that both rated. "bias" is the judge less the person; of people it says nothing.
        resampling: How the bootstrap intervals, clustered by item, are made.

    Returns:
        Ceiling. Pairs with fewer than 10 units in common are left out and counted in ``missing``. The ceiling is
        undefined with fewer than two people, each figure where no pair is left or one pair is undefined.

    Raises:
        UnknownNameError: no such rater or statistic.
        StatisticError: the statistic does not fit the level of measurement.
    """
    ratings = ratings.select([*people, *judges])
    what = reading(ratings, statistic)
    place = {name: i for i, name in enumerate(ratings.raters)}
    within = [(place[a], place[b]) for a, b in combinations(people, 2)]
    against = {judge: [(place[judge], place[p]) for p in people] for judge in judges}

    def mean(plus: list[tuple[int, int]], minus: list[tuple[int, int]], whose: str) -> Estimate:
        return _mean_of_pairs(what, plus, minus, resampling, f"mean {what.title}, {whose}")

    gaps = {judge: mean(pairs, within, "judge less people") for judge, pairs in against.items()}
    alone = {judge: mean(pairs, [], "judge against people") for judge, pairs in against.items()}
    return Ceiling(statistic, mean(within, [], "people against people"), alone, gaps if within else {})


def judges_apart(
    ratings: Ratings,
    a: str,
    b: str,
    *,
    people: Sequence[str],
    statistic: str = "kappa",
    resampling: Resampling = STANDARD,
) -> Estimate:
    """How much better judge b agrees with people than judge a, on the units that both judged.

    Args:
        ratings: People and judges as raters of the same units.
        a, b: The judges.
        people: Raters that are people.
        statistic, resampling: As for `human_ceiling`.

    Returns:
        Mean over people of b against the person, less that of a, with a paired interval clustered by item; no value
        where no person has 10 units in common with both judges.

    Raises:
        UnknownNameError, StatisticError: as `human_ceiling`.
    """
    chosen = ratings.select([a, b, *people])
    what = reading(chosen.where(~np.isnan(chosen.codes[:, :2]).any(axis=1)), statistic)
    columns = range(2, 2 + len(people))
    return _mean_of_pairs(
        what, [(1, c) for c in columns], [(0, c) for c in columns], resampling, f"mean {what.title}, {b} less {a}"
    )


def _mean_of_pairs(
    what: Reading,
    plus: list[tuple[int, int]],
    minus: list[tuple[int, int]],
    resampling: Resampling,
    method: str,
) -> Estimate:
    """Mean measure of some pairs of columns, less that of others."""
    codes, build = what.codes, what.build
    shared = {pair: int((~np.isnan(codes[:, pair]).any(axis=1)).sum()) for pair in (*plus, *minus)}
    short = sum(count < COMMON for count in shared.values())
    missing = {f"pairs with fewer than {COMMON} units in common": short} if short else {}
    sides = [[pair for pair in side if shared[pair] >= COMMON] for side in (plus, minus)]
    if not sides[0] or (minus and not sides[1]):
        reason = f"no pair of raters has {COMMON} units in common"
        return Estimate(None, missing=missing, method=method, level=resampling.level, reason=reason)
    parts = tuple(
        (build(codes[:, pair]), pair, sign / len(side))
        for side, sign in zip(sides, (1, -1), strict=True)
        for pair in side
    )
    used = np.any([~np.isnan(codes[:, pair]).any(axis=1) for _, pair, _ in parts], axis=0)
    ids = compact(what.ratings.clusters[used])
    value, interval = evaluate(Combined(parts), codes[used], ids, resampling)
    n, groups = int(used.sum()), int(ids.max()) + 1
    if np.isnan(value):
        reason = "undefined for at least one pair of raters"
        return Estimate(None, None, n, groups, missing, method, resampling.level, reason)
    if interval.ci is None and not minus and groups > 1 and resampling.draws:
        interval = what.at_an_end(value, codes[used], groups, resampling.level) or interval
    text = ", ".join(part for part in (method, interval.method) if part)
    return Estimate(
        value, interval.ci, n, groups, missing, text, resampling.level, interval.reason, interval.warnings, interval.se
    )


@dataclass(frozen=True, slots=True)
class Standing:
    """The judge against one annotator who was left out.

    Attributes:
        annotator: The person left out.
        n: Units that the person, the judge and another person rated.
        judge: Share of units on which the judge is at least as close to the others as the person.
        person: Share of units on which the person is at least as close as the judge.
        p: One-sided p value that the judge is worse by epsilon or more.
        adjusted: The same after Benjamini-Yekutieli.
        better: Whether that is rejected at the false discovery rate.
    """

    annotator: str
    n: int
    judge: float
    person: float
    p: float
    adjusted: float
    better: bool


@dataclass(frozen=True, slots=True)
class AlternativeTest:
    """Whether a judge may stand in for an annotator.

    Attributes:
        passed: The judge wins against half of the annotators or more; None where nobody could be tested.
        winning_rate: Share of annotators against whom the judge does at least as well less epsilon.
        advantage: Mean share of units on which the judge is at least as close to the others.
        standings: One per annotator tested.
        epsilon: What an annotator costs more than the judge, as a share of units.
        reason: Why there is no result.
        warnings: Who could not be tested, and how few people there are.
    """

    passed: bool | None
    winning_rate: float | None
    advantage: float | None
    standings: tuple[Standing, ...]
    epsilon: float
    reason: str = ""
    warnings: tuple[str, ...] = ()


def alternative_annotator_test(
    ratings: Ratings, *, judge: str, people: Sequence[str], epsilon: float = 0.2, rate: float = 0.05
) -> AlternativeTest:
    """Does the judge do as well as a held-out annotator?

    Each person is left out in turn. On each unit the judge and that person are scored by closeness to the other
    people: share of equal labels (nominal), or minus the root mean squared difference (otherwise; positions for
    labels). The judge wins against the person if the person's share of units at least as close is less than
    the judge's plus epsilon, by a one-sided paired t test clustered by item, with the false discovery rate over
    people held by Benjamini and Yekutieli. The judge passes with a winning rate of 0.5.

    Args:
        ratings: The judge and three or more people as raters.
        judge: The judge's name.
        people: The people's names.
        epsilon: Allowance for what people cost more: the authors advise 0.2 for experts, 0.15 for skilled and
            0.1 for crowd annotators. In [0, 1).
        rate: False discovery rate.

    Returns:
        AlternativeTest; people with fewer than 30 usable units are left out with a warning.

    Raises:
        StatisticError: fewer than two people, or epsilon outside [0, 1).
        UnknownNameError: no such rater.

    Source: Calderon, Reichart and Dror (2025), "The Alternative Annotator Test for LLM-as-a-Judge".
    """
    if len(people) < 2:
        raise StatisticError(f"the alternative annotator test needs two people or more, not {len(people)}")
    if not 0 <= epsilon < 1:
        raise StatisticError(f"epsilon is a share in [0, 1), not {epsilon}")
    chosen = ratings.select([judge, *people])
    codes = chosen.codes if any(isinstance(c, str) for c in chosen.categories) else chosen.numbers
    found, warnings = [], []
    for column, name in enumerate(people, start=1):
        wins, losses, ids = _duel(codes, chosen.clusters, column, nominal=chosen.level == "nominal")
        if len(wins) < MIN_UNITS:
            warnings.append(f"{name} left out: {len(wins)} usable units, {MIN_UNITS} needed")
            continue
        p = _p_worse(losses - wins, ids, epsilon)
        found.append((name, len(wins), float(wins.mean()), float(losses.mean()), p))
    if not found:
        return AlternativeTest(None, None, None, (), epsilon, "no annotator has enough units", tuple(warnings))
    if len(people) < 3:
        warnings.append("fewer than three people: the winning rate says little")
    adjusted = _benjamini_yekutieli([p for *_, p in found])
    rows = tuple(Standing(*row, q, q <= rate) for row, q in zip(found, adjusted, strict=True))
    winning = sum(row.better for row in rows) / len(rows)
    advantage = sum(row.judge for row in rows) / len(rows)
    return AlternativeTest(winning >= 0.5, winning, advantage, rows, epsilon, warnings=tuple(warnings))


def _duel(codes: Floats, clusters: Ints, column: int, *, nominal: bool) -> tuple[Floats, Floats, Ints]:
    """Whether the judge (column 0) is at least as close to the others as a person is, and the reverse, by unit."""
    others = np.delete(codes, [0, column], axis=1)
    used = ~np.isnan(codes[:, [0, column]]).any(axis=1) & ~np.isnan(others).all(axis=1)
    others = others[used]
    known = ~np.isnan(others)

    def score(own: Floats) -> Floats:
        gap = np.where(known, others - own[:, None], 0)
        close = ((gap == 0) & known).sum(axis=1) if nominal else -(gap**2).sum(axis=1)  # the root keeps the order
        return np.asarray(close / known.sum(axis=1), dtype=np.float64)

    judge, person = score(codes[used, 0]), score(codes[used, column])
    return (judge >= person).astype(np.float64), (person >= judge).astype(np.float64), compact(clusters[used])


def _p_worse(gap: Floats, ids: Ints, epsilon: float) -> float:
    """P value of "the mean gap is epsilon or more" against "it is less"."""
    mean = mean_interval(gap, ids)
    assert mean.value is not None
    if mean.se is None:
        return 0.0 if mean.value < epsilon and mean.clusters > 1 else 1.0
    return float(stdtr(mean.clusters - 1, (mean.value - epsilon) / mean.se))


def _benjamini_yekutieli(values: Sequence[float]) -> list[float]:
    """Adjusted p values that hold the false discovery rate under any dependence."""
    p = np.asarray(values, dtype=np.float64)
    size = len(p)
    order = np.argsort(p)
    scale = size * float((1 / np.arange(1, size + 1)).sum())
    steps = np.minimum.accumulate((p[order] * scale / np.arange(1, size + 1))[::-1])[::-1]
    adjusted = np.empty(size)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(x) for x in adjusted]
