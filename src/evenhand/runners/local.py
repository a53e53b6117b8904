"""Run trials on this machine: N workers over one iterator, verdicts committed in groups."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Sequence

from evenhand.judging import Answer
from evenhand.trial import Trial

Ask = Callable[[Trial], Awaitable[Answer]]
#: New objects that start a search for cycles.
_ALLOCATIONS = 20_000
_GATHERED_S = 0.004  # of answers that are stored together
Commit = Callable[[Sequence[Answer]], None]


class Stop:
    """Asks a running runner to take no new trial and to finish what is in flight."""

    def __init__(self) -> None:
        self.asked = False

    def __call__(self) -> None:
        self.asked = True


class GroupCommit:
    """Stores answers in groups; ``put`` returns once its answer is stored.

    A group is what comes within a few milliseconds: a commit costs as much as ten answers do. It is written in the
    loop's own thread, as another one would wait for the interpreter longer than writing takes.

    Args:
        commit: Stores some answers durably.
        most: Answers that there can be before one is stored; then there is nothing to wait for.
    """

    def __init__(self, commit: Commit, most: int) -> None:
        self._commit, self._most = commit, most
        self._waiting: list[tuple[Answer, asyncio.Future[None]]] = []
        self._coming: asyncio.Handle | None = None  # the next writing

    async def put(self, answer: Answer) -> None:
        loop = asyncio.get_running_loop()
        stored: asyncio.Future[None] = loop.create_future()
        self._waiting.append((answer, stored))
        if len(self._waiting) == self._most:
            if self._coming is not None:
                self._coming.cancel()
            self._coming = loop.call_soon(self._write)  # not at once: a run that never waits hears no signal
        elif self._coming is None:
            self._coming = loop.call_later(_GATHERED_S, self._write)
        await stored

    def _write(self) -> None:
        self._coming = None
        group, self._waiting = self._waiting, []
        failed: Exception | None = None
        try:
            self._commit([answer for answer, _ in group])
        except Exception as error:
            failed = error
        for _, stored in group:
            if stored.done():
                continue
            if failed is None:
                stored.set_result(None)
            else:
                stored.set_exception(failed)


@contextlib.contextmanager
def _seldom_collected() -> Iterator[None]:
    """A run leaves hardly a cycle behind, and looking for them at Python's usual pace takes a tenth of its CPU."""
    pace = gc.get_threshold()
    if gc.isenabled() and pace[0]:
        gc.set_threshold(max(_ALLOCATIONS, pace[0]), *pace[1:])
    try:
        yield
    finally:
        gc.set_threshold(*pace)


async def run_trials(
    trials: Iterator[Trial],
    ask: Ask,
    commit: Commit,
    *,
    concurrency: int,
    stop: Stop | None = None,
    done: Callable[[Answer], None] | None = None,
) -> None:
    """Ask all trials, at most ``concurrency`` at once, and store each verdict before taking the next trial.

    Args:
        trials: What to ask; taken one by one, so it may be endless.
        ask: Asks one trial.
        commit: Stores some answers durably.
        concurrency: Trials in flight at most (at least 1).
        stop: When asked, no new trial is taken; trials in flight are finished and stored.
        done: Told of each stored answer.

    Raises:
        Exception: whatever `trials`, `ask`, `commit` or `done` raised first; the other trials in flight are finished
            and stored before it is raised.
    """
    group = GroupCommit(commit, max(1, concurrency))
    stop = stop or Stop()
    errors: list[Exception] = []

    async def work() -> None:
        try:
            for trial in trials:
                answer = await ask(trial)
                await group.put(answer)
                if done is not None:
                    done(answer)
                if stop.asked:
                    return
        except Exception as error:
            errors.append(error)
            stop()

    if not stop.asked:
        with _seldom_collected():
            await asyncio.gather(*(asyncio.create_task(work()) for _ in range(max(1, concurrency))))
    if errors:
        raise errors[0]
