"""Systems against each other on the same questions: who is better, by how much, how sure. No layout.

of_column / of_runs -> Scores -> comparison_facts -> figures
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand import facts
from evenhand.errors import InputError, UnknownNameError
from evenhand.item import Item
from evenhand.keywords import number, text
from evenhand.rubric.model import Rubric
from evenhand.slices import label
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
from evenhand.store import Store
from evenhand.tasks import cluster_unit, composite_bounds, group_of, question_of, told_mean
from evenhand.verdict import Verdict

COMPOSITE = "composite"
_LEAST_SHARED = 2


@dataclass(slots=True)
class Scores:
    """Scores by measure, system and question; each a list, as a question may have several.

    Attributes:
        by: What tells systems apart.
        of: Measure -> system -> question -> scores.
        clusters: Question -> what it shares its subject with.
        planned: System -> number of trials planned.
        bounds: Measure -> ends of its scale.
        unit: What a cluster is, in one word.
    """

    by: str
    bounds: Mapping[str, tuple[float, float]]
    of: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    planned: dict[str, int] = field(default_factory=dict)
    unit: str = "item"

    def add(self, system: str, question: str, cluster: str, verdict: Verdict | None, how: _How) -> None:
        """Take one planned trial; a verdict without a value of a measure counts in planned only."""
        self.planned[system] = self.planned.get(system, 0) + 1
        self.clusters.setdefault(question, cluster)
        for measure in how.measures:
            scores = self.of.setdefault(measure, {}).setdefault(system, {})
            value = None if verdict is None else how.value(verdict, measure)
            if value is not None:
                scores.setdefault(question, []).append(value)


@dataclass(frozen=True, slots=True)
class _How:
    """Which numbers are compared."""

    rubric: Rubric
    kind: facts.ValueKind
    measures: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, rubric: Rubric, kind: facts.ValueKind) -> _How:
        if rubric.mode != "score":
            raise InputError(
                "systems are compared by scores; pairs name the better one themselves", hint="see: evenhand rank"
            )
        measures = {COMPOSITE: composite_bounds(rubric)} if rubric.aggregate.composite else {}
        scales = {c.name: c.scale for c in rubric.criteria if c.scale.numeric}
        measures.update((name, (float(scale.bottom), float(scale.top))) for name, scale in scales.items())
        return cls(rubric, kind, measures)

    def value(self, verdict: Verdict, measure: str) -> float | None:
        if measure == COMPOSITE:
            return facts.composite(verdict, self.rubric, self.kind)
        outcome = verdict.fields.get(measure)
        picked = facts.pick(outcome, self.kind) if outcome is not None else None
        return float(picked) if isinstance(picked, int | float) else None


def of_column(store: Store, rubric: Rubric, by: str, value: facts.ValueKind = "stated") -> Scores:
    """Scores of a run whose rows are answers of several systems, a column telling which.

    A question is all that the rubric requires of an item but the answer; what a system found for itself (an optional
    context, or one that may be blank) may differ.

    Raises:
        UnknownNameError: no row has the column.
        InputError: a rubric of pairs, or a run without texts.
    """
    how = _How.of(rubric, value)
    scores = Scores(text("by", by), how.measures, unit=cluster_unit(rubric.aggregate))
    columns: set[str] = set()
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        if not row.item.fields:
            raise InputError("the run keeps no texts (--no-store-texts), so questions can't be told apart")
        source = {**row.item.extra, **row.item.fields}
        columns |= source.keys()
        if source.get(by) is None:
            continue
        question, group = question_of(row.item, rubric), group_of(row.item, rubric.aggregate)
        for verdict in _planned(store, verdicts):
            scores.add(label(source[by]), question, group, verdict, how)
    if not scores.planned:
        raise UnknownNameError("column", by, columns)
    if not rubric.aggregate.robustness:
        scores.clusters = {question: question for question in scores.clusters}
    return scores


def of_runs(runs: Mapping[str, tuple[Store, Rubric]], value: facts.ValueKind = "stated") -> Scores:
    """Scores of several runs over the same items; a question is an item's id.

    Args:
        runs: Name -> the open run and its rubric.
        value: As in a summary.

    Raises:
        InputError: rubrics with other scales, a rubric of pairs, or an id that names different questions.
    """
    hows = {name: _How.of(rubric, value) for name, (_, rubric) in runs.items()}
    first = next(iter(hows.values()))
    scores = Scores("run", first.measures, unit=cluster_unit(first.rubric.aggregate))
    scales = {
        name: [(c.name, c.scale.bottom, c.scale.top) for c in rubric.criteria] for name, (_, rubric) in runs.items()
    }
    if any(found != next(iter(scales.values())) for found in scales.values()):
        raise InputError("the runs have other criteria or scales, so their scores are not comparable")
    asked: dict[str, str] = {}
    for name, (store, rubric) in runs.items():
        for row, verdicts in store.verdicts():
            if row.item is not None:
                _require_same_question(asked, row.item, rubric, name)
                for verdict in _planned(store, verdicts):
                    scores.add(name, row.item.id, group_of(row.item, rubric.aggregate), verdict, hows[name])
    return scores


def _require_same_question(asked: dict[str, str], item: Item, rubric: Rubric, run: str) -> None:
    """Refuse an id that names another question in a former run; where texts are not stored, it can't be told."""
    if item.fields and asked.setdefault(item.id, question := question_of(item, rubric)) != question:
        hint = "runs are compared on the same questions: give each question one id, the same in both files"
        raise InputError(f"item {item.id} of {run} asks another question than the item of that id before", hint=hint)


