"""How many items an interval of a wished width, or a difference of a wished size, needs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import nctdtr, ndtr, ndtri, stdtrit

from evenhand.errors import StatisticError
from evenhand.stats.estimates import CONFIDENCE, Estimate
from evenhand.stats.measures import Kappa, Weights

POWER = 0.8
_STEP = 1e-4
_NORMAL = 1_000_000  #: degrees of freedom from which Student's t is the normal
_MOST = 1 << 60
_NARROWEST = 1e-9  #: width of an interval that anyone could wish for


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
        width: Whole width wished, 1e-9 or more, at the pilot's confidence level.

    Returns:
        Items in all, those of the pilot included. An item of several labels or clustered units counts once.

    Raises:
        StatisticError: the pilot has no interval or one of no width, or width is too small.
    """
    if not width >= _NARROWEST:
        raise StatisticError(f"a width is {_NARROWEST:g} or more, not {width}")
    if pilot.ci is None or pilot.ci[1] <= pilot.ci[0]:
        raise StatisticError(f"the pilot has no interval: {pilot.reason or 'of no width'}", hint="label more items")
    return max(2, math.ceil(pilot.clusters * ((pilot.ci[1] - pilot.ci[0]) / width) ** 2))


def power_of_difference(
    difference: float, sd: float, n: int, *, paired: bool = True, level: float = CONFIDENCE
) -> float:
    """How likely the two-sided t test finds a true difference of two systems.

    Args:
        difference: The true difference of the means, in points; its sign does not matter.
        sd: Standard deviation, > 0: of the differences of the units, paired; of the ratings within a system, unpaired.
        n: Independent units in all, at least 2 paired and 3 unpaired; unpaired, half of them are each system's.
        paired: Whether every unit is rated of both systems.
        level: 1 less the level of the test.

    Returns:
        Power in 0..1; without a difference the level of the test.

    Raises:
        StatisticError: an argument out of range.

    Source: Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", chapter 2, with the noncentral t.
    """
    _check_test(sd, level, difference)
    sides = 1 if paired else 2
    if n <= sides:
        raise StatisticError(f"a t test takes {sides + 1} units or more, not {n}")
    return _power(abs(difference) * math.sqrt(n) / (sides * sd), n - sides, level)


def units_for_difference(
    difference: float, sd: float, *, paired: bool = True, power: float = POWER, level: float = CONFIDENCE
) -> int:
    """Independent units with which a true difference of two systems is found with a wished power.

    Args:
        difference, sd, paired, level: As for `power_of_difference`; the difference is not 0.
        power: Power wished, above 1 - level and under 1.

    Returns:
        The least number of units in all; unpaired an even one, half of them each system's.

    Raises:
        StatisticError: an argument out of range, or more than 10^18 units.
    """
    _check_test(sd, level, difference, power)
    step = 1 if paired else 2
    low, high = 1, 2  # in steps; a t test takes two units of each system
    while high < _MOST and power_of_difference(difference, sd, high * step, paired=paired, level=level) < power:
        low, high = high, high * 2
    if not difference or high >= _MOST:
        raise StatisticError(f"no number of units tells a difference of {difference:g} from none")
    while high - low > 1:
        middle = (low + high) // 2
        enough = power_of_difference(difference, sd, middle * step, paired=paired, level=level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high * step


def detectable_difference(
    sd: float, n: int, *, paired: bool = True, power: float = POWER, level: float = CONFIDENCE
) -> float:
    """The smallest true difference of two systems that a number of units finds with a wished power, in points, > 0.

    Args:
        sd, n, paired, level: As for `power_of_difference`.
        power: As for `units_for_difference`.

    Raises:
        StatisticError: an argument out of range.
    """
    _check_test(sd, level, 0.0, power)
    low, high = 0.0, sd
    while power_of_difference(high, sd, n, paired=paired, level=level) < power:
        low, high = high, high * 2
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        enough = power_of_difference(middle, sd, n, paired=paired, level=level) >= power
        low, high = (low, middle) if enough else (middle, high)
    return high


def _power(shift: float, freedom: int, level: float) -> float:
    """Power of a two-sided t test whose statistic has a noncentrality of ``shift`` >= 0."""
    if freedom >= _NORMAL:
        reach = float(ndtri(0.5 + level / 2))
        return float(ndtr(shift - reach) + ndtr(-shift - reach))
    reach = float(stdtrit(freedom, 0.5 + level / 2))
    if shift > 40 + 2 * reach:  # the noncentral t is not exact out there, and the power is 1
        return 1.0
    other_side = float(nctdtr(freedom, shift, -reach)) if shift < 5 else 0.0  # under 1e-8, and not always a number
    return float(1 - nctdtr(freedom, shift, reach)) + other_side


def _check_test(sd: float, level: float, difference: float, power: float | None = None) -> None:
    if not 0 < sd < math.inf:
        raise StatisticError(f"a standard deviation is a number above 0, not {sd}")
    if not 0 < level < 1:
        raise StatisticError(f"a confidence level is between 0 and 1, not {level}")
    if not math.isfinite(difference):
        raise StatisticError(f"a difference is a finite number, not {difference}")
    if power is not None and not 1 - level < power < 1:
        raise StatisticError(f"a power is between {1 - level:g} (the level of the test) and 1, not {power}")


def _check(width: float, widest: float, level: float) -> None:
    if not _NARROWEST <= width < widest:
        raise StatisticError(f"a width is from {_NARROWEST:g} to under {widest:g}, not {width}")
    if not 0 < level < 1:
        raise StatisticError(f"a confidence level is between 0 and 1, not {level}")
