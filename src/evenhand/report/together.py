"""Several runs of a report side by side, in sections and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import rounded
from evenhand.beside import COMPARED, DIFFER, SHARED
from evenhand.facets import ASKED, JUDGED, USAGE, Facet
from evenhand.report.cells import with_mean
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


def together(told: Mapping[str, Any], rubrics: Sequence[Rubric]) -> Iterator[Section]:
    """The sections of several runs together, of `evenhand.reported.Reported.facts`; none for one run."""
    if told["together"] is None:
        return
    yield Section(
        "Runs side by side", [], [_runs(told["runs"]), *_shares(told["runs"]), *_means(told["runs"], rubrics)]
    )
    yield _spread(told["runs"], told["together"]["fields"])
    yield _disagreement(told["together"], [run["run"] for run in told["runs"]])
    comparison = told["together"]["comparison"]
    if comparison is not None:
        notes = ["Judges of the same answers differ in strictness, systems in quality: higher is not better by itself."]
        yield Section("Runs compared", notes, differences(comparison, lambda name: Facet("run", name)))
    else:
        yield Section("Runs compared", [f"Scores are not compared: {told['together']['comparison_note']}."])


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
                Cell(f"{rubric['name']} {rubric['version']}, {rubric['digest'][:8]}"),
                count(summary["planned"], where, Facet("count", "planned")),
                count(summary["scored"], where, Facet("count", "scored")),
                share(summary["coverage"], Cell("", (where, Facet("count", "rows_scored")))),
                dollars(run["service"]["cost_per_1000_items"], cost),
            ]
        )
    return Table("Runs", ["", "judge", "rubric, digest", "planned", "scored", "coverage", "cost per 1,000 items"], rows)


def _shares(runs: Sequence[Mapping[str, Any]]) -> Iterator[Table]:
    """Failures, broken rules and steadiness of each run."""
    for name, caption, of in (
        ("failed", "Asked and not scored", ASKED),
        ("violated", "Readable replies that break a rule", "readable replies"),
        ("consistency", "Same side in both orders", JUDGED),
    ):
        rows = [
            [
                Cell(run["run"]),
                *estimated(run["service"][name], Cell("", (Facet("run", run["run"]), Facet("count", of)))),
            ]
            for run in runs
        ]
        if any(run["service"][name] for run in runs):
            yield Table(caption, ["", "share", "95% interval", "n"], rows)


def _means(runs: Sequence[Mapping[str, Any]], rubrics: Sequence[Rubric]) -> Iterator[Table]:
    """Means of each run, a table a measure."""
    for measure in dict.fromkeys(name for run in runs for name in with_mean(run["summary"])):
        rows = [
            mean_row(
                run["run"],
                with_mean(run["summary"]).get(measure),
                Cell("", (Facet("run", run["run"]), Facet("valued", measure))),
            )
            for run in runs
        ]
        scales = {scale_of(rubric, measure) for rubric in rubrics}
        scale = next(iter(scales)) if len(scales) == 1 else None  # else no chart could hold them
        yield Table(f"{measure} by run", MEANS, rows, "means" if scale else None, scale)


def _spread(runs: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> Section:
    """Counts of values of each run, a table a field that all have."""
    tables = []
    for name in fields:
        spreads = [run["distributions"][name] for run in runs]
        rows = [
            [Cell(run["run"]), *(count(n, Facet("run", run["run"]), Facet("value", name, v)) for v, n in of.items())]
            for run, of in zip(runs, spreads, strict=True)
        ]
        tables.append(Table(f"{name} by run, verdicts by value", ["", *spreads[0]], rows, "shares"))
    notes = [] if tables else ["No field is asked for in all runs on one scale."]
    return Section("Distributions by run", notes, tables)


def _disagreement(told: Mapping[str, Any], runs: Sequence[str]) -> Section:
    counts = [
        [Cell("in two runs or more"), count(told["items"], Facet("count", SHARED))],
        [Cell("of them with values to compare"), count(told["compared"], Facet("count", COMPARED))],
        [Cell("of them with values that differ"), count(told["differ"], Facet("count", DIFFER))],
    ]
    rows = [
        [
            Cell(one["id"], item=one["id"]),
            Cell(rounded(one["spread"], 3), value=one["spread"], item=one["id"]),
            *(Cell(_values(one["values"].get(run)), item=one["id"]) for run in runs),
        ]
        for one in told["most"]
    ]
    tables = [Table("Items", ["", "n"], counts)]
    if rows:
        tables.append(Table("Greatest differences first", ["", "spread", *runs], rows))
    return Section("Where runs disagree", [f"Spread: {told['method']}."], tables)


def _values(values: Mapping[str, Any] | None) -> str:
    if values is None:
        return "not in this run"
    return ", ".join(f"{name} {'-' if value is None else value}" for name, value in values.items())
