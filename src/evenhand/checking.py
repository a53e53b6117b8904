"""A rubric's rules on ratings that people or other tools made: no model, one pass, constant memory.

Check -> open_source -> RatingReader.read -> Rules.check -> Finding
"""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from evenhand.errors import InputError, ItemError, Problem
from evenhand.export import find_writer, refuse_overwriting, write_rows
from evenhand.fitting import column_hint
from evenhand.keywords import OF_CHECK, checked
from evenhand.labels import Preference, label_set
from evenhand.manifest import open_rubric
from evenhand.ratings import RatingReader, preferences
from evenhand.rows import RawRow, spooled
from evenhand.rubric.model import Rubric, Severity
from evenhand.rules import compile_rubric
from evenhand.sources import open_source
from evenhand.table import free_columns
from evenhand.verdict import Violation

#: A derived value of this name after a field's is a suggestion for the field.
SUGGESTED = "_suggested"
_COLUMNS = ("violations", "warnings", "messages")
_PEEKED = 1000
_MOST_PROBLEMS = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with one row.

    Attributes:
        row: 1-based position in the input.
        id: The row's own id, None when it has none.
        rule: Id of the broken rule; or "illegal-value:FIELD", "missing-value:FIELD".
        severity: violation or warning.
        message: What clashes, and what would resolve it.
        line: 1-based line in the file, None where the source has no lines.
    """

    row: int
    id: str | None
    rule: str
    severity: Severity
    message: str
    line: int | None = None


class CheckedRow(NamedTuple):
    """One row and what the rules say about it.

    Attributes:
        raw: Column -> value, as it stands in the source.
        values: Field -> value, as read.
        findings: What is wrong with it.
        derived: Values of the rubric's ``let`` entries.
    """

    raw: Mapping[str, Any]
    values: Mapping[str, Any]
    findings: tuple[Finding, ...]
    derived: Mapping[str, Any]


class Check:
    """A check of ratings, lazy and in one pass: iterate over its findings, or write them beside the rows.

    Args:
        source: What rows come from, as for `evenhand.sources.open_source`.
        rubric: The rubric whose rules are applied.
        mapping: Field name or "id" -> column.
        format: One of `evenhand.rows.FORMATS`, None to tell from the file name.
        labels: Name of the label set in which the labels are written (`evenhand.labels`), None for the rubric's own.
        partial: No column is required; rules that need an absent one are not checked.
        skip_bad: Leave rows out that can't be read at all, and count them.

    Attributes:
        name: Name of the file, None where there is none.
        bad: Number of rows that can't be read, so far.

    Raises:
        InputError: no such source, format, field or label set.
    """

    def __init__(
        self,
        source: Any,
        rubric: Rubric,
        *,
        mapping: Mapping[str, str] | None = None,
        format: str | None = None,
        labels: str | None = None,
        partial: bool = False,
        skip_bad: bool = False,
    ) -> None:
        self._rubric = rubric
        self._rules = compile_rubric(rubric)
        self._reader = RatingReader(rubric, self._rules.names, mapping=mapping, labels=labels, partial=partial)
        opened = open_source(str(source) if isinstance(source, Path) else source, format=format)
        self.name = opened.name
        self._sources = (str(source),) if isinstance(source, str | Path) else ()
        self.bad = 0
        self._skip_bad = skip_bad
        self._problems: list[Problem] = []
        self._checked = 0
        self._found: Counter[tuple[str, Severity]] = Counter()
        self._not_checked: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._with_violations = 0
        self._rows = self._check(opened.rows)

    def __iter__(self) -> Iterator[Finding]:
        """The findings not yet given, in order of rows.

        Raises:
            ItemError: a required column is absent, or there are no rows; after all rows, if some can't be read.
        """
        for row in self._rows:
            yield from row.findings

    def rows(self) -> Iterator[CheckedRow]:
        """The rows not yet given, with their findings; raises as `__iter__`."""
        return self._rows

    def summary(self) -> dict[str, Any]:
        """What was found; reads what is left of the source first.

        Returns:
            ``rows`` checked, ``bad_rows``, ``violations``, ``warnings``, ``rows_with_violations``, and ``rules``: for
            each rule its ``severity``, and the numbers of rows ``broken``, ``checked`` and ``not_checked`` (with
            ``reason``, the first one met).
        """
        for _ in self._rows:
            pass
        severities: dict[str, Severity] = {rule.id: rule.severity for rule in self._rubric.rules}
        severities |= {rule: severity for rule, severity in self._found if rule not in severities}
        rules = {
            rule: {
                "severity": severity,
                "broken": self._found[rule, severity],
                "checked": self._checked - self._not_checked[rule],
                "not_checked": self._not_checked[rule],
                "reason": self._reasons.get(rule),
            }
            for rule, severity in severities.items()
        }
        return {
            "rows": self._checked,
            "bad_rows": self.bad,
            "violations": sum(n for (_, severity), n in self._found.items() if severity == "violation"),
            "warnings": sum(n for (_, severity), n in self._found.items() if severity == "warning"),
            "rows_with_violations": self._with_violations,
            "rules": rules,
        }

    def write(
        self, target: str | Path, *, labels: str | None = None, on_finding: Callable[[Finding], object] | None = None
    ) -> int:
        """Write every row with its findings and what the rubric suggests.

        The columns of the input stay as they are (one that has the name of one of ours becomes ``input_NAME``). Then
        come ``violations`` and ``warnings`` (rule ids), ``messages``, a column for each derived value of the rubric
        that is named after a field and ends in "_suggested", and with ``labels`` each preference in that set.

        Args:
            target: File ending in .jsonl, .csv, .tsv or .parquet.
            labels: Name of the label set for additional columns FIELD_SET; empty where it has no such value.
            on_finding: Called with each finding as it is found.

        Returns:
            The number of rows written.

        Raises:
            InputError: a file name that names no format or the input itself, or any error of `__iter__`; then nothing
                is written.
        """
        find_writer(Path(target))
        refuse_overwriting(Path(target), self._sources)
        converted = preferences(self._rubric) if labels is not None else ()
        if labels is not None and not converted:
            raise InputError(f"rubric {self._rubric.name} has no labels that {labels} could stand for")
        write = label_set(labels).write if labels is not None else None
        fields = {field.name for field in self._rubric.output.fields}
        suggested = [name for name in self._rubric.let if name.removesuffix(SUGGESTED) in fields - {name}]
        ours = [*_COLUMNS, *suggested, *(f"{name}_{labels}" for name, _ in converted)]

        def rows() -> Iterator[dict[str, Any]]:
            for row in self._rows:
                for finding in row.findings if on_finding is not None else ():
                    on_finding(finding)  # type: ignore[misc]
                told = free_columns(row.raw, ours)
                told |= _columns(row.findings)
                for name in suggested:
                    told[name] = row.derived.get(name)
                for label, side in converted:
                    told[f"{label}_{labels}"] = _written(write, row.values.get(label), row.values.get(side))
                yield told

        if Path(target).suffix.lower() == ".jsonl":
            return write_rows(rows, str(target))
        with spooled(pickle.dumps(row) for row in rows()) as spool:

            def again() -> Iterator[dict[str, Any]]:
                spool.seek(0)
                with contextlib.suppress(EOFError):
                    while True:
                        yield pickle.load(spool)

            return write_rows(again, str(target))

    def _check(self, raws: Iterator[RawRow]) -> Iterator[CheckedRow]:
        head = list(itertools.islice(raws, _PEEKED))
        if not head:
            raise ItemError([Problem(None, "", "no rows")], file=self.name)
        columns = dict.fromkeys(column for raw in head for column in raw.values)
        missing = self._reader.missing(columns) if any(raw.problem is None for raw in head) else []
        if missing:
            hint = "--partial checks what is there" if self._reader.required else None
            if len(columns) == 1:
                hint = column_hint(columns, self._rubric.item) or hint
            raise ItemError(missing, file=self.name, hint=hint)
        for number, raw in enumerate(itertools.chain(head, raws), 1):
            if raw.problem is None:
                yield self._check_row(raw, number)
            else:
                self._note_bad(raw.problem, number)
        if self._problems and not self._skip_bad:
            hint = "--skip-bad leaves such rows out"
            raise ItemError(self._problems, file=self.name, hint=hint, more=self.bad - len(self._problems))

    def _check_row(self, raw: RawRow, number: int) -> CheckedRow:
        rating = self._reader.read(raw.values)
        found = self._rules.check({}, rating.values)  # as inputs, so that a type of question gives its group
        findings: tuple[Finding, ...] = ()
        if rating.wrong or found.violations:
            wrong = (Violation(rule, "violation", message) for rule, message in rating.wrong.items())
            findings = tuple(
                Finding(number, rating.id, broken.rule, broken.severity, broken.message, raw.line)
                for broken in (*wrong, *found.violations)
            )
            self._found.update((finding.rule, finding.severity) for finding in findings)
            self._with_violations += any(finding.severity == "violation" for finding in findings)
        if found.reasons:
            self._not_checked.update(found.not_checked)
            self._reasons = {**found.reasons, **self._reasons}
        self._checked += 1
        return CheckedRow(raw.values, rating.values, findings, found.derived)

    def _note_bad(self, problem: Problem, number: int) -> None:
        self.bad += 1
        if len(self._problems) < _MOST_PROBLEMS:
            self._problems.append(problem if problem.line is not None else replace(problem, path=f"row {number}"))


def _columns(findings: tuple[Finding, ...]) -> dict[str, Any]:
    if not findings:
        return {"violations": "", "warnings": "", "messages": ""}
    ids: dict[Literal["violation", "warning"], list[str]] = {"violation": [], "warning": []}
    for finding in findings:
        ids[finding.severity].append(finding.rule)
    messages = " ".join(finding.message for finding in findings)
    return {"violations": "; ".join(ids["violation"]), "warnings": "; ".join(ids["warning"]), "messages": messages}


def _written(write: Callable[[Preference], int | str] | None, label: str | None, side: str | None) -> int | str | None:
    try:
        return write(Preference(label, side)) if write is not None else None
    except InputError:
        return None


def check(
    ratings: Any,
    rubric: str | Path | Rubric,
    *,
    map: Mapping[str, str] | None = None,
    variant: Mapping[str, Any] | None = None,
    format: str | None = None,
    label_set: str | None = None,
    partial: bool = False,
    skip_bad: bool = False,
    **unknown: Any,
) -> Check:
    """A rubric's rules on ratings made by people or other tools; no model.

    Args:
        ratings: A path, a data frame, or an iterable of rows (mappings); columns are the rubric's field names.
        rubric: A built-in name, a rubric file, or a `Rubric`.
        map: Field name or "id" -> column.
        variant: The rubric's own options.
        format: Input format, where the file name doesn't tell.
        label_set: The labels are those of "helpsteer2", "llama2" or "fastchat"; see `evenhand.labels`.
        partial: No column is required; rules that need an absent one are not checked.
        skip_bad: Leave rows out that can't be read at all, instead of raising after the others.
        **unknown: Refused, with the keywords that there are.

    Returns:
        The check: iterate over its findings, then ask for its `summary`, or `write` the rows with them.

    Raises:
        UnknownNameError: no such keyword.
        InputError: no such source, rubric, field or label set, or a value of the wrong kind.
    """
    given = {"map": map, "variant": variant, "format": format, "label_set": label_set}
    checked({**given, "partial": partial, "skip_bad": skip_bad, **unknown}, OF_CHECK)
    return Check(
        ratings,
        open_rubric(rubric, variant=variant),
        mapping=map,
        format=format,
        labels=label_set,
        partial=partial,
        skip_bad=skip_bad,
    )
