"""Cells that several tables share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand._words import rounded, span


def mean_cells(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    """Mean, interval and n of a figure; what is lacking is told where the interval stands."""
    if fact["mean"] is None:
        return "-", fact["note"], str(fact["n"])
    interval = span(fact["ci"]) if fact["ci"] else fact.get("note", "")
    return rounded(fact["mean"]), interval, str(fact["n"])


def estimate_cells(estimate: Mapping[str, Any], digits: int = 3) -> tuple[str, str, str]:
    """Value, interval and n of an `Estimate` as plain data."""
    if estimate["value"] is None:
        return "-", "-", str(estimate["n"])
    interval = span(estimate["ci"], digits) if estimate["ci"] else "-"
    return rounded(estimate["value"], digits), interval, str(estimate["n"])
