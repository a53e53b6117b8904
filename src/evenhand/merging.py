"""Several runs as one: the shards of an input, or runs of one rubric and judge over rows of their own.

merge -> _opened -> _in_order -> _manifest -> _fill: row by row, so that memory does not grow with the data
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import json
import os
import resource
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand._words import counted
from evenhand.errors import InputError
from evenhand.intake import FAR
from evenhand.manifest import differences
from evenhand.run_folder import FILE, build, connect, damaged, exists, lock, make, recover, remove, storable, unusable
from evenhand.sharding import Shard, read_shard
from evenhand.store import Store

_PASSING = f"{FILE}.merging"
_MORE_FILES = 64  # that the process has open beside the runs
_FILES_A_RUN = 5  # of a store, and what SQLite keeps beside it
_LISTED = 20
#: Which rows are judged; the shards of one input have it from the same command.
_SELECTION = ("limit", "sample", "seed", "pairs", "mapping")
_SAME = ("rubric", "judge", "orders", "repeats", "short", "re_ask", "asked")


@dataclass(frozen=True, slots=True)
class Merged:
    """What came together.

    Attributes:
        folder: The merged run.
        runs: Runs merged.
        rows: Input rows, bad ones included.
        verdicts: Stored verdicts.
        open: Planned trials without a verdict.
    """

    folder: Path
    runs: int
    rows: int
    verdicts: int
    open: int


@dataclass(slots=True)
class _Part:
    """One of the runs.

    Attributes:
        folder, db, manifest: The run, open.
        shard: Which shard it is, None for none.
        before: Rows of the runs before it, where they are no shards.
        keys: Where each of its keys stands among those of the merged run.
    """

    folder: Path
    db: sqlite3.Connection
    manifest: dict[str, Any]
    shard: Shard | None
    before: int = 0
    keys: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        """For messages."""
        return str(self.folder) if self.shard is None else f"shard {self.shard} ({self.folder})"

    def read(self, query: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """What a query finds, row by row.

        Raises:
            RunError: the store is damaged.
        """
        try:
            for row in self.db.execute(query, values):  # noqa: UP028 - would close a cursor of a closed store
                yield row
        except sqlite3.Error as error:
            raise unusable(self.folder, error) from error


def merge(runs: Sequence[Path], out: Path) -> Merged:
    """Make one run of several: all shards of an input, or runs over different rows. They stay as they are.

    Shards put each row where it stands in the input; the rows of other runs follow each other as the runs do. Trials
    that were not asked yet stay open: the command of the runs, without its shard, asks them.

    Args:
        runs: Run folders, in any order for shards.
        out: A new run folder.

    Raises:
        InputError: runs that don't make one: another rubric, judge, order or selection of rows, a shard missing or
            given twice, an item in two of them; or ``out`` holds a run.
        RunError: a store that is damaged, or in use.
    """
    if not runs:
        raise InputError("no run is given")
    if len({folder.resolve() for folder in runs}) < len(runs):
        raise InputError("a run is given twice")
    recover(out)
    if exists(out):
        raise InputError(f"{out} holds a run already", hint="give another --out")
    _allow_files(len(runs))
    with contextlib.ExitStack() as stack:
        parts = _in_order([stack.enter_context(_opened(folder)) for folder in runs])
        for part in parts[1:]:
            _require_alike(parts[0], part)
        for part in parts:
            _require_whole(part)
        manifest = _manifest(parts, out)
        return _made(parts, manifest, out)


def _allow_files(runs: int) -> None:
    """All runs are open at once; so many files are more than a process may have unless it asks."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = _MORE_FILES + _FILES_A_RUN * runs
    if soft != resource.RLIM_INFINITY and soft < needed:
        most = needed if hard == resource.RLIM_INFINITY else min(hard, needed)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[_Part]:
    """A run that nobody writes meanwhile."""
    with contextlib.ExitStack() as stack:
        with Store.open(folder) as store:
            if os.access(folder, os.W_OK):
                stack.callback(os.close, lock(folder))
            manifest = store.manifest
        try:
            db = stack.enter_context(contextlib.closing(connect(folder, write=False)))
            db.execute("PRAGMA cache_size = -256")
        except sqlite3.Error as error:
            raise unusable(folder, error) from error
        shard = manifest.get("shard")
        yield _Part(folder, db, manifest, None if shard is None else read_shard(shard))


def _in_order(parts: list[_Part]) -> list[_Part]:
    """The runs, shards by number and all there."""
    if all(part.shard is None for part in parts):
        return parts
    shards = [part.shard for part in parts if part.shard is not None]
    if len(shards) < len(parts):
        other = next(part for part in parts if part.shard is None)
        raise InputError(f"{other.folder} is no shard, and others are", hint="merge the shards first, then the runs")
    if len({shard.of for shard in shards}) > 1:
        told = ", ".join(sorted({f"{part.folder} is {part.shard}" for part in parts})[:_LISTED])
        raise InputError(f"these are shards of different numbers: {told}")
    found: dict[int, _Part] = {}
    for part, shard in zip(parts, shards, strict=True):
        if shard.number in found:
            raise InputError(f"shard {shard} is given twice: {found[shard.number].folder} and {part.folder}")
        found[shard.number] = part
    of = shards[0].of
    if missing := [f"{number}/{of}" for number in range(1, of + 1) if number not in found]:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise InputError(
            f"no {'shard' if len(missing) == 1 else 'shards'} {', '.join(missing[:_LISTED])}{more} among the runs"
        )
    return [found[number] for number in sorted(found)]


