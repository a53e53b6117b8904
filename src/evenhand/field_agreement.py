"""The figures of agreement of one field: which statistics fit it, and what each says of a judge and of people.

Measured (how a field's values are compared) + Said (who rated what) + Wanted -> figures as plain data
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import StatisticError
from evenhand.keywords import number, texts
from evenhand.rubric.model import OutputField
from evenhand.scale import Span, Value
from evenhand.stats import annotators, catalog
from evenhand.stats.agreement import confusion
from evenhand.stats.estimates import Estimate
from evenhand.stats.named import EVERY, TABLE, Reading, labels_needed, reading, require_statistic
from evenhand.stats.table import Level, Ratings

JUDGE = "judge"
#: Values beyond which a confusion table is too large to read.
MOST_VALUES = 12
#: Of two values these say what others do: kappa, AC1, and Spearman's rho; and all are within 1.
_SAME_OF_TWO = ("within:1", "kappa-linear", "kappa-quadratic", "ac2-linear", "ac2-quadratic", "pearson", "kendall")
_NO_PEOPLE = "most people"


@dataclass(frozen=True, slots=True)
class Measured:
    """How the values of a field are compared.

    Attributes:
        level: Level of measurement.
        categories: All legal values; () where there are infinitely many.
        numeric: Whether values are numbers.
        bands: Band -> spans of values that count as equal.
    """

    level: Level
    categories: tuple[Value, ...] = ()
    numeric: bool = False
    bands: Mapping[str, Sequence[Span]] | None = None

    @classmethod
    def of(cls, output: OutputField) -> Measured:
        """As the field's scale says."""
        scale = output.scale
        if scale is None:
            return cls("nominal", (False, True))
        level: Level = "nominal" if scale.level == "binary" else scale.level
        return cls(level, tuple(scale.points or ()), scale.numeric, scale.bands)

    def ratings(self, rows: Sequence[Sequence[Any]], raters: Sequence[str], clusters: Iterable[str]) -> Ratings:
        """Rows of values, a column a rater, as ratings at the field's level."""
        level: Level = self.level if self.categories else "interval"
        return Ratings.of(rows, level, categories=self.categories, raters=raters, clusters=clusters)

    def names(self, *, judge: bool) -> Iterator[str]:
        """The statistics that are shown where none are asked for."""
        if self.categories:
            yield from ("exact", "kappa")
        yield from self.bands or ()
        if self.level != "nominal":
            if self.categories and not self.two:
                yield "kappa-quadratic"
            yield from ("spearman",) if self.two else ("spearman", "kendall")
        if self.numeric:
            yield from ("mae",) if self.two else ("pearson", "mae")
            if judge:
                yield "bias"

    @property
    def two(self) -> bool:
        """Whether there are two values, for which many statistics are the same."""
        return len(self.categories) == 2

    @property
    def main(self) -> str:
        """The one statistic by which raters of this field are compared."""
        return "kappa" if self.level == "nominal" else "kappa-quadratic"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which figures are asked for.

    Attributes:
        statistics: Names; ("all",) for all that fit, () for the usual ones.
        width: Whole width of an interval for which the labels needed are told; None for no such figure.
        also: Names that are told beside the usual ones, or all.
    """

    statistics: tuple[str, ...] = ()
    width: float | None = None
    also: tuple[str, ...] = ()

    @classmethod
    def of(cls, statistic: str | Sequence[str] | None, width: float | None, bands: Iterable[str]) -> Wanted:
        """Names as given: one text with commas, or several.

        Raises:
            UnknownNameError: no such statistic; lists close names.
            InputError: what is no text, or a width that is not positive.
        """
        given = texts("statistic", statistic)
        names = tuple(dict.fromkeys(name.strip() for text in given for name in text.split(",")))
        for name in names:
            require_statistic(name, [EVERY, *bands])
        return cls((EVERY,) if EVERY in names else names, None if width is None else number("width", width))


@dataclass(frozen=True, slots=True)
class Said:
    """What raters said of a field.

    Attributes:
        rows: A row a unit, a column a rater; None where there is no value.
        judge: Whether the first column is a judge's.
        people: Names of the people, the other columns.
        clusters: What each unit shares its subject with.
        unit: What a cluster is.
    """

    rows: Sequence[Sequence[Any]]
    judge: bool
    people: Sequence[str]
    clusters: Sequence[str]
    unit: str = "item"

    @property
    def judges(self) -> list[str]:
        """The judge's column, if there is one."""
        return [JUDGE] if self.judge else []

    @property
    def persons(self) -> list[str]:
        """The people's columns: their names, but for one that could be taken for the judge."""
        other = f"{JUDGE} (person)"
        while other in self.people:
            other += "'"
        return [other if name == JUDGE else name for name in self.people]


def field_facts(how: Measured, said: Said, wanted: Wanted) -> dict[str, Any]:
    """The figures of a field as plain data; see `evenhand.agreeing.agreement_facts`."""
    ratings = how.ratings(said.rows, [*said.judges, *said.persons], said.clusters)
    told: dict[str, Any] = {"level": how.level, "people": list(said.people)}
    told["statistics"] = dict(_statistics(ratings, how, said, wanted))
    beyond = any(name in catalog.STATISTICS and catalog.STATISTICS[name].chance for name in told["statistics"])
    told["warnings"] = list(catalog.prevalence(ratings)) if beyond else []
    told["confusion"] = _confusion(how, said)
    if said.judge and len(said.people) > 1:
        test = annotators.alternative_annotator_test(ratings, judge=JUDGE, people=said.persons)
        told["alternative_test"] = {
            "passed": test.passed,
            "winning_rate": test.winning_rate,
            "advantage": test.advantage,
            "epsilon": test.epsilon,
            "reason": test.reason,
            "warnings": list(test.warnings),
        }
    return told


