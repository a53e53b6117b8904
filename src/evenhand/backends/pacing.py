"""When the next request may be sent: shared by all workers of a run, since one endpoint counts them all together."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec import Struct

from evenhand.errors import RetryableBackendError

START = 16  #: requests in flight before anything is known of an endpoint
MOST = 256  #: requests in flight that are found out by ourselves
_GAIN = 1.2  # throughput a doubling must bring, or it is taken back
_WINDOW = 20  # answers that tell a throughput, at least
_LESS = 0.7  # what is left of the requests in flight when an endpoint has too many
_AGAIN_S = 30.0  # a limit that was found is not doubted sooner, nor before that many answers for each in flight
_AGAIN = 20  # twice as many each time that the doubt was wrong, up to
_AGAIN_MOST = 160
_TROUBLE = 0.3  # share of late tries that failed, weighted to the latest, above which fewer are sent
_LATE = 0.1
_MINUTE = 60.0
_PAUSE, _PAUSE_MOST = 0.25, 60.0  # seconds between requests where even one at a time is too many, at first and at most
_SHORTER = 0.97  # what is left of that pause with every answer

#: How a request ended: with an answer, whatever it said; refused, as there are too many; in a failure that may pass;
#: or given up by us.
Ended = Literal["answered", "busy", "failed", "dropped"]


class Turn(Struct, frozen=True, gc=False):
    """Leave to send one request.

    Attributes:
        at: When it was given, by the pacer's clock.
        queued_s: Seconds of waiting that were of our own making: for others' requests, and for ``rpm`` and ``tpm``.
    """

    at: float
    queued_s: float


class Pacer:
    """Requests in flight, and their rate.

    With a fixed number of requests in flight it is the most there ever are. Without, they are doubled from `START` as
    long as throughput grows with them, and measured anew from time to time. Where the endpoint says that there are too
    many, fewer are sent at once, then slowly more again, up to one less than were too many; after a while without
    complaint that is tried too, and then more. Where a large share of tries fails, fewer are sent until they succeed;
    then one more with every answer, up to as many as before. Where even one at a time is refused, and no wait is
    named, requests follow each other with a pause, twice as long with each refusal and slowly less with answers.

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
        self._most = self._ceiling = float(fixed or MOST)
        self._rpm, self._tpm = rpm, tpm
        self._clock, self._sleep = clock, sleep
        self._places = self._sent = 0  # taken; and those of them whose request was sent
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._first = asyncio.Lock()  # held by the one that is next to be sent
        self._held_since = self._not_before = self._next_request = self._next_token = 0.0
        self._cut_at = float("-inf")
        self._pause = 0.0
        self._settled_at = clock()  # the limit stands since then, and so many answers
        self._answers = 0
        self._refused = False  # more than the ceiling were refused, not just of no use
        self._doubted = False  # one more than were refused is being tried
        self._again = _AGAIN
        self._trouble = self._before = 0.0  # before: the limit to which trouble put an end; 0 for none
        self._grow(growing=fixed is None)

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request takes."""
        return bool(self._tpm)

    async def enter(self, tokens: int, left_s: float = math.inf) -> Turn:
        """Wait for a turn, first come, first served; `leave` must follow.

        Args:
            tokens: How many tokens the request will take, as far as known.
            left_s: Seconds that the endpoint may make us wait; our own waiting is not counted.

        Raises:
            RetryableBackendError: the endpoint wants no request for longer than that.
        """
        came = self._clock()
        if self._is_free(came):
            self._places += 1
            self._sent += 1
            return Turn(came, 0.0)
        await self._place()
        try:
            async with self._first:
                await self._until_free(left_s - self._held(came))
                now = self._clock()
                self._next_request = now + max(self._pause, _MINUTE / self._rpm if self._rpm else 0.0)
                if self._tpm:
                    self._next_token = now + tokens * _MINUTE / self._tpm
        except BaseException:
            self._leave_place()
            raise
        self._sent += 1
        return Turn(now, now - came - self._held(came))

    def leave(self, turn: Turn, ended: Ended, *, wait_s: float | None = None, unused: int = 0) -> None:
        """A request has ended.

        Args:
            turn: What `enter` returned.
            ended: How.
            wait_s: Seconds for which the endpoint wants no further request.
            unused: Tokens that the request was said to take and did not; negative where it took more.
        """
        now = self._clock()
        if wait_s:
            if self._not_before <= now:
                self._held_since = now
            self._not_before = max(self._not_before, now + wait_s)
        if self._tpm:
            self._next_token -= unused * _MINUTE / self._tpm
        if ended in ("answered", "failed"):
            self._trouble += _LATE * ((ended == "failed") - self._trouble)
        if ended == "busy":
            if not wait_s and self.limit < 2 and turn.at > self._cut_at:
                self._pause = min(_PAUSE_MOST, max(_PAUSE, 2 * self._pause))
            self._fewer(turn, refused=True)
        elif ended == "failed" and self._trouble > _TROUBLE:
            self._fewer(turn, refused=False)
        elif ended == "answered":
            self._more()
        self._sent -= 1
        self._leave_place()

    def _is_free(self, now: float) -> bool:
        """Whether there is nothing to wait for, and no rate to keep."""
        limited = self._rpm or self._tpm or self._pause or self._not_before > now or self._next_request > now
        return not limited and self._places < int(self.limit) and not self._waiting and not self._first.locked()

    def _held(self, since: float) -> float:
        """Seconds since then in which the endpoint wanted no request."""
        return max(0.0, min(self._clock(), self._not_before) - max(since, self._held_since))

    async def _until_free(self, left_s: float) -> None:
        end = self._clock() + left_s
        while True:
            now = self._clock()
            if (named := self._not_before - now) > 0 and self._not_before > end:
                raise RetryableBackendError(f"the endpoint wants no request for {named:.0f} s", retry_after_s=named)
            pause = max(self._not_before, self._next_request, self._next_token) - now
            if pause <= 0:
                return
            await self._sleep(pause)

    async def _place(self) -> None:
        """Wait for one of the requests in flight to end, first come, first served."""
        if self._places < int(self.limit) and not self._waiting:
            self._places += 1
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
        self._places -= 1
        while self._waiting and self._places < int(self.limit):
            turn = self._waiting.popleft()
            if not turn.done():
                self._places += 1
                turn.set_result(None)

    def _fewer(self, turn: Turn, *, refused: bool) -> None:
        """Once for all requests that were in flight together."""
        if turn.at <= self._cut_at:
            return
        sent = min(float(self._sent), self.limit)
        self._before = 0.0 if refused else max(self._before, self.limit)
        self.limit = max(1.0, sent * _LESS)
        self._trouble, self._refused = 0.0, refused
        self._cut_at = self._clock()
        if refused:
            self._again = min(_AGAIN_MOST, 2 * self._again) if self._doubted else self._again
            self._doubted = False
            self._settle(max(1.0, sent - 1))
        else:
            self._grow()

    def _more(self) -> None:
        self._answers += 1
        self._pause = self._pause * _SHORTER if self._pause > _PAUSE / 10 else 0.0
        now = self._clock()
        if self.limit < self._before and self._trouble < _LATE / 2:
            self.limit = min(self._before, self.limit + 1)
            if self.limit >= self._before:
                self._before = 0.0
                self._grow()
        elif self._growing:
            self._double(now)
        elif self.limit < self._ceiling:
            self.limit = min(self._ceiling, self.limit + 1 / self.limit)
        elif now - self._settled_at > _AGAIN_S and self._answers > self._again * self.limit and self.limit < self._most:
            if self._refused:
                self._refused, self._doubted = False, True
                self._settle(min(self._most, self._ceiling + 1))
            else:
                self._again = _AGAIN
                self._grow(self._answers / (now - self._settled_at))
                self.limit = min(self._most, 2 * self.limit)

    def _settle(self, ceiling: float) -> None:
        """No more than that, for a while."""
        self._growing, self._ceiling = False, ceiling
        self._settled_at, self._answers = self._clock(), 0

    def _grow(self, best: float = 0.0, *, growing: bool = True) -> None:
        """Measure throughput, and double as long as that is of use; ``best`` is what it was before a doubling."""
        self._doubted = False
        self._growing = growing
        self._best, self._poor = best, False  # poor: a window did not beat the best
        self._window = (self._clock(), 0)  # since when, and how many were answered

    def _double(self, now: float) -> None:
        since, answered = self._window
        answered += 1
        self._window = (since, answered)
        if answered < max(_WINDOW, 2 * self.limit):
            return
        rate = answered / max(now - since, 1e-9)
        self._window = (now, 0)
        if not self._waiting:  # no demand, nothing to be learned
            return
        if rate < _GAIN * self._best:
            if self._poor:  # twice: no chance event
                self.limit = max(1.0, self.limit / 2)
                self._settle(self.limit)
            self._poor = True
            return
        self._best, self._poor = rate, False
        if self.limit >= self._most:
            self._settle(self._most)
        self.limit = min(self._most, 2 * self.limit)
