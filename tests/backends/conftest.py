"""A fault server for all tests of backends, and a way to talk to it that doesn't wait long."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest_asyncio

from evenhand.backend import BackendSettings
from evenhand.backends.openai_chat import OpenAIChat
from evenhand.backends.retry import Retry

Chat = Callable[..., OpenAIChat]


@pytest_asyncio.fixture
async def chat() -> AsyncIterator[Chat]:
    """``chat(url, attempts=4, ...)``: a backend with short pauses, closed after the test."""
    opened: list[OpenAIChat] = []

    def open_chat(url: str, *, retry: dict[str, Any] | None = None, **settings: Any) -> OpenAIChat:
        given = BackendSettings(model="judge-1", base_url=url, **{"timeout_s": 5.0, **settings})
        pauses = {"base_s": 0.01, "deadline_s": 20.0, **(retry or {})}
        opened.append(OpenAIChat(given, retry=Retry(given.attempts, **pauses)))
        return opened[-1]

    yield open_chat
    for backend in opened:
        await backend.aclose()
