"""Reports of runs, written to a file.

write_report -> Reported (`evenhand.reported`: what it says) -> a writer (`evenhand.report`: how it is laid out)
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from evenhand import facts
from evenhand.agreeing import read_labels
from evenhand.api import Run
from evenhand.errors import InputError, MissingExtraError, UnknownNameError
from evenhand.export import refuse_overwriting, require_place, written_beside
from evenhand.facets import FacetTable
from evenhand.opening import opened_runs
from evenhand.pairing import COLUMNS
from evenhand.reported import Reported, ReportedRun
from evenhand.rubric.model import Rubric
from evenhand.store import Store

#: Columns that name a system, where one is there and --by is not given.
SYSTEMS = ("system", "model")
_LOOKED_AT = 200
KINDS = {"html": ".html .htm", "md": ".md .markdown", "json": ".json", "junit": ".xml"}


def write_report(
    runs: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    to: str | None = None,
    by: str | None = None,
    labels: Any = None,
    map: Mapping[str, str] | None = None,
    value: facts.ValueKind = "stated",
    charts: bool | None = None,
) -> Path:
    """Write a report of one run or several into one file.

    Args:
        runs: A run folder, or several: judges or systems side by side.
        out: The file. What was there is replaced once the report is whole. "-" for standard output, with ``to``.
        to: "html" (one page that needs no network), "md", "json" or "junit"; None to tell from the file's name.
        by: A column of the input, or an item field, to break figures down by; None for the column "system" or "model",
            where there is one. The rubric's types of question come in any case.
        labels, map: What people said; as for `Run.agreement`. Without labels the report says "not validated".
        value: As for `Run.summary`.
        charts: In HTML, whether charts are drawn; None for where matplotlib (evenhand[report]) is installed.

    Returns:
        The file.

    Raises:
        InputError: no such run, one given twice, a file that can't be written, or labels of no item.
        UnknownNameError: no such format or column.
        MissingExtraError: charts without matplotlib.
    """
    path = Path(out)
    if str(out) != "-":
        require_place(path)
    if map and labels is None:
        raise InputError("columns of labels are named, but no labels are given", hint="give --labels FILE too")
    write = _writer(_kind(path, to), charts)
    folders = [runs] if isinstance(runs, str | Path) else list(runs)
    with opened_runs(folders, value) as found:
        facets = FacetTable()
        reported = Reported([_reported(n, *run, by, facets, value) for n, run in found.items()], facets)
        for run in reported.runs if labels is not None else ():
            run.labels = read_labels(str(labels) if isinstance(labels, Path) else labels, run.rubric, mapping=map)
        if str(out) == "-":
            _print(reported, write)
            return path
        sources = [source for folder in folders for source in Run(folder).sources()]
        refuse_overwriting(path, [*sources, labels] if isinstance(labels, str | Path) else sources)
        _refuse_rubric(path, [run.rubric for run in reported.runs])
        written_beside(path, lambda file: write(reported, file))
    return path


def _refuse_rubric(path: Path, rubrics: Sequence[Rubric]) -> None:
    """Refuse to replace a rubric: by its name any, and by its text one of these runs, of which no path is known."""
    if not path.is_file():
        return
    texts = [rubric.source.encode() for rubric in rubrics]
    same_size = path.stat().st_size in map(len, texts)
    if path.suffix.lower() in (".yaml", ".yml") or (same_size and path.read_bytes() in texts):
        raise InputError(f"{path} is a rubric, or another file that is no report", hint="write to another file")


def _print(reported: Reported, write: Callable[[Reported, Path], None]) -> None:
    with TemporaryDirectory() as folder:
        whole = Path(folder, "report")
        write(reported, whole)
        with whole.open(encoding="utf-8", newline="") as file:
            shutil.copyfileobj(file, sys.stdout)
    sys.stdout.flush()


def _writer(kind: str, charts: bool | None) -> Callable[[Reported, Path], None]:
    if kind == "html":
        from evenhand.report.page import write_page

        return partial(write_page, charts=_drawn(charts))
    if charts is not None:
        raise InputError(f"charts stand in HTML only, not in {kind}", hint="leave the choice of charts out")
    from evenhand.report import plain

    return {"md": plain.write_markdown, "json": plain.write_json, "junit": plain.write_junit}[kind]


def _drawn(charts: bool | None) -> bool:
    """Whether charts are drawn: as asked, else where the package for them is there."""
    from evenhand.report.charts import require

    if charts is False:
        return False
    try:
        require()
    except MissingExtraError:
        if charts:
            raise
        return False
    return True


def _kind(out: Path, to: str | None) -> str:
    if to is not None:
        if to not in KINDS:
            raise UnknownNameError("format", to, KINDS)
        return to
    if str(out) == "-":
        raise InputError("no format is given for standard output", hint=f"say --to {'|'.join(KINDS)}")
    suffix = out.suffix.lower()
    for kind, suffixes in KINDS.items():
        if suffix in suffixes.split():
            return kind
    hint = "end the name in .html, .md, .json or .xml (JUnit), or say --to"
    raise InputError(f"{out}: no known format of a report", hint=hint)


def _reported(
    name: str, store: Store, rubric: Rubric, by: str | None, facets: FacetTable, value: facts.ValueKind
) -> ReportedRun:
    columns = _columns(store)
    system = by if by is not None else next((column for column in SYSTEMS if column in columns), None)
    types = rubric.types.item_field if rubric.types is not None else next(iter(rubric.aggregate.per), None)
    wanted = [system, types if types in columns else None]
    return ReportedRun(name, rubric, store, list(dict.fromkeys(c for c in wanted if c)), system, facets, value)


def _columns(store: Store) -> set[str]:
    """The columns of the first rows."""
    looked_at = (row for row, _ in zip(store.rows(), range(_LOOKED_AT), strict=False))
    return {
        name for row in looked_at if row.item for name in (*row.item.fields, *row.item.extra) if name not in COLUMNS
    }
