"""A judge against people, and people against each other: who rated what, and the figures of their agreement.

read_labels -> Labels; judged -> Judged; agreement_facts(Judged, Labels) -> figures
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from evenhand import facts
from evenhand.errors import InputError, ItemError, Problem
from evenhand.item import Item
from evenhand.item_values import Mistake, read_id
from evenhand.ratings import RatingReader
from evenhand.rubric.model import OutputField, Rubric
from evenhand.scale import Span, Value
from evenhand.sources import bad_row, open_source
from evenhand.stats import annotators, association
from evenhand.stats.table import Level, Ratings
from evenhand.store import Store
from evenhand.tasks import group_of
from evenhand.verdict import FieldOutcome

ALONE = "people"  #: who rated, where no row says so
JUDGE = "judge"
COMPOSITE = "composite"
_RATER = "rater"
_TOLD = 20


@dataclass(slots=True)
class Labels:
    """What people said: item id -> rater -> field -> value."""

    of: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    raters: dict[str, None] = field(default_factory=dict)

    def add(self, own: str, rater: str, values: dict[str, Any]) -> bool:
        """Take one rater's values of one item; whether there were none of this rater before."""
        self.raters.setdefault(rater)
        return self.of.setdefault(own, {}).setdefault(rater, values) is values


@dataclass(frozen=True, slots=True)
class Unit:
    """An item, judged once.

    Attributes:
        id: The item's id.
        cluster: What it shares its subject with: its paraphrase group, else the item alone.
        said: Field -> value; None where there is no verdict, or the orders of a pair differ.
    """

    id: str
    cluster: str
    said: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said, one entry a unit."""

    name: str
    units: Sequence[Unit]


def read_labels(
    source: Any, rubric: Rubric, *, mapping: Mapping[str, str] | None = None, format: str | None = None
) -> Labels:
    """Read labels: one row per item and rater, with ``id``, ``rater`` and columns named as the rubric's fields.

    Args:
        source: As for `evenhand.sources.open_source`.
        rubric: Says which fields and values there are.
        mapping: Field name, "id" or "rater" -> column. Without a rater column all rows are of one rater, "people".
        format: Input format, None to tell from the file name.

    Raises:
        ItemError: rows without id, with a value that is not legal, or that are given twice by the same rater.
        InputError: no such source, no rows, or no column that a field is read from.
    """
    mapping = dict(mapping or {})
    mapped = _RATER in mapping
    rater = mapping.pop(_RATER, _RATER)
    reader = RatingReader(rubric, (), mapping=mapping, partial=True)
    opened = open_source(source, format=format)
    labels, rows, fields = Labels(), 0, False
    problems: list[Problem] = []
    for rows, raw in enumerate(opened.rows, 1):
        found = [raw.problem] if raw.problem is not None else []
        if not found:
            read = reader.read(raw.values)
            found = [Problem(None, "", message) for message in read.wrong.values()]
            fields = fields or bool(read.values)
            who = None
            try:
                who = read_id(raw.values.get(rater))
            except Mistake as mistake:
                found.append(Problem(None, "", f"{rater} {mistake}"))
            if mapped and rater not in raw.values:
                known = ", ".join(raw.values)
                found.append(
                    Problem(None, "", f"no column {rater!r} for rater; columns: {known}", "--map rater=COLUMN")
                )
            if read.id is None:
                found.append(Problem(None, "", "no id", "give the item's id as `id`, or say --map id=COLUMN"))
            elif not found and not labels.add(
                read.id, ALONE if who is None else who, _with_composite(read.values, rubric)
            ):
                found.append(_twice(read.id, who, rater))
        problems += bad_row(rows - 1, raw, found).problems
        if len(problems) >= _TOLD:
            break
    if problems:
        raise ItemError(problems, file=opened.name)
    if not fields:
        known = ", ".join(f.name for f in rubric.output.fields if f.kind in ("scale", "bool"))
        what = f"no row holds a value of {rubric.name}" if rows else "no rows"
        hint = f"its fields: {known} (--map FIELD=COLUMN)" if rows else None
        raise InputError(f"{opened.name or 'the labels'}: {what}", hint=hint)
    return labels


def judged(store: Store, rubric: Rubric, value: facts.ValueKind = "stated") -> Judged:
    """What a run's judge said of each item: a unit for each repeat; both orders of a pair are one unit.

    A field of a pair has a value where both orders give the same, in the item's own order.
    """
    manifest = store.manifest
    names = [f.name for f in rubric.output.fields if f.kind in ("scale", "bool") and f.name in manifest["asked"]]
    units = []
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        for repeat in range(manifest["repeats"]):
            of = [v for key, v in verdicts.items() if key.repeat == repeat]
            whole = len(of) == len(manifest["orders"])
            said = {name: _same([v.fields.get(name) for v in of], value) if whole else None for name in names}
            cluster = group_of(row.item, rubric.aggregate)
            units.append(Unit(row.item.id, cluster, _with_composite(said, rubric)))
    return Judged(manifest["judge"]["spec"], units)


def _same(outcomes: Sequence[FieldOutcome | None], value: facts.ValueKind) -> Any:
    """The value that all outcomes have, None where one is missing or they differ."""
    values = [None if outcome is None else facts.pick(outcome, value) for outcome in outcomes]
    return values[0] if all(v == values[0] and v is not None for v in values) else None


def agreement_facts(rubric: Rubric, labels: Labels, judge: Judged | None = None) -> dict[str, Any]:
    """The figures of agreement, as plain data.

    Args:
        rubric: The rubric of both.
        labels: What people said.
        judge: What the judge said of the same items; None for people alone.

    Returns:
        ``people`` (names), ``judge``, ``items`` (labelled, judged, both), and ``fields``: name -> ``level``,
        ``statistics`` (name -> ``judge``, ``people``, ``gap``: means over pairs of the judge with a person, of
        people, and the former less the latter), ``bias`` (judge less people, for numbers) and ``alternative_test``
        where there are people enough. Every figure is an `Estimate` as plain data. ``published`` has the figures
        published for the rubric's benchmark, of other data; None where there are none.
    """
    alone = (Unit(own, group_of(Item(own, 0, {}), rubric.aggregate), {}) for own in labels.of)
    units = judge.units if judge is not None else list(alone)
    shared = [unit for unit in units if unit.id in labels.of]
    if not shared:
        raise InputError("no label is of an item of the run", hint="labels are joined by id; say --map id=COLUMN")
    told = {name: _field_facts(name, scale, shared, labels, judge) for name, scale in _fields(rubric, labels)}
    return {
        "rubric": {"name": rubric.name, "version": rubric.version},
        "judge": None if judge is None else judge.name,
        "people": list(labels.raters),
        "items": {
            "labelled": len(labels.of),
            "judged": None if judge is None else len({unit.id for unit in units}),
            "both": len({unit.id for unit in shared}),
        },
        "fields": {name: found for name, found in told.items() if found is not None},
        "published": published(rubric),
    }


def published(rubric: Rubric) -> dict[str, Any] | None:
    """What others published of judges under this rubric's benchmark; None where nothing is known."""
    known = json.loads((files("evenhand") / "published.json").read_text(encoding="utf-8"))
    return known if rubric.name in known["rubrics"] else None


