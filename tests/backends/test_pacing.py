"""Turns: how many requests are in flight, how fast they follow each other, and who is next."""

from __future__ import annotations

import asyncio
import itertools
import math
import random
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.backends.pacing import MOST, START, Pacer
from evenhand.errors import RetryableBackendError
from virtual_time import now, run

Answer = tuple[int, float | None]  # status and the wait it names
Serve = Callable[[], Awaitable[Answer]]


class Server:
    """An endpoint: so many served at once, others wait; more than it takes are refused.

    Args:
        latency: Seconds of one answer.
        served: Answered at the same time; the rest queue.
        takes: In flight at most, else status 429.
        seed: Latencies vary, by a factor of two either way; None for all the same.
    """

    def __init__(
        self, latency: float = 1.0, *, served: int = 10_000, takes: int = 10_000, seed: int | None = None
    ) -> None:
        self.latency, self.takes = latency, takes
        self.random = None if seed is None else random.Random(seed)
        self.at_once = asyncio.Semaphore(served)
        self.inflight = self.most = 0
        self.statuses: Counter[int] = Counter()
        self.log: list[tuple[float, int, int]] = []  # when, in flight then, status
        self.down: tuple[float, float] = (math.inf, math.inf)

    async def __call__(self) -> Answer:
        self.inflight += 1
        self.most = max(self.most, self.inflight)
        began, inflight = now(), self.inflight
        try:
            status = await self._answer()
        finally:
            self.inflight -= 1
        self.statuses[status] += 1
        self.log.append((began, inflight, status))
        return status, None

    async def _answer(self) -> int:
        if self.inflight > self.takes:
            await asyncio.sleep(0.01)
            return 429
        if self.down[0] <= now() < self.down[1]:
            await asyncio.sleep(0.05)
            return 503
        async with self.at_once:
            await asyncio.sleep(self.latency * (2 ** self.random.uniform(-1, 1) if self.random else 1))
        return 200


async def one(pacer: Pacer, serve: Serve, tokens: int = 0, used: int | None = None) -> int:
    """One request, asked until it is answered."""
    while True:
        turn = await pacer.enter(tokens)
        try:
            status, wait_s = await serve()
        except BaseException:
            pacer.leave(turn, "dropped")
            raise
        ended = {200: "answered", 429: "busy"}.get(status, "failed")
        pacer.leave(turn, ended, wait_s=wait_s, unused=0 if used is None else tokens - used)  # type: ignore[arg-type]
        if status == 200:
            return status
        await asyncio.sleep(0.5)


async def traffic(pacer: Pacer, serve: Serve, seconds: float, workers: int = MOST) -> list[float]:
    """Workers that always have another request; the limits of each second."""

    async def work() -> None:
        while True:
            await one(pacer, serve)

    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    limits = []
    for _ in range(int(seconds)):
        await asyncio.sleep(1)
        limits.append(pacer.limit)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return limits


def pacer(fixed: int | None = None, **options: float) -> Pacer:
    """One on the time of the running loop."""
    return Pacer(fixed, clock=now, **options)


