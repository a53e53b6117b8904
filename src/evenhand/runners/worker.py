"""A worker elsewhere: asks trials with its own backend; its turns and its money are given by the run, from afar.

It is told things, and is heard, in lists of messages: tuples of a kind and its values. A worker is told

    ("trials", trials)                  ask these too
    ("turn", number, at, held_s)        a turn, given at that time; the endpoint made us wait so many seconds for it
    ("hold", number)                    so much is set aside
    ("refused", number, error)          there is no turn, or no money
    ("stop",)                           take no new trial

and says

    ("enter", number, tokens, left_s)   asks for a turn
    ("leave", number, ended, wait_s, unused)
    ("reserve", number, bound)          asks for money, in billionths of a dollar
    ("settle", number, usage, maybe_paid)
    ("form", form)                      a reply proved this output form
    ("answer", answer)
    ("failed", key, error)              what asking raised; the run ends
    ("left", keys)                      trials that it will not ask, as it was stopped
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import pickle
import time
import traceback
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.paced import Paced
from evenhand.backends.pacing import Ended, Turn
from evenhand.backends.retry import Retry
from evenhand.errors import EvenhandError, FinalBackendError, InputError
from evenhand.judging import Asker, Judge
from evenhand.prices import Price
from evenhand.purse import Hold, bound_of, priced_usage
from evenhand.rubric.model import Form, Rubric
from evenhand.trial import Trial
from evenhand.verdict import Usage

Message = tuple[Any, ...]
_QUIET_S = 1.0  # a worker that has nothing to say says so after a while


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a worker must know to ask a run's trials; it can be sent to another machine.

    Attributes:
        rubric, judge: What is asked, and who.
        identity: Of the judge, as the run recorded it; a worker whose own judge is another one refuses to work.
        backend: How to open it.
        asker: Keywords of `evenhand.judging.Asker`.
        attempts, deadline_s: Tries for a request, and seconds in which they must have begun.
        price: What requests cost; None where nobody counts it.
        capped: Whether there is a cap on it.
        counts_tokens: Whether there is a limit of tokens.
        width: Trials that a worker has begun at most.
        place: Where relative paths start, where there is such a folder.
    """

    rubric: Rubric
    judge: Judge
    identity: Mapping[str, Any]
    backend: BackendSettings = field(repr=False)
    asker: Mapping[str, Any] = field(repr=False)
    attempts: int
    deadline_s: float
    price: Price | None = None
    capped: bool = False
    counts_tokens: bool = False
    width: int = 1
    place: Path = Path()


