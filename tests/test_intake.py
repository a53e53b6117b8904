"""Taking in rows: the same in groups as one by one, and once for the same input."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand import intake
from evenhand import run as run_module
from evenhand.errors import RunError
from evenhand.item import Item
from evenhand.store import Store, StoredRow
from runs import TWO, rows, run_it, statuses, write_jsonl

Reading = list[tuple[str | None, str, int]]  # id (None for a bad row), text, another column
READINGS = st.lists(
    st.tuples(st.none() | st.sampled_from("abcdef"), st.sampled_from(["x", "x", "x", "y"]), st.integers(0, 1)),
    unique_by=lambda row: row[0] or object(),
    max_size=8,
)


def _rows(reading: Reading) -> list[StoredRow]:
    return [
        StoredRow(seq, None, "bad", {"n": n})
        if own is None
        else StoredRow(seq, Item(own, seq, {"answer": text}, {"n": n}), None, {})
        for seq, (own, text, n) in enumerate(reading)
    ]


def _taken_in(readings: list[Reading], texts: bool, group: int) -> list[Any]:
    """What each reading changed and left, taken in by groups of so many rows."""
    found: list[Any] = []
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(intake, "_GROUP", group)
        with Store.create(Path(folder) / "run", {}) as store:
            for reading in readings:
                found.append(store.add_rows(_rows(reading), texts=texts))
                found.append(store._db.execute("SELECT * FROM item ORDER BY seq").fetchall())
                found.append(sorted(item.id for item in store.items(read_now=True)))
                found.append(store.count_read_now())
    return found


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(st.lists(READINGS, min_size=1, max_size=3), st.booleans())
def test_rows_in_groups_are_taken_in_as_one_by_one(readings: list[Reading], texts: bool) -> None:
    """Whatever moved, changed, was mended or is new."""
    one_by_one = _taken_in(readings, texts, 1)
    assert _taken_in(readings, texts, 3) == one_by_one
    assert _taken_in(readings, texts, 500) == one_by_one


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How often an input was read since it was last asked."""
    count = 0
    read = run_module.read_items

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        return read(*args, **options)

    def since() -> int:
        nonlocal count
        found, count = count, 0
        return found

    monkeypatch.setattr(run_module, "read_items", counted)
    return since


def test_an_input_that_is_as_it_was_is_not_read_again(tmp_path: Path, reads: Callable[[], int]) -> None:
    """A resume finds what is left to ask, with more repeats or a copy of the file under another name."""
    out, file = tmp_path / "run", write_jsonl(tmp_path / "a.jsonl", rows(5))
    run_it(str(file), TWO, "fake", out)
    assert reads() == 1
    with Store.open(out, write=True) as store:
        store._db.execute("DELETE FROM trial WHERE item IN ('i1', 'i3')")
    copy = tmp_path / "b.jsonl"
    copy.write_bytes(file.read_bytes())
    assert run_it(str(copy), TWO, "fake", out).asked == 2
    assert run_it(str(file), TWO, "fake", out, repeats=2).asked == 5
    assert (reads(), len(statuses(out))) == (0, 10)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"rows": rows(6)}, id="more rows"),
        pytest.param({"rows": [{**row, "n": 1} for row in rows(5)]}, id="another column"),
        pytest.param({"limit": 3}, id="a limit"),
        pytest.param({"sample": 3}, id="a sample"),
        pytest.param({"skip_bad": True}, id="bad rows left out"),
        pytest.param({"map": {"id": "id"}}, id="a mapping"),
        pytest.param({"store_texts": False}, id="no texts kept"),
        pytest.param({"frame": True}, id="rows of Python"),
    ],
)
def test_what_may_read_other_rows_is_read(tmp_path: Path, reads: Callable[[], int], change: dict[str, Any]) -> None:
    """Whatever decides the rows is different, or nothing tells whether it is."""
    out, file = tmp_path / "run", write_jsonl(tmp_path / "a.jsonl", rows(5))
    run_it(str(file), TWO, "fake", out)
    given = change.pop("rows", rows(5))
    write_jsonl(file, given)
    source = given if change.pop("frame", False) else str(file)
    run_it(source, TWO, "fake", out, **change)
    assert reads() == 2


def test_a_part_of_the_input_leaves_nothing_to_know_it_by(tmp_path: Path, reads: Callable[[], int]) -> None:
    """After a run of some rows among those stored, the next is read: the former may have changed them."""
    out, file = tmp_path / "run", str(write_jsonl(tmp_path / "a.jsonl", rows(5)))
    run_it(file, TWO, "fake", out)
    assert [run_it(file, TWO, "fake", out, limit=limit).asked for limit in (2, None, None)] == [0, 0, 0]
    assert reads() == 3


def test_a_changed_row_is_found_where_the_size_is_the_same(tmp_path: Path) -> None:
    """A file is known by its bytes."""
    out, file = tmp_path / "run", write_jsonl(tmp_path / "a.jsonl", rows(5))
    run_it(str(file), TWO, "fake", out)
    file.write_bytes(file.read_bytes().replace(b"It is 3", b"It is 4"))
    with pytest.raises(RunError, match="item i3: its content changed"):
        run_it(str(file), TWO, "fake", out)


def test_texts_that_were_not_kept_are_read_again(tmp_path: Path, reads: Callable[[], int]) -> None:
    """A run without texts has to read them to ask, whatever a later command says."""
    out, file = tmp_path / "run", str(write_jsonl(tmp_path / "a.jsonl", rows(2)))
    run_it(file, TWO, "fake", out, store_texts=False)
    assert [run_it(file, TWO, "fake", out, repeats=repeats).asked for repeats in (2, 3)] == [2, 2]
    assert reads() == 3
