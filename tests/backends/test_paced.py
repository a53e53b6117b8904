"""A run against endpoints with limits: no request before its time, few in vain, trials that take too long given up."""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evenhand.api import make_spec
from evenhand.backend import BackendSettings, Request
from evenhand.backends.fake import Fake
from evenhand.backends.http import HttpBackend
from evenhand.backends.openai_chat import ChatWire
from evenhand.backends.paced import Paced
from evenhand.backends.pacing import Pacer
from evenhand.backends.retry import Retry
from evenhand.errors import AccessError, RetryableBackendError
from evenhand.run import run
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.verdict import Reply, Usage
from runs import GOOD, LIE, TWO, rows, run_it, statuses


@pytest.mark.parametrize(
    ("limits", "n", "in_vain"),
    [
        ({"max_inflight": 7, "latency": "20-40", "style": "none"}, 400, 0.10),
        ({"max_inflight": 7, "latency": "20-40", "retry_after": 0.2}, 400, 0.10),
        ({"rps": 20, "retry_after": 1}, 100, 0.25),
        ({"rps": 20, "latency": "300", "retry_after": 1}, 100, 0.35),
    ],
)
def test_an_endpoint_with_limits_is_asked_no_more_than_it_takes(
    server: FakeServer, tmp_path: Path, limits: dict[str, Any], n: int, in_vain: float
) -> None:
    """A run that finds out by itself ends with all verdicts scored, never early, and few requests refused."""
    server.reset()
    url = server.with_faults(**limits)
    run_it(rows(n), TWO, "openai:m", tmp_path / "run", base_url=url, re_ask=False, attempts=8)
    stats = server.stats()
    share = stats["by_status"].get("429", 0) / stats["requests"]
    sys.stdout.write(f"{limits}: {share:.1%} of {stats['requests']} requests refused\n")
    assert set(statuses(tmp_path / "run").values()) == {"scored"}
    assert stats["early"] == 0
    assert share <= in_vain


@pytest.mark.parametrize("style", ["seconds", "date", "ms", "reset"])
def test_a_wait_named_by_one_answer_holds_for_all(server: FakeServer, tmp_path: Path, style: str) -> None:
    """However the time is written, no worker sends anything before it."""
    server.reset()
    url = server.with_faults(rps=5, retry_after=1, style=style)
    run_it(rows(12), TWO, "openai:m", tmp_path / "run", base_url=url, re_ask=False, concurrency=4)
    seen = server.requests()
    refused = [request["at"] for request in seen if request["status"] == 429]
    assert refused
    assert set(statuses(tmp_path / "run").values()) == {"scored"}
    for at in refused:
        later = [request["at"] - at for request in seen if request["at"] > at + 0.25]  # beyond what was on its way
        assert min(later, default=1.0) >= 1.0


@pytest.mark.parametrize(
    ("reset", "seconds"), [("1s", 1.0), ("700ms", 0.7), ("0m1s", 1.0), ("0.8", 0.8), ("epoch", 1.0)]
)
async def test_a_limit_used_up_by_a_success_holds_the_next_request_back(
    tmp_path: Path, reset: str, seconds: float
) -> None:
    """A reply that says that it was the last one for now: the next request waits for the reset."""
    came: list[float] = []

    async def answer(_: web.Request) -> web.Response:
        came.append(time.monotonic())
        named = str(math.ceil(time.time()) + 1) if reset == "epoch" else reset
        headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": named}
        message = {"role": "assistant", "content": json.dumps(GOOD)}
        return web.json_response({"choices": [{"index": 0, "message": message}]}, headers=headers)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        url = f"http://127.0.0.1:{port}/v1"
        await run(make_spec(rows(3), TWO, "openai:m", out=tmp_path / "run", base_url=url))
    finally:
        await runner.cleanup()
    gaps = [b - a for a, b in itertools.pairwise(came)]
    assert len(gaps) == 2
    assert seconds - 0.002 <= gaps[0] < seconds + 2


class Slow(Fake):
    """A backend whose requests take as long as it is told, one after the other."""

    def __init__(self, *said: tuple[float, Any]) -> None:
        super().__init__()
        self.deterministic = False
        self.said = list(said)
        self.cancelled = 0

    async def send(self, request: Request) -> Reply:
        """Wait, then answer or fail."""
        seconds, what = self.said.pop(0)
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(what, Exception):
            raise what
        return Reply(text=json.dumps(what), usage=Usage(1, 1))


def _judged(monkeypatch: pytest.MonkeyPatch, out: Path, backend: Slow, n: int = 1, **options: Any) -> dict[str, Any]:
    """A run of some items whose requests go through that backend; its first verdict."""
    monkeypatch.setattr("evenhand.judging.load", lambda *_: lambda _: backend)
    run_it(rows(n), TWO, "openai:m", out, **options)
    with Store.open(out) as store:
        [verdict] = store.verdicts_of("i0").values()
        [*exchanges] = store.exchanges(next(iter(store.verdicts_of("i0"))))
    return {"verdict": verdict, "replies": len(exchanges)}


