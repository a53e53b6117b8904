"""Where rows come from: files, standard input, data frames and Python rows, read once, row by row.

read_items -> open_source -> one reader per format -> check_row -> Item or BadRow
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from evenhand._words import counted
from evenhand.errors import InputError, ItemError, Problem, UnknownNameError
from evenhand.fitting import column_hint
from evenhand.images import folder_of, with_images
from evenhand.item import MAX_ROW_BYTES, Item, check_row, content_id, missing_columns, require_mapping
from evenhand.joining import RESPONSES, joined, spread
from evenhand.keywords import number
from evenhand.rows import FORMATS, STDIN, RawRow, as_frame, file_rows, frame_rows, no_room, python_rows
from evenhand.rubric.model import ItemSpec

_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"
}  # fmt: skip
_MOST_PROBLEMS = 100
_TABLES = ("csv", "tsv", "parquet")


@dataclass(frozen=True, slots=True)
class RowSource:
    """An open source, to be read once.

    Attributes:
        name: File name for messages, None when it isn't a file.
        table: Whether all rows have the same columns.
        rows: The rows; whatever the reader holds open is closed when they end or are dropped.
    """

    name: str | None
    table: bool
    rows: Iterator[RawRow]


_SKIP = "mend the rows, or --skip-bad to leave them out"


class _Placed(Protocol):
    """Anything with a position in the input."""

    @property
    def row(self) -> int: ...


_Row = TypeVar("_Row", bound=_Placed)


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be judged.

    Attributes:
        row: 0-based position in the input.
        line: 1-based line in the file, None where the source has no lines.
        problems: All that is wrong with it.
        raw: What could be read of it.
    """

    row: int
    line: int | None
    problems: tuple[Problem, ...]
    raw: Mapping[str, Any] = field(default_factory=dict)


class BadRows:
    """Bad rows as they are met, to be told in one error; memory does not grow with their number."""

    def __init__(self) -> None:
        self.rows = 0
        self._columns: dict[str, None] = {}
        self._listed: list[Problem] = []
        self._listed_rows = 0
        self._kinds: dict[tuple[str, str], tuple[Problem, int]] = {}  # its first problem, number of rows
        self._other_rows = 0

    def add(self, row: BadRow) -> None:
        """Take one more."""
        self.rows += 1
        if len(self._listed) < _MOST_PROBLEMS:
            self._columns |= dict.fromkeys(row.raw)
            self._listed_rows += 1
            self._listed += row.problems[: _MOST_PROBLEMS - len(self._listed)]
        known = False
        for problem in row.problems:
            kind = (problem.message, problem.remedy)
            if kind in self._kinds or len(self._kinds) < _MOST_PROBLEMS:
                first, number = self._kinds.get(kind, (problem, 0))
                self._kinds[kind] = first, number + 1
                known = True
        self._other_rows += not known

    def error(self, file: str | None, spec: ItemSpec | None, *, good: bool, hint: str | None = _SKIP) -> ItemError:
        """The error that tells of them, row by row; where no row is good, each kind of mistake once, with its number.

        Args:
            file: Name of the file, None where the rows are of none.
            spec: What is read of a row, for a hint at other columns; None for none.
            good: Whether there are good rows too.
            hint: What to do.
        """
        if good:
            return ItemError(self._listed, file=file, more=self.rows - self._listed_rows, hint=hint)
        problems = [
            replace(first, message=f"{first.message.removesuffix('.')}; the same in {counted(n - 1, 'more row')}")
            if n > 1
            else first
            for first, n in self._kinds.values()
        ]
        columns = column_hint(self._columns, spec) if spec is not None and self._columns else None
        return ItemError(problems, file=file, more=self._other_rows, hint=columns or hint)


class IdBook:
    """Remembers the ids given so far, in a temporary database that keeps a million of them out of memory."""

    def __init__(self) -> None:
        # An unnamed database: in memory while it fits the cache (8 MB), else in a file that vanishes by itself.
        self._db = sqlite3.connect("", isolation_level=None)
        self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000;")
        self._db.execute("CREATE TABLE id (id TEXT PRIMARY KEY, place INTEGER NOT NULL) WITHOUT ROWID")
        self._db.execute("CREATE TABLE repeat (digest TEXT PRIMARY KEY, n INTEGER NOT NULL) WITHOUT ROWID")
        self._db.execute("BEGIN")

    def claim(self, item_id: str, place: int) -> int | None:
        """Take an id; None when it was free, else the place (line or row) that has it."""
        if self._db.execute("INSERT OR IGNORE INTO id VALUES (?, ?)", (item_id, place)).rowcount:
            return None
        return int(self._db.execute("SELECT place FROM id WHERE id = ?", (item_id,)).fetchone()[0])

    def number(self, digest: str, place: int) -> str:
        """Take the next free id of a content digest: the digest, then DIGEST-1, DIGEST-2 ..."""
        item_id = digest
        while self.claim(item_id, place) is not None:
            self._db.execute("INSERT INTO repeat VALUES (?, 1) ON CONFLICT DO UPDATE SET n = n + 1", (digest,))
            n = self._db.execute("SELECT n FROM repeat WHERE digest = ?", (digest,)).fetchone()[0]
            item_id = f"{digest}-{n}"
        return item_id

    def close(self) -> None:
        """Drop the database."""
        self._db.close()


