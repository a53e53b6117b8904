"""What a report of runs says, as plain data: the figures of each run, and its rows. No layout.

Reported -> ReportedRun -> figures, rows (`evenhand.facets`)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand import facts
from evenhand.agreeing import Labels, agreement_facts, judged
from evenhand.beside import Beside, together_facts
from evenhand.comparing import comparison_facts
from evenhand.errors import InputError
from evenhand.facets import Facet, FacetTable, Row, RunRows, legal_values
from evenhand.ranking import ranking
from evenhand.rubric.model import Rubric
from evenhand.scores import of_column
from evenhand.service import service_facts
from evenhand.store import Store

#: Systems that are compared each with each; of more, nobody reads the table.
MOST_SYSTEMS = 30
SPREAD = "spread of runs"


@dataclass(slots=True)
class ReportedRun:
    """One run of a report.

    Attributes:
        name: What the run is called: its folder as given.
        rubric: Its rubric.
        store: The open run.
        by: Columns that its figures are broken down by.
        system: The one of them that tells systems apart; None without one.
        facets: How often each facet occurred, over all runs; full once all rows were read.
        value: "stated" or "expected".
        labels: What people said; None without.
        rows: The reader of its rows, once they were asked for.
    """

    name: str
    rubric: Rubric
    store: Store
    by: list[str]
    system: str | None
    facets: FacetTable
    value: facts.ValueKind
    labels: Labels | None = None
    rows: RunRows | None = None

    def columns(self) -> list[str]:
        """Names of the cells of its rows."""
        return self._rows(details=False).columns

    def again(self) -> Iterator[Row]:
        """The rows once more, without details; nothing is counted."""
        return iter(self._rows(details=False))

    def read(self, *, details: bool, beside: Beside | None = None) -> Iterator[tuple[Row, list[int]]]:
        """The rows in input order, each with the numbers of its facets; beside other runs with those of what differs.

        Cells then have the run, and the spread (`SPREAD`) of the item's values.
        """
        self.rows = self._rows(details=details)
        for row in self.rows:
            if beside is not None:
                values = beside.values(row.id, self.name)
                row.cells.update(run=self.name, **{SPREAD: beside.spread(values)})
                row.facets.update({Facet("count", name): 1 for name in beside.counts(values)})
            yield row, self.facets.add(row.facets)

    def _rows(self, *, details: bool) -> RunRows:
        said = self.labels.of if self.labels is not None else None
        return RunRows(self.store, self.rubric, self.name, self.value, self.by, details=details, labels=said)

    def facts(self) -> dict[str, Any]:
        """All figures, as plain JSON data; reads the rows unless they were read before.

        Returns:
            run, ``plan`` (of the manifest: created, evenhand, judge, orders, repeats, options and weights),
            ``summary`` (`evenhand.Run.summary`), ``service`` (`evenhand.service.service_facts`), ``by`` (column ->
            slice -> summary of the slice), ``distributions`` and ``distributions_by`` (counts of verdicts: field ->
            value, and column -> slice -> field -> value), ``comparison`` (`evenhand.compare`; ``comparison_note``
            tells why systems are not compared), ``ranking`` (`evenhand.Run.ranking`) and ``agreement``
            (`evenhand.Run.agreement`), each None where there is none, ``messages`` (broken rule -> the first message
            that a verdict broke it with) and ``labels`` (counts of what people labelled, see
            `evenhand.facets.RunRows`).
        """
        if self.rows is None:
            for _ in self.read(details=False):
                pass
        assert self.rows is not None
        summary = facts.summary(self.store, self.rubric, value=self.value)
        comparison, note = self._comparison()
        fields = {f.name: legal_values(f) for f in self.rubric.output.fields if f.name in self.rows.distributions}
        return {
            "run": self.name,
            "plan": _plan(self.store.manifest),
            "summary": summary,
            "service": service_facts(self.store, self.rubric, summary),
            "by": {column: self._summary_by(column) for column in self.by},
            "distributions": {name: _told(self.rows.distributions[name], fields[name]) for name in fields},
            "distributions_by": {
                column: {
                    name: {f: _told(counts[f], fields[f]) for f in fields} for name, counts in sorted(slices.items())
                }
                for column, slices in self.rows.by.items()
            },
            "comparison": comparison,
            "comparison_note": note,
            "ranking": self._ranking(),
            "agreement": self._agreement(),
            "messages": dict(self.rows.messages),
            "labels": dict(self.rows.labelled),
        }

    def _summary_by(self, column: str) -> dict[str, Any]:
        told: dict[str, Any] = facts.summary(self.store, self.rubric, value=self.value, by=column)["by"]
        return told

    def _comparison(self) -> tuple[dict[str, Any] | None, str | None]:
        """Systems each with each, or why they are not compared."""
        assert self.rows is not None
        if self.system is None or self.rubric.mode != "score":
            return None, None
        systems = len(self.rows.by[self.system])
        if systems > MOST_SYSTEMS:
            return (
                None,
                f"{self.system} has {systems:,} values, and more than {MOST_SYSTEMS} are not compared in a report",
            )
        try:
            return comparison_facts(of_column(self.store, self.rubric, self.system, self.value)), None
        except InputError as error:  # one system only, or texts that were not kept
            return None, error.message

    def _agreement(self) -> dict[str, Any] | None:
        if self.labels is None:
            return None
        return agreement_facts(self.rubric, self.labels, judged(self.store, self.rubric, self.value))

    def _ranking(self) -> dict[str, Any] | None:
        if self.rubric.preference is None:
            return None
        try:
            return ranking(self.store, self.rubric, value=self.value)
        except InputError:  # the rows name no systems
            return None


@dataclass(slots=True)
class Reported:
    """Everything a report tells.

    Attributes:
        runs: The runs, in the order given.
        facets: Those of all runs.
        beside: The values of several runs beside each other; None for one run.
    """

    runs: list[ReportedRun]
    facets: FacetTable = field(default_factory=FacetTable)
    beside: Beside | None = field(init=False)

    def __post_init__(self) -> None:
        self.beside = Beside(self.runs) if len(self.runs) > 1 else None

    def facts(self) -> dict[str, Any]:
        """``runs`` (`ReportedRun.facts`) and ``together`` (`evenhand.beside.together_facts`; None for one run)."""
        return {
            "value": self.runs[0].value,
            "runs": [run.facts() for run in self.runs],
            "together": together_facts(self.beside) if self.beside is not None else None,
        }


def _told(counts: Mapping[str, int], values: Sequence[str]) -> dict[str, int]:
    return {value: counts.get(value, 0) for value in values}


def _plan(manifest: Mapping[str, Any]) -> dict[str, Any]:
    names = ("created", "evenhand", "orders", "repeats", "short", "re_ask", "form")
    rubric = {name: manifest["rubric"][name] for name in ("options", "weights")}
    return {**{name: manifest[name] for name in names}, "judge": manifest["judge"], **rubric}
