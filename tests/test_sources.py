"""Reading rows from files, frames and Python, with stable ids and every bad row named."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
import json
import math
import time
import tracemalloc
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError, ItemError, MissingExtraError, UnknownNameError
from evenhand.item import Item, Turn
from evenhand.sources import BadRow, IdBook, open_source, read_items
from item_specs import SPEC

TALK = [{"user": "Hi", "assistant": "你好 🙂"}]
ROWS: list[dict[str, Any]] = [
    {"question": 'Is "1,5" one\nnumber?', "answer": "yes\r\nno", "harmful": True, "score": 1.0, "history": TALK},
    {"question": "太短", "answer": "", "harmful": False, "score": 0.25, "history": []},
    {"question": "again", "answer": "same 🙂", "harmful": None, "score": None, "history": None},
    {"question": "again", "answer": "same 🙂", "harmful": None, "score": None, "history": None},
]
for _number, _row in enumerate(ROWS):
    _row["tag"] = f"t{_number}"
SMALL = '{"question": "q", "answer": "a"}\n'


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def json_lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def csv_text(rows: list[dict[str, Any]], **options: Any) -> str:
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **options)
    writer.writeheader()
    for row in rows:
        writer.writerow({k: json.dumps(v) if isinstance(v, list) else v for k, v in row.items()})
    return text.getvalue()


def parquet(path: Path) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    return path


SOURCES: dict[str, Callable[[Path], Any]] = {
    "rows": lambda folder: ROWS,
    "generator": lambda folder: iter(ROWS),
    "jsonl": lambda folder: write(folder / "d.jsonl", json_lines(ROWS)),
    "bom": lambda folder: write(folder / "d.ndjson", b"\xef\xbb\xbf" + json_lines(ROWS).encode()),
    "crlf": lambda folder: write(folder / "d.jsonl", json_lines(ROWS).replace("\n", "\r\n\r\n")),
    "json": lambda folder: write(folder / "d.json", json.dumps(ROWS)),
    "json object": lambda folder: write(folder / "d.JSON", json.dumps({"version": 1, "rows": ROWS})),
    "csv": lambda folder: write(folder / "d.csv", csv_text(ROWS)),
    "csv bom": lambda folder: write(folder / "d.csv", "\ufeff" + csv_text(ROWS, quoting=csv.QUOTE_ALL)),
    "tsv": lambda folder: str(write(folder / "d.tsv", csv_text(ROWS, delimiter="\t", lineterminator="\n"))),
    "parquet": lambda folder: parquet(folder / "d.parquet"),
    "pandas": lambda folder: pandas.DataFrame(ROWS),
    "pandas from parquet": lambda folder: pandas.read_parquet(parquet(folder / "d.parquet")),
    "polars": lambda folder: polars.DataFrame(ROWS),
    "polars lazy": lambda folder: polars.LazyFrame(ROWS),
    "pyarrow": lambda folder: pyarrow.Table.from_pylist(ROWS),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_rows_are_the_same_items_from_every_source(kind: str, tmp_path: Path) -> None:
    """Ids, fields and extra columns don't depend on the file format or frame library."""
    expected = list(read_items(ROWS, SPEC))
    items = list(read_items(SOURCES[kind](tmp_path), SPEC))
    assert all(isinstance(item, Item) for item in items)
    assert [(i.id, i.row, i.fields, i.extra) for i in items] == [(i.id, i.row, i.fields, i.extra) for i in expected]
    assert items[0].fields["history"] == (Turn("Hi", "你好 🙂"),)
    assert items[0].fields["answer"] == "yes\r\nno"
    assert items[3].id == f"{items[2].id}-1"


def good(rows: Iterator[Item | BadRow]) -> list[Item]:
    found = list(rows)
    assert [row for row in found if isinstance(row, BadRow)] == []
    return [row for row in found if isinstance(row, Item)]


