"""What another design would bring: the standard error of a mean from variance components (a decision study)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.stats import components as c
from evenhand.stats.components import Component, Components


@dataclass(frozen=True, slots=True)
class Design:
    """How many of each there are; means where they differ.

    Attributes:
        groups: Independent groups (items, where there are no paraphrases).
        paraphrases: Items of a group.
        judges, orders: That judge each item.
        repeats: Scores of an item by one judge in one order.
    """

    groups: float
    paraphrases: float = 1.0
    judges: float = 1.0
    orders: int = 1
    repeats: float = 1.0

    @classmethod
    def of(cls, found: Components) -> Design:
        """The design that components were found in, as if it were balanced."""
        return cls(found.groups, found.items / found.groups, found.judges, found.orders, found.repeats)

    @property
    def calls(self) -> float:
        """Scores that it takes."""
        return self.groups * self.paraphrases * self.judges * self.orders * self.repeats


def error_parts(found: Components, design: Design, *, same_items: bool = False) -> dict[str, float]:
    """What each component adds to the variance of the overall mean, in squared points.

    Groups, paraphrases, judges and repeats count as drawn at random from many; with both orders, what depends on the
    order cancels, but for what is in the noise. A single order adds a bias that no number of items takes away: it is
    not part of this.

    Args:
        found: The components.
        design: The design asked about.
        same_items: The mean is of these very items, so that only judging makes it unsure.

    Returns:
        Name -> variance, of the components that have one.
    """
    return {
        name: part.estimate.value / divisor
        for name, part, divisor in _adding(found, design, same_items)
        if part.estimate.value is not None
    }


def _adding(found: Components, design: Design, same_items: bool) -> list[tuple[str, Component, float]]:
    """The components that add to the variance of the overall mean, and how many draws each is averaged over."""
    items = design.groups * design.paraphrases
    divisors = {
        c.ITEM: design.groups,
        c.PARAPHRASE: items,
        c.JUDGE: design.judges,
        c.JUDGE_ITEM: items * design.judges,
        c.ORDER_ITEM: items,
        c.ALL: items * design.judges,
        c.REPEAT: design.calls,
    }
    if found.noise in (c.ORDER_ITEM, c.ALL):
        divisors[found.noise] *= design.orders
    cancelled = {c.ORDER, c.JUDGE_ORDER, *({c.ORDER_ITEM, c.ALL} - {found.noise} if design.orders > 1 else ())}
    of_items = {c.ITEM, c.PARAPHRASE} if same_items else set()
    return [(name, part, divisors[name]) for name, part in found.parts.items() if name not in cancelled | of_items]


def standard_error(found: Components, design: Design, *, same_items: bool = False) -> float | None:
    """Predicted standard error of the overall mean, in points; the arguments are those of `error_parts`.

    Returns:
        None where a component that counts has no value.
    """
    if any(part.estimate.value is None for _, part, _ in _adding(found, design, same_items)):
        return None
    return math.sqrt(math.fsum(error_parts(found, design, same_items=same_items).values()))


def item_reliability(found: Components, design: Design) -> float | None:
    """Generalizability coefficient of an item's mean: the share of its variance that is of the items.

    ``(item + paraphrase) / (item + paraphrase + error)``, the error being that of one item's mean over its judges,
    orders and repeats; what shifts all items alike does not count. In 0..1.

    Returns:
        None where items can't be told from noise, a component has no value, or nothing varies.

    Source: Brennan (2001), "Generalizability Theory", chapter 4: the coefficient for relative decisions.
    """
    if found.noise in (c.ITEM, c.PARAPHRASE) or any(
        part.estimate.value is None
        for name, part in found.parts.items()
        if name not in (c.JUDGE, c.ORDER, c.JUDGE_ORDER)
    ):
        return None
    true = found.variance(c.ITEM) + found.variance(c.PARAPHRASE)
    one = Design(1, 1, design.judges, design.orders, design.repeats)
    error = math.fsum(v for name, v in error_parts(found, one, same_items=True).items() if name != c.JUDGE)
    return true / (true + error) if true + error > 0 else None
