"""Where rows come from: files, standard input, data frames and Python rows, read once, row by row.

read_items -> open_source -> one reader per format -> check_row -> Item or BadRow
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import itertools
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, cast

from evenhand.errors import InputError, ItemError, MissingExtraError, Problem, UnknownNameError
from evenhand.item import MAX_ROW_BYTES, Item, check_row, content_id, missing_columns, require_mapping, too_big
from evenhand.item_values import read_json
from evenhand.rubric.model import ItemSpec

_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"
}  # fmt: skip
#: Input formats by name.
FORMATS = tuple(dict.fromkeys(_SUFFIXES.values()))
_TABLES = ("csv", "tsv", "parquet")
_MAX_JSON_BYTES = 200_000_000  # a .json file is read whole
_MAX_CELL = 1 << 27  # characters; a row this long is refused later, with its size
_PIECE = 1 << 20
_PARQUET_ROWS = 256
_BOM = b"\xef\xbb\xbf"
_UTF8 = "save the file as UTF-8"


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row as it stands in the source.

    Attributes:
        values: Column -> plain value; may be incomplete where there is a problem.
        line: 1-based line on which the row begins; None where the source has no lines.
        problem: Why it can't be read, None when it can.
    """

    values: Mapping[str, Any]
    line: int | None = None
    problem: Problem | None = None


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
) -> Iterator[Item | BadRow]:
    """Read and check rows, one by one; memory does not grow with their number.

    A row's id is its own (column "id", or what ``mapping`` or an alias says), else a digest of the rubric's fields
    in it, with "-1", "-2" ... for repeats. An own id given twice is a problem of the second row.

    Args:
        source: As for `open_source`.
        spec: What the rubric reads.
        mapping: Field name or "id" -> column.
        format: One of `FORMATS`, None to tell from the file name.
        max_bytes: Most bytes one row may have.
        limit: Read only the first so many rows, good or bad.
        sample: Yield only a uniform random sample of so many of the good rows (all, if they are fewer), in input
            order, held in memory; bad rows are all yielded, as they are met.
        seed: Seed of the sample; the same rows and seed give the same sample.

    Yields:
        An `Item` for each good row, a `BadRow` for each bad one; both keep their position in the input.

    Raises:
        UnknownNameError: no such format, or ``mapping`` names a field that the rubric doesn't read.
        ItemError: no rows at all, a table without a column that is needed, or a mapped column that no row has.
        InputError: the source can't be read.
        MissingExtraError: Parquet without pyarrow.
    """
    for name, number in (("limit", limit), ("sample", sample), ("max_bytes", max_bytes)):
        if number is not None and number < 1:
            raise InputError(f"{name} must be at least 1, not {number}")
    mapping = mapping or {}
    require_mapping(mapping, spec)
    opened = open_source(source, format=format, max_bytes=max_bytes)
    items = _read(opened, spec, mapping, max_bytes, limit)
    return items if sample is None else _sampled(items, sample, seed)


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
        path = Path(source)
        format = format or ("jsonl" if str(source) == "-" else _format_of(path))
        name = "standard input" if str(source) == "-" else str(path)
        return RowSource(name, format in _TABLES, _file_rows(path, name, format, max_bytes))
    if not isinstance(source, list | tuple | Iterator):
        frame = _as_frame(source)
        if frame is not None:
            return RowSource(None, True, _frame_rows(frame))
    if isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(f"a {type(source).__name__} has no rows; give a path, a data frame or a list of mappings")
    return RowSource(None, False, _python_rows(source))


def _read(
    source: RowSource, spec: ItemSpec, mapping: Mapping[str, str], max_bytes: int, limit: int | None
) -> Iterator[Item | BadRow]:
    needed = [*(f.name for f in spec.fields if f.required), *mapping]
    unseen = set(mapping)
    columns: list[str] | None = None
    row = -1
    with contextlib.closing(IdBook()) as ids:
        for row, raw in enumerate(itertools.islice(source.rows, limit)):
            if raw.problem is None:
                if columns is None and source.table:
                    _refuse(missing_columns(raw.values, dict.fromkeys(needed), spec, mapping), source.name)
                columns = list(raw.values)
                unseen = {name for name in unseen if mapping[name] not in raw.values}
            yield _checked(row, raw, source.name, spec, mapping, max_bytes, ids)
    if row < 0:
        _refuse([Problem(None, "", "no rows")], source.name)
    if columns is not None:
        _refuse(missing_columns(columns, sorted(unseen), spec, mapping), source.name)


