"""Systems side by side, and the answer to which is better, as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evenhand._words import counted
from evenhand.report.cells import mean_cells


def print_comparison(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.comparing.comparison_facts` gives: the systems, then each two of them."""
    measures = list(dict.fromkeys(comparison["measure"] for comparison in facts["comparisons"]))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title, justify in ((escape(facts["by"]), "left"), ("", "left")):
        table.add_column(title, justify=justify)  # type: ignore[arg-type]
    for title in ("mean", "95% interval", "n", "planned"):
        table.add_column(title, justify="right")
    for system, told in facts["systems"].items():
        name = escape(system)
        for measure in measures:
            table.add_row(name, escape(measure), *mean_cells(told[measure]), str(told["planned"]))
            name = ""
    console.print(table)
    for measure in measures:
        console.print(f"[bold]{escape(measure)}[/]")
        for told in facts["comparisons"]:
            if told["measure"] == measure:
                console.print(f"  {escape(told['verdict'])}")
                console.print(f"    {escape(_basis(told, facts['margin']))}")


def _basis(told: Mapping[str, Any], margin: float) -> str:
    """What an answer rests on."""
    questions = counted(told["questions"], "question")
    behind = (told["difference"]["value"] or 0) < 0  # the answer names the one with the higher mean first
    if told["paired"]:
        better, worse = (told["losses"], told["wins"]) if behind else (told["wins"], told["losses"])
        shown = f"{questions} answered by both: {better} better, {told['ties']} equal, {worse} worse"
    else:
        shown = f"not paired ({questions} answered by both); {told['test']}"
    if told["effect"] is not None:
        shown += f"; effect {abs(told['effect']):.2f} standard deviations"
    if margin and told["not_worse"] is not None:
        shown += f"; {told['b']} is {'not worse' if told['not_worse'] else 'not shown to be no worse'} by {margin:g}"
    warnings = told["difference"]["warnings"]
    return shown + (f"; {'; '.join(warnings)}" if warnings else "")
