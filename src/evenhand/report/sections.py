"""A run's figures in sections and tables, whatever they are laid out as: HTML, Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand._words import usd
from evenhand.facets import Facet
from evenhand.report.cells import estimate_cells, mean_cells
from evenhand.rubric.model import Rubric


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What is shown.
        facets: The verdicts behind it are those that have all of these; none for a cell that leads nowhere.
        value: The figure in full; None for a cell of words.
        item: The id of the item that it leads to.
    """

    text: str
    facets: tuple[Facet, ...] = ()
    value: int | float | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Cells.
        chart: What may be drawn of it: "shares" (all columns but the first as counts of one whole), or "means" (mean
            and interval in the second and third column).
        scale: Ends of the scale of means.
    """

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    chart: Literal["shares", "means"] | None = None
    scale: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report."""

    title: str
    notes: Sequence[str] = ()
    tables: Sequence[Table] = field(default_factory=list)


class Sections:
    """The sections of one run.

    Args:
        told: Its figures, of `evenhand.reporting.ReportedRun.facts`.
        rubric: Its rubric.
        several: Whether the report has other runs beside it.
    """

    def __init__(self, told: Mapping[str, Any], rubric: Rubric, *, several: bool) -> None:
        self._told, self._rubric = told, rubric
        self._summary: Mapping[str, Any] = told["summary"]
        self._run = (Facet("run", told["run"]),) if several else ()

    def __iter__(self) -> Iterator[Section]:
        made = (
            self._headline(), self._judge(), self._spread(), *map(self._slices, self._told["by"]), self._systems(),
            self._standings(), self._orders(), self._rules(), self._failures(), self._service(), self._agreement(),
        )  # fmt: skip
        return (section for section in made if section is not None)

    def _n(self, n: int | None, *facets: Facet) -> Cell:
        """A count that leads to what it counts."""
        if n is None:
            return Cell("-")
        return Cell(f"{n:,}", (*self._run, *facets) if n and facets else (), n)

    def _count(self, name: str, n: int | None = None) -> Cell:
        return self._n(self._summary.get(name) if n is None else n, Facet("count", name))

    def _mean(self, name: str, fact: Mapping[str, Any], *facets: Facet) -> list[Cell]:
        mean, interval, _ = mean_cells(fact)
        n = self._n(fact["n"], *(facets or (Facet("valued", name),)))
        return [Cell(name), Cell(mean, n.facets, fact["mean"]), Cell(interval), n]

    def _headline(self) -> Section:
        told = self._summary
        counts = [
            [Cell("input rows"), self._n(told["rows"], Facet("run", self._told["run"]))],
            [Cell("planned (rows x repeats)"), self._count("planned")],
            [Cell("scored"), self._count("scored")],
            [Cell("not scored"), self._count("not scored", told["planned"] - told["scored"])],
            [Cell("coverage (scored rows / rows)"), _share(told["coverage"])],
        ]
        notes = [self._validation()]
        if told["planned"] and not told["scored"]:
            notes.append("Nothing was scored: this run says nothing about its items.")
        if told["null_answers"]:
            notes.append(f"{told['null_answers']} answers are null: no text at all, not an empty one.")
        return Section("Headline", notes, [*self._means(), Table("Coverage", ["", "n"], counts)])

    def _means(self) -> list[Table]:
        """Figures of all fields with numbers, the composite first; shares are under distributions."""
        fields = {**self._summary["criteria"], **self._summary["fields"]}
        whole = self._summary["composite"]
        rows = [[*self._mean("composite", whole), Cell("")]] if whole else []
        for name, fact in fields.items():
            if "mean" in fact:
                failures = ", ".join(f"{failure} {n}" for failure, n in fact["failures"].items())
                rows.append([*self._mean(name, fact), Cell(failures)])
        if not rows:
            return []
        bounds = [c.scale for c in self._rubric.criteria if c.scale.numeric]
        ends = {(float(scale.bottom), float(scale.top)) for scale in bounds}
        scale = next(iter(ends)) if len(ends) == 1 else None
        columns = ["", "mean", "95% interval", "n", "missing"]
        return [Table(f"Means ({self._summary['value']} values)", columns, rows, "means" if scale else None, scale)]

    def _validation(self) -> str:
        labels = self._told["agreement"]
        if labels is None:
            return f"The judge is {self._summary['judge']['status']}: no labels of people were given."
        return f"The judge is set against the labels of {labels['items']['both']} items; see agreement."

    def _judge(self) -> Section:
        plan, judge, rubric = self._told["plan"], self._summary["judge"], self._summary["rubric"]
        rows = {
            "judge": judge["spec"],
            "models named in replies": ", ".join(judge["models"]) or "-",
            "settings": _plain(judge["settings"]),
            "identity": _plain(judge["identity"]),
            "rubric": f"{rubric['name']} version {rubric['version']}",
            "rubric digest": rubric["digest"],
            "options": _plain(plan["options"]) if plan["options"] else "-",
            "weights": _plain(plan["weights"]) if plan["weights"] else "-",
            "orders": ", ".join(plan["orders"]) if any(plan["orders"]) else "-",
            "repeats": str(plan["repeats"]),
            "asked in": f"the {'short' if plan['short'] else 'full'} form, {plan['form'] or 'not known'}",
            "made": f"{plan['created']} with evenhand {plan['evenhand']}",
        }
        if ask := self._summary["ask"]:
            rows["entry phrase"] = ask["phrase"]
        cells = [[Cell(name), Cell(text)] for name, text in rows.items()]
        return Section("Judge and rubric", [], [Table("What was run", ["", ""], cells)])

    def _spread(self) -> Section:
        """Counts of values; fields of the same values are in one table."""
        fields = self._told["distributions"]
        alike: dict[tuple[str, ...], list[str]] = {}
        for name, counts in fields.items():
            alike.setdefault(tuple(counts), []).append(name)
        facts = {**self._summary["criteria"], **self._summary["fields"]}
        tables = []
        for values, names in alike.items():
            rows = []
            for name in names:
                cells = [self._n(fields[name][v], Facet("value", name, v)) for v in values]
                n = self._n(sum(fields[name].values()), Facet("valued", name))
                preset = facts[name]["set_in_code"] if name in facts else None
                rows.append([Cell(name), *cells, n, self._n(preset, Facet("preset", name))])
            tables.append(Table("Verdicts by value", ["", *values, "n", "set in code"], rows, "shares"))
        return Section("Distributions", [], tables)

    def _slices(self, column: str) -> Section:
        told = self._told["by"][column]
        measures = list(dict.fromkeys(name for part in told.values() for name in with_mean(part)))
        rows = []
        for name, part in told.items():
            where = Facet("column", column, name)
            of = [with_mean(part).get(measure) for measure in measures]
            links = [(*self._run, where, Facet("valued", measure)) for measure in measures]
            means = [
                Cell("-") if fact is None else Cell(" ".join(_short(fact)), link if fact["n"] else (), fact["mean"])
                for fact, link in zip(of, links, strict=True)
            ]
            scored = self._n(part["scored"], where, Facet("count", "scored"))
            planned = self._n(part["planned"], where, Facet("count", "planned"))
            rows.append([Cell(name), planned, scored, *means, *self._preferences(part, where)])
        columns = ["", "planned", "scored", *(f"{measure}: mean, 95% interval" for measure in measures)]
        columns += self._sides()
        tables = [Table(f"Figures by {column}", columns, rows)]
        spread = self._told["distributions_by"][column]
        for name in self._told["distributions"]:
            values = list(self._told["distributions"][name])
            cells = [
                [Cell(part), *(self._n(of[name][v], Facet("column", column, part), Facet("value", name, v))
                               for v in values)]
                for part, of in spread.items()
            ]  # fmt: skip
            tables.append(Table(f"{name} by {column}", ["", *values], cells, "shares"))
        return Section(f"By {column}", [], tables)

    def _sides(self) -> list[str]:
        if "preference" not in self._summary:
            return []
        return [*(f"prefers {side}" for side in self._summary["preference"]), "changed with the order"]

    def _preferences(self, part: Mapping[str, Any], *where: Facet) -> list[Cell]:
        if "preference" not in part:
            return []
        sides = [self._n(n, *where, Facet("preferred", side)) for side, n in part["preference"].items()]
        return [*sides, self._n(part.get("flips"), *where, Facet("count", "flips"))]

    def _systems(self) -> Section | None:
        told, note = self._told["comparison"], self._told["comparison_note"]
        if told is None:
            return Section("Systems compared", [f"Systems are not compared: {note}."]) if note else None
        return Section("Systems compared", [], [differences(told)])

    def _standings(self) -> Section | None:
        told = self._told["ranking"]
        if told is None:
            return None
        rows = []
        for one in told["systems"]:
            rate = "-" if one["win_rate"] is None else f"{one['win_rate']:.3f}"
            interval = f"{one['ci'][0]:.3f} to {one['ci'][1]:.3f}" if one["ci"] else "-"
            counts = [
                self._n(one[name], Facet("system", name, one["system"]))
                for name in ("n", "wins", "ties", "losses", "flips")
            ]
            rows.append([Cell(one["system"]), Cell(rate, value=one["win_rate"]), Cell(interval), *counts])
        columns = ["", "win rate", "95% interval", "n", "wins", "ties", "losses", "changed with the order"]
        return Section("Systems ranked", [told["method"]], [Table("Win rates", columns, rows)])

    def _orders(self) -> Section | None:
        told = self._summary
        if "preference" not in told:
            return None
        tables = [Table("Preferred side, the same in every order", self._sides_of(), [self._sides_row()], "shares")]
        if told.get("agreement"):
            columns = ["", "share", "95% interval", "n"]
            tables.append(
                Table(
                    "Steadiness",
                    columns,
                    [self._mean("same side in both orders", told["agreement"], Facet("count", "side known"))],
                )
            )
        return Section("Preference and order", [], tables)

    def _sides_of(self) -> list[str]:
        return ["", *self._summary["preference"], *(["changed with the order"] if "flips" in self._summary else [])]

    def _sides_row(self) -> list[Cell]:
        cells = self._preferences(self._summary)
        return [Cell("pairs"), *(cells if "flips" in self._summary else cells[:-1])]

    def _rules(self) -> Section:
        said = {rule.id: rule.say for rule in self._rubric.rules}
        rows = []
        for kind, name in (("rule", "violations"), ("warning", "warnings")):
            found = sorted(self._summary[name].items(), key=lambda one: -one[1])
            severity = "violation" if kind == "rule" else "warning"
            rows += [
                [Cell(rule), Cell(severity), self._n(n, Facet(kind, rule)), Cell(said.get(rule, ""))]
                for rule, n in found
            ]
        tables = [Table("Rules broken", ["", "severity", "verdicts", "what it says"], rows)] if rows else []
        rates = self._summary["violation_rate"]
        cells = [
            [Cell(when.replace("_", " ")), Cell(str(rate["violated"]), value=rate["violated"]),
             Cell(str(rate["trials"]), value=rate["trials"]), _share(rate["rate"])]
            for when, rate in rates.items()
        ]  # fmt: skip
        tables.append(Table("Readable replies that break a rule", ["", "break", "of", "share"], cells))
        counts = [Cell("verdicts that contradict themselves"), self._count("inconsistent")]
        tables.append(Table("Consistency", ["", "n"], [counts, [Cell("re-asked"), self._count("re_asked")]]))
        return Section("Rules", [] if rows else ["No rule is broken."], tables)

    def _failures(self) -> Section:
        told = self._summary
        found = sorted(told["failures"].items(), key=lambda one: -one[1])
        rows = [
            [Cell(name), self._n(n, Facet("failure", name)), Cell(told["errors"].get(name, ""))] for name, n in found
        ]
        tables = [Table("Not scored, by class", ["", "n", "example"], rows)] if rows else []
        unread = [
            [Cell(name), Cell(failure), self._n(n, Facet("unread", name, failure))]
            for name, fact in {**told["criteria"], **told["fields"]}.items()
            for failure, n in fact["failures"].items()
        ]
        if unread:
            tables.append(Table("Fields without a value", ["", "class", "verdicts"], unread))
        return Section("Failures", [] if rows else ["Everything planned was scored."], tables)

    def _service(self) -> Section:
        told, service = self._summary, self._told["service"]
        latency, tokens = service["latency_s"], told["tokens"]
        rows = [
            [Cell("calls"), Cell(f"{told['calls']:,}", value=told["calls"])],
            [Cell("set in code, without a call"), self._count("set_in_code")],
            [Cell("replies repaired"), self._count("repaired")],
            *([Cell(f"{name} tokens"), Cell(f"{tokens[name]:,}", value=tokens[name])] for name in tokens),
            [Cell("cost"), _dollars(told["cost_usd"])],
            [Cell("cost per 1,000 items"), _dollars(service["cost_per_1000_items"])],
            [Cell(f"latency, median of {latency['n']:,} trials"), _seconds(latency["median"])],
            [Cell("latency, 95th percentile"), _seconds(latency["p95"])],
        ]
        return Section("Cost, tokens, latency", [], [Table("What the run took", ["", ""], rows)])

    def _agreement(self) -> Section:
        told = self._told["agreement"]
        if told is None:
            return Section("Agreement with people", [f"{self._summary['judge']['status']}: no labels were given"])
        rows = [
            [Cell(name), Cell(statistic), *_estimated(figure["judge"]), *_estimated(figure["people"])[:2]]
            for name, fact in told["fields"].items()
            for statistic, figure in fact["statistics"].items()
        ]
        columns = ["", "statistic", "judge and people", "95% interval", "n", "people among each other", "95% interval"]
        people = f"people: {', '.join(told['people'])}; {told['items']['both']} items with labels"
        counts = [[Cell(name), self._n(n, Facet("label", name))] for name, n in self._told["labels"].items()]
        tables = [Table("Agreement", columns, rows), Table("Items with labels", ["", "items"], counts)]
        return Section("Agreement with people", [people], tables)


