"""Systems side by side, and the answer to which is better, as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

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
        name = system
        for measure in measures:
            table.add_row(Text(name), Text(measure), *mean_cells(told[measure]), str(told["planned"]))
            name = ""
    console.print(table)
    for warning in facts["warnings"]:
        console.print(f"warning: {warning}", markup=False)
    for measure in measures:
        console.print(f"[bold]{escape(measure)}[/]")
        for told in facts["comparisons"]:
            if told["measure"] == measure:
                console.print(f"  {told['verdict']}", markup=False)
                for line in filter(None, (_basis(told), _how(told, facts["margin"]))):
                    console.print(f"    {line}", markup=False)


def _basis(told: Mapping[str, Any]) -> str:
    """What an answer rests on."""
    noun = "item" if told["difference"]["cluster"] == "item" else "question"
    questions = f"{counted(told['questions'], noun)} answered by both"
    if told["pairs"] > told["questions"]:
        questions = f"{counted(told['pairs'], 'answer')} to {counted(told['questions'], noun)} by both"
    behind = (told["difference"]["value"] or 0) < 0  # the answer names the one with the higher mean first
    if told["paired"]:
        better, worse = (told["losses"], told["wins"]) if behind else (told["wins"], told["losses"])
        shown = f"{questions}: {better} better, {told['ties']} equal, {worse} worse"
        if told["unlike"]:
            shown += (
                f"; their means there {told['means'][0]:.2f} ({told['a']}) and {told['means'][1]:.2f} ({told['b']})"
            )
    else:
        shown = f"not paired ({questions})"
    if told["effect"] is not None:
        shown += f"; effect {abs(told['effect']):.2f} standard deviations"
    if told["superiority"] and told["superiority"]["ci"]:
        share = [1 - x if behind else x for x in (told["superiority"]["value"], *told["superiority"]["ci"])]
        shown += f"; probability of superiority {share[0]:.2f} ({min(share[1:]):.2f} to {max(share[1:]):.2f})"
    return shown + (_odds(told) if told["odds_ratio"] else "")


def _how(told: Mapping[str, Any], margin: float) -> str:
    """How sure an answer is to be taken."""
    shown = [told["test"]] if told["p"] is not None else []
    if told["difference"]["ci"] is not None:
        shown.append(told["difference"]["method"])
    if margin and told["not_worse"] is not None:
        shown.append(f"{told['b']} is {'not worse' if told['not_worse'] else 'not shown to be no worse'} by {margin:g}")
    if told["detectable"] is not None:
        shown.append(f"80 % power for a difference of {told['detectable']:.2f}")
    if told["note"] and told["p"] is not None:
        shown.append(told["note"])
    return "; ".join([*shown, *told["difference"]["warnings"]])


def _odds(told: Mapping[str, Any]) -> str:
    """The questions that McNemar's test goes by: those on which the second system alone is above, to the others."""
    ratio, shown = told["odds_ratio"], f"; odds of {told['b']} over {told['a']} where they differ"
    if ratio["value"] is None:
        return f"{shown}: {ratio['reason']}"
    return f"{shown} {ratio['value']:.2f} ({ratio['ci'][0]:.2f} to {ratio['ci'][1]:.2f})"
