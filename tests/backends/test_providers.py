"""Anthropic, Gemini and Bedrock: bodies sent, shapes of replies and errors after their public reference."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from evenhand.backend import BackendSettings, Request
from evenhand.backends.anthropic_messages import MAX_TOKENS, MessagesWire
from evenhand.backends.bedrock import ConverseWire
from evenhand.backends.gemini import GeminiWire
from evenhand.backends.http_errors import error_for, read_fault
from evenhand.backends.openai_chat import ChatWire
from evenhand.backends.schemas import without_bounds, without_mixed_values
from evenhand.backends.wire import Wire
from evenhand.errors import (
    AccessError,
    BackendError,
    FinalBackendError,
    InputError,
    RetryableBackendError,
    UnsupportedFeatureError,
)
from evenhand.item_values import Image
from evenhand.parse import read
from evenhand.registry import load
from evenhand.testing.conformance import sample_requests
from evenhand.testing.server import FakeServer
from evenhand.verdict import Failure, Reply, ToolCall
from runs import GOOD, TWO, rows, run_it, summary, write_jsonl

WIRES: dict[str, type[Wire]] = {"anthropic": MessagesWire, "gemini": GeminiWire, "bedrock": ConverseWire}
SYSTEM = 'Rate the answer from 0 to 10. Reply with a JSON object {"reason": ..., "score": ...}.'
ANSWER = {"score": 7, "reason": "r"}
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def ask(form: Any = "schema", **changes: Any) -> Request:
    return sample_requests(form, **changes)[0]


def body(provider: str, form: Any = "schema", **changes: Any) -> dict[str, Any]:
    return WIRES[provider]().body(ask(form, **changes), "m", {})


def reply(provider: str, data: Any) -> Reply:
    return WIRES[provider]().reply(data, ask(), 0.5)


def test_bodies_of_anthropic() -> None:
    """System text apart, the shared prefix marked for the cache, a schema without bounds, one forced tool."""
    sent = body("anthropic")
    assert sent["system"] == [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    assert sent["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Answer 0."}]}]
    assert (sent["max_tokens"], sent["temperature"]) == (200, 0.0)
    schema = sent["output_config"]["format"]["schema"]
    assert schema["properties"]["score"] == {"type": "integer", "enum": list(range(11))}
    assert schema["additionalProperties"] is False
    tool = body("anthropic", "tool")
    assert tool["tools"] == [{"name": "submit_verdict", "input_schema": ask().schema}]
    assert tool["tool_choice"] == {"type": "tool", "name": "submit_verdict", "disable_parallel_tool_use": True}
    plain = body("anthropic", "text", settings={}, static_messages=0)
    assert set(plain) == {"model", "messages", "system", "max_tokens"}
    assert plain["max_tokens"] == MAX_TOKENS and "cache_control" not in plain["system"][0]


def test_bodies_of_gemini() -> None:
    """Roles user and model, settings under their own names, schemas in its dialect, one forced function."""
    again = ({"role": "assistant", "content": "7"}, {"role": "user", "content": "Again."})
    sent = body("gemini", messages=(*ask().messages, *again))
    assert sent["systemInstruction"] == {"parts": [{"text": SYSTEM}]}
    assert [turn["role"] for turn in sent["contents"]] == ["user", "model", "user"]
    settings = sent["generationConfig"]
    assert (settings["temperature"], settings["maxOutputTokens"]) == (0.0, 200)
    assert settings["responseMimeType"] == "application/json"
    assert settings["responseJsonSchema"]["propertyOrdering"] == ["reason", "score"]
    assert body("gemini", "json")["generationConfig"].keys() == {"temperature", "maxOutputTokens", "responseMimeType"}
    tool = body("gemini", "tool")
    assert tool["toolConfig"]["functionCallingConfig"] == {"mode": "ANY", "allowedFunctionNames": ["submit_verdict"]}
    assert tool["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["required"] == ["reason", "score"]
    learned = GeminiWire().body(ask("text"), "m", {"system role": "user"})
    assert learned["contents"][0]["parts"][0]["text"].startswith(SYSTEM) and "systemInstruction" not in learned


def test_bodies_of_bedrock() -> None:
    """System text apart, inference settings, the schema as a text, one forced tool."""
    sent = body("bedrock")
    assert sent["system"] == [{"text": SYSTEM}]
    assert sent["messages"] == [{"role": "user", "content": [{"text": "Answer 0."}]}]
    assert sent["inferenceConfig"] == {"temperature": 0.0, "maxTokens": 200}
    schema = json.loads(sent["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"])
    assert schema["properties"]["score"]["enum"] == list(range(11))
    tool = body("bedrock", "tool")["toolConfig"]
    assert tool["toolChoice"] == {"tool": {"name": "submit_verdict"}}
    assert tool["tools"][0]["toolSpec"]["inputSchema"] == {"json": ask().schema}


def test_images() -> None:
    """Bytes of an image are sent as each provider wants them; addresses where it fetches them."""
    text = base64.b64encode(PIXEL).decode()
    image = Image(f"data:image/png;base64,{text}", sha256(PIXEL).hexdigest(), "image/png", len(PIXEL), 1, 1, True)
    part = {"type": "image", "name": "a", "media_type": "image/png", "bytes": len(PIXEL), "sha256": image.sha256}
    shown: dict[str, Any] = {
        "static_messages": 0,
        "messages": ({"role": "user", "content": [{"type": "text", "text": "See:"}, part]},),
        "images": {image.sha256: image},
    }
    source = {"type": "base64", "media_type": "image/png", "data": text}
    assert body("anthropic", **shown)["messages"][0]["content"][1] == {"type": "image", "source": source}
    inline = {"inlineData": {"mimeType": "image/png", "data": text}}
    assert body("gemini", **shown)["contents"][0]["parts"][1] == inline
    block = {"image": {"format": "png", "source": {"bytes": text}}}
    assert body("bedrock", **shown)["messages"][0]["content"][1] == block
    url = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}
    address: dict[str, Any] = {"messages": ({"role": "user", "content": [url]},)}
    assert body("anthropic", **address)["messages"][0]["content"][0]["source"]["url"] == "https://host/a.png"
    for provider in ("gemini", "bedrock"):
        with pytest.raises(FinalBackendError, match="address"):
            body(provider, **address)


def test_schemas_in_dialects() -> None:
    """Bounds become values where that is short, values of one type stand together, null is a type of its own."""
    schema = {
        "type": "object",
        "properties": {
            "rank": {"type": ["integer", "null"], "minimum": 1, "maximum": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "big": {"type": "integer", "minimum": 0, "maximum": 1000},
            "label": {"type": ["string", "null"], "enum": ["a", "b", None], "description": "d"},
            "mixed": {"type": ["integer", "string"], "enum": [1, "none"]},
            "fine": {"type": "boolean", "enum": [True, False]},
            "notes": {"type": "array", "items": {"type": "string"}},
        },
    }
    listed = without_bounds(schema)["properties"]
    assert listed["rank"] == {"type": ["integer", "null"], "enum": [1, 2, 3, None]}
    assert listed["share"] == {"type": "number"} and listed["big"] == {"type": "integer"}
    apart = without_mixed_values(schema)["properties"]
    assert apart["rank"] == schema["properties"]["rank"] and apart["notes"] == schema["properties"]["notes"]  # type: ignore[index]
    text = {"type": "string", "enum": ["a", "b"]}
    assert apart["label"] == {"description": "d", "anyOf": [text, {"type": "null"}]}
    assert apart["mixed"] == {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["none"]}]}
    assert apart["fine"] == {"type": "boolean"}


def test_replies_of_anthropic() -> None:
    """Text, thinking, a call and a usage whose cached tokens are counted apart."""
    data = {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x",
        "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "eA=="},
            {"type": "text", "text": "So: "},
            {"type": "text", "text": "7"},
            {"type": "tool_use", "id": "toolu_01", "name": "submit_verdict", "input": ANSWER},
        ],
        "stop_reason": "tool_use", "stop_sequence": None,
        "usage": {
            "input_tokens": 20, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 1000, "output_tokens": 9
        },
    }  # fmt: skip
    said = reply("anthropic", data)
    assert (said.text, said.reasoning, said.finish, said.model) == ("So: 7", "Hm.", "tool_calls", "claude-x")
    assert said.tool_calls == (ToolCall("submit_verdict", ANSWER),)
    assert (said.usage.prompt_tokens, said.usage.cached_tokens, said.usage.completion_tokens) == (1050, 1000, 9)
    declined = reply("anthropic", {**data, "content": [], "stop_reason": "refusal"})
    assert (declined.refusal, declined.finish) == ("the model declined", "content_filter")
    details = {"type": "refusal", "category": "bio", "explanation": "Not this."}
    assert reply("anthropic", {**data, "stop_reason": "refusal", "stop_details": details}).refusal == "Not this."
    cut = reply("anthropic", {**data, "content": data["content"][:1], "stop_reason": "max_tokens"})  # type: ignore[index]
    assert (cut.text, cut.finish) == (None, "length")


def test_replies_of_gemini() -> None:
    """Thoughts apart and counted, a call, a blocked prompt, a reply that was stopped."""
    data = {
        "candidates": [
            {"index": 1, "content": {"role": "model", "parts": [{"text": "3"}]}, "finishReason": "STOP"},
            {
                "index": 0,
                "content": {
                    "role": "model",
                    "parts": [
                        {"text": "Hm.", "thought": True},
                        {"text": "7", "thoughtSignature": "c2ln"},
                        {"functionCall": {"name": "submit_verdict", "args": ANSWER}},
                    ],
                },
                "finishReason": "STOP",
            },
        ],
        "modelVersion": "gemini-x-001",
        "usageMetadata": {
            "promptTokenCount": 100, "cachedContentTokenCount": 64, "candidatesTokenCount": 9,
            "thoughtsTokenCount": 50, "totalTokenCount": 159,
        },
    }  # fmt: skip
    said = reply("gemini", data)
    assert (said.text, said.reasoning, said.finish, said.model) == ("7", "Hm.", "tool_calls", "gemini-x-001")
    assert said.tool_calls == (ToolCall("submit_verdict", ANSWER),)
    assert (said.usage.prompt_tokens, said.usage.cached_tokens, said.usage.completion_tokens) == (100, 64, 59)
    blocked = reply("gemini", {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}})
    assert (blocked.refusal, blocked.finish) == ("the prompt was blocked: PROHIBITED_CONTENT", "content_filter")
    stopped = reply("gemini", {"candidates": [{"finishReason": "SAFETY", "index": 0}]})
    assert (stopped.refusal, stopped.finish, stopped.text) == ("SAFETY", "content_filter", None)
    spent = {"candidates": [{"finishReason": "MAX_TOKENS"}], "usageMetadata": {"thoughtsTokenCount": 200}}
    assert (reply("gemini", spent).finish, reply("gemini", spent).usage.completion_tokens) == ("length", 200)
    broken = reply("gemini", {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]})
    assert (broken.finish, broken.refusal, broken.tool_calls) == ("malformed_function_call", None, ())


def test_replies_of_bedrock() -> None:
    """Reasoning apart, a call, what a guardrail says in the model's stead."""
    data = {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
                    {"text": "7"},
                    {"toolUse": {"toolUseId": "t1", "name": "submit_verdict", "input": ANSWER}},
                ],
            }
        },
        "stopReason": "tool_use",
        "usage": {"inputTokens": 20, "outputTokens": 9, "totalTokens": 29, "cacheReadInputTokens": 100},
        "metrics": {"latencyMs": 400},
    }
    said = reply("bedrock", data)
    assert (said.text, said.reasoning, said.finish, said.model) == ("7", "Hm.", "tool_calls", None)
    assert said.tool_calls == (ToolCall("submit_verdict", ANSWER),)
    assert (said.usage.prompt_tokens, said.usage.cached_tokens, said.usage.completion_tokens) == (120, 100, 9)
    held = {"output": {"message": {"content": [{"text": "Blocked."}]}}, "stopReason": "guardrail_intervened"}
    assert (reply("bedrock", held).refusal, reply("bedrock", held).finish) == ("Blocked.", "content_filter")
    assert reply("bedrock", {**data, "stopReason": "max_tokens"}).finish == "length"


