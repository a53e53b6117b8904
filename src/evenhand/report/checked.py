"""The figures of a check as a person reads them in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted
from evenhand.report.tables import Figures


def print_check(summary: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.checking.Check.summary` gives."""
    table = Figures("rule", "severity", "broken", "checked", "not checked", left=2, words=True)
    unchecked: dict[str, list[str]] = {}
    for rule, count in summary["rules"].items():
        if summary["rows"] and not count["checked"]:
            unchecked.setdefault(count["reason"], []).append(rule)
            continue
        reason = f" ({count['reason']})" if count["reason"] else ""
        cells = (count["severity"], str(count["broken"]), str(count["checked"]), f"{count['not_checked']}{reason}")
        table.add_row(escape(rule), *map(escape, cells), style="bold" if count["broken"] else None)
    console.print(table)
    if unchecked:
        console.print(f"\nnot checked in any of {counted(summary['rows'], 'row')}:")
    for reason, rules in unchecked.items():
        console.print(f"  {escape(reason)}: {escape(', '.join(rules))}", soft_wrap=True)
    console.print(
        f"\n{counted(summary['rows'], 'row')}: {counted(summary['violations'], 'violation')}"
        f" in {counted(summary['rows_with_violations'], 'row')}, {counted(summary['warnings'], 'warning')}"
    )
