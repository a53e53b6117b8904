"""A judge that repeats recorded replies: nothing is sent and nothing is paid.

A recording is a file of JSON lines::

    {"id": "q1", "reply": "{\"score\": 4}"}
    {"id": "q2", "order": "ba", "repeat": 1, "reply": {"content": null, "tool_calls": [...]}}
    {"id": "q3", "attempt": 1, "raw_kind": "text", "raw": "Score: 3"}

``reply`` is the reply's text or a chat message; ``raw_kind`` ("text" or "message") with ``raw`` is another way to
say the same. A line without ``order`` or ``repeat`` serves every order and repeat that has no line of its own; a
line without ``attempt`` is the first attempt's (0), never a re-ask's. ``finish`` may give the finish reason; other
keys are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evenhand._canon import running_sha256
from evenhand.backend import BackendSettings, Request
from evenhand.backends.bodies import decode
from evenhand.backends.chat_wire import message_reply
from evenhand.errors import BackendError, FinalBackendError, InputError, ItemError, Problem
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

#: (item id, order or None for any, repeat or None for any, attempt)
Key = tuple[str, str | None, int | None, int]
_SHOWN = 100


@dataclass(slots=True)
class Replay:
    """An open recording; only the places of its lines are kept in memory."""

    path: Path
    offsets: Mapping[Key, int]
    identity: Mapping[str, Any]
    model: str
    name: str = "replay"
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text", "lines")
    takes_images = True
    deterministic: bool = True
    max_concurrency: int | None = None

    async def send(self, request: Request) -> Reply:
        """The recorded reply of this trial's attempt.

        Raises:
            FinalBackendError: nothing is recorded for it, or the file has changed since it was opened.
        """
        order = request.order or None
        wanted = [(o, r) for o in dict.fromkeys((order, None)) for r in (request.repeat, None)]
        for order, repeat in wanted:
            offset = self.offsets.get((request.item_id, order, repeat, request.attempt))
            if offset is not None:
                return self._read(offset, request)
        which = f"item {request.item_id!r}, order {request.order or 'none'}, repeat {request.repeat}"
        raise self._error(f"no recorded reply for {which}, attempt {request.attempt}", request)

    async def aclose(self) -> None:
        """Nothing to release."""

    def _read(self, offset: int, request: Request) -> Reply:
        try:
            with self.path.open("rb") as file:
                file.seek(offset)
                line = _parsed(file.readline())
            if line["id"] != request.item_id:
                raise ValueError("another line stands in its place")
        except (OSError, ValueError) as error:
            raise self._error(f"the recording changed while it was in use: {error}", request) from error
        return _reply(line)

    def _error(self, message: str, request: Request) -> FinalBackendError:
        return FinalBackendError(message, backend=self.name, model=self.model, request_digest=request.digest)


def open_backend(settings: BackendSettings) -> Replay:
    """Open a recording; ``settings.model`` is its path.

    Raises:
        InputError: no such file.
        ItemError: bad lines or two lines for the same trial; lists them.
    """
    if not settings.model:
        raise InputError("judge replay names no file", hint="as in replay:replies.jsonl")
    path = Path(settings.model)
    offsets: dict[Key, int] = {}
    lines: dict[Key, int] = {}
    problems: list[Problem] = []
    sha256, offset = running_sha256(), 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                sha256.update(line)
                if line.strip():
                    _index(line, number, offset, offsets, lines, problems)
                offset += len(line)
    except OSError as error:
        hint = "a recording is a file of JSON lines with id and reply"
        raise InputError(f"can't read the recording {path}: {error.strerror}", hint=hint) from error
    if problems:
        raise ItemError(problems[:_SHOWN], file=str(path), more=max(0, len(problems) - _SHOWN))
    return Replay(path, offsets, {"backend": "replay", "sha256": sha256.hexdigest()}, path.name)


def _index(
    line: bytes, number: int, offset: int, offsets: dict[Key, int], lines: dict[Key, int], problems: list[Problem]
) -> None:
    try:
        data = _parsed(line)
    except ValueError as error:
        problems.append(Problem(number, "$", str(error)))
        return
    key: Key = (data["id"], data.get("order"), data.get("repeat"), data.get("attempt") or 0)
    if key in offsets:
        message = f"a second reply for {key[0]!r}; the first stands on line {lines[key]}"
        problems.append(Problem(number, "$.id", message, "keep one, or give order, repeat or attempt"))
        return
    offsets[key], lines[key] = offset, number


def _parsed(line: bytes) -> dict[str, Any]:
    """One checked line.

    Raises:
        ValueError: what is wrong with it.
    """
    data = decode(line)
    if not isinstance(data, dict):
        raise ValueError("not an object")
    if isinstance(data.get("id"), int) and not isinstance(data["id"], bool):
        data["id"] = str(data["id"])
    if not isinstance(data.get("id"), str):
        raise ValueError("id must be text")
    if data.get("order") not in (None, "ab", "ba"):
        raise ValueError("order must be ab or ba")
    for name in ("repeat", "attempt"):
        count = data.get(name)
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
            raise ValueError(f"{name} must be a whole number from 0")
    try:
        _reply(data)
    except BackendError as error:
        raise ValueError(error.message) from error
    return data


def _reply(data: Mapping[str, Any]) -> Reply:
    if ("reply" in data) == ("raw" in data):
        raise FinalBackendError("a line has either reply or raw")
    said = data["reply"] if "reply" in data else data["raw"]
    kind = data.get("raw_kind", "message" if isinstance(said, dict) else "text")
    if kind not in ("text", "message") or not isinstance(said, dict if kind == "message" else str):
        raise FinalBackendError("a reply is text or a chat message, as raw_kind says")
    reply = Reply(text=said) if isinstance(said, str) else message_reply(said)
    finish = data.get("finish")
    if finish is not None and not isinstance(finish, str):
        raise FinalBackendError("finish must be a text")
    return replace(
        reply,
        finish=finish,
        usage=Usage(),  # what the recorded judge cost and how long it took is not known
    )
