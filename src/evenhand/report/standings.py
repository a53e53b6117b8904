"""The ranking of systems as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evenhand._words import counted


def print_ranking(facts: Mapping[str, Any], console: Console) -> None:
    """Print win rates as `evenhand.ranking.ranking` gives them."""
    rubric, judge = facts["rubric"], facts["judge"]
    console.print(
        f"[bold]{escape(rubric['name'])}[/] v{rubric['version']} judged by [bold]{escape(judge['spec'])}[/]"
        f" - {judge['status']}"
    )
    decided = facts["comparisons"] - facts["flips"] - facts["missing"]
    console.print(
        f"{decided} of {counted(facts['comparisons'], 'comparison')} decided; changed with the order {facts['flips']}; "
        f"missing {facts['missing']}" + (f"; {counted(facts['bad_rows'], 'bad row')}" if facts["bad_rows"] else "")
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("", justify="left")
    for name in ("win rate", "95% interval", "n", "won", "tied", "lost", "changed", "missing"):
        table.add_column(name, justify="right")
    for system in facts["systems"]:
        counts = (str(system[name]) for name in ("n", "wins", "ties", "losses", "flips", "missing"))
        table.add_row(escape(system["system"]), *_rate(system), *counts)
    console.print(table)


def _rate(system: Mapping[str, Any]) -> tuple[str, str]:
    if system["win_rate"] is None:
        return "-", ""
    interval = "{:.1%} to {:.1%}".format(*system["ci"]) if system["ci"] else "-"
    return f"{system['win_rate']:.1%}", interval
