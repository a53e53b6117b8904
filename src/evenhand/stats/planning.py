"""How many labelled items an interval of a wished width needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from evenhand.errors import StatisticError
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.measures import Kappa, Weights

_STEP = 1e-4


def labels_for_share(width: float, *, share: float = 0.5, level: float = CONFIDENCE) -> int:
    """Items needed for a share (exact agreement, win rate) known to a wished width.

    Args:
        width: Whole width of the interval, in (0, 1).
        share: The share expected, in 0..1; 0.5 is the worst case.
        level: Confidence level.

    Returns:
        The least n whose Wilson interval around `share` is no wider than `width`; one label an item.

    Raises:
        StatisticError: width, share or level out of range.
    """
    _check(width, 1.0, level)
    if not 0 <= share <= 1:
        raise StatisticError(f"a share is in 0..1, not {share}")
    z = float(ndtri(0.5 + level / 2))

    def wide(n: int) -> bool:
        return 2 * z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) > width

    high = 1
    while wide(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if wide(middle) else (low, middle)
    return high


def labels_for_kappa(
    width: float, *, kappa: float, shares: Sequence[float], weights: Weights = "none", level: float = CONFIDENCE
) -> int:
    """Items needed for Cohen's kappa of a judge and a person known to a wished width.

    Supposes that both use the categories with the same shares, and that they agree for certain on a share kappa
    of the items and by chance on the rest; the large-sample variance follows from the delta method.

    Args:
        width: Whole width of the interval, in (0, 2).
        kappa: The kappa expected, in [0, 1).
        shares: How often each category is used, in order, each > 0, summing to 1; two or more.
        weights: "none", "linear" or "quadratic".
        level: Confidence level.

    Returns:
        n, at least 2; under 50 the interval will be rough, whatever the formula says.

    Raises:
        StatisticError: an argument out of range.
    """
    _check(width, 2.0, level)
    p = np.asarray(shares, dtype=np.float64)
    if p.ndim != 1 or len(p) < 2 or bool((p <= 0).any()) or abs(p.sum() - 1) > 1e-9:
        raise StatisticError("shares are two or more positive numbers that sum to 1")
    if not 0 <= kappa < 1:
        raise StatisticError(f"the kappa expected is in [0, 1), not {kappa}")
    size = len(p)
    table = (kappa * np.diag(p) + (1 - kappa) * np.outer(p, p)).ravel()
    measure = Kappa(np.arange(size, dtype=np.float64), weights)
    cells = measure.rows(np.stack(np.divmod(np.arange(size * size), size), axis=1).astype(np.float64))
    centre = table @ cells
    up, down = (measure.value((1 - h) * centre + h * cells) for h in (_STEP, -_STEP))
    variance = float(table @ ((up - down) / (2 * _STEP)) ** 2)
    return max(2, math.ceil(variance * (2 * float(ndtri(0.5 + level / 2)) / width) ** 2))


def labels_from_pilot(pilot: Estimate, width: float) -> int:
    """Items needed for a wished width, from an estimate on a first few: width falls with the root of the items.

    Args:
        pilot: An estimate with an interval; best from 50 items or more.
        width: Whole width wished, > 0, at the pilot's confidence level.

    Returns:
        Items in all, those of the pilot included. An item of several labels or clustered units counts once.

    Raises:
        StatisticError: the pilot has no interval or one of no width, or width is not positive.
    """
    if width <= 0:
        raise StatisticError(f"a width is positive, not {width}")
    if pilot.ci is None or pilot.ci[1] <= pilot.ci[0]:
        raise StatisticError(f"the pilot has no interval: {pilot.reason or 'of no width'}", hint="label more items")
    return max(2, math.ceil(pilot.clusters * ((pilot.ci[1] - pilot.ci[0]) / width) ** 2))


def _check(width: float, widest: float, level: float) -> None:
    if not 0 < width < widest:
        raise StatisticError(f"a width is between 0 and {widest:g}, not {width}")
    if not 0 < level < 1:
        raise StatisticError(f"a confidence level is between 0 and 1, not {level}")
