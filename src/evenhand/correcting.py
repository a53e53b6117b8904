"""A run's figures corrected for its judge's errors, by labels that people gave to some of its items. No layout.

Run, Labels -> units with codes -> `stats.correction` -> correction_facts
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from evenhand import facts
from evenhand.agreeing import COMPOSITE, Labels, judged
from evenhand.errors import InputError, UnknownNameError
from evenhand.keywords import text
from evenhand.rubric.model import OutputField, Rubric
from evenhand.slices import label
from evenhand.stats.calibration import isotonic_mean, two_stage_mean
from evenhand.stats.correction import (
    Sample,
    prediction_powered_difference,
    prediction_powered_mean,
    prediction_powered_win_rate,
)
from evenhand.stats.estimates import Estimate
from evenhand.stats.prevalence import rogan_gladen
from evenhand.stats.resample import mean_interval
from evenhand.store import Store
from evenhand.tasks import composite_bounds, question_of

Method = Literal["ppi", "rogan-gladen", "isotonic", "two-stage"]
METHODS: tuple[str, ...] = get_args(Method)
_FAR = 4.0  #: standard errors from which labels look chosen
_VALUES = 20  #: different values up to which a column is one of groups
_GROUPS = 12  #: groups up to which each two are compared


@dataclass(frozen=True, slots=True)
class _Measure:
    """How values of a field become a number.

    Attributes:
        name: Field, or "composite".
        what: What the mean is of, in words.
        code: The number of a value; None where it has none.
        low, high: Ends of the numbers.
        step: Distance of neighbouring numbers, 0 where they are smooth.
        binary: There are two values, 0 and 1.
    """

    name: str
    what: str
    code: Callable[[Any], float | None]
    low: float = 0.0
    high: float = 1.0
    step: float = 1.0
    binary: bool = False


@dataclass(frozen=True, slots=True)
class _Row:
    """A unit of the run: an item, judged once."""

    item: str
    cluster: str
    question: str
    group: str | None
    said: Mapping[str, Any]


def correction_facts(
    store: Store,
    rubric: Rubric,
    labels: Labels,
    *,
    method: Method = "ppi",
    by: str | None = None,
    value: facts.ValueKind = "stated",
) -> dict[str, Any]:
    """The corrected figures, as plain data.

    Args:
        store: The open run.
        rubric: Its rubric.
        labels: What people said of some of its items; several raters of an item count by their mean.
        method: "ppi", "rogan-gladen" (fields of two values), "isotonic" or "two-stage".
        by: A column whose values get figures of their own and, under "ppi", are compared by question.
        value: As in a summary.

    Returns:
        ``judge``, ``method``, ``people``, ``items`` (judged, labelled: those among them with a label), ``measures``:
        name -> what, raw, corrected (each an `Estimate` as plain data), judged and labelled (items with a value);
        ``left_out``: field -> why it has no figure; ``warnings``; ``by``: None, or column, groups (name -> measures)
        and differences (a, b, measure, raw and corrected difference of b less a, win_rate of b: corrected).

    Raises:
        InputError: no such method or column, no label of an item of the run, or no field that the method fits.
    """
    if method not in METHODS:
        raise UnknownNameError("method", method, METHODS)
    by = None if by is None else text("by", by)
    rows, unit, columns = _rows(store, rubric, by, value)
    found = {row.item for row in rows} & labels.of.keys()
    if not found:
        raise InputError("no label is of an item of the run", hint="labels are joined by id; say --map id=COLUMN")
    measures, left_out = _measures(rubric, store.manifest["asked"], labels, value)
    if method == "rogan-gladen":
        left_out |= {name: "rogan-gladen needs two values" for name, m in measures.items() if not m.binary}
        measures = {name: m for name, m in measures.items() if m.binary}
    if not measures:
        raise InputError(f"no field of {rubric.name} can be corrected by {method}", hint=_why(left_out))
    told = {name: _told(_Cells(rows, m, labels, unit), m, method) for name, m in measures.items()}
    chosen = [text for name, m in measures.items() for text in _unlike(_Cells(rows, m, labels, unit).sample(), m)]
    return {
        "rubric": {"name": rubric.name, "version": rubric.version},
        "judge": store.manifest["judge"]["spec"],
        "method": method,
        "value": value,
        "people": list(labels.raters),
        "items": {"judged": len({row.item for row in rows}), "labelled": len(found)},
        "measures": told,
        "left_out": left_out,
        "warnings": [*_uneven(columns, found), *chosen],
        "by": None if by is None else _by(by, rows, measures, labels, method, unit),
    }


def _rows(
    store: Store, rubric: Rubric, by: str | None, value: facts.ValueKind
) -> tuple[list[_Row], str, dict[str, dict[str, str]]]:
    """The run's units, what their clusters are, and the short values of each item's columns."""
    about: dict[str, dict[str, Any]] = {}
    questions: dict[str, str] = {}
    for stored, _ in store.verdicts():
        item = stored.item
        if item is None:
            continue
        if by is not None and not item.fields:
            raise InputError(f"the run keeps no texts (--no-store-texts), so there is no column {by!r}")
        source = {**item.extra, **item.fields}
        about[item.id] = {k: str(v) for k, v in source.items() if isinstance(v, str | int | float) and len(str(v)) < 40}
        if by is not None:
            about[item.id][by] = None if source.get(by) is None else label(source[by])
            questions[item.id] = question_of(item, rubric) if rubric.mode == "score" else item.id
    if by is not None and all(known[by] is None for known in about.values()):
        raise UnknownNameError("column", by, {name for known in about.values() for name in known} - {by})
    said = judged(store, rubric, value)
    rows = [
        _Row(u.id, u.cluster, questions.get(u.id, u.id), None if by is None else about[u.id][by], u.said)
        for u in said.units
    ]
    return rows, said.unit, {own: {k: v for k, v in known.items() if v is not None} for own, known in about.items()}


def _measures(
    rubric: Rubric, asked: Sequence[str], labels: Labels, value: facts.ValueKind
) -> tuple[dict[str, _Measure], dict[str, str]]:
    """What can be corrected, and why other fields can't: the criteria, and what else people rated."""
    rated = {name for said in labels.of.values() for values in said.values() for name in values}
    criteria = {c.name for c in rubric.criteria}
    found: dict[str, _Measure] = {}
    left_out = {}
    for output in rubric.output.fields:
        if output.kind not in ("scale", "bool") or output.name not in asked or output.name not in criteria | rated:
            continue
        if (measure := _measure(output)) is None:
            left_out[output.name] = "its values are labels, which have no mean"
        else:
            smooth = value == "expected" and measure.high - measure.low > measure.step
            found[output.name] = replace(measure, step=0.0) if smooth else measure
    if rubric.aggregate.composite:
        low, high = composite_bounds(rubric)
        found[COMPOSITE] = _Measure(COMPOSITE, "mean", _number, low, high, 0.0)
    return found, left_out


