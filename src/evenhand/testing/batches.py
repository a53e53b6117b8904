"""Batches of the fault server: files and batches as OpenAI has them, message batches as Anthropic has them.

Each request of a batch is answered as it would be live, faults included; results come in an order of their own.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evenhand.testing.behaviour import Behaviour
from evenhand.testing.replies import Response, error

#: Answers one request: (path, body) -> status and body.
Answer = Callable[[str, bytes], Response]
_FILES, _CHAT, _MESSAGES = "v1/files", "v1/batches", "v1/messages/batches"


@dataclass
class _Batch:
    """A batch: its requests as (name, path, body), and how often it was looked at."""

    requests: list[tuple[str, str, bytes]]
    ends: str
    metadata: Any = None
    looks: int = 0
    results: list[tuple[str, Response | None]] = field(default_factory=list)


class Batches:
    """All files and batches of a server.

    Attributes:
        made: How many batches were made.
        lines: How many requests they have, all together.
    """

    def __init__(self) -> None:
        self.made = self.lines = 0
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}

    def handle(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, how: Behaviour, answer: Answer
    ) -> Response | None:
        """The answer to a request; None where it is about no batch."""
        if how.batch == "none":
            return None
        head, _, rest = path.partition("/files") if path.startswith(_FILES) else (path, "", "")
        if path == _FILES and method == "POST":
            return _json({"id": self._keep(_uploaded(headers, body)), "object": "file", "purpose": "batch"})
        if head == "v1" and rest.endswith("/content"):
            found = self._files.get(rest.split("/")[1])
            return error(404, "no such file", "not_found") if found is None else Response(200, found)
        for root, made, told in (
            (_CHAT, self._chat, self._chat_told),
            (_MESSAGES, self._messages, self._messages_told),
        ):
            if path == root and method == "POST":
                return told(made(json.loads(body), how), answer)
            if path == root:
                return _json({"data": [json.loads(told(name, answer, look=False).body) for name in self._batches]})
            if path.startswith(f"{root}/"):
                name, _, results = path.removeprefix(f"{root}/").partition("/")
                if name not in self._batches:
                    return error(404, "no such batch", "not_found")
                return Response(200, self._message_results(name)) if results else told(name, answer)
        return None

    def _keep(self, data: bytes) -> str:
        name = f"file-{len(self._files) + 1}"
        self._files[name] = data
        return name

    def _new(self, requests: list[tuple[str, str, bytes]], how: Behaviour, metadata: Any = None) -> str:
        ends = how.batch if how.batch and not self.made else "completed"  # what is wrong is wrong once
        self.made += 1
        self.lines += len(requests)
        name = f"batch_{self.made}"
        self._batches[name] = _Batch(requests, ends, metadata)
        return name

    def _look(self, name: str, answer: Answer, look: bool) -> tuple[_Batch, str]:
        """The batch and its status; with the second look it has ended, all its requests answered."""
        batch = self._batches[name]
        batch.looks += look
        if batch.looks < 2:
            return batch, "validating"
        if batch.looks < 3:
            return batch, "in_progress"
        if not batch.results and batch.ends != "failed":
            done = len(batch.requests) // 2 if batch.ends == "expired" else len(batch.requests)
            answered = [(cid, answer(path, body)) for cid, path, body in batch.requests[:done]]
            unsent: list[tuple[str, Response | None]] = [(cid, None) for cid, _, _ in batch.requests[done:]]
            batch.results = sorted([*answered, *unsent], key=lambda line: zlib.crc32(line[0].encode()))
        return batch, batch.ends

    def _chat(self, asked: Any, how: Behaviour) -> str:
        lines = [json.loads(line) for line in self._files[asked["input_file_id"]].splitlines() if line.strip()]
        requests = [(line["custom_id"], line["url"].lstrip("/"), msgspec.json.encode(line["body"])) for line in lines]
        return self._new(requests, how, asked.get("metadata"))

    def _chat_told(self, name: str, answer: Answer, *, look: bool = True) -> Response:
        batch, status = self._look(name, answer, look)
        told: dict[str, Any] = {"id": name, "object": "batch", "status": status, "metadata": batch.metadata}
        good = [line for line in batch.results if line[1] is not None and line[1].status == 200]
        told["request_counts"] = {"total": len(batch.requests), "completed": len(good)}
        if status == "failed":
            told["errors"] = {"data": [{"code": "invalid", "message": "the file can't be used", "line": 1}]}
        if batch.results:
            bad = [line for line in batch.results if line not in good]
            told["output_file_id"] = self._keep(_lines(map(_chat_line, good))) if good else None
            told["error_file_id"] = self._keep(_lines(map(_chat_line, bad))) if bad else None
        return _json(told)

    def _messages(self, asked: Any, how: Behaviour) -> str:
        lines = asked["requests"]
        return self._new([(li["custom_id"], "v1/messages", msgspec.json.encode(li["params"])) for li in lines], how)

    def _messages_told(self, name: str, answer: Answer, *, look: bool = True) -> Response:
        batch, status = self._look(name, answer, look)
        ended = bool(batch.results)
        told: dict[str, Any] = {"id": name, "type": "message_batch"}
        told["processing_status"] = "ended" if ended else "in_progress"
        told["results_url"] = "https://elsewhere.invalid/results" if ended else None
        return _json({**told, "request_counts": {"processing": 0 if ended else len(batch.requests)}, "state": status})

    def _message_results(self, name: str) -> bytes:
        return _lines({"custom_id": cid, "result": _message(got)} for cid, got in self._batches[name].results)


def _chat_line(line: tuple[str, Response | None]) -> dict[str, Any]:
    cid, got = line
    if got is None:
        late = {"code": "batch_expired", "message": "This request could not be executed before the batch expired."}
        return {"id": f"r-{cid}", "custom_id": cid, "response": None, "error": late}
    return {"id": f"r-{cid}", "custom_id": cid, "error": None,
            "response": {"status_code": got.status, "request_id": cid, "body": json.loads(got.body)}}  # fmt: skip


def _message(got: Response | None) -> dict[str, Any]:
    if got is None:
        return {"type": "expired"}
    body = json.loads(got.body)
    return {"type": "succeeded", "message": body} if got.status == 200 else {"type": "errored", "error": body}


def _uploaded(headers: Mapping[str, str], body: bytes) -> bytes:
    """The file of a form."""
    found = re.search("boundary=([^;]+)", headers.get("content-type", ""))
    parts = body.split(b"--" + found[1].encode()) if found else []
    file = next(part for part in parts if b'name="file"' in part)
    return file.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")


def _lines(objects: Any) -> bytes:
    return b"".join(msgspec.json.encode(thing) + b"\n" for thing in objects)


def _json(data: Any) -> Response:
    return Response(200, msgspec.json.encode(data))
