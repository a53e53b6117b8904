"""The main path: take in the rows, plan, drop what is stored, ask, store.

open_run -> take_in -> pending -> runners.local.run_trials -> judge.ask -> store.append
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

from evenhand._words import counted
from evenhand.backend import Backend, BackendSettings
from evenhand.backends.paced import Paced
from evenhand.backends.pacing import MOST, Pacer
from evenhand.backends.retry import Retry
from evenhand.batching import ask_batches, require_batch
from evenhand.errors import FinalBackendError, InputError, RunError, UnknownNameError
from evenhand.images import folder_of, without_logins
from evenhand.item import Item
from evenhand.judging import Answer, Asker, hidden_images
from evenhand.keywords import number
from evenhand.manifest import holds_nothing, keys_of, new_manifest, require_same, rubric_entry
from evenhand.pairing import read_pairs
from evenhand.run_folder import exists, recover, remove, set_aside
from evenhand.run_spec import RunSpec
from evenhand.runners import on_ray
from evenhand.runners.local import Stop, run_trials
from evenhand.runners.signals import taken_over
from evenhand.runners.worker import Setup
from evenhand.sharding import Dealt
from evenhand.sources import BadRow, BadRows, read_items
from evenhand.spending import Forecast, paying, price_of
from evenhand.store import Store, StoredRow
from evenhand.trial import Settled, Trial, plan
from evenhand.verdict import Status

_DEFAULT_CONCURRENCY = 16
_DEADLINE_S = 300.0
_ENGINES = ("local", "ray")


@dataclass(slots=True)
class Progress:
    """Told of a run's course; override what is of interest."""

    def start(self, total: int, stored: int) -> None:
        """Asking begins: so many trials in all, so many of them stored already."""

    def warn(self, text: str) -> None:
        """Something to know before anything is asked."""

    def forecast(self, told: Forecast, cap: float | None) -> None:
        """What asking will cost, and the most that the run may; only where the price is known."""

    def done(self, answer: Answer) -> None:
        """One more verdict is stored."""

    def stopping(self) -> None:
        """A signal came: what is in flight is finished; a second signal gives it up."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        folder: The run folder.
        asked: Trials asked this time.
        interrupted: Stopped by a signal before all was asked.
    """

    folder: Path
    asked: int
    interrupted: bool


async def run(
    spec: RunSpec, *, progress: Progress | None = None, stop: Stop | None = None, signals: bool = False
) -> Outcome:
    """Judge all rows that have no verdict yet.

    Args:
        spec: What to judge, how, and where to keep it.
        progress: Told of the run's course.
        stop: Asks the run to end gently.
        signals: Take over SIGINT, SIGTERM and SIGHUP while trials are asked: the first stops gently, the second cancels
            what is in flight. Only for who owns the event loop; signals do nothing to a run otherwise.

    Raises:
        InputError: bad rows (unless skipped), bad options; nothing was sent.
        RunError: the folder holds another run, is in use, or its rows changed; or ``max_cost`` is reached, and what
            was answered before is stored.
        AccessError: the judge refuses us altogether; what was answered before is stored.
    """
    progress = progress or Progress()
    stop = stop or Stop()
    backend, limits = open_backend(spec), spec.limits
    concurrency = limits.concurrency or (_DEFAULT_CONCURRENCY if backend.deterministic else MOST)
    if spec.engine == "local":
        concurrency = min(concurrency, backend.max_concurrency or concurrency)
    try:
        price = price_of(backend, prices=spec.prices, cap=limits.max_cost, settings=spec.judge.settings)
        with open_run(spec, backend) as store:
            take_in(spec, store)
            if hidden := hidden_images(spec.rubric, spec.judge, backend, store.items(read_now=True)):
                store.update_manifest(images_not_shown=hidden)
                progress.warn(f"{spec.rubric.name} does not show the judge the images of {counted(hidden, 'item')}")
            asker = make_asker(spec, store, backend)
            require_batch(spec.batch, store.manifest, backend, spec.folder)
            total, stored = count(spec, store)
            progress.start(total, stored)
            todo, left = (lambda: pending(spec, store)), total - stored
            concurrency = min(concurrency, max(1, left))  # a worker more would have nothing to do
            money = paying(store, asker, price, limits.max_cost, todo, left, progress, batch=spec.batch)
            with money, taken_over(stop, progress.stopping) if signals else contextlib.nullcontext():
                asked = await _ask_all(spec, store, asker, left, concurrency, progress, stop)
    finally:
        await backend.aclose()
    return Outcome(spec.folder, asked, stop.asked)