def _twice(own: str, who: Any, column: str) -> Problem:
    if who is None:
        remedy = "if several people rated, say which column names them: --map rater=COLUMN"
        return Problem(None, "", f"{own!r} was rated before, and no column {column!r} tells by whom", remedy)
    return Problem(None, "", f"{own!r} was rated by {str(who)!r} before", "keep one of the two")


@dataclass(frozen=True, slots=True)
class _Field:
    """How the values of a field are compared."""

    level: Level
    categories: tuple[Value, ...]
    numeric: bool
    bands: Mapping[str, Any]

    @classmethod
    def of(cls, output: OutputField) -> _Field:
        scale = output.scale
        if scale is None:
            return cls("nominal", (False, True), False, {})
        level: Level = "nominal" if scale.level == "binary" else scale.level
        return cls(level, tuple(scale.points or ()), scale.numeric, scale.bands)


def _fields(rubric: Rubric, labels: Labels) -> Iterator[tuple[str, _Field]]:
    """Fields that people rated."""
    rated = {name for said in labels.of.values() for values in said.values() for name in values}
    for output in rubric.output.fields:
        if output.name in rated and output.kind in ("scale", "bool"):
            yield output.name, _Field.of(output)
    if COMPOSITE in rated:
        yield COMPOSITE, _Field("interval", (), True, {})


