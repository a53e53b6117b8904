"""A judge against people, and people against each other: who rated what, and the figures of their agreement.

read_labels -> Labels; judged -> Judged; agreement_facts(Judged, Labels) -> figures
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

from evenhand import facts
from evenhand.bars import Bar, read_bar
from evenhand.errors import InputError, Problem, UnknownNameError
from evenhand.field_agreement import Measured, Said, Wanted, field_facts
from evenhand.item import Item
from evenhand.item_values import Mistake, read_id
from evenhand.keywords import checked, text, texts
from evenhand.ratings import RatingReader
from evenhand.rubric.model import Rubric
from evenhand.slices import Column, label
from evenhand.sources import BadRows, bad_row, open_source
from evenhand.stats.named import require_statistic
from evenhand.store import Store
from evenhand.tasks import ITEM, Clusters
from evenhand.trial import TrialKey
from evenhand.verdict import FieldOutcome, Verdict

ALONE = "people"  #: who rated, where no row says so
COMPOSITE = "composite"
_RATER = "rater"


@dataclass(slots=True)
class Labels:
    """What people said: item id -> rater -> field -> value.

    Attributes:
        of: The values.
        raters: Names of all raters, in order.
        slices: Item id -> value of the column that the labels are broken down by.
    """

    of: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    raters: dict[str, None] = field(default_factory=dict)
    slices: dict[str, str] = field(default_factory=dict)

    def add(self, own: str, rater: str, values: dict[str, Any]) -> bool:
        """Take one rater's values of one item; whether there were none of this rater before."""
        self.raters.setdefault(rater)
        return self.of.setdefault(own, {}).setdefault(rater, values) is values

    def place(self, own: str, slice: str, by: str) -> list[Problem]:
        """Put an item in a slice; what is wrong where it is in another already."""
        before = self.slices.setdefault(own, slice)
        what = f"{own!r} has {by} {slice!r} here, and {before!r} in a row before"
        return [] if before == slice else [Problem(None, "", what)]


