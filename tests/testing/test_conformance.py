"""The suite for backends finds what is wrong with one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.backends.fake import Fake
from evenhand.testing.conformance import ConformanceError, check_backend, check_failing
from evenhand.verdict import Reply, Usage


@dataclass
class Wrong:
    """A backend that is right but for one thing."""

    fault: str = ""
    inner: Fake = field(default_factory=Fake)
    name: str = "wrong"
    model: str = "m"
    deterministic: bool = True
    takes_images: bool = False
    max_concurrency: int | None = None
    forms: tuple[Any, ...] = ("schema",)
    sent: int = 0
    closed: int = 0

    @property
    def identity(self) -> dict[str, Any]:
        return {"backend": "wrong", "id": id(self) if self.fault == "identity" else 0}

    async def send(self, request: Request) -> Reply:
        self.sent += 1
        if self.fault == "raises":
            raise KeyError("choices")
        reply = await self.inner.send(request)
        changes: dict[str, dict[str, Any]] = {
            "count": {"usage": Usage(prompt_tokens=-1)},
            "text": {"text": 3},
            "varies": {"text": str(self.sent)},
            "costs": {"usage": Usage(cost_usd=0.1)},
        }
        if self.fault == "mutates":
            request.messages[0]["content"] = "changed"  # type: ignore[index]
        return replace(reply, **changes.get(self.fault, {}))

    async def aclose(self) -> None:
        self.closed += 1
        if self.fault == "closing" and self.closed > 1:
            raise ConformanceError("closed twice")


async def test_a_right_backend_passes() -> None:
    """Nothing is wrong with a backend that is right."""
    await check_backend(Wrong)


@pytest.mark.parametrize("fault", ["identity", "count", "text", "varies", "costs", "mutates", "closing"])
async def test_every_fault_is_found(fault: str) -> None:
    """Each thing a backend must not do is found."""
    with pytest.raises(ConformanceError):
        await check_backend(lambda: Wrong(fault))


async def test_unknown_forms_and_limits_are_found() -> None:
    """Attributes are checked before anything is sent."""
    for wrong in ({"forms": ("xml",)}, {"forms": ()}, {"max_concurrency": 0}, {"name": ""}, {"takes_images": None}):
        with pytest.raises(ConformanceError):
            await check_backend(lambda wrong=wrong: Wrong(**wrong))  # type: ignore[misc]


async def test_failing_backends_raise_backend_errors_only() -> None:
    """An error of another kind, and a reply where none should be, are found."""
    for fault in ("raises", ""):
        with pytest.raises(ConformanceError):
            await check_failing(lambda fault=fault: Wrong(fault))  # type: ignore[misc]


def test_any_test_runner_will_do() -> None:
    """The checks are plain coroutines."""
    assert asyncio.run(check_backend(Wrong)) is None  # type: ignore[func-returns-value]
