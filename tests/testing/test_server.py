"""The fault server itself."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

import pytest

from evenhand.testing.behaviour import Behaviour, behaviour, from_prefix, to_prefix
from evenhand.testing.server import FakeServer

BODY = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 5}},
    "required": ["score"],
    "additionalProperties": False,
}


def post(url: str, **more: Any) -> tuple[int, dict[str, Any], dict[str, str]]:
    """Status, body and headers of one request."""
    data = json.dumps({**BODY, **more}).encode()
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(f"{url}/chat/completions", data, {"Authorization": "Bearer abc"})
    try:
        with opener.open(request, timeout=5) as answer:
            return answer.status, json.load(answer), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read() or b"{}"), dict(error.headers)


def message(url: str, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = post(url, **more)[1]["choices"][0]["message"]
    return found


def tool(name: str = "f") -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": {"name": name, "parameters": SCHEMA}}]}


def schema_form() -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "v", "schema": SCHEMA}}}


def test_replies_fit_what_is_asked(server: FakeServer) -> None:
    """A schema, a tool, a schema quoted in the prompt and plain JSON are all obeyed."""
    assert json.loads(message(server.url, **schema_form())["content"])["score"] in range(1, 6)
    call = message(server.url, **tool())["tool_calls"][0]["function"]
    assert call["name"] == "f" and json.loads(call["arguments"])["score"] in range(1, 6)
    quoted = [{"role": "user", "content": f"Give JSON {{like}} this: {json.dumps(SCHEMA)}"}]
    assert json.loads(message(server.url, messages=quoted)["content"])["score"] in range(1, 6)
    assert "score" in json.loads(message(server.url, response_format={"type": "json_object"})["content"])
    assert "{" not in message(server.url)["content"]


@pytest.mark.parametrize(
    ("latency", "quartiles"),
    [("50", (0.05, 0.05, 0.05)), ("20-80", (0.035, 0.05, 0.065)), ("lognormal:800:0.6", (0.534, 0.8, 1.199))],
)
def test_latencies_are_spread_as_told(latency: str, quartiles: tuple[float, ...]) -> None:
    """A quarter, half and three quarters of all replies come within these seconds."""
    how = Behaviour(latency=latency)
    assert [how.latency_s(share) for share in (0.25, 0.5, 0.75)] == pytest.approx(quartiles, abs=5e-4)


def test_replies_depend_on_the_body_alone(server: FakeServer) -> None:
    """Equal bodies get equal replies, different bodies all values in time, another seed others."""

    def scores(url: str) -> list[int]:
        return [json.loads(message(url, seed=i, **schema_form())["content"])["score"] for i in range(40)]

    first = scores(server.url)
    assert first == scores(server.with_faults(latency=1))
    assert set(first) == {1, 2, 3, 4, 5}
    assert scores(server.with_faults(seed=1)) != first


def test_dropped_features_are_ignored(server: FakeServer) -> None:
    """A server that drops a feature answers as if it had not been asked for."""
    dropping = server.with_faults(drop=["tools", "json_schema"])
    assert "tool_calls" not in message(dropping, **tool())
    assert "{" not in message(dropping, **schema_form())["content"]


@pytest.mark.parametrize(
    ("feature", "more"),
    [
        ("json_schema", schema_form()),
        ("json_object", {"response_format": {"type": "json_object"}}),
        ("tools", tool()),
        ("temperature", {"temperature": 0}),
        ("max_tokens", {"max_tokens": 5}),
        ("seed", {"seed": 1}),
        ("top_p", {"top_p": 1}),
        ("logprobs", {"logprobs": True}),
        ("system", {"messages": [{"role": "system", "content": "x"}]}),
    ],
)
def test_features_are_refused_one_by_one(server: FakeServer, feature: str, more: dict[str, Any]) -> None:
    """A refused feature gets a 400 that names it; requests without it pass."""
    url = server.with_faults(refuse=feature)
    status, body, _ = post(url, **more)
    assert status == 400 and "support" in body["error"]["message"]
    assert post(url)[0] == 200


def test_faults_by_count_and_share(server: FakeServer) -> None:
    """Counts are per distinct body and add up; a share strikes about that part of the tries."""
    url = server.with_faults(fault="500:first1+429:first1", retry_after=0)
    assert [post(url, seed=i)[0] for i in (1, 1, 1, 2)] == [500, 429, 200, 500]
    chosen = behaviour({"fault": "429:0.2+reset:0.1"})
    struck = [chosen.strike(body, tries) for body in range(1000) for tries in range(2)]
    assert 0.16 < struck.count("429") / len(struck) < 0.24
    assert 0.07 < struck.count("reset") / len(struck) < 0.13


def test_coming_back_too_early_is_counted(server: FakeServer) -> None:
    """The server knows who did not wait."""
    server.reset()
    url = server.with_faults(fault="429:first1", retry_after=0.2)
    assert post(url)[2]["Retry-After"] == "0.2"
    post(url)
    assert server.stats()["early"] == 1
    post(url)
    stats = server.stats()
    assert (stats["requests"], stats["distinct"], stats["by_status"]) == (3, 1, {"429": 1, "200": 2})


def test_requests_are_kept(server: FakeServer) -> None:
    """The last requests can be looked at: body, headers, time of arrival."""
    server.reset()
    before = time.time()
    post(server.url, seed=5)
    (seen,) = server.requests()
    assert seen["body"]["seed"] == 5 and seen["headers"]["authorization"] == "Bearer abc"
    assert before <= seen["at"] <= time.time() and seen["status"] == 200


def test_echo_repeats_the_header(server: FakeServer) -> None:
    """With echo, an error body holds what a careless server would show."""
    assert "Bearer abc" in post(server.with_faults(fault="401", echo=True))[1]["error"]["message"]
    assert "Bearer abc" not in str(post(server.with_faults(fault="401"))[1])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"fault": "429:first2+reset:0.1", "latency": "5-20", "retry_after": 0.05},
        {"refuse": ["tools", "seed"], "echo": True, "choices": 2},
        {"reply": '{"a": "x, y = /?#&%+"}', "model_alias": "a/b,c"},
    ],
)
def test_prefixes_say_what_settings_say(settings: dict[str, Any]) -> None:
    """A behaviour survives being written into a path."""
    assert from_prefix(to_prefix(settings)) == behaviour(settings)


def test_a_set_reply_is_sent(server: FakeServer) -> None:
    """`reply` is the content of every reply, whatever is in it."""
    text = '{"score": 3, "reason": "a/b, c=d? 好"}'
    assert message(server.with_faults(reply=text))["content"] == text


@pytest.mark.parametrize(
    "settings", [{"fualt": "429"}, {"fault": "420"}, {"refuse": "all"}, {"style": "x"}, {"latency": "x"}]
)
def test_settings_without_meaning_are_refused(server: FakeServer, settings: dict[str, str]) -> None:
    """A misspelt setting is an error, in Python and at the server."""
    with pytest.raises(ValueError):
        server.with_faults(**settings)
    prefix = ",".join(f"{k}={v}" for k, v in settings.items())
    assert post(f"{server.url.removesuffix('/v1')}/~{prefix}/v1")[0] == 400


def test_other_addresses(server: FakeServer) -> None:
    """Models are listed; there is nothing else."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"{server.url}/models", timeout=5) as answer:
        assert json.load(answer)["data"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(f"{server.url}/none", timeout=5)
    with caught.value:
        assert caught.value.code == 404
    assert post(server.url, messages=3)[0] == 400


def test_the_server_ends_with_its_parent_and_its_time() -> None:
    """A server left behind does not stay."""
    command = [sys.executable, "-m", "evenhand.testing.server", "--port", "0"]
    orphan = [*command, "--parent", "1"]
    short = [*command, "--max-seconds", "0.2"]
    for arguments in (orphan, short):
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=10, check=True)
        assert "http://127.0.0.1:" in done.stdout