def read_items(
    source: Any,
    spec: ItemSpec,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    max_bytes: int = MAX_ROW_BYTES,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    responses: Any = None,
    open_images: bool = False,
) -> Iterator[Item | BadRow]:
    """Read and check rows, one by one; memory does not grow with their number.

    A row's id is its own (column "id", or what ``mapping`` or an alias says), else a digest of the rubric's fields
    in it, with "-1", "-2" ... for repeats. An own id given twice is a problem of the second row.

    Args:
        source: As for `open_source`.
        spec: What the rubric reads.
        mapping: Field name or "id" -> column. ``responses`` -> columns joined by "+", each of which holds one
            system's response; see `evenhand.joining.spread`. Limit and sample then are of rows as they stand.
        format: One of `FORMATS`, None to tell from the file name.
        max_bytes: Most bytes one row may have.
        limit: Read only the first so many rows, good or bad.
        sample: Yield only a uniform random sample of so many of the good rows (all, if they are fewer), in input
            order, held in memory; bad rows are all yielded, as they are met.
        seed: Seed of the sample; the same rows and seed give the same sample.
        responses: Where the responses stand, joined to the rows by id; as for `open_source`. None where the rows
            hold them. A response to no row is a bad row at the end.
        open_images: Open and check images (`evenhand.images.with_images`), for a judge that is shown them; else they
            stay references. Relative paths start in the source's folder.

    Yields:
        An `Item` for each good row, a `BadRow` for each bad one; both keep their position in the input.

    Raises:
        UnknownNameError: no such format, or ``mapping`` names a field that the rubric doesn't read.
        ItemError: no rows at all, a table without a column that is needed, or a mapped column that no row has.
        InputError: the source can't be read.
        MissingExtraError: Parquet without pyarrow.
    """
    require_counts(limit=limit, sample=sample, max_bytes=max_bytes)
    given = mapping = mapping or {}
    wide = RESPONSES in mapping and len(spec.responses) == 1 and spec.field(RESPONSES) is None
    if wide:
        mapping = {name: column for name, column in given.items() if name != RESPONSES}
    require_mapping(mapping, spec)
    if all(isinstance(given, str | os.PathLike) and str(given) == STDIN for given in (source, responses)):
        hint = "put one of the two in a file"
        raise InputError("rows and responses can't both come from standard input", hint=hint)
    opened = open_source(source, format=format, max_bytes=max_bytes)
    if responses is not None:
        opened = _with_responses(opened, open_source(responses, max_bytes=max_bytes), spec, mapping)
    if wide:
        opened = _spread(opened, spec, given, limit, sample, seed)
        limit = sample = None
    items = _read(opened, spec, mapping, max_bytes, limit, folder_of(source) if open_images else None)
    return items if sample is None else sampled(items, sample, seed)


def _with_responses(opened: RowSource, responses: RowSource, spec: ItemSpec, mapping: Mapping[str, str]) -> RowSource:
    name = responses.name or "the responses"
    return replace(opened, table=False, rows=joined(opened.rows, responses.rows, spec, mapping, name=name))


def _spread(
    opened: RowSource, spec: ItemSpec, mapping: Mapping[str, str], limit: int | None, sample: int | None, seed: int
) -> RowSource:
    """The rows with one response each; limit and sample are of the rows that hold several."""
    rows = (replace(raw, row=row) for row, raw in enumerate(itertools.islice(opened.rows, limit)))
    if sample is not None:
        rows = (raw for raw in sampled(rows, sample, seed) if isinstance(raw, RawRow))
    return replace(opened, rows=spread(rows, spec, mapping, name=opened.name))


def require_counts(**counts: int | None) -> None:
    """Refuse numbers of rows or bytes that can't be meant.

    Raises:
        InputError: there is one.
    """
    for name, count in counts.items():
        if count is not None:
            number(name, count)


def open_source(source: Any, *, format: str | None = None, max_bytes: int = MAX_ROW_BYTES) -> RowSource:
    """Open what rows come from.

    Args:
        source: A path (.jsonl, .ndjson, .json, .csv, .tsv, .parquet); "-" for standard input (JSON lines unless
            ``format`` says otherwise); a data frame or Arrow table; or an iterable of mappings. Files are UTF-8,
            with or without byte order mark. In frames, Parquet and Python rows NaN counts as null; dates and
            decimals become text, bytes a note of their number.
        format: One of `FORMATS`, None to tell from the file name.
        max_bytes: A longer line of a JSON lines file is not taken into memory.

    Raises:
        UnknownNameError: no such format.
        InputError: no such file, a folder, an unknown file name ending, or nothing that has rows.
    """
    if format is not None and format not in FORMATS:
        raise UnknownNameError("input format", format, FORMATS)
    if isinstance(source, str | os.PathLike):
        return _open_file(Path(source), format, max_bytes)
    if not isinstance(source, list | tuple | Iterator):
        frame = as_frame(source)
        if frame is not None:
            return RowSource(None, True, frame_rows(frame))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(f"a {type(source).__name__} has no rows; give a path, a data frame or a list of mappings")
    return RowSource(None, False, python_rows(source))


