"""The run store: one SQLite file per run with its manifest, items, verdicts and every reply.

Two tables answer two questions: ``trial`` says what a resume still has to ask, ``reply`` keeps every
attempt. Prompts are not stored: they are rendered again from item, rubric and key.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec

from evenhand._canon import digest
from evenhand.errors import InputError, RunError
from evenhand.intake import TABLE, Intake, StoredRow, plain_text, quick_row, row_of, some_of
from evenhand.item import Item, item_from_plain
from evenhand.judging import Answer, Exchange
from evenhand.run_folder import (
    CHECK,
    SCHEMA,
    build,
    connect,
    damaged,
    exists,
    lock,
    make,
    recover,
    unusable,
    write_manifest,
)
from evenhand.soundness import require_sound, sound_verdict
from evenhand.trial import Settled, TrialKey
from evenhand.verdict import Usage, Verdict, reply_from_plain, reply_to_stored, verdict_to_stored

__all__ = ["Store", "StoredRow"]

_BATCH = 500
_AT_ONCE = 64
_CONTENT = "coalesce((SELECT read.content FROM passing.read WHERE read.seq = item.seq), content)"
_READ_NOW = "item.id IS NOT NULL AND item.seq IN (SELECT seq FROM passing.read)"
_ITEMS = "item.id IS NOT NULL"
_KIND = "CASE WHEN json_valid({content}) THEN json_extract({content}, ?) END"  # what is damaged is told of in its turn
_INPUT = "input"  # entry of the manifest: the input that all items are of


class _Billed(msgspec.Struct):
    """What a stored reply cost; the rest of it is skipped."""

    usage: Usage = Usage()


class Store:
    """An open run folder.

    Use `Store.create` or `Store.open`; close it when done. Writing needs the folder's lock, which one
    process holds at a time.

    Args:
        folder: The run folder.
        write: Take the lock and allow writing.
        manifest: Make the run with this manifest, unless it exists.
    """

    def __init__(self, folder: Path, *, write: bool, manifest: Mapping[str, Any] | None = None) -> None:
        self.folder = folder
        self._content, self._read_now = (_CONTENT, _READ_NOW) if write else ("content", _ITEMS)
        self._open_from: dict[Settled, int] = {}  # place before the first item with trials to ask
        self._lock_file = lock(folder) if write else None
        try:
            if manifest is not None and not exists(folder):
                build(folder, manifest)
            self._db = connect(folder, write=write)
            self._db.execute("PRAGMA busy_timeout = 10000")
            if write:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._db.execute("ATTACH '' AS passing")
                self._db.execute(TABLE)
        except sqlite3.Error as error:
            self.close()
            raise unusable(folder, error) from error

    @classmethod
    def create(cls, folder: Path, manifest: Mapping[str, Any]) -> Store:
        """Make a new run folder.

        Raises:
            RunError: the folder is on a network disk, or can't be made.
        """
        make(folder)
        return cls(folder, write=True, manifest=manifest)

    @classmethod
    def open(cls, folder: Path, *, write: bool = False, whole: bool = True) -> Store:
        """Open an existing run; ``whole`` looks for wrong values in all tables first (about 4 s for a million trials).

        Raises:
            InputError: not a run folder.
            RunError: damaged, locked by another process, or written by another version of evenhand.
        """
        if not exists(folder):
            recover(folder)  # a replacement of the run was killed in between
        if not exists(folder):
            raise InputError(f"{folder} is not a run folder", hint="a run is what `evenhand judge ... --out` made")
        store = cls(folder, write=write)
        try:
            store._require_sound(whole)
        except RunError:
            store.close()
            raise
        return store

    def _require_sound(self, whole: bool) -> None:
        with self._reading("its head"):
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            self._db.execute("SELECT count(*) FROM manifest").fetchone()
        if version != SCHEMA:
            hint = "judge again with --fresh or another --out, or use the evenhand that made it"
            raise RunError(f"{self.folder} has store version {version}; this evenhand reads {SCHEMA}", hint=hint)
        if whole:
            with self._reading("its tables"):
                require_sound(self._db, self.folder, self.manifest)

    def close(self) -> None:
        """Close the file and give the lock back; may be called twice."""
        if hasattr(self, "_db"):
            self._db.close()
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # manifest

    @property
    def manifest(self) -> dict[str, Any]:
        """What the run was planned as: rubric, judge, orders, repeats, key, versions."""
        with self._reading("its manifest"):
            texts = dict(self._db.execute("SELECT key, value FROM manifest"))
            if texts.pop(CHECK) != digest(texts):
                raise ValueError("its digest differs")
            return {key: json.loads(value) for key, value in texts.items()}

    def update_manifest(self, **entries: Any) -> None:
        """Set some entries of the manifest."""
        with self._transaction():
            write_manifest(self._db, entries)

    # items

    def add_rows(self, rows: Iterable[StoredRow], *, texts: bool = True, digest: str | None = None) -> list[str]:
        """Take in the input's rows, all or none of them; a row already stored must be the same as before.

        Rows may have moved: they take the places they have now. Rows stored before stay, whether or not they are
        among these. An error raised by ``rows`` leaves the store as it was.

        Args:
            rows: The rows as read now.
            texts: Keep the rows' contents, not only their digests. Contents that are not kept are there until
                the store is closed.
            digest: Of all that decides the rows, to know them by in `meet_again`; None where nothing tells.

        Returns:
            What changed in rows stored earlier, one line each (the first twenty); empty when nothing did.
        """
        with self._transaction():
            changes = Intake(self._db, texts=texts, reading=self._reading).add(rows)
            if changes:
                self._db.execute("ROLLBACK")
                self._db.execute("BEGIN")
            whole = self._whole()
            if not changes and (digest is not None or self.manifest.get(_INPUT) is not None):
                known = {"digest": digest, "items": self._items()} if whole and digest is not None else None
                write_manifest(self._db, {_INPUT: known})
        self._content, self._read_now = ("content", _ITEMS) if whole else (_CONTENT, _READ_NOW)
        self._open_from.clear()
        return changes

    def meet_again(self, digest: str) -> bool:
        """Count all items as read now, if they are those that `add_rows` took in with this digest, texts and all."""
        known = self.manifest.get(_INPUT) or {}
        if known.get("digest") != digest or known["items"] != self._items():
            return False
        self._content, self._read_now = "content", _ITEMS
        return True

    def _items(self) -> int:
        with self._reading("its rows"):
            return int(self._db.execute("SELECT count(id) FROM item").fetchone()[0])

    def _whole(self) -> bool:
        """Whether all items were read now, and their contents are kept."""
        with self._reading("its rows"):
            read, passing = self._db.execute("SELECT count(*), count(content) FROM passing.read").fetchone()
        return bool(read == self._items() and not passing)

    def rows(self, *, read_now: bool = False) -> Iterator[StoredRow]:
        """All stored input rows, in input order, read in pieces so that writing may go on meanwhile.

        Args:
            read_now: Only items that `add_rows` took in, or met again, since this store was opened for writing.
        """
        return self._rows(self._read_now if read_now else "1")

    def _rows(self, condition: str, *values: Any, last: int = -1, together: str | None = None) -> Iterator[StoredRow]:
        kind = "?" if together is None else _KIND.format(content=self._content)
        what = f"seq, id, {self._content}, problem, {kind}"
        query = f"SELECT {what} FROM item WHERE seq > ? AND {condition} ORDER BY seq LIMIT ?"
        path = None if together is None else f'$.fields."{together}"'
        while True:
            with self._reading("its rows"):
                piece = some_of(self._db.execute(query, (path, last, *values, _BATCH)))
            if not piece:
                return
            last = piece[-1][0]
            if together is not None:  # within a piece, so that a run stopped halfway has some of every value
                piece = sorted(piece, key=lambda row: str(row[4] or ""))
            for seq, key, content, problem, _ in piece:
                row = quick_row(seq, key, content, problem)
                if row is None:
                    with self._reading(f"row {seq + 1}"):
                        row = row_of(seq, key, json.loads(content), problem)
                yield row

    def items(self, *, read_now: bool = False) -> Iterator[Item]:
        """All usable items, in input order; ``read_now`` as for `rows`."""
        return (row.item for row in self.rows(read_now=read_now) if row.item is not None)

    def item(self, item_id: str) -> Item | None:
        """One item by id; None for what is no id at all, such as text that is not UTF-8."""
        try:
            item_id.encode()
        except UnicodeEncodeError:
            return None
        with self._reading(f"item {item_id}"):
            row = self._db.execute("SELECT seq, content FROM item WHERE id = ?", (item_id,)).fetchone()
            return item_from_plain(item_id, row[0], json.loads(row[1])) if row else None

    def count_rows(self) -> tuple[int, int]:
        """(rows, rows that could not be used)."""
        with self._reading("its rows"):
            rows, bad = self._db.execute("SELECT count(*), count(problem) FROM item").fetchone()
        return rows, bad

    def count_read_now(self) -> int:
        """Items that `add_rows` took in, or met again, since this store was opened for writing."""
        with self._reading("its rows"):
            return int(self._db.execute(f"SELECT count(*) FROM item WHERE {self._read_now}").fetchone()[0])

    # trials

    def append(self, answers: Sequence[Answer], **entries: Any) -> None:
        """Store verdicts, replies and new entries of the manifest in one transaction; then they survive a kill."""
        now = time.time()
        with self._transaction():
            self._put_verdicts(((answer.key, answer.verdict) for answer in answers), now)
            replies = (
                (*answer.key, e.attempt, e.digest, e.form, plain_text(reply_to_stored(e.reply)), now)
                for answer in answers
                for e in answer.exchanges
            )
            self._insert("INSERT INTO reply VALUES", "(NULL, ?, ?, ?, ?, ?, ?, ?, ?)", replies)
            if entries:
                write_manifest(self._db, entries)

    def replace_verdicts(self, verdicts: Iterable[tuple[TrialKey, Verdict]], **entries: Any) -> None:
        """Store verdicts read again from the stored replies, and the manifest's new entries: all or nothing."""
        now = time.time()
        with self._transaction():
            self._put_verdicts(verdicts, now)
            write_manifest(self._db, entries)

    def _put_verdicts(self, verdicts: Iterable[tuple[TrialKey, Verdict]], now: float) -> None:
        rows = ((*key, v.status.value, plain_text(verdict_to_stored(v)), now) for key, v in verdicts)
        self._insert("INSERT OR REPLACE INTO trial VALUES", "(?, ?, ?, ?, ?, ?)", rows)

    def _insert(self, into: str, marks: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Many rows in one statement: each gives the interpreter away, and a busy run gives it back late."""
        rows = iter(rows)
        while some := list(islice(rows, _AT_ONCE)):
            self._db.execute(f"{into} {','.join([marks] * len(some))}", list(chain.from_iterable(some)))

    def count_settled(self, settled: Settled) -> int:
        """How many trials of the items read now need no asking."""
        condition, values = _sql(settled)
        query = f"SELECT count(*) FROM trial WHERE {condition}"
        if self._read_now != _ITEMS:
            query += f" AND EXISTS (SELECT 1 FROM item WHERE item.id = trial.item AND {self._read_now})"
        with self._reading("its verdicts"):
            return int(self._db.execute(query, values).fetchone()[0])

    def open_items(self, settled: Settled, *, together: str | None = None) -> Iterator[tuple[Item, set[TrialKey]]]:
        """Each item read now that has trials to ask, in input order, with those of its trials that need no asking.

        Args:
            settled: Which trials need no asking.
            together: An item field: of every 500 open items (fewer large ones) those with equal values follow.
        """
        condition, values = _sql(settled)
        with self._reading("its verdicts"):
            any_done = self._db.execute(f"SELECT 1 FROM trial WHERE {condition} LIMIT 1", values).fetchone()
        if any_done is None:
            rows = self._rows(self._read_now, together=together)
            yield from ((row.item, set()) for row in rows if row.item is not None)
            return
        done = f"{self._read_now} AND (SELECT count(*) FROM trial WHERE item = item.id AND {condition}) < ?"
        query = f'SELECT "order", repeat FROM trial WHERE item = ? AND {condition}'
        values = (*values, len(settled.orders) * settled.repeats)
        start = self._open_from.get(settled, -1)
        with self._reading("its verdicts"):
            first = f"SELECT seq FROM item WHERE seq > ? AND {done} ORDER BY seq LIMIT 1"
            found = self._db.execute(first, (start, *values)).fetchone()
        if found is None:
            return
        start = self._open_from[settled] = found[0] - 1  # what is settled stays so while the store is open
        for row in self._rows(done, *values, last=start, together=together):
            if row.item is not None:
                with self._reading(f"the verdicts of item {row.item.id}"):
                    kept = {TrialKey(row.item.id, *key) for key in self._db.execute(query, (row.item.id, *values[:-1]))}
                yield row.item, kept

    def verdicts(self) -> Iterator[tuple[StoredRow, dict[TrialKey, Verdict]]]:
        """Each input row with its stored verdicts, in input order."""
        for row in self.rows():
            yield row, self.verdicts_of(row.item.id) if row.item else {}

    def verdicts_of(self, item_id: str) -> dict[TrialKey, Verdict]:
        """Stored verdicts of one item."""
        with self._reading(f"the verdicts of item {item_id}"):
            found = self._db.execute(
                'SELECT "order", repeat, status, verdict FROM trial WHERE item = ? ORDER BY repeat, "order"', (item_id,)
            )
            return {TrialKey(item_id, o, r): sound_verdict(status, text) for o, r, status, text in found}

    def exchanges(self, key: TrialKey) -> list[Exchange]:
        """All replies of a trial, in the order they came."""
        with self._reading(f"the replies of item {key.item_id}"):
            found = self._db.execute(
                "SELECT attempt, request, form, reply FROM reply"
                ' WHERE item = ? AND "order" = ? AND repeat = ? ORDER BY seq',
                tuple(key),
            )
            return [Exchange(a, d, f, reply_from_plain(json.loads(text))) for a, d, f, text in found]

    def last_reply(self) -> int:
        """Number of the reply stored last; 0 where there is none."""
        with self._reading("its replies"):
            return int(self._db.execute("SELECT coalesce(max(seq), 0) FROM reply").fetchone()[0])

    def usages(self, last: int | None = None) -> Iterator[Usage]:
        """What each stored reply cost, those of verdicts that were replaced included; up to the ``last`` of them."""
        bound = self.last_reply() if last is None else last
        billed = msgspec.json.Decoder(_Billed)
        with self._reading("its replies"):
            for (text,) in self._db.execute("SELECT reply FROM reply WHERE seq <= ?", (bound,)):
                yield billed.decode(text).usage

    @contextlib.contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        """What can't be read was damaged since: the store wrote it well."""
        try:
            yield
        except sqlite3.Error as error:
            raise unusable(self.folder, error) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(self.folder, f"{what} can't be read") from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            raise unusable(self.folder, error) from error
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")


def _sql(settled: Settled) -> tuple[str, tuple[Any, ...]]:
    """A condition on stored trials, and what stands for its question marks."""
    statuses, orders = (",".join("?" * len(values)) for values in settled[:2])
    condition = f'status IN ({statuses}) AND "order" IN ({orders}) AND repeat < ?'
    return condition, (*settled.statuses, *settled.orders, settled.repeats)
