"""A report as one HTML page that needs no network: written row by row, so that memory does not grow with the run.

Rows come in chunks, each deflated and in base64 in a data block that no browser runs; a small index of each chunk
serves filter, search and sort. All text is escaped here, or set as text by the page's script.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from evenhand._words import bare, contained, failure, listed, pieces
from evenhand.facets import ASKED, JUDGED, USAGE, Facet, FacetTable, Row
from evenhand.report.figures import Cell, Section, Table
from evenhand.report.sections import Sections
from evenhand.report.together import together
from evenhand.reported import SPREAD, Reported, ReportedRun

#: A table's chart as SVG, or nothing.
Drawn = Callable[[Table], str]
_SCRIPTS = ("data.js", "marks.js", "table.js", "detail.js", "report.js")
_CHUNK_ROWS = 500
_CHUNK_CHARS = 4_000_000
_MOST_STATICS = 64
#: What nearly all rows have, or too much of to be chosen from a list: figures lead to it all the same.
_HIDDEN = [
    Facet("count", name)
    for name in ("planned", "rows_scored", "bad_rows", "trials", "trials_asked", JUDGED, "asked", ASKED, "calls",
                 "known latency", "readable first replies", "readable replies")
]  # fmt: skip
_UNLISTED = ("valued", "confusion")
_GROUPS = {
    "run": "run", "count": "outcome", "failure": "not scored", "rule": "rule broken", "warning": "warning",
    "preferred": "preferred", "column": "column", "value": "value", "unread": "no value", "preset": "set in code",
    "valued": "has a value", "label": "people", "system": "system", "confusion": "people",
}  # fmt: skip


#: Which values figures are made of.
VALUES = {
    "stated": "Figures are made of the values that the judge gave.",
    "expected": "Figures are made of the means over the probabilities that the judge gave its values.",
}


def write_page(reported: Reported, path: Path, *, charts: bool = False) -> None:
    """Write the page of a report.

    Args:
        reported: What it tells.
        path: The file.
        charts: Draw charts above their tables.

    Raises:
        MissingExtraError: charts without matplotlib.
    """
    style, script = _asset("report.css"), "".join(map(_asset, _SCRIPTS))
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        file.write(_head(reported, style, script))
        rows = _Rows(file, reported)
        rows.write()
        told = reported.facts()
        links = _Links(reported.facets.ids, rows.columns)
        parts = list(_parts(reported, told, links, _drawing() if charts else lambda _: ""))
        body = [_tag("div", html, id=f"part-{number}") for number, (_, html) in enumerate(parts)]
        file.write("\n".join([_header(reported, told, links, [name for name, _ in parts]), *body, _items(), ""]))
        file.write(f"{_block('head', rows.head())}{_tag('script', script, safe=True)}\n</body></html>\n")


def _parts(reported: Reported, told: dict[str, Any], links: _Links, drawn: Drawn) -> Iterator[tuple[str, str]]:
    """The figures in parts, each with its name: sections, or of several runs those of each as one."""
    several = len(reported.runs) > 1
    for section in together(told, [run.rubric for run in reported.runs]):
        yield section.title, _section(section, links, drawn)
    for run, facts in zip(reported.runs, told["runs"], strict=True):
        own, made = run.name if several else "", Sections(facts, run.rubric, several=several)
        sections = [(section.title, _section(section, links, drawn, own)) for section in made]
        if several:
            yield run.name, _tag("h1", _bidi(run.name)) + "".join(html for _, html in sections)
        else:
            yield from sections


def _drawing() -> Drawn:
    from evenhand.report.charts import draw

    numbers = itertools.count()
    return lambda table: draw(table, f"chart-{next(numbers)}") or ""


def _asset(name: str) -> str:
    return (files("evenhand.report") / "assets" / name).read_text(encoding="utf-8")


def _head(reported: Reported, style: str, script: str) -> str:
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src {_hash(style)}",
            f"script-src {_hash(script)}",
            "img-src data:",
            "connect-src 'none'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer"><link rel="icon" href="data:,">\n'
        f"<title>{escape(_title(reported))}</title>\n{_tag('style', style, safe=True)}</head><body>\n"
    )


def _title(reported: Reported) -> str:
    return "Report of " + ", ".join(contained(run.name) for run in reported.runs)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@dataclass(slots=True)
class _Rows:
    """Writes the rows of all runs in chunks, and keeps what the page must know of them."""

    file: IO[str]
    reported: Reported
    starts: list[int] = field(default_factory=list)
    count: int = 0
    statics: dict[str, int] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    filled: Counter[str] = field(default_factory=Counter)
    _lines: list[str] = field(default_factory=list)
    _index: list[tuple[str, str, list[Any], list[int], list[int] | int]] = field(default_factory=list)
    _chars: int = 0

    def write(self) -> None:
        beside = self.reported.beside
        names = [name for run in self.reported.runs for name in run.columns()]
        self.columns = [*(["run", SPREAD] if beside else []), *dict.fromkeys(names)]
        for number, run in enumerate(self.reported.runs):
            for row, ids in run.read(details=True, beside=beside):
                self._add(row, [row.cells.get(name) for name in self.columns], ids, number)
        self._flush()

    def _add(self, row: Row, cells: list[Any], ids: list[int], run: int) -> None:
        counts = list(row.facets.values())
        self._index.append((row.id, row.question, cells, ids, counts if max(counts, default=1) > 1 else 0))
        self.filled.update(name for name, value in zip(self.columns, cells, strict=True) if value is not None)
        detail = {**(row.detail or {}), "run": run}
        for trial in detail["trials"]:
            trial["prompt"] = [self._message(message) for message in trial["prompt"]]
            trial["verdict"]["failure"] = failure(trial["verdict"].get("failure") or "")
        line = _json(detail)
        self._lines.append(line)
        self._chars += len(line)
        self.count += 1
        if len(self._lines) >= _CHUNK_ROWS or self._chars >= _CHUNK_CHARS:
            self._flush()

    def _message(self, message: dict[str, Any]) -> dict[str, Any]:
        """A message; in place of a system text, which most items share, its number."""
        content = message["content"]
        if message["role"] != "system" or not isinstance(content, str):
            return message
        if content not in self.statics and len(self.statics) >= _MOST_STATICS:
            return message
        return {"role": "system", "static": self.statics.setdefault(content, len(self.statics))}

    def _flush(self) -> None:
        if not self._lines:
            return
        number = len(self.starts)
        self.starts.append(self.count - len(self._lines))
        ids, questions, cells, facets, counts = zip(*self._index, strict=True)
        index = {"ids": ids, "cells": list(zip(*cells, strict=True)), "facets": facets, "counts": counts}
        index["questions"] = questions
        self.file.write(_block(f"index-{number}", index, kind="index"))
        self.file.write(_packed(f"chunk-{number}", "\n".join(self._lines)))
        self._lines, self._index, self._chars = [], [], 0

    def head(self) -> dict[str, Any]:
        """What the script starts from."""
        texts = {name for run in self.reported.runs if run.rows is not None for name in run.rows.texts}
        return {
            "columns": self.columns,
            "hidden": [n for n, name in enumerate(self.columns) if name in USAGE and not self.filled[name]],
            "summed": [n for n, name in enumerate(self.columns) if name in USAGE[:-1]],
            "starts": self.starts,
            "statics": list(self.statics),
            "facets": list(_facets(self.reported.facets, texts)),
            "runs": [_run(run) for run in self.reported.runs],
        }


def _facets(table: FacetTable, texts: set[str]) -> Iterator[dict[str, Any]]:
    """What rows can be filtered by; without a group where nobody would choose it from a list."""
    for facet in table.ids:
        shown = facet.kind not in _UNLISTED and facet[:2] != ("system", "n") and facet not in _HIDDEN
        shown = shown and not (facet.kind == "column" and facet.name in texts)
        group = contained(facet.name) if facet.kind in ("column", "value") else _GROUPS[facet.kind]
        yield {
            "kind": facet.kind,
            "group": (f"{_GROUPS[facet.kind]}: {group}" if group == contained(facet.name) else group) if shown else "",
            "label": facet_label(facet),
            "rows": table.rows[facet],
        }


def facet_label(facet: Facet) -> str:
    """A facet in words, as in "truth = 3" and "rule lie"."""
    name, value = contained(facet.name), contained(facet.value)
    if facet.kind in ("column", "value"):
        return f"{name} = {value}"
    if facet.kind == "count":
        return facet.name.replace("_", " ")
    if facet.kind == "system":
        return f"{value}: {name}"
    if facet.kind in ("unread", "confusion"):
        return f"{name}: {failure(value) or 'no value'}"
    return f"{_GROUPS[facet.kind]}: {failure(name) if facet.kind == 'failure' else name}"


def _run(run: ReportedRun) -> dict[str, Any]:
    """What the script must know of a run to show its items."""
    fields = run.rubric.item.fields
    reference = [f.name for f in fields if f.type == "text" and f.name.startswith("ref")]
    responses = list(run.rubric.item.responses)
    beside = responses if len(responses) > 1 else [*reference[:1], *responses]
    return {
        "name": run.name,
        "language": run.rubric.language,
        "rules": len(run.rubric.rules),
        "labels": {f.name: f.label.rstrip(":： ") or f.name.replace("_", " ") for f in fields},
        "beside": beside if len(beside) > 1 else [],
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _block(name: str, value: Any, *, kind: str = "data") -> str:
    return _packed(name, _json(value), kind=kind)


def _packed(name: str, text: str, *, kind: str = "chunk") -> str:
    """A text in a data block; what is no Unicode becomes an escape of JSON."""
    packed = base64.b64encode(zlib.compress(text.encode("utf-8", "backslashreplace"), 6)).decode()
    return f'<script type="application/octet-stream" class="{kind}" id="{name}">{packed}</script>\n'


def _tag(name: str, *children: str, safe: bool = False, **attributes: str) -> str:
    """An element; children are HTML already, or, where ``safe``, text of our own files."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value
    )
    inner = "".join(children)
    assert not safe or "</s" not in inner.lower()
    return f"<{name}{told}>{inner}</{name}>"


