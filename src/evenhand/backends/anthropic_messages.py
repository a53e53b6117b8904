"""Anthropic's messages interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.anthropic_batch import AnthropicBatches
from evenhand.backends.bodies import mappings, split_usage, text
from evenhand.backends.content import Block, contents
from evenhand.backends.endpoint import Endpoint, Place
from evenhand.backends.http import HttpBackend
from evenhand.backends.schemas import without_bounds
from evenhand.backends.wire import Wire
from evenhand.errors import RetryableBackendError
from evenhand.verdict import Reply, ToolCall

#: Tokens of a reply where none are set; the interface wants a number.
MAX_TOKENS = 4096
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
#: Tokens of the prompt that were not cached, read from the cache, written to it; and of the reply.
_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")


class MessagesWire(Wire):
    """The messages interface; the messages that all items share are marked for its prompt cache."""

    name = "anthropic"
    place = Place(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        "ANTHROPIC_BASE_URL",
        header="x-api-key",
        prefix="",
        ends=("/messages", "/v1"),
        example="https://api.anthropic.com",
        fixed={"anthropic-version": "2023-06-01"},
    )
    forms = ("schema", "tool", "text", "lines")
    settings: Mapping[str, str] = {
        "temperature": "temperature",
        "max_tokens": "max_tokens",
        "top_p": "top_p",
        "top_k": "top_k",
    }
    holds = "content"

    def url(self, endpoint: Endpoint, model: str) -> str:
        """One address for all models."""
        return f"{endpoint.base}/v1/messages{endpoint.query}"

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """System text apart; a schema as output format, a tool as the one to call."""
        system: list[Block] = []
        messages: list[dict[str, Any]] = []
        shared: list[Block] = []
        for index, message in enumerate(request.messages):
            blocks = contents(message, request, text=_text, image=_image, address=_address)
            if message["role"] == "system":
                system += blocks
            elif blocks:
                messages.append({"role": message["role"], "content": blocks})
            shared = blocks or shared if index < request.static_messages else shared
        if shared:
            shared[-1]["cache_control"] = {"type": "ephemeral"}
        body: dict[str, Any] = {"model": model, "messages": messages}
        if system:
            body["system"] = system
        body |= {"max_tokens": MAX_TOKENS, **self.sampling(request, learned)}
        if request.form == "schema":
            body["output_config"] = {
                "format": {"type": "json_schema", "schema": without_bounds(request.schema or {})},
            }
        elif request.form == "tool":
            body["tools"] = [{"name": request.function, "input_schema": request.schema}]
            body["tool_choice"] = {"type": "tool", "name": request.function, "disable_parallel_tool_use": True}
        return body

    def batches(self, backend: HttpBackend) -> AnthropicBatches:
        """See `evenhand.backends.anthropic_batch`."""
        return AnthropicBatches(backend)

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """Texts joined; thinking kept apart."""
        blocks = data.get("content") if isinstance(data, Mapping) else None
        if not isinstance(blocks, list):
            raise RetryableBackendError("the reply is no message: it has no content")
        found = mappings(blocks)
        texts = [block["text"] for block in found if isinstance(block.get("text"), str)]
        thoughts = [block["thinking"] for block in found if isinstance(block.get("thinking"), str)]
        calls = [
            ToolCall(block["name"], block["input"])
            for block in found
            if isinstance(block.get("name"), str) and isinstance(block.get("input"), str | Mapping)
        ]
        finish = text(data.get("stop_reason"))
        details = data.get("stop_details")
        said = text(details.get("explanation")) if isinstance(details, Mapping) else None
        return Reply(
            text="".join(texts) if texts else None,
            tool_calls=tuple(calls),
            refusal=(said or "".join(texts) or "the model declined") if finish == "refusal" else None,
            reasoning="\n".join(thoughts) or None,
            finish=_FINISH.get(finish or "", finish),
            model=text(data.get("model")),
            usage=split_usage(data.get("usage"), latency_s, _TOKENS),
        )


def _text(words: str) -> Block:
    return {"type": "text", "text": words}


def _image(media_type: str, data: str) -> Block:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def _address(url: str) -> Block:
    return {"type": "image", "source": {"type": "url", "url": url}}


def open_backend(settings: BackendSettings) -> HttpBackend:
    """Open a messages backend; nothing is sent yet.

    Raises:
        InputError: no model, no usable address, no key for a server beyond this machine, or a setting it lacks.
    """
    return HttpBackend(MessagesWire(), settings)
