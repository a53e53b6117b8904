"""A run's figures in sections and tables, whatever they are laid out as: HTML, Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import contained, failure, percent
from evenhand.facets import JUDGED, USAGE, Facet, confusion
from evenhand.report.cells import (
    ONE_ORDER,
    comparison_methods,
    estimate_methods,
    estimate_warnings,
    left_out_words,
    mean_methods,
    share_methods,
    tokens_known,
    unfinished,
    with_mean,
)
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
    seconds,
    share,
)
from evenhand.rubric.model import Rubric


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
            self._headline(), self._orders(), self._judge(), self._spread(), *map(self._slices, self._told["by"]),
            self._tasks(), self._systems(), self._standings(), self._rules(), self._failures(), self._service(),
            self._agreement(),
        )  # fmt: skip
        return (section for section in made if section is not None)

    def _n(self, n: int | None, *facets: Facet) -> Cell:
        """A count that leads to what it counts."""
        return count(n, *self._run, *facets)

    def _to(self, *facets: Facet, sort: str = "") -> Cell:
        """Where figures lead that are no counts."""
        return Cell("", (*self._run, *facets), sort=sort)

    def _count(self, name: str, n: int | None = None) -> Cell:
        return self._n(self._summary.get(name) if n is None else n, Facet("count", name))

    def _headline(self) -> Section:
        told = self._summary
        counts = [
            [Cell("input rows"), self._n(told["rows"], Facet("run", self._told["run"]))],
            [Cell("planned (rows x repeats)"), self._count("planned")],
            [Cell("scored"), self._count("scored")],
            [Cell("not scored"), self._count("not scored", told["planned"] - told["scored"])],
            [Cell("scored rows"), self._count("rows_scored")],
            [Cell("coverage (scored rows / rows)"), self.coverage()],
        ]
        if told["null_answers"]:
            counts.append([Cell("answers that are null: no text at all"), self._count("null_answers")])
        notes = [self._validation(), *mean_methods(with_mean(told).values())]
        if unfinished(told):
            notes.append(f"Unfinished: {told['trials_asked']:,} of {told['trials']:,} trials asked.")
        if told["planned"] and not told["scored"]:
            notes.append("Nothing was scored: this run says nothing about its items.")
        return Section("Headline", notes, [*self._means(), Table("Coverage", ["", "n"], counts)])

    def coverage(self) -> Cell:
        """The share of rows that are scored."""
        return share(self._summary["coverage"], self._to(Facet("count", "rows_scored")))

    def lead(self) -> list[Cell | str]:
        """What was judged by what, and how much of it, as one line of words and figures."""
        told, rubric = self._summary, self._summary["rubric"]
        validated = told["judge"]["status"] if self._told["agreement"] is None else "labels of people beside it"
        rows = self._n(told["rows"], Facet("run", self._told["run"]))
        of = ["no rows"] if told["coverage"] is None else ["coverage ", self.coverage(), " of ", rows, " rows"]
        spec = contained(told["judge"]["spec"])
        by = f"{contained(rubric['name'])} version {rubric['version']} judged by {spec}: "
        asked = [self._count("trials_asked"), " of ", self._count("trials"), " trials asked; "]
        left = ["unfinished: ", *asked] if unfinished(told) else []
        return [by, *left, self._count("scored"), " of ", self._count("planned"), " scored; ", *of, f"; {validated}"]

    def _means(self) -> list[Table]:
        """Figures of all fields with numbers, the composite first; shares are under distributions."""
        rows = []
        for name, fact in with_mean(self._summary).items():
            missing = sum(fact.get("failures", {}).values())
            cells = mean_row(name, fact, self._to(Facet("valued", name)))
            rows.append([*cells, self._n(missing, Facet("unread", name)) if name != "composite" else Cell("-")])
        if not rows:
            return []
        bounds = [c.scale for c in self._rubric.criteria if c.scale.numeric]
        ends = {(float(scale.bottom), float(scale.top)) for scale in bounds}
        scale = next(iter(ends)) if len(ends) == 1 else None
        caption = f"Means ({self._summary['value']} values)"
        return [Table(caption, [*MEANS, "missing"], rows, "means" if scale else None, scale)]

    def _validation(self) -> str:
        if self._told["agreement"] is None:
            return f"The judge is {self._summary['judge']['status']}: no labels of people were given."
        return "The judge is set against labels of people; see agreement."

    def _judge(self) -> Section:
        plan, judge, rubric = self._told["plan"], self._summary["judge"], self._summary["rubric"]
        rows = {
            "judge": judge["spec"],
            "models named in replies": ", ".join(map(contained, judge["models"])) or "-",
            "settings": _plain(judge["settings"]),
            "identity": _plain(judge["identity"]),
            "rubric": f"{contained(rubric['name'])} version {rubric['version']}",
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
        measures = dict.fromkeys(name for part in told.values() for name in with_mean(part))
        rows = []
        for name, part in told.items():
            where = Facet("column", column, name)
            scored = self._n(part["scored"], where, Facet("count", "scored"))
            planned = self._n(part["planned"], where, Facet("count", "planned"))
            rows.append([Cell(name), planned, scored, *self._preferences(part, where)])
        tables = [Table(f"Coverage by {contained(column)}", ["", "planned", "scored", *self._sides()], rows)]
        spread = self._told["distributions_by"][column]
        for name in dict.fromkeys((*measures, *self._told["distributions"])):
            if name in measures:
                tables.append(self._mean_by(column, name))
            if name in self._told["distributions"]:
                values = list(self._told["distributions"][name])
                cells = []
                for part, of in spread.items():
                    where = Facet("column", column, part)
                    counts = [self._n(of[name][v], where, Facet("value", name, v)) for v in values]
                    n = self._n(sum(of[name].values()), where, Facet("valued", name))
                    cells.append([Cell(part), *counts, n])
                caption = f"{contained(name)} by {contained(column)}, verdicts by value"
                tables.append(Table(caption, ["", *values, "n"], cells, "shares"))
        notes = mean_methods(fact for part in told.values() for fact in with_mean(part).values())
        return Section(f"By {contained(column)}", notes, tables)

    def _mean_by(self, column: str, name: str) -> Table:
        rows = []
        for part, summary in self._told["by"][column].items():
            to = self._to(Facet("column", column, part), Facet("valued", name))
            rows.append(mean_row(part, with_mean(summary).get(name), to))
        scale = scale_of(self._rubric, name)
        return Table(f"{contained(name)} by {contained(column)}", MEANS, rows, "means" if scale else None, scale)

    def _tasks(self) -> Section | None:
        """Means over categories and over all, where the rubric sums its scores up by task."""
        told = self._summary["aggregate"]
        if told is None or told["by"] not in self._told["by"]:
            return None
        whole = self._rubric.aggregate.composite
        measure = "composite" if whole else next(c.name for c in self._rubric.criteria if c.scale.numeric)
        rows: list[list[Cell]] = []
        shown: list[Mapping[str, Any]] = []
        for category, means in (*told["categories"].items(), (None, told["overall"])):
            members = [n for n, task in told["tasks"].items() if category in (None, task["category"])]
            either = tuple(Facet("column", told["by"], name) for name in members) if category is not None else ()
            to = Cell("", (*self._run, Facet("valued", measure)), either=either)
            for kind in ("item", "task"):
                if fact := means.get(f"{kind}_mean"):
                    shown.append(fact)
                    rows.append(mean_row(f"{contained(category or 'all')}, mean of {kind}s", fact, to))
        caption = f"{contained(measure)} by category of {contained(told['by'])}"
        scale = scale_of(self._rubric, measure)
        return Section(
            "By category", mean_methods(shown), [Table(caption, MEANS, rows, "means" if scale else None, scale)]
        )

    def _sides(self) -> list[str]:
        if "preference" not in self._summary:
            return []
        return [*(f"prefers {contained(side)}" for side in self._summary["preference"]), "changed with the order"]

    def _preferences(self, part: Mapping[str, Any], *where: Facet) -> list[Cell]:
        if "preference" not in part:
            return []
        sides = [self._n(n, *where, Facet("preferred", side)) for side, n in part["preference"].items()]
        return [*sides, self._n(part.get("flips"), *where, Facet("count", "flips"))]

    def _systems(self) -> Section | None:
        told, note = self._told["comparison"], self._told["comparison_note"]
        if told is None:
            return Section("Systems compared", [f"Systems are not compared: {note}."]) if note else None
        column = self._told["comparison"]["by"]
        notes = [*comparison_methods(told["comparisons"]), *told["warnings"]]
        tables = differences(told, lambda name: Facet("column", column, name), self._run)
        return Section("Systems compared", notes, tables)

    def _standings(self) -> Section | None:
        told = self._told["ranking"]
        if told is None:
            return None
        rows = []
        for one in told["systems"]:
            to = self._to(Facet("system", "n", one["system"]))
            rate = share(one["win_rate"], to)
            interval = Cell(" to ".join(map(percent, one["ci"]))).leading(to) if one["ci"] else Cell("-")
            counts = [
                self._n(one[name], Facet("system", name, one["system"]))
                for name in ("n", "wins", "ties", "losses", "flips")
            ]
            rows.append([Cell(one["system"]), rate, interval, *counts])
        columns = ["", "win rate", "95% interval", "n", "wins", "ties", "losses", "changed with the order"]
        rough = dict.fromkeys(one["note"] for one in told["systems"] if one["ci"] and one["note"])
        return Section("Systems ranked", [told["method"], *rough], [Table("Win rates", columns, rows)])

    def _orders(self) -> Section | None:
        told = self._summary
        if "preference" not in told:
            return None
        one_order = "flips" not in told
        caption = f"Preferred side, {'asked in one order only' if one_order else 'the same in both orders'}"
        tables = [Table(caption, self._sides_of(), [self._sides_row()], "shares")]
        notes = [f"{ONE_ORDER[0].upper()}{ONE_ORDER[1:]}."] if one_order else []
        if steady := told.get("agreement"):
            notes.append("Steadiness counts the pairs that the judge judged in both orders, none that is set in code.")
            notes += share_methods(steady)
            row = mean_row("same side in both orders", steady, self._to(Facet("count", JUDGED)))
            tables.append(Table("Steadiness", ["", "share", "95% interval", "n"], [row]))
        return Section("Preference and order", notes, tables)

    def _sides_of(self) -> list[str]:
        return ["", *self._summary["preference"], *(["changed with the order"] if "flips" in self._summary else [])]

    def _sides_row(self) -> list[Cell]:
        cells = self._preferences(self._summary)
        return [Cell("pairs"), *(cells if "flips" in self._summary else cells[:-1])]

    def _rules(self) -> Section:
        said, rows = self._told["messages"], []
        for kind, name in (("rule", "violations"), ("warning", "warnings")):
            found = sorted(self._summary[name].items(), key=lambda one: -one[1])
            severity = "violation" if kind == "rule" else "warning"
            rows += [
                [Cell(rule), Cell(severity), self._n(n, Facet(kind, rule)), Cell(said.get(rule, ""))]
                for rule, n in found
            ]
        tables = [Table("Rules broken", ["", "severity", "verdicts", "for instance"], rows)] if rows else []
        cells, methods = [], list[str]()
        for when, replies in (("before", "first replies"), ("after", "replies")):
            rate = self._summary["violation_rate"][f"{when}_re_ask"]
            broken, read = Facet("count", f"{replies} that break a rule"), Facet("count", f"readable {replies}")
            counts = [self._n(rate["violated"], broken), self._n(rate["trials"], read)]
            ends = " to ".join(map(percent, rate["ci"])) if rate["ci"] else rate.get("note", "")
            interval = Cell(ends).leading(self._to(read)) if rate["ci"] else Cell(ends)
            cells.append([Cell(f"{when} the re-ask"), *counts, share(rate["rate"], self._to(read)), interval])
            methods += share_methods(rate)
        columns = ["", "break", "n", "share", "95% interval"]
        tables.append(Table("Readable replies that break a rule", columns, cells))
        broken_by = [Cell("verdicts that contradict themselves"), self._count("inconsistent")]
        tables.append(Table("Consistency", ["", "n"], [broken_by, [Cell("re-asked"), self._count("re_asked")]]))
        return Section("Rules", [*([] if rows else ["No rule is broken."]), *dict.fromkeys(methods)], tables)

    def _failures(self) -> Section:
        told = self._summary
        found = sorted(told["failures"].items(), key=lambda one: -one[1])
        rows = [
            [Cell(failure(name)), self._n(n, Facet("failure", name)), Cell(told["errors"].get(name, "-"))]
            for name, n in found
        ]
        columns = ["", "n", "example"] if told["errors"] else ["", "n"]
        tables = [Table("Not scored, by class", columns, [row[: len(columns)] for row in rows])] if rows else []
        unread = [
            [Cell(name), Cell(failure(class_)), self._n(n, Facet("unread", name, class_))]
            for name, fact in {**told["criteria"], **told["fields"]}.items()
            for class_, n in fact["failures"].items()
        ]
        if unread:
            tables.append(Table("Fields without a value", ["", "class", "verdicts"], unread))
        return Section("Failures", [] if rows else ["Everything planned was scored."], tables)

    def _service(self) -> Section:
        told, service = self._summary, self._told["service"]
        latency, tokens = service["latency_s"], told["tokens"]
        called, timed = Facet("count", "calls"), Facet("count", "known latency")
        cost, slowest = self._to(called, sort=USAGE[3]), self._to(timed, sort=USAGE[4])
        each = self._to(Facet("count", "asked"), sort=USAGE[3])
        rows = [
            [Cell("calls"), self._count("calls")],
            [Cell("set in code, without a call"), self._count("set_in_code")],
            [Cell("replies repaired"), self._count("repaired")],
            *([Cell(f"{name} tokens"), self._tokens(name, tokens[name])] for name in tokens),
            [Cell("cost"), dollars(told["cost_usd"], cost if told["calls"] else Cell(""))],
            [Cell("cost per 1,000 items"), dollars(service["cost_per_1000_items"], each)],
            [Cell("trials of known latency"), self._n(latency["n"], timed)],
            [Cell("latency, median"), seconds(latency["median"], slowest)],
            [Cell("latency, 95th percentile"), seconds(latency["p95"], slowest)],
        ]
        return Section("Cost, tokens, latency", [], [Table("What the run took", ["", ""], rows)])

    def _tokens(self, name: str, n: int) -> Cell:
        if not n:
            return Cell("0", value=0) if tokens_known(self._summary) else Cell("not known")
        return Cell(f"{n:,}", value=n).leading(self._to(Facet("count", "calls"), sort=f"{name} tokens"))

    def _agreement(self) -> Section:
        told = self._told["agreement"]
        if told is None:
            return Section("Agreement with people", [f"{self._summary['judge']['status']}: no labels were given"])
        rows, figures, notes = [], list[Mapping[str, Any]](), [f"people: {', '.join(map(contained, told['people']))}"]
        for name, fact in told["fields"].items():
            if fact["confusion"] is not None:
                notes += left_out_words(name, fact["confusion"])
            judge, people = (self._to(_labels(name, what)) for what in ("judge and people", "two people or more"))
            for statistic, figure in fact["statistics"].items():
                cells = [*estimated(figure["judge"], judge), *estimated(figure["people"], people)]
                rows.append([Cell(name), Cell(statistic), *cells])
                figures += [one for one in (figure["judge"], figure["people"]) if one is not None]
        columns = ["", "statistic", "judge and people", "95% interval", "n", "people among each other", "95% interval"]
        tables = [Table("Agreement", [*columns, "n"], rows), self._labelled(list(told["fields"]))]
        tables += [table for name, fact in told["fields"].items() if (table := self._confusion(name, fact)) is not None]
        notes += [*estimate_methods(figures), *estimate_warnings(figures)]
        return Section("Agreement with people", notes, tables)

    def _labelled(self, fields: Sequence[str]) -> Table:
        counts = self._told["labels"]
        what = ("judge and people", "judge and people differ", "two people or more")
        rows = [[Cell("items with labels"), self._n(counts.get("labelled"), Facet("label", "labelled"))]]
        for name in fields:
            for kind in what:
                facet = _labels(name, kind)
                rows.append([Cell(facet.name), self._n(counts.get(facet.name, 0), facet)])
        return Table("Labels and verdicts", ["", "n"], rows)

    def _confusion(self, name: str, fact: Mapping[str, Any]) -> Table | None:
        """The judge's values against what most people said."""
        told = fact["confusion"]
        if told is None or not told["n"] or self._rubric.output.field(name) is None:
            return None
        values = [str(value) for value in told["categories"]]
        rows = []
        for mine, of in zip(values, told["counts"], strict=True):
            cells = [self._n(n, confusion(name, mine, theirs)) for theirs, n in zip(values, of, strict=True)]
            rows.append([Cell(mine), *cells])
        return Table(f"{contained(name)}: judge (rows) and {told['columns']} (columns)", ["", *values], rows)


def _labels(name: str, what: str) -> Facet:
    return Facet("label", f"{name}: {what}")


def _plain(value: Mapping[str, Any]) -> str:
    told = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in value.items()}
    return ", ".join(f"{contained(k)} {contained(v)}" for k, v in told.items() if v)
