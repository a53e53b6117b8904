"""A run's figures beside the corrected ones, as a person reads them in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted
from evenhand.report.cells import estimate_cells
from evenhand.report.tables import Figures


def print_correction(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.correcting.correction_facts` gives: figures, groups, differences, why some are lacking."""
    rubric, items = facts["rubric"], facts["items"]
    console.print(
        f"[bold]{escape(rubric['name'])}[/] v{rubric['version']}: {escape(facts['judge'])} corrected by "
        f"{counted(len(facts['people']), 'rater')} ({facts['method']})"
    )
    console.print(f"{counted(items['judged'], 'item')} judged, {items['labelled']} of them labelled")
    by = facts["by"]
    groups = {} if by is None else by["groups"]
    titles = ("judge", "95% interval", "corrected", "95% interval", "judged", "labelled")
    table = Figures("" if by is None else by["column"], "", *titles, left=2)
    bare = [name for name, told in facts["measures"].items() if not told["labelled"]]
    for group, measures in {"(all)": facts["measures"], **groups}.items():
        shown = group if by is not None else ""
        for name, told in measures.items():
            if name in bare:
                continue
            title = name if told["what"] == "mean" else f"{name}, {told['what']}"
            cells = (*_cells(told["raw"]), *_cells(told["corrected"]))
            table.add_row(escape(shown), escape(title), *cells, str(told["judged"]), str(told["labelled"]))
            shown = ""
    console.print(table)
    if by is not None and by["differences"]:
        _print_differences([told for told in by["differences"] if told["measure"] not in bare], console)
    for line in dict.fromkeys([*_methods(facts, bare), *_notes(facts, by, bare)]):
        console.print(escape(line))


def _print_differences(differences: Iterable[Mapping[str, Any]], console: Console) -> None:
    titles = ("judge", "corrected", "95% interval", "win rate", "95% interval")
    table = Figures("difference", "", *titles, left=2)
    for told in differences:
        title = escape(f"{told['b']} less {told['a']}")
        raw, corrected, won = (_cells(told[name]) for name in ("raw", "corrected", "win_rate"))
        table.add_row(title, escape(told["measure"]), raw[0], *corrected, *won)
    console.print(table)


def _cells(estimate: Mapping[str, Any]) -> tuple[str, str]:
    return estimate_cells(estimate, 2)[:2]


def _methods(facts: Mapping[str, Any], bare: Sequence[str]) -> Iterator[str]:
    """How figures and intervals were made."""
    told = {name: of for name, of in facts["measures"].items() if name not in bare}
    for method in dict.fromkeys(of["raw"]["method"] for of in told.values() if of["raw"]["ci"]):
        yield f"judge: {method}"
    for name, of in told.items():
        if of["corrected"]["ci"]:
            yield f"corrected, {name}: {of['corrected']['method']}"


def _notes(facts: Mapping[str, Any], by: Mapping[str, Any] | None, bare: Sequence[str]) -> list[str]:
    """Why figures are lacking or rough, once each; what has no label at all is told once."""
    groups = {} if by is None else by["groups"]
    named = [(name, told) for name, told in facts["measures"].items() if name not in bare]
    named += [
        (f"{group}, {name}", told) for group, of in groups.items() for name, told in of.items() if name not in bare
    ]
    named += [
        (
            f"{told['b']} less {told['a']}, {told['measure']}{', win rate' if name == 'win_rate' else ''}",
            {name: told[name]},
        )
        for told in (by["differences"] if by is not None else ())
        if told["measure"] not in bare
        for name in ("corrected", "win_rate")
    ]
    figures = [(name, told[side]) for name, told in named for side in ("corrected", "win_rate") if side in told]
    lines = [f"- {', '.join(bare)}: nothing labelled, so nothing to correct by"] if bare else []
    lines += [f"- {name}: {figure['reason']}" for name, figure in figures if figure["reason"]]
    lines += [f"- {name}: {reason}" for name, reason in facts["left_out"].items()]
    lines += [f"warning: {text}" for _, figure in figures for text in figure["warnings"]]
    return lines + [f"warning: {text}" for text in facts["warnings"]]