def bad(rows: Iterator[Item | BadRow]) -> list[tuple[int, int | None, str]]:
    """(row, line, message) of each problem."""
    return [(r.row, p.line, p.message) for r in rows if isinstance(r, BadRow) for p in r.problems]


def test_places_name_file_and_line_or_row(tmp_path: Path) -> None:
    """An item says where it came from; blank lines count as lines, not as rows."""
    path = write(tmp_path / "d.jsonl", "\n" + SMALL + "  \r\n" + SMALL)
    assert [(i.row, i.place) for i in good(read_items(path, SPEC))] == [(0, f"{path}:2"), (1, f"{path}:4")]
    path = write(tmp_path / "d.csv", csv_text(ROWS))
    assert [i.place for i in good(read_items(path, SPEC))] == [f"{path}:{line}" for line in (2, 5, 6, 7)]
    path = parquet(tmp_path / "d.parquet")
    assert good(read_items(path, SPEC))[1].place == f"{path} row 2"
    assert good(read_items(ROWS, SPEC))[1].place == "row 2"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"question": "q", "answer": "\xff"}', "not UTF-8: byte 0xff at position 30"),
        (b'{"question": "q"', "not JSON: Expecting ',' delimiter at column 17"),
        (b'{"question": "q', "not JSON: Unterminated string starting at column 14"),
        (b'{"id": ' + b"9" * 5000 + b"}", "a number of too many digits"),
        (b'["q", "a"]', "not a JSON object"),
        (b'{"question": "q", "answer": "a", "answer": "b"}', "the key 'answer' stands twice in one object"),
        (b'{"question": "q", "answer": "a", "m": {"k": 1, "k": 1}}', "the key 'k' stands twice in one object"),
        (b'{"question": "q", "answer": "a", "m": NaN}', "NaN is no finite number"),
        (b'{"question": "q", "answer": "a", "m": -Infinity}', "-Infinity is no finite number"),
        (b'{"question": "q", "answer": "a", "m": 1e999}', "1e999 is no finite number"),
        (b'{"question": "q", "answer": "\\ud83d"}', "answer holds half a surrogate pair, which is no text"),
        (b'{"question": "q"}', "no answer; columns: question"),
        (b'{"question": "q", "answer": "a", "m": ' + b"[" * 100_000, "JSON nested too deeply"),
        (b'{"question": "q", "answer": "' + b"a" * 3_000_000 + b'"}', "the row has 3,000,032 bytes, more than the"),
        (b'{"question": "q", "answer": "a", "id": 1}', "the id '1' was given before, in line 1"),
    ],
)
def test_a_bad_json_line_is_named_and_reading_goes_on(line: bytes, said: str, tmp_path: Path) -> None:
    """Each kind of bad line gives one bad row with its line; the rows around it are read."""
    before = b'{"question": "q", "answer": "a", "id": 1}\n'
    path = write(tmp_path / "d.jsonl", before + b"\n" + line + b"\n" + SMALL.encode())
    rows = list(read_items(path, SPEC))
    assert [type(row) for row in rows] == [Item, BadRow, Item]
    ((row, number, message),) = bad(iter(rows))
    assert (row, number) == (1, 3)
    assert message.startswith(said)


def test_csv_lines_are_counted_through_cells_of_several_lines(tmp_path: Path) -> None:
    """A bad CSV row is named by the line it begins on, and the rows after it are read."""
    text = (
        b'question,answer,harmful\n"two\nlines",a,\nq,a,,x\nq,a\n\nq,\xff,no\nq,a,maybe\n"q"x,a,no\nq,"a\r\nb",no\n"q,a'
    )
    rows = list(read_items(write(tmp_path / "d.csv", text), SPEC))
    assert bad(iter(rows)) == [
        (1, 4, "4 cells, but the header has 3"),
        (2, 5, "2 cells, but the header has 3"),
        (3, 7, "not UTF-8"),
        (4, 8, "harmful is 'maybe' where true or false is due"),
        (5, 9, "not CSV: ',' expected after '\"'"),
        (7, 12, "a quote opened here is not closed"),
    ]
    assert [row.row for row in rows if isinstance(row, Item)] == [0, 6]
    assert next(row.raw for row in rows if row.row == 3 and isinstance(row, BadRow))["answer"] == "\ufffd"


