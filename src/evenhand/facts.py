"""Every number of a run, with its n, what is missing and why. No layout; reports print what stands here."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal

from evenhand._canon import digest
from evenhand.item import Item
from evenhand.rubric.model import OutputField, Rubric
from evenhand.sides import CHANGED, judged, preferred, scored
from evenhand.slices import Column
from evenhand.spill import Spill
from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ScatteredMean, as_share
from evenhand.store import Store, StoredRow
from evenhand.tasks import Clusters, Tasks, composite_bounds, score_bounds, told_mean, weights_of
from evenhand.trial import TrialKey
from evenhand.verdict import FieldOutcome, Status, Verdict

ValueKind = Literal["stated", "expected"]
NOT_VALIDATED = "not validated"
_COMPOSITE, _AGREEMENT, _FIRST, _LAST = ".composite", ".agreement", ".first", ".last"  # beside the names of fields


def summary(store: Store, rubric: Rubric, *, value: ValueKind = "stated", by: str | None = None) -> dict[str, Any]:
    """The figures of a run as plain JSON data.

    Args:
        store: An open run.
        rubric: The run's rubric.
        value: "stated" takes the value the judge gave, "expected" the probability-weighted one.
        by: A column of the input, an item field of the rubric, or "id", to break the figures down by; each of its
            values gets the same figures under "by".

    Returns:
        planned, scored, coverage, failures and more, as the command-line page describes. planned and scored count items
        times repeats (both orders of a pair together, scored only when both are); coverage is scored rows over input
        rows, None without rows. The ``n`` of a field and of the composite counts verdicts that have a value: both
        orders of a pair count one each, while ``items`` counts the independent units behind them, of the kind that
        ``cluster`` names (`evenhand.tasks.Clusters`); the composite has its ``weights`` too. errors has one text
        for each class of failed requests that tells one. trials are items times orders times repeats, trials_asked
        those that have a verdict. violation_rate counts the trials whose reply could be read, and those of them that
        break a rule of severity "violation", with a clustered Wilson interval: by first replies, and by what counts
        after the re-ask. Pairs have preference, the sides of pairs that name the same one in both orders; with both
        orders also flips, the pairs that don't, and agreement, the share of the former among the pairs that the judge
        itself judged in both orders. warnings count verdicts by rule, and items whose images the judge was not shown
        ("images not shown"). ask has the entry phrase that was given, and the criterion that stands first for it.
        With expected values a field has missing_mass too: the mean over its n distributions, None without any.
        aggregate has the figures by task that the rubric asks for (`evenhand.tasks.Tasks.facts`), else None.

    Raises:
        UnknownNameError: ``by`` is neither a column of any row nor an item field.
    """
    manifest = store.manifest
    whole = _Tally(rubric, manifest, value)
    slices: dict[str, _Tally] = {}
    column = Column(by, rubric, manifest) if by is not None else None
    bounds = score_bounds(rubric)
    tasks = None if bounds is None else Tasks(rubric, bounds, Clusters(rubric, manifest))
    for row, verdicts in store.verdicts():
        whole.add(row, verdicts)
        if tasks is not None and row.item is not None:
            tasks.add(row.item, [_score(v, rubric, value) for unit in whole.units(row, verdicts) for v in unit])
        if column is not None:
            slices.setdefault(column.slice_of(row), _Tally(rubric, manifest, value)).add(row, verdicts)
    if column is not None:
        column.require_known()
    facts = whole.facts()
    if hidden := manifest.get("images_not_shown"):
        facts["warnings"]["images not shown"] = hidden
    facts["judge"] = {**manifest["judge"], "models": sorted(whole.models), "status": NOT_VALIDATED}
    facts["rubric"] = {"name": rubric.name, "version": rubric.version, "digest": rubric.digest}
    facts["ask"] = _asked(rubric, manifest)
    facts["spent"] = manifest.get("cost")
    facts["aggregate"] = None if tasks is None else tasks.facts()
    if column is not None:
        facts["by"] = {name: tally.facts() for name, tally in sorted(slices.items())}
    return facts


def _asked(rubric: Rubric, manifest: Mapping[str, Any]) -> dict[str, str | None] | None:
    """The entry phrase of the run's last command and the criterion that it puts first; None without one."""
    phrase = manifest["commands"][-1].get("ask") if manifest["commands"] else None
    return None if phrase is None else {"phrase": phrase, "first": rubric.ask.get(phrase)}


