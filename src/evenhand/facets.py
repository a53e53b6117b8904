"""The rows of a run as a report shows them: cells, what each can be found by, and everything behind it.

RunRows -> Row (cells, facets, detail); FacetTable: how often each facet occurred
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evenhand.agreeing import COMPOSITE, said_of
from evenhand.facts import ValueKind, pick, row_summary
from evenhand.field_agreement import MOST_VALUES as MOST_TABLED
from evenhand.field_agreement import most_common
from evenhand.inspection import told_item
from evenhand.pairing import COLUMNS
from evenhand.rubric.model import OutputField, Rubric
from evenhand.slices import Column
from evenhand.store import Store, StoredRow
from evenhand.table import columns, plain, wide_columns
from evenhand.tasks import question_of
from evenhand.trial import TrialKey
from evenhand.verdict import Verdict

#: A column with more values than this, or longer ones, is text and no group.
MOST_VALUES = 30
LONGEST_VALUE = 60
_SHOWN = ("scale", "bool")
_COUNTS = (
    "planned", "scored", "rows_scored", "bad_rows", "flips", "set_in_code", "re_asked", "repaired", "inconsistent",
    "null_answers", "calls", "trials", "trials_asked",
)  # fmt: skip
#: What a row's calls took: summed up, but for the latency, which is that of its slowest trial.
USAGE = ("prompt tokens", "completion tokens", "cached tokens", "cost in USD", "latency in s")
#: What shares rest on: units that the judge was asked, and those whose side it named in both orders.
ASKED, JUDGED = "asked of the judge", "judged in both orders"
_QUESTION_DIGITS = 12
_LEFT_OUT = ("failure", "violations", "repaired", "calls", "model", "set_in_code", "re_asked")


class Facet(NamedTuple):
    """Something that verdicts have in common.

    Attributes:
        kind: count, failure, rule, warning, valued (has a value), value, unread (has none), preset, preferred, system,
            label, confusion, column or run.
        name: A field, rule, class or column; of a count what is counted; of a system wins, ties, losses, flips or n.
        value: The value of a field or column, a class, or a system; of a confusion what judge and people say; "" for
            other kinds.
    """

    kind: str
    name: str
    value: str = ""


@dataclass(slots=True)
class FacetTable:
    """Every facet that occurred: its number, in how many rows, and how often in all.

    Attributes:
        ids: Facet -> number, in order of first occurrence.
        rows: Facet -> rows that have it.
        counts: Facet -> occurrences: verdicts or, for what summaries count in pairs, pairs.
    """

    ids: dict[Facet, int] = field(default_factory=dict)
    rows: Counter[Facet] = field(default_factory=Counter)
    counts: Counter[Facet] = field(default_factory=Counter)

    def add(self, found: Mapping[Facet, int]) -> list[int]:
        """Take a row's facets in; their numbers."""
        self.rows.update(found.keys())
        self.counts.update(found)
        return [self.ids.setdefault(facet, len(self.ids)) for facet in found]


@dataclass(frozen=True, slots=True)
class Row:
    """One input row.

    Attributes:
        id: The item's id; of a bad row its place.
        cells: Column -> value.
        facets: What it can be found by, with how often.
        question: What is asked of the system, as a key; "" where that is not known.
        broken: Id of each rule that its verdicts break -> the message of the first that does.
        detail: Everything behind it, as plain JSON data; None where it was not asked for.
    """

    id: str
    cells: dict[str, Any]
    facets: dict[Facet, int]
    question: str
    broken: dict[str, str]
    detail: dict[str, Any] | None