def test_a_huge_csv_cell_is_read_or_refused_with_its_size(tmp_path: Path) -> None:
    """The csv module's own limit on cells is out of the way; ours speaks of the row."""
    path = write(tmp_path / "d.csv", csv_text([{"question": "q", "answer": "a" * 1_000_000}]))
    assert len(good(read_items(path, SPEC))[0].fields["answer"]) == 1_000_000
    assert bad(read_items(path, SPEC, max_bytes=1000)) == [
        (0, 2, "the row has 1,000,015 bytes, more than the limit of 1,000")
    ]


def test_a_csv_header_must_be_clear(tmp_path: Path) -> None:
    """Two columns of one name, or an unreadable header, spoil the whole file."""
    with pytest.raises(ItemError, match=r"d.csv:1: two columns have the name 'a'"):
        list(read_items(write(tmp_path / "d.csv", "a,b,a\n1,2,3\n"), SPEC))
    with pytest.raises(ItemError, match=r"d.csv:1: not UTF-8"):
        list(read_items(write(tmp_path / "d.csv", b"\xff,b\n1,2\n"), SPEC))
    with pytest.raises(ItemError, match="a quote opened here"):
        list(read_items(write(tmp_path / "d.csv", '"a,b\n1,2\n'), SPEC))


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "frame"])
def test_a_table_without_a_needed_column_fails_once(name: str, tmp_path: Path) -> None:
    """A missing column of a table is one mistake of the table, not one of each row."""
    table = pyarrow.Table.from_pylist([{"question": "q", "reply": "a"}] * 3)
    source: Any = table
    if name == "d.csv":
        source = write(tmp_path / name, csv_text(table.to_pylist()))
    elif name == "d.parquet":
        source = tmp_path / name
        pyarrow.parquet.write_table(table, source)
    with pytest.raises(ItemError, match="no answer; columns: question, reply") as caught:
        list(read_items(source, SPEC))
    assert len(caught.value.problems) == 1
    with pytest.raises(ItemError, match="no column 'n' for score"):
        list(read_items(source, SPEC, mapping={"answer": "reply", "score": "n"}))
    assert len(good(read_items(source, SPEC, mapping={"answer": "reply"}))) == 3


def test_a_mapped_column_that_no_row_has_is_an_error() -> None:
    """A --map to a column that never comes is not silently nothing; one that comes sometimes is fine."""
    rows = [{"question": "q", "answer": "a"}, {"question": "q", "answer": "a", "points": 1}]
    assert [i.fields["score"] for i in good(read_items(rows, SPEC, mapping={"score": "points"}))] == [None, 1]
    with pytest.raises(ItemError, match=r"no column 'point' for score; .*--map score=points"):
        list(read_items(rows, SPEC, mapping={"score": "point"}))
    with pytest.raises(UnknownNameError, match="unknown item field 'scor'"):
        read_items(rows, SPEC, mapping={"scor": "points"})


def test_an_id_given_twice_is_a_problem_of_the_second_row() -> None:
    """The message names the first row; a bad row takes no id; numbers and their text are one id."""
    rows = [
        {"id": 1, "question": "", "answer": "a"},
        {"id": 1, "question": "q", "answer": "a"},
        {"id": "2", "question": "q", "answer": "a"},
        {"id": 1.0, "question": "q", "answer": "b"},
    ]
    assert bad(read_items(rows, SPEC)) == [
        (0, None, "question is required, and blank"),
        (3, None, "the id '1' was given before, in row 2"),
    ]


