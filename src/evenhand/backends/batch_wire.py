"""How a provider takes many requests at once and answers them later: the part that all providers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.backends.bodies import decode
from evenhand.backends.retry import Retry
from evenhand.errors import RetryableBackendError

if TYPE_CHECKING:
    from evenhand.backends.http import HttpBackend

_LARGEST = 1 << 30  # bytes of a file of results


@dataclass(frozen=True, slots=True)
class State:
    """How far a batch is.

    Attributes:
        told: The provider's own words, with counts.
        ended: Nothing more will come.
        failed: Why it has no results at all, where it was refused as a whole.
        files: Where its results are.
    """

    told: str
    ended: bool = False
    failed: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """What a batch answered to one request.

    Attributes:
        name: The name that the request was given.
        status: As of an HTTP answer; None where it was never sent (expired, cancelled).
        body: The answer's body, decoded.
    """

    name: str
    status: int | None
    body: Any


class BatchWire:
    """The base of all providers; what differs is overridden.

    Args:
        backend: The open backend, which knows address and key.

    Attributes:
        most_lines, most_bytes: Requests, and their bytes, that one batch may have.
    """

    most_lines = 50_000
    most_bytes = 190_000_000

    def __init__(self, backend: HttpBackend) -> None:
        self.backend = backend
        self._retry = Retry(attempts=6, base_s=1.0)

    def line(self, name: str, body: Mapping[str, Any]) -> bytes:
        """One request of a batch, as JSON without a line end."""
        raise NotImplementedError

    async def submit(self, lines: Sequence[bytes], token: str) -> str:
        """Hand in a batch; its id. Tried once, as a second one would be paid for too.

        Args:
            lines: What `line` made.
            token: A text by which `find` may know it.
        """
        raise NotImplementedError

    async def find(self, token: str) -> str | None:
        """The id of a batch that was handed in with that token by who was killed then; None where nobody can tell."""
        return None

    async def state(self, batch: str) -> State:
        """How far a batch is.

        Raises:
            FinalBackendError: there is no such batch.
        """
        raise NotImplementedError

    async def lines(self, state: State) -> list[Line]:
        """All results of a batch that has ended, in any order; some requests may have none."""
        found: list[Line] = []
        for file in state.files:
            for text in (await self.fetch("GET", file, largest=_LARGEST)).splitlines():
                if text.strip():
                    found += self._read(text)
        return found

    def result(self, data: Mapping[str, Any]) -> Line:
        """One line of results."""
        raise NotImplementedError

    async def fetch(
        self, method: str, path: str, body: bytes | None = None, kind: str = "application/json", **how: Any
    ) -> bytes:
        """The body of a successful answer; reading is tried again where that can help, writing is not.

        Raises:
            BackendError: there is none.
        """

        async def once() -> bytes:
            return await self.backend.call(method, path, body, kind, **how)

        return await (self._retry.run(once) if method == "GET" else once())

    async def json(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
        """The same, decoded; always an object.

        Raises:
            BackendError: there is none.
        """
        try:
            data = decode(await self.fetch(method, path, body, kind), self.backend.clean)
        except ValueError as error:
            raise RetryableBackendError(f"the answer can't be read: {error}") from None
        if not isinstance(data, Mapping):
            raise RetryableBackendError("the answer is no JSON object")
        return data

    def _read(self, text: bytes) -> Iterator[Line]:
        """A line of results; none where it can't be read, so that its request is sent again."""
        try:
            data = decode(text, self.backend.clean)
            if isinstance(data, Mapping) and isinstance(data.get("custom_id"), str):
                yield self.result(data)
        except (ValueError, KeyError, TypeError, AttributeError):
            return
