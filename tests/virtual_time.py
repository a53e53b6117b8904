"""An event loop whose time passes only by waiting: minutes of traffic in milliseconds, the same every time."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Selector(selectors.SelectSelector):
    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing will ever happen again"
        self.now += max(0.0, timeout)
        return []  # nothing but time ever happens


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.passing = _Selector()
        super().__init__(self.passing)

    def time(self) -> float:
        return self.passing.now


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end."""
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return runner.run(work)


def now() -> float:
    """Seconds since the loop began."""
    return asyncio.get_running_loop().time()