def open_backend(spec: RunSpec) -> Backend:
    """The judge of a run, ready to be asked; what costs something is paced and tried again."""
    for name in ("concurrency", "rpm", "tpm", "max_cost"):
        if (value := getattr(spec, name)) is not None:
            number(name, value)
    _require_engine(spec)
    limits = spec.limits
    backend = spec.judge.open(_settings(spec))
    if backend.deterministic:
        return backend
    retry = Retry(number("attempts", spec.attempts), deadline_s=_deadline_s(spec))
    return Paced(backend, retry=retry, pacer=Pacer(limits.concurrency, rpm=limits.rpm, tpm=limits.tpm))


def _settings(spec: RunSpec) -> BackendSettings:
    return replace(spec.backend, concurrency=spec.limits.concurrency or MOST, bounded=spec.limits.max_cost is not None)


def _deadline_s(spec: RunSpec) -> float:
    return max(_DEADLINE_S, spec.backend.timeout_s)


def _require_engine(spec: RunSpec) -> None:
    if spec.engine not in _ENGINES:
        raise UnknownNameError("engine", spec.engine, _ENGINES)
    if spec.engine == "ray":
        if spec.batch:
            raise InputError("--batch has no use for --engine ray: it is the provider that asks", hint="leave one out")
        on_ray.require_ray(spec.ray_address)
    elif spec.ray_address is not None:
        raise InputError("--ray-address is of use with --engine ray only", hint="add --engine ray")


@contextlib.contextmanager
def open_run(spec: RunSpec, backend: Backend) -> Iterator[Store]:
    """The run's store, new or resumed; a new one is removed again if its input proves bad.

    With ``fresh`` the run that was there stays aside until the new one holds an answer: if it ends without, whatever
    the reason, the old run has its place again. A run that holds nothing yet gives way to a new one.
    """
    number("repeats", spec.repeats)
    manifest = new_manifest(
        spec.rubric,
        spec.judge,
        backend.identity,
        orders=spec.planned_orders,
        repeats=spec.repeats,
        short=spec.short,
        re_ask=spec.re_ask,
        repeatable=backend.deterministic,
        shard=spec.shard,
    )
    recover(spec.folder)
    if spec.fresh and exists(spec.folder):
        set_aside(spec.folder)
    created = not exists(spec.folder)
    store = Store.create(spec.folder, manifest) if created else Store.open(spec.folder, write=True, whole=False)
    try:
        try:
            require_same(store.manifest, manifest, str(spec.folder))
        except RunError:
            if not holds_nothing(store):
                raise
            store.close()  # as after a wrong address: another judge may have the folder
            remove(spec.folder)
            created, store = True, Store.create(spec.folder, manifest)
        yield store
        failed = _first_failure(store) if spec.fresh else None
    except InputError:
        store.close()
        if created:
            remove(spec.folder)
        raise
    finally:
        store.close()
        restored = recover(spec.folder)
    if restored and failed is not None:
        raise FinalBackendError(
            f"the judge gave no answer: {failed}",
            hint=f"{spec.folder} still holds the run that --fresh was to replace",
        )


def _first_failure(store: Store) -> str | None:
    return next((verdict.detail for _, found in store.verdicts() for verdict in found.values()), None)


def take_in(spec: RunSpec, store: Store) -> None:
    """Read and check the whole input, and keep it in the store, before anything is sent; once for the same input."""
    known = spec.input_digest()
    all_counted = spec.shard is None or store.manifest.get("rows_dealt") is not None
    if known is None or not all_counted or not store.meet_again(known):
        _read_in(spec, store, known)
    commands = [command for command in store.manifest["commands"] if command != spec.harmless]
    store.update_manifest(repeats=spec.repeats, rubric=rubric_entry(spec.rubric), commands=[*commands, spec.harmless])


def _read_in(spec: RunSpec, store: Store, known: str | None) -> None:
    how: dict[str, Any] = {
        "mapping": spec.mapping,
        "format": spec.format,
        "limit": spec.limit,
        "sample": spec.sample,
        "seed": spec.seed,
        "open_images": spec.rubric.images_shown,
    }
    if spec.pairs is None:
        rows = read_items(spec.source, spec.rubric.item, responses=spec.responses, **how)
    elif spec.responses is not None:
        raise InputError("responses go with one response a row; with pairs, give them in the rows")
    else:
        rows = read_pairs(spec.source, spec.rubric.item, spec.pairs, **how)
    if spec.shard is not None:
        store.update_manifest(rows_dealt=None)  # not known, should this end before they are taken in
    dealt = Dealt(_with_keys(rows, store) if "keys" in store.manifest else rows, spec.shard)
    changes = store.add_rows(_usable(dealt, spec), texts=spec.store_texts, digest=known)
    if changes:
        lines = "\n".join(f"  {change}" for change in changes)
        raise RunError(
            f"rows of {spec.folder} changed since they were judged:\n{lines}",
            hint="new rows go at the end; give another --out, or --fresh to start over",
        )
    if spec.shard is not None:
        store.update_manifest(rows_dealt=dealt.seen)


