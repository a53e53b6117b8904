"""OpenAI's batches: a file of requests, a batch of it, and files of results and errors."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.backends.batch_wire import BatchWire, Line, State
from evenhand.backends.bodies import encode
from evenhand.errors import FinalBackendError

_ENDED = ("completed", "expired", "cancelled", "failed")


class OpenAIBatches(BatchWire):
    """Batches of chat completions."""

    def line(self, name: str, body: Mapping[str, Any]) -> bytes:
        """One line of the file."""
        return encode({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})

    async def submit(self, lines: Sequence[bytes], token: str) -> str:
        """Upload the file, then make the batch."""
        bound = secrets.token_hex(16)
        head = (
            f'--{bound}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
            f'--{bound}\r\nContent-Disposition: form-data; name="file"; filename="{token}.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        form = b"".join([head.encode(), b"\n".join(lines), f"\n\r\n--{bound}--\r\n".encode()])
        file = await self.json("POST", "/files", form, f"multipart/form-data; boundary={bound}")
        asked = {
            "input_file_id": file.get("id"),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {"evenhand": token},
        }
        made = await self.json("POST", "/batches", encode(asked))
        if not isinstance(made.get("id"), str):
            raise FinalBackendError("the server took the batch and named no id")
        return str(made["id"])

    async def find(self, token: str) -> str | None:
        """Looked up among the latest hundred."""
        listed = (await self.json("GET", "/batches?limit=100")).get("data")
        for batch in listed if isinstance(listed, list) else []:
            if isinstance(batch, Mapping) and (batch.get("metadata") or {}).get("evenhand") == token:
                return str(batch["id"])
        return None

    async def state(self, batch: str) -> State:
        """Its status, and the ids of its two files."""
        data = await self.json("GET", f"/batches/{batch}")
        status = str(data.get("status"))
        count = data.get("request_counts") or {}
        told = f"{status}, {count.get('completed', 0)} of {count.get('total', '?')} answered"
        failed = None
        if status == "failed":
            errors = (data.get("errors") or {}).get("data") or []
            failed = "; ".join(str(e.get("message")) for e in errors if isinstance(e, Mapping)) or "no reason given"
        files = [data[key] for key in ("output_file_id", "error_file_id") if isinstance(data.get(key), str)]
        return State(told, status in _ENDED, failed, tuple(f"/files/{file}/content" for file in files))

    def result(self, data: Mapping[str, Any]) -> Line:
        """Status and body of the answer; none where there is only an error of the batch."""
        response = data.get("response")
        if not isinstance(response, Mapping):
            return Line(data["custom_id"], None, {"error": data.get("error")})
        return Line(data["custom_id"], int(response["status_code"]), response.get("body"))
