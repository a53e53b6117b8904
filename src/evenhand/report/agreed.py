"""The agreement of a judge with people as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from evenhand._words import counted
from evenhand.report.cells import estimate_cells

_TITLES = {
    "exact": "equal",
    "kappa": "kappa",
    "kappa-quadratic": "kappa, quadratic",
    "spearman": "Spearman",
    "kendall": "Kendall tau-b",
    "pearson": "Pearson",
    "mae": "MAE",
}
_SIDES = {"judge": "judge-people", "people": "people-people", "gap": "difference"}
_PUBLISHED = ("mae", "pearson", "spearman", "kendall", "fuzzy", "strict")


def print_agreement(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.agreeing.agreement_facts` gives: a table a field."""
    rubric, items = facts["rubric"], facts["items"]
    who = "people" if facts["judge"] is None else f"{facts['judge']} and people"
    console.print(f"[bold]{escape(rubric['name'])}[/] v{rubric['version']}: {escape(who)}")
    people = ", ".join(facts["people"][:8]) + (" ..." if len(facts["people"]) > 8 else "")
    of = "" if items["judged"] is None else f" of {counted(items['judged'], 'item')} judged"
    console.print(
        f"{counted(items['both'], 'item')} with labels{of}; {counted(len(facts['people']), 'rater')}: {escape(people)}"
    )
    for name, told in facts["fields"].items():
        console.print(_table(name, told))
        for line in _lines(told):
            console.print(line)
    if not facts["fields"]:
        console.print("no field was rated by two, so nothing can be compared")
    if facts["published"] is not None and facts["judge"] is not None:
        _print_published(facts["published"], console)


def _table(name: str, told: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (escape(name), ""):
        table.add_column(title, justify="left")
    for title in ("", "95% interval", "n"):
        table.add_column(title, justify="right")
    for statistic, figure in told["statistics"].items():
        title = escape(_TITLES.get(statistic, f"equal band, {statistic}"))
        for side, who in _SIDES.items():
            if figure[side] is not None:
                table.add_row(title, who, *estimate_cells(figure[side]))
                title = ""
    return table


def _lines(told: Mapping[str, Any]) -> list[str]:
    lines = []
    if bias := told.get("bias"):
        value, interval, n = estimate_cells(bias)
        lines.append(f"judge less people: {value} ({interval}), n {n}")
    if test := told.get("alternative_test"):
        verdict = {True: "may stand in for an annotator", False: "may not", None: "can't be told"}[test["passed"]]
        rate = "" if test["winning_rate"] is None else f", winning rate {test['winning_rate']:.2f}"
        why = "; ".join(filter(None, (test["reason"], *test["warnings"])))
        lines.append(f"alternative annotator test: {verdict}{rate}{f' ({escape(why)})' if why else ''}")
    figures = [estimate for figure in told["statistics"].values() for estimate in figure.values() if estimate]
    lines += [f"- {escape(text)}" for text in dict.fromkeys(e["reason"] for e in figures) if text]
    lines += [f"warning: {escape(text)}" for text in dict.fromkeys(w for e in figures for w in e["warnings"])]
    return lines


def _print_published(told: Mapping[str, Any], console: Console) -> None:
    """The evaluators that were published, as something to hold one's own figures against."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    console.print(f"published for {escape(told['name'])}, on other data:")
    table.add_column("")
    for name in _PUBLISHED:
        table.add_column(name, justify="right")
    for row in told["evaluators"]:
        for kind in ("internal", "external"):
            table.add_row(escape(f"{row['judge']}, {kind}"), *(f"{row[kind][name]:.3f}" for name in _PUBLISHED))
    console.print(table)
    console.print(escape(told["note"]))
