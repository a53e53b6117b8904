"""Trying again: exponential backoff with full jitter, never before the time a server named."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import TypeVar

from evenhand.errors import RetryableBackendError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retry:
    """How often, and when, to try again.

    Attributes:
        attempts: Most tries in all, at least 1.
        base_s: Longest pause after the first failed try; doubles with every further one.
        cap_s: Longest pause of our own choosing; a pause the server asks for may be longer.
        deadline_s: Seconds in which all tries must have begun. Where a pause would pass it, the error of the last
            try is raised at once, with what the server said in ``retry_after_s``.
        clock, sleep, uniform: Time in seconds, waiting, and a number in [0, 1); replaceable in tests.
    """

    attempts: int = 4
    base_s: float = 0.5
    cap_s: float = 30.0
    deadline_s: float = 300.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    uniform: Callable[[], float] = random.random

    async def run(self, once: Callable[[], Awaitable[T]], left_s: Callable[[], float] | None = None) -> T:
        """Call it until it succeeds.

        Args:
            once: One try.
            left_s: Seconds left for tries to begin; None counts ``deadline_s`` from now.

        Raises:
            RetryableBackendError: the last try's, when tries or time have run out. Any other error at once.
        """
        end = self.clock() + self.deadline_s
        for tries in count(1):
            try:
                return await once()
            except RetryableBackendError as error:
                pause = self.pause(tries, error.retry_after_s)
                if tries >= self.attempts or pause >= (left_s() if left_s else end - self.clock()):
                    raise
            await self.sleep(pause)
        raise AssertionError("unreachable")

    def pause(self, tries: int, retry_after_s: float | None) -> float:
        """Seconds to wait after so many failed tries.

        A pause the server asked for gets a little jitter on top, so that all who were told the same time do
        not come back at once.
        """
        if retry_after_s is not None:
            return retry_after_s + self.uniform() * min(self.base_s, retry_after_s / 10)
        return self.uniform() * min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 30))
