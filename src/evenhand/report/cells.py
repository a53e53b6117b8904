"""Cells that several tables share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mean_cells(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    """Mean, interval and n of a figure; what is lacking is told where the interval stands."""
    if fact["mean"] is None:
        return "-", fact["note"], str(fact["n"])
    interval = f"{fact['ci'][0]:.2f} to {fact['ci'][1]:.2f}" if fact["ci"] else fact.get("note", "")
    return f"{fact['mean']:.2f}", interval, str(fact["n"])


def estimate_cells(estimate: Mapping[str, Any]) -> tuple[str, str, str]:
    """Value, interval and n of an `Estimate` as plain data."""
    if estimate["value"] is None:
        return "-", "-", str(estimate["n"])
    interval = f"{estimate['ci'][0]:.3f} to {estimate['ci'][1]:.3f}" if estimate["ci"] else "-"
    return f"{estimate['value']:.3f}", interval, str(estimate["n"])
