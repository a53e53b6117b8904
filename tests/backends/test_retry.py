"""Trying again: how often, when, and when no more."""

from __future__ import annotations

import pytest

from evenhand.backends.retry import Retry
from evenhand.errors import FinalBackendError, RetryableBackendError


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def retry(clock: Clock, uniform: float = 1.0, **settings: float) -> Retry:
    return Retry(clock=clock, sleep=clock.sleep, uniform=lambda: uniform, **settings)  # type: ignore[arg-type]


def failing(error: Exception, times: int = 99):  # type: ignore[no-untyped-def]
    """A call that fails so many times and then returns how often it was called."""
    calls: list[int] = []

    async def once() -> int:
        calls.append(len(calls))
        if len(calls) <= times:
            raise error
        return len(calls)

    once.calls = calls  # type: ignore[attr-defined]
    return once


async def test_pauses_double_up_to_the_cap() -> None:
    """The longest pause doubles with each failure, up to the cap."""
    clock = Clock()
    once = failing(RetryableBackendError("x"), 6)
    assert await retry(clock, attempts=7, base_s=0.5, cap_s=4.0).run(once) == 7
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 4.0, 4.0]


async def test_jitter_is_full() -> None:
    """A pause of our own may be anything from nothing to the longest."""
    assert [retry(Clock(), u, base_s=2.0).pause(2, None) for u in (0.0, 0.25, 0.5)] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("uniform", [0.0, 0.5, 0.999])
def test_a_named_time_is_never_cut(uniform: float) -> None:
    """Where the server names a time, the pause is that or a little more, whatever the cap."""
    pause = retry(Clock(), uniform, base_s=0.5, cap_s=1.0).pause(1, 40.0)
    assert 40.0 <= pause <= 40.5


async def test_tries_are_counted() -> None:
    """So many attempts means so many calls; the last error is raised."""
    once = failing(RetryableBackendError("x"))
    with pytest.raises(RetryableBackendError):
        await retry(Clock(), attempts=3).run(once)
    assert len(once.calls) == 3


async def test_a_final_error_ends_at_once() -> None:
    """What a retry can't mend is not retried."""
    once = failing(FinalBackendError("x"))
    with pytest.raises(FinalBackendError):
        await retry(Clock()).run(once)
    assert len(once.calls) == 1


async def test_the_deadline_holds() -> None:
    """No pause goes past the deadline, or past the time that the caller says is left."""
    for left, tries, end in ((None, 3, 80.0), (50.0, 2, 40.0), (40.0, 1, 0.0)):
        clock = Clock()
        once = failing(RetryableBackendError("x", retry_after_s=40.0))
        left_s = None if left is None else (lambda clock=clock, left=left: left - clock.now)
        with pytest.raises(RetryableBackendError):
            await retry(clock, 0.0, attempts=10, deadline_s=100.0).run(once, left_s)
        assert (len(once.calls), clock.now) == (tries, end)
