"""The money of a run: what was paid, what may have been paid, what is set aside for tries in flight, and the cap.

Amounts are whole billionths of a dollar, so that sums are exact.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from evenhand._words import counted, usd
from evenhand.backend import Request
from evenhand.errors import RunError
from evenhand.prices import Price
from evenhand.verdict import Usage

NANO = 1_000_000_000
_MESSAGE_TOKENS = 64  # of a chat template, for each message
_FORM_TOKENS = 1000  # that providers add to describe a tool or schema, beside its own text
_LEASE = 50  # the part of what was spent that is taken from the cap ahead of need


def nano(usd: float) -> int:
    """US dollars as billionths, rounded up."""
    return math.ceil(usd * NANO)


@dataclass(frozen=True, slots=True)
class Hold:
    """What one try may cost at most."""

    bound: int


class Purse:
    """Pays for the tries of a run, never more than its cap.

    At any time the sum of what was paid, what may have been paid without a reply, and the bounds of tries in flight is
    at most the cap, and at most what was last handed to ``save``: who is killed can't have spent more than that.

    Args:
        price: What the judge costs.
        cap: US dollars that may be spent in all; None for no cap.
        paid: What the stored replies cost, in billionths.
        spent: What may have been spent before at most, in billionths; at least ``paid``.
        handed_in: The part of that which is set aside for batches under way.
        save: Keeps what may be spent at most, in US dollars, before it is.
        unpaid: How much of ``paid`` was not, where that takes long to count: asked only to tell of it.

    Attributes:
        price: As above.
        capped: Whether there is a cap.
        paid, maybe, reserved: As above, in billionths.
        stopped, remedy: Why nothing more is paid for, and what to do; None while that is not so.
    """

    def __init__(
        self,
        price: Price,
        *,
        cap: float | None,
        paid: int,
        spent: int,
        save: Callable[[float], None],
        handed_in: int = 0,
        unpaid: Callable[[], int] | None = None,
    ) -> None:
        open_ = max(0, spent - paid)
        self.reserved = min(open_, handed_in)
        self.paid, self.maybe = paid, open_ - self.reserved
        self.stopped: str | None = None
        self.remedy: str | None = None
        self.price, self._price_later = price, price.in_batches()
        self._cap = None if cap is None else int(cap * NANO)
        self.capped = cap is not None
        self._save, self._unpaid = save, unpaid
        self._saved = self.spent + self.reserved
        self._inflight = 0
        self._waiting: deque[tuple[int, asyncio.Future[Hold]]] = deque()

    @property
    def spent(self) -> int:
        """Paid and possibly paid, in billionths."""
        return self.paid + self.maybe

    async def reserve(self, request: Request) -> Hold:
        """Set aside what one try may cost at most; first come, first served, waiting while tries in flight may free it.

        Raises:
            RunError: it would pass the cap even with nothing in flight; from then on always.
        """
        return await self.set_aside(bound_of(request, self.price, capped=self.capped))

    async def set_aside(self, bound: int) -> Hold:
        """As `reserve`, for a request that may cost so many billionths at most."""
        turn: asyncio.Future[Hold] = asyncio.get_running_loop().create_future()
        self._waiting.append((bound, turn))
        self._serve()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.settle(turn.result(), None)  # it was given to who gave up meanwhile
            raise

    def settle(self, held: Hold, usage: Usage | None, *, maybe_paid: bool = False) -> Usage | None:
        """A try has ended; once for each hold.

        Args:
            held: What `reserve` gave.
            usage: What the server reported, None where there is no reply.
            maybe_paid: Without a reply: whether it may have to be paid all the same.

        Returns:
            The usage with its cost: that of the server, else by price; None where it can't be told.
        """
        self._inflight -= 1
        priced = self._settled(held.bound, usage, self.price, maybe_paid)
        self._serve()
        return priced

    def hand_in(self, request: Request) -> int | None:
        """Set aside what a request may cost that a batch will answer, to be saved with `at_most` before it is sent.

        Returns:
            That, in billionths; None where there is no room for it, or nothing more is paid for.

        Raises:
            RunError: what it may cost has no bound.
        """
        bound = bound_of(request, self._price_later, capped=self.capped)
        if self.stopped is not None or not self._fits(bound):
            return None
        self.reserved += bound
        return bound

    def collect(self, request: Request, usage: Usage | None, *, maybe_paid: bool = False) -> Usage | None:
        """A batch told how a request that was handed in ended; as `settle`, once for each."""
        bound = bound_of(request, self._price_later, capped=self.capped)
        return self._settled(bound, usage, self._price_later, maybe_paid)

    def priced(self, usage: Usage) -> Usage:
        """The usage of a request that was collected before, with its cost as far as it can be told."""
        return priced_usage(usage, self._price_later) or usage

    def give_back(self, handed_in: int, *, maybe_paid: bool) -> None:
        """What was set aside for a batch that gives no results, in billionths."""
        handed_in = min(handed_in, self.reserved)
        self.reserved -= handed_in
        self.maybe += handed_in if maybe_paid else 0

    def no_room(self, request: Request) -> None:
        """Stop, as nothing is under way that could free enough for this request."""
        if self.stopped is None:
            self._stop_at(bound_of(request, self._price_later, capped=self.capped))

    def at_most(self) -> float:
        """What may be spent at most, set aside included, in US dollars; it must be saved now."""
        self._saved = self.spent + self.reserved
        return self._saved / NANO

    def close(self) -> None:
        """Save what was spent, no more than that."""
        self._save(self.at_most())

    def ended(self, left: int) -> RunError:
        """The error of a run that stopped for want of money, with so many trials left."""
        unpaid = 0 if self._unpaid is None else self._unpaid()
        self.paid, self.maybe, self._unpaid = self.paid - unpaid, self.maybe + unpaid, None
        maybe = f", {usd(self.maybe / NANO)} possibly paid without a reply" if self.maybe else ""
        cap = "" if self._cap is None else f", of {usd(self._cap / NANO)}"
        told = f"{usd(self.paid / NANO)} paid{maybe}{cap}; {counted(left, 'trial')} left"
        return RunError(f"{self.stopped}\n  {told}; what was answered is stored", hint=self.remedy)

    def _settled(self, bound: int, usage: Usage | None, price: Price, maybe_paid: bool) -> Usage | None:
        self.reserved -= min(bound, self.reserved)  # less where prices changed since it was handed in
        priced = None if usage is None else priced_usage(usage, price)
        if priced is None:
            self.maybe += bound if usage is not None or maybe_paid else 0
        else:
            assert priced.cost_usd is not None
            self._pay(nano(priced.cost_usd), bound)
        return priced

    def _fits(self, bound: int) -> bool:
        return self._cap is None or self.spent + self.reserved + bound <= self._cap

    def _stop_at(self, bound: int) -> None:
        self.stopped = f"--max-cost is reached: the next request may cost {usd(bound / NANO)}"
        self.remedy = "the same command with a higher --max-cost goes on"

    def _pay(self, cost: int, bound: int) -> None:
        self.paid += cost
        if self._cap is not None and cost > bound and self.stopped is None:
            self.stopped = (
                f"a reply cost {usd(cost / NANO)}, more than the {usd(bound / NANO)} it could by --max-tokens and "
                "the prices"
            )
            self.remedy = "one of the two does not hold at this endpoint, so that --max-cost can't; see --prices FILE"
        self._cover(0)

    def _serve(self) -> None:
        """Hand out what there is to those who wait."""
        while self._waiting:
            bound, turn = self._waiting[0]
            if not turn.done():
                if self.stopped is None and not self._fits(bound):
                    if self._inflight:
                        return
                    self._stop_at(bound)
                if self.stopped is None:
                    self._cover(bound)
                if self.stopped is None:
                    self.reserved += bound
                    self._inflight += 1
                    turn.set_result(Hold(bound))
                else:
                    turn.set_exception(RunError(self.stopped))
            self._waiting.popleft()

    def _cover(self, bound: int) -> None:
        """Save that so much more may be spent, and some more ahead, so that it need not be saved for each try."""
        need = self.spent + self.reserved + bound
        if need > self._saved:
            ahead = need + max(need // _LEASE, bound)
            ahead = ahead if self._cap is None else max(need, min(ahead, self._cap))
            try:
                self._save(ahead / NANO)
                self._saved = ahead
            except RunError as error:  # what can't be kept may not be spent
                self.stopped, self.remedy = error.message, error.hint


def bound_of(request: Request, price: Price, *, capped: bool) -> int:
    """What a request may cost at most, in billionths; what has no bound counts as nothing, unless there is a cap.

    Raises:
        RunError: there is a cap, and what it may cost has no bound.
    """
    output = most_output(request.settings, price)
    prompt = most_prompt(request, price)
    if capped and (output is None or prompt is None):
        raise RunError("what this request may cost has no bound, so that --max-cost can't hold")
    return nano(price.at_most(prompt or 0, output or 0))


def priced_usage(usage: Usage, price: Price) -> Usage | None:
    """A usage with its cost; None where it can't be told."""
    cost = cost_of(usage, price)
    return None if cost is None else replace(usage, cost_usd=cost)