def _require_alike(first: _Part, part: _Part) -> None:
    """Refuse runs that ask different questions, and shards of different rows."""
    changes = [change for found in differences(first.manifest, part.manifest) for change in found]
    if first.manifest["repeats"] != part.manifest["repeats"]:
        changes.append(f"repeats: {first.manifest['repeats']} -> {part.manifest['repeats']}")
    if changes:
        told = "\n".join(f"  {change}" for change in changes)
        raise InputError(f"{part.folder} is another run than {first.folder}:\n{told}")
    if part.shard is None:
        return
    for one in (first, part):
        if not one.manifest["commands"]:
            raise InputError(f"{one.name} has not taken in its rows", hint="give its command again, then merge")
    ours, theirs = (one.manifest["commands"][-1] for one in (part, first))
    changes = [f"{name}: {theirs[name]!r} -> {ours[name]!r}" for name in _SELECTION if theirs[name] != ours[name]]
    dealt = [one.manifest["rows_dealt"] for one in (first, part)]
    if dealt[0] != dealt[1]:
        changes.append(f"rows of the whole input: {dealt[0]:,} -> {dealt[1]:,}")
    if changes:
        told = "\n".join(f"  {change}" for change in changes)
        hint = "give the command of each shard again, on the same data"
        raise InputError(f"{part.name} and {first.name} are of different rows:\n{told}", hint=hint)


def _require_whole(part: _Part) -> None:
    """Refuse a run that is damaged, or waits for a batch."""
    if part.manifest.get("batches"):
        raise InputError(f"{part.folder} waits for a batch", hint="give its command again to collect it, then merge")
    (told,) = next(part.read("PRAGMA quick_check(1)"))
    if told != "ok":
        raise damaged(part.folder, " ".join(str(told).split()))
    for table, column, what in (
        ("item", "content", "a row"), ("trial", "verdict", "a verdict"), ("reply", "reply", "a reply")
    ):  # fmt: skip
        if next(part.read(f"SELECT 1 FROM {table} WHERE NOT json_valid({column}) LIMIT 1"), None):
            raise damaged(part.folder, f"{what} can't be read")


def _manifest(parts: list[_Part], out: Path) -> dict[str, Any]:
    """The manifest of the merged run; with one command where the runs differ in their shards only."""
    first, manifests = parts[0].manifest, [part.manifest for part in parts]
    keys: list[str] = []
    for part in parts:
        own = part.manifest.get("keys") or [part.manifest["key"]]
        keys += [key for key in own if key not in keys]
        part.keys = [keys.index(key) for key in own]
    commands: list[dict[str, Any]] = []
    for part in parts:
        found = [_moved(command, part.folder, out) for command in part.manifest["commands"]]
        commands += [command for command in found if command not in commands]
    forms = {manifest["form"] for manifest in manifests} - {None}
    told: dict[str, Any] = {
        **{name: first[name] for name in ("created", "evenhand", "python", *_SAME)},
        "commands": commands,
        "key": keys[0],
        "form": forms.pop() if len(forms) == 1 else None,
        "shard": None,
        "merged": [
            {"run": str(part.folder), **{name: part.manifest.get(name) for name in ("shard", "created", "evenhand")}}
            for part in parts
        ],
    }
    if len(keys) > 1:
        told["keys"] = keys
    if hidden := sum(manifest.get("images_not_shown") or 0 for manifest in manifests):
        told["images_not_shown"] = hidden
    if cost := _cost(parts):
        told["cost"] = cost
    return told


def _moved(command: Mapping[str, Any], folder: Path, out: Path) -> dict[str, Any]:
    """A command as it is told in another folder."""
    data = command.get("data_from_run")
    if data is None:
        return dict(command)
    found = os.path.relpath(os.path.realpath(folder / data), os.path.realpath(out))
    return {**command, "data_from_run": found}


def _cost(parts: list[_Part]) -> dict[str, Any] | None:
    """What all runs may have cost; None where no price was known in any."""
    told = [part.manifest["cost"] for part in parts if part.manifest.get("cost")]
    if not told:
        return None
    untold = "SELECT count(*) FROM reply WHERE reply ->> '$.usage.cost_usd' IS NULL"
    unpriced = (part for part in parts if not part.manifest.get("cost"))
    return {
        "price": told[-1]["price"],
        "untold": sum(cost["untold"] for cost in told) + sum(next(part.read(untold))[0] for part in unpriced),
        "at_most_usd": sum(cost["at_most_usd"] for cost in told),
    }