def _bidi(text: str) -> str:
    """A text from outside: escaped, its direction, and those of names in it, kept to themselves."""
    inner = (_tag("bdi", escape(piece)) if name else escape(piece) for piece, name in pieces(text))
    return _tag("bdi", *inner) if text else ""


@dataclass(frozen=True, slots=True)
class _Links:
    """Where cells lead.

    Attributes:
        ids: Facet -> number.
        columns: Names of the columns of the items.
    """

    ids: Mapping[Facet, int]
    columns: Sequence[str]

    def html(self, cell: Cell) -> str:
        """A cell's text, as a link where it leads to verdicts or an item."""
        text = _bidi(cell.text)
        if cell.item is not None:
            href = f"#id={quote(cell.item, safe='', errors='backslashreplace')}"
            return _tag("a", text, href=href, aria_label=bare(f"{cell.text}: show item {cell.item}"))
        wanted = (*cell.facets, *cell.either)
        if not wanted or not all(facet in self.ids for facet in wanted):
            return text
        parts = {
            "f": ",".join(str(self.ids[facet]) for facet in cell.facets),
            "e": ",".join(str(self.ids[facet]) for facet in cell.either),
            "by": cell.same,
            "s": f"-{self.columns.index(cell.sort) + 1}" if cell.sort else "",
        }
        told = ", ".join(filter(None, (*map(facet_label, cell.facets), " or ".join(map(facet_label, cell.either)))))
        href = "&".join(f"{name}={value}" for name, value in parts.items() if value)
        return _tag("a", text, href=f"#{href}", aria_label=bare(f"{cell.text}: show {told}"))


