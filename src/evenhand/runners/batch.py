"""Run trials through a provider's batches: all that is asked is handed in, and collected when it is answered.

A trial is asked by the same code as live. Its requests go to a backend that holds what batches answered; where it
holds no answer, the request is handed in with the next batch and the trial put off. So forms, re-asks and verdicts are
those of a live run. What is kept of a batch is its id: all else is made again from the provider's results.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from evenhand._canon import digest
from evenhand._words import counted
from evenhand.backend import Backend, Request
from evenhand.backends.batch_wire import BatchWire, Line
from evenhand.backends.http import HttpBackend
from evenhand.backends.paced import Paced
from evenhand.errors import AccessError, BackendError, FinalBackendError, InputError, RetryableBackendError
from evenhand.judging import Answer, Asker
from evenhand.purse import Purse
from evenhand.runners.local import Commit, Stop
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Reply

FIRST_S, LONGEST_S = 1.0, 60.0  #: pauses between two looks at a batch; they grow from one to the other
_LOOK_S = 0.25
_NO_SUCH = (404, 405, 501)

#: Batches that were handed in, as the run keeps them: {"token", "id" (None until it is known), "lines", "held"
#: (billionths of a dollar set aside for them), "read" (what came of it is stored, and counted)}.
Kept = list[dict[str, Any]]


class _Later(Exception):
    """A request has no answer yet."""


@dataclass
class _Answered:
    """A backend whose answers came from batches; what has none is wanted of the next.

    Attributes:
        lines: What batches answered, by the name of the request.
        counted: Names of those that were paid for before, failures included.
        handed_in: Names that the latest batches owe an answer to.
        failures: How often a request failed.
        wanted: What the next batch is for.
    """

    inner: HttpBackend
    outer: Backend
    purse: Purse | None
    attempts: int
    lines: dict[str, Line] = field(default_factory=dict)
    counted: set[str] = field(default_factory=set)
    handed_in: set[str] = field(default_factory=set)
    failures: Counter[str] = field(default_factory=Counter)
    wanted: dict[str, Request] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outer, name)

    def take(self, lines: Sequence[Line], *, counted: bool) -> None:
        """The results of one batch; they come before those of earlier ones."""
        names = [line.name for line in lines]
        self.lines.update(zip(names, lines, strict=True))
        (self.counted.update if counted else self.counted.difference_update)(names)

    async def send(self, request: Request) -> Reply:
        name = _name(request)
        line = self.lines.get(name)
        error: BackendError = RetryableBackendError("no batch gave a result for it")
        if line is not None:
            try:
                return self._paid(request, name, self.inner.answer(request, line.status, line.body))
            except BackendError as failed:
                error = failed
                again = isinstance(failed, RetryableBackendError)
                if name in self.counted:  # that was told before
                    again = again or isinstance(failed, AccessError)
                elif self.purse:
                    self.purse.collect(request, None, maybe_paid=failed.maybe_paid)
                self.counted.add(name)
                if not again:
                    raise
                del self.lines[name]
                self.failures[name] += 1
        elif name in self.handed_in:
            self.failures[name] += 1
        if self.failures[name] >= self.attempts:
            raise error
        self.wanted[name] = request
        raise _Later

    def _paid(self, request: Request, name: str, reply: Reply) -> Reply:
        if self.purse is None:
            return reply
        if name in self.counted:
            return replace(reply, usage=self.purse.priced(reply.usage))
        self.counted.add(name)
        usage = self.purse.collect(request, reply.usage)
        return reply if usage is None else replace(reply, usage=usage)


def purse_of(asker: Asker) -> Purse | None:
    """The purse that pays for an asker's requests, if any does."""
    return getattr(asker.backend, "purse", None)


def batch_wire(backend: Backend) -> tuple[HttpBackend, BatchWire]:
    """The backend that speaks to the provider, and how it takes batches.

    Raises:
        InputError: it takes none.
    """
    inner = backend.inner if isinstance(backend, Paced) else backend
    wire = inner.batches() if isinstance(inner, HttpBackend) else None
    if not isinstance(inner, HttpBackend) or wire is None:
        raise InputError(
            f"judge {backend.name} has no batch interface", hint="leave --batch out; openai and anthropic have one"
        )
    return inner, wire


async def run_batches(
    trials: Callable[[], Iterator[Trial]],
    asker: Asker,
    commit: Callable[[Sequence[Answer], Kept], None],
    *,
    kept: Kept,
    keep: Callable[[Kept], None],
    attempts: int,
    stop: Stop,
    say: Callable[[str], None],
    done: Callable[[Answer], None],
) -> None:
    """Ask all trials through batches, in rounds, until each has a verdict.

    Args:
        trials: The trials that have no verdict yet; called once a round.
        asker: Asks trials live; the first one, where nobody knows the output form of the endpoint.
        commit: Stores answers durably, together with the batches that are under way.
        kept: What an earlier call kept: its batches are collected first, nothing of them is handed in again.
        keep: Keeps the batches that are under way.
        attempts: Tries of one request at most.
        stop: When asked, waiting ends; batches go on at the provider, and the next call collects them.
        say: Told what is handed in, and how far it is.
        done: Told of each stored answer.

    Raises:
        BackendError: a batch was refused as a whole, or the provider can't be reached.
    """
    inner, wire = batch_wire(asker.backend)
    purse = purse_of(asker)
    answered = _Answered(inner, asker.backend, purse, attempts)
    collector = copy.copy(asker)
    collector.backend = answered
    desk = _Desk(wire, purse, [*kept], keep, stop, say)
    told: set[TrialKey] = set()

    def store(answers: Sequence[Answer]) -> None:
        commit(answers, desk.kept)
        for answer in answers:
            told.add(answer.key)
            done(answer)

    def left() -> Iterator[Trial]:  # without those that failed just now
        return (trial for trial in trials() if trial.key not in told)

    await desk.recover()
    if not desk.kept and asker.form.form is None:
        await _one_live(left(), asker, store)
    while not stop.asked:
        if not await desk.collect(answered):  # stopped
            return
        await _settled(left(), collector, lambda answers: store(desk.read(answers)))
        if not answered.wanted:
            if purse is not None:  # of requests without a result, or of rows that are not asked for now
                purse.give_back(purse.reserved, maybe_paid=True)
            keep([])
            return
        if not await desk.hand_in(answered):
            return


