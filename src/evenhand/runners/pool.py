"""Run trials on workers elsewhere. The run gives out trials, turns and money, and stores what comes back.

A worker may die at any time: what it had not answered is given to others, and what it may have sent counts as paid.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from evenhand.backends.paced import Turns
from evenhand.backends.pacing import Turn
from evenhand.errors import FinalBackendError
from evenhand.judging import Answer
from evenhand.purse import Hold, Purse
from evenhand.rubric.model import Form
from evenhand.runners.local import Commit, GroupCommit, Stop
from evenhand.runners.worker import Message, Setup, at_form
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Status

BATCH = 100  #: Trials that are sent together, at most
_AHEAD = 2  # batches that a worker holds
_DEATHS = 5  # of workers, one after another, with no answer between
_LOOK_S = 0.1  # how often it is looked whether the run was asked to stop
_FAREWELL_S = 5.0


class Lost(Exception):
    """A worker is gone, or out of reach."""


class Line(Protocol):
    """A worker within reach; its methods are those of `evenhand.runners.worker.Worker`.

    Each raises `Lost` when the worker is gone.
    """

    async def start(self, setup: Setup) -> Exception | None:
        """Open the judge."""

    async def tell(self, told: list[Message]) -> None:
        """Tell it."""

    async def hear(self) -> list[Message]:
        """Hear what it says, which may be nothing after a while."""

    async def close(self) -> None:
        """Give up what is in flight."""

    def end(self) -> None:
        """Make sure that the worker is no more."""


class _Hand:
    """What one worker holds: trials, turns and money."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.trials: dict[TrialKey, Trial] = {}
        self.storing = 0  # answers of it that are not stored yet
        self.turns: dict[int, Turn] = {}
        self.holds: dict[int, Hold] = {}
        self.asked_for: dict[int, asyncio.Task[None]] = {}
        self.stopped = self.gone = False
        self._told: list[Message] = []
        self._news = asyncio.Event()

    def tell(self, *message: Any) -> None:
        """Have the worker told."""
        self._told.append(message)
        self._news.set()

    async def telling(self) -> None:
        """Tell the worker as long as it lives; who hears it learns of its death."""
        while True:
            await self._news.wait()
            self._news.clear()
            told, self._told = self._told, []
            await self.line.tell(told)


