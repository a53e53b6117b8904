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