def _with_composite(values: Mapping[str, Any], rubric: Rubric) -> dict[str, Any]:
    """Values with their weighted mean, where the rubric has weights and no value is missing."""
    parts = [(values.get(c.name), c.weight or 0.0) for c in rubric.criteria]
    numbers = [value * weight for value, weight in parts if isinstance(value, int | float)]
    if not rubric.aggregate.composite or len(numbers) < len(parts):
        return dict(values)
    return {**values, COMPOSITE: sum(numbers)}


def _field_facts(
    name: str, how: _Field, units: Sequence[Unit], labels: Labels, judge: Judged | None
) -> dict[str, Any] | None:
    people = [rater for rater in labels.raters if any(name in labels.of[unit.id].get(rater, ()) for unit in units)]
    judges = [JUDGE] if judge is not None and any(unit.said.get(name) is not None for unit in units) else []
    if len(people) + len(judges) < 2:
        return None
    taken = _free(people)
    rows = [
        [*(unit.said.get(name) for _ in judges), *(labels.of[unit.id].get(rater, {}).get(name) for rater in people)]
        for unit in units
    ]
    clusters = [unit.cluster for unit in units]
    level: Level = how.level if how.categories else "interval"
    ratings = Ratings.of(rows, level, categories=how.categories, raters=[*judges, *taken], clusters=clusters)
    told: dict[str, Any] = {"level": how.level, "people": people}
    told["statistics"] = {
        statistic: _ceiling(found, taken, judges, kind)
        for statistic, found, kind in _statistics(ratings, how, rows, clusters)
    }
    if how.numeric and judges and len(people) == 1:
        told["bias"] = association.bias(ratings.at("interval").select([JUDGE, *taken])).as_dict()
    if judges and len(people) > 1:
        test = annotators.alternative_annotator_test(ratings, judge=JUDGE, people=taken)
        told["alternative_test"] = {
            "passed": test.passed,
            "winning_rate": test.winning_rate,
            "advantage": test.advantage,
            "epsilon": test.epsilon,
            "reason": test.reason,
            "warnings": list(test.warnings),
        }
    return told


def _free(people: Sequence[str]) -> list[str]:
    """Names of people that can't be taken for the judge."""
    return [f"{name} (person)" if name == JUDGE else name for name in people]


def _statistics(
    ratings: Ratings, how: _Field, rows: Sequence[Sequence[Any]], clusters: Sequence[str]
) -> Iterator[tuple[str, Ratings, str]]:
    """Name, ratings and measure of each statistic that fits the field."""
    if how.categories:
        yield "exact", ratings, "exact"
        yield "kappa", ratings, "kappa"
    for band, spans in how.bands.items():
        banded = [[_band(value, spans) for value in row] for row in rows]
        columns = ratings.raters
        yield (
            band,
            Ratings.of(banded, "ordinal", categories=range(len(spans)), raters=columns, clusters=clusters),
            "exact",
        )
    if how.level != "nominal":
        if how.categories:
            yield "kappa-quadratic", ratings, "kappa-quadratic"
        yield "spearman", ratings, "spearman"
        yield "kendall", ratings, "kendall"
    if how.numeric:
        numbers = ratings.at("interval")
        yield "pearson", numbers, "pearson"
        yield "mae", numbers, "mae"


def _band(value: Any, spans: Sequence[Span]) -> int | None:
    return next((n for n, (low, high) in enumerate(spans) if value is not None and low <= value <= high), None)


def _ceiling(ratings: Ratings, people: Sequence[str], judges: Sequence[str], statistic: str) -> dict[str, Any]:
    found = annotators.human_ceiling(ratings, people=people, judges=judges, statistic=statistic)
    return {
        "judge": found.judges[JUDGE].as_dict() if judges else None,
        "people": found.people.as_dict() if len(people) > 1 else None,
        "gap": found.gaps[JUDGE].as_dict() if judges and len(people) > 1 and JUDGE in found.gaps else None,
    }