@dataclass(frozen=True, slots=True)
class Unit:
    """An item, judged once.

    Attributes:
        id: The item's id.
        cluster: What it shares its subject with, as `evenhand.tasks.Clusters` tells.
        said: Field -> value; None where there is no verdict, or the orders of a pair differ.
        slice: Value of the column that the figures are broken down by; None without one.
    """

    id: str
    cluster: str
    said: Mapping[str, Any]
    slice: str | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said, one entry a unit; ``unit`` is what clusters are."""

    name: str
    units: Sequence[Unit]
    unit: str = ITEM


def read_labels(
    source: Any,
    rubric: Rubric,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    by: str | None = None,
) -> Labels:
    """Read labels: one row per item and rater, with ``id``, ``rater`` and columns named as the rubric's fields.

    Args:
        source: As for `evenhand.sources.open_source`.
        rubric: Says which fields and values there are.
        mapping: Field name, "id" or "rater" -> column. Without a rater column all rows are of one rater, "people".
        format: Input format, None to tell from the file name.
        by: The column whose values are the slices of the items.

    Raises:
        ItemError: rows without id, with a value that is not legal, or that are given twice by the same rater; rows of
            one item in two slices.
        UnknownNameError: no row has the column of slices.
        InputError: no such source, no rows, or no column that a field is read from.
    """
    mapping = dict(checked({"map": mapping}, ("map",))["map"] or {})
    by = None if by is None else text("by", by)
    mapped = _RATER in mapping
    rater = mapping.pop(_RATER, _RATER)
    reader = _LabelReader(rubric, RatingReader(rubric, (), mapping=mapping, partial=True), rater, mapped, by)
    opened = open_source(source, format=format)
    labels, rows = Labels(), 0
    bad = BadRows()
    for rows, raw in enumerate(opened.rows, 1):
        found = [raw.problem] if raw.problem is not None else reader.take(raw.values, labels)
        if found:
            bad.add(bad_row(rows - 1, raw, found))
    if bad.rows:
        raise bad.error(opened.name, None, good=bad.rows < rows, hint=None)
    if by is not None and rows and by not in reader.columns:
        raise UnknownNameError("column", by, reader.columns)
    if not reader.fields:
        known = ", ".join(f.name for f in rubric.output.fields if f.kind in ("scale", "bool"))
        what = f"no row holds a value of {rubric.name}" if rows else "no rows"
        hint = f"its fields: {known} (--map FIELD=COLUMN)" if rows else None
        raise InputError(f"{opened.name or 'the labels'}: {what}", hint=hint)
    return labels


@dataclass(slots=True)
class _LabelReader:
    """Takes rows in, one after the other.

    Attributes:
        rubric: Says which fields and values there are.
        ratings: Reads the values of a row.
        rater: The column of the rater.
        mapped: Whether that column was asked for.
        by: The column of slices.
        columns: All columns so far.
        fields: Whether a row held a value of a field.
    """

    rubric: Rubric
    ratings: RatingReader
    rater: str
    mapped: bool
    by: str | None
    columns: set[str] = field(default_factory=set)
    fields: bool = False

    def take(self, values: Mapping[str, Any], labels: Labels) -> list[Problem]:
        """Take one row; what is wrong with it."""
        read = self.ratings.read(values)
        self.columns.update(values)
        self.fields = self.fields or bool(read.values)
        found = [Problem(None, "", message) for message in read.wrong.values()]
        who = None
        try:
            who = read_id(values.get(self.rater))
        except Mistake as mistake:
            found.append(Problem(None, "", f"{self.rater} {mistake}"))
        if self.mapped and self.rater not in values:
            known = ", ".join(values)
            what = f"no column {self.rater!r} for rater; columns: {known}"
            found.append(Problem(None, "", what, "--map rater=COLUMN"))
        if read.id is None:
            remedy = "give the item's id as `id`, or say --map id=COLUMN; columns: "
            found.append(Problem(None, "", "no id", f"{remedy}{', '.join(map(str, values)):.200}"))
        if found or read.id is None:
            return found
        if not labels.add(read.id, ALONE if who is None else who, _with_composite(read.values, self.rubric)):
            return [_twice(read.id, who, self.rater)]
        return [] if self.by is None else labels.place(read.id, label(values.get(self.by)), self.by)


def judged(store: Store, rubric: Rubric, value: facts.ValueKind = "stated", *, by: str | None = None) -> Judged:
    """What a run's judge said of each item: a unit for each repeat; both orders of a pair are one unit.

    A field of a pair has a value where both orders give the same, in the item's own order.

    Args:
        store, rubric, value: As for `evenhand.facts.summary`.
        by: A column of the input, an item field, or "id": the slices of the units.

    Raises:
        UnknownNameError: ``by`` is neither a column of any row nor an item field.
    """
    manifest = store.manifest
    column = None if by is None else Column(by, rubric, manifest)
    units, clusters = [], Clusters(rubric, manifest)
    for row, verdicts in store.verdicts():
        slice = None if column is None else column.slice_of(row)
        if row.item is None:
            continue
        cluster = clusters.of(row.item)
        units += [Unit(row.item.id, cluster, said, slice) for said in said_of(verdicts, rubric, manifest, value)]
    if column is not None:
        column.require_known()
    return Judged(manifest["judge"]["spec"], units, clusters.unit)


def said_of(
    verdicts: Mapping[TrialKey, Verdict], rubric: Rubric, manifest: Mapping[str, Any], value: facts.ValueKind
) -> Iterator[dict[str, Any]]:
    """What a judge said of one item in each repeat: field -> value, as `Unit` has them."""
    names = [f.name for f in rubric.output.fields if f.kind in ("scale", "bool") and f.name in manifest["asked"]]
    for repeat in range(manifest["repeats"]):
        of = [v for key, v in verdicts.items() if key.repeat == repeat]
        whole = len(of) == len(manifest["orders"])
        said = {name: _same([v.fields.get(name) for v in of], value) if whole else None for name in names}
        yield _with_composite(said, rubric)


def _same(outcomes: Sequence[FieldOutcome | None], value: facts.ValueKind) -> Any:
    """The value that all outcomes have, None where one is missing or they differ."""
    values = [None if outcome is None else facts.pick(outcome, value) for outcome in outcomes]
    return values[0] if all(v == values[0] and v is not None for v in values) else None


def agreement_facts(
    rubric: Rubric,
    labels: Labels,
    judge: Judged | None = None,
    *,
    by: str | None = None,
    statistic: str | Sequence[str] | None = None,
    width: float | None = None,
    require: str | Sequence[str] = (),
) -> dict[str, Any]:
    """The figures of agreement, as plain data.

    Args:
        rubric: The rubric of both.
        labels: What people said.
        judge: What the judge said of the same items; None for people alone.
        by: The column that units, or labels, were read with the slices of.
        statistic: Names of statistics (`evenhand.stats.named.NAMES`, bands of the rubric), one text with commas or
            several; "all" for all that fit; None for the usual ones.
        width: Tell how many items with labels each figure's interval needs to be so wide as a whole.
        require: Bars, as in "kappa>=0.6" or "kappa@FIELD>=0.6"; without a field every field must meet it.

    Returns:
        ``people`` (names), ``judge``, ``items`` (labelled, judged, both), and ``fields``: name -> ``level``,
        ``statistics``, ``warnings``, ``confusion`` (rows: the judge, columns: what most people said, ties left out;
        of two people without a judge; None for more than 12 values) and ``alternative_test`` where there are people
        enough. ``statistics``: name -> ``judge``, ``people``, ``gap``, means over pairs of the judge with a person, of
        people, and the former less the latter, and ``together``, of all people at once (three and more; measures of
        any number of raters). Every figure is an `Estimate` as plain data or None; one that does not fit the field
        has a reason; with ``width`` it has ``labels_needed`` and ``labels_reason`` too. ``by``: slice -> items, and
        fields as above; None without a column. ``bars``: what came of each, see `evenhand.bars.Bar.held`; of the
        judge's figure, without a judge the people's. ``published`` has the figures published for the rubric's
        benchmark, of other data; None where there are none.

    Raises:
        InputError: no label is of an item of the run; no such statistic or field, or no bar.
    """
    bands = {band for f in rubric.output.fields if f.scale is not None for band in f.scale.bands}
    wanted = Wanted.of(statistic, width, bands)
    places = [*(f.name for f in rubric.output.fields if f.kind in ("scale", "bool")), COMPOSITE]
    bars = [
        read_bar(bar, require=lambda name: require_statistic(name, bands), places=places)
        for bar in texts("require", require)
    ]
    wanted = replace(wanted, also=tuple(bar.figure for bar in bars))
    units = judge.units if judge is not None else list(_of_people(rubric, labels))
    shared = [unit for unit in units if unit.id in labels.of]
    if not shared:
        raise InputError("no label is of an item of the run", hint="labels are joined by id; say --map id=COLUMN")
    told = _facts_of(rubric, shared, labels, judge, wanted)
    return {
        "rubric": {"name": rubric.name, "version": rubric.version},
        "judge": None if judge is None else judge.name,
        "people": list(labels.raters),
        "items": _counts(units, labels, judge) | {"labelled": len(labels.of)},
        "fields": told,
        "by": None if by is None else _slices(rubric, units, labels, judge, replace(wanted, also=())),
        "bars": [held for bar in bars for held in _held(bar, told, judge)],
        "published": published(rubric),
    }


def _of_people(rubric: Rubric, labels: Labels) -> Iterator[Unit]:
    """The labelled items, without a judge."""
    clusters = Clusters(rubric)
    for own in labels.of:
        yield Unit(own, clusters.of(Item(own, 0, {})), {}, labels.slices.get(own))


def _counts(units: Sequence[Unit], labels: Labels, judge: Judged | None) -> dict[str, int | None]:
    ids = {unit.id for unit in units}
    return {"judged": None if judge is None else len(ids), "both": len(ids & labels.of.keys())}


def _slices(
    rubric: Rubric, units: Sequence[Unit], labels: Labels, judge: Judged | None, wanted: Wanted
) -> dict[str, Any]:
    """The same figures of each slice, also of those without a label."""
    of: dict[str, list[Unit]] = {}
    for unit in units:
        of.setdefault(str(unit.slice), []).append(unit)
    told = {}
    for name, some in sorted(of.items()):
        shared = [unit for unit in some if unit.id in labels.of]
        told[name] = {"items": _counts(some, labels, judge), "fields": _facts_of(rubric, shared, labels, judge, wanted)}
    return told


def _held(bar: Bar, fields: Mapping[str, Any], judge: Judged | None) -> list[dict[str, Any]]:
    """A bar against the figure of its field, or of every field that two rated."""
    side = "people" if judge is None else "judge"
    places = [bar.place] if bar.place is not None else list(fields)
    found = [(p, fields[p]["statistics"][bar.figure][side] if p in fields else None) for p in places]
    return [bar.held(place, figure) for place, figure in found] or [bar.held(None, None)]


def published(rubric: Rubric) -> dict[str, Any] | None:
    """What others published of judges under this rubric's benchmark; None where nothing is known."""
    known = json.loads((files("evenhand") / "published.json").read_text(encoding="utf-8"))
    return known if rubric.name in known["rubrics"] else None


