"""Bodies a fault server sends: completions that fit what was asked, and errors."""

from __future__ import annotations

import email.utils
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from evenhand.backends.sample import Draw, legal_value
from evenhand.testing.behaviour import Behaviour

_PROSE = "There is much to be said about this response, and a good deal of it has been said before."
_GENERIC: Mapping[str, Any] = {
    "type": "object",
    "properties": {"reason": {"type": "string"}, "score": {"type": "integer", "minimum": 0, "maximum": 10}},
}

#: Fence marks differ between runs; the values chosen do not depend on them.
_FENCE_MARK = re.compile(rb"<<<[a-z]{4}|[a-z]{4}>>>")


@dataclass(frozen=True, slots=True)
class Response:
    """Status, body and headers of an answer, and the wall clock before which no further try may come."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    not_before: float | None = None


def refusal(body: bytes, how: Behaviour) -> Response | None:
    """The answer of a server that lacks a feature the request uses; None where it lacks none."""
    if not how.refused:
        return None
    try:
        asked = msgspec.json.decode(body)
        return _refusal(asked, list(asked["messages"]), how.refused)
    except (ValueError, KeyError, TypeError):
        return None  # `completion` says what is wrong with it


def completion(body: bytes, how: Behaviour, fault: str | None) -> Response:
    """The chat completion for a request body, decided by its bytes alone."""
    try:
        asked = msgspec.json.decode(body)
        messages = list(asked["messages"])
    except (ValueError, KeyError, TypeError):
        return error(400, "the body is no chat-completions request", "invalid_request_error")
    wanted, schema, function = _wanted(asked, messages, how)
    choices = []
    for index in range(how.choices):
        draw = Draw(zlib.crc32(_FENCE_MARK.sub(b"", body)) + 7919 * how.seed + index)
        free = _PROSE if schema is None else json.dumps(legal_value(schema, draw))
        text = how.reply or (how.plain if schema in (None, _GENERIC) else "") or free
        choices.append(_choice(index, wanted, function, text, fault))
    written = sum(len(json.dumps(choice)) for choice in choices) // 4
    prompt = len(json.dumps(messages)) // 4
    envelope: dict[str, Any] = {
        "id": f"chatcmpl-{zlib.crc32(body):08x}",
        "object": "chat.completion",
        "created": 1_750_000_000,
        "model": how.model_alias or str(asked.get("model", "")),
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
            "prompt_tokens_details": {"cached_tokens": 0},
        },
    }
    if fault == "choices":
        del envelope["choices"]
    if fault == "gateway":
        envelope = {"error": {"code": 503, "message": "the upstream server is busy"}}
    encoded = msgspec.json.encode(envelope)
    return Response(200, encoded[: len(encoded) // 2] if fault == "envelope" else encoded)


def failure(kind: str, how: Behaviour, now: float, authorization: str) -> Response:
    """The answer to a fault that has a status of its own."""
    echo = f" (you sent {authorization})" if how.echo and authorization else ""
    if kind in ("429", "503"):
        headers, not_before = _next_try(how, now)
        body = error(int(kind), f"too many requests, come back later{echo}", "rate_limit_exceeded").body
        return Response(int(kind), body, headers, not_before=not_before)
    if kind == "502":
        page = b"<html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"
        return Response(502, page, content_type="text/html")
    if kind == "422":
        detail = [{"loc": ["body", "messages", 0], "msg": f"value is not valid{echo}", "type": "value_error"}]
        return Response(422, msgspec.json.encode({"detail": detail}))
    if kind == "redirect":
        return Response(302, b"", {"Location": "/v2/chat/completions"})
    status, message, code = {
        "400": (400, "This model's maximum context length is 4096 tokens.", "context_length_exceeded"),
        "401": (401, "Incorrect API key provided.", "invalid_api_key"),
        "403": (403, "You may not do this.", "forbidden"),
        "404": (404, "The model does not exist.", "model_not_found"),
        "408": (408, "The request took too long.", "timeout"),
        "409": (409, "A conflict with another request.", "conflict"),
        "500": (500, "The server had an error.", "server_error"),
        "quota": (429, "You exceeded your current quota.", "insufficient_quota"),
        "moderation": (400, "The prompt triggered the content management policy.", "content_filter"),
    }[kind]
    return error(status, message + echo, code)


def error(status: int, message: str, code: str, param: str | None = None) -> Response:
    """An error in the usual form."""
    inner = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Response(status, msgspec.json.encode({"error": inner}))


def _next_try(how: Behaviour, now: float) -> tuple[dict[str, str], float]:
    wait = how.retry_after
    if how.style == "seconds":
        return {"Retry-After": f"{wait:g}"}, now + wait
    if how.style == "ms":
        return {"retry-after-ms": f"{wait * 1000:g}"}, now + wait
    if how.style == "reset":
        text = f"{wait * 1000:g}ms" if wait < 1 else f"{wait:g}s"
        limits = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}
        return {**limits, "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "6m0s"}, now + wait
    if how.style == "date":
        at = math.ceil(now + wait)
        dates = {
            "Retry-After": email.utils.formatdate(at, usegmt=True),
            "Date": email.utils.formatdate(now, usegmt=True),
        }
        return dates, float(at)
    return {}, now


def _refusal(asked: Mapping[str, Any], messages: list[Any], refused: frozenset[str]) -> Response | None:
    kind = (asked.get("response_format") or {}).get("type")
    if kind in refused:
        return error(400, f"response_format of type '{kind}' is not supported", "unsupported", "response_format")
    if "tools" in refused and asked.get("tools"):
        return error(400, "this model does not support tools", "unsupported", "tools")
    if "system" in refused and any(m.get("role") == "system" for m in messages):
        return error(400, "System role not supported", "unsupported", "messages")
    if "max_tokens" in refused and "max_tokens" in asked:
        message = "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead."
        return error(400, message, "unsupported_parameter", "max_tokens")
    for name in ("temperature", "seed", "top_p", "logprobs"):
        if name in refused and name in asked:
            return error(400, f"Unsupported value: '{name}' is not supported here", "unsupported_value", name)
    return None


def _wanted(
    asked: Mapping[str, Any], messages: list[Any], how: Behaviour
) -> tuple[str, Mapping[str, Any] | None, str | None]:
    """What the reply must be: "call" or "text", the schema it must satisfy, and the function's name."""
    tools = asked.get("tools")
    if tools and "tools" not in how.dropped:
        function = tools[0]["function"]
        return "call", function.get("parameters", {}), function["name"]
    form = asked.get("response_format") or {}
    if form.get("type") == "json_schema" and "json_schema" not in how.dropped:
        return "text", form["json_schema"]["schema"], None
    quoted = _quoted_schema(messages)
    if quoted is not None:
        return "text", quoted, None
    if form.get("type") == "json_object" and "json_object" not in how.dropped:
        return "text", _GENERIC, None
    return "text", None, None