def _header(reported: Reported, told: dict[str, Any], links: _Links, parts: Sequence[str]) -> str:
    several = len(reported.runs) > 1
    lead = ""
    for run, facts in zip(reported.runs, told["runs"], strict=True):
        pieces = Sections(facts, run.rubric, several=several).lead()
        line = "".join(_bidi(piece) if isinstance(piece, str) else links.html(piece) for piece in pieces)
        lead += _tag("p", *((_bidi(run.name), ": ") if several else ()), line)
    made = f"{VALUES[told['value']]} Written by evenhand {version('evenhand')}. "
    note = "Every underlined number leads to the verdicts behind it; every verdict to its prompt and raw replies."
    contents = [_tag("a", _bidi(name), href=f"#part-{number}") for number, name in enumerate(parts)]
    contents.append(_tag("a", "All items", href="#items"))
    return (
        _tag(
            "header",
            _tag("h1", "Report of ", ", ".join(_bidi(run.name) for run in reported.runs)),
            lead,
            _tag("p", escape(made + note), class_="soft"),
        )
        + _tag("nav", _tag("ul", *(_tag("li", link) for link in contents)), aria_label="Parts of the report")
        + "<main>"
    )


def _section(section: Section, links: _Links, drawn: Drawn, run: str = "") -> str:
    """A section; its tables have names that no others have, those of one of several runs with the run's."""
    notes = "".join(_tag("p", _bidi(note)) for note in section.notes)
    captions = Counter(table.caption for table in section.tables)
    tables = ""
    for table in section.tables:
        fields = listed([row[0].text for row in table.rows], 3) if captions[table.caption] > 1 else ""
        name = ", ".join(filter(None, (": ".join(filter(None, (table.caption, fields))), run)))
        tables += _table(table, links, drawn, bare(name))
    return _tag("section", _tag("h2", _bidi(section.title)), notes, _tag("div", tables, class_="tables"))