def test_growth_stops_where_throughput_stops_growing() -> None:
    """An endpoint that serves 40 at once is given at most twice as many, for nearly all of the time."""

    async def main() -> None:
        server = Server(1.0, served=40, seed=1)
        limits = await traffic(pacer(), server, 250)
        settled = sorted(limits[60:])
        assert 32 <= settled[len(settled) // 2] <= 80
        assert settled[int(0.9 * len(settled))] <= 160
        assert server.statuses[200] >= 0.9 * 250 * 40 / 1.08  # the mean latency is 1.08 s

    run(main())


@pytest.mark.parametrize("latency", [0.05, 1.0, 30.0])
def test_an_endpoint_that_is_only_slow_gets_all(latency: float) -> None:
    """Where throughput grows with requests in flight, they grow to the most within a few answers' time each."""

    async def main() -> None:
        limits = await traffic(pacer(), Server(latency, seed=2), max(1, 20 * latency))
        assert limits[-1] == MOST

    run(main())


def test_one_window_by_chance_does_not_stop_growth() -> None:
    """A pause of the endpoint while it is measured costs one more measurement."""

    async def main() -> None:
        server = Server(1.0)
        paced = pacer()

        async def hiccup() -> Answer:
            if 2.5 <= now() < 3.5:  # while 32 are measured
                await asyncio.sleep(9)
            return await server()

        limits = await traffic(paced, hiccup, 60)
        assert limits[-1] == MOST

    run(main())


@pytest.mark.parametrize(("takes", "latency"), [(1, 0.2), (1, 5.0), (7, 0.2), (7, 5.0), (50, 2.0), (50, 5.0)])
def test_a_hard_limit_is_found_and_kept(takes: int, latency: float) -> None:
    """Requests in flight stay at or under what is taken; few are refused, and the endpoint is kept busy."""

    async def main() -> None:
        server = Server(latency, takes=takes, seed=3)
        paced = pacer()
        seconds = 3000 * latency / takes + 150
        limits = await traffic(paced, server, seconds)
        settled = limits[len(limits) // 3 :]
        assert sum(int(limit) <= takes for limit in settled) >= 0.97 * len(settled)
        late = [status for at, _, status in server.log if at > seconds / 3]
        assert late.count(429) <= 0.015 * len(late)
        assert late.count(200) >= 0.75 * (2 / 3 * seconds) * takes / (1.1 * latency)

    run(main())


@pytest.mark.parametrize("rate", [0.2, 1.0, 5.0])
def test_few_are_refused_where_even_one_at_a_time_is_too_many(rate: float) -> None:
    """An endpoint that takes so many a second, and names no wait, is asked nearly that often, and hardly more."""

    async def main() -> None:
        server, allowed = Server(0.05, seed=8), [0.0]

        async def rated() -> Answer:
            if now() < allowed[0]:
                server.log.append((now(), 1, 429))
                await asyncio.sleep(0.01)
                return 429, None
            allowed[0] = now() + 1 / rate
            return await server()

        seconds = 300 / rate
        await traffic(pacer(), rated, seconds, workers=20)
        late = [status for at, _, status in server.log if at > seconds / 3]
        assert late.count(429) <= 0.1 * len(late)
        assert late.count(200) >= 0.6 * (2 / 3 * seconds) * rate

    run(main())


def test_a_burst_of_refusals_cuts_once() -> None:
    """All that were in flight together count as one complaint, whatever the order of their answers."""

    async def main() -> None:
        paced = pacer()
        turns = [await paced.enter(0) for _ in range(START)]
        for turn in turns:
            paced.leave(turn, "busy")
        assert paced.limit == pytest.approx(0.7 * START)

    run(main())


def test_after_an_outage_throughput_comes_back() -> None:
    """A minute of 503: a tenth of the requests or less go on meanwhile, all come back within a minute after."""

    async def main() -> None:
        server = Server(4.0, seed=4)
        server.down = (120.0, 180.0)
        limits = await traffic(pacer(), server, 242)
        assert limits[119] == MOST
        assert limits[178] <= MOST / 10
        assert limits[240] == MOST

    run(main())


def test_failures_by_chance_change_little() -> None:
    """One request of twenty that fails of itself is no reason to send fewer."""

    async def main() -> None:
        server = Server(2.0, seed=5)
        chance = random.Random(6)

        async def flaky() -> Answer:
            answer = await server()
            return (503, None) if chance.random() < 0.05 else answer

        limits = await traffic(pacer(), flaky, 100)
        assert sorted(limits[40:])[len(limits[40:]) // 10] >= MOST / 2

    run(main())


def test_a_lull_teaches_nothing() -> None:
    """With fewer requests than might be in flight the limit stays where it is, and no place is lost."""

    async def main() -> None:
        paced = pacer()
        await traffic(paced, Server(0.1), 60, workers=4)
        assert paced.limit == START

    run(main())


@pytest.mark.parametrize("fixed", [1, 5, 40])
def test_a_fixed_number_is_never_exceeded(fixed: int) -> None:
    """Not before complaints, not after; and it is reached."""

    async def main() -> None:
        server = Server(0.3, seed=7)
        server.down = (20.0, 30.0)
        await traffic(pacer(fixed), server, 60, workers=60)
        assert server.most == fixed

    run(main())


def test_first_come_first_served() -> None:
    """Turns are given in the order they were asked for, whether places, a rate or a named wait is waited for."""

    async def main() -> None:
        paced, order = pacer(3, rpm=600), []

        async def ask(n: int) -> None:
            turn = await paced.enter(0)
            order.append(n)
            await asyncio.sleep(0.25)
            paced.leave(turn, "answered", wait_s=2.0 if n == 11 else None)

        await asyncio.gather(*(ask(n) for n in range(40)))
        assert order == list(range(40))

    run(main())


def test_a_named_wait_holds_for_all() -> None:
    """After a Retry-After nobody sends, those that wait for places or turns included; the longest counts."""

    async def main() -> None:
        paced, sent = pacer(4), []

        async def ask(wait_s: float | None) -> None:
            turn = await paced.enter(0)
            sent.append(now())
            await asyncio.sleep(0.1)
            paced.leave(turn, "answered", wait_s=wait_s)

        await asyncio.gather(*(ask(wait) for wait in (5.0, 30.0, 10.0, None, None, None, None)))
        assert sent[:4] == [0.0] * 4
        assert sent[4:] == [pytest.approx(30.1)] * 3

    run(main())


def test_a_wait_beyond_the_deadline_ends_at_once() -> None:
    """All that wait are told, without waiting, also where the wait was named while they did; their places are free."""

    async def main() -> None:
        paced = pacer(2)
        first = await paced.enter(0)
        second = await paced.enter(0)
        waiting = [asyncio.create_task(paced.enter(0, 60.0)) for _ in range(5)]
        await asyncio.sleep(1)
        paced.leave(first, "busy", wait_s=3600.0)
        paced.leave(second, "busy")
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert now() == 1.0
        assert all(isinstance(error, RetryableBackendError) and error.retry_after_s == 3600.0 for error in ended)
        assert (await paced.enter(0)).at == 3601.0

    run(main())


def test_own_waiting_is_told_apart() -> None:
    """A turn tells how long others and rates were waited for; a wait that the endpoint named is not in it."""

    async def main() -> None:
        paced = pacer(1)
        first = await paced.enter(0)
        second = asyncio.create_task(paced.enter(0, 25.0))
        await asyncio.sleep(40)
        paced.leave(first, "answered", wait_s=20.0)
        turn = await second
        assert (turn.at, turn.queued_s) == (60.0, 40.0)

    run(main())


def test_requests_a_minute_are_spread() -> None:
    """At 120 a minute two follow each other by half a second, also after a lull."""

    async def main() -> None:
        paced, sent = pacer(rpm=120), []
        for pause in (0.0, 30.0):
            await asyncio.sleep(pause)
            for _ in range(20):
                turn = await paced.enter(0)
                sent.append(turn.at)
                paced.leave(turn, "answered")
        gaps = [b - a for a, b in itertools.pairwise(sent)]
        assert min(gaps) == pytest.approx(0.5)
        assert sorted(gaps)[-2] == pytest.approx(0.5)

    run(main())


@pytest.mark.parametrize(("used", "rate"), [(1000, 6.0), (500, 12.0), (2000, 3.0)])
def test_tokens_a_minute_are_settled_by_real_usage(used: int, rate: float) -> None:
    """Requests said to take 1000 tokens follow each other at the rate that their real usage allows."""

    async def main() -> None:
        paced, server = pacer(1, tpm=6000), Server(0.1)
        for _ in range(60):
            await one(paced, server, 1000, used)
        assert 60 / (now() / 60) == pytest.approx(rate, rel=0.05)

    run(main())


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from(["ask", "cancel", "cut", "hold", "pass"]), st.integers(0, 20)), max_size=60))
def test_giving_up_never_loses_a_place(steps: list[tuple[str, int]]) -> None:
    """Whatever is asked, cancelled, refused or held, and when: afterwards all places can be had again."""

    async def main() -> None:
        paced, tasks = pacer(3, rpm=6000), []

        async def ask() -> None:
            turn = await paced.enter(0)
            ended = "dropped"
            try:
                await asyncio.sleep(0.5)
                ended = "answered"
            finally:
                paced.leave(turn, ended)  # type: ignore[arg-type]

        for step, n in steps:
            if step == "ask":
                tasks.append(asyncio.create_task(ask()))
            elif step == "cancel" and tasks:
                tasks[n % len(tasks)].cancel()
            elif step in ("cut", "hold"):
                turn = await paced.enter(0)
                paced.leave(turn, "busy", wait_s=n / 10 if step == "hold" else None)
            else:
                await asyncio.sleep(n / 20)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (paced._places, paced._sent) == (0, 0)
        async with asyncio.timeout(1000):  # there may be pauses of a minute
            turns = [await paced.enter(0) for _ in range(int(paced.limit))]
        assert len(turns) == int(paced.limit)

    run(main())
