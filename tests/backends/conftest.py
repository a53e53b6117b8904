"""A fault server for all tests of backends, and a way to talk to it that doesn't wait long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest_asyncio

from evenhand.backend import BackendSettings
from evenhand.backends.paced import Paced
from evenhand.backends.pacing import Pacer
from evenhand.backends.retry import Retry
from evenhand.registry import load

Chat = Callable[..., Paced]


@pytest_asyncio.fixture
async def chat() -> AsyncIterator[Chat]:
    """``chat(url, provider="openai", attempts=4, ...)``: a backend with short pauses, closed after the test."""
    opened: list[Paced] = []

    def open_chat(
        url: str,
        provider: str = "openai",
        *,
        attempts: int = 4,
        concurrency: int = 8,
        retry: dict[str, Any] | None = None,
        **settings: Any,
    ) -> Paced:
        given = BackendSettings(
            model="judge-1", base_url=url, concurrency=concurrency, **{"timeout_s": 5.0, **settings}
        )
        pauses = {"base_s": 0.01, "deadline_s": 20.0, **(retry or {})}
        backend = load("backend", provider)(given)
        opened.append(Paced(backend, retry=Retry(attempts, **pauses), pacer=Pacer(concurrency)))
        return opened[-1]

    yield open_chat
    for backend in opened:
        await backend.aclose()
