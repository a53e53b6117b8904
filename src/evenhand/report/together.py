"""Several runs of a report side by side, in sections and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import contained, rounded
from evenhand.beside import COMPARED, DIFFER, SHARED
from evenhand.facets import ASKED, JUDGED, USAGE, Facet
from evenhand.report.cells import estimate_methods, mean_methods, with_mean
from evenhand.report.figures import (
    MEANS,
    Cell,
    Section,
    Table,
    count,
    differences,
    dollars,
    estimated,
    mean_row,
    scale_of,
    share,
)
from evenhand.rubric.model import Rubric
from evenhand.scores import COMPOSITE
from evenhand.slices import label
from evenhand.tasks import told_weights, weights_of

#: Shares of each run: caption, and what they are of.
_SHARES = {
    "failed": ("Asked and not scored", ASKED),
    "violated": ("Readable replies that break a rule", "readable replies"),
    "consistency": ("Same side in both orders", JUDGED),
}


def together(told: Mapping[str, Any], rubrics: Sequence[Rubric]) -> Iterator[Section]:
    """The sections of several runs together, of `evenhand.reported.Reported.facts`; none for one run."""
    if told["together"] is None:
        return
    runs = told["runs"]
    tables = [_runs(runs), *_shares(runs), *_means(runs, rubrics)]
    yield Section("Runs side by side", [*_unlike(runs), *_methods(runs)], tables)
    yield _spread(runs, told["together"])
    yield _disagreement(told["together"], [run["run"] for run in runs])
    yield _compared(told["together"])


def _unlike(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """What to know where not all runs were judged under one rubric."""
    digests = {run["summary"]["rubric"]["digest"] for run in runs}
    if len(digests) == 1:
        return []
    return ["The runs were judged under different rubrics, or versions or options of one: so may their values differ."]


def _methods(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """How the intervals beside each other were made."""
    shares = [run["service"][name] for run in runs for name in _SHARES if run["service"][name] is not None]
    means = [fact for run in runs for fact in with_mean(run["summary"]).values()]
    told = {"shares": estimate_methods(shares), "means": mean_methods(means)}
    return [f"Of {what}: {method}" for what, methods in told.items() for method in methods]


def _compared(told: Mapping[str, Any]) -> Section:
    """Differences of the scores of runs that can be compared, and why others are not."""
    notes = ["Judges of the same answers differ in strictness, systems in quality: higher is not better by itself."]
    notes = notes if told["comparisons"] else ["Scores are not compared."]
    notes += [warning for comparison in told["comparisons"] for warning in comparison["warnings"]]
    tables = [
        table for comparison in told["comparisons"] for table in differences(comparison, lambda run: Facet("run", run))
    ]
    return Section("Runs compared", [*notes, *_left_out(told["not_compared"])], tables)


def _left_out(reasons: Mapping[str, str]) -> list[str]:
    return [f"{contained(run)} is left out: {reason}." for run, reason in reasons.items()]


def _runs(runs: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for run in runs:
        summary, where = run["summary"], Facet("run", run["run"])
        judge, rubric = summary["judge"], summary["rubric"]
        cost = Cell("", (where, Facet("count", "asked")), sort=USAGE[3])
        rows.append(
            [
                Cell(run["run"]),
                Cell(judge["spec"]),
                Cell(f"{contained(rubric['name'])} {rubric['version']}, {rubric['digest'][:8]}"),
                count(summary["planned"], where, Facet("count", "planned")),
                count(summary["scored"], where, Facet("count", "scored")),
                share(summary["coverage"], Cell("", (where, Facet("count", "rows_scored")))),
                dollars(run["service"]["cost_per_1000_items"], cost),
            ]
        )
    return Table("Runs", ["", "judge", "rubric, digest", "planned", "scored", "coverage", "cost per 1,000 items"], rows)


def _shares(runs: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Failures, broken rules and steadiness of each run."""
    for name, (caption, of) in _SHARES.items():
        rows = [
            [
                Cell(run["run"]),
                *estimated(run["service"][name], Cell("", (Facet("run", run["run"]), Facet("count", of)))),
            ]
            for run in runs
            if run["service"][name] is not None
        ]
        if rows:
            yield Table(caption, ["", "share", "95% interval", "n"], rows)


