"""The languages a fault server speaks: requests of each to chat-completions form, completions and errors back.

Everything in between (what to answer, which fault) is decided once, in chat-completions form.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

_ROLES = {"model": "assistant"}
_FINISH: Mapping[str, tuple[str, str, str]] = {
    "stop": ("end_turn", "STOP", "end_turn"),
    "tool_calls": ("tool_use", "STOP", "tool_use"),
    "length": ("max_tokens", "MAX_TOKENS", "max_tokens"),
    "content_filter": ("refusal", "SAFETY", "content_filtered"),
}
_KINDS: Mapping[int, tuple[str, str, str]] = {
    400: ("invalid_request_error", "INVALID_ARGUMENT", "ValidationException"),
    401: ("authentication_error", "UNAUTHENTICATED", "UnrecognizedClientException"),
    403: ("permission_error", "PERMISSION_DENIED", "AccessDeniedException"),
    404: ("not_found_error", "NOT_FOUND", "ResourceNotFoundException"),
    408: ("timeout_error", "DEADLINE_EXCEEDED", "ModelTimeoutException"),
    409: ("conflict_error", "ABORTED", "ConflictException"),
    422: ("invalid_request_error", "INVALID_ARGUMENT", "ValidationException"),
    429: ("rate_limit_error", "RESOURCE_EXHAUSTED", "ThrottlingException"),
    500: ("api_error", "INTERNAL", "InternalServerException"),
    503: ("overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"),
    529: ("overloaded_error", "UNAVAILABLE", "ServiceUnavailableException"),
}


class Dialect:
    """Chat completions themselves, and the base of the others.

    Attributes:
        path: Matches the path of a request, behind the prefix.
        holds: Key of a reply without which it is none.
        said: Fault -> status and message, where it is told otherwise than in chat completions.
        in_body: A time to wait can stand in the body of an error.
    """

    path = re.compile(r"v1/chat/completions")
    holds = "choices"
    said: Mapping[str, tuple[int, str]] = {}
    in_body = False

    def asked(self, path: str, body: Any) -> dict[str, Any]:
        """A request in chat-completions form; anything may be raised where it is none."""
        list(body["messages"])
        return dict(body)

    def reply(self, completion: dict[str, Any]) -> dict[str, Any]:
        """A completion in this language."""
        return completion

    def error(self, status: int, message: str, code: str, param: str | None, wait_s: float | None) -> dict[str, Any]:
        """The body of an error."""
        inner = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
        return {"error": inner}

    def headers(self, status: int) -> dict[str, str]:
        """Headers of an error."""
        return {}

    def resets(self, wait_s: float, now: float) -> tuple[dict[str, str], float]:
        """Headers of limits that are used up, and when they are whole again."""
        text = f"{wait_s * 1000:g}ms" if wait_s < 1 else f"{wait_s:g}s"
        limits = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}
        return {**limits, "x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "6m0s"}, now + wait_s

    def refusal(self, feature: str) -> tuple[str, str | None]:
        """How a feature is refused: message and parameter."""
        if feature.startswith("json_"):
            return f"response_format of type '{feature}' is not supported", "response_format"
        if feature == "tools":
            return "this model does not support tools", "tools"
        if feature == "system":
            return "System role not supported", "messages"
        if feature == "max_tokens":
            message = "Unsupported parameter: 'max_tokens' is not supported here. Use 'max_completion_tokens' instead."
            return message, feature
        return f"Unsupported value: '{feature}' is not supported here", feature


class Messages(Dialect):
    """Anthropic's messages interface."""

    path = re.compile(r"v1/messages")
    holds = "content"
    said: Mapping[str, tuple[int, str]] = {
        "400": (400, "prompt is too long: 5000 tokens > 4096 maximum"),
        "quota": (400, "Your credit balance is too low to access the API."),
        "moderation": (400, "Output blocked by content filtering policy"),
    }

    def asked(self, path: str, body: Any) -> dict[str, Any]:
        """System text becomes a message."""
        chat = _chat(body["messages"], body.get("system"), "content")
        chat |= {name: body[name] for name in ("model", "temperature", "max_tokens", "top_p", "seed") if name in body}
        if "output_config" in body:
            chat["response_format"] = _schema_format(body["output_config"]["format"]["schema"])
        for tool in body.get("tools", []):
            chat["tools"] = [_tool(tool["name"], tool["input_schema"])]
        return chat

    def reply(self, completion: dict[str, Any]) -> dict[str, Any]:
        """One message, of blocks."""
        choice, usage = completion["choices"][0], completion["usage"]
        texts, calls = _said(choice["message"])
        blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
        blocks += [{"type": "tool_use", "id": "toolu_0", "name": name, "input": value} for name, value in calls]
        finish = "content_filter" if choice["message"].get("refusal") else choice["finish_reason"]
        return {
            "id": "msg_0",
            "type": "message",
            "role": "assistant",
            "model": completion["model"],
            "content": blocks,
            "stop_reason": _FINISH[finish][0],
            "usage": {
                "input_tokens": usage["prompt_tokens"],
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": usage["completion_tokens"],
            },
        }

    def error(self, status: int, message: str, code: str, param: str | None, wait_s: float | None) -> dict[str, Any]:
        """Type and message."""
        return {"type": "error", "error": {"type": _KINDS[status][0], "message": message}, "request_id": "req_0"}

    def resets(self, wait_s: float, now: float) -> tuple[dict[str, str], float]:
        """Times of RFC 3339, whole seconds."""
        at, kind = float(math.ceil(now + wait_s)), "anthropic-ratelimit"
        later = datetime.fromtimestamp(at + 60, UTC).isoformat().replace("+00:00", "Z")
        then = datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        limits = {f"{kind}-requests-remaining": "0", f"{kind}-requests-reset": then}
        return {**limits, f"{kind}-tokens-remaining": "9000", f"{kind}-tokens-reset": later}, at

    def refusal(self, feature: str) -> tuple[str, str | None]:
        """As a field that may not be there."""
        name = {"json_schema": "output_config.format"}.get(feature, feature)
        return f"{name}: Extra inputs are not permitted", None


