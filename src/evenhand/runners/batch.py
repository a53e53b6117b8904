"""Run trials through a provider's batches: all that is asked is handed in, and collected when it is answered.

A trial is asked by the same code as live. Its requests go to a backend that holds what batches answered; where it
holds no answer, the request is handed in with the next batch and the trial put off. So forms, re-asks and verdicts are
those of a live run. What is kept of a batch is its id: all else is made again from the provider's results.
"""

from __future__ import annotations

import asyncio
import copy
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand._canon import digest
from evenhand._words import counted
from evenhand.backend import Backend, Request
from evenhand.backends.batch_wire import BatchWire, Line
from evenhand.backends.http import HttpBackend
from evenhand.backends.paced import Paced
from evenhand.errors import FinalBackendError, InputError, RetryableBackendError
from evenhand.judging import Answer, Asker
from evenhand.runners.local import Commit, Stop
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Reply

FIRST_S, LONGEST_S = 1.0, 60.0  #: pauses between two looks at a batch; they grow from one to the other
_LOOK_S = 0.25
_GROUP = 200
_NO_SUCH = (404, 405, 501)

#: Ids of the batches that were handed in, as the run keeps them: {"token", "id" (None until it is known), "lines"}.
Kept = list[dict[str, Any]]


class _Later(Exception):
    """A request has no answer yet."""


@dataclass
class _Answered:
    """A backend whose answers came from batches; what has none is wanted of the next."""

    inner: HttpBackend
    outer: Backend
    attempts: int
    lines: dict[str, Line] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    wanted: dict[str, Request] = field(default_factory=dict)
    rounds: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.outer, name)

    async def send(self, request: Request) -> Reply:
        name = _name(request)
        line = self.lines.get(name)
        tries = max(self.failures[name], self.rounds // 2)  # a trial may need two, one after the other
        error = RetryableBackendError("no batch gave a result for it", maybe_paid=False)
        if line is not None:
            try:
                return await self._priced(request, self.inner.answer(request, line.status, line.body))
            except RetryableBackendError as failed:
                error = failed
                del self.lines[name]
                self.failures[name] += 1
                tries = self.failures[name]
        if tries >= self.attempts:
            raise error
        self.wanted[name] = request
        raise _Later

    async def _priced(self, request: Request, reply: Reply) -> Reply:
        purse = getattr(self.outer, "purse", None)
        if purse is None:
            return reply
        usage = purse.settle(await purse.reserve(request), reply.usage)
        return reply if usage is None else replace(reply, usage=usage)


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
    commit: Commit,
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
        commit: Stores answers durably.
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
    answered = _Answered(inner, asker.backend, attempts)
    collector = copy.copy(asker)
    collector.backend = answered
    desk = _Desk(wire, [*kept], keep, stop, say)
    told: set[TrialKey] = set()

    def store(answers: Sequence[Answer]) -> None:
        commit(answers)
        for answer in answers:
            told.add(answer.key)
            done(answer)

    def left() -> Iterator[Trial]:  # without those that failed just now
        return (trial for trial in trials() if trial.key not in told)

    await desk.recover()
    if not desk.kept and asker.form.form is None:
        await _one_live(left(), asker, store)
    while not stop.asked:
        if desk.kept:
            lines = await desk.collect()
            if lines is None:  # stopped
                return
            answered.lines.update((line.name, line) for line in lines)
            answered.rounds += 1
        answered.wanted.clear()
        await _settled(left(), collector, store)
        if not answered.wanted:
            keep([])
            return
        await desk.hand_in(answered)


@dataclass
class _Desk:
    """Hands batches in and fetches what became of them."""

    wire: BatchWire
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
                self.kept.remove(entry)
        self.keep(self.kept)

    async def hand_in(self, answered: _Answered) -> None:
        """Everything that is wanted, in batches as large as they may be."""
        chunk: list[bytes] = []
        size = 0
        for name, request in answered.wanted.items():
            line = self.wire.line(name, answered.inner.body(request))
            if chunk and (len(chunk) >= self.wire.most_lines or size + len(line) + 1 > self.wire.most_bytes):
                await self._submit(chunk)
                chunk, size = [], 0
            chunk.append(line)
            size += len(line) + 1
        await self._submit(chunk)

    async def _submit(self, chunk: Sequence[bytes]) -> None:
        entry: dict[str, Any] = {"token": secrets.token_hex(16), "id": None, "lines": len(chunk)}
        self.kept.append(entry)
        self.keep(self.kept)  # before it is sent: who is killed now must look for it
        try:
            entry["id"] = await self.wire.submit(chunk, entry["token"])
        except FinalBackendError as error:
            self.kept.remove(entry)
            self.keep(self.kept)
            if error.status in _NO_SUCH:
                error.hint = "the server may have no batch interface: leave --batch out"
            raise
        self.keep(self.kept)
        self.say(f"batch {entry['id']}: {counted(len(chunk), 'request')} handed in")

    async def collect(self) -> list[Line] | None:
        """The results of all batches not collected yet, once all have ended; None where we were stopped before."""
        lines: list[Line] = []
        for entry in self.kept[self.collected :]:
            state = await self._ended(entry["id"])
            if state is None:
                return None
            if state.failed is not None:
                self.kept.remove(entry)
                self.keep(self.kept)
                raise FinalBackendError(
                    f"batch {entry['id']} was refused: {state.failed}", hint="nothing of it was answered"
                )
            lines += await self.wire.lines(state)
        self.collected = len(self.kept)
        return lines

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


async def _settled(trials: Iterator[Trial], asker: Asker, store: Commit) -> None:
    """Store the verdicts of all trials whose requests are all answered."""
    group: list[Answer] = []
    for trial in trials:
        try:
            group.append(await asker.ask(trial))
        except _Later:
            continue
        if len(group) >= _GROUP:
            store(group)
            group = []
    if group:
        store(group)


def _name(request: Request) -> str:
    """What identifies a request among all of a run: its trial, its attempt and its form."""
    return digest([request.item_id, request.order, request.repeat, request.attempt, request.form])[:48]
