"""Whether a store's tables hold what was written there: the types, the legal values, and rows that belong together.

SQLite finds no wrong value in a file that was changed behind its back, and would give bytes for a text. One pass over
the tables finds them before anything is read; it reads no contents, so it takes far less time than they do.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from evenhand.rubric.model import Form
from evenhand.run_folder import damaged
from evenhand.trial import Order
from evenhand.verdict import Status, Verdict, verdict_from_plain

_DIGEST = 32  # hex digits
_STATUSES, _FORMS = (", ".join(f"'{value}'" for value in values) for values in (Status, get_args(Form)))
#: Of the columns that tell a trial.
_KEY = {
    "item": "typeof(item) = 'text' AND item IN (SELECT id FROM item)",
    "order": '"order" IN (SELECT value FROM json_each(:orders))',
    "repeat": "typeof(repeat) = 'integer' AND repeat >= 0 AND repeat < :repeats",
}
_ASKED = """SELECT 1 FROM reply AS first WHERE first.item = reply.item AND first."order" = reply."order"
    AND first.repeat = reply.repeat AND first.attempt = 0 AND first.seq < reply.seq"""
#: Table -> column -> what holds for it in every row.
_SOUND = {
    "manifest": {"key": "typeof(key) = 'text'", "value": "typeof(value) = 'text'"},
    "item": {
        "seq": "seq >= 0",
        "id": "typeof(id) IN ('text', 'null')",
        "digest": f"typeof(digest) = 'text' AND length(digest) = iif(typeof(id) = 'null', 0, {_DIGEST})",
        "content": "typeof(content) = 'text'",
        "problem": "typeof(problem) = iif(typeof(id) = 'null', 'text', 'null')",
    },
    "trial": {
        **_KEY,
        "status": f"status IN ({_STATUSES})",
        "verdict": "typeof(verdict) = 'text'",
        "at": "typeof(at) = 'real'",
    },
    "reply": {
        **_KEY,
        "attempt": f"typeof(attempt) = 'integer' AND (attempt = 0 OR attempt = 1 AND EXISTS ({_ASKED}))",
        "request": f"typeof(request) = 'text' AND length(request) = {_DIGEST}",
        "form": f"form IN ({_FORMS})",
        "reply": "typeof(reply) = 'text'",
        "at": "typeof(at) = 'real'",
    },
}
_ANY = (get_args(Order), 1 << 62)  # orders and repeats of a run whose manifest tells none


def require_sound(db: sqlite3.Connection, folder: Path, manifest: Mapping[str, Any]) -> None:
    """Refuse a store with a wrong value in a column, or with rows that belong to nothing.

    Args:
        db: The store's database.
        folder: The run folder, for the message.
        manifest: The run's manifest; trials must be among those that it plans.

    Raises:
        RunError: the store is damaged; the message names the table, the column and the first such row.
        sqlite3.Error: it can't be read.
    """
    orders, repeats = (manifest.get(name, every) for name, every in zip(("orders", "repeats"), _ANY, strict=True))
    planned = {"orders": json.dumps(orders), "repeats": repeats}
    for table, columns in _SOUND.items():
        place = "NULL" if table == "manifest" else "rowid"
        wanted = ", ".join(f"({holds})" for holds in columns.values())
        every = " AND ".join(f"({holds})" for holds in columns.values())
        found = db.execute(
            f"SELECT {place}, {wanted} FROM {table} WHERE ({every}) IS NOT TRUE LIMIT 1", planned
        ).fetchone()
        if found is not None:
            column = next(name for name, holds in zip(columns, found[1:], strict=True) if not holds)
            where = "" if found[0] is None else f" (rowid {found[0]})"
            raise damaged(folder, f"column {column} of table {table} holds what was never written there{where}")


def sound_verdict(status: str, text: str) -> Verdict:
    """A verdict from what is stored of it.

    Raises:
        ValueError, KeyError, TypeError, AttributeError, RecursionError: it is not what was written.
    """
    verdict = verdict_from_plain(json.loads(text))
    if verdict.status != status:
        raise ValueError("its status differs")
    return verdict
