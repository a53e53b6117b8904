"""Variants of one rubric on the same items: how each uses its scale, how they agree with each other and with people.

Values are shares of their own scale, 0 at its bottom and 1 at its top, so that scales can be set side by side. No
layout.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenhand.agreeing import COMPOSITE, Judged, Labels
from evenhand.choosing import choice, labels_to_settle
from evenhand.errors import InputError
from evenhand.rubric.model import Rubric
from evenhand.scale import Scale
from evenhand.stats import annotators, association
from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ClusteredMean
from evenhand.stats.table import Ratings
from evenhand.tasks import composite_bounds

PEOPLE = "people"
STATISTIC = "kendall"  #: what variants are chosen by: it is fair to coarse scales
Bounds = tuple[float, float]
_Key = tuple[str, int]  # item id, repeat


@dataclass(frozen=True, slots=True)
class Variant:
    """What a judge said under one variant of the rubric.

    Attributes:
        rubric: The variant.
        judged: What was said.
        summary: The run's figures, of `evenhand.facts.summary`.
    """

    rubric: Rubric
    judged: Judged
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class People:
    """What people said, and the ends of the scale that they used, by measure."""

    labels: Labels
    bounds: Mapping[str, Bounds]


def measures(rubric: Rubric) -> dict[str, Bounds]:
    """What can be set side by side, with the ends of its scale: criteria of numbers, and the composite.

    Raises:
        InputError: a rubric of pairs, or of labels only.
    """
    if rubric.mode != "score":
        raise InputError("a study varies rubrics that score; pairs have no scale to share", hint="see: evenhand agree")
    found = {c.name: (float(c.scale.bottom), float(c.scale.top)) for c in rubric.criteria if c.scale.numeric}
    if not found:
        raise InputError(f"{rubric.name} gives labels, and a study sets numbers side by side")
    return {**found, COMPOSITE: composite_bounds(rubric)} if rubric.aggregate.composite else found


def on_scale(rubric: Rubric, bounds: Bounds) -> Rubric:
    """The rubric as people used it who rated from one number to another, fractions included."""
    scale = Scale("", "interval", low=bounds[0], high=bounds[1], integer=False)
    fields = (replace(f, scale=scale) if f.scale is not None and f.scale.numeric else f for f in rubric.output.fields)
    criteria = tuple(replace(c, scale=scale) if c.scale.numeric else c for c in rubric.criteria)
    return replace(rubric, criteria=criteria, output=replace(rubric.output, fields=tuple(fields)))


def study_facts(variants: Mapping[str, Variant], people: People | None = None) -> dict[str, Any]:
    """The figures, as plain data.

    Args:
        variants: Name -> variant; two or more, over the same items.
        people: Labels of these items.

    Returns:
        ``rubric``, ``judge``, ``runs`` (variant -> planned, scored, failures, calls, tokens, cost_usd), ``labels``
        (people, scale by measure; None without), and ``measures``: name -> ``variants`` (variant -> scale, planned,
        scored, failed: share of planned, mean: share of the scale), ``pairs`` (a, b, spearman, kendall, difference:
        mean absolute, on the scale from 0 to 1) and ``people`` (variant -> spearman, kendall, difference; on the items
        that people and every variant have a value of; None where people rated nothing of it), ``differences`` (a, b,
        difference: how much higher b's Kendall tau-b with people is, paired) and ``verdict`` (which variant agrees best
        with people, whether that is shown, and which to take; None without people). Every figure is an
        `Estimate` as plain data, clustered as `evenhand.tasks.Clusters` tells.
    """
    first = next(iter(variants.values()))
    kept = ("planned", "scored", "failures", "calls", "tokens", "cost_usd")
    return {
        "rubric": {"name": first.rubric.name, "version": first.rubric.version},
        "judge": first.judged.name,
        "runs": {name: {key: variant.summary[key] for key in kept} for name, variant in variants.items()},
        "labels": None
        if people is None
        else {"people": list(people.labels.raters), "scale": {name: list(b) for name, b in people.bounds.items()}},
        "measures": {name: _measure_facts(name, variants, people) for name in measures(first.rubric)},
    }


def _measure_facts(measure: str, variants: Mapping[str, Variant], people: People | None) -> dict[str, Any]:
    shares = {name: dict(_shares(variant, measure)) for name, variant in variants.items()}
    clusters = {key: unit.cluster for variant in variants.values() for key, unit in _keyed(variant.judged)}
    unit = next(iter(variants.values())).judged.unit
    costs = {name: _cost(variant) for name, variant in variants.items()}
    return {
        "variants": {name: _variant_facts(variant, measure, shares[name]) for name, variant in variants.items()},
        "pairs": [
            {"a": a, "b": b, **_agreement({a: shares[a], b: shares[b]}, clusters, unit)}
            for a, b in itertools.combinations(variants, 2)
        ],
        **_against(people, measure, shares, clusters, unit, costs),
    }


def _variant_facts(variant: Variant, measure: str, shares: Mapping[_Key, float]) -> dict[str, Any]:
    by_cluster: dict[str, list[float]] = {}
    for key, unit in _keyed(variant.judged):
        if key in shares:
            by_cluster.setdefault(unit.cluster, []).append(shares[key])
    mean = ClusteredMean(low=0.0, high=1.0, unit=variant.judged.unit)
    for values in by_cluster.values():
        mean.add(values)
    planned = variant.summary["planned"]
    return {
        "scale": list(measures(variant.rubric)[measure]),
        "planned": planned,
        "scored": len(shares),
        "failed": 1 - len(shares) / planned if planned else None,
        "mean": mean.estimate().as_dict(),
    }


def _keyed(judged: Judged) -> Iterator[tuple[_Key, Any]]:
    """Each unit with its item's id and its number among the item's repeats."""
    seen: Counter[str] = Counter()
    for unit in judged.units:
        yield (unit.id, seen[unit.id]), unit
        seen[unit.id] += 1


def _shares(variant: Variant, measure: str) -> Iterator[tuple[_Key, float]]:
    bounds = measures(variant.rubric)[measure]
    for key, unit in _keyed(variant.judged):
        if (value := unit.said.get(measure)) is not None:
            yield key, _share(value, bounds)


def _share(value: float, bounds: Bounds) -> float:
    return (float(value) - bounds[0]) / ((bounds[1] - bounds[0]) or 1.0)


def _against(
    people: People | None,
    measure: str,
    shares: Mapping[str, Mapping[_Key, float]],
    clusters: Mapping[_Key, str],
    unit: str,
    costs: Mapping[str, float | None],
) -> dict[str, Any]:
    """Every variant against the mean of the people, on the items that all have; how they differ, and which to take."""
    none: dict[str, Any] = {"people": None, "differences": [], "verdict": None}
    if people is None:
        return none
    said: dict[str, float] = {}
    for own, raters in people.labels.of.items():
        values = [_share(values[measure], people.bounds[measure]) for values in raters.values() if measure in values]
        if values:
            said[own] = math.fsum(values) / len(values)
    if not said:
        return none
    common = [key for key in clusters if key[0] in said and all(key in values for values in shares.values())]
    labels = {key: said[key[0]] for key in common}
    figures = {
        name: _agreement({name: {key: values[key] for key in common}, PEOPLE: labels}, clusters, unit)
        for name, values in shares.items()
    }
    table = [[*(values[key] for values in shares.values()), labels[key]] for key in common]
    names = [f"variant {name}" for name in shares]
    ratings = Ratings.of(table, "interval", raters=[*names, PEOPLE], clusters=[clusters[key] for key in common])
    apart = {
        (a, b): annotators.judges_apart(
            ratings, f"variant {a}", f"variant {b}", people=[PEOPLE], statistic=STATISTIC
        ).of_unit(unit)
        for a, b in itertools.combinations(shares, 2)
        if common
    }
    return {
        "people": figures,
        "differences": [{"a": a, "b": b, "difference": found.as_dict()} for (a, b), found in apart.items()],
        "verdict": _verdict({name: told[STATISTIC] for name, told in figures.items()}, apart, costs, unit),
    }


def _verdict(
    figures: Mapping[str, Mapping[str, Any]],
    apart: Mapping[tuple[str, str], Estimate],
    costs: Mapping[str, float | None],
    unit: str,
) -> str:
    """Which variant to take; where the best is not shown to be better than the next, what would settle it."""
    text = choice("Kendall tau-b", figures, apart, costs)
    ranked = sorted((n for n in figures if figures[n]["value"] is not None), key=lambda n: -figures[n]["value"])
    if len(ranked) < 2:
        return text
    best, next_one = ranked[:2]
    found = apart.get((best, next_one)) or apart[next_one, best]
    if found.ci is not None and not found.ci[0] <= 0 <= found.ci[1]:
        return text
    needed = labels_to_settle(found)
    settle = "" if needed is None else f"; labels of about {needed:,} {unit}s in all would"
    return f"{text}; whether {best} is better than {next_one} can't be told yet{settle}"


def _cost(variant: Variant) -> float | None:
    """US dollars for 1,000 items planned; None where it is not known."""
    cost, planned = variant.summary["cost_usd"], variant.summary["planned"]
    return None if cost is None or not planned else 1000 * float(cost) / planned


def _agreement(two: Mapping[str, Mapping[_Key, float]], clusters: Mapping[_Key, str], unit: str) -> dict[str, Any]:
    rows: Sequence[Sequence[float | None]] = [[values.get(key) for values in two.values()] for key in clusters]
    ratings = Ratings.of(rows, "interval", raters=list(two), clusters=clusters.values())
    found = {
        "spearman": association.spearman(ratings),
        "kendall": association.kendall(ratings),
        "difference": association.mean_absolute_error(ratings),
    }
    return {name: estimate.of_unit(unit).as_dict() for name, estimate in found.items()}
