"""Anthropic's message batches: the requests in one body, and one file of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.backends.batch_wire import BatchWire, Line, State
from evenhand.backends.bodies import encode
from evenhand.errors import FinalBackendError

#: Type of an error -> the status it has where requests are sent one by one.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}


class AnthropicBatches(BatchWire):
    """Message batches."""

    most_lines = 100_000

    def line(self, name: str, body: Mapping[str, Any]) -> bytes:
        """One request."""
        return encode({"custom_id": name, "params": body})

    async def submit(self, lines: Sequence[bytes], token: str) -> str:
        """All in one body; batches have no metadata, so that they can't be found by a token."""
        made = await self.json("POST", "/v1/messages/batches", b'{"requests":[' + b",".join(lines) + b"]}")
        if not isinstance(made.get("id"), str):
            raise FinalBackendError("the server took the batch and named no id")
        return str(made["id"])

    async def state(self, batch: str) -> State:
        """Its status; results are fetched by its id, so that the key goes to no other address."""
        data = await self.json("GET", f"/v1/messages/batches/{batch}")
        status = str(data.get("processing_status"))
        counts = data.get("request_counts") or {}
        told = ", ".join([status, *(f"{n} {name}" for name, n in counts.items() if n)])
        ended = status == "ended"
        files = (f"/v1/messages/batches/{batch}/results",) if ended and data.get("results_url") else ()
        return State(told, ended, None, files)

    def result(self, data: Mapping[str, Any]) -> Line:
        """A message, an error, or neither where it expired or was cancelled."""
        result = data["result"]
        if result["type"] == "succeeded":
            return Line(data["custom_id"], 200, result["message"])
        if result["type"] == "errored":
            error = result["error"]
            inner = error["error"] if isinstance(error.get("error"), Mapping) else error
            return Line(data["custom_id"], _STATUS.get(inner.get("type"), 500), error)
        return Line(data["custom_id"], None, {"error": {"message": result["type"]}})
