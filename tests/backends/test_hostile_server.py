"""Servers that answer with anything at all: each reply ends as a reply or as an error of a backend."""

from __future__ import annotations

import asyncio
import copy
import gzip
import json
import logging
import random
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand import judge
from evenhand.api import Run, make_spec
from evenhand.backend import BackendSettings
from evenhand.backends.connection_errors import reason
from evenhand.backends.http_errors import error_for, read_fault
from evenhand.backends.openai_chat import open_backend
from evenhand.backends.paced import Paced
from evenhand.errors import AccessError, BackendError, FinalBackendError, RetryableBackendError
from evenhand.judging import reply_text
from evenhand.parse import read
from evenhand.registry import load
from evenhand.run import run
from evenhand.testing.conformance import sample_requests
from evenhand.testing.server import FakeServer
from evenhand.verdict import Reply, Usage, add_usage, reply_from_plain, reply_to_plain
from runs import SCORE, TWO, rows, statuses, write_jsonl

Chat = Callable[..., Paced]
KEY = "sk-test+0123/4567=89"
CALL = {"id": "c", "type": "function", "function": {"name": "submit_verdict", "arguments": {"reason": "r", "score": 3}}}
GOOD: dict[str, Any] = {
    "id": "x",
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "3", "logprob": -0.1, "top_logprobs": []}]},
            "message": {
                "role": "assistant",
                "content": '{"reason": "r", "score": 3}',
                "refusal": None,
                "reasoning": "so",
                "tool_calls": [CALL],
                "function_call": None,
            },
        }
    ],
    "usage": {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "prompt_tokens_details": {"cached_tokens": 4},
        "cost": 0.25,
    },
}
CALLED = {"name": "submit_verdict", "input": {"reason": "r", "score": 3}}
GOODS: dict[str, dict[str, Any]] = {
    "openai": GOOD,
    "anthropic": {
        "model": "m",
        "content": [{"type": "thinking", "thinking": "so"}, {"type": "text", "text": '{"score": 3}'}, CALLED],
        "stop_reason": "refusal",
        "stop_details": {"explanation": "no"},
        "usage": {"input_tokens": 9, "cache_read_input_tokens": 3, "output_tokens": 3},
    },
    "gemini": {
        "candidates": [
            {
                "index": 0,
                "finishReason": "STOP",
                "content": {
                    "parts": [
                        {"text": "so", "thought": True},
                        {"text": '{"score": 3}'},
                        {"functionCall": {"name": "submit_verdict", "args": {"reason": "r", "score": 3}}},
                    ]
                },
            }
        ],
        "promptFeedback": {"blockReason": None},
        "modelVersion": "m",
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 3},
    },
    "bedrock": {
        "output": {
            "message": {
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "so"}}},
                    {"text": '{"score": 3}'},
                    {"toolUse": CALLED},
                ]
            }
        },
        "stopReason": "end_turn",
        "usage": {"inputTokens": 9, "outputTokens": 3, "cacheReadInputTokens": 3},
    },
}
BAD: dict[str, Any] = {
    "error": {
        "message": "no",
        "code": "bad",
        "type": "t",
        "param": "temperature",
        "detail": [{"loc": ["body", 0], "msg": "bad"}],
        "details": [{"reason": "r", "retryDelay": "3s", "violations": [{"quotaId": "q"}]}],
    },
    "detail": [{"loc": ["body", "tools"], "msg": "extra"}],
}
ODD: list[Any] = [
    None, True, False, 0, -1, 3, 2**70, 10**400, 0.5, -0.5, 1e300, "", "text", "3", "9" * 500, [], {}, [[]], [None],
    {"a": {"b": []}}, ["x", 1, None], [{"loc": None, "msg": None}], {"name": 3, "arguments": [[1]]},
]  # fmt: skip


def nested(levels: int) -> str:
    """JSON text of objects within objects."""
    return '{"a":' * levels + "1" + "}" * levels


