"""Gemini's own interface, generateContent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.bodies import count, mappings, text
from evenhand.backends.content import Block, contents, without_system
from evenhand.backends.endpoint import Endpoint, Place
from evenhand.backends.http import HttpBackend
from evenhand.backends.schemas import without_mixed_values
from evenhand.backends.wire import SYSTEM_ROLE, Wire, in_path
from evenhand.errors import RetryableBackendError
from evenhand.verdict import Reply, ToolCall, Usage

_FINISH = {"STOP": "stop", "MAX_TOKENS": "length"}
#: Reasons for which the provider stops a reply.
_STOPPED = ("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")


class GeminiWire(Wire):
    """The generateContent interface; of several candidates the one with index 0, or else the first, is read."""

    name = "gemini"
    place = Place(
        "https://generativelanguage.googleapis.com/v1beta",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "GEMINI_BASE_URL",
        header="x-goog-api-key",
        prefix="",
        example="https://generativelanguage.googleapis.com/v1beta",
    )
    settings: Mapping[str, str] = {
        "temperature": "temperature",
        "max_tokens": "maxOutputTokens",
        "seed": "seed",
        "top_p": "topP",
        "top_k": "topK",
    }
    holds = "candidates"

    def url(self, endpoint: Endpoint, model: str) -> str:
        """An address for each model; a tuned one is named with its folder."""
        path = model if "/" in model else f"models/{model}"
        return f"{endpoint.base}/{in_path(path, safe='/')}:generateContent{endpoint.query}"

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """System text apart; a schema in the generation settings, a tool as the one to call."""
        messages = without_system(request.messages) if SYSTEM_ROLE in learned else request.messages
        system: list[Block] = []
        turns = []
        for message in messages:
            parts = contents(message, request, text=_text, image=_image)
            if message["role"] == "system":
                system += parts
            elif parts:
                turns.append({"role": "model" if message["role"] == "assistant" else "user", "parts": parts})
        body: dict[str, Any] = {"contents": turns}
        if system:
            body["systemInstruction"] = {"parts": system}
        settings = self.sampling(request, learned)
        if request.form in ("schema", "json"):
            settings["responseMimeType"] = "application/json"
        if request.form == "schema":
            settings["responseJsonSchema"] = without_mixed_values(request.schema or {})
        elif request.form == "tool":
            schema = without_mixed_values(request.schema or {})
            function = {"name": request.function, "description": "Submit the reply.", "parametersJsonSchema": schema}
            calling = {"mode": "ANY", "allowedFunctionNames": [request.function]}
            body["tools"] = [{"functionDeclarations": [function]}]
            body["toolConfig"] = {"functionCallingConfig": calling}
        return {**body, "generationConfig": settings} if settings else body

    def parameters(self, body: Mapping[str, Any]) -> list[str]:
        """The settings of the generation."""
        return list(body.get("generationConfig", {}))

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """The first candidate; a prompt that was blocked is a refusal."""
        feedback = data.get("promptFeedback") if isinstance(data, Mapping) else None
        candidates = mappings(data.get("candidates")) if isinstance(data, Mapping) else []
        blocked = text(feedback.get("blockReason")) if isinstance(feedback, Mapping) else None
        if not candidates and blocked is None:
            raise RetryableBackendError("the reply is no generated content: it has no candidates")
        chosen = next((c for c in candidates if c.get("index") in (0, None)), candidates[0]) if candidates else {}
        content = chosen.get("content")
        parts = mappings(content.get("parts")) if isinstance(content, Mapping) else []
        said = [part for part in parts if isinstance(part.get("text"), str)]
        texts = [part["text"] for part in said if part.get("thought") is not True]
        calls = [part["functionCall"] for part in parts if isinstance(part.get("functionCall"), Mapping)]
        finish = text(chosen.get("finishReason"))
        stopped = f"the prompt was blocked: {blocked}" if blocked else finish if finish in _STOPPED else None
        if stopped is None and finish is not None:
            finish = "tool_calls" if calls and finish == "STOP" else _FINISH.get(finish, finish.lower())
        return Reply(
            text="".join(texts) if texts else None,
            tool_calls=tuple(
                ToolCall(call["name"], call.get("args", {}))
                for call in calls
                if isinstance(call.get("name"), str) and isinstance(call.get("args", {}), str | Mapping)
            ),
            refusal=stopped and (text(chosen.get("finishMessage")) or stopped),
            reasoning="".join(part["text"] for part in said if part.get("thought") is True) or None,
            finish="content_filter" if stopped else finish,
            model=text(data.get("modelVersion")),
            usage=_usage(data.get("usageMetadata"), latency_s),
        )


def _text(words: str) -> Block:
    return {"text": words}


def _image(media_type: str, data: str) -> Block:
    return {"inlineData": {"mimeType": media_type, "data": data}}


def _usage(usage: Any, latency_s: float) -> Usage:
    """Thoughts are generated, and paid for, beside the candidates."""
    if not isinstance(usage, Mapping):
        return Usage(latency_s=latency_s)
    written, thought = count(usage.get("candidatesTokenCount")), count(usage.get("thoughtsTokenCount"))
    return Usage(
        prompt_tokens=count(usage.get("promptTokenCount")),
        completion_tokens=None if written is None and thought is None else (written or 0) + (thought or 0),
        cached_tokens=count(usage.get("cachedContentTokenCount")),
        latency_s=latency_s,
    )


def open_backend(settings: BackendSettings) -> HttpBackend:
    """Open a Gemini backend; nothing is sent yet.

    Raises:
        InputError: no model, no usable address, no key for a server beyond this machine, or a setting it lacks.
    """
    return HttpBackend(GeminiWire(), settings)
