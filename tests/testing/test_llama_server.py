"""The real model server for tests speaks the protocol a client relies on."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError
from evenhand.testing.llama_server import MODEL_NAME, LlamaServer
from local_models import small_model

pytestmark = pytest.mark.local_model

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["score"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    """One server for all tests."""
    with LlamaServer(small_model()) as running:
        yield running


def chat(server: LlamaServer, **asked: Any) -> Any:
    """Post a chat completion and return the first choice."""
    body = {"model": MODEL_NAME, "messages": [{"role": "user", "content": "Rate this answer: 4."}], "temperature": 0}
    request = urllib.request.Request(
        f"{server.base_url}/chat/completions",
        json.dumps({"max_tokens": 64, **body, **asked}).encode(),
        {"Content-Type": "application/json"},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]


def test_json_schema(server: LlamaServer) -> None:
    """A JSON schema binds the content."""
    form = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True}}
    choice = chat(server, response_format=form)
    assert json.loads(choice["message"]["content"])["score"] in range(10)
    assert choice["finish_reason"] == "stop"


def test_tools_are_accepted(server: LlamaServer) -> None:
    """A request with tools is served; this server does not force the call, so plain text may come back."""
    tool = {"type": "function", "function": {"name": "submit_verdict", "parameters": SCHEMA}}
    message = chat(server, tools=[tool], tool_choice="required")["message"]
    assert message["role"] == "assistant"
    assert message.get("tool_calls") or message["content"]


def test_logprobs(server: LlamaServer) -> None:
    """The likeliest tokens come with their log probabilities."""
    choice = chat(server, max_tokens=1, logprobs=True, top_logprobs=5)
    (place,) = choice["logprobs"]["content"]
    assert len(place["top_logprobs"]) == 5
    assert all(other["logprob"] <= 0 for other in place["top_logprobs"])
    assert choice["finish_reason"] == "length"


def test_the_server_ends_with_the_block() -> None:
    """Nothing answers at the address afterwards."""
    with LlamaServer(small_model()) as running:
        assert chat(running, max_tokens=1)["finish_reason"] == "length"
    with pytest.raises(urllib.error.URLError):
        chat(running, max_tokens=1)


def test_a_server_that_cannot_start(tmp_path: Path) -> None:
    """A missing file is an error at once, not a hang."""
    pytest.importorskip("xllamacpp")
    with pytest.raises(InputError, match="could not start"), LlamaServer(tmp_path / "none.gguf"):
        pass