def cost_of(usage: Usage, price: Price) -> float | None:
    """US dollars, as the server told or else by price; None where it can't be told."""
    return usage.cost_usd if usage.cost_usd is not None else price.cost(usage)


def most_output(settings: Mapping[str, Any], price: Price) -> int | None:
    """The most tokens a reply can have; None where nothing tells."""
    limit = settings.get("max_tokens") or price.max_output
    return None if limit is None else int(limit)


def most_prompt(request: Request, price: Price) -> int | None:
    """The most tokens a prompt can have; None where it holds images that nothing is known of.

    No tokenizer makes more tokens of a text than it has bytes of UTF-8; templates and tools add theirs.
    """
    texts, images = _pieces(request)
    if images and price.image_tokens is None:
        return None
    described = b""
    if request.schema is not None or request.function is not None:
        described = json.dumps([request.schema, request.function], ensure_ascii=False).encode("utf-8", "surrogatepass")
    tokens = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts) + len(described)
    tokens += _MESSAGE_TOKENS * (1 + len(request.messages)) + _FORM_TOKENS * (request.form not in ("text", "lines"))
    return tokens + images * (price.image_tokens or 0)


def _pieces(request: Request) -> tuple[list[str], int]:
    """The texts of a request, and how many images it has."""
    parts = list(parts_of(request))
    return [part["text"] for part in parts if part["type"] == "text"], sum(part["type"] != "text" for part in parts)


def parts_of(request: Request) -> Iterator[Mapping[str, Any]]:
    """The parts of all messages of a request; a plain text is one part."""
    for message in request.messages:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content