def _quoted_schema(messages: list[Any]) -> Mapping[str, Any] | None:
    """A JSON schema that stands in the prompt, as prompts for plain JSON have it."""
    decoder = json.JSONDecoder()
    for message in messages:
        text = message.get("content")
        if not isinstance(text, str) or '"properties"' not in text:
            continue
        at = text.find("{")
        while at >= 0:
            try:
                found, end = decoder.raw_decode(text, at)
            except ValueError:
                end = at + 1
            else:
                if isinstance(found, dict) and isinstance(found.get("properties"), dict):
                    return found
            at = text.find("{", end)
    return None


def _choice(index: int, wanted: str, function: str | None, text: str, fault: str | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    finish = "stop"
    if fault in ("empty", "prose"):
        message["content"] = "" if fault == "empty" else _PROSE
    elif fault in ("null", "refusal", "filter"):
        message["refusal"] = "I'm sorry, I can't help with that." if fault == "refusal" else None
        finish = "content_filter" if fault == "filter" else "stop"
    else:
        if fault == "fenced":
            text = f"Here is my verdict.\n```json\n{text}\n```\nI hope this helps."
        elif fault == "invalid":
            text = _broken(text)
        elif fault == "length":
            text, finish = text[: max(1, len(text) // 2)], "length"
        if wanted == "call":
            message["tool_calls"] = [
                {"id": "call_0", "type": "function", "function": {"name": function, "arguments": text}}
            ]
            finish = "tool_calls" if finish == "stop" else finish
        else:
            message["content"] = text
    return {"index": index, "message": message, "finish_reason": finish}


def _broken(text: str) -> str:
    """The same JSON object with every value out of its type or range."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict):
        return "[]"
    return json.dumps({k: 99999 if isinstance(v, int | float) else ["not", "this"] for k, v in value.items()})