def test_numbered_ids_step_around_given_ones() -> None:
    """A repeat of a row never gets an id that another row brought along."""
    row = {"question": "q", "answer": "a"}
    first = good(read_items([row], SPEC))[0].id
    rows = [{**row, "id": f"{first}-1"}, row, row, {**row, "id": f"{first}-3"}, row]
    ids = [i.id for i in good(read_items(rows, SPEC))]
    assert ids == [f"{first}-1", first, f"{first}-2", f"{first}-3", f"{first}-4"]


def test_many_repeats_are_numbered_in_turn() -> None:
    """The book counts on from where it was."""
    with_book = IdBook()
    assert [with_book.number("d", n) for n in range(2000)][-1] == "d-1999"
    with_book.close()


def test_bad_rows_of_python_and_frames_name_the_row() -> None:
    """Without lines, the place is the 1-based row."""
    rows: list[Any] = [["q", "a"], {1: "q"}, {"question": "q", "answer": "a"}, {"question": True, "answer": "a"}]
    found = [row for row in read_items(rows, SPEC) if isinstance(row, BadRow)]
    assert [row.problems[0].render("x") for row in found] == [
        "x row 1: a list where a mapping of columns is due",
        "x row 2: a column name that is not text",
        "x row 4: question is a truth value where text is due",
    ]


def test_values_of_frames_become_plain() -> None:
    """NaN and its like are null; dates and decimals become text, bytes a note, NumPy values Python ones."""
    frame = pandas.DataFrame(
        {
            "question": ["q", "r"],
            "answer": [float("nan"), 5],
            "harmful": pandas.array([pandas.NA, True], dtype="boolean"),
            "at": [pandas.NaT, pandas.Timestamp("2024-05-06")],
            "price": [None, Decimal("1.50")],
            "blob": [b"abc", None],
            "n": [1, 2],
        }
    )
    first, second = good(read_items(frame, SPEC))
    assert (first.fields["answer"], first.fields["harmful"]) == (None, None)
    assert (second.fields["answer"], second.fields["harmful"]) == ("5", True)
    assert first.extra == {"at": None, "price": None, "blob": "<3 bytes>", "n": 1}
    assert second.extra == {"at": "2024-05-06T00:00:00", "price": "1.50", "blob": None, "n": 2}
    assert type(first.extra["n"]) is int


def test_nan_in_python_rows_is_null() -> None:
    """Records of a data frame carry NaN for missing values."""
    (item,) = good(read_items([{"question": "q", "answer": math.nan}], SPEC))
    assert item.fields["answer"] is None


@pytest.mark.parametrize(
    ("name", "content"),
    [("d.jsonl", ""), ("d.jsonl", b"\xef\xbb\xbf\n \n"), ("d.csv", ""), ("d.csv", "question,answer\n"),
     ("d.json", " "), ("d.json", "[]")],
)  # fmt: skip
def test_a_file_without_rows_is_an_error(name: str, content: str | bytes, tmp_path: Path) -> None:
    """No rows is a mistake, not a finished job."""
    with pytest.raises(ItemError, match=f"{name}: no rows"):
        list(read_items(write(tmp_path / name, content), SPEC))


@pytest.mark.parametrize("source", [[], polars.DataFrame({"question": [], "answer": []})])
def test_nothing_at_all_is_an_error(source: Any) -> None:
    """An empty list or frame has no rows either."""
    with pytest.raises(ItemError, match="no rows"):
        list(read_items(source, SPEC))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"a": [], "b": []}', "neither a list of rows"),
        ("3", "neither a list of rows"),
        ('[{"a": 1},\n {"a": 1, }]', "not JSON: .* at line 2, column"),
        ('[{"a": 1, "a": 2}]', "the key 'a' stands twice"),
        (b'["\xff"]', "not UTF-8"),
    ],
)
def test_a_json_document_that_can_not_be_read_is_an_error(content: str | bytes, said: str, tmp_path: Path) -> None:
    """A .json file is one document: a mistake in it spoils all of it."""
    with pytest.raises(InputError, match=said):
        list(read_items(write(tmp_path / "d.json", content), SPEC))