def places(value: Any) -> list[tuple[Any, Any]]:
    """(container, key) of everything inside a piece of data."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *places(value[key]))]


def mutated(data: Any, draw: random.Random) -> bytes:
    """JSON of the data with one to three of its parts exchanged, removed, or nested beyond reason."""
    data = copy.deepcopy(data)
    deep = "@@deep@@"
    for _ in range(draw.randint(1, 3)):
        found = places(data)
        if not found:
            break
        container, key = draw.choice(found)
        if draw.random() < 0.15 and isinstance(container, dict):
            del container[key]
        else:
            container[key] = deep if draw.random() < 0.1 else copy.deepcopy(draw.choice(ODD))
    levels = draw.choice([50, 400, 900, 5000])
    text = json.dumps(data).replace(f'"{deep}"', nested(levels))
    special = draw.choice(["NaN", "Infinity", "1e400", "-0", '"\\ud83d"', "9" * 5000])
    return text.replace(": 3", f": {special}", 1).encode() if draw.random() < 0.3 else text.encode()


def require_usable(reply: Reply) -> None:
    """The reply can be read, stored and summed up."""
    fields = sample_requests()[0].fields
    reading = read(reply, fields, function="submit_verdict")
    assert set(reading.fields) == {"reason", "score"}
    assert isinstance(reply_text(reply), str)
    stored = json.loads(json.dumps(reply_to_plain(reply)))
    assert read(reply_from_plain(stored), fields, function="submit_verdict") == reading
    total = add_usage(reply.usage, Usage(1, 1, 1, 1.0, 1.0))
    assert total.cost_usd is None or 0 <= total.cost_usd < 1e13
    assert all(isinstance(part, str | None) for part in (reply.text, reply.finish, reply.model, reply.refusal))


@pytest.mark.parametrize("provider", GOODS)
@settings(max_examples=200)
@given(seed=st.integers(0, 2**32))
def test_any_change_of_a_good_reply_is_a_reply_or_an_error_of_a_backend(provider: str, seed: int) -> None:
    """Whatever type a part of a reply has, and however deep it is: nothing else is raised, and all can be stored."""
    backend = load("backend", provider)(BackendSettings(model="m", base_url="http://127.0.0.1:9/v1"))
    try:
        reply = backend._read(sample_requests("tool")[0], {}, mutated(GOODS[provider], random.Random(seed)), 0.1)
    except BackendError:
        return
    require_usable(reply)


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.sampled_from([200, 307, 400, 401, 404, 422, 429, 500]))
def test_any_change_of_an_error_is_an_error_of_a_backend(seed: int, status: int) -> None:
    """Whatever an error's body holds, the status decides and the message stays short."""
    body = mutated(BAD, random.Random(seed))
    backend = open_backend(BackendSettings(model="m", base_url="http://127.0.0.1:9/v1"))
    if status == 200:
        with pytest.raises(BackendError):
            backend._read(sample_requests("schema")[0], {}, body, 0.1)
        return
    error = error_for(status, read_fault(body), "schema", {}, now=0.0, where="http://x/v1")
    assert error.status == status and len(error.message) < 400


@pytest.mark.parametrize("loc", [None, 3, "body", [["deep"], {"a": 1}], {"a": 1}, [[[]]], True])
def test_places_of_validation_errors_may_be_anything(loc: Any) -> None:
    """The message of a validation list is shown whatever its place is."""
    fault = read_fault(json.dumps({"detail": [{"loc": loc, "msg": "bad value"}]}).encode())
    assert fault.message.endswith("bad value")


@pytest.mark.parametrize("body", [b"<" * 1_000_000, b"<a" * 500_000, b"<" + b"a" * 1_000_000, b"[" * 1_000_000])
def test_huge_error_pages_are_read_at_once(body: bytes) -> None:
    """The time to read an error grows with its length at most."""
    began = time.process_time()
    assert len(read_fault(body).message) <= 300
    assert time.process_time() - began < 1


@pytest.mark.parametrize(
    ("usage", "tokens", "cost"),
    [
        ('"prompt_tokens": 5, "cost": 1' + "0" * 400, 5, None),
        ('"prompt_tokens": 1' + "0" * 400 + ', "cost": 0.5', None, 0.5),
        ('"prompt_tokens": 5.5, "cost": "0.5"', None, None),
        ('"prompt_tokens": "5", "cost": -1', None, None),
        ('"prompt_tokens": -5, "cost": 1e400', None, None),
        ('"prompt_tokens": true, "cost": true', None, None),
        ('"prompt_tokens": 5, "cost": 0', 5, 0.0),
    ],
)
def test_counts_and_costs_that_can_not_be(usage: str, tokens: int | None, cost: float | None) -> None:
    """What is no count of tokens or no price is unknown; the reply itself is used."""
    backend = open_backend(BackendSettings(model="m", base_url="http://127.0.0.1:9/v1"))
    body = '{"choices": [{"message": {"content": "hi"}}], "usage": {%s}}' % usage  # noqa: UP031 -- braces
    reply = backend._read(sample_requests("json")[0], {}, body.encode(), 0.1)
    assert (reply.text, reply.usage.prompt_tokens, reply.usage.cost_usd) == ("hi", tokens, cost)


