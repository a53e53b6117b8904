"""How much scores vary with items, paraphrases, judges, orders and repeats, and what the next call buys. No layout.

runs -> _Trials -> `stats.components` -> figures; the robustness score of a rubric's ``aggregate`` is another figure
(`evenhand.tasks.robustness`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from evenhand import facts
from evenhand._words import rounded, span
from evenhand.errors import InputError
from evenhand.item import Item, fields_digest
from evenhand.rubric.model import Rubric
from evenhand.scores import COMPOSITE, unlike_weights
from evenhand.stats import components as c
from evenhand.stats.components import Component, Components, variance_components
from evenhand.stats.generalizability import Design, error_parts, item_reliability, standard_error
from evenhand.store import Store
from evenhand.tasks import ITEM, Clusters
from evenhand.verdict import Verdict

_ORDERS = {"": 0, "ba": 0, "ab": 1}
_POINTS = {"A": 1.0, "B": 0.0}
_TIE = 0.5
_HELPS = 0.99  #: share of the standard error under which a change is worth naming


@dataclass(slots=True)
class _Trials:
    """Planned trials of all runs, one entry each; NaN where there is no value."""

    values: dict[str, list[float]]
    unit: str = ITEM
    clusters: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    items: list[str] = field(default_factory=list)
    judges: list[str] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    def add(self, name: str, store: Store, rubric: Rubric, value: facts.ValueKind, asked: dict[str, str]) -> None:
        """Take a run."""
        manifest = store.manifest
        planned = manifest["repeats"] * len(manifest["orders"])
        clusters = Clusters(rubric, manifest)
        for row, verdicts in store.verdicts():
            if row.item is None:
                continue
            _require_same(asked, row.item, name)
            group, cluster = clusters.paraphrases(row.item), clusters.of(row.item)
            found: list[tuple[str, Verdict | None]] = [(key.order, verdict) for key, verdict in verdicts.items()]
            found += [(manifest["orders"][0], None)] * (planned - len(found))
            for order, verdict in found:
                self.clusters.append(cluster)
                self.groups.append(row.item.id if group is None else group)
                self.items.append(row.item.id)
                self.judges.append(name)
                self.orders.append(_ORDERS[order])
                for measure, values in self.values.items():
                    score = None if verdict is None else _score(verdict, measure, rubric, value)
                    values.append(math.nan if score is None else score)
        self.unit = clusters.unit


def variance_facts(
    runs: Mapping[str, tuple[Store, Rubric]], *, value: facts.ValueKind = "stated", seed: int = 0
) -> dict[str, Any]:
    """Variance components of the scores of a run, or of several runs over the same items, each a judge.

    Args:
        runs: Name -> the open run and its rubric.
        value: As in a summary.
        seed: Seed of the bootstrap.

    Returns:
        ``judges``: run -> judge; ``preference`` (of pairs, the measure that is a side), ``unit`` (what is
        independent: intervals are clustered by it, and items stay items), ``value``, ``warnings``; ``measures``: the
        composite, each criterion with numbers, and for pairs the preferred side as points of response A (1, 0.5, 0).
        Each has n, planned, design (levels there are), mean
        (an `Estimate` as plain data), noise (the component that holds the rest), total (variance of one score),
        components (name -> variance, an estimate; share of the total; sd in points; levels; set_to_0), absent
        (name -> why it is not there), order_shift (points that response A gains by being shown first, an estimate or
        None), reliability (generalizability coefficient of an item's mean: value, reason), error (of the overall
        mean: se, and parts: component -> share of its square), alternatives (change, calls as a multiple of now, se,
        se_same_items, reason) and advice (sentences). se counts items as drawn from many, se_same_items is of these
        items. A measure without values has a reason only.

    Raises:
        InputError: runs that don't belong together, no number to take apart, or one verdict an item.
    """
    first = next(iter(runs.values()))[1]
    measures = _measures(first)
    if any((_measures(rubric), rubric.mode) != (measures, first.mode) for _, rubric in runs.values()):
        raise InputError("the runs have other criteria or scales, so their scores are not comparable")
    if not measures:
        raise InputError("this rubric has no number and no preferred side, so there is no variance to take apart")
    unlike = unlike_weights({name: rubric for name, (_, rubric) in runs.items()})
    if unlike:
        measures.pop(COMPOSITE, None)
    trials = _Trials({name: [] for name in measures})
    asked: dict[str, str] = {}
    for name, (store, rubric) in runs.items():
        trials.add(name, store, rubric, value, asked)
    judges = {name: store.manifest["judge"]["spec"] for name, (store, _) in runs.items()}
    told = {name: _measure(trials, name, first.mode == "compare", seed) for name in measures}
    _require_facets(told, runs)
    twice = len(set(judges.values())) < len(judges)
    warnings = ["two runs have the same judge: what they differ by is no difference of judges"] if twice else []
    warnings += [unlike] if unlike else []
    about = {"judges": judges, "preference": first.preference, "unit": trials.unit, "value": value}
    return {**about, "warnings": warnings, "measures": told}


def _measures(rubric: Rubric) -> dict[str, Any]:
    """Name -> its scale's ends; the preferred side has none."""
    found: dict[str, Any] = {COMPOSITE: None} if rubric.aggregate.composite else {}
    found.update({k.name: (k.scale.bottom, k.scale.top) for k in rubric.criteria if k.scale.numeric})
    return found if rubric.preference is None else {**found, rubric.preference: None}


