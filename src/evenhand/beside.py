"""Several runs over the same items: how far they differ item by item, and where most. No layout."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand._words import listed
from evenhand.comparing import comparison_facts
from evenhand.errors import InputError
from evenhand.facts import ValueKind
from evenhand.rubric.model import OutputField, Rubric
from evenhand.scores import OpenRuns, comparable, of_runs, same_questions
from evenhand.store import Store, StoredRow
from evenhand.table import wide_columns
from evenhand.trial import TrialKey
from evenhand.verdict import Verdict

#: What is counted of items.
SHARED, COMPARED, DIFFER = "in two runs or more", "compared between runs", "different between runs"
#: Items that are listed.
MOST = 50
METHOD = (
    "mean over the fields that runs share, each as its distance over the length of its scale: 0 is no difference, "
    "1 the greatest there can be; labels without order differ by 0 or 1, and what flips (changes with the order) "
    "differs by 1 from what doesn't; first repeats; missing values are left out"
)
#: The value of a field that is another in each order.
FLIPS = object()


class OpenRun(Protocol):
    """What is needed of a run."""

    name: str
    rubric: Rubric
    store: Store
    value: ValueKind


@dataclass(frozen=True, slots=True)
class Shared:
    """A field that several runs were asked for on the same scale.

    Attributes:
        output: The field.
        runs: Their names.
    """

    output: OutputField
    runs: tuple[str, ...]


class Beside:
    """Values of the same item in several runs.

    Args:
        runs: The runs, two or more.

    Attributes:
        runs: The runs.
        questions: Which of them ask the same under the same ids: `evenhand.scores.same_questions`.
        fields: The fields that two runs or more share. Of one name there may be several, of other scales or runs.
    """

    def __init__(self, runs: Sequence[OpenRun]) -> None:
        self.runs = runs
        self._runs = {run.name: (run, run.store.manifest) for run in runs}
        self.questions = same_questions(_opened(runs))
        self._groups, self._other_questions = self.questions
        asked = {name: _fields(*run) for name, run in self._runs.items()}
        found: dict[Any, list[str]] = {}
        for run, fields in asked.items():
            for name, output in fields.items():
                found.setdefault((name, _points(output)), []).append(run)
        self.fields = [Shared(asked[m[0]][name], tuple(m)) for (name, _), m in found.items() if len(m) > 1]
        self._asked = {run: [f.output.name for f in self.fields if run in f.runs] for run in self._runs}

    def left_out(self, met: Collection[str]) -> dict[str, str]:
        """Why runs are compared with no other one: run -> reason.

        Args:
            met: The runs that are.
        """
        reasons = {}
        for run, manifest in self._runs.values():
            if not self._asked[run.name]:
                told = listed([*_fields(run, manifest)], 5)
                reasons[run.name] = f"no other run asks for one of its fields ({told}) on the same scale"
            elif run.name not in met:
                none = "none of its items is in another run that asks for its fields"
                reasons[run.name] = self._other_questions.get(run.name, none)
        return reasons

    def met(self, values: Mapping[str, Any]) -> set[str]:
        """Of the runs that have an item those that share a field with another one of them."""
        sides = ([run for run in field.runs if run in values] for field in self.fields)
        return {run for side in sides if len(side) > 1 for run in side}

    def values(self, own: str, run: str) -> dict[str, dict[str, Any]]:
        """Values of an item of a run, in all runs that have it: run -> field -> value.

        A value is None where there is none, and `FLIPS` where each order has another, unless their mean can be taken.
        """
        found = {}
        for name in next(group for group in self._groups if run in group):
            other, manifest = self._runs[name]
            item = other.store.item(own)
            if item is not None:
                row, verdicts = StoredRow(item.row, item, None, {}), other.store.verdicts_of(own)
                cells = wide_columns(row, verdicts, other.rubric, manifest, other.value)
                orders = [verdicts.get(TrialKey(own, order, 0)) for order in manifest["orders"]]
                found[name] = {
                    field: FLIPS if cells.get(field) is None and _read(orders, field) else cells.get(field)
                    for field in self._asked[name]
                }
        return found

    def distances(self, values: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, float]]:
        """Each field of which two values are known, with how far they are apart, in [0, 1] (see `METHOD`)."""
        found = []
        for field in self.fields:
            name = field.output.name
            known = [values[run][name] for run in field.runs if run in values and values[run][name] is not None]
            if len(known) > 1:
                found.append((name, _distance(field.output, known)))
        return found

    def spread(self, values: Mapping[str, Mapping[str, Any]]) -> float | None:
        """How far the values of an item differ, in [0, 1] (see `METHOD`); None where no two can be compared."""
        distances = [distance for _, distance in self.distances(values)]
        return sum(distances) / len(distances) if distances else None

    def counts(self, values: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Which of `together_facts`' counts an item is part of."""
        spread = self.spread(values)
        met = {SHARED: len(values) > 1, COMPARED: spread is not None, DIFFER: bool(spread)}
        return [name for name, holds in met.items() if holds]

    def ids(self) -> Iterator[tuple[str, str]]:
        """Every item of two runs or more, once, with the first run that has it."""
        for group in self._groups:
            stores = [self._runs[name][0].store for name in group]
            for number, store in enumerate(stores):
                for item in store.items():
                    if any(before.item(item.id) for before in stores[:number]):
                        continue
                    if any(after.item(item.id) for after in stores[number + 1 :]):
                        yield item.id, group[number]