def _means(runs: Sequence[Mapping[str, Any]], rubrics: Sequence[Rubric]) -> Iterator[Table]:
    """Means of each run, a table a measure and scale; of composites a table for each set of weights."""
    for measure in dict.fromkeys(name for run in runs for name in with_mean(run["summary"])):
        alike: dict[Any, list[Mapping[str, Any]]] = {}
        for run, rubric in zip(runs, rubrics, strict=True):
            if measure in with_mean(run["summary"]):
                weights = weights_of(rubric) if measure == COMPOSITE else {}
                alike.setdefault((scale_of(rubric, measure), told_weights(weights)), []).append(run)
        for (scale, weights), members in alike.items():
            rows = [
                mean_row(
                    run["run"],
                    with_mean(run["summary"])[measure],
                    Cell("", (Facet("run", run["run"]), Facet("valued", measure))),
                )
                for run in members
            ]
            of = weights or (f"{scale[0]:g} to {scale[1]:g}" if scale else "")
            caption = f"{contained(measure)}{f' ({of})' if of and len(alike) > 1 else ''} by run"
            yield Table(caption, MEANS, rows, "means" if scale else None, scale)


def _spread(runs: Sequence[Mapping[str, Any]], told: Mapping[str, Any]) -> Section:
    """Counts of values, a table a field that runs share."""
    tables = []
    spreads = {run["run"]: run["distributions"] for run in runs}
    for field in told["fields"]:
        name = field["field"]
        rows = [
            [Cell(run), *(count(n, Facet("run", run), Facet("value", name, v)) for v, n in spreads[run][name].items())]
            for run in field["runs"]
        ]
        values = spreads[field["runs"][0]][name]
        tables.append(Table(f"{contained(name)} by run, verdicts by value", ["", *values], rows, "shares"))
    notes = [] if tables else ["No field is asked for in two runs on one scale."]
    shared = {run for field in told["fields"] for run in field["runs"]}
    others = {run: reason for run, reason in told["left_out"].items() if run not in shared}
    return Section("Distributions by run", [*notes, *_left_out(others)], tables)


def _disagreement(told: Mapping[str, Any], runs: Sequence[str]) -> Section:
    counts = [
        [Cell("in two runs or more"), count(told["items"], Facet("count", SHARED))],
        [Cell("of them with values to compare"), count(told["compared"], Facet("count", COMPARED))],
        [Cell("of them with values that differ"), count(told["differ"], Facet("count", DIFFER))],
    ]
    shown = [run for run in runs if run not in told["left_out"]]
    rows = [
        [
            Cell(one["id"], item=one["id"]),
            Cell(rounded(one["spread"], 3), value=one["spread"], item=one["id"]),
            *(Cell(_values(one, run), item=one["id"]) for run in shown),
        ]
        for one in told["most"]
    ]
    tables = [Table("Items", ["", "n"], counts)]
    if rows:
        tables.append(Table("Greatest differences first", ["", "spread", *shown], rows))
    notes = [f"Spread: {told['method']}. Of each item the fields that differ are shown.", *_left_out(told["left_out"])]
    return Section("Where runs disagree", notes, tables)


def _values(one: Mapping[str, Any], run: str) -> str:
    """Values of an item in a run, of the fields in which runs differ on it."""
    if run not in one["values"]:
        return "not in this run"
    values, flips = one["values"][run], one["flips"].get(run, ())
    differ = [name for name in one["differ"] if name in values]
    told = [f"{contained(n)} {'flips' if n in flips else contained(_value(values[n]))}" for n in differ]
    return ", ".join(told) or "not asked for these"


def _value(value: Any) -> str:
    """A value; whole numbers, which may be means of two orders, have no decimals."""
    if isinstance(value, float) and not value.is_integer():
        return rounded(value)
    return "-" if value is None else label(value)
