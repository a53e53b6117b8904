"""Systems side by side, and the answer to which is better, as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from evenhand._words import counted, rounded, span
from evenhand.report.cells import comparison_methods, mean_cells
from evenhand.report.tables import Figures
from evenhand.scores import word_of


def print_comparison(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.comparing.comparison_facts` gives: the systems, then each two of them."""
    measures = list(dict.fromkeys(comparison["measure"] for comparison in facts["comparisons"]))
    table = Figures(facts["by"], "", "mean", "95% interval", "n", "planned", left=2)
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
                console.print(f"    {_basis(told, facts['margin'], word_of(facts['by']))}", markup=False)
    for line in comparison_methods(facts["comparisons"]):
        console.print(line, markup=False)


def _basis(told: Mapping[str, Any], margin: float, word: str) -> str:
    """What an answer rests on, and what could be missed."""
    noun = "item" if told["difference"]["cluster"] == "item" else "question"
    questions = f"{counted(told['questions'], noun)} answered by both"
    if told["pairs"] > told["questions"]:
        questions = f"{counted(told['pairs'], 'answer')} to {counted(told['questions'], noun)} by both"
    behind = (told["difference"]["value"] or 0) < 0  # the answer names the one with the higher mean first
    if told["paired"]:
        better, worse = (told["losses"], told["wins"]) if behind else (told["wins"], told["losses"])
        shown = (
            f"{questions}: {better} {word}, {told['ties']} equal, {worse} {'lower' if word == 'higher' else 'worse'}"
        )
        if told["unlike"]:
            a, b = map(rounded, told["means"])
            shown += f"; their means there {a} ({told['a']}) and {b} ({told['b']})"
    else:
        sides = " and ".join(f"{told['sides'][k]} of {told[k]}" for k in ("b", "a"))
        shown = f"not paired ({questions}; scores: {sides})"
    if told["effect"] is not None:
        shown += f"; effect {rounded(abs(told['effect']))} standard deviations"
    if told["superiority"] and told["superiority"]["ci"]:
        share = [1 - x if behind else x for x in (told["superiority"]["value"], *told["superiority"]["ci"])]
        shown += f"; probability of superiority {rounded(share[0])} ({span(sorted(share[1:]))})"
    shown += _odds(told) if told["odds_ratio"] else ""
    if margin and told["not_worse"] is not None:
        shown += f"; {told['b']} is {'not worse' if told['not_worse'] else 'not shown to be no worse'} by {margin:g}"
    if told["detectable"] is not None:
        shown += f"; 80 % power for a difference of {rounded(told['detectable'])}"
    return shown + (f"; {told['note']}" if told["note"] and told["p"] is not None else "")


def _odds(told: Mapping[str, Any]) -> str:
    """The questions that McNemar's test goes by: those on which the second system alone is above, to the others."""
    ratio, shown = told["odds_ratio"], f"; odds of {told['b']} over {told['a']} where they differ"
    if ratio["value"] is None:
        return f"{shown}: {ratio['reason']}"
    return f"{shown} {rounded(ratio['value'])} ({span(ratio['ci'])})"
