"""Rows taken into a run's store: kept the first time, met again after that, in groups; all of them or none.

And read from it again.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import msgspec

from evenhand.item import Item, fields_digest, item_from_plain, item_to_plain, told_plain
from evenhand.run_folder import storable

NO_TEXTS = '{"extra": {}}'
#: Rows read now, by place, with contents that may not be kept: in an unnamed database that ends with the connection.
TABLE = "CREATE TABLE passing.read (seq INTEGER PRIMARY KEY, content TEXT)"
_GROUP = 500
_GROUP_SIZE = 1 << 20  # characters, about: a row may have two million
_SHOWN_CHANGES = 20
FAR = 1 << 40  #: behind every row there can be
_INSERT = "INSERT OR REPLACE INTO item VALUES (?, ?, ?, ?, ?)"  # a bad row may have had the place
_UPDATE = "UPDATE item SET seq = ?, content = ? WHERE id = ?"
_READ = "INSERT OR REPLACE INTO passing.read VALUES (?, ?)"
_decode = msgspec.json.Decoder().decode


class StoredRow(NamedTuple):
    """One input row as stored: an item, or a row that could not be used and why.

    An item whose texts were not kept has an id and no fields.
    """

    seq: int
    item: Item | None
    problem: str | None
    raw: Mapping[str, Any]


def some_of(rows: sqlite3.Cursor) -> list[tuple[Any, ...]]:
    """The first of some rows, as many as are not too much to hold; reading ends there."""
    taken, size = [], 0
    with contextlib.closing(rows):
        for row in rows:
            taken.append(row)
            size += len(row[2])
            if size > _GROUP_SIZE:
                break
    return taken


def row_of(seq: int, key: str | None, plain: Mapping[str, Any], problem: str | None) -> StoredRow:
    """A row from its stored content."""
    if key is not None and type(key) is not str:
        raise TypeError("its id is no text")
    item = item_from_plain(key, seq, plain) if key is not None else None
    return StoredRow(seq, item, problem, plain.get("extra", {}))


def quick_row(seq: int, key: str | None, content: str, problem: str | None) -> StoredRow | None:
    """As nearly all rows are; None where another decoder must look: numbers that are none, halves of characters."""
    try:
        return row_of(seq, key, _decode(content), problem)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class _Met(NamedTuple):
    """A row as it was stored before."""

    seq: int
    digest: str
    content: str


class _Row:
    """A row as read now; what takes time is made when it is needed."""

    def __init__(self, row: StoredRow) -> None:
        self.seq, self.item, self.problem = row.seq, row.item, row.problem
        self.id = row.item.id if row.item is not None else None
        if row.item is not None:
            self.content, text = (plain := item_to_plain(row.item)), plain_text(plain)
        else:  # may hold what is no finite number
            self.content, text = (plain := {"extra": dict(row.raw)}), storable(json.dumps(plain, ensure_ascii=False))
        self.text = text

    def digest(self) -> str:
        return fields_digest(self.item.fields) if self.item is not None else ""


class Intake:
    """Takes rows in, within a transaction of the caller's.

    Args:
        db: The store's database, with `TABLE` attached.
        texts: Keep the rows' contents, not only their digests.
        reading: Turns what can't be read of the store into its error.

    Attributes:
        changes: What changed in rows stored earlier, a line each.
    """

    def __init__(
        self, db: sqlite3.Connection, *, texts: bool, reading: Callable[[str], AbstractContextManager[None]]
    ) -> None:
        self.changes: list[str] = []
        self._displaced: dict[str, str] = {}  # items whose place was taken, until they turn up themselves
        self._db = db
        self._texts = texts
        self._reading = reading

    def add(self, rows: Iterable[StoredRow]) -> list[str]:
        """Take all rows; what changed, in the first twenty lines."""
        group: list[_Row] = []
        size = 0
        for stored in rows:
            group.append(row := _Row(stored))
            size += len(row.text)
            if len(group) >= _GROUP or size >= _GROUP_SIZE:
                self._add_group(group)
                group, size = [], 0
        self._add_group(group)
        return [*self.changes, *self._displaced.values()][:_SHOWN_CHANGES]

    def _add_group(self, group: Sequence[_Row]) -> None:
        """All at once where every row is new in a free place, or where it was; else one by one, as they come."""
        told = self._regular(group)
        if told is None:
            for row in group:
                change = self._add_row(row)
                if change is not None and len(self.changes) < _SHOWN_CHANGES:
                    self.changes.append(change)
            return
        new, changed, read = told
        self._db.executemany(_INSERT, new)
        self._db.executemany(_UPDATE, changed)
        self._db.executemany(_READ, read)

    def _regular(self, group: Sequence[_Row]) -> tuple[list[Any], list[Any], list[Any]] | None:
        """What to write: new rows, contents that differ beside the fields, rows read; None for rows that moved or
        changed, or share an id.
        """
        ids = [row.id for row in group if row.id is not None]
        if len(set(ids)) < len(ids):
            return None
        met, places = self._met(ids), self._places([row.seq for row in group])
        new, changed, read = [], [], []
        for row in group:
            old = met.get(row.id) if row.id is not None else None
            kept = self._kept(row, old)
            if old is None:
                if places.get(row.seq) is not None:
                    return None
                new.append((row.seq, row.id, row.digest(), kept, row.problem))
            elif old.seq != row.seq or (old.content != row.text and old.digest != row.digest()):
                return None
            elif old.content != kept:
                changed.append((row.seq, kept, row.id))
            if row.id is not None:
                read.append((row.seq, row.text if kept == NO_TEXTS else None))
        return new, changed, read

    def _kept(self, row: _Row, old: _Met | None) -> str:
        """What is kept of a row's content: of one met again, as much as before."""
        return row.text if (self._texts if old is None else old.content != NO_TEXTS) else NO_TEXTS

    def _met(self, ids: Sequence[str]) -> dict[str, _Met]:
        query = f"SELECT id, seq, digest, content FROM item WHERE id IN ({','.join('?' * len(ids))})"
        return {key: _Met(*rest) for key, *rest in self._db.execute(query, ids)}

    def _places(self, seqs: Sequence[int]) -> dict[int, str | None]:
        query = f"SELECT seq, id FROM item WHERE seq IN ({','.join('?' * len(seqs))})"
        return dict(self._db.execute(query, seqs).fetchall())

    def _add_row(self, row: _Row) -> str | None:
        """Take in one row; what changed of it."""
        old = self._met([row.id]).get(row.id) if row.id is not None else None
        new = row.digest()
        if old is not None and old.digest != new:
            return f"item {row.id}: its content changed{self._diff(old.content, row.content)}"
        if old is None or old.seq != row.seq:
            self._clear(row)
        kept = self._kept(row, old)
        if old is None:
            self._db.execute(_INSERT, (row.seq, row.id, new, kept, row.problem))
        else:  # columns beside the fields may have changed
            self._db.execute(_UPDATE, (row.seq, kept, row.id))
            self._displaced.pop(str(row.id), None)
        if row.id is not None:
            self._db.execute(_READ, (row.seq, row.text if kept == NO_TEXTS else None))
        return None

    def _clear(self, row: _Row) -> None:
        """Free a row's place: a bad row is dropped (it was mended or has moved), an item goes behind the last row."""
        there = self._db.execute("SELECT id, content FROM item WHERE seq = ?", (row.seq,)).fetchone()
        if there is None:
            return
        if there[0] is None:
            self._db.execute("DELETE FROM item WHERE seq = ?", (row.seq,))
            return
        self._db.execute("UPDATE item SET seq = (SELECT max(?, max(seq)) FROM item) + 1 WHERE seq = ?", (FAR, row.seq))
        now = row.id if row.id is not None else "a bad row"
        told = f"row {row.seq + 1}: was item {there[0]}, is now {now}{self._diff(there[1], row.content)}"
        self._displaced.setdefault(there[0], told)

    def _diff(self, old: str, new: Mapping[str, Any]) -> str:
        """The fields that differ, shortened."""
        with self._reading("a row"):
            before = json.loads(old).get("fields", {})
        after = new.get("fields", {})
        names = [n for n in {**before, **after} if before.get(n) != after.get(n)]
        told = [(n, *(told_plain(fields.get(n))[:60] for fields in (before, after))) for n in names]
        return "".join(f"\n    {n}: {was!r} -> {now!r}" for n, was, now in told)


def plain_text(plain: Any) -> str:
    """Plain data as it is stored."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):  # half a surrogate pair, too many digits
        return msgspec.json.encode(plain).decode()
    return storable(json.dumps(msgspec.to_builtins(plain), ensure_ascii=False))
