"""Which side a pair prefers over its presentation orders, and whether a judge said so. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from evenhand.rubric.model import Rubric
from evenhand.verdict import FieldOutcome, Status, Verdict

#: What a pair prefers whose side changes with the presentation order.
CHANGED = "changed with the order"


def scored(unit: Sequence[Verdict | None]) -> bool:
    """Whether every order of a unit is scored."""
    return bool(unit) and all(v is not None and v.status is Status.SCORED for v in unit)


def preferred(
    unit: Sequence[Verdict | None], rubric: Rubric, value: Literal["stated", "expected"] = "stated"
) -> str | None:
    """The side that both orders of one pair prefer, a tie included.

    Returns:
        The side in the item's own order; `CHANGED` where the orders differ; None where an order is not scored, or
        no side was asked for or named.
    """
    if rubric.preference is None or not scored(unit):
        return None
    sides = _sides([v for v in unit if v is not None], rubric.preference, value)
    if None in sides:
        return None
    return CHANGED if len(set(sides)) > 1 else str(sides[0])


def judged(unit: Sequence[Verdict | None], rubric: Rubric) -> bool:
    """Whether the judge itself named the side in each order: what is set in code can't change with the order."""
    name = rubric.preference
    return name is not None and all(
        v is not None and v.calls > 0 and not v.fields.get(name, FieldOutcome()).preset for v in unit
    )


def _sides(unit: list[Verdict], name: str, value: str) -> list[Any]:
    """The preferred side in each order; with expected values one side, from both orders' mean probabilities."""
    if value == "stated":
        return [verdict.value(name) for verdict in unit]
    return [likeliest(unit, name)]


def likeliest(unit: Sequence[Verdict], name: str) -> Any:
    """The value of a field with the highest mean probability over the orders of a pair."""
    total: Counter[Any] = Counter()
    for outcome in (verdict.fields.get(name, FieldOutcome()) for verdict in unit):
        total.update(outcome.distribution.probabilities if outcome.distribution else {outcome.value: 1.0})
    return max(total, key=total.__getitem__)
