"""The summary as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table


def print_summary(facts: Mapping[str, Any], console: Console) -> None:
    """Print a run's figures as `evenhand.facts.summary` gives them."""
    judge = facts["judge"]
    model = f" ({', '.join(judge['models'])})" if judge["models"] and judge["models"] != [judge["spec"]] else ""
    rubric = facts["rubric"]
    console.print(
        f"[bold]{escape(rubric['name'])}[/] v{rubric['version']} judged by [bold]{escape(judge['spec'])}[/]", end=""
    )
    console.print(f"{escape(model)} - {judge['status']}")
    console.print(_coverage_line(facts))
    console.print(_means_table(facts))
    if "preference" in facts:
        console.print(_preference_line(facts))
    for line in _detail_lines(facts):
        console.print(line)
    for name, part in facts.get("by", {}).items():
        console.print(f"\n[bold]{escape(name)}[/]  {_coverage_line(part)}")
        console.print(_means_table(part))
        if "preference" in part:
            console.print(_preference_line(part))


def _coverage_line(facts: Mapping[str, Any]) -> str:
    coverage = facts["coverage"]
    share = "no rows" if coverage is None else f"coverage {coverage:.1%}"
    text = f"{facts['scored']} of {facts['planned']} scored; {share} of {facts['rows']} rows"
    if facts["set_in_code"]:
        text += f"; {facts['set_in_code']} set in code"
    return text


def _means_table(facts: Mapping[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name, justify in (("", "left"), ("mean", "right"), ("95% interval", "right"), ("n", "right"), ("", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    for name, fact in {**facts["criteria"], **facts["fields"]}.items():
        if "mean" in fact:
            table.add_row(escape(name), *_mean_cells(fact), _missing(fact))
        else:
            shares = ", ".join(f"{label} {n}" for label, n in fact["counts"].items())
            table.add_row(escape(name), "", "", str(fact["n"]), escape(shares) + _missing(fact))
    if facts["composite"]:
        table.add_row("composite", *_mean_cells(facts["composite"]), "", style="bold")
    return table


def _mean_cells(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    if fact["mean"] is None:
        return "-", fact["note"], "0"
    interval = f"{fact['ci'][0]:.2f} to {fact['ci'][1]:.2f}" if fact["ci"] else fact.get("note", "")
    return f"{fact['mean']:.2f}", interval, str(fact["n"])


def _missing(fact: Mapping[str, Any]) -> str:
    failures = ", ".join(f"{name} {n}" for name, n in fact["failures"].items())
    return f" missing: {failures}" if failures else ""


def _preference_line(facts: Mapping[str, Any]) -> str:
    counts = "  ".join(f"{escape(side)} {n}" for side, n in facts["preference"].items())
    flips = f"  changed with the order {facts['flips']}" if "flips" in facts else ""
    return f"preferred: {counts}{flips}"


def _detail_lines(facts: Mapping[str, Any]) -> list[str]:
    lines = []
    if facts["failures"]:
        lines.append("not scored: " + ", ".join(f"{escape(k)} {n}" for k, n in facts["failures"].items()))
    if facts["violations"]:
        lines.append("rules broken: " + ", ".join(f"{escape(k)} {n}" for k, n in facts["violations"].items()))
    lines.append(
        f"calls {facts['calls']}; re-asked {facts['re_asked']}; repaired {facts['repaired']}; "
        f"inconsistent {facts['inconsistent']}"
    )
    tokens = facts["tokens"]
    cost = "unknown" if facts["cost_usd"] is None else f"${facts['cost_usd']:.4f}"
    lines.append(f"tokens {tokens['prompt']} in ({tokens['cached']} cached), {tokens['completion']} out; cost {cost}")
    return lines
