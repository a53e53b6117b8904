"""A report's facts as Markdown, JSON and JUnit XML."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any
from xml.sax.saxutils import escape, quoteattr

from evenhand._words import bare, failure, visible
from evenhand.facets import Facet, Row
from evenhand.report.figures import Section
from evenhand.report.sections import Sections
from evenhand.report.together import together
from evenhand.reported import Reported, ReportedRun

#: Signs of markup. Those that count at the start of a line only stay: no text from outside stands there.
_MARKDOWN = re.compile(r"[\\`*\[\]<>|~&]|(?<!\w)_|_(?!\w)")
_NO_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")


def write_json(reported: Reported, path: Path) -> None:
    """Write the figures of all runs, as `evenhand.reported.Reported.facts` has them."""
    with _open(path) as file:
        json.dump(reported.facts(), file, ensure_ascii=False)
        file.write("\n")


def write_markdown(reported: Reported, path: Path) -> None:
    """Write the sections of all runs as headings and tables; text from outside can't be taken for markup."""
    told = reported.facts()
    several = len(reported.runs) > 1
    with _open(path) as file:
        for section in together(told, [run.rubric for run in reported.runs]):
            file.writelines(f"{line}\n" for line in _lines(section))
        for run, facts in zip(reported.runs, told["runs"], strict=True):
            file.write(f"# Report of {_markdown(run.name)}\n")
            for section in Sections(facts, run.rubric, several=several):
                file.writelines(f"{line}\n" for line in _lines(section))
            file.write("\n")


def _lines(section: Section) -> Iterator[str]:
    yield f"\n## {_markdown(section.title)}"
    for note in section.notes:
        yield f"\n{_markdown(note)}"
    for table in section.tables:
        yield f"\n**{_markdown(table.caption)}**\n"
        numbers = [all(cell.value is not None for cell in column) for column in zip(*table.rows, strict=True)]
        yield _line(table.columns)
        yield _line(["---:" if number else "---" for number in numbers] or ["---"] * len(table.columns), raw=True)
        for row in table.rows:
            yield _line([cell.text for cell in row])


def _line(cells: Any, *, raw: bool = False) -> str:
    return "| " + " | ".join(cells if raw else map(_markdown, cells)) + " |"


def _markdown(text: str) -> str:
    """A text on one line that means nothing but itself."""
    return _MARKDOWN.sub(r"\\\g<0>", " ".join(bare(text).split()))


def write_junit(reported: Reported, path: Path) -> None:
    """Write the rows as test cases, and the figures as properties of their suite.

    A row with a unit that is not scored is an error, a scored one that breaks a rule of severity "violation" a failure,
    and one that was not asked yet is skipped.
    """
    runs = []
    for run in reported.runs:
        counts = Counter(_outcome(row)[0] for row, _ in run.read(details=False))
        runs.append((run, counts, run.facts()))
    with _open(path) as file:
        whole = sum((counts for _, counts, _ in runs), Counter())
        file.write(f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="evenhand"{_counts(whole)}>\n')
        for run, counts, told in runs:
            file.write(f"<testsuite name={_xml(run.name)}{_counts(counts)}>\n<properties>\n")
            for name, value in flat(told):
                file.write(f"<property name={_xml(name)} value={_xml(json.dumps(value, ensure_ascii=False))}/>\n")
            file.write("</properties>\n")
            for row in run.again():
                file.write(_case(row, run))
            file.write("</testsuite>\n")
        file.write("</testsuites>\n")


def _outcome(row: Row) -> tuple[str, list[Facet]]:
    """Which kind of result a row is, and what makes it so."""
    failures = [facet for facet in row.facets if facet.kind == "failure"]
    if failures and all(facet.name == "not_asked" for facet in failures):
        return "skipped", failures
    if failures:
        return "error", failures
    broken = [facet for facet in row.facets if facet.kind == "rule"]
    return ("failure", broken) if broken else ("", [])


def _counts(counts: Mapping[str, int]) -> str:
    told = {"tests": sum(counts.values()), "failures": counts["failure"], "errors": counts["error"]}
    return "".join(f' {name}="{n}"' for name, n in {**told, "skipped": counts["skipped"]}.items())


def _case(row: Row, run: ReportedRun) -> str:
    kind, reasons = _outcome(row)
    inner = [
        f"<{kind} message={_xml(failure(reason.name))} type={_xml(reason.kind)}>"
        f"{escape(_legal(row.broken.get(reason.name, '')))}</{kind}>"
        for reason in reasons
    ]
    return f"<testcase classname={_xml(run.rubric.name)} name={_xml(row.id)}>{''.join(inner)}</testcase>\n"


def flat(told: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested JSON data with its path, as in ``summary.criteria.truth.mean``; lists are one value."""
    if isinstance(told, Mapping) and told:
        for name, value in told.items():
            yield from flat(value, f"{path}.{name}" if path else str(name))
    else:
        yield path, told


def _xml(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """A text of characters that XML may have."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", visible(text))


def _open(path: Path) -> IO[str]:
    return path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