def differences(told: Mapping[str, Any]) -> Table:
    """The table of a comparison, of `evenhand.comparing.comparison_facts`."""
    rows = [
        [
            Cell(f"{one['b']} against {one['a']}"),
            Cell(one["measure"]),
            *_estimated(one["difference"])[:2],
            Cell(str(one["questions"]), value=one["questions"]),
            Cell("-" if one["p_adjusted"] is None else f"{one['p_adjusted']:.3g}", value=one["p_adjusted"]),
            Cell(one["verdict"]),
        ]
        for one in told["comparisons"]
    ]
    columns = ["", "measure", "difference", "95% interval", "questions", "p (Holm)", "in words"]
    return Table("Differences on the same questions", columns, rows)


def with_mean(part: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a summary that are means, the composite first."""
    found = {"composite": part["composite"]} if part["composite"] else {}
    return found | {n: f for n, f in {**part["criteria"], **part["fields"]}.items() if "mean" in f}


def _short(fact: Mapping[str, Any]) -> list[str]:
    mean, interval, n = mean_cells(fact)
    return [mean, f"({interval}; n {n})" if interval else f"(n {n})"]


def _estimated(estimate: Mapping[str, Any] | None) -> list[Cell]:
    if estimate is None:
        return [Cell("-"), Cell("-"), Cell("-")]
    value, interval, n = estimate_cells(estimate)
    if estimate["value"] is None:
        return [Cell("-"), Cell(str(estimate["reason"])), Cell(n, value=estimate["n"])]
    return [Cell(value, value=estimate["value"]), Cell(interval), Cell(n, value=estimate["n"])]


def _share(share: float | None) -> Cell:
    return Cell("-") if share is None else Cell(f"{share:.1%}", value=share)


def _dollars(amount: float | None) -> Cell:
    return Cell("unknown") if amount is None else Cell(usd(amount), value=amount)


def _seconds(seconds: float | None) -> Cell:
    return Cell("not known") if seconds is None else Cell(f"{seconds:.2f} s", value=seconds)


def _plain(value: Mapping[str, Any]) -> str:
    return ", ".join(f"{k} {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}" for k, v in value.items())
