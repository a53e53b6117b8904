"""Several runs of a report side by side, in sections and tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import usd
from evenhand.facets import Facet
from evenhand.report.cells import estimate_cells, mean_cells
from evenhand.report.sections import Cell, Section, Table, differences, with_mean


def together(told: Mapping[str, Any]) -> Iterator[Section]:
    """The sections of several runs together, of `evenhand.reported.Reported.facts`; none for one run."""
    if told["together"] is None:
        return
    yield _side_by_side(told["runs"])
    yield _disagreement(told["together"], [run["run"] for run in told["runs"]])
    comparison = told["together"]["comparison"]
    if comparison is not None:
        notes = ["Differences item by item; judges of the same answers differ in strictness, systems in quality."]
        yield Section("Runs compared", notes, [differences(comparison)])
    else:
        yield Section("Runs compared", [f"Scores are not compared: {told['together']['comparison_note']}."])


def _side_by_side(runs: Sequence[Mapping[str, Any]]) -> Section:
    measures = list(dict.fromkeys(name for run in runs for name in with_mean(run["summary"])))
    rows = []
    for run in runs:
        summary, service = run["summary"], run["service"]
        where = Facet("run", run["run"])
        means = [with_mean(summary).get(measure) for measure in measures]
        failed, steady = service["failed"], service["consistency"]
        cost = service["cost_per_1000_items"]
        rows.append(
            [
                Cell(run["run"]),
                Cell(summary["judge"]["spec"]),
                Cell(f"{summary['rubric']['name']} {summary['rubric']['version']}, {summary['rubric']['digest'][:8]}"),
                Cell(f"{summary['planned']:,}", (where, Facet("count", "planned")), summary["planned"]),
                Cell(f"{summary['scored']:,}", (where, Facet("count", "scored")), summary["scored"]),
                *(
                    Cell("-")
                    if fact is None
                    else Cell(_mean(fact), (where, Facet("valued", name)) if fact["n"] else (), fact["mean"])
                    for name, fact in zip(measures, means, strict=True)
                ),
                Cell(_estimate(failed), (where, Facet("count", "not scored")), failed["value"]),
                Cell(_estimate(service["violated"]), value=service["violated"]["value"]),
                Cell("-" if steady is None else _estimate(steady), value=steady and steady["value"]),
                Cell("unknown" if cost is None else usd(cost), value=cost),
            ]
        )
    columns = [
        "",
        "judge",
        "rubric, digest",
        "planned",
        "scored",
        *(f"{name}: mean, 95% interval" for name in measures),
    ]
    columns += ["not scored", "break a rule", "same side in both orders", "cost per 1,000 items"]
    return Section("Runs side by side", [], [Table("Runs", columns, rows)])


def _disagreement(told: Mapping[str, Any], runs: Sequence[str]) -> Section:
    counts = f"{told['differ']:,} of {told['compared']:,} items differ between runs"
    notes = [f"{counts}; {told['items']:,} items are in two runs or more.", f"Spread: {told['method']}."]
    rows = [
        [
            Cell(one["id"], item=one["id"]),
            Cell(f"{one['spread']:.3f}", value=one["spread"]),
            *(Cell(_values(one["values"].get(run))) for run in runs),
        ]
        for one in told["most"]
    ]
    tables = [Table(f"Greatest differences first ({len(rows)} items)", ["", "spread", *runs], rows)] if rows else []
    return Section("Where runs disagree", notes, tables)


def _values(values: Mapping[str, Any] | None) -> str:
    if values is None:
        return "not in this run"
    return ", ".join(f"{name} {'-' if value is None else value}" for name, value in values.items())


def _mean(fact: Mapping[str, Any]) -> str:
    mean, interval, n = mean_cells(fact)
    return f"{mean} ({interval}; n {n})"


def _estimate(estimate: Mapping[str, Any]) -> str:
    value, interval, n = estimate_cells(estimate)
    return f"{value} ({interval}; n {n})"
