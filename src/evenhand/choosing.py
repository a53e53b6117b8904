"""Which of several judges, or variants of a rubric, to take: the answer in words. No layout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand._words import counted
from evenhand.errors import StatisticError
from evenhand.stats.estimates import FEW, Estimate
from evenhand.stats.planning import units_for_difference


def choice(
    statistic: str,
    figures: Mapping[str, Mapping[str, Any]],
    apart: Mapping[tuple[str, str], Estimate],
    costs: Mapping[str, float | None],
) -> str:
    """Which to take: the one that agrees best with people; or, of those not shown to be worse, the cheapest.

    Args:
        statistic: What agreement is measured by.
        figures: Name -> its agreement with people, an `Estimate` as plain data.
        apart: Two names -> how much better the second agrees than the first, each two once.
        costs: Name -> US dollars for 1,000 items; None where it is not known.
    """
    known = {name: figure["value"] for name, figure in figures.items() if figure["value"] is not None}
    lacking = [f"{name} has no figure ({figures[name]['reason']})" for name in figures if name not in known]
    if not known:
        return "; ".join(lacking)
    best = max(known, key=known.__getitem__)
    text = f"{best} agrees best with people ({statistic} {known[best]:.2f})"
    equal = []
    for other in (name for name in known if name != best):
        found = apart.get((other, best)) or apart[best, other]
        low = found.low if (other, best) in apart else None if found.high is None else -found.high
        if low is None or low <= 0:
            equal.append(other)
    if len(known) > 1 and not equal:
        text += ", and is shown to agree better than " + " and ".join(name for name in known if name != best)
    elif equal:
        text += f"; {' and '.join(equal)} {'is' if len(equal) == 1 else 'are'} not shown to be worse"
        text += _cheapest([best, *equal], costs)
    units, unit = figures[best]["clusters"], figures[best]["cluster"]
    few = f"too little data to choose by ({counted(units, unit)}, {FEW} needed); so far " if units < FEW else ""
    return few + "; ".join([text, *lacking])


def _cheapest(names: Sequence[str], costs: Mapping[str, float | None]) -> str:
    known = {name: cost for name in names if (cost := costs[name]) is not None}
    if len(known) < len(names):
        return f" (cost not known of {', '.join(name for name in names if name not in known)})"
    least = min(known, key=known.__getitem__)
    if all(cost == known[least] for cost in known.values()):
        return f", and all cost the same ({known[least]:.2f} USD per 1,000 items)"
    return f", and the cheapest of them is {least} ({known[least]:.2f} USD per 1,000 items)"


def labels_to_settle(apart: Estimate) -> int | None:
    """Clusters with labels, those there are included, that find a difference of this size with a power of 80 %.

    Returns:
        None where there is no difference, or no standard error to reckon from.
    """
    if not apart.value or not apart.se:
        return None
    try:
        return units_for_difference(apart.value, apart.se * math.sqrt(apart.clusters))
    except StatisticError:
        return None