def _statistics(
    ratings: Ratings, how: Measured, said: Said, wanted: Wanted
) -> Iterator[tuple[str, dict[str, dict[str, Any] | None]]]:
    every = wanted.statistics == (EVERY,)
    bands = how.bands or {}
    table = [name for name in (*TABLE, *bands) if not (how.two and name in _SAME_OF_TWO)]
    names = table if every else wanted.statistics or tuple(how.names(judge=said.judge))
    for name in dict.fromkeys((*names, *wanted.also)):
        try:
            if name in bands:
                yield name, _figure(_banded(said, bands[name]), "exact", said, wanted)
            else:
                yield name, _figure(ratings, name, said, wanted)
        except StatisticError as error:
            if not every or name in wanted.also:
                yield name, _none(said, " - ".join(filter(None, (error.message, error.hint))))


def _banded(said: Said, spans: Sequence[Span]) -> Ratings:
    def band(value: Any) -> int | None:
        return next((n for n, (low, high) in enumerate(spans) if value is not None and low <= value <= high), None)

    rows = [[band(value) for value in row] for row in said.rows]
    raters = [*said.judges, *said.persons]
    return Ratings.of(rows, "ordinal", categories=range(len(spans)), raters=raters, clusters=said.clusters)


def _figure(ratings: Ratings, name: str, said: Said, wanted: Wanted) -> dict[str, dict[str, Any] | None]:
    """A statistic of the judge with people and of people with each other, means over pairs; and of all people."""
    if name == "bias" and not said.judge:
        raise StatisticError("a bias is a judge's against people", hint="use mae")
    what = reading(ratings, name)
    found = annotators.human_ceiling(ratings, people=said.persons, judges=said.judges, statistic=name)
    several = len(said.people) > 1 and name != "bias"
    sides: dict[str, Estimate | None] = {
        "judge": found.judges[JUDGE] if said.judge else None,
        "people": found.people if several else None,
        "gap": found.gaps[JUDGE] if said.judge and several and JUDGE in found.gaps else None,
        "together": None,
    }
    if what.statistic and not catalog.STATISTICS[what.statistic].pair and len(said.people) > 2:
        sides["together"] = catalog.agreement(what.ratings.select(said.persons), what.statistic)
    single = {"judge": len(said.people) == 1, "people": len(said.people) == 2}
    return {
        side: None if one is None else _told(what, one.of_unit(said.unit), wanted.width, single=single.get(side, False))
        for side, one in sides.items()
    }


def _told(what: Reading, found: Estimate, width: float | None, *, single: bool) -> dict[str, Any]:
    """A figure as plain data; with the labels that it would take to know it to a width."""
    told = found.as_dict()
    if width is None:
        return told
    try:
        return {**told, "labels_needed": labels_needed(what, found, width, single=single), "labels_reason": ""}
    except StatisticError as error:
        return {**told, "labels_needed": None, "labels_reason": error.message}


def _none(said: Said, reason: str) -> dict[str, dict[str, Any] | None]:
    """A figure that the field can't have, and why."""
    none = Estimate(None, reason=reason, unit=said.unit).as_dict()
    people = None if said.judge else none
    return {"judge": none if said.judge else None, "people": people, "gap": None, "together": None}


def _confusion(how: Measured, said: Said) -> dict[str, Any] | None:
    """The judge, in rows, against the label that most people gave; without a judge, of two people. None otherwise."""
    if not 2 <= len(how.categories) <= MOST_VALUES or not (said.judge or len(said.people) == 2):
        return None
    second = _NO_PEOPLE if len(said.people) > 1 else said.people[0]
    rows, names = said.rows, list(said.people)
    missing: dict[str, int] | None = None
    if said.judge:
        missing = dict(Counter(reason for row in said.rows if (reason := _left_out(row[0], row[1:]))))
        rows = [[row[0], most_common(row[1:])] for row in said.rows]
        names = [JUDGE, second if second != JUDGE else said.persons[0]]
    ratings = Ratings.of(rows, "nominal", categories=how.categories, raters=names)
    table = confusion(ratings)
    return {
        "rows": names[0],
        "columns": names[1],
        "categories": list(table.categories),
        "counts": [list(row) for row in table.counts],
        "n": table.n,
        "missing": table.missing if missing is None else missing,
    }


def _left_out(judge: Any, people: Sequence[Any]) -> str:
    """Why a unit is in no cell of the judge's confusion table; "" where it is in one."""
    lacking = [
        who for who, none in (("judge", judge is None), ("people", not any(v is not None for v in people))) if none
    ]
    if lacking:
        return f"no one value by {' or '.join(lacking)}"  # none could be read, or it changes with the order
    return "" if most_common(people) is not None else "people divided evenly"


def most_common(values: Sequence[Any]) -> Any:
    """The value given more often than any other; None where there is none, or two are given equally often."""
    counts = Counter(value for value in values if value is not None).most_common(2)
    if not counts or (len(counts) == 2 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]