def _refuse(problems: list[Problem], file: str | None) -> None:
    if problems:
        raise ItemError(problems, file=file)


def _checked(
    row: int,
    raw: RawRow,
    file: str | None,
    spec: ItemSpec,
    mapping: Mapping[str, str],
    max_bytes: int,
    ids: IdBook,
) -> Item | BadRow:
    line = raw.line
    place, unit = (row + 1, "row") if line is None else (line, "line")
    problems = [raw.problem] if raw.problem is not None else []
    checked = None
    if not problems:
        checked = check_row(raw.values, spec, mapping=mapping, max_bytes=max_bytes)
        problems = list(checked.problems)
    if checked is not None and not problems:
        item_id = checked.id or ids.number(content_id(checked.fields), place)
        first = ids.claim(checked.id, place) if checked.id is not None else None
        if first is None:
            where = f"{file}:{line}" if line is not None else f"{file or ''} row {place}".strip()
            return Item(item_id, row, checked.fields, checked.extra, where)
        problems = [Problem(None, "", f"the id {item_id!r} was given before, in {unit} {first}")]
    path = "" if line is not None else f"row {place}"
    return BadRow(row, line, tuple(replace(p, line=line, path=path) for p in problems), raw.values)


def _sampled(items: Iterator[Item | BadRow], size: int, seed: int) -> Iterator[Item | BadRow]:
    """A reservoir: each good row replaces an earlier one with the probability that keeps all equally likely."""
    draw = random.Random(seed)
    kept: list[Item] = []
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


def _format_of(path: Path) -> str:
    try:
        return _SUFFIXES[path.suffix.lower()]
    except KeyError:
        raise InputError(
            f"can't tell the format of {path} from its name", hint=f"--format {'|'.join(FORMATS)}"
        ) from None


def _opened(path: Path, name: str) -> BinaryIO:
    """A binary file; standard input is spooled to a temporary one, so that every format can be read from it."""
    if str(path) == "-":
        spool = tempfile.TemporaryFile()
        shutil.copyfileobj(sys.stdin.buffer, spool)
        spool.seek(0)
        return cast(BinaryIO, spool)
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"no such file: {name}") from None
    except IsADirectoryError:
        raise InputError(f"{name} is a folder", hint="give one of the files in it") from None
    except OSError as error:
        raise InputError(f"can't read {name}: {error.strerror}") from None


def _file_rows(path: Path, name: str, format: str, max_bytes: int) -> Iterator[RawRow]:
    with _opened(path, name) as file:
        if format == "jsonl":
            yield from _json_lines(file, max_bytes)
        elif format == "json":
            yield from _json_document(file, name)
        elif format == "parquet":
            yield from _parquet_rows(file, name)
        else:
            yield from _csv_rows(file, name, "," if format == "csv" else "\t")


def _bad(line: int | None, message: str, remedy: str = "", values: Mapping[str, Any] | None = None) -> RawRow:
    return RawRow(values or {}, line, Problem(line, "", message, remedy))


def _json_lines(file: BinaryIO, max_bytes: int) -> Iterator[RawRow]:
    for number in itertools.count(1):
        line = file.readline(max_bytes + 2)
        if not line:
            return
        size = len(line.rstrip(b"\r\n"))
        if size > max_bytes:
            while not line.endswith(b"\n") and (line := file.readline(_PIECE)):
                size += len(line)
            yield _bad(number, too_big(size, max_bytes))
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line.strip():
            yield _json_row(line, number)


def _json_row(line: bytes, number: int) -> RawRow:
    try:
        row = read_json(line.decode())
    except UnicodeDecodeError as error:
        return _bad(number, f"not UTF-8: byte 0x{line[error.start]:02x} at position {error.start + 1}", _UTF8)
    except ValueError as error:
        return _bad(number, str(error))
    if not isinstance(row, dict):
        return _bad(number, "not a JSON object", "one {...} a line")
    return RawRow(row, number)


