"""Engines: whatever asks the trials, the run is the same, and what holds for it holds for all its workers together.

Each test runs with workers in this process; and, where `EVENHAND_RAY_TESTS` is set, as `test_on_ray.py` does in a
network of its own, with workers over a Ray cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import make_spec
from evenhand.errors import AccessError, RunError
from evenhand.run import Outcome, Progress, run
from evenhand.run_folder import FILE
from evenhand.runners import on_ray
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from near_workers import Near
from runs import SCORE, TWO, rows, run_it, statuses, summary, write_jsonl

OVER_RAY = "EVENHAND_RAY_TESTS" in os.environ
NEAR = pytest.mark.skipif(OVER_RAY, reason="no other with Ray, and workers take seconds to begin")
PRICE = {"openai:m": {"input": 0.0, "output": 0.0, "request": 0.01}}


class Engine:
    """An engine under test, and a way to kill one of its workers."""

    def __init__(self) -> None:
        self.started: list[Any] = []

    def run(self, items: Any, judge: str, out: Path, **options: Any) -> Outcome:
        """A run on this engine; one request a trial."""
        watched = {name: options.pop(name) for name in ("progress", "stop") if name in options}
        spec = make_spec(items, TWO, judge, out=out, engine="ray", re_ask=False, **options)
        return asyncio.run(run(spec, **watched))

    def kill_one(self) -> None:
        """Kill the first worker that was started."""
        self.started[0].kill()


class _Killable(on_ray._Actor):
    """An actor whose process can be killed."""

    pid: int = 0

    async def start(self, setup: Any) -> Exception | None:
        failed = await super().start(setup)
        self.pid = await self._actor.__ray_call__.remote(lambda _: os.getpid())
        return failed

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One cluster for all tests."""
    if not OVER_RAY:
        yield
        return
    import ray

    with on_ray._quiet():
        on_ray._begin(str(tmp_path_factory.mktemp("r")))
        on_ray._retake_signals()
        yield
        ray.shutdown()