def test_a_json_list_may_hold_bad_rows(tmp_path: Path) -> None:
    """An element that is no object is a bad row like any other."""
    path = write(tmp_path / "d.json", f"[{SMALL}, 3]")
    assert bad(read_items(path, SPEC)) == [(1, None, "not a JSON object")]


def test_a_json_document_too_big_to_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over the limit the advice is to convert to JSON lines."""
    monkeypatch.setattr("evenhand.rows._MAX_JSON_BYTES", 10)
    with pytest.raises(InputError, match="convert it to JSON lines"):
        list(read_items(write(tmp_path / "d.json", f"[{SMALL}]"), SPEC))


def test_sources_that_can_not_be_opened_say_why(tmp_path: Path) -> None:
    """No file, a folder, an unknown ending or format, and things without rows."""
    with pytest.raises(InputError, match=r"no such file: .*none\.jsonl"):
        open_source(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="is a folder"):
        open_source(tmp_path)
    with pytest.raises(InputError, match=r"--format jsonl\|json\|csv\|tsv\|parquet"):
        open_source(write(tmp_path / "d.txt", SMALL))
    with pytest.raises(UnknownNameError, match="did you mean jsonl"):
        open_source(tmp_path / "d.txt", format="jsonlines")
    with pytest.raises(InputError, match="a dict has no rows"):
        open_source({"question": ["q"]})
    with pytest.raises(InputError, match="a int has no rows"):
        open_source(3)
    with pytest.raises(InputError, match="can't be read as Parquet"):
        list(read_items(write(tmp_path / "d.parquet", "no"), SPEC))
    assert len(good(read_items(tmp_path / "d.txt", SPEC, format="jsonl"))) == 1


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The optional package is asked for by its extra."""
    path = parquet(tmp_path / "d.parquet")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"evenhand\[frames\]"):
        list(read_items(path, SPEC))


def test_two_columns_of_one_name_spoil_a_frame(tmp_path: Path) -> None:
    """Arrow and pandas allow them; which one is meant can't be told."""
    with pytest.raises(InputError, match="have the same name"):
        open_source(pandas.DataFrame([["a", "b"]], columns=["x", "x"]))
    table = pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 2, names=["x", "x"])
    pyarrow.parquet.write_table(table, tmp_path / "d.parquet")
    for source in (table, tmp_path / "d.parquet"):
        with pytest.raises(InputError, match=r"two columns have the name 'x'|have the same name"):
            list(read_items(source, SPEC))


