"""From a trial's replies to its verdict: presentation order, fixed values, reading, rules. Pure.

The judge sees a pair in presentation order; everything kept is in the item's own order. Both directions
of that mapping live here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from evenhand._kept import kept
from evenhand.expressions import Environment
from evenhand.parse import read
from evenhand.rubric.model import OutputField, Rubric
from evenhand.rubric.schema import asked_fields
from evenhand.rules import Rules
from evenhand.trial import Trial
from evenhand.verdict import Distribution, Failure, FieldOutcome, FieldValue, Reading, Reply, Status, Verdict

_value, _failure = attrgetter("value"), attrgetter("failure")
_OTHER_SLOT = {"a": "b", "b": "a", "A": "B", "B": "A"}


class Question(Struct, frozen=True, gc=False):
    """What one trial asks, in presentation order.

    Attributes:
        item: Item fields as the judge sees them (responses exchanged for order "ba").
        fields: Fields to ask for; empty when nothing is left to ask.
        fixed: Output fields the item decides, in the item's own order, never asked.
        swapped: Whether presentation order differs from the item's.
        known: What rules know of the item, in its own order.
    """

    item: Mapping[str, Any]
    fields: tuple[OutputField, ...]
    fixed: Mapping[str, FieldValue]
    swapped: bool
    known: Environment


class _Roles(NamedTuple):
    """Of a rubric's output fields, by name.

    Attributes:
        order: All of them.
        deciding: Those without which a verdict is none: they answer a criterion, or name the preferred side.
        mattering: Those that are worth a re-ask.
        asked: Those asked for in the short form or not, by those that are not; the very same for all trials alike, so
            that what is made of them is made once.
    """

    order: tuple[str, ...]
    deciding: frozenset[str]
    mattering: frozenset[str]
    asked: dict[tuple[bool, tuple[str, ...]], tuple[OutputField, ...]]


def _roles_of(rubric: Rubric) -> _Roles:
    fields = rubric.output.fields
    deciding = frozenset(f.name for f in fields if f.criterion == f.name or f.name == rubric.preference)
    return _Roles(tuple(f.name for f in fields), deciding, deciding | {f.name for f in fields if f.required}, {})


_roles = kept(_roles_of)


def question(rubric: Rubric, rules: Rules, trial: Trial, *, short: bool) -> Question:
    """What is left to ask of the judge for one trial, after presets and values given with the item."""
    item = trial.item.fields
    known = rules.environment(item)
    preset = rules.preset(known)
    roles = _roles(rubric)
    fixed = dict(preset.values)
    if not known.keys().isdisjoint(roles.order):
        fixed = {name: item[name] for name in roles.order if item.get(name) is not None} | fixed
    swapped = trial.key.order == "ba"
    hidden = tuple(_swap_name(rubric, name) for name in fixed) if swapped else tuple(fixed)
    fields: tuple[OutputField, ...] = ()
    if preset.call and (fields := roles.asked.get((short, hidden), ())) == ():
        fields = roles.asked[short, hidden] = asked_fields(rubric, short=short, preset=hidden)
    return Question(swap_item(rubric, item) if swapped else item, fields, fixed, swapped, known)


def settle(rubric: Rubric, rules: Rules, asked: Question, reply: Reply | None) -> Verdict:
    """The verdict of one reply (None: everything was fixed), in the item's own order."""
    outcomes = {name: FieldOutcome(value, preset=True) for name, value in asked.fixed.items()}
    reading = Reading({})
    if reply is not None:
        reading = read(reply, asked.fields, function=rubric.output.function)
        outcomes.update(_map_back(rubric, asked, _with_distributions(reading, reply)))
    return _conclude(rubric, rules, asked.known, _in_order(rubric, outcomes), reading)


def complaints(rubric: Rubric, rules: Rules, asked: Question, verdict: Verdict) -> list[str]:
    """What the judge should mend, in the terms of what it saw; empty when there is nothing to re-ask."""
    if verdict.status in (Status.REFUSED, Status.FAILED):
        return []
    outcomes, broken = verdict.fields, verdict.violations
    if asked.swapped:
        outcomes = _in_order(rubric, _map_back(rubric, asked, outcomes))
    unread = [_unread(name, outcomes[name]) for name in _unread_names(rubric, outcomes)]
    if unread:
        return unread
    if asked.swapped:  # in the item's own order the verdict has been checked already
        broken = rules.check(_values(outcomes), asked.item).violations
    return [f"{v.rule}: {v.message}" for v in broken if v.severity == "violation"]