@asynccontextmanager
async def answering(make: Callable[[str, str], bytes]) -> AsyncIterator[str]:
    """The address of a server that answers every request with what ``make(head, body)`` returns."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                if (first := await reader.readexactly(1)) == b"\x16":  # TLS
                    writer.write(http("", 400))
                    raise ConnectionError
                head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                size = int(head.lower().partition("content-length:")[2].split("\r\n")[0])
                body = (await reader.readexactly(size)).decode()
                writer.write(make(head, body))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ValueError):
            writer.close()

    listener = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/v1"
    finally:
        listener.close()


def http(body: str | bytes, status: int = 200, headers: str = "") -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n{headers}\r\n".encode() + data


@pytest.mark.parametrize(
    "escape", [str, lambda t: t.replace("+", "\\u002b").replace("/", "\\/").replace("=", "\\u003D")]
)
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500])
async def test_secrets_that_a_server_repeats(
    chat: Chat, status: int, escape: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Key, headers and query are blotted out in whatever comes back, however the server writes them."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    query = "tok/en+secret=1"

    def make(head: str, _: str) -> bytes:
        told = f"{head} {KEY} {query}".replace("\r\n", " ")
        call = {"function": {"name": told, "arguments": {told: told}}}
        message = {"content": told, "tool_calls": [call], "refusal": told, "reasoning": told}
        good = {"model": told, "choices": [{"finish_reason": told, "message": message}]}
        bad = {"error": {"message": told, "code": told, "param": told}}
        return http(escape(json.dumps(good if status == 200 else bad)), status)

    async with answering(make) as url:
        backend = chat(f"{url}?t=tok%2Fen%2Bsecret%3D1", headers={"X-Tenant": "tenant-77/88"}, attempts=1)
        with caplog.at_level(logging.DEBUG):
            try:
                shown = repr(await backend.send(sample_requests()[0]))
            except BackendError as error:
                shown = repr(error) + str(error) + repr(vars(error))
    assert "[redacted]" in shown
    for secret in ("0123/4567", "0123\\\\/4567", "tenant-77", "en+secret", "en%2Bsecret", "u002b0123"):
        assert secret not in shown + caplog.text


@pytest.mark.parametrize("packed", [False, True])
async def test_a_reply_without_end_is_given_up(chat: Chat, packed: bool) -> None:
    """No more than 16 MiB of a reply are taken in, unpacked; the next request is served."""
    body = b" " * (64 << 20)
    large = http(gzip.compress(body, 1), headers="Content-Encoding: gzip\r\n") if packed else http(body)
    answers = [http('{"choices": [{"message": {"content": "hi"}}]}'), large]
    async with answering(lambda *_: answers.pop()) as url:
        backend = chat(url)
        with pytest.raises(FinalBackendError, match="larger than 16 MiB"):
            await backend.send(sample_requests()[0])
        assert (await backend.send(sample_requests()[0])).text == "hi"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"hello\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: abc\r\n\r\n", "does not speak HTTP"),
        (http("x" * 99, headers="Content-Encoding: gzip\r\n"), "wrongly packed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: " + b"a" * 100_000 + b"\r\n\r\n12345", "does not speak HTTP"),
    ],
)
async def test_answers_that_are_no_http(chat: Chat, answer: bytes, told: str) -> None:
    """The message names the address and says what is wrong, without names of classes."""
    async with answering(lambda *_: answer) as url:
        with pytest.raises(BackendError) as caught:
            await chat(url, attempts=1).send(sample_requests()[0])
    assert told in caught.value.message and url in caught.value.message
    assert "Error" not in str(caught.value) and "Exception" not in str(caught.value)


async def test_a_refused_connection_names_the_address(chat: Chat) -> None:
    """Where nothing listens, the message has host, port and remedy."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    with pytest.raises(AccessError) as caught:
        await chat(url, attempts=1).send(sample_requests()[0])
    assert str(caught.value) == f"can't reach {url}: Connection refused\n  check the base URL and the server"


