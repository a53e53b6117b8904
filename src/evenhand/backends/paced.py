"""Any backend with a turn for each request, bounded retries, and a purse that is asked before each try."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from evenhand.backend import Backend, Request
from evenhand.backends.pacing import Ended, Turn
from evenhand.backends.retry import Retry
from evenhand.errors import AccessError, BackendError, RetryableBackendError
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

_TOO_MANY = 429
_BYTES_A_TOKEN = 4


class Purse(Protocol):
    """What money there is for a run."""

    async def reserve(self, request: Request) -> Any:
        """Set aside what one try may cost at most; waits while tries in flight may still free enough.

        Raises:
            RunError: it would pass the cap.
        """

    def settle(self, held: Any, usage: Usage | None, *, maybe_paid: bool = False) -> Usage | None:
        """A try has ended: with a usage, which is returned with its price; without one, paid for or not."""


class Turns(Protocol):
    """Who gives turns; see `evenhand.backends.pacing.Pacer`."""

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a request takes."""

    async def enter(self, tokens: int, left_s: float = math.inf) -> Turn:
        """Wait for a turn."""

    def leave(self, turn: Turn, ended: Ended, *, wait_s: float | None = None, unused: int = 0) -> None:
        """A request has ended."""


class Paced:
    """A backend whose requests wait for their turn, and are tried again where that can help.

    Args:
        inner: Sends one request, once.
        retry: How to try again.
        pacer: Gives turns.
        purse: Pays for tries; None where nothing is counted.

    Attributes:
        pacer: As above.
        purse: As above; it may be set as long as nothing was sent.
    """

    def __init__(self, inner: Backend, *, retry: Retry, pacer: Turns, purse: Purse | None = None) -> None:
        self.inner = inner
        self.name, self.model = inner.name, inner.model
        self.identity: Mapping[str, Any] = inner.identity
        self.forms: tuple[Form, ...] = inner.forms
        self.deterministic = inner.deterministic
        self.max_concurrency = inner.max_concurrency
        self.takes_images = inner.takes_images
        self.purse = purse
        self.pacer = pacer
        self._retry = retry
        self._answered = False
        self._slowest_s: float = getattr(inner, "slowest_s", math.inf)

    async def send(self, request: Request) -> Reply:
        """Send one request, trying again where that can help.

        Raises:
            AccessError: also where nothing ever answered.
            BackendError: as the backend raises them; a retryable one is the last try's.
            RunError: the money for another try is not there.
        """
        began, turns = self._retry.clock(), list[Turn]()

        def left_s() -> float:
            spent = self._retry.clock() - began - sum(turn.queued_s for turn in turns)
            return min(self._retry.deadline_s - spent, request.deadline.left_s if request.deadline else math.inf)

        try:
            return await self._retry.run(lambda: self._try(request, left_s, turns), left_s)
        except RetryableBackendError as error:
            if self._answered:
                raise
            failed = AccessError(error.message, hint="check the base URL and the server")
            failed.backend, failed.model, failed.request_digest = error.backend, error.model, error.request_digest
            raise failed from None

    async def aclose(self) -> None:
        """Close the backend."""
        await self.inner.aclose()

    async def _try(self, request: Request, left_s: Callable[[], float], turns: list[Turn]) -> Reply:
        tokens = _tokens(request) if self.pacer.counts_tokens else 0
        held = await self._held(self.purse, request, turns) if self.purse else None
        reply: Reply | None = None
        failed: BaseException | None = None
        try:
            turn = await self._turn(request, tokens, left_s())
            turns.append(turn)
            try:
                reply = await self._sent(request, left_s())
                return self._priced(reply, held)
            except BaseException as error:
                failed = error
                raise
            finally:
                self._leave(turn, tokens, reply, failed)
        finally:
            if self.purse and reply is None:
                maybe = failed.maybe_paid if isinstance(failed, BackendError) else failed is not None
                self.purse.settle(held, None, maybe_paid=maybe)

    async def _held(self, purse: Purse, request: Request, turns: list[Turn]) -> Any:
        """What is set aside for a try; waiting for it is of our own making, as that for a turn."""
        came = self._retry.clock()
        with request.deadline.standing_still() if request.deadline else contextlib.nullcontext():
            held = await purse.reserve(request)
        turns.append(Turn(came, self._retry.clock() - came))
        return held

    async def _turn(self, request: Request, tokens: int, left_s: float) -> Turn:
        """A turn; the trial's time stands still while we wait for it of our own making."""
        deadline = request.deadline
        if deadline is None:
            return await self.pacer.enter(tokens, left_s)
        came = self._retry.clock()
        with deadline.standing_still():
            turn = await self.pacer.enter(tokens, left_s)
        deadline.spend(self._retry.clock() - came - turn.queued_s)
        return turn

    async def _sent(self, request: Request, left_s: float) -> Reply:
        try:
            if left_s >= self._slowest_s:  # it gives up sooner by itself
                reply = await self.inner.send(request)
            else:
                async with asyncio.timeout(left_s):
                    reply = await self.inner.send(request)
        except TimeoutError:
            error = RetryableBackendError(f"no reply within {left_s:.3g} s", maybe_paid=True)
            error.backend, error.model, error.request_digest = self.name, self.model, request.digest
            raise error from None
        except BackendError as error:
            self._answered |= error.status is not None
            raise
        self._answered = True
        return reply

    def _priced(self, reply: Reply, held: Any) -> Reply:
        usage = self.purse.settle(held, reply.usage) if self.purse else None
        return reply if usage is None else replace(reply, usage=usage)

    def _leave(self, turn: Turn, tokens: int, reply: Reply | None, failed: BaseException | None) -> None:
        """Tell the pacer how it went."""
        if reply is not None:
            prompt, written = reply.usage.prompt_tokens, reply.usage.completion_tokens or 0
            unused = 0 if prompt is None else tokens - prompt - written
            self.pacer.leave(turn, "answered", wait_s=reply.wait_s, unused=unused)
        elif isinstance(failed, BackendError):
            ended: Ended = "answered"
            if isinstance(failed, RetryableBackendError):
                ended = "busy" if failed.status == _TOO_MANY else "failed"
            self.pacer.leave(turn, ended, wait_s=failed.retry_after_s)
        else:
            self.pacer.leave(turn, "dropped")


def _tokens(request: Request) -> int:
    """Tokens of a request, roughly: a quarter of its bytes, and the reply's most."""
    size = sum(
        len(part if isinstance(part, str) else part.get("text", ""))
        for message in request.messages
        for part in ([message["content"]] if isinstance(message["content"], str) else message["content"])
    )
    return size // _BYTES_A_TOKEN + int(request.settings.get("max_tokens") or 0)
