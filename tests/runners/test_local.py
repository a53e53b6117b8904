"""Runners: bounded, store before they go on, stop gently, lose nothing on errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from evenhand.item import Item
from evenhand.judging import Answer, Exchange
from evenhand.runners.local import GroupCommit, Stop
from evenhand.runners.local import run_trials as local_run
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Reply, Status, Verdict
from near_workers import run_on_pool

Runner = Callable[..., Any]
EXCHANGE = Exchange(0, "digest", "text", Reply())


@pytest.fixture(params=[local_run, run_on_pool], ids=["local", "pool"])
def run_trials(request: pytest.FixtureRequest) -> Runner:
    """One of the runners; workers of a pool may have taken a few trials more when they are told to stop."""
    return request.param


def _trials(n: int) -> Iterator[Trial]:
    for i in range(n):
        yield Trial(TrialKey(str(i), "", 0), Item(str(i), i, {}))


class _World:
    """A judge and a store that count what happens."""

    def __init__(self, *, fail_at: str | None = None) -> None:
        self.in_flight = self.most = 0
        self.stored: list[str] = []
        self.commits = 0
        self.fail_at = fail_at

    async def ask(self, trial: Trial) -> Answer:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        if trial.key.item_id == self.fail_at:
            raise OSError("broken wire")
        return Answer(trial.key, Verdict(Status.SCORED), (EXCHANGE,))

    def commit(self, answers: Sequence[Answer]) -> None:
        time.sleep(0.001)
        self.commits += 1
        self.stored += [answer.key.item_id for answer in answers]


async def test_all_trials_are_asked_once_and_stored(run_trials: Runner) -> None:
    """Every trial is asked and stored once, at most N at a time, in fewer commits than trials."""
    world = _World()
    await run_trials(_trials(200), world.ask, world.commit, concurrency=16)
    assert sorted(world.stored, key=int) == [str(i) for i in range(200)]
    assert world.most == 16
    assert world.commits < 150


async def test_done_is_told_only_of_what_is_stored(run_trials: Runner) -> None:
    """Progress never runs ahead of the store."""
    world = _World()
    ahead: list[str] = []

    def done(answer: Answer) -> None:
        if answer.key.item_id not in world.stored:
            ahead.append(answer.key.item_id)

    await run_trials(_trials(60), world.ask, world.commit, concurrency=8, done=done)
    assert ahead == []
    assert len(world.stored) == 60


async def test_stop_finishes_what_is_in_flight(run_trials: Runner) -> None:
    """After a stop nothing new is taken and all that was asked is stored."""
    world, stop = _World(), Stop()
    asked: list[str] = []

    async def ask(trial: Trial) -> Answer:
        asked.append(trial.key.item_id)
        if len(asked) == 20:
            stop()
        return await world.ask(trial)

    await run_trials(_trials(500), ask, world.commit, concurrency=4, stop=stop)
    assert 20 <= len(asked) <= 24
    assert sorted(asked) == sorted(world.stored)


async def test_an_error_is_raised_after_the_rest_is_stored(run_trials: Runner) -> None:
    """The first error ends the run, but answers in flight at that moment are kept."""
    world = _World(fail_at="30")
    with pytest.raises(OSError, match="broken wire"):
        await run_trials(_trials(500), world.ask, world.commit, concurrency=4)
    assert (27 if run_trials is local_run else 0) <= len(world.stored) <= (34 if run_trials is local_run else 150)
    assert "30" not in world.stored


async def test_a_store_that_fails_stops_the_run(run_trials: Runner) -> None:
    """Nothing is asked for long when verdicts can't be stored."""
    world = _World()

    def commit(answers: Sequence[Answer]) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await run_trials(_trials(500), world.ask, commit, concurrency=4)
    assert world.most <= 4


async def test_answers_are_stored_together() -> None:
    """What comes within milliseconds is one commit, and where no more can come none is waited for."""
    world = _World()
    await local_run(_trials(100), world.ask, world.commit, concurrency=50)
    assert world.commits <= 10
    group = GroupCommit(world.commit, 2)
    puts = [group.put(Answer(TrialKey(name, "", 0), Verdict(Status.SCORED))) for name in ("x", "y")]
    began = time.monotonic()
    await asyncio.gather(*puts)
    assert world.stored[-2:] == ["x", "y"]
    assert time.monotonic() - began < 1.0


async def test_a_judge_that_never_waits_lets_others_run() -> None:
    """Between two trials the loop has its turn, as signals need it."""
    turns = 0

    async def answered(trial: Trial) -> Answer:
        nonlocal turns
        turns += 1
        return Answer(trial.key, Verdict(Status.SCORED))

    stop, world = Stop(), _World()
    asyncio.get_running_loop().call_later(0.02, stop)
    await local_run(_trials(100_000), answered, world.commit, concurrency=1, stop=stop)
    assert 0 < turns < 100_000