@pytest.mark.parametrize("format", [None, "csv"])
def test_standard_input_is_read_as_json_lines_or_as_told(format: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """"-" reads JSON lines; --format reads another format."""  # fmt: skip
    text = SMALL if format is None else "question,answer\nq,a\n"
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    (item,) = good(read_items("-", SPEC, format=format))
    assert item.fields["answer"] == "a"
    assert item.place.startswith("standard input:")


def numbered(count: int) -> Iterator[dict[str, Any]]:
    return ({"question": f"q{n}", "answer": "a" if n % 10 else True} for n in range(count))


def test_limit_reads_only_the_first_rows() -> None:
    """Rows past the limit are not read at all."""

    def rows() -> Iterator[dict[str, Any]]:
        yield from numbered(5)
        raise AssertionError("read too far")

    assert [row.row for row in read_items(rows(), SPEC, limit=5)] == [0, 1, 2, 3, 4]
    with pytest.raises(InputError, match="limit must be a whole number from 1 to 1,000"):
        read_items([], SPEC, limit=0)


def test_a_sample_is_of_good_rows_in_input_order_and_repeatable() -> None:
    """The seed decides; bad rows are told besides; ids and positions are those of the whole file."""
    everything = {item.row: item for item in read_items(numbered(200), SPEC)}
    found = list(read_items(numbered(200), SPEC, sample=20, seed=3))
    items = [row for row in found if isinstance(row, Item)]
    assert len(found) == 20 + 20
    assert [item.row for item in items] == sorted(item.row for item in items)
    assert all(item == everything[item.row] for item in items)
    assert found == list(read_items(numbered(200), SPEC, sample=20, seed=3))
    assert found != list(read_items(numbered(200), SPEC, sample=20, seed=4))
    assert len([r for r in read_items(numbered(20), SPEC, sample=50) if isinstance(r, Item)]) == 18


def test_a_sample_is_uniform() -> None:
    """Over many seeds every row is drawn about equally often."""
    rows = [{"question": f"q{n}", "answer": "a"} for n in range(10)]
    drawn = [0] * 10
    for seed in range(500):
        for item in good(read_items(rows, SPEC, sample=3, seed=seed)):
            drawn[item.row] += 1
    assert sum(drawn) == 1500
    assert min(drawn) > 110  # 150 expected, standard deviation 10.2
    assert max(drawn) < 190


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.text(min_size=1), st.text(), st.text()), min_size=1, max_size=5))
def test_any_text_survives_json_lines_and_csv(tmp_path: Path, texts: list[tuple[str, str, str]]) -> None:
    """Newlines, quotes, controls, emoji: what was written is read, and both files give the same ids."""
    rows = [{"question": f"q{question}", "answer": answer, "extra": extra} for question, answer, extra in texts]
    from_json = good(read_items(write(tmp_path / "d.jsonl", json_lines(rows)), SPEC))
    from_csv = good(read_items(write(tmp_path / "d.csv", csv_text(rows)), SPEC))
    assert [{**i.extra, "question": i.fields["question"], "answer": i.fields["answer"]} for i in from_json] == rows
    assert [(i.id, i.fields, i.extra) for i in from_csv] == [(i.id, i.fields, i.extra) for i in from_json]


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_memory_does_not_grow_with_rows(kind: str, tmp_path: Path) -> None:
    """Eight times the rows take about the same memory (kept items would take over 2 MB more)."""

    def peak(count: int) -> int:
        rows = [{"question": f"q{n}", "answer": "a" * 50} for n in range(count)]
        path = tmp_path / f"{count}.{kind}"
        if kind == "parquet":
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=500)
        else:
            write(path, json_lines(rows) if kind == "jsonl" else csv_text(rows))
        del rows
        tracemalloc.start()
        try:
            assert sum(1 for _ in read_items(path, SPEC)) == count
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    small, large = peak(500), peak(4_000)
    assert large < small + 300_000


def test_a_file_is_closed_when_reading_stops_early(tmp_path: Path) -> None:
    """A reader that is dropped leaves nothing open (an open file would be a warning, so an error here)."""
    path = write(tmp_path / "d.jsonl", SMALL * 3)
    rows = read_items(path, SPEC)
    assert len(list(itertools.islice(rows, 1))) == 1
    del rows
    path.unlink()
    assert not path.exists()


