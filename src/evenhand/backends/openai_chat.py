"""Any chat-completions server: hosted ones, vLLM, llama.cpp, Ollama and their like.

Of several choices in a reply the one with index 0 is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.chat_wire import body_of, learn, reply_of
from evenhand.backends.endpoint import OPENAI, Endpoint
from evenhand.backends.http import HttpBackend
from evenhand.backends.http_errors import Fault, fault_of
from evenhand.backends.wire import Wire
from evenhand.verdict import Reply

_PATH = "/chat/completions"


class ChatWire(Wire):
    """The chat-completions interface."""

    name = "openai"
    place = OPENAI

    def url(self, endpoint: Endpoint, model: str) -> str:
        """One address for all models."""
        return f"{endpoint.base}{_PATH}{endpoint.query}"

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """See `evenhand.backends.chat_wire.body_of`."""
        return body_of(request, model, learned)

    def learn(self, refused: str, request: Request, learned: dict[str, str | None]) -> None:
        """See `evenhand.backends.chat_wire.learn`."""
        learn(refused, request, learned)

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """See `evenhand.backends.chat_wire.reply_of`."""
        return reply_of(data, latency_s)

    def failed(self, data: Any) -> tuple[int, Fault] | None:
        """Some gateways report a failure under status 200, with the real status as the error's code."""
        if not isinstance(data, dict) or not data.get("error") or data.get("choices"):
            return None
        said = data["error"]
        code = said.get("code") if isinstance(said, dict) else None
        return code if isinstance(code, int) and 400 <= code < 600 else 502, fault_of(data)


def open_backend(settings: BackendSettings) -> HttpBackend:
    """Open a chat-completions backend; nothing is sent yet.

    Raises:
        InputError: no model, no usable address, or no key for a server beyond this machine.
    """
    return HttpBackend(ChatWire(), settings)