def _made(parts: list[_Part], manifest: Mapping[str, Any], out: Path) -> Merged:
    """Write the merged run beside its place; it has it once it is whole."""
    make(out)
    passing = out / _PASSING
    handle = lock(out)
    try:
        shutil.rmtree(passing, ignore_errors=True)  # of a merge that was killed
        passing.mkdir()
        build(passing, manifest)
        with contextlib.closing(sqlite3.connect(passing / FILE, isolation_level=None)) as db:
            _fill(db, parts)
            rows, bad = db.execute("SELECT count(*), count(problem) FROM item").fetchone()
            verdicts = db.execute("SELECT count(*) FROM trial").fetchone()[0]
        if not rows - bad:
            raise InputError("no usable row in the runs", hint="nothing to judge")
        with (passing / FILE).open("rb") as file:
            os.fsync(file.fileno())
        (passing / FILE).replace(out / FILE)
    except sqlite3.Error as error:
        raise unusable(out, error) from error
    finally:
        shutil.rmtree(passing, ignore_errors=True)
        if not exists(out):
            remove(out)
        os.close(handle)
    planned = (rows - bad) * len(manifest["orders"]) * manifest["repeats"]
    return Merged(out, len(parts), rows, verdicts, max(0, planned - verdicts))


def _fill(db: sqlite3.Connection, parts: list[_Part]) -> None:
    """Copy all tables in order of their keys, which appends; indexes are made at the end, which sorts."""
    db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -32000; BEGIN;")
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    for name, _ in indexes:
        db.execute(f"DROP INDEX {name}")
    rows = _Rows(parts)
    try:
        db.executemany("INSERT INTO item VALUES (?, ?, ?, ?, ?)", rows)
    except sqlite3.IntegrityError:
        raise rows.given_twice() from None
    trials = 'SELECT item, "order", repeat, status, verdict, at FROM trial ORDER BY item, "order", repeat'
    db.executemany("INSERT INTO trial VALUES (?, ?, ?, ?, ?, ?)", heapq.merge(*(part.read(trials) for part in parts)))
    replies = 'SELECT item, "order", repeat, attempt, request, form, reply, at FROM reply ORDER BY seq'
    db.executemany(
        "INSERT INTO reply VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)",
        itertools.chain.from_iterable(part.read(replies) for part in parts),
    )
    for _, sql in indexes:
        db.execute(sql)
    db.execute("COMMIT")


class _Rows:
    """The input rows of all runs, in the order of the merged one."""

    def __init__(self, parts: list[_Part]) -> None:
        self._parts = parts
        self._last: tuple[_Part, tuple[Any, ...]] | None = None
        before = 0
        for part in parts if parts[0].shard is None else ():
            part.before = before
            (last,) = next(part.read("SELECT max(seq) FROM item WHERE seq < ?", FAR))
            before += 0 if last is None else last + 1

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        behind = itertools.count(FAR + 1)
        for seq, n, row in heapq.merge(*(self._of(n, part) for n, part in enumerate(self._parts))):
            part = self._parts[n]
            self._last = part, row
            item_id, digest, content, problem = row
            yield seq if seq < FAR else next(behind), item_id, digest, _with_key(content, part), problem

    def _of(self, n: int, part: _Part) -> Iterator[tuple[int, int, tuple[Any, ...]]]:
        for seq, *row in part.read("SELECT seq, id, digest, content, problem FROM item ORDER BY seq"):
            if seq < FAR and part.shard is not None and not part.shard.holds(seq):
                raise damaged(part.folder, f"row {seq + 1} is none of shard {part.shard}")
            yield seq + part.before if seq < FAR else seq, n, tuple(row)

    def given_twice(self) -> InputError:
        """The error of the row that was given last, whose id another run has too."""
        assert self._last is not None
        part, (item_id, digest, *_) = self._last
        for other in self._parts:
            found = next(other.read("SELECT digest FROM item WHERE id = ?", item_id), None)
            if found is not None and other is not part:
                same = "the same content" if found[0] == digest else "different content"
                hint = "an item belongs to one run; were the rows in another order?" if part.shard else ""
                names = sorted([part.name, other.name])
                return InputError(f"item {item_id} is in {names[0]} and in {names[1]}, with {same}", hint=hint or None)
        raise damaged(part.folder, f"item {item_id} is there twice")


def _with_key(content: str, part: _Part) -> str:
    """A row's content with the place of its key among those of the merged run."""
    if part.keys == [0]:
        return content
    plain = json.loads(content)
    key = part.keys[plain.pop("key", 0)]
    if key and "fields" in plain:
        plain["key"] = key
    return storable(json.dumps(plain, ensure_ascii=False))


def told(merged: Merged) -> str:
    """A merged run in a line."""
    left = f"; {counted(merged.open, 'trial')} not asked yet" if merged.open else ""
    runs, rows, verdicts = (
        counted(n, what) for n, what in ((merged.runs, "run"), (merged.rows, "row"), (merged.verdicts, "verdict"))
    )
    return f"{runs} merged: {rows}, {verdicts}{left}"