async def test_an_unknown_host_is_named(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a name can't be looked up, the message says so and names it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    async def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    with pytest.raises(AccessError) as caught:
        await chat("http://judge.invalid:8123/v1", attempts=1).send(sample_requests()[0])
    assert caught.value.message == "can't reach http://judge.invalid:8123/v1: no such host is known"


async def test_a_server_without_tls_is_told_apart(chat: Chat) -> None:
    """https to a server that speaks http stops at once with the remedy."""
    async with answering(lambda *_: http("{}")) as url:
        secure = url.replace("http:", "https:")
        with pytest.raises(AccessError) as caught:
            await chat(secure).send(sample_requests()[0])
    assert caught.value.message.startswith(f"can't reach {secure}: ")
    assert "http or https" in (caught.value.hint or "") and "Error" not in str(caught.value)


def test_a_bad_certificate_is_told_in_words() -> None:
    """Why a certificate does not hold is said without the client's own text."""
    inner = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    inner.verify_message = "self-signed certificate"
    key: Any = None
    error = aiohttp.ClientConnectorCertificateError(key, inner)
    assert reason(error, connect_s=1, timeout_s=1) == "its certificate does not hold: self-signed certificate"


@pytest.mark.parametrize("fault", ["401", "403"])
def test_one_error_for_many_workers(
    server: FakeServer, fault: str, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: Any
) -> None:
    """A refused key is one error from Python, whatever the number of workers; nothing is printed beside it."""
    path = tmp_path / "two.yaml"
    path.write_text(SCORE)
    with pytest.raises(AccessError):
        url = server.with_faults(fault=fault)
        judge(rows(40), path, "openai:m", out=tmp_path / "run", base_url=url, concurrency=16)
    assert caplog.records == [] and capfd.readouterr().err == ""


def test_workers_are_no_more_than_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A concurrency far above the pending trials starts one worker for each of them."""
    asked: list[int] = []
    from evenhand import run as running

    real = running.run_trials

    async def spy(*args: Any, concurrency: int, **more: Any) -> None:
        asked.append(concurrency)
        await real(*args, concurrency=concurrency, **more)

    monkeypatch.setattr(running, "run_trials", spy)
    path = tmp_path / "two.yaml"
    path.write_text(SCORE)
    for n in (3, 5, 5):
        judge(rows(n), path, "fake", out=tmp_path / "run", concurrency=10**15)
    assert asked == [3, 2, 1]


async def test_a_deep_call_ends_its_trial_only(tmp_path: Path) -> None:
    """Arguments nested beyond reason make that trial Failed; the others are scored."""
    good = '{"reason": "r", "truth": 3, "style": 2}'

    def make(_: str, body: str) -> bytes:
        deep = "What is 1?" in body
        message = {"content": None if deep else good, "tool_calls": [{"function": {"name": "f", "arguments": "@@"}}]}
        body = json.dumps({"choices": [{"message": message}]})
        return http(body.replace('"@@"', nested(600) if deep else json.dumps(good)))

    (tmp_path / "two.yaml").write_text(SCORE)
    data = write_jsonl(tmp_path / "data.jsonl", rows(3))
    async with answering(make) as url:
        from evenhand import judge_async

        await judge_async(data, tmp_path / "two.yaml", "openai:m", out=tmp_path / "run", base_url=url, re_ask=False)
    assert statuses(tmp_path / "run") == {("i0", "", 0): "scored", ("i1", "", 0): "failed", ("i2", "", 0): "scored"}


def test_a_retryable_error_of_an_envelope_says_why() -> None:
    """What is wrong with an envelope is said."""
    backend = open_backend(BackendSettings(model="m", base_url="http://127.0.0.1:9/v1"))
    for body, told in (
        (b"{", "not JSON at character 2"),
        (b'"\xff"', "not UTF-8"),
        (nested(400).encode(), "too deeply"),
    ):
        with pytest.raises(RetryableBackendError, match=told):
            backend._read(sample_requests("schema")[0], {}, body, 0.1)


def _for_run(data: dict[str, Any]) -> dict[str, Any]:
    """A good reply to the rubric of a run."""
    message = {"content": '{"reason": "r", "truth": 3, "style": 2}', "refusal": None, "tool_calls": []}
    return {**data, "choices": [{**data["choices"][0], "message": message}]}


def test_a_run_over_a_mad_server_ends_with_every_trial_stored(tmp_path: Path) -> None:
    """Each of many mutated replies ends as a stored verdict; figures and export can be made of the run."""

    async def judged() -> None:
        async with answering(lambda _, body: http(mutated(_for_run(GOOD), random.Random(body)))) as url:
            spec = make_spec(rows(150), TWO, "openai:m", out=tmp_path / "run", base_url=url, concurrency=8)
            await run(replace(spec, attempts=1))

    asyncio.run(judged())
    found = statuses(tmp_path / "run").values()
    assert len(found) == 150 and set(found) >= {"scored", "failed"}
    told = Run(tmp_path / "run").summary()
    assert told["planned"] == 150 and json.dumps(told, allow_nan=False)
    assert len(list(Run(tmp_path / "run").rows())) == 150