def _twice(own: str, who: Any, column: str) -> Problem:
    if who is None:
        remedy = "if several people rated, say which column names them: --map rater=COLUMN"
        return Problem(None, "", f"{own!r} was rated before, and no column {column!r} tells by whom", remedy)
    return Problem(None, "", f"{own!r} was rated by {str(who)!r} before", "keep one of the two")


def fields_of(rubric: Rubric, labels: Labels) -> Iterator[tuple[str, Measured]]:
    """Fields that people rated, and how their values are compared."""
    rated = {name for said in labels.of.values() for values in said.values() for name in values}
    for output in rubric.output.fields:
        if output.name in rated and output.kind in ("scale", "bool"):
            yield output.name, Measured.of(output)
    if COMPOSITE in rated:
        yield COMPOSITE, Measured("interval", numeric=True)


def _with_composite(values: Mapping[str, Any], rubric: Rubric) -> dict[str, Any]:
    """Values with their weighted mean, where the rubric has weights and no value is missing."""
    parts = [(values.get(c.name), c.weight or 0.0) for c in rubric.criteria]
    numbers = [value * weight for value, weight in parts if isinstance(value, int | float)]
    if not rubric.aggregate.composite or len(numbers) < len(parts):
        return dict(values)
    return {**values, COMPOSITE: sum(numbers)}


def _facts_of(
    rubric: Rubric, units: Sequence[Unit], labels: Labels, judge: Judged | None, wanted: Wanted
) -> dict[str, Any]:
    """The figures of each field that two rated, of these units."""
    found = {}
    unit = Clusters(rubric).unit if judge is None else judge.unit
    for name, how in fields_of(rubric, labels):
        people = [rater for rater in labels.raters if any(name in labels.of[unit.id].get(rater, ()) for unit in units)]
        judges = judge is not None and any(unit.said.get(name) is not None for unit in units)
        if len(people) + judges < 2:
            continue
        rows = [
            [*([unit.said.get(name)] if judges else []), *(labels.of[unit.id].get(p, {}).get(name) for p in people)]
            for unit in units
        ]
        found[name] = field_facts(how, Said(rows, judges, people, [one.cluster for one in units], unit), wanted)
    return found