@dataclass
class _Desk:
    """Hands batches in and fetches what became of them."""

    wire: BatchWire
    purse: Purse | None
    kept: Kept
    keep: Callable[[Kept], None]
    stop: Stop
    say: Callable[[str], None]
    collected: int = 0

    async def recover(self) -> None:
        """Find the batch that was being handed in when an earlier call was killed."""
        for entry in [entry for entry in self.kept if entry["id"] is None]:
            entry["id"] = await self.wire.find(entry["token"])
            if entry["id"] is None:
                self._drop(entry, maybe_paid=True)
        self.keep(self.kept)

    async def hand_in(self, answered: _Answered) -> bool:
        """Everything that is wanted and that there is money for, in batches as large as they may be; whether anything
        was.
        """
        answered.handed_in.clear()
        chunk: list[bytes] = []
        size = held = 0
        waiting: list[Request] = []
        for name, request in answered.wanted.items():
            line = self.wire.line(name, answered.inner.body(request))
            if chunk and (len(chunk) >= self.wire.most_lines or size + len(line) + 1 > self.wire.most_bytes):
                await self._submit(chunk, held)
                chunk, size, held = [], 0, 0
            bound = 0 if self.purse is None else self.purse.hand_in(request)
            if bound is None:
                waiting.append(request)
                continue
            chunk.append(line)
            size += len(line) + 1
            held += bound
            answered.handed_in.add(name)
        answered.wanted.clear()
        if chunk:
            await self._submit(chunk, held)
        if waiting and self.purse is not None:
            if not answered.handed_in:
                self.purse.no_room(waiting[0])
                return False
            self.say(f"{counted(len(waiting), 'request')} must wait until it is known what these cost, for --max-cost")
        return True

    async def _submit(self, chunk: Sequence[bytes], held: int) -> None:
        entry: dict[str, Any] = {"token": secrets.token_hex(16), "id": None, "lines": len(chunk), "held": held}
        self.kept.append(entry)
        self.keep(self.kept)  # before it is sent: who is killed now must look for it
        try:
            entry["id"] = await self.wire.submit(chunk, entry["token"])
        except FinalBackendError as error:
            self._drop(entry, maybe_paid=False)
            if error.status in _NO_SUCH:
                error.hint = "the server may have no batch interface: leave --batch out"
            raise
        self.keep(self.kept)
        self.say(f"batch {entry['id']}: {counted(len(chunk), 'request')} handed in")

    def _drop(self, entry: dict[str, Any], *, maybe_paid: bool) -> None:
        """Forget a batch that has no results."""
        self.kept.remove(entry)
        if self.purse is not None:
            self.purse.give_back(entry.get("held", 0), maybe_paid=maybe_paid)
        self.keep(self.kept)

    async def collect(self, answered: _Answered) -> bool:
        """Take the results of all batches not collected yet, once they have ended; False where we were stopped."""
        for entry in self.kept[self.collected :]:
            state = await self._ended(entry["id"])
            if state is None:
                return False
            if state.failed is not None:
                self._drop(entry, maybe_paid=False)
                raise FinalBackendError(
                    f"batch {entry['id']} was refused: {state.failed}", hint="nothing of it was answered"
                )
            answered.take(await self.wire.lines(state), counted=entry.get("read", False))
        self.collected = len(self.kept)
        return True

    def read(self, answers: Sequence[Answer]) -> Sequence[Answer]:
        """The answers, now that all that was collected is about to be stored."""
        for entry in self.kept:
            entry.update(held=0, read=True)
        return answers

    async def _ended(self, batch: str) -> Any:
        pause, told = FIRST_S, ""
        while True:
            state = await self.wire.state(batch)
            if state.ended:
                return state
            if state.told != told:
                self.say(f"batch {batch}: {state.told}")
            told = state.told
            for _ in range(max(1, round(pause / _LOOK_S))):
                if self.stop.asked:
                    self.say(f"batch {batch} goes on at the provider; the same command collects it")
                    return None
                await asyncio.sleep(min(pause, _LOOK_S))
            pause = min(LONGEST_S, 1.5 * pause)


async def _one_live(trials: Iterator[Trial], asker: Asker, store: Commit) -> None:
    """Ask the first trial that takes a request at once: it proves key, model and form before all are handed in."""
    for trial in trials:
        if asker.question(trial).fields:
            store([await asker.ask(trial)])
            return


async def _settled(trials: Iterator[Trial], asker: Asker, store: Callable[[list[Answer]], None]) -> None:
    """Store the verdicts of all trials whose requests are all answered: all at once, so that their cost is counted
    once; also where one of them ends the run.
    """
    answers: list[Answer] = []
    try:
        for trial in trials:
            with contextlib.suppress(_Later):
                answers.append(await asker.ask(trial))
    finally:
        store(answers)


def _name(request: Request) -> str:
    """What identifies a request among all of a run: its trial, its attempt and its form."""
    return digest([request.item_id, request.order, request.repeat, request.attempt, request.form])[:48]
