"""Any chat-completions server: hosted ones, vLLM, llama.cpp, Ollama and their like.

Of several choices in a reply the one with index 0 is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.chat_wire import body_of, reply_of
from evenhand.backends.endpoint import Endpoint, Place
from evenhand.backends.http import HttpBackend
from evenhand.backends.http_errors import Fault
from evenhand.backends.logprobs import lessen, within
from evenhand.backends.openai_batch import OpenAIBatches
from evenhand.backends.wire import SYSTEM_ROLE, Wire
from evenhand.verdict import Reply

_PATH = "/chat/completions"
_OPENAI = Place("https://api.openai.com/v1", ("OPENAI_API_KEY",), "OPENAI_BASE_URL", ends=(_PATH,))


def _own(variable: str, **differs: Any) -> Place:
    """A provider whose key has a variable of its own; where that is unset, the usual one serves."""
    return replace(_OPENAI, keys=(variable, *_OPENAI.keys), **differs)


_AZURE = _own("AZURE_OPENAI_API_KEY", header="api-key", prefix="")
PLACE = replace(
    _OPENAI,
    others={
        "openrouter.ai": _own("OPENROUTER_API_KEY"),
        "openai.azure.com": _AZURE,
        "cognitiveservices.azure.com": _AZURE,
        "api.deepseek.com": _own("DEEPSEEK_API_KEY"),
        "api.groq.com": _own("GROQ_API_KEY"),
        "api.mistral.ai": _own("MISTRAL_API_KEY"),
        "api.together.xyz": _own("TOGETHER_API_KEY"),
    },
)


class ChatWire(Wire):
    """The chat-completions interface."""

    name = "openai"
    place = PLACE
    holds = "choices"

    def url(self, endpoint: Endpoint, model: str) -> str:
        """One address for all models."""
        return f"{endpoint.base}{_PATH}{endpoint.query}"

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """See `evenhand.backends.chat_wire.body_of`."""
        return body_of(request, model, self.sampling(request, learned), system=SYSTEM_ROLE not in learned)

    def sampling(self, request: Request, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """No more alternatives than the endpoint lists."""
        return within(super().sampling(request, learned), learned)

    def lessen(self, fault: Fault, sent: Mapping[str, Any], learned: dict[str, str | None]) -> str | None:
        """See `evenhand.backends.logprobs.lessen`."""
        return lessen(fault, sent, learned)

    def instead(self, refused: str) -> str | None:
        """Reasoning models have another name for the most tokens."""
        return "max_completion_tokens" if refused == "max_tokens" else None

    def batches(self, backend: HttpBackend) -> OpenAIBatches:
        """See `evenhand.backends.openai_batch`."""
        return OpenAIBatches(backend)

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """See `evenhand.backends.chat_wire.reply_of`."""
        return reply_of(data, latency_s, request)


def open_backend(settings: BackendSettings) -> HttpBackend:
    """Open a chat-completions backend; nothing is sent yet.

    Raises:
        InputError: no model, no usable address, or no key for a server beyond this machine.
    """
    return HttpBackend(ChatWire(), settings)
