"""Readers of rows: one per format, each a stream of rows as they stand in the source.

A row that can't be read is reported with its line and the reader goes on; only what spoils the whole source
(no header, no such file) is an error.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from evenhand._words import counted
from evenhand.errors import InputError, ItemError, MissingExtraError, Problem
from evenhand.item import too_big
from evenhand.item_values import Bytes, read_json

#: Input formats by name.
FORMATS = ("jsonl", "json", "csv", "tsv", "parquet")
#: The name that stands for standard input.
STDIN = "-"
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
        row: 0-based position in the source, where several rows were made of one; else -1.
    """

    values: Mapping[str, Any]
    line: int | None = None
    problem: Problem | None = None
    row: int = -1


def file_rows(path: Path, name: str, format: str, max_bytes: int) -> Iterator[RawRow]:
    """Rows of a file.

    Args:
        path: The file, "-" for standard input.
        name: Its name in messages.
        format: One of `FORMATS`.
        max_bytes: A longer line of JSON lines is not taken into memory.

    Raises:
        InputError: the file can't be read, or not as this format at all.
        ItemError: a CSV header that can't be used.
        MissingExtraError: Parquet without pyarrow.
    """
    with _opened(path, name) as file:
        if format == "jsonl":
            yield from _json_lines(file, max_bytes)
        elif format == "json":
            yield from _json_document(file, name)
        elif format == "parquet":
            yield from _parquet_rows(file, name)
        else:
            yield from _csv_rows(file, name, "," if format == "csv" else "\t")


def as_frame(source: Any) -> Any:
    """A source as a narwhals data frame (a lazy one is collected), None when it isn't one."""
    import narwhals

    try:
        frame = narwhals.from_native(source, pass_through=True)
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect()
    except narwhals.exceptions.DuplicateError as error:
        raise InputError(f"two columns of the frame have the same name: {error}") from None
    return frame if isinstance(frame, narwhals.DataFrame) else None


def frame_rows(frame: Any) -> Iterator[RawRow]:
    """Rows of a narwhals data frame."""
    _distinct(frame.columns)
    return python_rows(frame.iter_rows(named=True))


def python_rows(rows: Iterable[Any]) -> Iterator[RawRow]:
    """Rows given as mappings."""
    for row in rows:
        if not isinstance(row, Mapping):
            yield _bad(None, f"a {type(row).__name__} where a mapping of columns is due")
        elif not all(isinstance(column, str) for column in row):
            yield _bad(None, "a column name that is not text")
        else:
            yield RawRow({column: _plain(value) for column, value in row.items()})


def stdin_pieces() -> Iterator[bytes]:
    """Standard input, piece by piece.

    Raises:
        InputError: it can't be read.
    """
    try:
        while piece := sys.stdin.buffer.read(_PIECE):
            yield piece
    except OSError as error:
        raise InputError(f"can't read standard input: {error.strerror}") from None


def spooled(pieces: Iterable[bytes]) -> BinaryIO:
    """Bytes in a temporary file, at its beginning; the caller closes it.

    Raises:
        InputError: there is no room for it.
    """
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            for piece in pieces:
                file.write(piece)
            file.seek(0)
        except OSError as error:
            raise no_room(error) from None
        stack.pop_all()
    return cast(BinaryIO, file)


def no_room(error: Exception) -> InputError:
    """What to tell where a temporary file can't be written."""
    try:
        place = f" in {tempfile.gettempdir()}"
    except OSError:
        place = ""
    reason = getattr(error, "strerror", None) or error
    return InputError(f"can't write a temporary file{place}: {reason}", hint="set TMPDIR to a folder with room")


def _opened(path: Path, name: str) -> BinaryIO:
    """A binary file; standard input is spooled to a temporary one, so that every format can be read from it."""
    if str(path) == STDIN:
        return spooled(stdin_pieces())
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(f"can't read {name}: {error.strerror}") from None


def _bad(line: int | None, message: str, remedy: str = "", values: Mapping[str, Any] | None = None) -> RawRow:
    return RawRow(values or {}, line, Problem(line, "", message, remedy))


def _json_lines(file: BinaryIO, max_bytes: int) -> Iterator[RawRow]:
    for number in itertools.count(1):
        line = file.readline(max_bytes + 1)
        if not line:
            return
        if (size := len(line)) > max_bytes:
            while not line.endswith(b"\n") and (line := file.readline(_PIECE)):
                size += len(line)
            yield _bad(number, too_big(size, max_bytes))
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if line := line.strip():
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
    with io.TextIOWrapper(file, "utf-8-sig", errors="surrogateescape", newline="") as text:
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
            if header and cells:
                yield _csv_row(header, cells, line)
            elif cells:
                header = _csv_header(cells, line, name)


def _csv_header(cells: list[str], line: int, name: str) -> list[str]:
    twice = sorted(cell for cell, count in Counter(cells).items() if count > 1)
    problems = [Problem(line, "", f"two columns have the name {cell!r}") for cell in twice]
    if not _is_text(cells):
        problems.append(Problem(line, "", "not UTF-8", _UTF8))
    if problems:
        raise ItemError(problems, file=name)
    return cells


def _csv_row(header: list[str], cells: list[str], line: int) -> RawRow:
    values = dict(zip(header, cells, strict=False))
    if not _is_text(cells):
        values = {k: v.encode(errors="surrogateescape").decode(errors="replace") for k, v in values.items()}
        return _bad(line, "not UTF-8", _UTF8, values)
    if len(cells) != len(header):
        return _bad(line, f"{counted(len(cells), 'cell')}, but the header has {len(header)}", values=values)
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
            yield from _batch_rows(batch)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{name} can't be read as Parquet: {error}") from None


def _batch_rows(batch: Any) -> Iterator[RawRow]:
    """Rows of an Arrow batch; one with a value that Python has nothing for is bad, and the others are read."""
    try:
        rows = batch.to_pylist()
    except (OverflowError, ValueError):
        rows = None
    if rows is not None:
        yield from python_rows(rows)
        return
    for at in range(batch.num_rows):
        values: dict[str, Any] = {}
        wrong: list[str] = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                values[name] = _plain(column[at].as_py())
            except (OverflowError, ValueError) as error:
                wrong.append(f"{name} holds a {column.type} that can't be read: {error}")
        yield _bad(None, "; ".join(wrong), "store it as text", values) if wrong else RawRow(values)


def _distinct(columns: list[str]) -> None:
    twice = sorted(column for column, count in Counter(columns).items() if count > 1)
    if twice:
        raise InputError(f"two columns have the name {twice[0]!r}")


def _plain(value: Any) -> Any:
    """Plain data for a value of a data frame or of Python; NaN and its like are null."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(v) for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return Bytes(f"<{counted(len(value), 'byte')}>")
    if hasattr(value, "tolist"):  # NumPy's scalars and arrays
        return _plain(value.tolist())
    if type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, float):
        return value
    return value.isoformat() if isinstance(value, datetime.date | datetime.time) else str(value)
