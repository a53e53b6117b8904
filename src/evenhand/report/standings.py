"""The ranking of systems as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted, percent, rounded, span
from evenhand.report.tables import Figures


def print_ranking(facts: Mapping[str, Any], console: Console) -> None:
    """Print strengths, ranks and win rates as `evenhand.ranking.ranking` gives them."""
    if "rubric" in facts:
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
    table = Figures("", "win rate", "95% interval", "n", "won", "tied", "lost", "changed", "missing")
    for system in facts["systems"]:
        counts = (str(system[name]) for name in ("n", "wins", "ties", "losses", "flips", "missing"))
        table.add_row(escape(system["system"]), *_rate(system["win_rate"], system["ci"]), *counts)
    console.print(table)
    ranked = [system for system in facts["systems"] if system["strength"] is not None]
    if ranked:
        table = Figures("", "rank", "95% ranks", "strength", "95% interval", "expected", "95% interval")
        for system in ranked:
            rate = _rate(system["expected_win_rate"], system["expected_win_rate_ci"])
            table.add_row(escape(system["system"]), *_strength(system), *rate)
        console.print()
        console.print(table)
    for line in _notes(facts):
        console.print(escape(line))


def _notes(facts: Mapping[str, Any]) -> Iterator[str]:
    """What else there is to know of the strengths."""
    shift = facts["order"]
    if shift and shift["value"] is not None:
        interval = f" ({span(shift['ci'], sign=True)})" if shift["ci"] else ""
        yield f"first place: {rounded(shift['value'], sign=True)} log-odds{interval}, allowed for in the strengths"
    yield from _controls(facts["control"])
    if (share := facts["separability"])["value"] is not None:
        pairs = f"{round(share['value'] * share['n'])} of {counted(share['n'], 'pair')} of systems"
        yield f"intervals of strength apart: {pairs} ({percent(share['value'])})"
    if elo := facts["sequential_elo"]:
        rated = [(s["sequential_elo"], s["system"]) for s in facts["systems"] if s["sequential_elo"] is not None]
        told = ", ".join(f"{system} {rating:.0f}" for rating, system in sorted(rated, key=lambda pair: -pair[0]))
        yield f"Elo K={elo['k']:g}, mean over {elo['orders']} random orders, to set beside other tables only: {told}"
    if any(system["ci"] for system in facts["systems"]):
        yield f"win rate: {facts['method']}"
    if facts["strength_method"]:
        yield f"strength: {facts['strength_method']}"
    reasons: dict[str, list[str]] = {}
    for system in facts["systems"]:
        if system["strength_note"]:
            reasons.setdefault(system["strength_note"], []).append(system["system"])
    for reason, names in reasons.items():
        yield f"strength of {'all' if len(names) == len(facts['systems']) else ', '.join(names)}: {reason}"
    for warning in facts["warnings"]:
        yield f"warning: {warning}"


def _controls(controls: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was controlled for, and how much it moves preferences."""
    if equal := [control["name"] for control in controls if control["value"] is not None]:
        yield f"strengths are those at equal {', '.join(equal)}"
    for control in controls:
        if control["value"] is None:
            yield f"more {control['name']}: {control['reason']}"
        else:
            interval = f"({span(control['ci'], sign=True)})" if control["ci"] else f"({control['reason']})"
            effect = rounded(control["value"], sign=True)
            yield f"more {control['name']}: {effect} log-odds a typical difference {interval}"


def _strength(system: Mapping[str, Any]) -> tuple[str, str, str, str]:
    ranks = "{} to {}".format(*system["rank_ci"]) if system["rank_ci"] else "-"
    interval = span(system["strength_ci"], sign=True) if system["strength_ci"] else "-"
    return str(system["rank"]), ranks, rounded(system["strength"], sign=True), interval


def _rate(rate: float | None, ci: Sequence[float] | None) -> tuple[str, str]:
    if rate is None:
        return "-", ""
    return percent(rate), " to ".join(map(percent, ci)) if ci else "-"