def _read(
    source: RowSource,
    spec: ItemSpec,
    mapping: Mapping[str, str],
    max_bytes: int,
    limit: int | None,
    images: Path | None,
) -> Iterator[Item | BadRow]:
    needed = [*(f.name for f in spec.fields if f.required), *mapping]
    unseen = set(mapping)
    columns: list[str] | None = None
    row = -1
    with id_book() as ids:
        for row, raw in enumerate(itertools.islice(source.rows, limit)):
            if raw.problem is None:
                if columns is None and source.table:
                    lacking = missing_columns(raw.values, dict.fromkeys(needed), spec, mapping)
                    _refuse(lacking, source.name, column_hint(raw.values, spec) if lacking else None)
                columns = list(raw.values)
                unseen = {name for name in unseen if mapping[name] not in raw.values}
            yield _checked(row, raw, source.name, spec, mapping, max_bytes, ids, images)
    if row < 0:
        _refuse([Problem(None, "", "no rows")], source.name)
    if columns is not None:
        _refuse(missing_columns(columns, sorted(unseen), spec, mapping), source.name)


@contextlib.contextmanager
def id_book() -> Iterator[IdBook]:
    """A book of ids, closed in the end.

    Raises:
        InputError: there is no room for its temporary file.
    """
    try:
        with contextlib.closing(IdBook()) as ids:
            yield ids
    except sqlite3.Error as error:
        raise no_room(error) from error


def _refuse(problems: list[Problem], file: str | None, hint: str | None = None) -> None:
    if problems:
        raise ItemError(problems, file=file, hint=hint)


def _checked(
    row: int,
    raw: RawRow,
    file: str | None,
    spec: ItemSpec,
    mapping: Mapping[str, str],
    max_bytes: int,
    ids: IdBook,
    images: Path | None,
) -> Item | BadRow:
    at = row if raw.row < 0 else raw.row
    place, unit = (at + 1, "row") if raw.line is None else (raw.line, "line")
    problems = [raw.problem] if raw.problem is not None else []
    checked = None
    if not problems:
        checked = check_row(raw.values, spec, mapping=mapping, max_bytes=max_bytes)
        if images is not None:
            checked = with_images(checked, spec, images)
        problems = list(checked.problems)
    if checked is not None and not problems:
        item_id = checked.id or ids.number(content_id(checked.fields), place)
        first = ids.claim(checked.id, place) if checked.id is not None else None
        if first is None:
            found = where(file, at, raw.line)
            return Item(item_id, row, checked.fields, checked.extra, found, checked.columns, checked.own_id)
        problems = [Problem(None, "", f"the id {item_id!r} was given before, in {unit} {first}")]
    return bad_row(row, raw, problems)


def where(file: str | None, row: int, line: int | None) -> str:
    """The place of a row in words, as in "data.jsonl:17"."""
    return f"{file}:{line}" if line is not None else f"{file or ''} row {row + 1}".strip()


def bad_row(row: int, raw: RawRow, problems: Iterable[Problem]) -> BadRow:
    """A row that can't be judged, its problems told with line or row."""
    path = "" if raw.line is not None else f"row {(row if raw.row < 0 else raw.row) + 1}"
    return BadRow(row, raw.line, tuple(replace(p, line=raw.line, path=path) for p in problems), raw.values)


def sampled(items: Iterator[_Row | BadRow], size: int, seed: int) -> Iterator[_Row | BadRow]:
    """A reservoir: each good row replaces an earlier one with the probability that keeps all equally likely."""
    draw = random.Random(seed)
    kept: list[_Row] = []
    good = 0
    for item in items:
        if isinstance(item, BadRow):
            yield item
            continue
        good += 1
        if len(kept) < size:
            kept.append(item)
        elif (at := draw.randrange(good)) < size:
            kept[at] = item
    yield from sorted(kept, key=lambda item: item.row)


def _open_file(path: Path, format: str | None, max_bytes: int) -> RowSource:
    if str(path) == STDIN:
        name, format = "standard input", format or "jsonl"
    else:
        name, format = str(path), format or _SUFFIXES.get(path.suffix.lower())
        try:
            there, folder = path.exists(), path.is_dir()
        except (OSError, ValueError) as error:  # a name that no file can have, or a folder that can't be entered
            raise InputError(f"can't read {name:.200}: {getattr(error, 'strerror', None) or error}") from None
        if not there:
            raise InputError(f"no such file: {name}")
        if folder:
            raise InputError(f"{name} is a folder", hint="give one of the files in it")
    if format is None:
        raise InputError(f"can't tell the format of {name} from its ending", hint=f"--format {'|'.join(FORMATS)}")
    return RowSource(name, format in _TABLES, file_rows(path, name, format, max_bytes))
