"""Rows as files: all formats alike, all columns, whole files only, little memory."""

from __future__ import annotations

import csv
import json
import os
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from evenhand.errors import InputError
from evenhand.export import refuse_overwriting, write_rows
from runs import TWO, rows, run_it

ROWS: list[dict[str, Any]] = [
    {"id": "a", "n": 1, "text": 'says "ja",\nand more', "ok": True},
    {"id": "b", "n": None, "text": "评", "late": 0.5},
    {"id": "c", "n": 3, "text": "", "ok": None, "late": 1, "mixed": 1},
    {"id": "d", "mixed": "x", "huge": 1 << 70, "half": "\ud800", "none": None},
]
COLUMNS = ["id", "n", "text", "ok", "late", "mixed", "huge", "half", "none"]


def _write(target: Path, rows: list[dict[str, Any]] = ROWS) -> int:
    return write_rows(lambda: iter(rows), str(target))


def test_json_lines_hold_the_rows_as_they_are(tmp_path: Path) -> None:
    """One object a line, in order; half a surrogate pair survives as its escape."""
    assert _write(tmp_path / "x.jsonl") == 4
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()] == ROWS


@pytest.mark.parametrize(("name", "delimiter"), [("x.csv", ","), ("x.tsv", "\t"), ("X.TSV", "\t")])
def test_tables_have_every_column_that_occurs(tmp_path: Path, name: str, delimiter: str) -> None:
    """Columns of later rows are there too; what a row lacks is empty."""
    assert _write(tmp_path / name) == 4
    with (tmp_path / name).open(encoding="utf-8", newline="") as file:
        told = list(csv.reader(file, delimiter=delimiter))
    assert told[0] == COLUMNS
    assert told[1] == ["a", "1", 'says "ja",\nand more', "True", "", "", "", "", ""]
    assert told[4] == ["d", "", "", "", "", "x", str(1 << 70), "\\ud800", ""]


def test_parquet_columns_have_one_kind_each(tmp_path: Path) -> None:
    """Numbers and truth values keep their kind; mixed kinds, too big numbers and empty columns are text."""
    assert _write(tmp_path / "x.parquet") == 4
    table = pq.read_table(tmp_path / "x.parquet")
    kinds = ["string", "int64", "string", "bool", "double", "string", "string", "string", "string"]
    assert [(f.name, str(f.type)) for f in table.schema] == list(zip(COLUMNS, kinds, strict=True))
    assert table.column("n").to_pylist() == [1, None, 3, None]
    assert table.column("late").to_pylist() == [None, 0.5, 1.0, None]
    assert table.column("mixed").to_pylist() == [None, None, "1", "x"]
    assert table.column("huge").to_pylist()[3] == str(1 << 70)
    assert table.column("half").to_pylist()[3] == "\\ud800"


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_no_rows_make_an_empty_file(tmp_path: Path, name: str) -> None:
    """An empty run exports to a file that can be opened."""
    assert _write(tmp_path / name, []) == 0
    assert (tmp_path / name).exists()


def test_stdout_gets_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """ "-" writes JSON lines to stdout."""
    assert write_rows(lambda: iter(ROWS[:2]), "-") == 2
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == ROWS[:2]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_an_interrupted_export_leaves_the_old_file(tmp_path: Path, name: str) -> None:
    """A file is replaced whole or not at all, and nothing half is left beside it."""
    (tmp_path / name).write_text("old")

    def broken() -> Iterator[dict[str, Any]]:
        yield ROWS[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(broken, str(tmp_path / name))
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(name, "old")]


def test_a_bad_target_is_an_input_error(tmp_path: Path) -> None:
    """An unknown ending, a missing folder and a folder as target are told apart from defects."""
    with pytest.raises(InputError, match="no known format"):
        _write(tmp_path / "x.doc")
    with pytest.raises(InputError, match="no folder"):
        _write(tmp_path / "no" / "x.csv")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(InputError, match="directory"):
        _write(tmp_path / "dir.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["dir.csv"]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, name: str) -> None:
    """Many rows need no more memory than one batch."""

    def many() -> Iterator[dict[str, Any]]:
        for k in range(6000):
            yield {"id": str(k), "text": f"{k}" + "x" * 2000}

    _write(tmp_path / name)  # imports aside
    tracemalloc.start()
    assert write_rows(many, str(tmp_path / name)) == 6000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 9_000_000  # the rows have twice that


@pytest.mark.parametrize("name", ["run.sqlite", "lock"])
def test_a_file_of_any_run_is_never_written(tmp_path: Path, name: str) -> None:
    """It is refused by whatever name, even if no row comes from it; where there is no run, the name is free."""
    run_it(rows(1), TWO, "fake", tmp_path / "run")
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "run" / name)
    for target in (tmp_path / "run" / name, tmp_path / "run" / ".." / "run" / name, tmp_path / "x.jsonl"):
        with pytest.raises(InputError, match="is a file of the run in"):
            refuse_overwriting(target, ["gone.jsonl"])
    refuse_overwriting(tmp_path / name, ["gone.jsonl"])


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to, None])
def test_the_file_that_rows_come_from_is_never_written(tmp_path: Path, link: Any) -> None:
    """A source as target is refused by whatever name, and nothing of it is lost."""
    source = tmp_path / "in.jsonl"
    source.write_text("precious")
    target = source if link is None else tmp_path / "x.jsonl"
    if link is not None:
        link(target, source)
    with pytest.raises(InputError, match="is a file that this output is made of"):
        write_rows(lambda: iter(ROWS), str(target), sources=["gone.jsonl", source])
    assert source.read_text() == target.read_text() == "precious"


def test_a_link_as_target_stays_a_link(tmp_path: Path) -> None:
    """The file that a link names is replaced, not the link."""
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    (tmp_path / "real.jsonl").write_text("old")
    assert _write(tmp_path / "link.jsonl") == 4
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len((tmp_path / "real.jsonl").read_text("utf-8").splitlines()) == 4


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """A named pipe as target gets the rows; no file takes its place."""
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        read = pool.submit(pipe.read_text, "utf-8")
        assert _write(pipe) == 4
        assert len(read.result().splitlines()) == 4
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_lists_and_objects_are_json_text_in_tables(tmp_path: Path) -> None:
    """JSON lines hold them as they are; CSV and Parquet as JSON text, mixed with whatever else."""
    nested: list[dict[str, Any]] = [{"v": [1, {"评": None}]}, {"v": 2}, {"v": {"a": True}}, {"v": None}]
    for name in ("x.jsonl", "x.csv", "x.parquet"):
        assert _write(tmp_path / name, nested) == 4
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text("utf-8").splitlines()] == nested
    texts = ['[1, {"评": null}]', "2", '{"a": true}']
    assert pq.read_table(tmp_path / "x.parquet").column("v").to_pylist() == [*texts, None]
    with (tmp_path / "x.csv").open(encoding="utf-8", newline="") as file:
        assert [cells for (cells,) in csv.reader(file)] == ["v", *texts, ""]