def test_values_of_parquet_become_plain_data(tmp_path: Path) -> None:
    """Lists, structs, decimals, dates, times, bytes and nulls of Parquet are data that JSON has too."""
    table = pyarrow.table(
        {
            "list": pyarrow.array([[1, None], None]),
            "struct": pyarrow.array([{"a": 1, "b": ["x"]}, None]),
            "decimal": pyarrow.array([Decimal("1.20"), None]),
            "date": pyarrow.array([datetime.date(2020, 1, 2), None]),
            "time": pyarrow.array([datetime.datetime(2020, 1, 2, 3, 4), None], pyarrow.timestamp("us", "UTC")),
            "bytes": pyarrow.array([b"\xff\x00", None]),
            "big": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
            "null": pyarrow.nulls(2),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    first, second = (raw.values for raw in open_source(tmp_path / "x.parquet").rows)
    assert first == {
        "list": [1, None],
        "struct": {"a": 1, "b": ["x"]},
        "decimal": "1.20",
        "date": "2020-01-02",
        "time": "2020-01-02T03:04:00+00:00",
        "bytes": "<2 bytes>",
        "big": 2**64 - 1,
        "null": None,
    }
    assert second == dict.fromkeys(first)


@pytest.mark.parametrize("column", ["id", "question", "answer", "history"])
@pytest.mark.parametrize("kind", [pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary(1)])
def test_bytes_where_a_field_or_an_id_is_read_are_a_mistake(
    column: str, kind: pyarrow.DataType, tmp_path: Path
) -> None:
    """Bytes are neither judged nor an id: the column is told with a remedy; beside the fields they are noted."""
    table = {"id": ["a"], "question": ["q"], "answer": ["x"], "history": [[{"user": "u", "assistant": "v"}]]}
    binary = pyarrow.array([b"\xff"], kind)
    if column == "history":
        binary = pyarrow.array([[{"user": b"u", "assistant": b"v"}]])
    pyarrow.parquet.write_table(pyarrow.table({**table, column: binary, "blob": binary}), tmp_path / "x.parquet")
    (row,) = read_items(tmp_path / "x.parquet", SPEC)
    assert isinstance(row, BadRow)
    (problem,) = row.problems
    assert (
        problem.message
        == f"{column} holds bytes (<1 byte>), not text; store the column as text, as with decode('utf-8')"
    )
    pyarrow.parquet.write_table(pyarrow.table({**table, "blob": binary}), tmp_path / "y.parquet")
    assert all(isinstance(good, Item) for good in read_items(tmp_path / "y.parquet", SPEC))


def test_bytes_among_responses_are_a_mistake(tmp_path: Path) -> None:
    """Responses in a file of their own may not be bytes either."""
    write(tmp_path / "x.jsonl", '{"id": "a", "question": "q"}\n')
    table = pyarrow.table({"id": ["a"], "answer": pyarrow.array([b"x"])})
    pyarrow.parquet.write_table(table, tmp_path / "r.parquet")
    with pytest.raises(ItemError, match="answer holds bytes"):
        list(read_items(tmp_path / "x.jsonl", SPEC, responses=tmp_path / "r.parquet"))


def test_a_parquet_value_that_python_lacks_is_told_with_row_and_column(tmp_path: Path) -> None:
    """A date beyond the year 9999 spoils its row, not the file."""
    far = pyarrow.array([1, 9223372036854775, 2], pyarrow.timestamp("s"))
    pyarrow.parquet.write_table(
        pyarrow.table({"question": ["a", "b", "c"], "answer": ["x", "y", "z"], "at": far}), tmp_path / "x.parquet"
    )
    good, bad, other = read_items(tmp_path / "x.parquet", SPEC)
    assert isinstance(good, Item) and isinstance(bad, BadRow) and isinstance(other, Item)
    assert [p.path for p in bad.problems] == ["row 2"]
    assert "at holds a timestamp" in bad.problems[0].message
    assert (other.row, other.extra["at"]) == (2, "1970-01-01T00:00:02")


def test_many_columns_take_time_in_proportion(tmp_path: Path) -> None:
    """A table of 40,000 columns is read within seconds."""
    names = [f"c{n}" for n in range(40_000)]
    (tmp_path / "x.csv").write_text(",".join([*names, "question", "answer"]) + "\n" + "x," * 40_001 + "x\n")
    start = time.monotonic()
    (item,) = read_items(tmp_path / "x.csv", SPEC)
    assert isinstance(item, Item) and len(item.extra) == 40_000
    assert time.monotonic() - start < 10