class RunRows:
    """The rows of a run, in input order; iterate once, then ask for what was counted.

    Args:
        store: The open run.
        rubric: Its rubric.
        name: What the run is called.
        value: As for `evenhand.facts.summary`.
        by: Columns to break distributions down by.
        details: Whether rows have their details.
        labels: Item id -> rater -> field -> value, what people said.

    Attributes:
        columns: Names of the cells, in order.
        distributions: Field -> value -> verdicts; a continuous or expected value counts for the nearest legal one.
        by: Column -> slice -> distributions.
        messages: Id of each broken rule -> the first message that a verdict broke it with.
        labelled: Of what people labelled: rows ("labelled"), and for each field the verdicts that people and judge
            gave a value, that they gave different ones, and that two people gave one.
    """

    def __init__(
        self,
        store: Store,
        rubric: Rubric,
        name: str,
        value: ValueKind,
        by: Sequence[str],
        *,
        details: bool,
        labels: Mapping[str, Mapping[str, Mapping[str, Any]]] | None = None,
    ) -> None:
        self._labels = labels or {}
        self.labelled: Counter[str] = Counter()
        self.messages: dict[str, str] = {}
        self._store, self._rubric, self._value, self._details = store, rubric, value, details
        self._manifest = store.manifest
        self._name = name
        self._hidden = bool(self._manifest.get("images_not_shown"))
        self._images = [f.name for f in rubric.item.fields if f.type == "images"]
        self._slices = {column: Column(column, rubric, self._manifest) for column in by}
        self._groups: dict[str, set[str] | None] = {}
        self._fields = [f for n in self._manifest["asked"] if (f := rubric.output.field(n)) and f.kind in _SHOWN]
        self._tabled = {f.name: f for f in self._fields if len(legal_values(f)) <= MOST_TABLED}
        dropped = {*_LEFT_OUT, *(f.name for f in rubric.output.fields if f.kind not in _SHOWN)}
        self.columns = [*by, *(c for c in columns(rubric, self._manifest, long=False) if c not in dropped), *USAGE]
        self.distributions: dict[str, Counter[str]] = {f.name: Counter() for f in self._fields}
        self.by: dict[str, dict[str, dict[str, Counter[str]]]] = {column: {} for column in by}

    def __iter__(self) -> Iterator[Row]:
        for row, verdicts in self._store.verdicts():
            slices = {name: column.slice_of(row) for name, column in self._slices.items()}
            cells = {**slices, **wide_columns(row, verdicts, self._rubric, self._manifest, self._value)}
            cells |= _usage(verdicts.values())
            cells = {name: cells.get(name) for name in self.columns}
            own = row.item.id if row.item is not None else f"row {row.seq + 1}"
            found = self._facets(row, verdicts, slices) | self._compared(own, verdicts)
            asked = question_of(row.item, self._rubric)[:_QUESTION_DIGITS] if row.item and row.item.fields else ""
            broken: dict[str, str] = {}
            for violation in (violation for verdict in verdicts.values() for violation in verdict.violations):
                broken.setdefault(violation.rule, violation.message)
            self.messages = broken | self.messages
            yield Row(own, cells, found, asked, broken, self._detail(row, verdicts))

    def _compared(self, own: str, verdicts: Mapping[TrialKey, Verdict]) -> Counter[Facet]:
        """Whether people labelled the item, and of each field and repeat what they and the judge say."""
        labels = self._labels.get(own)
        if labels is None:
            return Counter()
        found = Counter({Facet("label", "labelled"): 1})
        for said in said_of(verdicts, self._rubric, self._manifest, self._value):
            for name in (*(f.name for f in self._fields), COMPOSITE):
                people = [of.get(name) for of in labels.values()]
                found.update(self._judge_and_people(name, said.get(name), people))
        self.labelled.update({facet.name: n for facet, n in found.items() if facet.kind == "label"})
        return found

    def _judge_and_people(self, name: str, judge: Any, people: Sequence[Any]) -> Iterator[Facet]:
        values = [value for value in people if value is not None]
        if len(values) > 1:
            yield Facet("label", f"{name}: two people or more")
        if judge is None or not values:
            return
        yield Facet("label", f"{name}: judge and people")
        if any(value != judge for value in values):
            yield Facet("label", f"{name}: judge and people differ")
        output, most = self._tabled.get(name), most_common(people)
        if output is not None and most is not None:
            yield confusion(name, shown_value(output, judge), shown_value(output, most))

    def _facets(
        self, row: StoredRow, verdicts: Mapping[TrialKey, Verdict], slices: Mapping[str, str]
    ) -> dict[Facet, int]:
        told = row_summary(row, verdicts, self._rubric, self._manifest, self._value)
        found = {Facet("run", self._name): 1}
        found |= {Facet("count", name): told.get(name, 0) for name in _COUNTS}
        derived = _derived(told, verdicts, len(self._manifest["orders"]))
        found |= {Facet("count", name): n for name, n in derived.items()}
        for kind, name in (("failure", "failures"), ("rule", "violations"), ("warning", "warnings")):
            found |= {Facet(kind, key): n for key, n in told[name].items()}
        if row.item is not None and self._hidden and any(row.item.fields.get(name) for name in self._images):
            found[Facet("warning", "images not shown")] = 1
        found |= _standings(row, told)
        found |= {Facet("preferred", side): n for side, n in told.get("preference", {}).items()}
        found[Facet("count", JUDGED)] = told.get("agreement", {}).get("n", 0)
        if told["composite"]:
            found[Facet("valued", "composite")] = told["composite"]["n"]
        for name, fact in {**told["criteria"], **told["fields"]}.items():
            found[Facet("preset", name)] = fact["set_in_code"]
            found[Facet("unread", name)] = sum(fact["failures"].values())
            found |= {Facet("unread", name, failure): n for failure, n in fact["failures"].items()}
        values = self._values(verdicts)
        for name, counts in values.items():
            found[Facet("valued", name)] = counts.total()
            found |= {Facet("value", name, key): n for key, n in counts.items()}
            self.distributions[name].update(counts)
        for column, slice_ in slices.items():
            found[Facet("column", column, slice_)] = 1
            known = self.by[column].setdefault(slice_, {f.name: Counter() for f in self._fields})
            for name, counts in values.items():
                known[name].update(counts)
        found |= {Facet("column", *group): 1 for group in self._grouped(row) if group[0] not in slices}
        return {facet: n for facet, n in found.items() if n}

    def _values(self, verdicts: Mapping[TrialKey, Verdict]) -> dict[str, Counter[str]]:
        values: dict[str, Counter[str]] = {}
        for output in self._fields:
            outcomes = [v.fields[output.name] for v in verdicts.values() if output.name in v.fields]
            picked = [pick(outcome, self._value) for outcome in outcomes]
            values[output.name] = Counter(shown_value(output, value) for value in picked if value is not None)
        return values

    def _grouped(self, row: StoredRow) -> Iterator[tuple[str, str]]:
        """The columns whose values are few and short, so that rows can be found by them."""
        if row.item is None:
            return
        judged = self._rubric.item.judged
        for name, value in {**row.item.fields, **row.item.extra}.items():
            known = self._groups.setdefault(name, set())
            if name in judged or known is None or value is None:
                continue
            text = str(value) if isinstance(value, str | bool | int) else None
            if text is None or len(text) > LONGEST_VALUE or len(known | {text}) > MOST_VALUES:
                self._groups[name] = None
                continue
            known.add(text)
            yield name, text

    @property
    def texts(self) -> set[str]:
        """Columns that turned out to be no groups, whatever the first rows looked like."""
        return {name for name, known in self._groups.items() if known is None}

    def _detail(self, row: StoredRow, verdicts: Mapping[TrialKey, Verdict]) -> dict[str, Any] | None:
        if not self._details:
            return None
        if row.item is None:
            return {"problem": row.problem, "extra": dict(row.raw), "fields": {}, "trials": []}
        told = told_item(self._store, self._rubric, self._manifest, row.item, verdicts)
        extra = {name: value for name, value in row.item.extra.items() if value is not None}
        fields = {name: plain(value) for name, value in row.item.fields.items() if value is not None}
        return {**told, "fields": fields, "extra": extra, "labels": self._labels.get(row.item.id, {})}