@pytest.fixture
def engine(cluster: None, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """Workers over Ray, or in this process."""
    made = Engine()

    def start(*given: Any) -> Any:
        made.started.append(_Killable(*given) if OVER_RAY else Near())
        return made.started[-1]

    @contextlib.asynccontextmanager
    async def joined(address: str | None) -> AsyncIterator[int]:
        yield 2

    monkeypatch.setattr(on_ray, "_Actor", start)
    if not OVER_RAY:
        monkeypatch.setattr(on_ray, "_joined", joined)
        monkeypatch.setattr(on_ray, "require_ray", lambda address: None)
    return made


class Told(Progress):
    """Calls something with each verdict that is stored."""

    __slots__ = ("call", "seen")

    def __init__(self, call: Callable[[int], None]) -> None:
        self.call, self.seen = call, 0

    def done(self, answer: Any) -> None:
        self.seen += 1
        self.call(self.seen)


def kept(out: Path) -> list[tuple[Any, ...]]:
    """All that a run's verdicts and replies say, byte by byte, times apart."""
    with contextlib.closing(sqlite3.connect(out / FILE)) as db:
        verdicts = db.execute('SELECT item, "order", repeat, status, verdict FROM trial').fetchall()
        replies = db.execute('SELECT item, "order", repeat, attempt, request, form, reply FROM reply').fetchall()
    return sorted(verdicts) + sorted(replies)


def test_verdicts_are_those_of_the_local_engine(engine: Engine, tmp_path: Path) -> None:
    """Byte by byte, blank answers that are set in code included."""
    items = [*rows(230), {"id": "blank", "question": "Well?", "answer": ""}]
    run_it(items, TWO, "fake", tmp_path / "local", repeats=2, re_ask=False)
    engine.run(items, "fake", tmp_path / "far", repeats=2)
    for out in ("local", "far"):  # a key is drawn for each run; that of a judge that repeats is the rubric's
        assert len(statuses(tmp_path / out)) == 462
    assert kept(tmp_path / "far") == kept(tmp_path / "local")


@NEAR
def test_either_engine_goes_on_where_the_other_stopped(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """What is stored is not asked again; the manifest tells of both, and of the form that a reply proved."""
    url, out = server.with_faults(), tmp_path / "run"
    engine.run(rows(40), "openai:m", out, base_url=url)
    with Store.open(out) as store:
        assert store.manifest["form"] in ("schema", "tool")
    run_it(rows(50), TWO, "openai:m", out, base_url=url, re_ask=False)
    engine.run(rows(90), "openai:m", out, base_url=url)
    assert len(server.requests(url)) == 90 == len(statuses(out))
    with Store.open(out) as store:
        assert [command["engine"] for command in store.manifest["commands"]] == ["local", "ray"]


def test_all_workers_share_the_requests_in_flight(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """A fixed number holds for all of them together, and is used to the full."""
    server.reset()
    engine.run(rows(600), "openai:m", tmp_path / "run", base_url=server.with_faults(latency="30"), concurrency=6)
    assert server.stats()["max_inflight"] == 6
    assert len(engine.started) == 2
    assert summary(tmp_path / "run")["scored"] == 600


@NEAR
def test_refusals_of_too_many_slow_down_all_workers(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """An endpoint that takes four at once gets all trials answered, at the price of a few refusals."""
    url = server.with_faults(latency="10", max_inflight=4, style="none")
    engine.run(rows(200), "openai:m", tmp_path / "run", base_url=url, attempts=20)
    assert summary(tmp_path / "run")["scored"] == 200
    assert sum(request["status"] == 429 for request in server.requests(url)) < 100


def test_all_workers_share_the_cap(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """No more is sent than the cap pays for; a higher one goes on."""
    url, out, prices = server.with_faults(latency="5"), tmp_path / "run", tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICE))
    how: dict[str, Any] = {"base_url": url, "prices": prices, "max_tokens": 50}
    with pytest.raises(RunError, match="--max-cost is reached"):
        engine.run(rows(100), "openai:m", out, max_cost=0.505, **how)
    assert len(server.requests(url)) == 50 == len(statuses(out))
    run_it(rows(100), TWO, "openai:m", out, max_cost=5, re_ask=False, **how)
    assert len(server.requests(url)) == 100 == len(statuses(out))
    assert summary(out)["cost_usd"] == pytest.approx(1.0)


@NEAR
def test_a_judge_that_refuses_us_ends_the_run(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """One request tells; the error is the local one."""
    url = server.with_faults(fault="401")
    with pytest.raises(AccessError, match="401"):
        engine.run(rows(300), "openai:m", tmp_path / "run", base_url=url)
    assert len(server.requests(url)) == 1


def test_a_killed_worker_loses_nothing(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """Its trials are asked by others; only what it had in flight is paid twice, and counted as possibly paid."""
    url, out, prices = server.with_faults(latency="30"), tmp_path / "run", tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICE))
    killing = Told(lambda seen: engine.kill_one() if seen == 100 else None)
    how: dict[str, Any] = {"base_url": url, "prices": prices, "max_tokens": 50, "concurrency": 8}
    engine.run(rows(400), "openai:m", out, progress=killing, **how)
    assert set(statuses(out).values()) == {"scored"}
    assert killing.seen == 400 == len(statuses(out))
    twice = len(server.requests(url)) - 400
    assert 0 <= twice <= 8
    with Store.open(out) as store:
        spent = store.manifest["cost"]["at_most_usd"]
        assert len(list(store.usages())) == 400
    assert 4 + 0.01 * twice <= spent + 1e-9 <= 4 + 0.01 * 8 + 1e-9


@NEAR
def test_a_stop_finishes_what_is_in_flight(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """What was sent is stored, what was not is left for the next time."""
    url, out, stop = server.with_faults(latency="20"), tmp_path / "run", Stop()
    watching = Told(lambda seen: stop() if seen == 30 else None)
    ended = engine.run(rows(400), "openai:m", out, base_url=url, concurrency=8, progress=watching, stop=stop)
    assert ended.interrupted
    assert 30 <= watching.seen == len(statuses(out)) == len(server.requests(url)) < 120
    run_it(rows(400), TWO, "openai:m", out, base_url=url, re_ask=False)
    assert len(server.requests(url)) == 400


def test_a_cancelled_run_gives_up_what_is_in_flight(engine: Engine, tmp_path: Path, server: FakeServer) -> None:
    """It ends at once; what it may have paid for is counted."""
    url, out, prices = server.with_faults(latency="20000"), tmp_path / "run", tmp_path / "prices.json"
    prices.write_text(json.dumps(PRICE))
    options = {"base_url": url, "prices": prices, "max_tokens": 50, "concurrency": 4, "engine": "ray"}

    async def cancelled() -> None:
        running = asyncio.create_task(run(make_spec(rows(50), TWO, "openai:m", out=out, **options)))
        while not server.requests(url):
            await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 15)

    asyncio.run(cancelled())
    with Store.open(out) as store:
        assert store.manifest["cost"]["at_most_usd"] == pytest.approx(0.01)


@pytest.mark.skipif(not OVER_RAY, reason="only over Ray")
def test_a_running_cluster_is_joined_by_the_command(cluster: None, tmp_path: Path, server: FakeServer) -> None:
    """The command's stdout holds its figures and nothing else; a signal to all its processes stops it gently."""
    import ray

    data = write_jsonl(tmp_path / "rows.jsonl", rows(200))
    rubric, out = tmp_path / "two.yaml", tmp_path / "run"
    rubric.write_text(SCORE)
    url = server.with_faults(latency="100")
    command = [sys.executable, "-W", "error", "-m", "evenhand", "judge", str(data), "--rubric", str(rubric), "--json"]
    command += ["--judge", "openai:m", "--base-url", url, "--concurrency", "4", "--no-re-ask", "--out", str(out)]
    command += ["--engine", "ray", "--ray-address", ray.get_runtime_context().gcs_address]
    how: dict[str, Any] = {"text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    how["env"] = {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": on_ray._token()}
    with subprocess.Popen(command, start_new_session=True, **how) as stopped:
        while len(server.requests(url)) < 20:
            assert stopped.poll() is None, stopped.communicate()
            time.sleep(0.05)
        os.killpg(stopped.pid, signal.SIGINT)
        figures, told = stopped.communicate(timeout=60)
    assert stopped.returncode == 130, told
    assert 20 <= len(statuses(out)) == len(server.requests(url)) < 200
    assert json.loads(figures)["scored"] == len(statuses(out))
    assert told.count("\n") < 12, told
