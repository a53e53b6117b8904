"""Rows to files: JSON lines, CSV, TSV, Parquet; written beside and renamed, so that no half file is left."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from evenhand.errors import InputError, MissingExtraError

_BATCH = 5000
Rows = Iterator[Mapping[str, Any]]


def write_rows(rows: Rows, target: str) -> int:
    """Write rows to a file whose ending names the format, or as JSON lines to stdout for "-".

    Returns:
        The number of rows written.

    Raises:
        InputError: an ending that names no format, or a folder that can't be written.
        MissingExtraError: Parquet without pyarrow.
    """
    if target == "-":
        return _write_jsonl(rows, sys.stdout)
    path = Path(target)
    writers: dict[str, Callable[[Rows, Path], int]] = {
        ".jsonl": _jsonl,
        ".csv": _csv,
        ".tsv": _csv,
        ".parquet": _parquet,
    }
    writer = writers.get(path.suffix.lower())
    if writer is None:
        raise InputError(f"{target}: no known format", hint=f"end the name in {', '.join(writers)}")
    beside = path.with_name(f".{path.name}.part{path.suffix}")
    try:
        count = writer(rows, beside)
        beside.replace(path)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
    return count


def _jsonl(rows: Rows, path: Path) -> int:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        return _write_jsonl(rows, file)


def _write_jsonl(rows: Rows, file: IO[str]) -> int:
    count = 0
    for row in rows:
        file.write(json.dumps(dict(row), ensure_ascii=False) + "\n")
        count += 1
    return count


def _csv(rows: Rows, path: Path) -> int:
    """All columns that occur; a first pass over the rows would read the store twice, so they are spooled."""
    kept = list(rows)
    names = list(dict.fromkeys(name for row in kept for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, names, delimiter="\t" if ".tsv" in path.suffix else ",")
        writer.writeheader()
        writer.writerows(kept)
    return len(kept)


def _parquet(rows: Rows, path: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtraError("pyarrow", "frames") from None
    table = pa.Table.from_pylist([dict(row) for row in rows])
    pq.write_table(table, path)
    return int(table.num_rows)
