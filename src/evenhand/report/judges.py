"""Judges side by side as a person reads them in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import percent
from evenhand.report.agreed import method_lines, note_lines, statistic_title
from evenhand.report.cells import estimate_cells
from evenhand.report.tables import Figures


def print_judges(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.quality.judge_quality` gives: agreement, then failures and cost, then the answer."""
    figures: list[Mapping[str, Any]] = []
    for told in facts["sets"]:
        _print_set(told, [one for one in facts["judges"] if one["name"] in told["judges"]], console, figures)
    for name, told in (facts["fields"] or {}).items():
        _print_each_other(name, told, console, figures)
    names = list(dict.fromkeys(_set_name(one["set"]) for one in facts["judges"]))
    if len(facts["sets"]) != 1:
        console.print(f"[bold]{escape('; '.join(names))}[/]")
    console.print(_service(facts["judges"], several=len(names) > 1))
    console.print(_cost(facts["judges"]))
    warnings = [w for told in (facts["fields"] or {}).values() for w in told["warnings"]]
    for line in method_lines(figures):
        console.print(line)
    for line in note_lines([*figures, {"reason": "", "warnings": warnings}]):
        console.print(line)
    for told in facts["sets"]:
        console.print(f"[bold]{escape(_set_name(told['set']))}[/]: {escape(told['verdict'])}")


def _print_set(
    told: Mapping[str, Any], judges: list[Mapping[str, Any]], console: Console, figures: list[Mapping[str, Any]]
) -> None:
    console.print(f"[bold]{escape(_set_name(told['set']))}[/]: judges against people")
    names = list(dict.fromkeys(field for one in judges for field in one["agreement"] or ()))
    for name in names:
        table = Figures(name, "", "", "95% interval", "n", left=2)
        rows: list[tuple[str, Mapping[str, Any]]] = [(one["name"], one["agreement"][name]) for one in judges]
        if name in told["people"]:
            rows.append(("people with each other", told["people"][name]))
        for who, found in rows:
            title = who
            for statistic, figure in found.items():
                if figure is not None:
                    table.add_row(escape(title), escape(statistic_title(statistic)), *estimate_cells(figure))
                    figures.append(figure)
                    title = ""
        for one in told["differences"]:
            if one["field"] == name:
                who, what = f"{one['b']} less {one['a']}", statistic_title(one["statistic"])
                table.add_row(escape(who), escape(what), *estimate_cells(one["difference"]))
                figures.append(one["difference"])
        console.print(table)


def _print_each_other(name: str, told: Mapping[str, Any], console: Console, figures: list[Mapping[str, Any]]) -> None:
    table = Figures(name, "", "", "95% interval", "n", left=2)
    rows = [(f"{pair['a']} | {pair['b']}", pair["statistics"]) for pair in told["pairs"]]
    for title, found in [*rows, ("all judges", told["together"])]:
        if not any(figure["n"] for figure in found.values()):
            found = dict(list(found.items())[:1])  # nothing in common: one line tells it
        for statistic, figure in found.items():
            table.add_row(escape(title), escape(statistic_title(statistic)), *estimate_cells(figure))
            figures.append(figure)
            title = ""
    console.print(table)


def _service(judges: list[Mapping[str, Any]], *, several: bool) -> Figures:
    """How often each judge fails, contradicts itself, and changes its mind with the order."""
    table = Figures(
        "judge", *(["set"] if several else []), "scored", "failed", "contradicts", "steady", left=1 + several
    )
    for one in judges:
        steady = "-" if one["consistency"] is None else _share(one["consistency"])
        scored = f"{one['scored']}/{one['planned']}"
        where = [escape(_set_name(one["set"]))] if several else []
        table.add_row(escape(one["name"]), *where, scored, _share(one["failed"]), _share(one["violated"]), steady)
    return table


def _cost(judges: list[Mapping[str, Any]]) -> Figures:
    table = Figures("judge", "USD", "per 1,000", "median s", "p95 s", "tokens in", "out")
    for one in judges:
        cost, each, wait, tokens = one["cost_usd"], one["cost_per_1000_items"], one["latency_s"], one["tokens"]
        cells = [
            "unknown" if cost is None else f"{cost:.4f}",
            "unknown" if each is None else f"{each:.4f}",
            *("-" if wait[name] is None else f"{wait[name]:.2f}" for name in ("median", "p95")),
        ]
        table.add_row(escape(one["name"]), *cells, f"{tokens['prompt']:,}", f"{tokens['completion']:,}")
    return table


def _share(figure: Mapping[str, Any]) -> str:
    if figure["value"] is None:
        return "-"
    interval = f" ({' to '.join(percent(end, 0) for end in figure['ci'])})" if figure["ci"] else ""
    return f"{percent(figure['value'])}{interval}"


def _set_name(told: Mapping[str, Any]) -> str:
    return f"{told['data']}, {told['rubric']} v{told['version']}"
