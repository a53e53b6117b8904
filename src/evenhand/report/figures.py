"""Tables of figures, whatever they are laid out as, each figure with the way to the verdicts behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evenhand._words import contained, percent, rounded, span, usd
from evenhand.facets import Facet
from evenhand.report.cells import estimate_cells, mean_cells
from evenhand.rubric.model import Rubric
from evenhand.scores import word_of
from evenhand.tasks import composite_bounds

MEANS = ("", "mean", "95% interval", "n")


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: What is shown.
        facets: The verdicts behind it are those that have all of these; none for a cell that leads nowhere.
        value: The figure in full; None for a cell of words.
        either: Of the verdicts behind it each has one of these too.
        same: Of them only those whose id, or question, has verdicts of each of ``either``; "" for all.
        sort: The column of the items by which those behind it are sorted, the greatest first.
        item: The id of the item that it leads to.
    """

    text: str
    facets: tuple[Facet, ...] = ()
    value: int | float | None = None
    either: tuple[Facet, ...] = ()
    same: Literal["", "id", "question"] = ""
    sort: str = ""
    item: str | None = None

    def leading(self, to: Cell) -> Cell:
        """The same, leading where another one does."""
        return replace(self, facets=to.facets, either=to.either, same=to.same, sort=to.sort)


@dataclass(frozen=True, slots=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes:
        caption: What it shows.
        columns: Headings.
        rows: Cells.
        chart: What may be drawn of it: "shares" (all columns but the first as counts of one whole), or "means" (value
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


def count(n: int | None, *facets: Facet) -> Cell:
    """A count that leads to what it counts; of nothing it leads nowhere."""
    if n is None:
        return Cell("-")
    return Cell(f"{n:,}", facets if n else (), n)


def scale_of(rubric: Rubric, name: str) -> tuple[float, float] | None:
    """The ends of the scale of a field with numbers, or of the composite."""
    if name == "composite":
        return composite_bounds(rubric)
    output = rubric.output.field(name)
    scale = output.scale if output is not None else None
    return None if scale is None or not scale.numeric else (float(scale.bottom), float(scale.top))


def mean_row(name: str, fact: Mapping[str, Any] | None, to: Cell) -> list[Cell]:
    """A name with mean, interval and n, all of which lead where ``to`` does."""
    if fact is None:
        return [Cell(name), Cell("-"), Cell(""), Cell("-")]
    mean, interval, _ = mean_cells(fact)
    return [Cell(name), *_led(fact["mean"], mean, interval, fact["ci"], fact["n"], to)]


def estimated(estimate: Mapping[str, Any] | None, to: Cell) -> list[Cell]:
    """Value, interval and n of an `Estimate` as plain data, all of which lead where ``to`` does."""
    if estimate is None:
        return [Cell("-"), Cell("-"), Cell("-")]
    value, interval, _ = estimate_cells(estimate)
    interval = interval if estimate["value"] is not None else str(estimate["reason"])
    return _led(estimate["value"], value, interval, estimate["ci"], estimate["n"], to)


def _led(value: float | None, text: str, interval: str, ends: Any, n: int, to: Cell) -> list[Cell]:
    cells = [Cell(text, value=value), Cell(interval), Cell(f"{n:,}", value=n)]
    leads = [value is not None, bool(ends), n > 0]
    return [cell.leading(to) if lead else cell for cell, lead in zip(cells, leads, strict=True)]


def share(part: float | None, to: Cell) -> Cell:
    """A share as a percentage."""
    return Cell("-") if part is None else Cell(percent(part), value=part).leading(to)


def dollars(amount: float | None, to: Cell) -> Cell:
    """US dollars; where they are not known, the way to what was asked, sorted by nothing."""
    return Cell("unknown", to.facets) if amount is None else Cell(usd(amount), value=amount).leading(to)


def seconds(of: float | None, to: Cell) -> Cell:
    """Seconds."""
    return Cell("not known") if of is None else Cell(f"{rounded(of)} s", value=of).leading(to)


def differences(told: Mapping[str, Any], where: Callable[[str], Facet], run: tuple[Facet, ...] = ()) -> list[Table]:
    """The tables of a comparison, one a measure, of `evenhand.comparing.comparison_facts`.

    Args:
        told: The comparison.
        where: The facet of the verdicts of a system.
        run: What all verdicts have.
    """
    shown = f"shown to be {word_of(told['by'])}"
    tables = []
    for measure in dict.fromkeys(one["measure"] for one in told["comparisons"]):
        for paired in (True, False):
            compared = [o for o in told["comparisons"] if o["measure"] == measure and o["paired"] == paired]
            if compared:
                tables.append(_differences(measure, compared, _Pairing(told["paired_by"], paired, shown), where, run))
    return tables


@dataclass(frozen=True, slots=True)
class _Pairing:
    """What the rows of a table of differences rest on.

    Attributes:
        by: What answers are paired by.
        paired: Whether they are.
        shown: Heading of the last column.
    """

    by: Literal["id", "question"]
    paired: bool
    shown: str

    @property
    def unit(self) -> str:
        """What a pair is one of."""
        return "items" if self.by == "id" else "questions"


def _differences(
    measure: str,
    compared: Sequence[Mapping[str, Any]],
    how: _Pairing,
    where: Callable[[str], Facet],
    run: tuple[Facet, ...],
) -> Table:
    unit = how.unit
    ns = [unit] if how.paired else [f"{unit} of the first", f"{unit} of the second"]
    columns = ["", "difference", "95% interval", "p (Holm)", *ns, f"{unit} more to settle it", how.shown]
    ends = [abs(end) for one in compared for end in one["difference"]["ci"] or ()]
    rows = [_difference(one, where, run, how) for one in compared]
    told = f"on the same {unit}" if how.paired else f"not paired: too few {unit} with scores of both"
    reach = max(ends, default=0.0)
    scale = (-reach, reach) if reach else None
    return Table(f"{contained(measure)}: differences, {told}", columns, rows, "means" if reach else None, scale)


def _difference(
    one: Mapping[str, Any], where: Callable[[str], Facet], run: tuple[Facet, ...], how: _Pairing
) -> list[Cell]:
    valued = (*run, Facet("valued", one["measure"]))
    to = Cell("", valued, either=(where(one["a"]), where(one["b"])), same=how.by if how.paired else "")
    difference, p = one["difference"], one["p_adjusted"]
    interval = span(difference["ci"], 3) if difference["ci"] else str(difference["reason"])
    value = difference["value"]
    if how.paired:
        ns = [Cell(f"{one['pairs']:,}", value=one["pairs"]).leading(to if one["pairs"] else Cell(""))]
    else:
        sides = [(one["sides"][k], Cell("", valued, either=(where(one[k]),), same=how.by)) for k in ("b", "a")]
        ns = [Cell(f"{n:,}", value=n).leading(side if n else Cell("")) for n, side in sides]
    figures = [
        Cell("-") if value is None else Cell(rounded(value, 3, sign=True), value=value).leading(to),
        Cell(interval).leading(to) if difference["ci"] else Cell(interval),
        Cell("-") if p is None else Cell(chance(p), value=p).leading(to),
        *ns,
        Cell("-") if one["more"] is None else Cell(f"{one['more']:,}"),  # of those there are none yet
    ]
    return [Cell(f"{contained(one['b'])} less {contained(one['a'])}"), *figures, Cell(one["better"] or "neither")]


def chance(p: float) -> str:
    """A p value with three digits, or that it is less than can be told."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"
