"""Trials: the planned questions of a run. Planning is pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from evenhand.item import Item

Order = Literal["", "ab", "ba"]


class TrialKey(NamedTuple):
    """Identity of a trial within a run (the judge is the run's own).

    Attributes:
        item_id: The item.
        order: "" in score mode; "ab" shows response_a first, "ba" response_b first.
        repeat: 0-based repeat.
    """

    item_id: str
    order: Order
    repeat: int


class Trial(Struct, frozen=True, gc=False):
    """One planned question."""

    key: TrialKey
    item: Item


class Settled(NamedTuple):
    """Which trials need no asking: those planned whose stored verdict has one of some statuses.

    Attributes:
        statuses: Their statuses, as stored.
        orders, repeats: What is planned.
    """

    statuses: tuple[str, ...]
    orders: tuple[Order, ...]
    repeats: int


def plan(items: Iterable[Item], *, orders: tuple[Order, ...] = ("",), repeats: int = 1) -> Iterator[Trial]:
    """All trials of the items, item by item, so that both orders of a pair stay close."""
    for item in items:
        for repeat in range(repeats):
            for order in orders:
                yield Trial(TrialKey(item.id, order, repeat), item)
