"""Judges side by side over sets of items: how far each agrees with people, what it costs, how often it fails.

judge_quality -> Candidate (a run, and what its judge said) -> figures as plain data
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand import facts
from evenhand.agreeing import COMPOSITE, Judged, Labels, Unit, fields_of, judged, read_labels
from evenhand.api import Run
from evenhand.choosing import choice
from evenhand.errors import InputError, StatisticError
from evenhand.field_agreement import Measured, Said, Wanted, field_facts
from evenhand.item import fields_digest
from evenhand.opening import run_folders
from evenhand.rubric.model import Rubric
from evenhand.service import service_facts
from evenhand.stats import annotators
from evenhand.stats.estimates import Estimate
from evenhand.store import Store
from evenhand.tasks import weights_of

_FAR = ("mae", "bias")  # less is better: no measure to choose by
_Key = tuple[str, int]  # item id, repeat


@dataclass(slots=True)
class Candidate:
    """A judge on a set of items.

    Attributes:
        run: The run.
        judged: What the judge said.
        texts: Item id -> digest of what was judged; empty where texts are not kept.
        told: The figures that need no labels.
        labels: What people said; None without.
        group: Judges of one group may be compared: the same labels, rubric, scales and weights.
        name: The judge, with its run where the same judge stands in the group, or under the name of its set, twice.
    """

    run: Run
    judged: Judged
    texts: Mapping[str, str]
    told: dict[str, Any]
    labels: Labels | None
    group: Any
    name: str = ""

    @property
    def rubric(self) -> Rubric:
        """The run's rubric."""
        return self.run.rubric

    def units(self) -> Iterator[tuple[_Key, Unit]]:
        """Each unit with its item's id and its number among the item's repeats."""
        seen: Counter[str] = Counter()
        for unit in self.judged.units:
            yield (unit.id, seen[unit.id]), unit
            seen[unit.id] += 1


def judge_quality(
    runs: Sequence[str | Path],
    labels: Any = None,
    *,
    map: Mapping[str, str] | None = None,
    value: facts.ValueKind = "stated",
    statistic: str | Sequence[str] | None = None,
) -> dict[str, Any]:
    """Which judge to buy: judges and sets in one table; without labels, how far judges agree with each other.

    Args:
        runs: Run folders; judges on the same items, or on several sets.
        labels: What people said, as for `Run.agreement`: one source for all runs, or a list with one for each. None:
            the judges against each other.
        map: Field name, "id" or "rater" -> column of the labels.
        value: As for `Run.summary`.
        statistic: As for `evenhand.agreeing.agreement_facts`; by default quadratic kappa (of labels without order plain
            kappa) and exact agreement. Without labels, those of one run.

    Returns:
        ``judges``: one entry a run: run, judge, name, set (data, rubric, version), planned, scored, failures, failed
        (share of what was asked), violated (share of replies that contradict themselves), consistency (share of pairs
        whose side stays when the order changes; None without both orders), cost_usd, cost_per_1000_items (None:
        unknown), latency_s (median, p95, n), tokens, calls, and ``agreement``: field -> statistic -> figure, None
        without labels. ``sets``: one entry for judges that can be compared: set, judges, ``people`` (field ->
        statistic -> figure, people against people), ``differences`` (field, statistic, a, b, difference: b less a on
        the items both judged), ``field`` and ``statistic`` to choose by, and ``verdict``, the answer in words.
        ``fields``, without labels: field -> level, pairs (a, b, statistics, confusion), together (three judges and
        more), warnings. Every figure is an `Estimate` as plain data, clustered by question or prompt.

    Raises:
        InputError: fewer than two runs, one given twice, labels of no item of a run, as many files of labels as are
            neither one nor one each, an id that names different items, or judges without labels whose rubrics differ.
    """
    opened = [Run(run) for run in run_folders(runs)]
    if len(opened) < 2:
        raise InputError("judges are compared over two runs or more", hint="of one run, see Run.agreement")
    sources = _sources(labels, len(opened))
    found = [_candidate(run, source, map, value) for run, source in zip(opened, sources, strict=True)]
    groups: dict[Any, list[Candidate]] = {}
    for one in found:
        groups.setdefault(one.group, []).append(one)
    if labels is None and len(groups) > 1:
        raise InputError("the runs have other rubrics, scales or weights, so their judges are not comparable")
    bands = {band for one in found for f in one.rubric.output.fields if f.scale is not None for band in f.scale.bands}
    wanted = Wanted.of(statistic, None, bands)
    _name(found)
    for members in groups.values():
        _require_same_items(members)
    sets = [] if labels is None else [_set_facts(members, wanted) for members in groups.values()]
    return {
        "value": value,
        "judges": [{"name": one.name, **one.told} for one in found],
        "sets": sets,
        "fields": _each_other(found, wanted) if labels is None else None,
    }


