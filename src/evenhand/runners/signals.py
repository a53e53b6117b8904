"""Signals of a run: the first one ends it gently, the second one at once."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

from evenhand.runners.local import Stop


@contextlib.contextmanager
def taken_over(stop: Stop, stopping: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C, SIGTERM and SIGHUP stop gently the first time; the second time they cancel what is in flight.

    What handled them before does so again afterwards.

    Args:
        stop: Asked by the first signal.
        stopping: Called with it.
    """
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None

    def on_signal() -> None:
        if stop.asked:
            task.cancel()
        else:
            stopping()
        stop()

    before: dict[signal.Signals, Any] = {}
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Not the main thread, or a loop without signals: then the caller's own handling stays.
        with contextlib.suppress(ValueError, RuntimeError, NotImplementedError):
            handler = signal.getsignal(signum)
            if handler is signal.SIG_IGN and signum is signal.SIGHUP:  # as under nohup
                continue
            loop.add_signal_handler(signum, on_signal)
            before[signum] = handler
    try:
        yield
    finally:
        for signum, handler in before.items():
            loop.remove_signal_handler(signum)
            signal.signal(signum, handler if handler is not None else signal.SIG_DFL)
