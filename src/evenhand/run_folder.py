"""A run's folder on disk: which files are a run's, who may write them, and what is told when they are damaged."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenhand._canon import digest
from evenhand.errors import InputError, RunError

FILE = "run.sqlite"
SCHEMA = 2  #: version of the tables
CHECK = "check"  #: key of the manifest's digest
_TABLES = """
CREATE TABLE manifest (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE item (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, digest TEXT NOT NULL, content TEXT NOT NULL, problem TEXT);
CREATE TABLE trial (
    item TEXT NOT NULL, "order" TEXT NOT NULL, repeat INTEGER NOT NULL,
    status TEXT NOT NULL, verdict TEXT NOT NULL, at REAL NOT NULL,
    PRIMARY KEY (item, "order", repeat));
CREATE INDEX settled ON trial (item, "order", repeat, status);
CREATE TABLE reply (
    seq INTEGER PRIMARY KEY, item TEXT NOT NULL, "order" TEXT NOT NULL, repeat INTEGER NOT NULL,
    attempt INTEGER NOT NULL, request TEXT NOT NULL, form TEXT NOT NULL, reply TEXT NOT NULL, at REAL NOT NULL);
CREATE INDEX reply_of_trial ON reply (item, "order", repeat);
"""
_ASIDE = f"{FILE}.old"
_LOCK = "lock"
_PARTS = ("", "-wal", "-shm")  # the store, and what SQLite keeps beside it
_DAMAGE = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_NETWORK_DISKS = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs", "ceph", "glusterfs", "lustre"}


def exists(folder: Path) -> bool:
    """Whether a folder holds a run.

    Raises:
        InputError: a name that no folder can have, or one that can't be entered.
    """
    try:
        return (folder / FILE).is_file()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"can't use the run folder {folder!s:.200}: {reason}", hint="give another --out") from None


def own_files(folder: Path) -> list[Path]:
    """The files that a run is kept in. Some may not be there."""
    return [*(folder / f"{name}{part}" for name in (FILE, _ASIDE) for part in _PARTS), folder / _LOCK]


def connect(folder: Path, *, write: bool) -> sqlite3.Connection:
    """The store's database; one in a folder that can't be written is read as it stands.

    Raises:
        sqlite3.Error: it can't be opened.
    """
    file = folder / FILE
    if write or os.access(folder, os.W_OK):
        return sqlite3.connect(file, isolation_level=None, cached_statements=256)
    wal = folder / f"{FILE}-wal"  # left by a run that was killed
    mode = "mode=ro" if wal.exists() and wal.stat().st_size else "immutable=1"
    uri = f"{file.absolute().as_uri()}?{mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def make(folder: Path) -> None:
    """Make a folder for a run, or take an empty one, or one that held a run.

    Raises:
        RunError: it is on a network disk.
        InputError: it can't be made, or holds other files only.
    """
    _refuse_network_disk(folder)
    try:
        held = [file.name for file in folder.iterdir()] if folder.is_dir() else []
        if not all(name == _LOCK for name in held) and not any(name.startswith(FILE) for name in held):
            hint = "give another --out, or a folder in it"
            raise InputError(f"{folder!s:.200} holds other files and is no run folder", hint=hint)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise InputError(f"can't make the run folder {folder!s:.200}: {reason}", hint="give another --out") from error


def remove(folder: Path) -> None:
    """Remove a run, and its folder if nothing else is in it."""
    for name in (*(FILE + part for part in _PARTS), _LOCK):
        (folder / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # other files are none of our business
        folder.rmdir()


def set_aside(folder: Path) -> None:
    """Take a run out of its place, whatever state it is in; `recover` brings it back or removes it.

    Raises:
        RunError: another process is at work there.
    """
    handle = lock(folder)
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(folder / FILE)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # all in one file, so that one rename moves it
    _move(folder, FILE, _ASIDE)
    os.close(handle)


def recover(folder: Path) -> bool:
    """End a replacement: the run that was set aside gets its place back, unless the new one holds an answer.

    Returns:
        Whether a run was brought back. No, and nothing was done, where none was set aside.

    Raises:
        RunError: another process is at work there.
    """
    if not any((folder / (_ASIDE + part)).exists() for part in _PARTS):
        return False
    handle = lock(folder)
    try:
        back = (folder / _ASIDE).exists() and not _answered(folder / FILE)
        for part in _PARTS:
            (folder / ((FILE if back else _ASIDE) + part)).unlink(missing_ok=True)
        if back:
            _move(folder, _ASIDE, FILE)
    finally:
        os.close(handle)
    return back


def _move(folder: Path, name: str, other: str) -> None:
    for part in _PARTS:
        if (folder / (name + part)).exists():
            (folder / (name + part)).replace(folder / (other + part))


def _answered(file: Path) -> bool:
    """Whether a store holds an answer of its judge: any verdict but a failed one."""
    if not file.is_file():
        return False
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(file)) as db:
        return db.execute("SELECT 1 FROM trial WHERE status <> 'failed' LIMIT 1").fetchone() is not None
    return False


def lock(folder: Path) -> int:
    """Take the folder's lock, which one process holds at a time; closing the handle gives it back.

    Raises:
        RunError: another process has it, or the folder can't be written.
    """
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RunError(f"can't write in {folder}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise RunError(f"{folder} is in use by another process", hint="wait for it, or give another --out") from None
    return handle


def unusable(folder: Path, error: sqlite3.Error) -> RunError:
    """What to tell of an error of the database."""
    if str(error).startswith("no such table"):
        return damaged(folder, "it is empty, or holds no run")
    # Without a code it is Python's own: a text that is not UTF-8, which the store never writes.
    if getattr(error, "sqlite_errorname", _DAMAGE[0]).startswith(_DAMAGE):
        return damaged(folder, f"{error!s:.100}")  # it may quote a whole column
    return RunError(f"the store of {folder} can't be used: {error}", hint="it is locked, or the disk is full")


def damaged(folder: Path, what: str) -> RunError:
    """What to tell of a store that doesn't hold what was written."""
    file = folder / FILE
    hint = f"put back a copy of it, save what is left with `sqlite3 {file} .recover`, or judge again with --fresh"
    return RunError(f"{file} is damaged: {what}", hint=hint)


def _refuse_network_disk(folder: Path) -> None:
    """SQLite's locks don't hold on network disks; better refuse than lose verdicts."""
    try:
        mounts = Path("/proc/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    path = str(folder.resolve())
    found = [line.split()[1:3] for line in mounts]
    inside = [m for m in found if path == m[0] or path.startswith(m[0].rstrip("/") + "/")]
    mount, kind = max(inside, key=lambda m: len(m[0]), default=("", ""))
    if kind in _NETWORK_DISKS:
        raise RunError(f"{folder} is on a network disk ({kind} at {mount})", hint="keep the run on a local disk")


def build(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Make the file under another name, so that a kill never leaves half a store."""
    path = folder / f"{FILE}.new"
    path.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {SCHEMA};")
        write_manifest(db, manifest)
        db.execute("COMMIT")
    path.replace(folder / FILE)


def write_manifest(db: sqlite3.Connection, entries: Mapping[str, Any]) -> None:
    """Set some entries of the manifest, and its digest."""
    rows = [(key, storable(json.dumps(value, ensure_ascii=False))) for key, value in entries.items()]
    db.executemany("INSERT OR REPLACE INTO manifest VALUES (?, ?)", rows)
    texts = dict(db.execute("SELECT key, value FROM manifest WHERE key <> ?", (CHECK,)))
    db.execute("INSERT OR REPLACE INTO manifest VALUES (?, ?)", (CHECK, digest(texts)))


def storable(text: str) -> str:
    """Lone surrogates can't be stored as UTF-8: such a text is kept with JSON escapes instead."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(json.loads(text))
    return text