def _measure(output: OutputField) -> _Measure | None:
    name, scale = output.name, output.scale
    if scale is None:
        return _Measure(name, "share of true", _number, binary=True)
    if scale.numeric:
        low, high = float(scale.bottom), float(scale.top)
        points = sorted(float(p) for p in scale.points or ())
        step = min((b - a for a, b in itertools.pairwise(points)), default=0.0)
        return _Measure(name, "mean", _number, low, high, step, binary=points == [0.0, 1.0])
    values = list(scale.values or ())
    if scale.slots and len(values) <= 3:
        others = {other: 0.5 for other in values if other not in ("A", "B")}
        return _Measure(name, "share of A, others half", {"A": 1.0, "B": 0.0, **others}.get, step=0.5)
    if len(values) == 2:
        codes = {values[0]: 0.0, values[1]: 1.0}
        return _Measure(name, f"share of {values[1]}", codes.get, binary=True)
    return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, bool | int | float) else None


class _Cells:
    """The numbers of one measure, for samples of some of a run's units."""

    def __init__(self, rows: Sequence[_Row], measure: _Measure, labels: Labels, unit: str) -> None:
        self.rows, self.unit = rows, unit
        self._measure = measure
        self.judge = np.array([_or_nan(measure.code(row.said.get(measure.name))) for row in rows])
        truth = {own: self._label(said) for own, said in labels.of.items()}
        self.labels = np.array([truth.get(row.item, math.nan) for row in rows])
        self._clusters = _codes([row.cluster for row in rows])
        self._questions = _codes([row.question for row in rows])

    def _label(self, said: Mapping[str, Mapping[str, Any]]) -> float:
        """The mean of the raters; of yes and no what most say, nothing where they are even."""
        numbers = [self._measure.code(values.get(self._measure.name)) for values in said.values()]
        given = [number for number in numbers if number is not None]
        mean = math.fsum(given) / len(given) if given else math.nan
        if self._measure.binary and not math.isnan(mean):
            return math.nan if mean == 0.5 else float(mean > 0.5)
        return mean

    def sample(self, group: str | None = None) -> Sample:
        """The units of a group, or all."""
        chosen = np.array([group is None or row.group == group for row in self.rows])
        return Sample.of(self.judge[chosen], self.labels[chosen], self._clusters[chosen], self._questions[chosen])

    def answers(self, group: str) -> Sample:
        """One unit a question of a group: means over repeats."""
        sample = self.sample(group)
        questions, place = np.unique(sample.questions, return_inverse=True)
        sizes = np.bincount(place)
        judge = np.bincount(place, weights=sample.judge) / sizes
        labels = np.bincount(place, weights=sample.labels) / sizes
        clusters = np.zeros(len(questions), dtype=np.intp)
        clusters[place] = sample.clusters
        return Sample(judge, labels, clusters, questions, sample.left_out)

    def counts(self, group: str | None = None) -> dict[str, int]:
        """Items with a value of the judge, and those of them with a label."""
        there = [
            (row.item, labelled)
            for row, said, labelled in zip(self.rows, self.judge, ~np.isnan(self.labels), strict=True)
            if not math.isnan(said) and (group is None or row.group == group)
        ]
        return {"judged": len({own for own, _ in there}), "labelled": len({own for own, known in there if known})}