def _score(verdict: Verdict, measure: str, rubric: Rubric, value: facts.ValueKind) -> float | None:
    if measure == COMPOSITE:
        return facts.composite(verdict, rubric, value)
    outcome = verdict.fields.get(measure)
    if outcome is None:
        return None
    if measure == rubric.preference and value == "expected" and outcome.distribution is not None:
        return math.fsum(_POINTS.get(str(k), _TIE) * p for k, p in outcome.distribution.probabilities.items())
    picked = facts.pick(outcome, value)
    if measure == rubric.preference:
        return None if picked is None else _POINTS.get(str(picked), _TIE)
    return float(picked) if isinstance(picked, int | float) else None


def _require_same(asked: dict[str, str], item: Item, run: str) -> None:
    """Refuse an id that names another item in a former run; where texts are not stored, it can't be told."""
    if item.fields and asked.setdefault(item.id, found := fields_digest(item.fields)) != found:
        hint = "judges are set against each other on the same rows, answers included; for systems: evenhand compare"
        raise InputError(f"item {item.id} of {run} is not the item of that id before", hint=hint)


def _require_facets(told: Mapping[str, Mapping[str, Any]], runs: Mapping[str, tuple[Store, Rubric]]) -> None:
    """Refuse scores of which nothing but the items varies."""
    if any(len(fact.get("components", ())) > 1 for fact in told.values()):
        return
    if all(fact["n"] == 0 for fact in told.values()):
        raise InputError("nothing is scored, so there is no variance to take apart")
    manifests = [store.manifest for store, _ in runs.values()]
    if any(m["repeats"] * len(m["orders"]) > 1 for m in manifests):
        raise InputError("no item has two readable verdicts, so there is no variance to take apart")
    hint = "judge the items again with --repeats 3, or with another judge and give both runs"
    raise InputError(
        "each item was judged once, so what the judge adds can't be told from what items differ by", hint=hint
    )


def _measure(trials: _Trials, name: str, pairs: bool, seed: int) -> dict[str, Any]:
    values = np.array(trials.values[name])
    there = ~np.isnan(values)
    counts = {"n": int(there.sum()), "planned": len(values)}
    if not there.any():
        return {**counts, "reason": "nothing scored"}
    columns = (trials.groups, trials.items, trials.judges, trials.orders, trials.clusters)
    *ids, clusters = (np.array(column)[there] for column in columns)
    found = variance_components(values[there], *ids, clusters=clusters, unit=trials.unit, seed=seed)
    design = Design.of(found)
    parts = error_parts(found, design)
    squared = math.fsum(parts.values())
    now = standard_error(found, design)
    reliability = item_reliability(found, design)
    alternatives = _alternatives(found, design, pairs)
    return {
        **counts,
        "design": {k: getattr(found, k) for k in ("clusters", "groups", "items", "judges", "orders", "repeats")},
        "mean": found.mean.as_dict(),
        "noise": found.noise,
        "total": found.total,
        "components": {part: _told(found.parts[part], found.total) for part in found.parts},
        "absent": _absent(found, pairs),
        "order_shift": None if found.shift is None else found.shift.as_dict(),
        "reliability": {"value": reliability, "reason": "" if reliability is not None else _unreliable(found)},
        "error": {
            "se": now,
            "parts": {part: v / squared if squared and now is not None else None for part, v in parts.items()},
        },
        "alternatives": alternatives,
        "advice": _advice(found, now, alternatives),
    }


def _told(part: Component, total: float) -> dict[str, Any]:
    value = part.estimate.value
    return {
        "variance": part.estimate.as_dict(),
        "share": value / total if value is not None and total else None,
        "sd": None if value is None else math.sqrt(value),
        "levels": part.levels,
        "set_to_0": part.raw is not None and part.raw < 0,
    }


def _unreliable(found: Components) -> str:
    if found.noise in (c.ITEM, c.PARAPHRASE):
        return "items can't be told from noise without repeats"
    lacking = [part.estimate.reason for part in found.parts.values() if part.estimate.value is None]
    return lacking[0] if lacking else "nothing varies"