class Gemini(Dialect):
    """Gemini's generateContent."""

    path = re.compile(r"v1(?:beta)?/models/([^/]+):generateContent")
    holds = "candidates"
    said: Mapping[str, tuple[int, str]] = {
        "400": (400, "The input token count (5000) exceeds the maximum number of tokens allowed (4096)."),
        "401": (400, "API key not valid. Please pass a valid API key."),
        "quota": (429, "You exceeded your current quota, please check your plan and billing details."),
        "moderation": (200, ""),
    }
    in_body = True

    def asked(self, path: str, body: Any) -> dict[str, Any]:
        """Contents become messages; the model stands in the path."""
        match = self.path.fullmatch(path)
        settings = body.get("generationConfig", {})
        chat = _chat(body["contents"], body.get("systemInstruction", {}).get("parts"), "parts")
        names = {"temperature": "temperature", "maxOutputTokens": "max_tokens", "seed": "seed", "topP": "top_p"}
        chat |= {ours: settings[name] for name, ours in names.items() if name in settings}
        chat["model"] = match[1] if match else ""
        if "responseJsonSchema" in settings:
            chat["response_format"] = _schema_format(settings["responseJsonSchema"])
        elif settings.get("responseMimeType") == "application/json":
            chat["response_format"] = {"type": "json_object"}
        for tool in body.get("tools", []):
            function = tool["functionDeclarations"][0]
            chat["tools"] = [_tool(function["name"], function["parametersJsonSchema"])]
        return chat

    def reply(self, completion: dict[str, Any]) -> dict[str, Any]:
        """As many candidates as choices; a refusal is one without content."""
        candidates = []
        for choice in completion["choices"]:
            texts, calls = _said(choice["message"])
            parts: list[dict[str, Any]] = [{"text": text} for text in texts]
            parts += [{"functionCall": {"name": name, "args": value}} for name, value in calls]
            finish = "content_filter" if choice["message"].get("refusal") else choice["finish_reason"]
            content = {"content": {"role": "model", "parts": parts}} if parts else {}
            candidates.append({**content, "index": choice["index"], "finishReason": _FINISH[finish][1]})
        usage = completion["usage"]
        return {
            "candidates": candidates,
            "modelVersion": completion["model"],
            "usageMetadata": {
                "promptTokenCount": usage["prompt_tokens"],
                "candidatesTokenCount": usage["completion_tokens"],
                "cachedContentTokenCount": 0,
                "totalTokenCount": usage["total_tokens"],
            },
        }

    def error(self, status: int, message: str, code: str, param: str | None, wait_s: float | None) -> dict[str, Any]:
        """Status in words, and details; a prompt that is blocked is no error."""
        if status == 200:
            return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 9}}
        details: list[dict[str, Any]] = []
        if wait_s is not None:
            details.append({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": f"{wait_s:g}s"})
        if code == "insufficient_quota":
            quota = {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}
            details.append({"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [quota]})
        return {"error": {"code": status, "message": message, "status": _KINDS[status][1], "details": details}}

    def refusal(self, feature: str) -> tuple[str, str | None]:
        """As a name that is unknown, or a mode that is off."""
        if feature in ("system", "json_object"):
            return (
                f"{'Developer instruction' if feature == 'system' else 'JSON mode'} is not enabled for models/m",
                None,
            )
        names = {"json_schema": "responseJsonSchema", "max_tokens": "maxOutputTokens", "top_p": "topP"}
        where = "tools[0]" if feature == "tools" else "generation_config"
        return f"Invalid JSON payload received. Unknown name \"{names.get(feature, feature)}\" at '{where}'", None


class Converse(Dialect):
    """Bedrock's Converse."""

    path = re.compile(r"(?:v1/)?model/([^/]+)/converse")
    holds = "output"
    said: Mapping[str, tuple[int, str]] = {
        "400": (400, "Input is too long for requested model."),
        "401": (403, "The security token included in the request is invalid."),
        "quota": (429, "Too many tokens per day, please wait before trying again."),
        "moderation": (400, "The request was blocked by our content filtering policy"),
    }

    def asked(self, path: str, body: Any) -> dict[str, Any]:
        """The model stands in the path, the schema in a text."""
        match = self.path.fullmatch(path)
        settings = body.get("inferenceConfig", {})
        chat = _chat(body["messages"], body.get("system"), "content")
        names = {"temperature": "temperature", "maxTokens": "max_tokens", "topP": "top_p"}
        chat |= {ours: settings[name] for name, ours in names.items() if name in settings}
        chat["model"] = unquote(match[1]) if match else ""
        if "outputConfig" in body:
            schema = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
            chat["response_format"] = _schema_format(json.loads(schema))
        for tool in body.get("toolConfig", {}).get("tools", []):
            chat["tools"] = [_tool(tool["toolSpec"]["name"], tool["toolSpec"]["inputSchema"]["json"])]
        return chat

    def reply(self, completion: dict[str, Any]) -> dict[str, Any]:
        """One message, of blocks."""
        choice, usage = completion["choices"][0], completion["usage"]
        texts, calls = _said(choice["message"])
        blocks: list[dict[str, Any]] = [{"text": text} for text in texts]
        blocks += [{"toolUse": {"toolUseId": "t_0", "name": name, "input": value}} for name, value in calls]
        finish = "content_filter" if choice["message"].get("refusal") else choice["finish_reason"]
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": _FINISH[finish][2],
            "usage": {
                "inputTokens": usage["prompt_tokens"],
                "outputTokens": usage["completion_tokens"],
                "totalTokens": usage["total_tokens"],
                "cacheReadInputTokens": 0,
            },
            "metrics": {"latencyMs": 1},
        }

    def error(self, status: int, message: str, code: str, param: str | None, wait_s: float | None) -> dict[str, Any]:
        """A message; a header names the kind."""
        return {"message": message}

    def headers(self, status: int) -> dict[str, str]:
        """The kind of error."""
        return {"x-amzn-errortype": f"{_KINDS[status][2]}:http://internal.example/"}

    def resets(self, wait_s: float, now: float) -> tuple[dict[str, str], float]:
        """It has no such headers."""
        return {"Retry-After": f"{wait_s:g}"}, now + wait_s

    def refusal(self, feature: str) -> tuple[str, str | None]:
        """As a field to be removed."""
        if feature in ("system", "tools"):
            what = "system messages" if feature == "system" else "tool use"
            return f"This model doesn't support {what}.", None
        names = {"json_schema": "outputConfig.textFormat", "max_tokens": "maxTokens", "top_p": "topP"}
        name = names.get(feature, feature)
        return f"This model doesn't support the {name} field. Remove {name} and try again.", None


CHAT = Dialect()
DIALECTS: Mapping[str, Dialect] = {
    "openai": CHAT,
    "anthropic": Messages(),
    "gemini": Gemini(),
    "bedrock": Converse(),
}


def find_dialect(path: str) -> Dialect | None:
    """The language whose requests go to a path; None for none."""
    return next((dialect for dialect in DIALECTS.values() if dialect.path.fullmatch(path)), None)


def _chat(messages: Any, system: Any, key: str) -> dict[str, Any]:
    made = [{"role": "system", "content": _joined(system)}] if system else []
    made += [{"role": _ROLES.get(m["role"], m["role"]), "content": _joined(m[key])} for m in messages]
    return {"messages": made}


def _joined(blocks: Any) -> str:
    return blocks if isinstance(blocks, str) else "".join(block.get("text", "") for block in blocks)


def _schema_format(schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "verdict", "schema": schema}}


def _tool(name: str, schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema}}


def _said(message: Mapping[str, Any]) -> tuple[list[str], list[tuple[str, Any]]]:
    """Texts and calls of a message; arguments that are no object can only be sent as text."""
    texts = [message["content"]] if message.get("content") is not None else []
    calls = []
    for call in message.get("tool_calls", []):
        arguments = call["function"]["arguments"]
        try:
            value = json.loads(arguments)
        except ValueError:
            value = None
        if isinstance(value, dict):
            calls.append((call["function"]["name"], value))
        else:
            texts.append(arguments)
    return texts, calls
