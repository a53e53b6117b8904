"""The cap on a run's cost: never passed at any moment, and no money is lost."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.backend import Request
from evenhand.backends.paced import Paced
from evenhand.backends.pacing import Pacer
from evenhand.backends.retry import Retry
from evenhand.errors import BackendError, FinalBackendError, RetryableBackendError, RunError
from evenhand.prices import Price
from evenhand.purse import NANO, Purse, most_prompt, nano
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

OUTCOMES = ("ok", "ok", "ok", "silent", "429", "500", "timeout", "cut", "rejected", "told")


def asking(text: str = "x", most: int | None = 50, form: Form = "text") -> Request:
    """A request of one message."""
    return Request(({"role": "user", "content": text},), form, settings={"max_tokens": most} if most else {})


@dataclass
class Saved:
    """What a killed process would leave behind."""

    usd: float = 0.0
    times: int = 0

    def __call__(self, usd: float) -> None:
        self.usd = usd
        self.times += 1


@dataclass
class Judge:
    """A backend that charges at random, within what a request may cost, and checks the books at every step."""

    rng: random.Random
    price: Price
    cap: int | None
    saved: Saved
    charged: int = 0  # what the provider will bill, for whatever reason
    known: int = 0  # of that, what was told in replies
    inflight: int = 0
    purse: Purse | None = None
    name: str = "scripted"
    model: str = "m"
    identity: Mapping[str, Any] = field(default_factory=dict)
    forms: tuple[Form, ...] = ("text",)
    deterministic: bool = False
    max_concurrency: int | None = None
    takes_images: bool = False

    async def send(self, request: Request) -> Reply:
        tokens = most_prompt(request, self.price)
        assert tokens is not None
        bound = nano(self.price.at_most(tokens, request.settings["max_tokens"]))
        self.inflight += bound
        try:
            for _ in range(self.rng.randrange(4)):
                self.check()
                await asyncio.sleep(0)
            return self.answer(request, tokens)
        finally:
            self.inflight -= bound

    def answer(self, request: Request, tokens: int) -> Reply:
        outcome = self.rng.choice(OUTCOMES)
        usage = Usage(self.rng.randint(0, tokens), self.rng.randint(0, request.settings["max_tokens"]))
        cost = self.price.cost(usage)
        assert cost is not None
        if outcome == "told":
            usage = Usage(cost_usd=cost * self.rng.random())
            cost = usage.cost_usd or 0.0
        if outcome in ("ok", "silent", "told"):
            self.charged += nano(cost)
            self.known += nano(cost) if outcome != "silent" else 0
            return Reply(text="x", usage=Usage() if outcome == "silent" else usage)
        if outcome in ("timeout", "cut"):
            self.charged += nano(cost) if self.rng.random() < 0.5 else 0
            raise RetryableBackendError(outcome, maybe_paid=True)
        raise (FinalBackendError if outcome == "rejected" else RetryableBackendError)(outcome, status=400)

    def check(self) -> None:
        assert self.purse is not None
        possible = self.charged + self.inflight
        assert possible <= self.purse.spent + self.purse.reserved <= round(self.saved.usd * NANO)
        assert self.cap is None or self.purse.spent + self.purse.reserved <= self.cap

    async def aclose(self) -> None: ...


async def spend(seed: int, cap: float | None, workers: int, spent: int, cancel: bool) -> tuple[Judge, Purse]:
    """Send requests by several workers, some of which are given up half-way."""
    rng = random.Random(seed)
    price = Price(
        ((0, rng.random() * 20), (150, rng.random() * 20)), ((0, rng.random() * 100),), request=rng.choice((0, 1e-4))
    )
    paid = rng.randint(0, spent)
    saved = Saved(spent / NANO)
    judge = Judge(rng, price, None if cap is None else int(cap * NANO), saved, charged=spent, known=paid)
    judge.purse = purse = Purse(price, cap=cap, paid=paid, spent=spent, save=saved)
    paced = Paced(judge, retry=Retry(3, base_s=0.0), pacer=Pacer(rng.randint(1, workers)), purse=purse)
    left = [asking("ж" * rng.randint(0, 200), rng.randint(1, 300)) for _ in range(40)]

    async def work() -> None:
        while left:
            with contextlib.suppress(BackendError):
                await paced.send(left.pop())

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    for task in tasks if cancel else ():
        await asyncio.sleep(0)
        if rng.random() < 0.3:
            task.cancel()
    ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
    assert all(end is None or isinstance(end, RunError | asyncio.CancelledError) for end in ended)
    assert any(isinstance(end, RunError) for end in ended) <= (purse.stopped is not None)
    judge.check()
    purse.close()
    return judge, purse


@settings(max_examples=150)
@given(
    seed=st.integers(0, 2**32),
    cap=st.none() | st.floats(1e-5, 0.3),
    workers=st.integers(1, 12),
    spent=st.integers(0, 10_000),
    cancel=st.booleans(),
)
def test_the_cap_is_never_passed(seed: int, cap: float | None, workers: int, spent: int, cancel: bool) -> None:
    """At every step what was billed or may yet be is within what is counted, that within what was saved before, and all
    within the cap; in the end nothing is set aside any more, and what was paid is known to the last digit.
    """
    judge, purse = asyncio.run(spend(seed, cap, workers, spent, cancel))
    assert purse.reserved == 0 and purse.paid == judge.known
    assert judge.charged <= purse.spent == round(judge.saved.usd * NANO)
    assert cap is not None or purse.stopped is None


async def test_it_waits_for_what_is_in_flight_and_then_stops() -> None:
    """A try that does not fit waits as long as tries in flight may free enough; then it is an error, for good."""
    price = Price(((0, 0.0),), ((0, 0.0),), request=1.0)
    purse = Purse(price, cap=2.5, paid=0, spent=0, save=Saved())
    first, second = await purse.reserve(asking()), await purse.reserve(asking())
    third, fourth = (asyncio.create_task(purse.reserve(asking())) for _ in range(2))
    await asyncio.sleep(0)
    assert not third.done() and not fourth.done()
    purse.settle(first, None)  # a refusal, which costs nothing
    await asyncio.sleep(0)
    assert third.done() and not fourth.done()
    purse.settle(second, Usage(1, 1))
    purse.settle(third.result(), None, maybe_paid=True)
    with pytest.raises(RunError, match="--max-cost is reached: the next request may cost"):
        await fourth
    with pytest.raises(RunError):
        await purse.reserve(asking())
    told = str(purse.ended(7))
    assert "$1.00 paid, $1.00 possibly paid without a reply, of $2.50; 7 trials left" in told
    assert "a higher --max-cost goes on" in told


async def test_it_is_saved_seldom() -> None:
    """What may be spent is saved ahead: a thousand equal calls need some dozens of writes."""
    saved = Saved()
    purse = Purse(Price(((0, 0.0),), ((0, 0.0),), request=0.01), cap=100.0, paid=0, spent=0, save=saved)
    for _ in range(1000):
        purse.settle(await purse.reserve(asking()), Usage(1, 1))
    assert saved.times < 200 and purse.paid == 10 * NANO <= round(saved.usd * NANO) <= 10.3 * NANO


async def test_a_reply_that_costs_more_than_it_could() -> None:
    """Prices, or a limit of tokens, that don't hold end a run with a cap; one without goes on."""
    for cap, stopped in ((1.0, True), (None, False)):
        purse = Purse(Price(((0, 1.0),), ((0, 1.0),)), cap=cap, paid=0, spent=0, save=Saved())
        purse.settle(await purse.reserve(asking(most=1)), Usage(100, 5000))
        assert (purse.stopped is not None and "more than" in purse.stopped) is stopped


