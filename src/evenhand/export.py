"""Rows to files: JSON lines, CSV, TSV, Parquet; written beside and renamed, so that no half file is left."""

from __future__ import annotations

import csv
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeVar

from evenhand.errors import InputError, MissingExtraError
from evenhand.run_folder import exists, own_files

T = TypeVar("T")
_BATCH = 1000
_INT64 = 1 << 63
#: Gives the rows anew at each call: tables need a first pass for the columns that occur.
Rows = Callable[[], Iterator[dict[str, Any]]]


def write_rows(rows: Rows, target: str, *, sources: Iterable[str | Path] = ()) -> int:
    """Write rows to a file whose ending names the format, or as JSON lines to stdout for "-".

    Memory does not grow with the number of rows. CSV, TSV and Parquet have every column that occurs in any row,
    in order of first appearance; lists and objects are JSON text there. A Parquet column is bool, int64, double or
    text; one of mixed kinds is text.
    Half of a surrogate pair, which is no text, is written as its escape.

    Args:
        rows: Gives the rows from the first on; called twice for tables.
        target: File name ending in .jsonl, .csv, .tsv or .parquet, or "-".
        sources: Files that the rows come from, which must not be overwritten.

    Returns:
        The number of rows written.

    Raises:
        InputError: an ending that names no format, a folder that can't be written, or one of the sources as target.
        MissingExtraError: Parquet without pyarrow.
    """
    if target == "-":
        count = _write_jsonl(rows(), sys.stdout)
        sys.stdout.flush()
        return count
    path = Path(target)
    writer = find_writer(path)
    refuse_overwriting(path, sources)
    return written_beside(path, lambda beside: writer(rows, beside))


def written_beside(path: Path, write: Callable[[Path], T]) -> T:
    """Write a file under another name and give it its own once it is whole; what ``write`` returns.

    What is no file, as a device or a named pipe, is written to and stays.

    Raises:
        InputError: it can't be written.
    """
    try:
        if path.exists() and not path.is_file():
            return write(path)
        if path.is_symlink():  # the file it names is replaced, not the link
            path = path.resolve()
    except (OSError, RuntimeError) as error:  # RuntimeError: links that lead in a circle
        raise _unwritable(path, getattr(error, "strerror", None) or "its links lead in a circle") from error
    beside = path.with_name(f".evenhand-{os.getpid()}.part{path.suffix}")
    try:
        done = write(beside)
        beside.replace(path)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error
    finally:
        beside.unlink(missing_ok=True)
    return done


def _unwritable(path: Path, why: str, hint: str = "write to another file, or to one in another folder") -> InputError:
    return InputError(f"can't write {path!s:.200}: {why}", hint=hint)


def find_writer(path: Path) -> Callable[[Rows, Path], int]:
    """What writes a file of this name.

    Raises:
        InputError: an ending that names no format, or no such folder.
    """
    writers = {".jsonl": _jsonl, ".csv": _csv, ".tsv": _csv, ".parquet": _parquet}
    if path.suffix.lower() not in writers:
        raise InputError(f"{path}: no known format", hint=f"end the name in {', '.join(writers)}")
    require_place(path)
    return writers[path.suffix.lower()]


def require_place(path: Path) -> None:
    """Refuse a file that can't be: a directory, or one in a folder that isn't there.

    Raises:
        InputError: such a file.
    """
    try:
        folder = path.parent.is_dir()
        if folder:
            path.lstat()  # a name that can't be one
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        raise _unwritable(path, str(getattr(error, "strerror", None) or error)) from None
    if not folder:
        raise _unwritable(path, f"no folder {path.parent!s:.200}", "make the folder first, or write to another one")
    if path.is_dir():
        raise _unwritable(path, "it is a directory", "name a file in it")


def refuse_overwriting(target: Path, sources: Iterable[str | Path]) -> None:
    """Refuse a target that is one of some files, by whatever name, or of a run: what it holds would be lost.

    Raises:
        InputError: it is the same file as one of the sources, directly or by a link; or one that a run is kept in.
    """
    for source in sources:
        try:
            same = target.samefile(source)
        except (OSError, ValueError):  # one of them doesn't exist
            continue
        if same:
            raise InputError(f"{target} is a file that this output is made of", hint="write to another file")
    place = Path(os.path.realpath(target))
    if place in own_files(place.parent) and exists(place.parent):
        raise InputError(f"{target} is a file of the run in {place.parent}", hint="write to another file")


def _jsonl(rows: Rows, path: Path) -> int:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
        return _write_jsonl(rows(), file)


def _write_jsonl(rows: Iterator[dict[str, Any]], file: IO[str]) -> int:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    count = 0
    for row in rows:
        file.write(f"{encode(row)}\n")
        count += 1
    return count


def _csv(rows: Rows, path: Path) -> int:
    names = list(dict.fromkeys(name for row in rows() for name in row))
    count = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        writer.writeheader()
        for row in rows():
            writer.writerow({name: _flat(value) for name, value in row.items()})
            count += 1
    return count


def _parquet(rows: Rows, path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "frames") from None
    kinds = _kinds(rows())
    types = {bool: pa.bool_(), int: pa.int64(), float: pa.float64(), str: pa.string()}
    schema = pa.schema([(_text(name), types[kind]) for name, kind in kinds.items()])
    count = 0
    left = rows()
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(itertools.islice(left, _BATCH)):
            columns = [[_cell(row.get(name), kind) for row in batch] for name, kind in kinds.items()]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            count += len(batch)
    return count


def _kinds(rows: Iterator[Mapping[str, Any]]) -> dict[str, type]:
    """The one kind that holds all values of each column."""
    seen: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            kinds = seen.setdefault(name, set())
            if value is not None:
                whole = type(value) is int and -_INT64 <= value < _INT64
                kinds.add(type(value) if whole or type(value) in (bool, float) else str)
    return {
        name: float if kinds == {int, float} else kinds.pop() if len(kinds) == 1 else str
        for name, kinds in seen.items()
    }


def _cell(value: Any, kind: type) -> Any:
    if value is None or kind is not str:
        return value
    return _text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _flat(value: Any) -> Any:
    """A value as a cell of CSV."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | tuple | dict) else value


def _text(value: str) -> str:
    return value.encode("utf-8", "backslashreplace").decode()
