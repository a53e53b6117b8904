"""What is kept of many things: a mapping in order, whose memory does not grow."""

from __future__ import annotations

import sqlite3
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import spill
from evenhand.errors import InputError
from evenhand.spill import Spill


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.binary(max_size=3))), st.integers(1, 4))
def test_it_is_a_mapping_in_the_order_of_first_keys(puts: list[tuple[str, bytes]], near: int) -> None:
    """However many of its entries are in memory."""
    kept: dict[str, bytes] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill, "_NEAR", near)
        found = Spill()
        for key, value in puts:
            assert found.get(key) == kept.get(key)
            found.put(key, value)
            kept[key] = value
        assert list(found.values()) == list(kept.values())
        assert [found.get(key) for key in "abcdefgh"] == [kept.get(key) for key in "abcdefgh"]


def test_memory_does_not_grow_with_its_keys() -> None:
    """Ten times as many keys take as much as the first ones."""
    tracemalloc.start()
    try:
        found = Spill()
        peaks = []
        for start, end in ((0, 12_000), (12_000, 120_000)):
            for key in range(start, end):
                found.put(key, b"8 bytes.")
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]


def test_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is told of, with what helps."""
    monkeypatch.setattr(spill, "_NEAR", 1)
    found = Spill()
    found.put("a", b"")
    found._db = sqlite3.connect("file::memory:?mode=ro", uri=True)
    with pytest.raises(InputError, match="can't write a temporary file"):
        found.put("b", b"")
    found._db.close()