async def test_what_can_not_be_saved_is_not_spent() -> None:
    """A full disk ends the run, and nobody waits for ever."""

    def full(_: float) -> None:
        raise RunError("the disk is full")

    purse = Purse(Price(((0, 1.0),), ((0, 1.0),)), cap=None, paid=0, spent=0, save=full)
    with pytest.raises(RunError, match="the disk is full"):
        await purse.reserve(asking())
    assert purse.reserved == 0


@pytest.mark.parametrize("text", ["", "plain", "ﷺ 判断 ☃", "\ud800"])
def test_prompts_have_no_more_tokens_than_bytes(text: str) -> None:
    """The bound of a prompt counts every byte of texts and schema, and leaves room for what templates add."""
    price = Price(((0, 1.0),), ((0, 1.0),))
    plain = most_prompt(asking(text), price)
    assert plain is not None and plain > len(text.encode("utf-8", "surrogatepass")) + 64
    schema = {"type": "object", "title": text * 10}
    shown = most_prompt(Request(({"role": "user", "content": text},), "schema", schema=schema), price)
    assert shown is not None and shown > plain + 10 * len(text)


async def test_images_need_a_bound_of_their_own() -> None:
    """A request with an image has a bound only where the price tells how many tokens an image may count as."""
    parts = [{"type": "text", "text": "x"}, {"type": "image", "name": "a", "sha256": "0", "bytes": 3}]
    request = Request(({"role": "user", "content": parts},), "text", settings={"max_tokens": 5})
    bounded = Price(((0, 1.0),), ((0, 1.0),), image_tokens=1600)
    told, without = most_prompt(request, bounded), most_prompt(asking(), bounded)
    assert told is not None and without is not None and told == without + 1600
    purse = Purse(Price(((0, 1.0),), ((0, 1.0),)), cap=1.0, paid=0, spent=0, save=Saved())
    with pytest.raises(RunError, match="no bound"):
        await purse.reserve(request)
