"""When the next request may be sent: shared by all workers of a run, since one endpoint counts them all together."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable

from evenhand.errors import RetryableBackendError

START = 16  #: requests in flight before anything is known of an endpoint
MOST = 256  #: requests in flight that are found out by ourselves
_GAIN = 1.1  # throughput a doubling must bring, or it is taken back
_LESS = 0.7  # what is left of the requests in flight when an endpoint says it has too many
_AGAIN_S = 60.0  # after so long one request more than what was too many is tried
_MINUTE = 60.0


class Pacer:
    """Requests in flight, and their rate.

    With a fixed number of requests in flight it is the most there ever are. Without, they are doubled from `START` as
    long as throughput grows with them. Where the endpoint says that there are too many, fewer are sent at once, then
    slowly more again, up to one less than were too many.

    Args:
        fixed: Most requests in flight; None finds out.
        rpm, tpm: Most requests, and tokens, a minute; None for no limit of ours. They are spread evenly.
        clock, sleep: Time in seconds, and waiting; replaceable in tests.

    Attributes:
        limit: Requests that may be in flight now, at least 1.
    """

    def __init__(
        self,
        fixed: int | None = None,
        *,
        rpm: float | None = None,
        tpm: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.limit = float(fixed or START)
        self._ceiling = float(fixed or MOST)
        self._most = self._ceiling
        self._growing = fixed is None
        self._rpm, self._tpm = rpm, tpm
        self._clock, self._sleep = clock, sleep
        self._inflight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = self._next_request = self._next_token = 0.0
        self._cut_at = float("-inf")
        self._best = 0.0  # throughput of the limit before the last doubling
        self._window = (clock(), 0)  # since when, and how many were answered

    async def enter(self, tokens: int, left_s: float = math.inf) -> float:
        """Wait for a turn; `leave` must follow.

        Args:
            tokens: How many tokens the request will take, as far as known.
            left_s: Seconds after which a request is of no use any more.

        Returns:
            When the turn came, for `leave`.

        Raises:
            RetryableBackendError: the endpoint wants no request for longer than that.
        """
        await self._place()
        try:
            if (named := self._not_before - self._clock()) > left_s:
                raise RetryableBackendError(f"the endpoint wants no request for {named:.0f} s", retry_after_s=named)
            while (pause := self._free_at() - self._clock()) > 0:
                await self._sleep(pause)
        except BaseException:
            self._leave_place()
            raise
        now = self._clock()
        if self._rpm:
            self._next_request = max(now, self._next_request) + _MINUTE / self._rpm
        if self._tpm:
            self._next_token = max(now, self._next_token) + tokens * _MINUTE / self._tpm
        return now

    def leave(self, entered: float, *, busy: bool = False, wait_s: float | None = None, unused: int = 0) -> None:
        """A request has ended.

        Args:
            entered: What `enter` returned.
            busy: The endpoint said that it has too much to do.
            wait_s: Seconds for which it wants no further request.
            unused: Tokens that the request was said to take and did not; negative where it took more.
        """
        if wait_s:
            self._not_before = max(self._not_before, self._clock() + wait_s)
        if self._tpm:
            self._next_token -= unused * _MINUTE / self._tpm
        if busy:
            self._fewer(entered)
        else:
            self._more()
        self._leave_place()

    def _free_at(self) -> float:
        return max(self._not_before, self._next_request, self._next_token)

    async def _place(self) -> None:
        """Wait for one of the requests in flight to end, first come, first served."""
        if self._inflight < int(self.limit) and not self._waiting:
            self._inflight += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the place was given to who gave up meanwhile
                self._leave_place()
            raise

    def _leave_place(self) -> None:
        self._inflight -= 1
        while self._waiting and self._inflight < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._inflight += 1
                turn.set_result(None)

    def _fewer(self, entered: float) -> None:
        """Once for all requests that were in flight together."""
        if entered < self._cut_at:
            return
        now = self._clock()
        self._growing = False
        self._ceiling = max(1.0, self._inflight - 1.0)
        self.limit = max(1.0, self._inflight * _LESS)
        self._cut_at = now

    def _more(self) -> None:
        if self._growing:
            self._double()
        elif self.limit < self._ceiling:
            self.limit = min(self._ceiling, self.limit + 1 / self.limit)
        elif self._ceiling < self._most and self._clock() - self._cut_at > _AGAIN_S:
            self._ceiling += 1
            self._cut_at = self._clock()

    def _double(self) -> None:
        """Twice as many in flight, as long as that is of use and there is demand for it."""
        since, answered = self._window
        self._window = (since, answered + 1)
        if answered + 1 < 2 * self.limit:
            return
        now = self._clock()
        full = bool(self._waiting)
        rate = (answered + 1) / max(now - since, 1e-9)
        self._window = (now, 0)
        if not full:
            return
        if rate < _GAIN * self._best:
            self.limit /= 2
            self._growing, self._ceiling = False, self.limit
            return
        self._best = rate
        if self.limit >= self._most:
            self._growing = False
        self.limit = min(self._most, 2 * self.limit)