def _planned(store: Store, verdicts: Mapping[Any, Verdict]) -> Iterator[Verdict | None]:
    yield from verdicts.values()
    yield from itertools.repeat(None, store.manifest["repeats"] - len(verdicts))


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
        ``systems``: name -> planned, and measure -> mean, ci, n, items. ``comparisons``: for each two systems and
        each measure a, b, measure, difference (b less a, an `Estimate` as plain data), paired, questions (shared),
        p, p_adjusted (Holm, over the pairs of systems), tests (how many it is adjusted for), test, note (why there
        is no p, or how the test took the data), effect, wins, ties, losses, superiority and odds_ratio (`Estimate`
        as plain data, or None), needed, more (questions beyond those there are), detectable (None too where
        the scale has no such difference), not_worse (the whole interval lies above minus the margin; None without
        interval), verdict (an answer in words).

    Raises:
        InputError: fewer than two systems, or a negative margin.
        UnknownNameError: no such test or interval.
    """
    require_kinds(test, interval)
    if len(scores.planned) < 2:
        raise InputError(f"one {scores.by} only ({next(iter(scores.planned), 'none')}): nothing to compare it with")
    margin = number("margin", margin)
    systems = {
        name: {"planned": planned, **{m: told_mean(_mean(scores, m, name)) for m in scores.of}}
        for name, planned in scores.planned.items()
    }
    told = []
    for measure in scores.of:
        pairs = list(itertools.combinations(scores.planned, 2))
        found = [_compared(scores, measure, a, b, test, interval) for a, b in pairs]
        adjusted = holm([comparison.p for comparison, _ in found])
        tests = sum(p is not None for p in adjusted)
        told += [
            {"measure": measure, "a": a, "b": b, **_told(a, b, *one, p, tests, margin)}
            for (a, b), one, p in zip(pairs, found, adjusted, strict=True)
        ]
    return {"by": scores.by, "margin": margin, "interval": interval, "systems": systems, "comparisons": told}


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


def _compared(
    scores: Scores, measure: str, a: str, b: str, test: Test, interval: IntervalKind
) -> tuple[Comparison, int]:
    """The comparison, cut to what the scale allows, and on how many questions both have a score."""
    found, shared = _free(scores, measure, a, b, test, interval)
    low, high = scores.bounds[measure]
    reach, ci = high - low, found.difference.ci
    if ci is not None:
        found = replace(found, difference=replace(found.difference, ci=(max(-reach, ci[0]), min(reach, ci[1]))))
    if found.detectable is not None and found.detectable > reach:
        found = replace(found, detectable=None)
    return found, shared


def _free(scores: Scores, measure: str, a: str, b: str, test: Test, interval: IntervalKind) -> tuple[Comparison, int]:
    """The same as if the scale had no ends."""
    first, second = (scores.of[measure].get(system, {}) for system in (a, b))
    shared = [question for question in first if question in second]
    if len(shared) >= _LEAST_SHARED:
        x, y = (np.array([math.fsum(of[q]) / len(of[q]) for q in shared]) for of in (first, second))
        ids = _ids([scores.clusters[q] for q in shared])
        return paired_comparison(x, y, ids, test=test, interval=interval), len(shared)
    sides = [_clustered(scores, of) for of in (first, second)]
    flat = [np.array([v for values in side.values() for v in values]) for side in sides]
    groups = [_ids([name for name, values in side.items() for _ in values]) for side in sides]
    found = unpaired_comparison(flat[0], flat[1], *groups)
    if empty := [name for name, of in ((a, first), (b, second)) if not of]:
        found = replace(found, difference=replace(found.difference, reason=f"{' and '.join(empty)} without any score"))
    elif test != "permutation":
        note = f"a {test} test needs two questions or more with a score of both systems"
        found = replace(found, p=None, note=note)
    if interval != "t" and found.difference.ci is not None:
        warnings = (*found.difference.warnings, "not paired: the t interval, no bootstrap")
        found = replace(found, difference=replace(found.difference, warnings=warnings))
    return found, len(shared)


def _ids(names: Sequence[str]) -> Any:
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.intp)


def _told(
    a: str, b: str, found: Comparison, shared: int, adjusted: float | None, tests: int, margin: float
) -> dict[str, Any]:
    difference = found.difference
    more = None if found.needed is None else max(0, found.needed - difference.clusters)
    return {
        "difference": difference.as_dict(),
        "paired": found.paired,
        "questions": shared,
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
        "verdict": _verdict(a, b, found, adjusted, tests, more),
    }


def _verdict(a: str, b: str, found: Comparison, p: float | None, tests: int, more: int | None) -> str:
    """Is B better than A, by how much, how sure, and what would settle it."""
    difference, value = found.difference, found.difference.value
    if value is None:
        return f"{b} and {a} can't be compared: {difference.reason}"
    better, worse = (b, a) if value > 0 else (a, b)
    above = f"{better} is {abs(value):.2f} above {worse}" if value else f"{b} and {a} have the same mean"
    if difference.ci is None:
        return f"{above}, but how sure that is can't be told: {difference.reason}" if value else above
    low, high = difference.ci if value > 0 else (-difference.ci[1], -difference.ci[0])
    if p is None or not value:
        return f"{above} ({low:.2f} to {high:.2f})" + (f", not tested: {found.note}" if p is None else "")
    adjusted = f" (Holm, {tests} comparisons)" if tests > 1 else ""
    sure = f"{abs(value):.2f} ({low:.2f} to {high:.2f}), p {p:.4f}{adjusted}"
    if p < 0.05 and low > 0:
        return f"{better} is better than {worse} by {sure}"
    settle = "" if not more else f"; about {more:,} more questions would settle a difference of this size"
    return f"{better} is not shown to be better than {worse}: {sure}{settle}"