@pytest.mark.parametrize("provider", WIRES)
@pytest.mark.parametrize("data", [None, [], {}, {"content": {}}, {"candidates": [3]}, {"output": {"message": []}}, 7])
def test_what_is_no_reply_is_retryable(provider: str, data: Any) -> None:
    """A body of another shape is the server's fault and may go better next time."""
    with pytest.raises(RetryableBackendError):
        reply(provider, data)


SPENT: dict[str, dict[str, Any]] = {
    "openai": {
        "choices": [{"message": {"content": "", "reasoning_content": "Hm."}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 200, "completion_tokens_details": {"reasoning_tokens": 200}},
    },
    "anthropic": {"content": [{"type": "thinking", "thinking": "Hm."}], "stop_reason": "max_tokens"},
    "gemini": {
        "candidates": [{"content": {"parts": [{"text": "Hm.", "thought": True}]}, "finishReason": "MAX_TOKENS"}],
    },
    "bedrock": {
        "output": {"message": {"content": [{"reasoningContent": {"reasoningText": {"text": "Hm."}}}]}},
        "stopReason": "max_tokens",
    },
}


@pytest.mark.parametrize("provider", SPENT)
def test_a_budget_spent_on_reasoning_is_told(provider: str) -> None:
    """Where the tokens ran out before the answer, the reply is truncated, and what to do is said."""
    wire = {"openai": ChatWire, **WIRES}[provider]()
    said = wire.reply(SPENT[provider], ask(), 0.5)
    assert (said.reasoning, said.text or "") == ("Hm.", "")
    reading = read(said, ask().fields)
    assert reading.failure is Failure.TRUNCATED
    assert "--max-tokens" in reading.fields["score"].detail


def anthropic_error(kind: str, message: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}


def gemini_error(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "30.5s"}
PER_DAY = {
    "@type": "type.googleapis.com/google.rpc.QuotaFailure",
    "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}],
}


@pytest.mark.parametrize(
    ("status", "data", "kind", "form", "error", "wait"),
    [
        (529, anthropic_error("overloaded_error", "Overloaded"), "", "text", RetryableBackendError, None),
        (429, anthropic_error("rate_limit_error", "Too fast"), "", "text", RetryableBackendError, None),
        (400, anthropic_error("invalid_request_error", "Your credit balance is low"), "", "text", AccessError, None),
        (
            400,
            anthropic_error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"),
            "", "tool", FinalBackendError, None,
        ),
        (
            400,
            anthropic_error("invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 9"),
            "", "tool", FinalBackendError, None,
        ),
        (
            400,
            anthropic_error("invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use."),
            "", "tool", UnsupportedFeatureError, None,
        ),
        (
            400,
            anthropic_error("invalid_request_error", "output_config.format.schema: not supported by this model"),
            "", "schema", UnsupportedFeatureError, None,
        ),
        (404, anthropic_error("not_found_error", "model: claude-y"), "", "text", AccessError, None),
        (429, gemini_error(429, "RESOURCE_EXHAUSTED", "Quota", RETRY_INFO), "", "text", RetryableBackendError, 30.5),
        (429, gemini_error(429, "RESOURCE_EXHAUSTED", "Quota", PER_DAY, RETRY_INFO), "", "text", AccessError, None),
        (429, [gemini_error(429, "RESOURCE_EXHAUSTED", "Busy", RETRY_INFO)], "", "text", RetryableBackendError, 30.5),
        (
            400,
            gemini_error(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
            "", "json", AccessError, None,
        ),
        (
            400,
            gemini_error(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
            "", "text", AccessError, None,
        ),
        (
            400,
            gemini_error(400, "INVALID_ARGUMENT", "The input token count (1091639) exceeds the maximum number of"),
            "", "tool", FinalBackendError, None,
        ),
        (
            400,
            gemini_error(400, "INVALID_ARGUMENT", "Unknown name \"responseJsonSchema\" at 'generation_config'"),
            "", "schema", UnsupportedFeatureError, None,
        ),
        (503, gemini_error(503, "UNAVAILABLE", "The model is overloaded."), "", "text", RetryableBackendError, None),
        (429, {"message": "Too many requests, wait"}, "ThrottlingException", "text", RetryableBackendError, None),
        (429, {"message": "Too many tokens per day, please wait"}, "ThrottlingException", "text", AccessError, None),
        (429, {"message": "Not loaded yet"}, "ModelNotReadyException", "text", RetryableBackendError, None),
        (424, {"message": "The model failed"}, "ModelErrorException", "text", RetryableBackendError, None),
        (408, {"message": "Timed out"}, "ModelTimeoutException", "text", RetryableBackendError, None),
        (403, {"Message": "not authorized"}, "AccessDeniedException", "text", AccessError, None),
        (400, {"message": "The security token is expired"}, "ExpiredTokenException", "text", AccessError, None),
        (400, {"message": "The model identifier is invalid."}, "ValidationException", "text", AccessError, None),
        (
            400,
            {"message": "Invocation of model ID x with on-demand throughput isn\u2019t supported."},
            "ValidationException", "text", AccessError, None,
        ),
        (
            400,
            {"message": "Input is too long for requested model."},
            "ValidationException", "tool", FinalBackendError, None,
        ),
        (
            400,
            {"message": "This model doesn't support the toolConfig.toolChoice.tool field."},
            "ValidationException", "tool", UnsupportedFeatureError, None,
        ),
        (
            400,
            {"error": {"message": "maximum context length is 9 tokens; 8 in the messages, 3 in the functions"}},
            "", "tool", FinalBackendError, None,
        ),
    ],
)  # fmt: skip
def test_errors_of_providers(
    status: int, data: Any, kind: str, form: Any, error: type[BackendError], wait: float | None
) -> None:
    """Each provider's words for key, quota, model, length and missing features are understood."""
    fault = read_fault(json.dumps(data).encode(), kind=kind)
    found = error_for(status, fault, form, {}, now=0.0, where="x")
    assert type(found) is error
    assert found.retry_after_s == wait
    assert error is not FinalBackendError or "context" in (found.hint or "")


@pytest.mark.parametrize(
    ("message", "names", "refused"),
    [
        ("`temperature` is deprecated for this model.", ["temperature"], "temperature"),
        ("Unknown name \"max_output_tokens\" at 'generation_config'", ["topP", "maxOutputTokens"], "maxOutputTokens"),
        ("This model doesn't support the topP field. Remove topP and try again.", ["temperature", "topP"], "topP"),
        ("seed: Extra inputs are not permitted", ["seed"], "seed"),
    ],
)
def test_parameters_are_known_by_their_own_names(message: str, names: list[str], refused: str) -> None:
    """However a provider writes the name of a parameter that it refuses."""
    from evenhand.backends.http_errors import refused_parameter

    assert refused_parameter(read_fault(json.dumps({"message": message}).encode()), names) == refused


@pytest.mark.parametrize("provider", WIRES)
def test_settings_a_provider_lacks_are_input_errors(provider: str) -> None:
    """A setting that it has no name for is refused before anything is sent."""
    lacking = {"anthropic": "seed", "gemini": "logprobs", "bedrock": "seed"}[provider]
    settings = BackendSettings(model="m", base_url="http://127.0.0.1:9", sampling={lacking: 1, "temperature": 0.0})
    with pytest.raises(InputError, match=lacking) as caught:
        load("backend", provider)(settings)
    assert "temperature" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("provider", "base", "url"),
    [
        ("anthropic", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
        ("anthropic", "https://host/proxy/v1/messages?k=v", "https://host/proxy/v1/messages?k=v"),
        ("gemini", "https://host/v1beta/", "https://host/v1beta/models/m%3A1:generateContent"),
        ("bedrock", "https://bedrock-runtime.eu-x-1.amazonaws.com/",
         "https://bedrock-runtime.eu-x-1.amazonaws.com/model/m%3A1/converse"),
    ],
)  # fmt: skip
def test_addresses(provider: str, base: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base with or without its usual end leads to the same place."""
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.setenv(name, "k")
    assert load("backend", provider)(BackendSettings(model="m:1", base_url=base))._url == url


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "bedrock"])
def test_names_of_models_lead_nowhere_else(provider: str) -> None:
    """A name is quoted where it is part of an address; one that leads elsewhere, or can't be sent, is refused."""

    def url(model: str) -> str:
        return str(load("backend", provider)(BackendSettings(model=model, base_url="http://127.0.0.1:9/v1"))._url)

    usual = url("m")
    for name in ("模型 é", "x?key=1", "x#f", "%2e%2e", "@host", "a:b", "a/b"):
        assert url(name).count("/") >= usual.count("/") and "?" not in url(name) and "#" not in url(name)
    for name in ("a\nb", "\ud800", "\x00"):
        with pytest.raises(InputError, match="can't hold"):
            url(name)
    for name in ("..", ".", "../../x", "a/../b", "//host/x", "x/"):
        if provider in ("gemini", "bedrock"):
            with pytest.raises(InputError, match="no name of a model"):
                url(name)
        else:
            assert url(name) == usual


def test_the_region_makes_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bedrock's address follows from the region; without one nothing can be sent."""
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "k")
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(InputError, match="region"):
        load("backend", "bedrock")(BackendSettings(model="m"))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-x-1")
    opened = load("backend", "bedrock")(BackendSettings(model="arn:aws:x/y"))
    assert opened._url == "https://bedrock-runtime.eu-x-1.amazonaws.com/model/arn%3Aaws%3Ax%2Fy/converse"
    for wrong in ("mars", "host.invalid/?x=", "host.invalid#", "us-east-1.host.invalid/", "us east 1"):
        monkeypatch.setenv("AWS_REGION", wrong)  # the key would go to another host
        with pytest.raises(InputError, match="is no AWS region"):
            load("backend", "bedrock")(BackendSettings(model="m"))


@pytest.mark.parametrize("provider", ["openai", *WIRES])
@pytest.mark.parametrize("drop", ["", "json_schema", "json_schema+tools"])
def test_judged_end_to_end(server: FakeServer, provider: str, drop: str, tmp_path: Path) -> None:
    """All items are scored, also where the server ignores forms without a word: the next one is found, once."""
    plain = f"Here you are: {json.dumps(GOOD)}."
    url = server.with_faults(fault="429:first1", retry_after=0.02, drop=drop, plain=plain)
    items = write_jsonl(tmp_path / "i.jsonl", rows(4))
    done = run_it(items, TWO, f"{provider}:m", tmp_path / "run", base_url=url, re_ask=False)
    assert done.asked == 4
    assert summary(tmp_path / "run")["scored"] == 4
    forms = WIRES[provider].forms if provider in WIRES else ("schema", "tool", "json", "text")
    tried = {"": 1, "json_schema": 2, "json_schema+tools": forms.index("text") + 1}[drop]
    answered = [seen for seen in server.requests(url) if seen["status"] == 200]
    assert len(answered) == 4 + tried - 1