def _told(cells: _Cells, measure: _Measure, method: Method, group: str | None = None) -> dict[str, Any]:
    sample = cells.sample(group)
    return {
        "what": measure.what,
        "raw": _raw(sample.judge, sample.clusters, measure.low, measure.high).of_unit(cells.unit).as_dict(),
        "corrected": _corrected(sample, measure, method).of_unit(cells.unit).as_dict(),
        **cells.counts(group),
    }


def _raw(judge: Any, clusters: Any, low: float, high: float) -> Estimate:
    if not len(judge):
        return Estimate(None, reason="nothing judged")
    return mean_interval(judge, _codes(clusters.tolist()), low=low, high=high)


def _corrected(sample: Sample, measure: _Measure, method: Method) -> Estimate:
    if method == "rogan-gladen":
        return rogan_gladen(sample)
    if method == "isotonic":
        return isotonic_mean(sample, low=measure.low, high=measure.high)
    if method == "two-stage":
        return two_stage_mean(sample, low=measure.low, high=measure.high)
    return prediction_powered_mean(sample, low=measure.low, high=measure.high, step=measure.step)


def _by(
    column: str, rows: Sequence[_Row], measures: Mapping[str, _Measure], labels: Labels, method: Method, unit: str
) -> dict[str, Any]:
    groups = list(dict.fromkeys(row.group for row in rows if row.group is not None))
    cells = {name: _Cells(rows, m, labels, unit) for name, m in measures.items()}
    told = {group: {name: _told(cells[name], m, method, group) for name, m in measures.items()} for group in groups}
    pairs = list(itertools.combinations(groups, 2)) if method == "ppi" and len(groups) <= _GROUPS else []
    differences = [_difference(cells[name], m, a, b) for name, m in measures.items() for a, b in pairs]
    return {"column": column, "groups": told, "differences": differences}


def _difference(cells: _Cells, measure: _Measure, a: str, b: str) -> dict[str, Any]:
    """B less A, and how often B is above A, on the same questions."""
    x, y = cells.answers(a), cells.answers(b)
    reach = measure.high - measure.low
    _, first, second = np.intersect1d(x.questions, y.questions, assume_unique=True, return_indices=True)
    raw = _raw(y.judge[second] - x.judge[first], y.clusters[second], -reach, reach)
    raw = raw if len(first) else replace(raw, reason="no question was judged of both")
    corrected = prediction_powered_difference(x, y, low=measure.low, high=measure.high, step=measure.step)
    return {
        "a": a,
        "b": b,
        "measure": measure.name,
        "raw": raw.of_unit(cells.unit).as_dict(),
        "corrected": corrected.of_unit(cells.unit).as_dict(),
        "win_rate": prediction_powered_win_rate(x, y).of_unit(cells.unit).as_dict(),
    }


def _uneven(columns: Mapping[str, Mapping[str, str]], labelled: set[str]) -> Iterator[str]:
    """Columns over whose values labels are spread as a random choice would hardly do it."""
    total, n = len(columns), len(labelled & columns.keys())
    if not 0 < n < total:
        return
    for column in dict.fromkeys(name for known in columns.values() for name in known):
        counts: dict[str, list[int]] = {}
        for own, known in columns.items():
            if column in known:
                count = counts.setdefault(known[column], [0, 0])
                count[0] += 1
                count[1] += own in labelled
            if len(counts) > _VALUES:
                break
        if not 1 < len(counts) <= _VALUES:
            continue
        for told, (there, found) in counts.items():
            share = there / total
            spread = math.sqrt(n * share * (1 - share) * (total - n) / max(1, total - 1))
            if spread and abs(found - n * share) > _FAR * spread:
                yield (
                    f"{found} of {n} labelled items have {column} {told!r}, as {there} of all {total} do: "
                    "labels should be a random sample"
                )
                break


def _unlike(sample: Sample, measure: _Measure) -> Iterator[str]:
    """Whether the judge rates labelled items otherwise than the rest."""
    known = sample.labelled
    if known.all() or not known.any():
        return
    one, other = (_raw(sample.judge[k], sample.clusters[k], measure.low, measure.high) for k in (known, ~known))
    if one.se is None or other.se is None or one.value is None or other.value is None:
        return
    if abs(one.value - other.value) > _FAR * math.hypot(one.se, other.se):
        yield (
            f"{measure.name}: the judge's mean is {one.value:.2f} on labelled items and {other.value:.2f} on the "
            "others: labels should be a random sample"
        )


def _codes(names: Sequence[Any]) -> Any:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], dtype=np.intp)


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _why(left_out: Mapping[str, str]) -> str | None:
    return "; ".join(f"{name}: {reason}" for name, reason in left_out.items()) or None
