"""Variants of a rubric side by side, as a person reads them in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted, failure, percent
from evenhand.report.agreed import method_lines
from evenhand.report.cells import estimate_cells
from evenhand.report.tables import Figures

_TITLES = {"spearman": "Spearman", "kendall": "Kendall tau-b", "difference": "MAE"}


def print_study(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.studying.study_facts` gives: three tables a measure."""
    rubric = facts["rubric"]
    judge = f"{counted(len(facts['runs']), 'variant')} judged by {escape(facts['judge'])}"
    console.print(f"[bold]{escape(rubric['name'])}[/] v{rubric['version']}: {judge}")
    console.print("Every value is a share of its own scale: 0 is the bottom, 1 the top.")
    for measure, told in facts["measures"].items():
        console.print(f"\n[bold]{escape(measure)}[/]")
        console.print(_use(told["variants"]))
        console.print("two variants on the same items")
        _print_agreement(((f"{pair['a']} | {pair['b']}", pair) for pair in told["pairs"]), console)
        figures = [one["mean"] for one in told["variants"].values()]
        figures += [pair[name] for pair in told["pairs"] for name in _TITLES]
        if told["people"] is not None:
            console.print("each variant against people, on the items that all have")
            _print_agreement(told["people"].items(), console)
            figures += [one[name] for one in told["people"].values() for name in _TITLES]
            console.print(_differences(told["differences"]))
            console.print(told["verdict"], markup=False)
            figures += [one["difference"] for one in told["differences"]]
        for line in _notes(figures):
            console.print(line)
    console.print()
    console.print(_cost(facts["runs"]))
    told = facts["measures"].values()
    every = [one["mean"] for of in told for one in of["variants"].values()]
    every += [pair[name] for of in told for pair in of["pairs"] for name in _TITLES]
    for line in method_lines(every):
        console.print(line)


def _use(variants: Mapping[str, Any]) -> Figures:
    """How each variant uses its scale."""
    table = Figures("", "mean", "95% interval", "scored", "failed")
    for name, told in variants.items():
        value, interval, _ = estimate_cells(told["mean"])
        failed = "-" if told["failed"] is None else percent(told["failed"])
        table.add_row(escape(name), value, interval, f"{told['scored']}/{told['planned']}", failed)
    return table


def _differences(differences: Iterable[Mapping[str, Any]]) -> Figures:
    """How much better the second of two variants agrees with people."""
    table = Figures("Kendall tau-b with people", "", "95% interval", "n")
    for told in differences:
        table.add_row(escape(f"{told['b']} less {told['a']}"), *estimate_cells(told["difference"]))
    return table


def _print_agreement(rows: Iterable[tuple[str, Mapping[str, Any]]], console: Console) -> None:
    for number, (title, told) in enumerate(rows):
        console.print(f"  {escape(title)}")
        table = Figures("", "", "95% interval", "n", show_header=not number)
        for column, width in enumerate((19, 7, 15, 4)):  # so that the tables of a list stand under each other
            table.columns[column].min_width = width
        for name, words in _TITLES.items():
            if name in told:
                table.add_row(f"    {words}", *estimate_cells(told[name]))
        console.print(table)


def _cost(runs: Mapping[str, Any]) -> Figures:
    table = Figures("", "calls", "tokens in", "out", "not scored")
    for name, told in runs.items():
        tokens = told["tokens"]
        why = ", ".join(f"{failure(reason)} {n}" for reason, n in told["failures"].items()) or "-"
        table.add_row(
            escape(name), f"{told['calls']:,}", f"{tokens['prompt']:,}", f"{tokens['completion']:,}", escape(why)
        )
    return table


def _notes(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why figures are lacking, and why to read them with care; each once."""
    figures = list(figures)
    lines = [f"- {escape(text)}" for text in dict.fromkeys(e["reason"] for e in figures) if text]
    return lines + [f"warning: {escape(text)}" for text in dict.fromkeys(w for e in figures for w in e["warnings"])]
