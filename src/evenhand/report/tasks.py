"""Figures by task and category as a person reads them in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import rounded, span
from evenhand.report.cells import mean_cells
from evenhand.report.tables import Figures
from evenhand.tasks import GROUP

_KINDS = {"item_mean": "item mean", "task_mean": "task mean"}


def print_tasks(told: Mapping[str, Any], console: Console) -> None:
    """Print the figures that `evenhand.tasks.Tasks.facts` gives: tasks by category, then categories, then all."""
    steady = "robustness" in told["overall"]
    more = ["1/variance*"] if steady else []
    table = Figures(f"by {told['by']}", "mean", "95% interval", "n", "planned", *more)
    for category in (*told["categories"], None):
        for name, fact in told["tasks"].items():
            if fact["category"] == category:
                _row(table, escape(name), fact, fact, fact.get("robustness"))
        if category is not None:
            _means(table, category, told["categories"][category])
    _means(table, "all", told["overall"])
    console.print(table)
    if steady:
        console.print(_steadiness(told["overall"]["robustness"]))


def _means(table: Figures, name: str, means: Mapping[str, Any]) -> None:
    for kind, title in _KINDS.items():
        if kind in means:
            steady = means.get("robustness") if kind == "item_mean" else None
            _row(table, f"[bold]{escape(name)}, {title}[/]", means[kind], means, steady)


def _row(
    table: Figures, name: str, mean: Mapping[str, Any], of: Mapping[str, Any], steady: Mapping[str, Any] | None
) -> None:
    score = "" if steady is None else _figure(steady["score"])
    cells = (cell.replace(GROUP, "group") for cell in mean_cells(mean))  # or it would take two lines
    table.add_row(name, *cells, str(of["planned"]), *([score] if table.columns[-1].header != "planned" else []))


def _steadiness(told: Mapping[str, Any]) -> str:
    """What the column of inverse variances rests on."""
    groups = told["variance"]["n"]
    return (
        f"* unofficial: one over the mean variance of scores within {groups} paraphrase groups of two or more; "
        f"mean variance {_figure(told['variance'])}, mean deviation {_figure(told['deviation'])}"
    )


def _figure(told: Mapping[str, Any]) -> str:
    if told["mean"] is None:
        return "-"
    interval = f" ({span(told['ci'])})" if told["ci"] else ""
    return f"{rounded(told['mean'])}{interval}"