def _with_keys(rows: Iterator[Item | BadRow], store: Store) -> Iterator[Item | BadRow]:
    """The rows, those of a merged run with the key that their marks were made of before."""
    for row in rows:
        if isinstance(row, Item) and (old := store.item(row.id)) is not None:
            yield structs.replace(row, key=old.key)
        else:
            yield row


def _usable(rows: Iterable[Item | BadRow], spec: RunSpec) -> Iterator[StoredRow]:
    """The rows as stored; ends with an error that tells of all bad rows, unless they are to be skipped."""
    good, bad = False, BadRows()
    for row in rows:
        if isinstance(row, Item):
            good = True
            yield StoredRow(row.row, row, None, {})
        elif spec.skip_bad:
            raw = without_logins(row.raw, spec.rubric.item, spec.mapping)
            yield StoredRow(row.row, None, "; ".join(p.message for p in row.problems), raw)
        else:
            bad.add(row)
    if bad.rows:
        file = spec.source if isinstance(spec.source, str) else None
        raise bad.error(file, spec.rubric.item if spec.pairs is None else None, good=good)
    if not good and spec.shard is None:  # with few rows a shard may have none
        raise InputError("no usable row in the input", hint="nothing to judge")


def make_asker(spec: RunSpec, store: Store, backend: Backend) -> Asker:
    """What asks the trials of this run."""
    return Asker(spec.rubric, spec.judge, backend, **_asker_options(spec, store))


def _asker_options(spec: RunSpec, store: Store) -> dict[str, Any]:
    manifest = store.manifest
    return {
        "keys": keys_of(manifest),
        "short": spec.short,
        "may_re_ask": spec.re_ask,
        "form": manifest["form"],
        "folder": folder_of(spec.source),
        "deadline_s": None if spec.deadline is None else number("deadline", spec.deadline),
    }


def pending(spec: RunSpec, store: Store) -> Iterator[Trial]:
    """Planned trials of the rows that were taken in now, as far as they have no verdict that counts.

    Items of one type follow each other, as their prompts begin alike and a server has kept that beginning.
    """
    together = spec.rubric.types.item_field if spec.rubric.types is not None else None
    for item, done in store.open_items(_settled(spec), together=together):
        for trial in plan([item], orders=spec.planned_orders, repeats=spec.repeats):
            if trial.key not in done:
                yield trial


def count(spec: RunSpec, store: Store) -> tuple[int, int]:
    """(planned trials of the rows that were taken in now, those of them that need no asking)."""
    total = store.count_read_now() * len(spec.planned_orders) * spec.repeats
    return total, store.count_settled(_settled(spec))


def _settled(spec: RunSpec) -> Settled:
    """What is scored, and what a new request would hardly mend."""
    kept = (Status.SCORED,) if spec.retry else (Status.SCORED, Status.REFUSED, Status.UNPARSED)
    return Settled(tuple(status.value for status in kept), spec.planned_orders, spec.repeats)


async def _ask_all(
    spec: RunSpec, store: Store, asker: Asker, left: int, concurrency: int, progress: Progress, stop: Stop
) -> int:
    asked = 0

    def done(answer: Answer) -> None:
        nonlocal asked
        asked += 1
        progress.done(answer)

    if spec.batch:
        await ask_batches(lambda: pending(spec, store), store, asker, spec.attempts, stop, progress.warn, done)
        return asked
    trials, proved = pending(spec, store), asker.form.proved
    if spec.engine == "local":
        await run_trials(trials, asker.ask, store.append, concurrency=concurrency, stop=stop, done=done)
        proved = asker.form.proved
    elif left:
        proved = await on_ray.run_trials(
            trials,
            store.append,
            _setup(spec, store, asker.backend),
            asker.backend,
            left=left,
            concurrency=concurrency,
            address=spec.ray_address,
            stop=stop,
            done=done,
            warn=progress.warn,
        )
    if proved is not None:
        store.update_manifest(form=proved)
    return asked


def _setup(spec: RunSpec, store: Store, backend: Backend) -> Setup:
    """What workers elsewhere are told."""
    options = _asker_options(spec, store)
    return Setup(
        spec.rubric,
        spec.judge,
        backend.identity,
        _settings(spec),
        options | {"folder": options["folder"].absolute()},
        attempts=spec.attempts,
        deadline_s=_deadline_s(spec),
        place=Path.cwd(),
    )
