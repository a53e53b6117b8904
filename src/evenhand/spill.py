"""What is known of each of a million things: in memory while they are few, then in a temporary file."""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator

from evenhand.rows import no_room

_NEAR = 10_000


class Spill:
    """A mapping of keys, all texts or all whole numbers, to bytes. It keeps the order in which keys came first.

    Memory does not grow with the number of keys: from ten thousand on they are in a file that vanishes by itself.

    Raises:
        InputError: there is no room for the file.
    """

    def __init__(self) -> None:
        self._near: dict[str | int, bytes] = {}
        self._db: sqlite3.Connection | None = None

    def get(self, key: str | int) -> bytes | None:
        """The value of a key; None where it has none."""
        if (value := self._near.get(key)) is not None or self._db is None:
            return value
        try:
            row = self._db.execute("SELECT value FROM kept WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise no_room(error) from error
        return None if row is None else row[0]

    def put(self, key: str | int, value: bytes) -> None:
        """Set the value of a key."""
        self._near[key] = value
        if len(self._near) >= _NEAR:
            self._spill()

    def values(self) -> Iterator[bytes]:
        """All values, in the order in which their keys came first."""
        if self._db is None:
            yield from self._near.values()
            return
        self._spill()
        try:
            for (value,) in self._db.execute("SELECT value FROM kept ORDER BY n"):
                yield value
        except sqlite3.Error as error:
            raise no_room(error) from error

    def _spill(self) -> None:
        try:
            if self._db is None:
                self._db = sqlite3.connect("", isolation_level=None)  # on disk once it is past its cache
                weakref.finalize(self, self._db.close)
                self._db.executescript("PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000;")
                self._db.execute("CREATE TABLE kept (n INTEGER PRIMARY KEY, key UNIQUE NOT NULL, value BLOB NOT NULL)")
                self._db.execute("BEGIN")
            self._db.executemany(
                "INSERT INTO kept VALUES (NULL, ?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                self._near.items(),
            )
        except sqlite3.Error as error:
            raise no_room(error) from error
        self._near.clear()