def test_a_trial_that_takes_too_long_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its request in flight is cancelled, and the verdict tells why; the next run asks it again."""
    backend = Slow((30, GOOD))
    told = _judged(monkeypatch, tmp_path / "run", backend, deadline=0.2)
    assert (told["verdict"].status.value, told["verdict"].failure) == ("failed", "RetryableBackendError")
    assert told["verdict"].detail == "no verdict within the 0.2 s that a trial may take"
    assert backend.cancelled == 1
    backend.said = [(0, GOOD)]
    assert _judged(monkeypatch, tmp_path / "run", backend, deadline=0.2)["verdict"].status.value == "scored"


def test_tries_and_pauses_of_a_trial_count_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Failed tries, forms that are found out: each is short, and together they are too long."""
    busy = RetryableBackendError("busy", status=503)
    backend = Slow(*[(0.08, busy)] * 2, *[(0.08, {"reason": "no form"})] * 9)
    told = _judged(monkeypatch, tmp_path / "run", backend, deadline=0.3, attempts=3)
    assert told["verdict"].status.value == "failed"
    assert told["replies"] <= 2


def test_a_wait_beyond_the_deadline_of_a_trial_ends_it_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the endpoint names a time that is too late for it, a trial does not wait."""
    backend = Slow((0, GOOD), (0, RetryableBackendError("later", status=429, retry_after_s=60.0)))
    began = time.monotonic()
    _judged(monkeypatch, tmp_path / "run", backend, n=4, deadline=5, concurrency=1)
    assert time.monotonic() - began < 4
    assert sorted(statuses(tmp_path / "run").values()) == ["failed"] * 3 + ["scored"]


def test_what_came_before_the_deadline_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A re-ask that comes too late leaves the verdict of the first reply, which is told as re-asked."""
    backend = Slow((0, LIE), (30, GOOD))
    told = _judged(monkeypatch, tmp_path / "run", backend, deadline=0.3)
    verdict = told["verdict"]
    assert (verdict.status.value, verdict.re_asked, verdict.broken) == ("scored", True, ("lie",))
    assert (told["replies"], backend.cancelled) == (1, 1)


def test_waiting_for_a_turn_is_no_part_of_the_deadline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Trials that wait for a rate of our own, or for each other, longer than one may take, are all scored."""
    backend = Slow(*[(0.01, GOOD)] * 8)
    began = time.monotonic()
    _judged(monkeypatch, tmp_path / "run", backend, n=8, deadline=0.5, concurrency=4, rpm=300)
    assert time.monotonic() - began > 1.3
    assert set(statuses(tmp_path / "run").values()) == {"scored"}


def test_a_trial_that_takes_too_long_does_not_make_others_wait_in_a_row(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """While nobody knows the form, one trial finds it out; if it gets no reply in time, all others ask at once."""
    backend = Slow(*[(30, GOOD)] * 20)
    began = time.monotonic()
    _judged(monkeypatch, tmp_path / "run", backend, n=20, deadline=0.5, concurrency=20)
    assert time.monotonic() - began < 5
    assert set(statuses(tmp_path / "run").values()) == {"failed"}


@pytest.mark.parametrize("paid", [False, True])
async def test_a_try_that_is_given_up_may_be_paid_if_it_was_sent(paid: bool) -> None:
    """Cancelled while it waits for its turn it costs nothing; cancelled in flight it may."""
    settled: list[bool] = []

    class Purse:
        async def reserve(self, request: Request) -> str:
            return "held"

        def settle(self, held: Any, usage: Usage | None, *, maybe_paid: bool = False) -> Usage | None:
            settled.append(maybe_paid)
            return usage

    pacer = Pacer(1)
    first = await pacer.enter(0)
    paced = Paced(Slow((30, GOOD)), retry=Retry(), pacer=pacer, purse=Purse())
    task = asyncio.create_task(paced.send(Request(messages=({"role": "user", "content": "x"},), form="json")))
    if paid:
        pacer.leave(first, "answered")
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert settled == [paid]


async def test_signing_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a wire does before it sends has no limit of its own: the time for the request ends it."""
    wire = ChatWire()
    monkeypatch.setattr(wire, "signs", True)
    monkeypatch.setattr(wire, "headers", lambda *_: time.sleep(1.0))
    backend = HttpBackend(wire, BackendSettings(model="m", base_url="http://127.0.0.1:9/v1", timeout_s=0.05))
    paced = Paced(backend, retry=Retry(1, deadline_s=0.2), pacer=Pacer(1))
    began = time.monotonic()
    with pytest.raises((AccessError, RetryableBackendError), match="no reply within"):
        await paced.send(Request(messages=({"role": "user", "content": "q"},), form="text"))
    assert time.monotonic() - began < 0.9
    await paced.aclose()