class _Tally:
    """Counts and means of some rows, fed row by row."""

    def __init__(self, rubric: Rubric, manifest: Mapping[str, Any], value: ValueKind) -> None:
        self._rubric = rubric
        self._value = value
        self._orders = tuple(manifest["orders"])
        self._repeats = manifest["repeats"]
        self._weights = weights_of(rubric)
        self._asked = set(manifest["asked"])
        self._shown_first = (_asked(rubric, manifest) or {}).get("first")
        self.models: set[str] = set()
        self._null = 0
        self._rows = self._bad = self._planned = self._scored = self._rows_scored = 0
        self._trials = self._trials_asked = 0
        self._in_code = self._re_asked = self._repaired = self._inconsistent = self._calls = self._flips = 0
        self._failures: Counter[str] = Counter()
        self._errors: dict[str, str] = {}
        self._violations: Counter[str] = Counter()
        self._warnings: Counter[str] = Counter()
        self._not_checked: Counter[str] = Counter()
        self._preference: Counter[str] = Counter()
        self._means: dict[str, ScatteredMean] = {}
        self._clusters = Clusters(rubric, manifest)
        self._sums = Spill()  # of clusters, by their digests: sum and size in each mean, as these have places
        self._places: dict[str, int] = {}
        self._cluster = array("d")
        self._counts: dict[str, Counter[str]] = {}
        self._field_failures: dict[str, Counter[str]] = {}
        self._preset: Counter[str] = Counter()
        self._lost: dict[str, tuple[float, int]] = {}  # missing mass: sum, distributions
        low, high = composite_bounds(rubric)
        self._composite = ScatteredMean(low=low, high=high)
        # whether both orders name one side; whether a readable reply, the first and what counts, breaks a rule
        self._shares = {name: ScatteredMean(low=0.0, high=1.0) for name in (_AGREEMENT, _FIRST, _LAST)}
        self._cost: float | None = 0.0
        self._tokens = Counter({"prompt": 0, "completion": 0, "cached": 0})

    def add(self, row: StoredRow, verdicts: Mapping[TrialKey, Verdict]) -> None:
        """Take one input row and its verdicts."""
        self._rows += 1
        self._planned += self._repeats
        if row.item is None:
            self._bad += 1
            self._failures["bad_row"] += self._repeats
            return
        self._null += len(null_answers(row.item, self._rubric))
        key = int(digest(self._clusters.of(row.item))[:15], 16)  # 60 bits
        self._cluster = array("d", self._sums.get(key) or b"")
        units = list(self.units(row, verdicts))
        for unit in units:
            self._add_unit(unit)
        self._add_preferences(units)
        self._rows_scored += all(scored(unit) for unit in units)
        self._trials += self._repeats * len(self._orders)
        for verdict in verdicts.values():
            self._add_verdict(verdict)
        self._add_values([unit for unit in units if unit])
        self._sums.put(key, self._cluster.tobytes())

    def units(self, row: StoredRow, verdicts: Mapping[TrialKey, Verdict]) -> Iterator[list[Verdict | None]]:
        """One unit a repeat; both orders of a pair are one unit."""
        if row.item is None:
            return
        for repeat in range(self._repeats):
            yield [verdicts.get(TrialKey(row.item.id, order, repeat)) for order in self._orders]

    def _add_unit(self, unit: list[Verdict | None]) -> None:
        if scored(unit):
            self._scored += 1
            self._in_code += all(verdict is not None and verdict.calls == 0 for verdict in unit)
            return
        worst = next(v for v in unit if v is None or v.status is not Status.SCORED)
        self._failures["not_asked" if worst is None else worst.failure or worst.status.value] += 1

    def _add_preferences(self, units: list[list[Verdict | None]]) -> None:
        """The sides of one item, and whether both orders name the same."""
        sides = [preferred(unit, self._rubric, self._value) for unit in units]
        told = [side for side in sides if side is not None]
        self._flips += told.count(CHANGED)
        self._preference.update(side for side in told if side != CHANGED)
        pairs = zip(sides, units, strict=True)
        self._add_share(_AGREEMENT, [side != CHANGED for side, unit in pairs if side and judged(unit, self._rubric)])

    def _add_share(self, name: str, values: list[bool]) -> None:
        self._add_to(name, self._shares[name], [float(value) for value in values])

    def _add_to(self, name: str, mean: ScatteredMean, values: list[float]) -> None:
        """Add values of the row's cluster to a mean."""
        if not values:
            return
        at = 2 * self._places.setdefault(name, len(self._places))
        sums = self._cluster
        sums.extend([0.0] * (at + 2 - len(sums)))
        sums[at], sums[at + 1] = mean.add_to(sums[at], int(sums[at + 1]), values)

    def _add_verdict(self, verdict: Verdict) -> None:
        self._trials_asked += 1
        self._re_asked += verdict.re_asked
        self._repaired += verdict.repaired
        self._inconsistent += not verdict.consistent
        self._add_clashes(verdict)
        self._calls += verdict.calls
        self._violations.update(verdict.broken)
        self._warnings.update(v.rule for v in verdict.violations if v.severity == "warning")
        self._not_checked.update(verdict.not_checked)
        if verdict.status is Status.FAILED and verdict.detail:
            self._errors.setdefault(str(verdict.failure), verdict.detail)
        if verdict.model:
            self.models.add(verdict.model)
        usage = verdict.usage
        self._tokens["prompt"] += usage.prompt_tokens or 0
        self._tokens["completion"] += usage.completion_tokens or 0
        self._tokens["cached"] += usage.cached_tokens or 0
        if verdict.calls and self._cost is not None:
            self._cost = None if usage.cost_usd is None else self._cost + usage.cost_usd

    def _add_clashes(self, verdict: Verdict) -> None:
        """Whether the judge contradicts itself: in its first reply, and in what counts after the re-ask."""
        if not verdict.calls:
            return  # set in code: the judge said nothing
        now = verdict.broken if verdict.status is Status.SCORED else None
        before = verdict.first_violations if verdict.re_asked else now
        self._add_share(_LAST, [] if now is None else [bool(now)])
        self._add_share(_FIRST, [] if before is None else [bool(before)])

    def _add_values(self, units: list[list[Verdict | None]]) -> None:
        """Values of one item: its repeats and orders are of one cluster, and so are other answers to its question."""
        verdicts = [v for unit in units for v in unit if v is not None]
        for field in self._rubric.output.fields:
            if field.scale is None or field.name not in self._asked:
                continue
            outcomes = [v.fields[field.name] for v in verdicts if field.name in v.fields]
            self._add_field(field, outcomes)
        if self._weights:
            totals = [_composite(v, self._weights, self._value) for v in verdicts]
            self._add_to(_COMPOSITE, self._composite, [t for t in totals if t is not None])

    def _add_field(self, field: OutputField, outcomes: list[FieldOutcome]) -> None:
        assert field.scale is not None
        failed = self._field_failures.setdefault(field.name, Counter())
        failed.update(o.failure.value for o in outcomes if o.failure is not None)
        self._preset[field.name] += sum(o.preset for o in outcomes)
        lost, n = self._lost.get(field.name, (0.0, 0))
        spreads = [o.distribution for o in outcomes if o.distribution is not None and not o.preset]
        self._lost[field.name] = lost + sum(s.missing_mass for s in spreads), n + len(spreads)
        values = [pick(o, self._value) for o in outcomes]
        if field.scale.numeric:
            if (mean := self._means.get(field.name)) is None:
                low, high = float(field.scale.bottom), float(field.scale.top)
                mean = self._means[field.name] = ScatteredMean(low=low, high=high)
            self._add_to(field.name, mean, [float(v) for v in values if isinstance(v, int | float)])
        else:
            counts = self._counts.setdefault(field.name, Counter())
            counts.update(str(v) for v in values if v is not None)

    def facts(self) -> dict[str, Any]:
        """All figures so far, as plain data."""
        criteria = {c.name for c in self._rubric.criteria}
        fields = {f.name: self._field_facts(f.name) for f in self._shown() if f.name in self._preset}
        facts: dict[str, Any] = {
            "planned": self._planned,
            "scored": self._scored,
            "trials": self._trials,
            "trials_asked": self._trials_asked,
            "rows": self._rows,
            "rows_scored": self._rows_scored,
            "bad_rows": self._bad,
            "coverage": self._rows_scored / self._rows if self._rows else None,
            "failures": dict(self._failures),
            "errors": dict(self._errors),
            "violations": dict(self._violations),
            "warnings": dict(self._warnings),
            "not_checked": dict(self._not_checked),
            "criteria": {name: fact for name, fact in fields.items() if name in criteria},
            "fields": {name: fact for name, fact in fields.items() if name not in criteria},
            "composite": self._mean_facts(self._composite) | {"weights": self._weights} if self._weights else None,
            "value": self._value,
            "null_answers": self._null,
            "set_in_code": self._in_code,
            "re_asked": self._re_asked,
            "repaired": self._repaired,
            "inconsistent": self._inconsistent,
            "violation_rate": {"before_re_ask": self._rate(_FIRST), "after_re_ask": self._rate(_LAST)},
            "calls": self._calls,
            "tokens": dict(self._tokens),
            "cost_usd": self._cost,
        }
        if self._rubric.preference is not None:
            facts["preference"] = {side: self._preference[side] for side in self._labels(self._rubric.preference)}
            if len(self._orders) > 1:
                facts["flips"] = self._flips
                if self._value == "stated":  # expected values join both orders into one side
                    facts["agreement"] = told_mean(self._share(_AGREEMENT, "no pair was judged in both orders"))
        return facts

    def _mean_facts(self, mean: ScatteredMean) -> dict[str, Any]:
        return told_mean(mean.estimate(self._clusters.unit))

    def _share(self, name: str, none: str) -> Estimate:
        found = as_share(self._shares[name].estimate(self._clusters.unit))
        return replace(found, reason=none) if found.value is None else found

    def _rate(self, name: str) -> dict[str, Any]:
        """A share of replies, told beside its two counts."""
        told = told_mean(self._share(name, "no reply could be read"))
        mean, n = told.pop("mean"), told.pop("n")
        violated = round(n * (mean or 0.0))
        return {"trials": n, "violated": violated, "rate": violated / n if n else None, **told}

    def _shown(self) -> list[OutputField]:
        """The fields in the order of the report: the rubric's, but for the criterion that was asked for."""
        first = self._shown_first
        return sorted(self._rubric.output.fields, key=lambda f: first is not None and f.criterion != first)

    def _field_facts(self, name: str) -> dict[str, Any]:
        if name in self._means:
            facts = self._mean_facts(self._means[name])
        else:
            counts = self._counts.get(name, Counter())
            facts = {"counts": {label: counts[label] for label in self._labels(name)}, "n": counts.total()}
        facts["set_in_code"] = self._preset[name]
        facts["failures"] = dict(self._field_failures[name])
        if self._value == "expected":
            lost, n = self._lost[name]
            facts["missing_mass"] = {"mean": lost / n if n else None, "n": n}
        return facts

    def _labels(self, name: str) -> list[str]:
        field = self._rubric.output.field(name)
        return [str(v) for v in field.scale.values or ()] if field and field.scale else []