class Worker:
    """Asks trials; one a process."""

    def __init__(self) -> None:
        self._inbox: deque[Trial] = deque()
        self._said: list[Message] = []
        self._news = asyncio.Event()
        self._awaited: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count()
        self._busy: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._asker: Asker | None = None
        self._form: Form | None = None
        self._width = 1

    async def start(self, setup: Setup) -> Exception | None:
        """Open the judge; what is wrong with it, if anything."""
        with contextlib.suppress(OSError):
            os.chdir(setup.place)
        try:
            backend = setup.judge.open(setup.backend)
            if dict(backend.identity) != dict(setup.identity):
                raise InputError(
                    f"the judge {setup.judge.spec} is another one on a worker: {dict(backend.identity)}, "
                    f"not {dict(setup.identity)}",
                    hint="give all machines the same version, files and weights",
                )
            if not backend.deterministic:
                purse = None if setup.price is None else _Purse(self, setup.price, capped=setup.capped)
                turns = _Turns(self, counts_tokens=setup.counts_tokens)
                retry = Retry(setup.attempts, deadline_s=setup.deadline_s)
                backend = Paced(backend, retry=retry, pacer=turns, purse=purse)
            self._asker = Asker(setup.rubric, setup.judge, backend, **setup.asker)
        except Exception as error:
            return portable(error)
        self._form, self._width = self._asker.form.proved, setup.width
        return None

    async def tell(self, told: list[Message]) -> None:
        """Hear what the run has to say."""
        for kind, *values in told:
            if kind == "trials":
                self._inbox.extend(values[0])
            elif kind == "stop":
                self._stopped = True
                if left := [trial.key for trial in self._inbox]:
                    self._inbox.clear()
                    self.say("left", left)
            else:
                number, *given = values
                answered = self._awaited.get(number)
                if answered is None or answered.done():
                    continue
                if kind == "refused":
                    answered.set_exception(given[0])
                else:
                    answered.set_result(given)
        while len(self._busy) < min(self._width, len(self._busy) + len(self._inbox)):
            task = asyncio.create_task(self._work(self._inbox.popleft()))
            self._busy.add(task)
            task.add_done_callback(self._busy.discard)

    async def hear(self) -> list[Message]:
        """What there is to say since the last time; waits for something, a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_QUIET_S):
                await self._news.wait()
        self._news.clear()
        said, self._said = self._said, []
        return said

    async def close(self) -> None:
        """Give up what is in flight, and close the judge."""
        for task in self._busy:
            task.cancel()
        await asyncio.gather(*self._busy, return_exceptions=True)
        if self._asker is not None:
            await self._asker.backend.aclose()

    def say(self, *message: Any) -> None:
        """Have the run told."""
        self._said.append(message)
        self._news.set()

    async def answer(self, kind: str, *values: Any, undo: Message) -> tuple[int, list[Any]]:
        """Ask the run for something.

        Args:
            kind, values: The message, without its number.
            undo: The message, without its number, that gives it back to who no longer waits.

        Returns:
            The number of it, and what was given.
        """
        number = next(self._numbers)
        self._awaited[number] = given = asyncio.get_running_loop().create_future()
        self.say(kind, number, *values)
        try:
            return number, await given
        except asyncio.CancelledError:
            self.say(undo[0], number, *undo[1:])
            raise
        finally:
            del self._awaited[number]

    async def _work(self, trial: Trial) -> None:
        """Ask a trial, and then others as long as there are any."""
        assert self._asker is not None
        while True:
            try:
                answer = await self._asker.ask(trial)
            except Exception as error:
                self.say("failed", trial.key, portable(error))
            else:
                if self._asker.form.proved != self._form:
                    self._form = self._asker.form.proved
                    self.say("form", self._form)
                self.say("answer", answer)
            if not self._inbox:
                return
            await asyncio.sleep(0)  # a judge that never waits must not keep the run from hearing of it
            if not self._inbox:
                return
            trial = self._inbox.popleft()


class _FarTurn(Turn, frozen=True, gc=False):
    """A turn that the run gave."""

    number: int = 0


class _Turns:
    """Turns of the run's pacer; see `evenhand.backends.pacing.Pacer`."""

    def __init__(self, worker: Worker, *, counts_tokens: bool) -> None:
        self._worker, self.counts_tokens = worker, counts_tokens

    async def enter(self, tokens: int, left_s: float = math.inf) -> Turn:
        came = time.monotonic()
        undo = ("leave", "dropped", None, 0)
        number, (at, held_s) = await self._worker.answer("enter", tokens, left_s, undo=undo)
        return _FarTurn(at, max(0.0, time.monotonic() - came - held_s), number)

    def leave(self, turn: Turn, ended: Ended, *, wait_s: float | None = None, unused: int = 0) -> None:
        assert isinstance(turn, _FarTurn)
        self._worker.say("leave", turn.number, ended, wait_s, unused)


@dataclass(frozen=True, slots=True)
class _FarHold(Hold):
    """What the run set aside."""

    number: int = 0


class _Purse:
    """The run's purse; see `evenhand.purse.Purse`."""

    def __init__(self, worker: Worker, price: Price, *, capped: bool) -> None:
        self._worker, self._price, self._capped = worker, price, capped

    async def reserve(self, request: Request) -> Hold:
        bound = bound_of(request, self._price, capped=self._capped)
        number, _ = await self._worker.answer("reserve", bound, undo=("settle", None, False))
        return _FarHold(bound, number)

    def settle(self, held: Hold, usage: Usage | None, *, maybe_paid: bool = False) -> Usage | None:
        assert isinstance(held, _FarHold)
        self._worker.say("settle", held.number, usage, maybe_paid)
        return None if usage is None else priced_usage(usage, self._price)


def portable(error: Exception) -> Exception:
    """An error that can be sent to another process, with the place where it was raised."""
    if not isinstance(error, EvenhandError):
        error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        if isinstance(error, EvenhandError):
            kind = InputError if error.exit_code == InputError.exit_code else FinalBackendError
            return kind(error.message, hint=error.hint)
        return RuntimeError("".join(traceback.format_exception(error)))
    return error


def at_form(setup: Setup, form: Form | None) -> Setup:
    """A setup with the output form that is known now."""
    return setup if form is None else replace(setup, asker={**setup.asker, "form": form})