def better(rubric: Rubric, first: Verdict, second: Verdict) -> Verdict:
    """The verdict that counts after a re-ask: the second, unless it lacks more than the first.

    A scored verdict lacks less than any other; then required fields without a value are counted.
    """
    return re_asked(first if _lack(rubric, first) < _lack(rubric, second) else second, first)


def re_asked(verdict: Verdict, first: Verdict) -> Verdict:
    """The verdict of a trial that was asked again, marked as such, with the rules that its first reply broke."""
    broken = first.broken if first.status is Status.SCORED else None
    return replace(verdict, re_asked=True, first_violations=broken)


def swap_item(rubric: Rubric, item: Mapping[str, Any]) -> dict[str, Any]:
    """The item with its two responses exchanged."""
    first, second = rubric.item.responses
    return {**item, first: item.get(second), second: item.get(first)}


def _conclude(
    rubric: Rubric, rules: Rules, known: Environment, outcomes: dict[str, FieldOutcome], reading: Reading
) -> Verdict:
    checked = rules.check(_values(outcomes), known)
    failure = reading.failure
    if failure is None and _some_failed(outcomes):
        deciding = _roles(rubric).deciding
        failure = next((o.failure for name, o in outcomes.items() if o.failure is not None and name in deciding), None)
    status = Status.SCORED
    if failure is not None:
        status = Status.REFUSED if failure is Failure.REFUSAL else Status.UNPARSED
    return Verdict(
        status=status,
        fields=outcomes,
        violations=checked.violations,
        not_checked=checked.not_checked,
        failure=failure.value if failure else None,
        repaired=reading.repaired,
    )


def _some_failed(outcomes: Mapping[str, FieldOutcome]) -> bool:
    return any(map(_failure, outcomes.values()))


def _values(outcomes: Mapping[str, FieldOutcome]) -> dict[str, FieldValue]:
    if not _some_failed(outcomes):
        return dict(zip(outcomes, map(_value, outcomes.values()), strict=True))
    return {name: outcome.value for name, outcome in outcomes.items() if outcome.failure is None}


def _unread_names(rubric: Rubric, outcomes: Mapping[str, FieldOutcome]) -> list[str]:
    """The fields without a value that are worth a re-ask."""
    if not _some_failed(outcomes):
        return []
    mattering = _roles(rubric).mattering
    return [name for name, outcome in outcomes.items() if outcome.failure is not None and name in mattering]


def _lack(rubric: Rubric, verdict: Verdict) -> tuple[bool, int]:
    return verdict.status is not Status.SCORED, len(_unread_names(rubric, verdict.fields))


def _unread(name: str, outcome: FieldOutcome) -> str:
    found = f": {outcome.detail}" if outcome.detail else ""
    assert outcome.failure is not None
    return f"{name}: {outcome.failure.value}{found}"


def _with_distributions(reading: Reading, reply: Reply) -> Mapping[str, FieldOutcome]:
    if not reply.distributions:
        return reading.fields
    return {
        name: replace(outcome, distribution=reply.distributions.get(name)) if outcome.failure is None else outcome
        for name, outcome in reading.fields.items()
    }


def _in_order(rubric: Rubric, outcomes: Mapping[str, FieldOutcome]) -> dict[str, FieldOutcome]:
    order = _roles(rubric).order
    if tuple(outcomes) == order:
        return dict(outcomes)
    return {name: outcomes[name] for name in order if name in outcomes}


def _map_back(rubric: Rubric, asked: Question, outcomes: Mapping[str, FieldOutcome]) -> Mapping[str, FieldOutcome]:
    """From presentation order to the item's, or the other way round."""
    return _swap_outcomes(rubric, outcomes) if asked.swapped else outcomes


def _swap_outcomes(rubric: Rubric, outcomes: Mapping[str, FieldOutcome]) -> dict[str, FieldOutcome]:
    """The same verdict after exchanging the two responses; its own inverse."""
    swapped = {}
    for name, outcome in outcomes.items():
        field = rubric.output.field(name)
        if field is not None and field.scale is not None and field.scale.slots:
            outcome = _swap_sides(outcome)
        swapped[_swap_name(rubric, name)] = outcome
    return swapped


def _swap_sides(outcome: FieldOutcome) -> FieldOutcome:
    spread = outcome.distribution
    if spread is not None:
        spread = Distribution({_side(v): p for v, p in spread.probabilities.items()}, spread.missing_mass)
    return replace(outcome, value=_side(outcome.value), distribution=spread)


def _side(value: Any) -> Any:
    return _OTHER_SLOT.get(value, value) if isinstance(value, str) else value


def _swap_name(rubric: Rubric, name: str) -> str:
    field = rubric.output.field(name)
    return f"{field.base}_{_OTHER_SLOT[field.slot]}" if field is not None and field.slot is not None else name
