"""Workers of a pool in this process: what they are sent is pickled, and they can be killed."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from evenhand.backend import BackendSettings
from evenhand.judging import Judge
from evenhand.runners.local import Ask, Commit, Stop
from evenhand.runners.pool import Lost, Pool, shares
from evenhand.runners.worker import Message, Setup, Worker
from evenhand.trial import Trial
from runs import TWO

SETUP = Setup(TWO, Judge("fake"), {}, BackendSettings(), {}, attempts=4, deadline_s=300.0)


def sent(thing: Any) -> Any:
    """A thing as another process gets it."""
    return pickle.loads(pickle.dumps(thing))


class Near:
    """A line to a worker in this process.

    Args:
        ask: Asks one trial; None opens the judge of the setup.
    """

    def __init__(self, ask: Ask | None = None) -> None:
        self.worker = Worker()
        self.killed = asyncio.Event()
        self.setups: list[Setup] = []
        self._ask = ask

    def kill(self) -> None:
        """End it at once: nothing that it does or says from now on counts."""
        self.killed.set()
        for task in self.worker._busy:
            task.cancel()

    async def start(self, setup: Setup) -> Exception | None:
        self.setups.append(setup)
        if self._ask is None:
            return await self._alive(self.worker.start(sent(setup)))
        form, backend = SimpleNamespace(proved=None), SimpleNamespace(aclose=lambda: asyncio.sleep(0))
        self.worker._asker = SimpleNamespace(ask=self._ask, form=form, backend=backend)  # type: ignore[assignment]
        self.worker._width = setup.width
        return None

    async def tell(self, told: list[Message]) -> None:
        await self._alive(self.worker.tell(sent(told)))

    async def hear(self) -> list[Message]:
        return sent(await self._alive(self.worker.hear()))

    async def close(self) -> None:
        await self._alive(self.worker.close())

    def end(self) -> None:
        self.kill()

    async def _alive(self, what: Any) -> Any:
        doing, dead = asyncio.ensure_future(what), asyncio.ensure_future(self.killed.wait())
        try:
            await asyncio.wait({doing, dead}, return_when=asyncio.FIRST_COMPLETED)
            if self.killed.is_set():
                raise Lost("killed")
            return doing.result()
        finally:
            doing.cancel()
            dead.cancel()


async def run_on_pool(
    trials: Iterator[Trial],
    ask: Ask,
    commit: Commit,
    *,
    concurrency: int,
    stop: Stop | None = None,
    done: Callable[[Any], None] | None = None,
) -> None:
    """As `evenhand.runners.local.run_trials`, on two workers."""
    workers, width, batch = shares(200, 2, concurrency, None)
    setup = replace(SETUP, width=width)
    await Pool(trials, lambda: Near(ask), commit, setup, workers=workers, batch=batch, stop=stop, done=done).run()