def _table(table: Table, links: _Links, drawn: Drawn, name: str) -> str:
    numbers = ["number" if all(map(_is_number, column)) else "" for column in zip(*table.rows, strict=True)]
    head = "".join(
        _tag("th", _bidi(title), scope="col", class_=kind) if title else _tag("td")
        for title, kind in zip(table.columns, numbers or [""] * len(table.columns), strict=True)
    )
    rows = "".join(_row(row, links) for row in table.rows)
    inner = _tag("caption", _bidi(table.caption)) + _tag("thead", _tag("tr", head)) + _tag("tbody", rows)
    told = _tag("div", _tag("table", inner), class_="wide", tabindex="0", role="region", aria_label=name)
    chart = drawn(table)
    if chart:
        chart = _tag("div", chart, class_="wide", tabindex="0", role="region", aria_label=f"Chart: {name}")
    return _tag("div", told, chart, class_="shown")


def _is_number(cell: Cell) -> bool:
    return cell.value is not None or bool(cell.facets)


def _row(cells: Sequence[Cell], links: _Links) -> str:
    heading = _tag("th", links.html(cells[0]), scope="row")
    return _tag("tr", heading, *(_tag("td", links.html(cell), class_=_kind(cell)) for cell in cells[1:]))


def _kind(cell: Cell) -> str:
    if not _is_number(cell):
        return ""
    return "number zero" if cell.value == 0 and not cell.facets else "number"


def _items() -> str:
    """The table of all items, which the script fills."""
    controls: Iterable[str] = (
        '<label>Search ids, texts, replies <input type="search" id="search" autocomplete="off"></label>',
        '<label>Add a filter <select id="facet"><option value="">choose ...</option></select></label>',
    )
    return (
        '<section id="items"><h2>All items</h2>'
        f'<div id="controls">{"".join(controls)}</div>'
        '<p id="count" role="status" tabindex="-1"></p><div id="filters"></div>'
        '<div id="grid" role="grid" aria-label="All items" aria-rowcount="1">'
        '<div role="rowgroup"><div id="grid-header" role="row" aria-rowindex="1"></div></div>'
        '<div id="grid-body" role="rowgroup"><div id="grid-space" role="presentation"></div></div></div>'
        '<p class="printed">The table of all items is not printed; see evenhand export.</p>'
        "<noscript><p>The table of all items needs JavaScript.</p></noscript></section></main>"
        '<dialog id="item" aria-labelledby="item-title"></dialog>'
    )