def _sources(labels: Any, runs: int) -> list[Any]:
    """The labels of each run."""
    several = isinstance(labels, list | tuple) and not any(isinstance(one, Mapping) for one in labels)
    if not several:
        return [labels] * runs
    if len(labels) not in (1, runs):
        raise InputError(f"{len(labels)} files of labels for {runs} runs", hint="give one for all runs, or one each")
    return list(labels) * (runs if len(labels) == 1 else 1)


def _candidate(run: Run, source: Any, map: Mapping[str, str] | None, value: facts.ValueKind) -> Candidate:
    summary = run.summary(value=value)
    with Store.open(run.folder) as store:
        said = judged(store, run.rubric, value)
        texts = {item.id: fields_digest(item.fields) for item in store.items() if item.fields}
        told = service_facts(store, run.rubric, summary)
    labels = None
    if source is not None:
        labels = read_labels(str(source) if isinstance(source, Path) else source, run.rubric, mapping=map)
        if not any(unit.id in labels.of for unit in said.units):
            hint = "labels are joined by id; say --map id=COLUMN"
            raise InputError(f"no label is of an item of {run.folder}", hint=hint)
    scales = tuple((f.name, repr(f.scale and (f.scale.level, f.scale.points, f.scale.low, f.scale.high)))
                   for f in run.rubric.output.fields if f.kind in ("scale", "bool"))  # fmt: skip
    which = str(source) if isinstance(source, str | Path) else id(source)
    told = {"run": str(run.folder), **told, "agreement": None}
    return Candidate(
        run, said, texts, told, labels, (which, run.rubric.name, scales, tuple(weights_of(run.rubric).items()))
    )


def _name(found: Sequence[Candidate]) -> None:
    """Name each after its judge, with its run where the same judge stands in the group, or under the set, twice."""
    for one in found:
        spec, of = one.judged.name, one.told["set"]
        alike = [o for o in found if o.judged.name == spec and (o.group == one.group or o.told["set"] == of)]
        one.name = spec if len(alike) == 1 else f"{spec} ({one.run.folder})"


def _require_same_items(members: Sequence[Candidate]) -> None:
    """Refuse an id that names another text in a former run; where texts are not kept, it can't be told."""
    known: dict[str, tuple[str, str]] = {}
    for one in members:
        for own, text in one.texts.items():
            before, where = known.setdefault(own, (text, str(one.run.folder)))
            if before != text:
                hint = "judges are compared on the same items: give each item one id, the same in all files"
                raise InputError(f"item {own} of {one.run.folder} is another than that of {where}", hint=hint)


def _set_facts(members: Sequence[Candidate], wanted: Wanted) -> dict[str, Any]:
    """Judges of the same labels against people, and against each other in how far they agree with people."""
    first = members[0]
    assert first.labels is not None
    of = dict(fields_of(first.rubric, first.labels))
    told: dict[str, Any] = {
        "set": first.told["set"],
        "judges": [one.name for one in members],
        "people": {},
        "differences": [],
        **dict.fromkeys(("field", "statistic")),
        "verdict": "people rated no field of the rubric",
    }
    for one in members:
        one.told["agreement"] = {}
    field = _to_choose_by(first.rubric, of)
    for name, how in of.items():
        statistic, apart = _field(name, how, members, wanted, told)
        if name == field:
            told["field"], told["statistic"] = field, statistic
            figures = {one.name: one.told["agreement"][name][statistic] for one in members}
            costs = {one.name: one.told["cost_per_1000_items"] for one in members}
            told["verdict"] = choice(statistic, figures, apart, costs)
    return told


def _to_choose_by(rubric: Rubric, of: Mapping[str, Measured]) -> str | None:
    """The composite, the preference, or the first field that people rated."""
    likely = [COMPOSITE, rubric.preference, *(c.name for c in rubric.criteria), *of]
    return next((name for name in likely if name in of), None)