def together_facts(beside: Beside) -> dict[str, Any]:
    """Several runs together, as plain JSON data.

    Returns:
        ``items`` (of two runs or more), ``fields`` (compared: field, and the runs that share it), ``left_out`` (run ->
        why its values are compared with no other's), ``compared`` (items of which two values are known), ``differ`` (of
        them, items of which any differ), ``most`` (the `MOST` items of the greatest spread: id, spread, differ (the
        fields that do), values (run -> field -> value) and flips (run -> fields that change with the order)),
        ``method``, ``comparisons`` (of scores, one of each group of runs that can be compared: `evenhand.compare`) and
        ``not_compared`` (run -> why its scores are not).
    """
    items = compared = differ = 0
    met = set[str]()
    heap: list[tuple[float, int, str, str]] = []
    for own, run in beside.ids():
        items += 1
        values = beside.values(own, run)
        met |= beside.met(values)
        spread = beside.spread(values)
        if spread is None:
            continue
        compared += 1
        differ += spread > 0
        push = heapq.heappushpop if len(heap) >= MOST else heapq.heappush
        if spread > 0:
            push(heap, (spread, -items, own, run))
    comparisons, not_compared = _comparisons(beside)
    return {
        "items": items,
        "fields": [{"field": field.output.name, "runs": list(field.runs)} for field in beside.fields],
        "left_out": beside.left_out(met),
        "compared": compared,
        "differ": differ,
        "most": [_told(own, beside.values(own, run), beside) for _, _, own, run in sorted(heap, reverse=True)],
        "method": METHOD,
        "comparisons": comparisons,
        "not_compared": not_compared,
    }


def _opened(runs: Sequence[OpenRun]) -> OpenRuns:
    return {run.name: (run.store, run.rubric) for run in runs}


def _comparisons(beside: Beside) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The scores of runs that can be compared, and why those of the others can't be."""
    groups, reasons = comparable(_opened(beside.runs), beside.questions)
    found = []
    for group in groups:
        try:
            found.append(comparison_facts(of_runs(group, beside.runs[0].value)))
        except InputError as error:
            reasons.update(dict.fromkeys(group, error.message))
    return found, reasons


def _told(own: str, values: Mapping[str, Mapping[str, Any]], beside: Beside) -> dict[str, Any]:
    distances = beside.distances(values)
    flips = {run: [name for name, value in of.items() if value is FLIPS] for run, of in values.items()}
    return {
        "id": own,
        "spread": beside.spread(values),
        "differ": list(dict.fromkeys(name for name, distance in distances if distance)),
        "values": {run: {n: None if v is FLIPS else v for n, v in of.items()} for run, of in values.items()},
        "flips": {run: names for run, names in flips.items() if names},
    }


def _read(orders: Sequence[Verdict | None], field: str) -> bool:
    """Whether a field has a value in each of several orders."""
    return len(orders) > 1 and all(verdict is not None and verdict.value(field) is not None for verdict in orders)


def _fields(run: OpenRun, manifest: Mapping[str, Any]) -> dict[str, OutputField]:
    asked = (run.rubric.output.field(name) for name in manifest["asked"])
    return {f.name: f for f in asked if f is not None and f.kind in ("scale", "bool")}


def _points(output: OutputField) -> Any:
    scale = output.scale
    return None if scale is None else (scale.values, scale.low, scale.high)


def _distance(output: OutputField, values: Sequence[Any]) -> float:
    scale = output.scale
    if scale is None or FLIPS in values or (not scale.numeric and scale.level != "ordinal"):
        return float(any(value != values[0] for value in values))
    places = [float(value) if scale.numeric else float(scale.index(value)) for value in values]
    ends = (float(scale.bottom), float(scale.top)) if scale.numeric else (0.0, len(scale.points or ()) - 1.0)
    return (max(places) - min(places)) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.0
