"""The agreement of a judge with people as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted, rounded
from evenhand.report.cells import estimate_cells, estimate_methods, estimate_warnings, left_out_words
from evenhand.report.tables import Figures

_TITLES = {
    "exact": "equal",
    "kappa": "kappa",
    "kappa-linear": "kappa, linear",
    "kappa-quadratic": "kappa, quadratic",
    "pi": "Scott's pi",
    "fleiss": "Fleiss' kappa",
    "alpha": "alpha",
    "ac1": "AC1",
    "ac2-linear": "AC2, linear",
    "ac2-quadratic": "AC2, quadratic",
    "spearman": "Spearman",
    "kendall": "Kendall tau-b",
    "pearson": "Pearson",
    "mae": "MAE",
    "bias": "bias",
}
_SIDES = {
    "judge": "judge-people",
    "people": "people-people",
    "gap": "difference",
    "together": "people together",
}
_PUBLISHED = ("mae", "pearson", "spearman", "kendall", "fuzzy", "strict")


def print_agreement(facts: Mapping[str, Any], console: Console) -> None:
    """Print what `evenhand.agreeing.agreement_facts` gives: a table a field, then those of each slice."""
    rubric, items = facts["rubric"], facts["items"]
    who = "people" if facts["judge"] is None else f"{facts['judge']} and people"
    console.print(f"[bold]{escape(rubric['name'])}[/] v{rubric['version']}: {escape(who)}")
    people = ", ".join(facts["people"][:8]) + (" ..." if len(facts["people"]) > 8 else "")
    console.print(f"{_counted(items)}; {counted(len(facts['people']), 'rater')}: {escape(people)}")
    _print_fields(facts["fields"], console)
    for name, told in (facts["by"] or {}).items():
        console.print(f"\n[bold]{escape(name)}[/]: {_counted(told['items'])}")
        _print_fields(told["fields"], console)
    if facts["published"] is not None and facts["judge"] is not None:
        _print_published(facts["published"], console)


def bar_lines(bars: Iterable[Mapping[str, Any]]) -> list[str]:
    """What came of the bars, a line each."""
    lines = []
    for one in bars:
        where = f" of {one['place']}" if one["place"] else ""
        came = {True: "is met", False: "is not met", None: "can't be told"}[one["met"]]
        value, interval, n = estimate_cells(one) if one["value"] is not None else ("", "", "")
        found = one["reason"] if one["met"] is None else f"it is {value} ({interval}), n {n}"
        lines.append(f"{one['bar']}{where} {came}: {found}")
    return lines


def statistic_title(name: str) -> str:
    """A statistic's name for people."""
    kind, _, of = name.partition(":")
    if of:
        return f"{'within' if kind == 'within' else 'alpha,'} {of}"
    return _TITLES.get(name, f"equal band, {name}")


def note_lines(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why figures are lacking, and why to read them with care; each once."""
    figures = list(figures)
    lines = [f"- {escape(text)}" for text in dict.fromkeys(e["reason"] for e in figures) if text]
    return lines + [escape(line) for line in estimate_warnings(figures)]


def method_lines(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """How intervals were made, as `evenhand.report.cells.estimate_methods` has it."""
    return [escape(line) for line in estimate_methods(figures)]


def confusion_table(told: Mapping[str, Any]) -> Figures:
    """A confusion table: categories by categories, counts."""
    table = Figures(f"{told['rows']} \\ {told['columns']}", *map(str, told["categories"]))
    for category, counts in zip(told["categories"], told["counts"], strict=True):
        table.add_row(escape(str(category)), *(str(n) if n else "." for n in counts))
    return table


def _counted(items: Mapping[str, Any]) -> str:
    of = "" if items["judged"] is None else f" of {counted(items['judged'], 'item')} judged"
    return f"{counted(items['both'], 'item')} with labels{of}"


def _print_fields(fields: Mapping[str, Any], console: Console) -> None:
    for name, told in fields.items():
        console.print(_table(name, told))
        if told["confusion"] is not None:
            console.print(confusion_table(told["confusion"]))
            for line in left_out_words(name, told["confusion"]):
                console.print(escape(line))
        for line in _lines(told):
            console.print(line)
    if not fields:
        console.print("no field was rated by two, so nothing can be compared")


def _table(name: str, told: Mapping[str, Any]) -> Figures:
    figures = [e for figure in told["statistics"].values() for e in figure.values() if e is not None]
    planned = any("labels_needed" in e for e in figures)
    table = Figures(name, "", "", "95% interval", "n", *(["labels needed"] if planned else []), left=2)
    for statistic, figure in told["statistics"].items():
        title = escape(statistic_title(statistic))
        for side, who in _SIDES.items():
            if (found := figure[side]) is not None:
                cells = estimate_cells(found)
                needed = found.get("labels_needed")
                more = ["-" if needed is None else f"{needed:,}"] if planned else []
                table.add_row(title, who, *cells, *more)
                title = ""
    return table


def _lines(told: Mapping[str, Any]) -> list[str]:
    lines = []
    if test := told.get("alternative_test"):
        verdict = {True: "may stand in for an annotator", False: "may not", None: "can't be told"}[test["passed"]]
        rate = "" if test["winning_rate"] is None else f", winning rate {rounded(test['winning_rate'])}"
        if test["passed"] is not None:
            rate += (
                f"; it may fall behind a person on {test['epsilon']:.0%} of the items, as a person costs more (epsilon)"
            )
        why = "; ".join(filter(None, (test["reason"], *test["warnings"])))
        lines.append(f"alternative annotator test: {verdict}{rate}{f' ({escape(why)})' if why else ''}")
    figures = [estimate for figure in told["statistics"].values() for estimate in figure.values() if estimate]
    lines += note_lines([*figures, {"reason": "", "warnings": told["warnings"]}])
    reasons = dict.fromkeys(e["labels_reason"] for e in figures if e.get("labels_reason"))
    lines += [f"- labels needed: {escape(reason)}" for reason in reasons]
    return lines + method_lines(figures)


def _print_published(told: Mapping[str, Any], console: Console) -> None:
    """The evaluators that were published, as something to hold one's own figures against."""
    table = Figures("", *_PUBLISHED)
    console.print(f"published for {escape(told['name'])}, on other data:")
    for row in told["evaluators"]:
        for kind in ("internal", "external"):
            table.add_row(escape(f"{row['judge']}, {kind}"), *(f"{row[kind][name]:.3f}" for name in _PUBLISHED))
    console.print(table)
    console.print(escape(told["note"]))