def _field(
    name: str, how: Measured, members: Sequence[Candidate], wanted: Wanted, told: dict[str, Any]
) -> tuple[str, dict[tuple[str, str], Estimate]]:
    """Put in the figures of one field; the statistic to choose by, and the differences of judges in it."""
    labels = members[0].labels
    assert labels is not None
    names = wanted.statistics or ((how.main, "exact") if how.categories else (how.main,))
    statistic = next((n for n in names if n not in _FAR), how.main) if wanted.statistics else how.main
    if statistic in (how.bands or ()) or statistic == "all":
        statistic = how.main
    names = tuple(dict.fromkeys((statistic, *names)))
    people = [rater for rater in labels.raters if any(name in said.get(rater, ()) for said in labels.of.values())]
    for one in members:
        units = [unit for unit in one.judged.units if unit.id in labels.of]
        rows = [[unit.said.get(name), *_of_people(labels, unit.id, people, name)] for unit in units]
        found = field_facts(
            how, Said(rows, True, people, [unit.cluster for unit in units], one.judged.unit), Wanted(names)
        )
        one.told["agreement"][name] = {n: figure["judge"] for n, figure in found["statistics"].items()}
        if len(people) > 1:
            told["people"].setdefault(name, {n: figure["people"] for n, figure in found["statistics"].items()})
    apart = _differences(name, how, members, people, labels, statistic)
    for (a, b), estimate in apart.items():
        told["differences"].append(
            {"field": name, "statistic": statistic, "a": a, "b": b, "difference": estimate.as_dict()}
        )
    return statistic, apart


def _of_people(labels: Labels, own: str, people: Sequence[str], name: str) -> list[Any]:
    return [labels.of[own].get(rater, {}).get(name) for rater in people]


def _differences(
    name: str, how: Measured, members: Sequence[Candidate], people: Sequence[str], labels: Labels, statistic: str
) -> dict[tuple[str, str], Estimate]:
    """How much better the second of two judges agrees with people than the first, on the items both judged."""
    said = {one.name: {key: unit for key, unit in one.units() if unit.id in labels.of} for one in members}
    keys = list(dict.fromkeys(key for units in said.values() for key in units))
    rows = [
        [*(units[key].said.get(name) if key in units else None for units in said.values()),
         *_of_people(labels, key[0], people, name)]
        for key in keys
    ]  # fmt: skip
    clusters = [next(units[key].cluster for units in said.values() if key in units) for key in keys]
    persons = [f"person {number}" for number, _ in enumerate(people, 1)]
    ratings = how.ratings(rows, [*said, *persons], clusters)
    found = {}
    for a, b in itertools.combinations(said, 2):
        try:
            apart = annotators.judges_apart(ratings, a, b, people=persons, statistic=statistic)
            found[a, b] = apart.of_unit(members[0].judged.unit)
        except StatisticError as error:
            found[a, b] = Estimate(None, reason=error.message)
    return found


def _each_other(members: Sequence[Candidate], wanted: Wanted) -> dict[str, Any]:
    """Judges as raters of the same items, field by field."""
    said = {one.name: dict(one.units()) for one in members}
    shared = [key for key, n in Counter(key for units in said.values() for key in units).items() if n > 1]
    if not shared:
        raise InputError("the runs have no item in common", hint="items are joined by id")
    clusters = [next(units[key].cluster for units in said.values() if key in units) for key in shared]
    fields = {f.name: Measured.of(f) for f in members[0].rubric.output.fields if f.kind in ("scale", "bool")}
    if members[0].rubric.aggregate.composite:
        fields[COMPOSITE] = Measured("interval", numeric=True)
    told = {}
    for name, how in fields.items():
        values = {
            judge: [units[key].said.get(name) if key in units else None for key in shared]
            for judge, units in said.items()
        }
        if any(value is not None for column in values.values() for value in column):
            told[name] = _field_of_judges(how, values, clusters, wanted, members[0].judged.unit)
    return told


def _field_of_judges(
    how: Measured, values: Mapping[str, Sequence[Any]], clusters: Sequence[str], wanted: Wanted, unit: str
) -> dict[str, Any]:
    pairs = []
    for a, b in itertools.combinations(values, 2):
        both = list(zip(values[a], values[b], strict=True))
        found = field_facts(how, Said(both, False, (a, b), clusters, unit), wanted)
        figures = {name: figure["people"] for name, figure in found["statistics"].items()}
        pairs.append({"a": a, "b": b, "statistics": figures, "confusion": found["confusion"]})
    names = ("alpha", *(("fleiss",) if how.categories else ()))
    rows = list(zip(*values.values(), strict=True))
    all_of = field_facts(how, Said(rows, False, tuple(values), clusters, unit), Wanted(names))
    return {
        "level": how.level,
        "pairs": pairs,
        "together": {name: figure["together"] for name, figure in all_of["statistics"].items() if figure["together"]},
        "warnings": all_of["warnings"],
    }
