"""Several runs of a report side by side, in sections and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import percent, rounded
from evenhand.beside import COMPARED, DIFFER, SHARED
from evenhand.facets import USAGE, Facet
from evenhand.report.figures import (
    MEANS,
    Cell,
    Section,
    Table,
    count,
    differences,
    dollars,
    mean_row,
    scale_of,
    share,
    with_mean,
)
from evenhand.rubric.model import Rubric


def together(told: Mapping[str, Any], rubrics: Sequence[Rubric]) -> Iterator[Section]:
    """The sections of several runs together, of `evenhand.reported.Reported.facts`; none for one run."""
    if told["together"] is None:
        return
    yield Section("Runs side by side", [], [_runs(told["runs"]), *_means(told["runs"], rubrics)])
    yield _spread(told["runs"], told["together"]["fields"])
    yield _disagreement(told["together"], [run["run"] for run in told["runs"]])
    comparison = told["together"]["comparison"]
    if comparison is not None:
        notes = ["Differences item by item; judges of the same answers differ in strictness, systems in quality."]
        yield Section("Runs compared", notes, differences(comparison, lambda name: Facet("run", name)))
    else:
        yield Section("Runs compared", [f"Scores are not compared: {told['together']['comparison_note']}."])


def _runs(runs: Sequence[Mapping[str, Any]]) -> Table:
    rows = []
    for run in runs:
        summary, service, where = run["summary"], run["service"], Facet("run", run["run"])
        rows.append(
            [
                Cell(run["run"]),
                Cell(summary["judge"]["spec"]),
                Cell(f"{summary['rubric']['name']} {summary['rubric']['version']}, {summary['rubric']['digest'][:8]}"),
                count(summary["planned"], where, Facet("count", "planned")),
                count(summary["scored"], where, Facet("count", "scored")),
                share(summary["coverage"], Cell("", (where, Facet("count", "rows_scored")))),
                _estimate(service["failed"], where, Facet("count", "asked")),
                _estimate(service["violated"], where, Facet("count", "readable replies")),
                _estimate(service["consistency"], where, Facet("count", "side known")),
                dollars(service["cost_per_1000_items"], Cell("", (where, Facet("count", "asked")), sort=USAGE[3])),
            ]
        )
    columns = ["", "judge", "rubric, digest", "planned", "scored", "coverage", "share not scored"]
    columns += ["share that breaks a rule", "same side in both orders", "cost per 1,000 items"]
    return Table("Runs", columns, rows)


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
    return Section("Distributions by run", [], tables)


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


def _estimate(estimate: Mapping[str, Any] | None, *facets: Facet) -> Cell:
    """A share with its interval and n in one cell."""
    if estimate is None or estimate["value"] is None:
        return Cell("-")
    interval = f"{' to '.join(map(percent, estimate['ci']))}; " if estimate["ci"] else ""
    return Cell(f"{percent(estimate['value'])} ({interval}n {estimate['n']:,})", facets, estimate["value"])
