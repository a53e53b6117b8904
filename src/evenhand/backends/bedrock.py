"""Amazon Bedrock's Converse interface, with a bearer key or with signed requests."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from evenhand.backend import BackendSettings, Request
from evenhand.backends.bodies import mappings, split_usage, text
from evenhand.backends.content import Block, contents, without_system
from evenhand.backends.endpoint import Endpoint, Place, find_endpoint
from evenhand.backends.http import HttpBackend
from evenhand.backends.schemas import without_bounds
from evenhand.backends.signing import Signer
from evenhand.backends.wire import SYSTEM_ROLE, Wire, in_path
from evenhand.errors import InputError, RetryableBackendError
from evenhand.verdict import Reply, ToolCall

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
}
_STOPPED = ("guardrail_intervened", "content_filtered")
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+)+-[0-9]{1,2}")
_REGION_OF_HOST = re.compile(r"bedrock-runtime(?:-fips)?\.([a-z0-9-]+)\.")
#: Tokens of the prompt that were not cached, read from the cache, written to it; and of the reply.
_TOKENS = ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens", "outputTokens")


class ConverseWire(Wire):
    """The Converse interface, the same for the models of all vendors."""

    name = "bedrock"
    place = Place(
        "",
        ("AWS_BEARER_TOKEN_BEDROCK",),
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        example="https://bedrock-runtime.us-east-1.amazonaws.com",
        key_needed=False,
    )
    forms = ("schema", "tool", "text", "lines")
    settings: Mapping[str, str] = {"temperature": "temperature", "max_tokens": "maxTokens", "top_p": "topP"}
    holds = "output"

    def __init__(self) -> None:
        self._signer: Signer | None = None

    def endpoint(self, settings: BackendSettings) -> Endpoint:
        """As everywhere; without a key, requests are signed.

        A server on this machine gets signed requests only where the environment names credentials.

        Raises:
            InputError: no region is named, or there are no credentials.
            MissingExtraError: requests must be signed, and botocore is not installed.
        """
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or ""
        if settings.base_url is None and self.place.url_env not in os.environ and not region:
            raise InputError("no AWS region", hint="set AWS_REGION, or give the address as --base-url")
        if region and not _REGION.fullmatch(region):  # it becomes part of the host that the key goes to
            raise InputError(f"{region!r} is no AWS region", hint="set AWS_REGION, as in us-east-1")
        place = replace(self.place, url=f"https://bedrock-runtime.{region}.amazonaws.com")
        found = find_endpoint(settings.base_url, settings.headers, place)
        named = any(name in os.environ for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"))
        if "authorization" not in {name.lower() for name in found.headers} and (named or not found.loopback):
            told = _REGION_OF_HOST.match(urlsplit(found.base).hostname or "")
            if not (region := told[1] if told else region):
                raise InputError(f"no AWS region for {found.base}", hint="set AWS_REGION")
            self._signer = Signer(region)
            self.signs = True
        return found

    def url(self, endpoint: Endpoint, model: str) -> str:
        """An address for each model, profile or ARN."""
        return f"{endpoint.base}/model/{in_path(model)}/converse{endpoint.query}"

    def headers(self, endpoint: Endpoint, url: str, body: bytes) -> Mapping[str, str]:
        """Signed, where there is no key."""
        return self._signer.sign(url, body, endpoint.headers) if self._signer else endpoint.headers

    def secrets(self, endpoint: Endpoint) -> tuple[str, ...]:
        """The credentials of the last request too."""
        return (*endpoint.secrets, *self._signer.secrets) if self._signer else endpoint.secrets

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """System text apart; a schema as text format, a tool as the one to call."""
        messages = without_system(request.messages) if SYSTEM_ROLE in learned else request.messages
        system: list[Block] = []
        turns = []
        for message in messages:
            blocks = contents(message, request, text=_text, image=_image)
            if message["role"] == "system":
                system += blocks
            elif blocks:
                turns.append({"role": message["role"], "content": blocks})
        body: dict[str, Any] = {"messages": turns}
        if system:
            body["system"] = system
        if sampling := self.sampling(request, learned):
            body["inferenceConfig"] = sampling
        if request.form == "schema":
            schema = json.dumps(without_bounds(request.schema or {}), ensure_ascii=False)
            structure = {"jsonSchema": {"name": request.function or "verdict", "schema": schema}}
            body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": structure}}
        elif request.form == "tool":
            tool = {"name": request.function, "inputSchema": {"json": request.schema}}
            body["toolConfig"] = {
                "tools": [{"toolSpec": tool}],
                "toolChoice": {"tool": {"name": request.function}},
            }
        return body

    def parameters(self, body: Mapping[str, Any]) -> list[str]:
        """The settings of the inference."""
        return list(body.get("inferenceConfig", {}))

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """Texts joined; reasoning kept apart."""
        output = data.get("output") if isinstance(data, Mapping) else None
        message = output.get("message") if isinstance(output, Mapping) else None
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
            raise RetryableBackendError("the reply is no conversation: it has no message")
        blocks = mappings(message["content"])
        texts = [block["text"] for block in blocks if isinstance(block.get("text"), str)]
        calls = [block["toolUse"] for block in blocks if isinstance(block.get("toolUse"), Mapping)]
        thoughts = [block["reasoningContent"] for block in blocks if isinstance(block.get("reasoningContent"), Mapping)]
        thought = [t["reasoningText"] for t in thoughts if isinstance(t.get("reasoningText"), Mapping)]
        finish = text(data.get("stopReason"))
        return Reply(
            text="".join(texts) if texts else None,
            tool_calls=tuple(
                ToolCall(call["name"], call["input"])
                for call in calls
                if isinstance(call.get("name"), str) and isinstance(call.get("input"), str | Mapping)
            ),
            refusal=("".join(texts) or finish) if finish in _STOPPED else None,
            reasoning="\n".join(t["text"] for t in thought if isinstance(t.get("text"), str)) or None,
            finish="content_filter" if finish in _STOPPED else _FINISH.get(finish or "", finish),
            usage=split_usage(data.get("usage"), latency_s, _TOKENS),
        )


def _text(words: str) -> Block:
    return {"text": words}


def _image(media_type: str, data: str) -> Block:
    return {"image": {"format": media_type.rpartition("/")[2], "source": {"bytes": data}}}


def open_backend(settings: BackendSettings) -> HttpBackend:
    """Open a Converse backend; nothing is sent yet.

    Raises:
        InputError: no model, no region, no credentials for a server beyond this machine, or a setting it lacks.
        MissingExtraError: requests must be signed, and botocore is not installed.
    """
    return HttpBackend(ConverseWire(), settings)
