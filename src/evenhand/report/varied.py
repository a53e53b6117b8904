"""What scores vary with, and what other designs would bring, as a person reads it in a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted, percent, rounded, span
from evenhand.report.tables import Figures


def print_variance(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.robustness.variance_facts` gives: components, alternatives and advice for each measure."""
    for run, judge in facts["judges"].items():
        console.print(f"{escape(run)}: {escape(judge)}")
    for name, told in facts["measures"].items():
        title = f"{name}, points of response A" if _is_side(name, facts) else name
        console.print(f"\n[bold]{escape(title)}[/]")
        if "components" not in told:
            console.print(escape(told["reason"]))
            continue
        _print_measure(told, facts["unit"], console)
    absent = [f"{name}: {why}" for told in facts["measures"].values() for name, why in told.get("absent", {}).items()]
    for line in dict.fromkeys(absent):
        console.print(f"- not told, {escape(line)}")
    for warning in facts["warnings"]:
        console.print(f"warning: {escape(warning)}")


def _figure(value: float | None) -> str:
    return "-" if value is None else rounded(value, 3)


def _is_side(name: str, facts: Mapping[str, Any]) -> bool:
    return bool(name == facts["preference"])


def _print_measure(told: Mapping[str, Any], unit: str, console: Console) -> None:
    design, mean = told["design"], told["mean"]
    groups = f" in {counted(design['clusters'], unit)}" if design["clusters"] < design["items"] else ""
    console.print(
        f"{told['n']} of {told['planned']} scores, {counted(design['items'], 'item')}{groups}; "
        f"mean {rounded(mean['value'], 3)}, standard error {_figure(told['error']['se'])}"
    )
    console.print(_components(told))
    if told["alternatives"]:
        console.print(_alternatives(told["alternatives"]))
    for line in told["advice"]:
        console.print(escape(line))
    for line in dict.fromkeys(_notes(told)):
        console.print(f"note: {escape(line)}")


def _components(told: Mapping[str, Any]) -> Figures:
    table = Figures("differs by", "levels", "variance", "95% interval", "share", "sd")
    for name, part in told["components"].items():
        estimate = part["variance"]
        interval = span(estimate["ci"], 3) if estimate["ci"] else "-"
        share = "-" if part["share"] is None else percent(part["share"], 0)
        value, sd = _figure(estimate["value"]), _figure(part["sd"])
        held = f"{name}, repeat" if name == told["noise"] != "repeat" else name
        table.add_row(held, str(part["levels"]), value, interval, share, sd)
    return table


def _alternatives(alternatives: list[Mapping[str, Any]]) -> Figures:
    table = Figures("instead", "calls", "standard error", "for these items")
    for told in alternatives:
        if told["se"] is not None or told["se_same_items"] is not None:
            cells = (_figure(told[key]) for key in ("se", "se_same_items"))
            table.add_row(told["change"], f"x{told['calls']:g}", *cells)
    return table


def _notes(told: Mapping[str, Any]) -> list[str]:
    """Why figures are lacking or rough, once each."""
    shift = told["order_shift"]
    figures = {name: part["variance"] for name, part in told["components"].items()}
    lines = [f"{name}: {figure['reason']}" for name, figure in figures.items() if figure["reason"]]
    for name, figure in figures.items():
        lines += [text if "rough" in text else f"{name}: {text}" for text in figure["warnings"]]
    if shift is not None and shift["value"] is not None:
        interval = f" ({span(shift['ci'], 3)})" if shift["ci"] else f" ({shift['reason']})"
        lines.append(f"being shown first is worth {rounded(shift['value'], 3, sign=True)} points{interval}")
    if told["reliability"]["value"] is not None:
        lines.append(f"reliability of an item's mean: {rounded(told['reliability']['value'])}")
    return lines
