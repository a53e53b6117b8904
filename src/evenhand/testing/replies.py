"""Bodies a fault server sends: completions that fit what was asked, and errors."""

from __future__ import annotations

import email.utils
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from evenhand.backends.sample import Draw, legal_value
from evenhand.testing.behaviour import Behaviour
from evenhand.testing.dialects import CHAT, Dialect
from evenhand.testing.tokens import token_list

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


def understood(body: bytes, path: str, dialect: Dialect) -> dict[str, Any] | None:
    """A request in chat-completions form; None where it is none in its language."""
    try:
        return dialect.asked(path, msgspec.json.decode(body))
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def refusal(asked: Mapping[str, Any], how: Behaviour, dialect: Dialect) -> Response | None:
    """The answer of a server that lacks a feature the request uses; None where it lacks none."""
    kind = (asked.get("response_format") or {}).get("type")
    used = [kind, "tools" if asked.get("tools") else None]
    used += ["system" if any(m.get("role") == "system" for m in asked["messages"]) else None]
    used += [
        name for name in ("max_tokens", "temperature", "seed", "top_p", "top_logprobs", "logprobs") if name in asked
    ]
    for feature in used:
        if feature in how.refused:
            message, param = dialect.refusal(feature)
            return error(400, message, "unsupported", param, dialect=dialect)
    if (asked.get("top_logprobs") or 0) > how.top_logprobs:
        message = f"Invalid value for 'top_logprobs': must be less than or equal to {how.top_logprobs}."
        return error(400, message, "invalid_value", "top_logprobs", dialect=dialect)
    return None


def completion(asked: Mapping[str, Any], body: bytes, how: Behaviour, fault: str | None, dialect: Dialect) -> Response:
    """The completion for a request, decided by the bytes of its body alone."""
    messages = asked["messages"]
    wanted, schema, function = _wanted(asked, messages, how)
    choices = []
    for index in range(how.choices):
        draw = Draw(zlib.crc32(_FENCE_MARK.sub(b"", body)) + 7919 * how.seed + index)
        free = _PROSE if schema is None else json.dumps(legal_value(schema, draw))
        text = how.reply or (how.plain if schema in (None, _GENERIC) else "") or free
        choices.append(_choice(index, wanted, function, text, fault))
        if asked.get("logprobs"):
            choices[-1]["logprobs"] = token_list(choices[-1]["message"], asked.get("top_logprobs") or 0)
    written = sum(len(json.dumps(choice)) for choice in choices) // 4
    prompt = how.prompt_tokens or len(json.dumps(messages)) // 4
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
    envelope = dialect.reply(envelope)
    if fault == "choices":
        del envelope[dialect.holds]
    if fault == "gateway":
        envelope = {"error": {"code": 503, "message": "the upstream server is busy"}}
    encoded = msgspec.json.encode(envelope)
    return Response(200, encoded[: len(encoded) // 2] if fault == "envelope" else encoded)


def failure(kind: str, how: Behaviour, now: float, key: str, dialect: Dialect) -> Response:
    """The answer to a fault that has a status of its own; ``key`` is what the request's key header held."""
    echo = f" (you sent {key})" if how.echo and key else ""
    if kind in ("429", "503", "529"):
        headers, not_before = _next_try(how, now, dialect)
        wait_s = how.retry_after if how.style == "reset" and dialect.in_body else None
        said = f"too many requests, come back later{echo}"
        made = error(int(kind), said, "rate_limit_exceeded", dialect=dialect, wait_s=wait_s)
        return replace(made, headers={**made.headers, **headers}, not_before=not_before)
    if kind == "502":
        page = b"<html><head><title>502</title></head><body><h1>Bad Gateway</h1></body></html>"
        return Response(502, page, content_type="text/html")
    if kind == "422" and dialect is CHAT:
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
        "422": (422, "A value is not valid.", "value_error"),
        "500": (500, "The server had an error.", "server_error"),
        "quota": (429, "You exceeded your current quota.", "insufficient_quota"),
        "moderation": (400, "The prompt triggered the content management policy.", "content_filter"),
    }[kind]
    status, message = dialect.said.get(kind, (status, message))
    return error(status, message + echo, code, dialect=dialect)


def error(
    status: int,
    message: str,
    code: str,
    param: str | None = None,
    *,
    dialect: Dialect = CHAT,
    wait_s: float | None = None,
) -> Response:
    """An error in the form of a language."""
    body = msgspec.json.encode(dialect.error(status, message, code, param, wait_s))
    return Response(status, body, dialect.headers(status) if status != 200 else {})


def _next_try(how: Behaviour, now: float, dialect: Dialect) -> tuple[dict[str, str], float]:
    wait = how.retry_after
    if how.style == "seconds":
        return {"Retry-After": f"{wait:g}"}, now + wait
    if how.style == "ms":
        return {"retry-after-ms": f"{wait * 1000:g}"}, now + wait
    if how.style == "reset":
        return ({}, now + wait) if dialect.in_body else dialect.resets(wait, now)
    if how.style == "date":
        at = math.ceil(now + wait)
        dates = {
            "Retry-After": email.utils.formatdate(at, usegmt=True),
            "Date": email.utils.formatdate(now, usegmt=True),
        }
        return dates, float(at)
    return {}, now


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
