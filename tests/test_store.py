"""The run store: what goes in comes out, rows may not change, one writer, damage is an error."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand.errors import InputError, RunError
from evenhand.item import Item, Turn
from evenhand.judging import Answer, Exchange
from evenhand.store import SCHEMA, Store, StoredRow
from evenhand.trial import Settled, TrialKey
from evenhand.verdict import (
    Distribution,
    Failure,
    FieldOutcome,
    Reply,
    Status,
    ToolCall,
    Usage,
    Verdict,
    Violation,
)

KEY = TrialKey("a", "ab", 0)


def _row(seq: int, item_id: str, text: str = "x", **extra: object) -> StoredRow:
    return StoredRow(seq, Item(item_id, seq, {"answer": text}, extra), None, {})


def _answer(key: TrialKey = KEY) -> Answer:
    fields = {
        "rank": FieldOutcome(4, distribution=Distribution({1: 0.25, 4: 0.5}, 0.25)),
        "side": FieldOutcome("A", preset=True),
        "bad": FieldOutcome(None, Failure.OUT_OF_RANGE, "11"),
        "list": FieldOutcome(["q", {"k": 1}]),
    }
    verdict = Verdict(
        Status.UNPARSED,
        fields,
        violations=(Violation("r:a", "violation", "m"),),
        not_checked=("s",),
        failure="out_of_range",
        calls=1,
        model="m",
        usage=Usage(10, 2, 3, None, 0.5),
        reply_digests=("d",),
    )
    reply = Reply(
        text="caf\u00e9 \ud800 \x00",
        tool_calls=(ToolCall("f", '{"a": 1}'),),
        usage=Usage(10, 2, 3, None, 0.5),
        distributions={"rank": Distribution({True: 1.0}, 0.0)},
    )
    return Answer(key, verdict, (Exchange(0, "d", "tool", reply),))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "run", {"name": "é", "n": 3}) as opened:
        yield opened


def test_verdicts_and_replies_come_back_equal(store: Store) -> None:
    """A verdict and its reply survive storing, odd text and typed values included."""
    answer = _answer()
    store.append([answer])
    assert store.verdicts_of("a") == {KEY: answer.verdict}
    assert store.exchanges(KEY) == list(answer.exchanges)
    assert store.manifest == {"name": "é", "n": 3}


def test_items_come_back_equal_in_input_order(store: Store) -> None:
    """Items keep ids, fields, turns and extra columns; bad rows keep their reason."""
    item = Item("z", 1, {"answer": None, "history": (Turn("u", "a"),), "n": 2.5, "images": ("p",)}, {"system": "s"})
    bad = StoredRow(0, None, "no answer", {"question": "q"})
    assert store.add_rows([bad, StoredRow(1, item, None, {})]) == []
    first, second = store.rows()
    assert (first.item, first.problem, dict(first.raw)) == (None, "no answer", {"question": "q"})
    assert second.item == item
    assert store.count_rows() == (2, 1)
    assert store.item("z") == item
    assert store.item("nope") is None


def test_rows_in_many_pieces(store: Store) -> None:
    """Reading goes on correctly past the size of one piece, while verdicts are being written."""
    store.add_rows(_row(i, f"i{i}") for i in range(1203))
    seen = []
    for row in store.rows():
        assert row.item is not None
        seen.append(row.item.id)
        if row.seq % 400 == 0:
            store.append([_answer(TrialKey(row.item.id, "", 0))])
    assert seen == [f"i{i}" for i in range(1203)]


def test_large_rows_are_read_few_at_a_time(store: Store) -> None:
    """Rows of half a million characters come in order, without hundreds of them in memory at once."""
    text = "x" * 500_000
    store.add_rows(StoredRow(n, Item(f"q{n}", n, {"answer": text}), None, {}) for n in range(40))
    tracemalloc.start()
    try:
        assert [row.seq for row in store.rows() if row.item and row.item.fields["answer"] == text] == list(range(40))
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()


def _open(store: Store, together: str | None = "kind") -> list[str]:
    settled = Settled(("unparsed",), ("ab",), 1)
    return [item.id for item, done in store.open_items(settled, together=together) if not done]


@pytest.mark.parametrize("texts", [True, False])
def test_open_items_of_one_kind_follow_each_other(store: Store, texts: bool) -> None:
    """Items without the field first; in input order within a kind; the same after some were answered, in any place."""
    kinds = ["b", "a", None, "b", "a"]
    rows = [
        StoredRow(n, Item(f"i{n}", n, {"kind": kind} if kind else {}, {}), None, {}) for n, kind in enumerate(kinds)
    ]
    store.add_rows([*rows, StoredRow(5, None, "no answer", {"kind": "a"})], texts=texts)
    assert _open(store) == ["i2", "i1", "i4", "i0", "i3"]
    assert _open(store, None) == ["i0", "i1", "i2", "i3", "i4"]
    store.append([_answer(TrialKey("i1", "ab", 0))])
    assert _open(store) == ["i2", "i4", "i0", "i3"]  # i0, which is open and comes before i1 in the input, comes later
    assert _open(store) == ["i2", "i4", "i0", "i3"]
    store.append([_answer(TrialKey("i0", "ab", 0)), _answer(TrialKey("i2", "ab", 0))])
    assert _open(store) == ["i4", "i3"]
    store.append([_answer(TrialKey("i3", "ab", 0)), _answer(TrialKey("i4", "ab", 0))])
    assert _open(store) == []


def test_open_items_of_many_pieces_all_come_once(store: Store) -> None:
    """Kinds follow each other within each 500 rows, and no row is lost or told twice."""
    store.add_rows(StoredRow(n, Item(f"i{n}", n, {"kind": "yx"[n % 2]}, {}), None, {}) for n in range(1003))
    found = _open(store)
    assert sorted(found) == sorted(f"i{n}" for n in range(1003))
    assert found[:2] == ["i1", "i3"] and found[250:252] == ["i0", "i2"] and found[500] == "i501"
    store.append([_answer(TrialKey("i1", "ab", 0))])
    assert _open(store)[:2] == ["i3", "i5"] and len(_open(store)) == 1002


def test_the_same_rows_again_change_nothing(store: Store) -> None:
    """Taking in the same rows twice, then more rows, only appends."""
    store.add_rows([_row(0, "a"), _row(1, "b")])
    assert store.add_rows([_row(0, "a"), _row(1, "b"), _row(2, "c")]) == []
    assert [row.item.id for row in store.rows() if row.item] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (_row(1, "b", "other"), "item b: its content changed\n    answer: 'x' -> 'other'"),
        (_row(1, "new", "other"), "row 2: was item b, is now new\n    answer: 'x' -> 'other'"),
    ],
)
def test_a_changed_row_is_named_and_nothing_is_taken_in(store: Store, row: StoredRow, said: str) -> None:
    """A row that differs from what was stored is reported with a diff, and the store stays as it was."""
    store.add_rows([_row(0, "a"), _row(1, "b")])
    assert store.add_rows([_row(0, "a"), row, _row(2, "c")]) == [said]
    assert [r.item.id for r in store.rows() if r.item] == ["a", "b"]


def test_a_bad_row_may_be_mended(store: Store) -> None:
    """A row that was bad may become good on the next run."""
    store.add_rows([StoredRow(0, None, "no answer", {})])
    assert store.add_rows([_row(0, "a")]) == []
    assert store.count_rows() == (1, 0)


def test_texts_can_be_left_out(store: Store) -> None:
    """Without texts only ids and digests are kept, and changes are still noticed."""
    store.add_rows([_row(0, "a", "secret")], texts=False)
    assert b"secret" not in (store.folder / "run.sqlite").read_bytes()
    assert b"secret" not in (store.folder / "run.sqlite-wal").read_bytes()
    assert store.add_rows([_row(0, "a", "secret")], texts=False) == []
    assert store.add_rows([_row(0, "a", "other")], texts=False) != []


def test_one_writer_at_a_time(store: Store) -> None:
    """A second writer is refused, readers are not."""
    with pytest.raises(RunError, match="in use by another process"):
        Store.open(store.folder, write=True)
    Store.open(store.folder).close()
    store.close()
    Store.open(store.folder, write=True).close()


def test_what_is_no_run_is_an_input_error(tmp_path: Path) -> None:
    """A folder without a run, and a file, are named as such."""
    with pytest.raises(InputError, match="not a run folder"):
        Store.open(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError):
        Store.create(tmp_path / "file" / "run", {})


def test_damage_and_foreign_versions_are_run_errors(store: Store) -> None:
    """A damaged file and a newer store are refused with a reason."""
    store._db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    store.close()
    with pytest.raises(RunError, match="store version"):
        Store.open(store.folder)
    (store.folder / "run.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(RunError, match=r"run\.sqlite is damaged"):
        Store.open(store.folder)
