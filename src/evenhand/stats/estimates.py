"""An estimate: a figure with all it rests on. What every statistic returns."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

CONFIDENCE = 0.95
#: Under this many independent units an interval is rough, and says so.
FEW = 50
_ITEMS = re.compile(r"(?P<before>\b(?:clustered by|over|of the|in all|one|\d+|\d+ labelled) )item(?P<s>s?)\b")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with what it rests on; never NaN or infinite.

    Attributes:
        value: The estimate; None when it is undefined, and `reason` says why.
        ci: Confidence interval (low, high) at `level`; None when it is undefined, and `reason` says why.
        n: Observations used (units, pairs or comparisons, as the statistic says).
        clusters: Independent groups among them.
        missing: Reason -> number of observations left out.
        method: How value and interval were computed, in a few words.
        level: Confidence level of the interval, in (0, 1).
        reason: Why there is no value or no interval; "" otherwise.
        warnings: Why the figures should be read with care.
        se: Standard error, where the method has one.
        unit: What a cluster is: an item, if nothing else is known.

    Raises:
        ValueError: a figure is not finite, or a value is missing without a reason.
    """

    value: float | None
    ci: tuple[float, float] | None = None
    n: int = 0
    clusters: int = 0
    missing: Mapping[str, int] = field(default_factory=dict)
    method: str = ""
    level: float = CONFIDENCE
    reason: str = ""
    warnings: tuple[str, ...] = ()
    se: float | None = None
    unit: str = "item"

    def __post_init__(self) -> None:
        figures = [self.value, self.se, *(self.ci or ())]
        if not all(math.isfinite(x) for x in figures if x is not None):
            raise ValueError(f"an estimate must be finite or None, not {figures}")
        if self.value is None and not self.reason:
            raise ValueError("an estimate without a value needs a reason")

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return self.ci[0] if self.ci else None

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return self.ci[1] if self.ci else None

    @property
    def note(self) -> str:
        """Reason and warnings in one line; "" where there are none."""
        return "; ".join(text for text in (self.reason, *self.warnings) if text)

    def of_unit(self, unit: str) -> Estimate:
        """The same where its clusters, items to the statistic, are something else: in words and in ``unit``."""
        if unit == self.unit:
            return self
        return replace(
            self,
            unit=unit,
            method=_in_units(self.method, unit),
            reason=_in_units(self.reason, unit),
            warnings=tuple(_in_units(text, unit) for text in self.warnings),
        )

    def as_dict(self) -> dict[str, Any]:
        """The estimate as plain JSON data."""
        return {
            "value": self.value,
            "ci": list(self.ci) if self.ci else None,
            "level": self.level,
            "se": self.se,
            "n": self.n,
            "clusters": self.clusters,
            "cluster": self.unit,
            "missing": dict(self.missing),
            "method": self.method,
            "reason": self.reason,
            "warnings": list(self.warnings),
        }


def _in_units(text: str, unit: str) -> str:
    """What statistics say of items, said of other units; names that a caller gave are left alone."""
    return _ITEMS.sub(rf"\g<before>{unit}\g<s>", text)


def few(clusters: int, unit: str = "item") -> tuple[str, ...]:
    """The warning that goes with an interval from few independent units; empty from 50 on."""
    return () if clusters >= FEW else (f"fewer than {FEW} {unit}s: the interval is rough",)
