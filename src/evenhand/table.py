"""Verdicts as flat rows: one per input row in input order, or one per trial."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evenhand.facts import ValueKind, composite, pick
from evenhand.item_values import Image, Turn
from evenhand.rubric.model import Rubric
from evenhand.sides import likeliest
from evenhand.store import Store, StoredRow
from evenhand.trial import TrialKey
from evenhand.verdict import Status, Verdict


def columns(rubric: Rubric, manifest: Mapping[str, Any], *, long: bool) -> list[str]:
    """Names of the columns that evenhand adds to the input's own, in order."""
    names = ["status", "failure", *manifest["asked"]]
    if any(c.weight is not None for c in rubric.criteria):
        names.append("composite")
    names += ["violations", "set_in_code", "re_asked", "repaired", "calls", "model"]
    if rubric.preference is not None and not long and len(manifest["orders"]) > 1:
        names.append("flip")
    return ["order", "repeat", *names] if long else names


def verdict_rows(
    store: Store, rubric: Rubric, *, value: ValueKind = "stated", long: bool = False
) -> Iterator[dict[str, Any]]:
    """Flat rows of a run: the input's columns, then evenhand's.

    A wide row shows the first repeat; where both orders were judged, a field is filled only if both orders
    agree on it (numbers: their mean; expected labels: the likeliest over both orders), and ``flip`` says whether
    the preferred side changed. A column of the input that has the name of one of ours is kept as ``input_NAME``.
    Lists and objects are plain JSON data.
    """
    manifest = store.manifest
    ours = columns(rubric, manifest, long=long)
    for row, verdicts in store.verdicts():
        if long:
            base = _input_columns(row, ours)
            for key, verdict in verdicts.items():
                told = {"order": key.order, "repeat": key.repeat, **_tell(verdict, rubric, manifest, value)}
                yield {**base, **{name: _tidy(told.get(name)) for name in ours}}
        else:
            yield {**_input_columns(row, ours), **wide_columns(row, verdicts, rubric, manifest, value)}


def wide_columns(
    row: StoredRow,
    verdicts: Mapping[TrialKey, Verdict],
    rubric: Rubric,
    manifest: Mapping[str, Any],
    value: ValueKind = "stated",
) -> dict[str, Any]:
    """What `verdict_rows` adds to one input row."""
    told = _tell_row(row, verdicts, rubric, manifest, value)
    return {name: _tidy(told.get(name)) for name in columns(rubric, manifest, long=False)}


def free_columns(row: Mapping[str, Any], ours: Collection[str]) -> dict[str, Any]:
    """A row of the input whose columns don't get in the way of ours: one of the same name becomes ``input_NAME``."""
    if row.keys().isdisjoint(ours):
        return dict(row)
    columns: dict[str, Any] = {}
    for name, value in row.items():
        free = name
        while free in ours or (free != name and free in row):
            free = f"input_{free}"
        columns[free] = value
    return columns


def _input_columns(row: StoredRow, ours: list[str]) -> dict[str, Any]:
    source = dict(row.raw)
    if row.item is not None:
        item = row.item
        values = {**item.extra, "id": item.id if item.own_id is None else item.own_id, **item.fields}
        known = {name: value for name, value in values.items() if value is not None or name in item.columns}
        source = {name: known[name] for name in (*item.columns, *known) if name in known}
    return {name: plain(value) for name, value in free_columns(source, ours).items()}


def _tidy(value: Any) -> Any:
    """A number without the dust of binary fractions: 12 significant digits."""
    return float(f"{value:.12g}") if isinstance(value, float) else value


def _tell_row(
    row: StoredRow,
    verdicts: Mapping[TrialKey, Verdict],
    rubric: Rubric,
    manifest: Mapping[str, Any],
    value: ValueKind,
) -> dict[str, Any]:
    if row.item is None:
        return {"status": "bad_row", "failure": row.problem}
    unit = [verdicts.get(TrialKey(row.item.id, order, 0)) for order in manifest["orders"]]
    found = [v for v in unit if v is not None]
    if len(found) < len(unit):
        return {"status": "not_asked"}
    told = [_tell(verdict, rubric, manifest, value) for verdict in found]
    if len(told) == 1:
        return told[0]
    merged = {name: _merge([t.get(name) for t in told]) for name in told[0]}
    for name in ("status", "failure"):
        merged[name] = next((t[name] for t in told if t["status"] != Status.SCORED.value), told[0][name])
    if value == "expected":
        known = (rubric.output.field(name) for name in manifest["asked"])
        labels = (f.name for f in known if f is not None and f.scale is not None and not f.scale.numeric)
        read = (name for name in labels if all(verdict.value(name) is not None for verdict in found))
        merged.update((name, likeliest(found, name)) for name in read)
    merged["violations"] = "; ".join(t["violations"] for t in told if t["violations"])
    merged["calls"] = sum(t["calls"] for t in told)
    for name in ("set_in_code", "re_asked", "repaired"):
        merged[name] = any(t[name] for t in told)
    sides = {t.get(rubric.preference or "") for t in told}
    merged["flip"] = None if None in sides else len(sides) > 1
    return merged


def _merge(values: list[Any]) -> Any:
    """One value for several orders: the common one, the mean of numbers, else nothing."""
    if any(v is None for v in values):
        return None
    if all(v == values[0] for v in values):
        return values[0]
    if all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return sum(values) / len(values)
    return None


def _tell(verdict: Verdict, rubric: Rubric, manifest: Mapping[str, Any], value: ValueKind) -> dict[str, Any]:
    told: dict[str, Any] = {"status": verdict.status.value, "failure": verdict.failure}
    for name in manifest["asked"]:
        outcome = verdict.fields.get(name)
        told[name] = plain(pick(outcome, value) if outcome is not None else None)
    told["composite"] = composite(verdict, rubric, value)
    told["violations"] = "; ".join(v.rule for v in verdict.violations)
    told["set_in_code"] = verdict.calls == 0 and verdict.status is Status.SCORED
    told["re_asked"] = verdict.re_asked
    told["repaired"] = verdict.repaired
    told["calls"] = verdict.calls
    told["model"] = verdict.model
    return told


def plain(value: Any) -> Any:
    """Plain JSON data: turns as objects, images as they were given."""
    if isinstance(value, list | tuple):
        return [_plain_entry(v) for v in value]
    return value


def _plain_entry(value: Any) -> Any:
    if isinstance(value, Turn):
        return {"user": value.user, "assistant": value.assistant}
    return value.reference if isinstance(value, Image) else value