class Pool:
    """Asks all trials on some workers, and stores each verdict.

    Args:
        trials: What to ask; taken in pieces, so it may be endless.
        start: Begins a worker; called again for each that died.
        commit: Stores some answers durably.
        setup: What each worker must know.
        workers: How many at most, at least 1.
        batch: Trials sent together, at most.
        pacer: Gives turns to all of them together; None where requests need none.
        purse: Pays for all of them together; None where nothing is counted.
        stop: When asked, no new trial is begun; those in flight are finished and stored.
        done: Told of each stored answer.

    Attributes:
        form: The output form that a reply proved, None while there is none.
    """

    def __init__(
        self,
        trials: Iterator[Trial],
        start: Callable[[], Line],
        commit: Commit,
        setup: Setup,
        *,
        workers: int,
        batch: int = BATCH,
        pacer: Turns | None = None,
        purse: Purse | None = None,
        stop: Stop | None = None,
        done: Callable[[Answer], None] | None = None,
    ) -> None:
        self.form: Form | None = None
        self._trials, self._back = trials, deque[Trial]()
        self._start, self._workers = start, workers
        price, capped = (None, False) if purse is None else (purse.price, purse.capped)
        counts_tokens = pacer is not None and pacer.counts_tokens
        self._setup = replace(setup, price=price, capped=capped, counts_tokens=counts_tokens)
        self._batch = batch
        self._most = max(_AHEAD * batch, min(setup.width, _AHEAD * BATCH * 10) + batch)
        self._group = GroupCommit(commit, batch)
        self._pacer, self._purse = pacer, purse
        self._stop = stop or Stop()
        self._done = done
        self._hands: list[_Hand] = []
        self._errors: list[BaseException] = []
        self._exhausted = False
        self._deaths = self._storing = 0
        self._tried = asyncio.Event()  # one worker has tried the judge: what it learned holds for the others
        self._ended = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Ask all trials.

        Raises:
            Exception: what `trials`, `commit` or `done` raised first, or asking on a worker; the other trials in flight
                are finished and stored before it is raised.
            FinalBackendError: workers die one after another.
        """
        if self._stop.asked:
            return
        attending = [asyncio.create_task(self._attend(first=n == 0)) for n in range(self._workers)]
        watching = asyncio.create_task(self._watch())
        try:
            await self._ended.wait()
        finally:
            for task in (watching, *attending):
                task.cancel()
            await asyncio.gather(watching, *attending, return_exceptions=True)
            await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._errors:
            raise self._errors[0]

    async def _attend(self, *, first: bool) -> None:
        """See to one worker, and to another one in its place when it dies."""
        try:
            while True:
                line = self._start()
                if not first:
                    await self._tried.wait()
                hand = _Hand(line)
                telling = self._task(self._telling(hand))
                try:
                    await self._see_to(hand)
                except Lost as lost:
                    self._tried.set()
                    self._died(lost)
                finally:
                    self._take_back(hand)
                    telling.cancel()
                    await self._farewell(line)
                    self._look()
        except Exception as error:
            self._fail(error)

    async def _see_to(self, hand: _Hand) -> None:
        if (error := await hand.line.start(at_form(self._setup, self.form))) is not None:
            raise error
        self._hands.append(hand)
        while True:
            self._send(hand)
            self._look()
            for kind, *values in await hand.line.hear():
                getattr(self, f"_on_{kind}")(hand, *values)

    async def _telling(self, hand: _Hand) -> None:
        try:
            await hand.telling()
        except Lost:
            pass
        except Exception as error:  # it can't even be told to stop
            self._fail(error)
            self._ended.set()

    def _send(self, hand: _Hand) -> None:
        """Trials, as many as a worker may hold."""
        while not (self._stop.asked or hand.gone):
            if self._most - len(hand.trials) - hand.storing < self._batch:
                return
            try:
                batch = self._next(self._batch)
            except Exception as error:
                self._fail(error)
                return
            if not batch:
                return
            hand.trials |= {trial.key: trial for trial in batch}
            hand.tell("trials", batch)

    def _next(self, most: int) -> list[Trial]:
        batch = [self._back.popleft() for _ in range(min(most, len(self._back)))]
        if len(batch) < most and not self._exhausted:
            batch += islice(self._trials, most - len(batch))
            self._exhausted = len(batch) < most
        return batch

    # what workers say

    def _on_enter(self, hand: _Hand, number: int, tokens: int, left_s: float) -> None:
        async def turn() -> None:
            assert self._pacer is not None
            came = time.monotonic()
            given = await self._pacer.enter(tokens, left_s)
            hand.turns[number] = given
            hand.tell("turn", number, given.at, max(0.0, time.monotonic() - came - given.queued_s))

        self._give(hand, number, turn)

    def _on_leave(self, hand: _Hand, number: int, ended: Any, wait_s: float | None, unused: int) -> None:
        assert self._pacer is not None
        if (turn := hand.turns.pop(number, None)) is not None:
            self._pacer.leave(turn, ended, wait_s=wait_s, unused=unused)
        elif (task := hand.asked_for.get(number)) is not None:
            task.cancel()

    def _on_reserve(self, hand: _Hand, number: int, bound: int) -> None:
        async def hold() -> None:
            assert self._purse is not None
            hand.holds[number] = await self._purse.set_aside(bound)
            hand.tell("hold", number)

        self._give(hand, number, hold)

    def _on_settle(self, hand: _Hand, number: int, usage: Any, maybe_paid: bool) -> None:
        assert self._purse is not None
        if (hold := hand.holds.pop(number, None)) is not None:
            self._purse.settle(hold, usage, maybe_paid=maybe_paid)
        elif (task := hand.asked_for.get(number)) is not None:
            task.cancel()

    def _on_form(self, _: _Hand, form: Form | None) -> None:
        self.form = form or self.form

    def _on_answer(self, hand: _Hand, answer: Answer) -> None:
        if hand.trials.pop(answer.key, None) is None:
            return
        self._deaths = 0
        hand.storing += 1
        self._storing += 1
        if answer.exchanges or answer.verdict.status is Status.FAILED:
            self._tried.set()
        self._task(self._store(hand, answer))

    def _on_failed(self, hand: _Hand, key: TrialKey, error: Exception) -> None:
        hand.trials.pop(key, None)
        self._fail(error)

    def _on_left(self, hand: _Hand, keys: list[TrialKey]) -> None:
        for key in keys:
            hand.trials.pop(key, None)

    def _give(self, hand: _Hand, number: int, what: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Something that may take its time, to who asked for it."""

        async def given() -> None:
            try:
                await what()
            except Exception as error:
                hand.tell("refused", number, error)
            finally:
                hand.asked_for.pop(number, None)

        hand.asked_for[number] = self._task(given())

    async def _store(self, hand: _Hand, answer: Answer) -> None:
        try:
            await self._group.put(answer)
            if self._done is not None:
                self._done(answer)
        except Exception as error:
            self._fail(error)
        finally:
            hand.storing -= 1
            self._storing -= 1
            self._send(hand)
            self._look()

    # the course of the run

    def _task(self, what: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(what)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _fail(self, error: BaseException) -> None:
        self._errors.append(error)
        self._stop()
        self._look()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            self._look()

    def _look(self) -> None:
        """See whether it is over, or is to be."""
        if self._stop.asked:
            for hand in self._hands:
                if not hand.stopped:
                    hand.stopped = True
                    hand.tell("stop")
        elif not self._exhausted or self._back:
            return
        if not self._storing and not any(hand.trials for hand in self._hands):
            self._ended.set()

    def _died(self, lost: Lost) -> None:
        self._deaths += 1
        if self._deaths >= _DEATHS and not self._errors:
            self._fail(
                FinalBackendError(
                    f"{_DEATHS} workers died one after another, with no answer between: {lost}",
                    hint="the cluster's logs tell why; too little memory is the most common reason",
                )
            )

    def _take_back(self, hand: _Hand) -> None:
        """All that a worker held, when it is gone: as many requests as it had turns may have been sent."""
        for task in list(hand.asked_for.values()):
            task.cancel()
        sent = len(hand.turns)
        if self._pacer is not None:
            for turn in hand.turns.values():
                self._pacer.leave(turn, "dropped")
        if self._purse is not None:
            for place, hold in enumerate(sorted(hand.holds.values(), key=lambda hold: -hold.bound)):
                self._purse.settle(hold, None, maybe_paid=place < sent)
        self._back.extendleft(reversed(hand.trials.values()))
        hand.turns, hand.holds, hand.trials, hand.gone = {}, {}, {}, True
        if hand in self._hands:
            self._hands.remove(hand)

    async def _farewell(self, line: Line) -> None:
        with contextlib.suppress(Lost, TimeoutError):
            async with asyncio.timeout(_FAREWELL_S):
                await line.close()
        line.end()


def shares(left: int, workers: int, concurrency: int, most: int | None) -> tuple[int, int, int]:
    """(workers, trials that each has begun at most, trials sent together) for so many trials.

    Args:
        left: Trials to be asked.
        workers: How many there may be.
        concurrency: Requests in flight in all.
        most: Of which a worker can usefully have so many; None for no limit.
    """
    workers = max(1, min(workers, left, concurrency if most is None else left))
    width = math.ceil(concurrency / workers) if most is None else most
    return workers, width, max(1, min(BATCH, math.ceil(left / (4 * workers))))
