"""A pool's workers: what they must be, what they may learn from each other, and how often they may die."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from evenhand.backends.pacing import Pacer
from evenhand.errors import AccessError, FinalBackendError, InputError, MissingExtraError, UnknownNameError
from evenhand.item import Item
from evenhand.judging import Answer, Exchange
from evenhand.prices import Price
from evenhand.purse import Purse
from evenhand.runners.pool import Lost, Pool, shares
from evenhand.runners.worker import portable
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Reply, Status, Verdict
from near_workers import SETUP, Near


def _trials(n: int) -> Iterator[Trial]:
    for i in range(n):
        yield Trial(TrialKey(str(i), "", 0), Item(str(i), i, {}))


async def _answered(trial: Trial) -> Answer:
    await asyncio.sleep(0.001)
    return Answer(trial.key, Verdict(Status.SCORED), (Exchange(0, "d", "text", Reply()),))


def _pool(n: int, lines: Iterator[Near], stored: list[str], **options: object) -> Pool:
    def commit(answers: Sequence[Answer]) -> None:
        stored.extend(answer.key.item_id for answer in answers)

    setup = replace(SETUP, width=4)
    return Pool(_trials(n), lambda: next(lines), commit, setup, **{"workers": 2, "batch": 10, **options})  # type: ignore[arg-type]


async def test_workers_that_die_one_after_another_end_the_run() -> None:
    """As where memory is too small: an error with the cause, not for ever; one that answers starts the count anew."""

    async def dies(trial: Trial) -> Answer:
        if int(trial.key.item_id) == 25:
            lines[-1].kill()
        return await _answered(trial)

    lines: list[Near] = []

    def made() -> Iterator[Near]:
        while True:
            lines.append(Near(dies))
            yield lines[-1]

    stored: list[str] = []
    with pytest.raises(FinalBackendError, match=r"5 workers died one after another, .* killed"):
        await _pool(40, made(), stored, workers=1).run()
    assert len(set(stored)) == len(stored) >= 20
    assert len(lines) >= 5


async def test_a_worker_with_another_judge_is_refused() -> None:
    """As with another file of recorded replies, or other weights, at the same path."""
    stored: list[str] = []
    with pytest.raises(InputError, match="the judge fake is another one on a worker"):
        await _pool(5, iter([Near(), Near()]), stored).run()
    assert stored == []


async def test_others_begin_when_one_has_tried_the_judge() -> None:
    """So that what refuses one refuses all at the price of one request."""
    far, near, started = Near(_answered), Near(_answered), asyncio.Event()

    async def first(trial: Trial) -> Answer:
        await asyncio.sleep(0.3)
        assert not near.setups or not far.setups
        started.set()
        return await _answered(trial)

    stored: list[str] = []
    lines = [Near(first), near]
    await _pool(60, iter(lines), stored).run()
    assert started.is_set() and near.setups
    assert sorted(stored, key=int) == [str(i) for i in range(60)]


async def test_what_a_dead_worker_held_is_given_back() -> None:
    """Its turns are free again; as much as it had turns for may be paid, the dearest; the rest is free."""
    pacer = Pacer(3)
    purse = Purse(Price(((0, 0.0),), ((0, 0.0),), request=1.0), cap=100.0, paid=0, spent=0, save=lambda _: None)
    holding = Near()

    async def wait_for_ever(trial: Trial) -> Answer:
        worker = holding.worker
        number = int(trial.key.item_id)
        await worker.answer("reserve", 10 + number, undo=("settle", None, False))
        await worker.answer("enter", 0, 60.0, undo=("leave", "dropped", None, 0))
        await asyncio.sleep(60)
        raise AssertionError

    holding._ask = wait_for_ever
    stored: list[str] = []

    async def kill() -> None:
        while purse.reserved < 10 + 11 + 12 + 13 or pacer._sent < 3:
            await asyncio.sleep(0.01)
        holding.kill()

    killing = asyncio.create_task(kill())
    await _pool(4, iter([holding, Near(_answered)]), stored, workers=1, pacer=pacer, purse=purse).run()
    await killing
    assert sorted(stored) == ["0", "1", "2", "3"]
    assert (purse.maybe, purse.reserved) == (11 + 12 + 13, 0)
    assert pacer._places == pacer._sent == 0


async def test_what_can_not_be_read_ends_the_run_gently() -> None:
    """What was begun is stored, what was not is left for the next time, and the error is raised."""

    def trials() -> Iterator[Trial]:
        yield from _trials(10)
        raise OSError("the store is damaged")

    stored: list[str] = []
    pool = _pool(0, iter([Near(_answered)]), stored, workers=1)
    pool._trials = trials()
    with pytest.raises(OSError, match="damaged"):
        await pool.run()
    assert set(stored) <= {str(i) for i in range(10)}


async def test_a_pool_without_trials_ends_at_once() -> None:
    """Nothing is stored, and nobody waits."""
    stored: list[str] = []
    await asyncio.wait_for(_pool(0, iter([Near(_answered), Near(_answered)]), stored).run(), 5)
    assert stored == []


@pytest.mark.parametrize(
    "error",
    [
        AccessError("no", hint="key", backend="openai", status=401),
        UnknownNameError("judge", "opnai", ["openai"]),
        MissingExtraError("xllamacpp", "local"),
        Lost("gone"),
    ],
)
def test_errors_keep_their_kind_and_remedy_on_the_way(error: Exception) -> None:
    """Exit code and texts are those of the local engine."""
    again = pickle.loads(pickle.dumps(portable(error)))
    assert str(again) == str(error)
    assert getattr(again, "exit_code", 1) == getattr(error, "exit_code", 1)


def test_a_defect_tells_where_it_is() -> None:
    """The place in the worker is in a note, also where the error itself can't be sent."""

    class Own(Exception):
        pass

    for kind in (KeyError, Own):
        try:
            raise kind("x")
        except Exception as error:
            sent = pickle.loads(pickle.dumps(portable(error)))
            assert "test_pool.py" in "".join([str(sent), *getattr(sent, "__notes__", ())])


def test_shares() -> None:
    """All workers together have as many trials in flight as are allowed, in small batches at the end."""
    assert shares(10_000, 4, 64, None) == (4, 16, 100)
    assert shares(10_000, 4, 2, None) == (2, 1, 100)
    assert shares(3, 4, 16, None) == (3, 6, 1)
    assert shares(100, 4, 16, 1) == (4, 1, 7)
    assert shares(10_000, 64, 1000, None) == (64, 16, 40)