def confusion(name: str, judge: str, people: str) -> Facet:
    """That a judge gives a field one value and most people another, or the same."""
    return Facet("confusion", name, f"judge {judge}, people {people}")


def _derived(told: Mapping[str, Any], verdicts: Mapping[TrialKey, Verdict], orders: int) -> dict[str, int]:
    """Counts of a row that its figures don't have under one name."""
    asked, judge = Counter(key.repeat for key in verdicts), {key.repeat for key, v in verdicts.items() if v.by_judge}
    before, after = (told["violation_rate"][f"{when}_re_ask"] for when in ("before", "after"))
    return {
        "not scored": told["planned"] - told["scored"],
        "asked": sum(n == orders for n in asked.values()),
        ASKED: sum(n == orders and repeat in judge for repeat, n in asked.items()),
        "readable first replies": before["trials"],
        "first replies that break a rule": before["violated"],
        "readable replies": after["trials"],
        "replies that break a rule": after["violated"],
        "known latency": sum(v.calls > 0 and v.usage.latency_s is not None for v in verdicts.values()),
    }


def _usage(verdicts: Iterable[Verdict]) -> dict[str, float | None]:
    """What calls took: tokens where any server told them, money where all is known, seconds of the slowest trial."""
    of = [verdict.usage for verdict in verdicts if verdict.calls]
    tokens = [[u.prompt_tokens for u in of], [u.completion_tokens for u in of], [u.cached_tokens for u in of]]
    costs, seconds = [u.cost_usd for u in of], [u.latency_s for u in of if u.latency_s is not None]
    known = [[n for n in one if n is not None] for one in tokens]
    sums = [sum(one) if one else None for one in known]
    cost = None if None in costs or not costs else math.fsum(c for c in costs if c is not None)
    return dict(zip(USAGE, (*sums, cost, max(seconds, default=None)), strict=True))


def _standings(row: StoredRow, told: Mapping[str, Any]) -> Counter[Facet]:
    """What the pairs of a row are to the two systems that it names, as rankings count them."""
    found: Counter[Facet] = Counter()
    a, b = (row.item.extra.get(column) if row.item is not None else None for column in COLUMNS[1:])
    if a is None or b is None or "preference" not in told:
        return found
    for side, n in told["preference"].items():
        outcomes = {"A": ("wins", "losses"), "B": ("losses", "wins")}.get(side, ("ties", "ties"))
        for system, outcome in zip((a, b), outcomes, strict=True):
            found[Facet("system", outcome, str(system))] += n
            found[Facet("system", "n", str(system))] += n
    for system in (a, b):
        found[Facet("system", "flips", str(system))] += told.get("flips", 0)
    return found


def shown_value(output: OutputField, value: Any) -> str:
    """A value as distributions count it."""
    scale = output.scale
    if scale is not None and scale.numeric and isinstance(value, int | float) and not isinstance(value, bool):
        if scale.points is None:
            return str(round(value))
        return str(min(scale.points, key=lambda point: abs(float(point) - value)))
    return str(value)


def legal_values(output: OutputField) -> list[str]:
    """All values that distributions of a field may show, in order; of a bool true and false."""
    scale = output.scale
    if scale is None:
        return ["True", "False"]
    if scale.points is None:
        return [str(n) for n in range(round(scale.low or 0), round(scale.high or 0) + 1)]
    return [str(point) for point in scale.points]
