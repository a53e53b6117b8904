"""Several runs over the same items: how far they differ item by item, and where most. No layout."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from evenhand.comparing import comparison_facts
from evenhand.errors import InputError
from evenhand.facts import ValueKind
from evenhand.rubric.model import OutputField, Rubric
from evenhand.scores import of_runs
from evenhand.store import Store, StoredRow
from evenhand.table import wide_columns

#: What is counted of items.
SHARED, COMPARED, DIFFER = "in two runs or more", "compared between runs", "different between runs"
#: Items that are listed.
MOST = 50
METHOD = (
    "mean over the fields that the runs share, each as its distance over the length of its scale: 0 is no difference, "
    "1 the greatest there can be; labels without order differ by 0 or 1; first repeats; missing values are left out"
)


class OpenRun(Protocol):
    """What is needed of a run."""

    name: str
    rubric: Rubric
    store: Store
    value: ValueKind


class Beside:
    """Values of the same item in several runs.

    Args:
        runs: The runs, two or more.

    Attributes:
        fields: The fields that all were asked for, on the same scale.
    """

    def __init__(self, runs: Sequence[OpenRun]) -> None:
        self._runs = [(run, run.store.manifest) for run in runs]
        first, *others = [_fields(run, manifest) for run, manifest in self._runs]
        alike = [n for n, f in first.items() if all(n in o and _points(o[n]) == _points(f) for o in others)]
        self.fields = {name: first[name] for name in alike}

    def values(self, own: str) -> dict[str, dict[str, Any]]:
        """Run -> field -> value of an item, of the runs that have it; None where there is none."""
        found = {}
        for run, manifest in self._runs:
            item = run.store.item(own)
            if item is not None:
                row = StoredRow(item.row, item, None, {})
                cells = wide_columns(row, run.store.verdicts_of(own), run.rubric, manifest, run.value)
                found[run.name] = {name: cells.get(name) for name in self.fields}
        return found

    def spread(self, values: Mapping[str, Mapping[str, Any]]) -> float | None:
        """How far the values of an item differ, in [0, 1] (see `METHOD`); None where no two can be compared."""
        spreads = []
        for name, output in self.fields.items():
            known = [of[name] for of in values.values() if of[name] is not None]
            if len(known) > 1:
                spreads.append(_distance(output, known))
        return sum(spreads) / len(spreads) if spreads else None

    def counts(self, values: Mapping[str, Mapping[str, Any]]) -> list[str]:
        """Which of `together_facts`' counts an item is part of."""
        spread = self.spread(values)
        met = {SHARED: len(values) > 1, COMPARED: spread is not None, DIFFER: bool(spread)}
        return [name for name, holds in met.items() if holds]

    def ids(self) -> Iterator[str]:
        """Every item of two runs or more, once."""
        for number, (run, _) in enumerate(self._runs):
            before = [other.store for other, _ in self._runs[:number]]
            after = [other.store for other, _ in self._runs[number + 1 :]]
            for item in run.store.items():
                if not any(store.item(item.id) for store in before) and any(store.item(item.id) for store in after):
                    yield item.id


def together_facts(runs: Sequence[OpenRun]) -> dict[str, Any]:
    """Several runs together, as plain JSON data; memory does not grow with the items.

    Returns:
        ``items`` (of two runs or more), ``fields`` (compared), ``compared`` (items of which two values are known),
        ``differ`` (of them, items of which any differ), ``most`` (the `MOST` items of the greatest spread: id, spread,
        values: run -> field -> value), ``method``, and ``comparison`` (of scores: `evenhand.compare`), None where the
        runs can't be compared, which ``comparison_note`` tells.
    """
    beside = Beside(runs)
    items = compared = differ = 0
    heap: list[tuple[float, int, str]] = []
    for own in beside.ids():
        items += 1
        spread = beside.spread(beside.values(own))
        if spread is None:
            continue
        compared += 1
        differ += spread > 0
        push = heapq.heappushpop if len(heap) >= MOST else heapq.heappush
        if spread > 0:
            push(heap, (spread, -items, own))
    ranked = sorted(heap, reverse=True)
    comparison, note = None, None
    try:
        comparison = comparison_facts(of_runs({run.name: (run.store, run.rubric) for run in runs}, runs[0].value))
    except InputError as error:
        note = error.message
    return {
        "items": items,
        "fields": list(beside.fields),
        "compared": compared,
        "differ": differ,
        "most": [{"id": own, "spread": spread, "values": beside.values(own)} for spread, _, own in ranked],
        "method": METHOD,
        "comparison": comparison,
        "comparison_note": note,
    }


def _fields(run: OpenRun, manifest: Mapping[str, Any]) -> dict[str, OutputField]:
    asked = (run.rubric.output.field(name) for name in manifest["asked"])
    return {f.name: f for f in asked if f is not None and f.kind in ("scale", "bool")}


def _points(output: OutputField) -> Any:
    scale = output.scale
    return None if scale is None else (scale.values, scale.low, scale.high)


def _distance(output: OutputField, values: Sequence[Any]) -> float:
    scale = output.scale
    if scale is None or (not scale.numeric and scale.level != "ordinal"):
        return float(any(value != values[0] for value in values))
    places = [float(value) if scale.numeric else float(scale.index(value)) for value in values]
    ends = (float(scale.bottom), float(scale.top)) if scale.numeric else (0.0, len(scale.points or ()) - 1.0)
    return (max(places) - min(places)) / (ends[1] - ends[0]) if ends[1] > ends[0] else 0.0