def pick(outcome: FieldOutcome, value: ValueKind) -> Any:
    """The stated value, or the expected one where the judge gave probabilities (labels: the likeliest)."""
    if value == "stated" or outcome.preset:
        return outcome.value
    spread = outcome.distribution
    if spread is None:
        return None
    return (
        spread.expected
        if spread.expected is not None
        else max(spread.probabilities, key=spread.probabilities.__getitem__)
    )


def null_answers(item: Item, rubric: Rubric) -> list[str]:
    """The responses of an item that are null, as of a system that crashed; "" is an answer, if an empty one.

    None can be told of an item whose texts were not kept.
    """
    return [name for name in rubric.item.responses if item.fields.get(name, "") is None]


def composite(verdict: Verdict, rubric: Rubric, value: ValueKind = "stated") -> float | None:
    """Weighted mean of a verdict's criteria; None when the rubric has no weights or any criterion is missing."""
    weights = weights_of(rubric)
    return _composite(verdict, weights, value) if weights else None


def _score(verdict: Verdict | None, rubric: Rubric, value: ValueKind) -> float | None:
    """The one number that tasks are summed up by: the composite, else the first criterion with numbers."""
    if verdict is None:
        return None
    if rubric.aggregate.composite:
        return composite(verdict, rubric, value)
    first = next(c.name for c in rubric.criteria if c.scale.numeric)
    outcome = verdict.fields.get(first)
    picked = pick(outcome, value) if outcome is not None else None
    return float(picked) if isinstance(picked, int | float) else None


def _composite(verdict: Verdict, weights: Mapping[str, float], value: ValueKind) -> float | None:
    total = 0.0
    for name, weight in weights.items():
        outcome = verdict.fields.get(name)
        picked = pick(outcome, value) if outcome is not None else None
        if not isinstance(picked, int | float):
            return None
        total += weight * picked
    return total


def row_summary(
    row: StoredRow, verdicts: Mapping[TrialKey, Verdict], rubric: Rubric, manifest: Mapping[str, Any], value: ValueKind
) -> dict[str, Any]:
    """The figures of one input row; over all rows their counts sum up to those of `summary`."""
    tally = _Tally(rubric, manifest, value)
    tally.add(row, verdicts)
    return tally.facts()