def _absent(found: Components, pairs: bool) -> dict[str, str]:
    """Why a facet has no component."""
    reasons = {
        c.PARAPHRASE: "no two items are of one paraphrase group",
        c.JUDGE: "one judge: give a second run of the same items by another judge",
        c.ORDER: "one order: judge pairs in both" if pairs else "answers that are judged alone have no order",
        c.REPEAT: f"one verdict a cell, so it is in {found.noise}: judge with --repeats 3 to see it",
    }
    return {name: reason for name, reason in reasons.items() if name not in found.parts}


def _alternatives(found: Components, now: Design, pairs: bool) -> list[dict[str, Any]]:
    """What other designs would bring: twice the calls in one way or another, or the same calls spent otherwise."""
    missing = _absent(found, pairs)
    known = found.parts
    changes = [("twice the items", c.ITEM, replace(now, groups=2 * now.groups))]
    if c.PARAPHRASE in known:
        changes.append(("twice the paraphrases", c.PARAPHRASE, replace(now, paraphrases=2 * now.paraphrases)))
    changes.append(("twice the judges", c.JUDGE, replace(now, judges=2 * now.judges)))
    if pairs and now.orders == 1:
        changes.append(("both orders", c.ORDER, replace(now, orders=2)))
    changes.append(("twice the repeats", c.REPEAT, replace(now, repeats=2 * now.repeats)))
    if found.noise == c.REPEAT and now.repeats > 1:
        spread = replace(now, repeats=1, groups=now.groups * now.repeats)
        changes.append((f"one repeat, {now.repeats:g} times the items", c.ITEM, spread))
    told = []
    for change, facet, design in changes:
        of_items = facet == c.ITEM
        se, same = (standard_error(found, design, same_items=same) for same in (False, True))
        why = missing.get(facet, "") if facet not in known else "" if se is not None else "a component has no value"
        told.append(
            {
                "change": change,
                "calls": design.calls / now.calls,
                "se": None if why else se,
                "se_same_items": None if of_items or facet not in known else same,
                "reason": why,
            }
        )
    se, same = (standard_error(found, now, same_items=same) for same in (False, True))
    stay = {"change": "as now", "calls": 1.0, "se": se, "se_same_items": same, "reason": ""}
    return [stay, *told]


def _advice(found: Components, now: float | None, alternatives: list[dict[str, Any]]) -> list[str]:
    """Where the next call is best spent, in sentences with their numbers."""
    said = []
    doubled = sorted((a for a in alternatives if a["calls"] > 1 and a["se"] is not None), key=lambda a: float(a["se"]))
    if now is None:
        said.append("Where the next call is best spent can't be told: a component has no value.")
    elif doubled and doubled[0]["se"] < _HELPS * now:
        options = ", ".join(f"{rounded(a['se'], 3)} with {a['change']}" for a in doubled)
        best = doubled[0]["change"].removeprefix("twice the ")
        said.append(
            f"The next call is best spent on more {best}: twice the calls bring the standard error of the mean from "
            f"{rounded(now, 3)} to {options}."
        )
    elif doubled:
        said.append(f"The standard error of the mean is {rounded(now, 3)}; twice the calls would not bring it down.")
    if found.noise == c.REPEAT and found.variance(c.REPEAT) == 0:
        said.append("The judge repeats itself: its repeats never differ, so they buy nothing, and one is enough.")
    elif swap := next((a for a in alternatives if a["change"].startswith("one repeat") and a["se"] is not None), None):
        said.append(f"The same calls as {swap['change']} would have {rounded(swap['se'], 3)}.")
    said += _for_these_items(alternatives)
    shift = found.shift
    if shift is not None and shift.value is not None and shift.ci is not None and not shift.ci[0] <= 0 <= shift.ci[1]:
        side = "first" if shift.value > 0 else "second"
        worth = f"{rounded(abs(shift.value), 3)} points ({span(sorted(abs(end) for end in shift.ci), 3)})"
        said.append(f"Being shown {side} is worth {worth}: judge both orders.")
    return said


def _for_these_items(alternatives: list[dict[str, Any]]) -> list[str]:
    """What is best where there are no more items."""
    now = alternatives[0]["se_same_items"]
    if now is None:
        return []
    ways = [a for a in alternatives[1:] if a["se_same_items"] is not None and a["se_same_items"] < _HELPS * now]
    if not ways:
        return []
    best = min(ways, key=lambda a: float(a["se_same_items"]))
    told = f"{rounded(now, 3)} to {rounded(best['se_same_items'], 3)}"
    return [f"Where there are no more items, {best['change']} bring the error that judging adds from {told}."]
