"""Systems against each other on the same questions: who is better, by how much, how sure. No layout.

Scores -> comparison_facts -> figures
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from evenhand._words import counted, rounded, span
from evenhand.errors import InputError
from evenhand.keywords import number
from evenhand.scores import Scores, word_of
from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ClusteredMean
from evenhand.stats.paired import (
    Comparison,
    IntervalKind,
    Test,
    holm,
    paired_comparison,
    require_kinds,
    unpaired_comparison,
)
from evenhand.tasks import ITEM, QUESTION, told_mean

_LEAST_SHARED = 2
_LEAST_P = 0.0001  # what is less is told so
_SURE = 0.05


def comparison_facts(
    scores: Scores, *, margin: float = 0.0, test: Test = "permutation", interval: IntervalKind = "t"
) -> dict[str, Any]:
    """The figures, as plain data.

    Args:
        scores: What is compared; two systems or more.
        margin: How much worse a system may be and still count as not worse, in points; at least 0.
        test, interval: As for `evenhand.stats.paired.paired_comparison`. Systems that share fewer than two questions
            are compared by Welch's test and its t interval; another test than permutation, which needs pairs, then
            gives no p, with the reason.

    Returns:
        ``warnings``, and ``systems``: name -> planned (questions), answers to them, and measure -> mean, ci, n
        (questions with a score), items (clusters), cluster (what one is). ``comparisons``: for each two systems and
        each measure a, b, measure, difference (b less a, an `Estimate` as plain data), paired, pairs (items, or
        questions, with a score of both), questions among them, sides (those with a score of a, and of b), means (of a
        and b on the pairs; None unpaired), unlike (whether either has a score beyond them), p, p_adjusted (Holm, over
        the pairs of systems), tests (how many it is adjusted for), test, note (why there is no p, or how the test took
        the data), effect, wins, ties, losses, superiority and odds_ratio (`Estimate` as plain data, or None), needed
        (after the adjustment too), more (questions beyond those there are), detectable (None too where the scale has no
        such difference), not_worse (the whole interval lies above minus the margin; None without interval), better
        (which is shown to be, of runs to score higher; None: neither), verdict (an answer in words). ``paired_by``:
        "id" or "question", by which answers are paired.

    Raises:
        InputError: fewer than two systems, or a negative margin.
        UnknownNameError: no such test or interval.
    """
    require_kinds(test, interval)
    if len(scores.planned) < 2:
        raise InputError(f"one {scores.by} only ({next(iter(scores.planned), 'none')}): nothing to compare it with")
    margin = number("margin", margin)
    systems = {
        name: {
            "planned": len(planned),
            "answers": sum(planned.values()),
            **{m: told_mean(_mean(scores, m, name)) for m in scores.of},
        }
        for name, planned in scores.planned.items()
    }
    told = []
    for measure in scores.of:
        pairs = list(itertools.combinations(scores.planned, 2))
        found = [_compared(scores, measure, a, b, test, interval, len(pairs)) for a, b in pairs]
        adjusted = holm([comparison.p for comparison, _ in found])
        tests = sum(p is not None for p in adjusted)
        told += [
            {"measure": measure, "a": a, "b": b, **_told(a, b, *one, p, tests, margin, scores.by)}
            for (a, b), one, p in zip(pairs, found, adjusted, strict=True)
        ]
    return {
        "by": scores.by,
        "paired_by": scores.paired_by,
        "margin": margin,
        "interval": interval,
        "systems": systems,
        "comparisons": told,
        "warnings": [*scores.warnings, *scores.several()],
    }


def _mean(scores: Scores, measure: str, system: str) -> Estimate:
    low, high = scores.bounds[measure]
    mean = ClusteredMean(low=low, high=high, unit=scores.unit)
    for values in _clustered(scores, scores.of[measure].get(system, {})).values():
        mean.add(values)
    return mean.estimate()


def _clustered(scores: Scores, of: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    clusters: dict[str, list[float]] = {}
    for question, values in of.items():
        clusters.setdefault(scores.clusters[question], []).append(math.fsum(values) / len(values))
    return clusters


@dataclass(frozen=True, slots=True)
class _Shared:
    """What two systems both have a score of.

    Attributes:
        pairs: Items, or questions where answers are paired by them.
        questions: Questions among them.
        sides: Of either system, a and b: items, or questions, with a score of it.
        means: Of either system, on them; None with fewer than two.
        unlike: Whether either system has a score beyond them.
    """

    pairs: int
    questions: int
    sides: dict[str, int]
    means: list[float] | None
    unlike: bool


def _compared(
    scores: Scores, measure: str, a: str, b: str, test: Test, interval: IntervalKind, pairs: int
) -> tuple[Comparison, _Shared]:
    """One of so many pairs compared, cut to what the scale allows, and what it rests on."""
    found, shared = _free(scores, measure, a, b, test, interval, pairs)
    superiority = None if found.superiority is None else found.superiority.of_unit(scores.unit)
    found = replace(found, difference=found.difference.of_unit(scores.unit), superiority=superiority)
    low, high = scores.bounds[measure]
    reach, ci = high - low, found.difference.ci
    if ci is not None:
        found = replace(found, difference=replace(found.difference, ci=(max(-reach, ci[0]), min(reach, ci[1]))))
    if found.detectable is not None and found.detectable > reach:
        found = replace(found, detectable=None)
    return found, shared


def _free(
    scores: Scores, measure: str, a: str, b: str, test: Test, interval: IntervalKind, pairs: int
) -> tuple[Comparison, _Shared]:
    """The same as if the scale had no ends."""
    first, second = (scores.of[measure].get(system, {}) for system in (a, b))
    shared = [question for question in first if question in second]
    x, y = (np.array([math.fsum(of[q]) / len(of[q]) for q in shared]) for of in (first, second))
    questions = scores.clusters if scores.unit == QUESTION else scores.asked
    paired = len(shared) >= _LEAST_SHARED
    told = _Shared(
        len(shared),
        len({questions.get(own, own) for own in shared}),
        {"a": len(first), "b": len(second)},
        [float(x.mean()), float(y.mean())] if paired else None,
        not len(first) == len(second) == len(shared),
    )
    if paired:
        ids = _ids([scores.clusters[q] for q in shared])
        return paired_comparison(x, y, ids, test=test, interval=interval, tests=pairs), told
    sides = [_clustered(scores, of) for of in (first, second)]
    flat = [np.array([v for values in side.values() for v in values]) for side in sides]
    groups = [_ids([name for name, values in side.items() for _ in values]) for side in sides]
    found = unpaired_comparison(flat[0], flat[1], *groups, tests=pairs)
    if empty := [name for name, of in ((a, first), (b, second)) if not of]:
        found = replace(found, difference=replace(found.difference, reason=f"{' and '.join(empty)} without any score"))
    elif test != "permutation":
        note = f"a {test} test needs two questions or more with a score of both systems"
        found = replace(found, p=None, note=note)
    if interval != "t" and found.difference.ci is not None:
        warnings = (*found.difference.warnings, "not paired: the t interval, no bootstrap")
        found = replace(found, difference=replace(found.difference, warnings=warnings))
    return found, told


def _ids(names: Sequence[str]) -> Any:
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.intp)


def _told(
    a: str, b: str, found: Comparison, shared: _Shared, adjusted: float | None, tests: int, margin: float, by: str
) -> dict[str, Any]:
    difference = found.difference
    more = None if found.needed is None else max(0, found.needed - difference.clusters)
    return {
        "difference": difference.as_dict(),
        "paired": found.paired,
        **asdict(shared),
        "p": found.p,
        "p_adjusted": adjusted,
        "tests": tests,
        "test": found.test,
        "note": found.note,
        "effect": found.effect,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
        "superiority": None if found.superiority is None else found.superiority.as_dict(),
        "odds_ratio": None if found.odds_ratio is None else found.odds_ratio.as_dict(),
        "needed": found.needed,
        "more": more,
        "detectable": found.detectable,
        "not_worse": None if difference.low is None else difference.low > -margin,
        "better": _better(a, b, difference, adjusted),
        "verdict": _verdict(a, b, found, adjusted, tests, more, _where(shared, difference.unit), by),
    }


def _better(a: str, b: str, difference: Estimate, p: float | None) -> str | None:
    """Which of two is shown to be better: p is under 0.05, and the interval on one side of 0."""
    if p is None or p >= _SURE or difference.ci is None or difference.ci[0] <= 0 <= difference.ci[1]:
        return None
    return b if difference.ci[0] > 0 else a


def _where(shared: _Shared, unit: str) -> str:
    """On what two systems are compared where either has scores beyond it, whose means tell another thing."""
    if not shared.unlike or shared.means is None:
        return ""
    answers = "" if shared.pairs == shared.questions or unit == ITEM else f"{counted(shared.pairs, 'answer')} to the "
    return f" on the {answers}{counted(shared.questions, ITEM if unit == ITEM else QUESTION)} of both"


def _verdict(
    a: str, b: str, found: Comparison, p: float | None, tests: int, more: int | None, where: str, by: str
) -> str:
    """Is B better than A (of runs: higher), by how much, how sure, and what would settle it."""
    word = word_of(by)
    difference, value = found.difference, found.difference.value
    if value is None:
        return f"{b} and {a} can't be compared: {difference.reason}"
    better, worse = (b, a) if value > 0 else (a, b)
    above = f"{better} is {rounded(abs(value))} above {worse}" if value else f"{b} and {a} have the same mean"
    above += where
    if difference.ci is None:
        return f"{above}, but how sure that is can't be told: {difference.reason}" if value else above
    low, high = difference.ci if value > 0 else (-difference.ci[1], -difference.ci[0])
    if p is None or not value:
        return f"{above} ({span((low, high))})" + (f", not tested: {found.note}" if p is None else "")
    adjusted = f" (Holm, {tests} comparisons)" if tests > 1 else ""
    chance = f"p {p:.4f}" if p >= _LEAST_P else f"p < {_LEAST_P}"
    sure = f"{rounded(abs(value))} ({span((low, high))}), {chance}{adjusted}"
    if _better(a, b, difference, p) is not None:
        return f"{better} is {word} than {worse}{where} by {sure}"
    settle = "" if not more else f"; about {more:,} more {difference.unit}s would settle a difference of this size"
    return f"{better} is not shown to be {word} than {worse}{where}: {sure}{settle}"
