"""Chat-completions bodies: from a request, and to a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.backends.bodies import amount, count, text
from evenhand.backends.content import without_system
from evenhand.backends.logprobs import distributions
from evenhand.errors import RetryableBackendError
from evenhand.images import data_url
from evenhand.verdict import Reply, ToolCall, Usage

_SCHEMA_NAME = "verdict"


def body_of(request: Request, model: str, sampling: Mapping[str, Any], *, system: bool = True) -> dict[str, Any]:
    """The body to send.

    Args:
        request: The request.
        model: Model to ask for.
        sampling: Its sampling settings, under the names this endpoint takes.
        system: The endpoint takes system messages.

    Raises:
        FinalBackendError: an image is gone, or changed since the item was read.
    """
    messages = request.messages if system else without_system(request.messages)
    body: dict[str, Any] = {
        "model": model,
        "messages": [_with_images(message, request) for message in messages],
        **sampling,
    }
    if request.form == "schema":
        schema = {"name": request.function or _SCHEMA_NAME, "strict": True, "schema": request.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif request.form == "tool":
        function = {"name": request.function, "strict": True, "parameters": request.schema}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": request.function}}
    elif request.form == "json":
        body["response_format"] = {"type": "json_object"}
    return body


def _with_images(message: Mapping[str, Any], request: Request) -> Mapping[str, Any]:
    """The message with the bytes of its images, which are read now."""
    content = message["content"]
    if isinstance(content, str):
        return message
    parts = [
        {"type": "image_url", "image_url": {"url": data_url(request.images[part["sha256"]])}}
        if part["type"] == "image"
        else part
        for part in content
    ]
    return {**message, "content": parts}


def reply_of(data: Any, latency_s: float, request: Request | None = None) -> Reply:
    """The reply in a decoded body; of several choices the one with index 0, or else the first.

    With what was asked, token probabilities in the body become distributions.

    Raises:
        RetryableBackendError: not a chat completion.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list) or not choices or not all(isinstance(c, dict) for c in choices):
        raise RetryableBackendError("the reply is no chat completion: it has no choices")
    choice = choices[0] if len(choices) == 1 else next((c for c in choices if c.get("index") == 0), choices[0])
    message = choice.get("message")
    if not isinstance(message, dict):
        raise RetryableBackendError("the reply is no chat completion: its choice has no message")
    if choice.get("finish_reason") == "error":
        raise RetryableBackendError("the server broke off while it was answering")
    reply = replace(
        message_reply(message),
        finish=text(choice.get("finish_reason")),
        model=text(data.get("model")),
        usage=_usage(data.get("usage"), latency_s),
    )
    if request is None or not choice.get("logprobs"):
        return reply
    return replace(reply, distributions=distributions(reply, choice["logprobs"], request))


def message_reply(message: Mapping[str, Any]) -> Reply:
    """The reply in one assistant message.

    Raises:
        RetryableBackendError: its content is neither text nor parts.
    """
    return Reply(
        text=_content(message.get("content")),
        tool_calls=_calls(message),
        refusal=text(message.get("refusal")) or None,
        reasoning=text(message.get("reasoning_content")) or text(message.get("reasoning")) or None,
    )


def _content(content: Any) -> str | None:
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
        return "".join(texts) if texts else None
    raise RetryableBackendError(f"the reply's content is neither text nor parts but {type(content).__name__}")


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls")
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    functions.append(message.get("function_call"))  # the older form
    return tuple(
        ToolCall(f["name"], f["arguments"])
        for f in functions
        if isinstance(f, dict) and isinstance(f.get("name"), str) and isinstance(f.get("arguments"), str | dict)
    )


def _usage(usage: Any, latency_s: float) -> Usage:
    if not isinstance(usage, dict):
        return Usage(latency_s=latency_s)
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    cost = usage.get("cost")
    return Usage(
        prompt_tokens=count(usage.get("prompt_tokens")),
        completion_tokens=count(usage.get("completion_tokens")),
        cached_tokens=count(cached),
        cost_usd=amount(cost),
        latency_s=latency_s,
    )