def _json_document(file: BinaryIO, name: str) -> Iterator[RawRow]:
    text = file.read(_MAX_JSON_BYTES + 1)
    if len(text) > _MAX_JSON_BYTES:
        raise InputError(
            f"{name} has more than {_MAX_JSON_BYTES // 10**6} MB, too much for one JSON document",
            hint="convert it to JSON lines (.jsonl), which are read one by one",
        )
    if not text.strip():
        return
    try:
        document = read_json(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError(f"{name} is not UTF-8", hint=_UTF8) from None
    except ValueError as error:
        raise InputError(f"{name}: {error}") from None
    if isinstance(document, dict):
        lists = [value for value in document.values() if isinstance(value, list)]
        document = lists[0] if len(lists) == 1 else None
    if not isinstance(document, list):
        raise InputError(f"{name} is neither a list of rows nor an object with one list in it")
    for row in document:
        yield RawRow(row) if isinstance(row, dict) else _bad(None, "not a JSON object")


def _csv_rows(file: BinaryIO, name: str, delimiter: str) -> Iterator[RawRow]:
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))  # global, but only ever raised
    # A byte that is not UTF-8 becomes a lone surrogate, which no valid file can hold: so its row alone is bad.
    text = io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="")
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            message = "a quote opened here is not closed" if "unexpected end" in str(error) else f"not CSV: {error}"
            if not header:
                raise ItemError([Problem(line, "", message)], file=name) from None
            yield _bad(line, message)
            continue
        if cells is None:
            return
        if not cells:
            continue
        if header:
            yield _csv_row(header, cells, line)
        else:
            header = _csv_header(cells, line, name)


def _csv_header(cells: list[str], line: int, name: str) -> list[str]:
    twice = sorted({cell for cell in cells if cells.count(cell) > 1})
    problems = [Problem(line, "", f"two columns have the name {cell!r}") for cell in twice]
    if not _is_text(cells):
        problems.append(Problem(line, "", "not UTF-8", _UTF8))
    _refuse(problems, name)
    return cells


def _csv_row(header: list[str], cells: list[str], line: int) -> RawRow:
    values = dict(zip(header, cells, strict=False))
    if not _is_text(cells):
        values = {k: v.encode(errors="surrogateescape").decode(errors="replace") for k, v in values.items()}
        return _bad(line, "not UTF-8", _UTF8, values)
    if len(cells) != len(header):
        return _bad(line, f"{len(cells)} cells, but the header has {len(header)}", values=values)
    return RawRow(values, line)


def _is_text(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _parquet_rows(file: BinaryIO, name: str) -> Iterator[RawRow]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("pyarrow", "frames") from None
    try:
        table = pyarrow.parquet.ParquetFile(file)
        _distinct(table.schema_arrow.names)
        for batch in table.iter_batches(batch_size=_PARQUET_ROWS):
            yield from _python_rows(batch.to_pylist())
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{name} can't be read as Parquet: {error}") from None


def _as_frame(source: Any) -> Any:
    """The source as a narwhals data frame, None when it isn't one."""
    import narwhals

    frame = narwhals.from_native(source, pass_through=True)
    if isinstance(frame, narwhals.LazyFrame):
        frame = frame.collect()
    return frame if isinstance(frame, narwhals.DataFrame) else None


def _frame_rows(frame: Any) -> Iterator[RawRow]:
    _distinct(frame.columns)
    return _python_rows(frame.iter_rows(named=True))


def _distinct(columns: list[str]) -> None:
    twice = sorted({column for column in columns if columns.count(column) > 1})
    if twice:
        raise InputError(f"two columns have the name {twice[0]!r}")


def _python_rows(rows: Iterable[Any]) -> Iterator[RawRow]:
    for row in rows:
        if not isinstance(row, Mapping):
            yield _bad(None, f"a {type(row).__name__} where a mapping of columns is due")
        elif not all(isinstance(column, str) for column in row):
            yield _bad(None, "a column name that is not text")
        else:
            yield RawRow({column: _plain(value) for column, value in row.items()})


def _plain(value: Any) -> Any:
    """Plain data for a value of a data frame or of Python; NaN and its like are null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _plain(value.tolist())
    if type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, float):
        return value
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
