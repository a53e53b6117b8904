"""The chat-completions backend against a server that misbehaves."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from evenhand.backend import BackendSettings, Request
from evenhand.backends.openai_chat import open_backend
from evenhand.backends.paced import Paced
from evenhand.errors import (
    AccessError,
    BackendError,
    FinalBackendError,
    InputError,
    RetryableBackendError,
    UnsupportedFeatureError,
)
from evenhand.parse import read
from evenhand.testing.conformance import check_backend, check_failing, sample_requests
from evenhand.testing.server import FakeServer
from evenhand.verdict import Failure

Chat = Callable[..., Paced]
KEY = "sk-test-0123456789abcdef"


def ask(form: Any = "schema", **changes: Any) -> Request:
    return sample_requests(form, **changes)[0]


def tries_at(server: FakeServer, url: str) -> list[dict[str, Any]]:
    """The requests that reached one behaviour of the server."""
    return server.requests(url)


async def test_conforms(server: FakeServer) -> None:
    """It does what every backend must do."""
    url = server.with_faults(latency="1-5")
    await check_backend(lambda: open_backend(BackendSettings(model="judge-1", base_url=url)))


@pytest.mark.parametrize(
    ("fault", "tries"),
    [
        ("429:first2", 3),
        ("500:first1", 2),
        ("502:first1", 2),
        ("503:first3", 4),
        ("408:first1", 2),
        ("409:first1", 2),
        ("reset:first1", 2),
        ("close:first1", 2),
        ("cut:first2", 3),
        ("envelope:first1", 2),
        ("choices:first1", 2),
        ("gateway:first1", 2),
        ("slow", 1),
    ],
)
async def test_passing_faults_are_retried(server: FakeServer, chat: Chat, fault: str, tries: int) -> None:
    """A fault that passes costs tries, not the reply."""
    url = server.with_faults(fault=fault, retry_after=0.02)
    reply = await chat(url).send(ask())
    assert 0 <= json.loads(reply.text or "")["score"] <= 10
    assert len(tries_at(server, url)) == tries


@pytest.mark.parametrize("fault", ["429", "500", "503", "409", "cut", "envelope", "choices", "gateway"])
async def test_lasting_faults_end_retryable(server: FakeServer, chat: Chat, fault: str) -> None:
    """A fault that stays is raised after the given number of tries, with what identifies the request."""
    url = server.with_faults(fault=fault, retry_after=0.01)
    request = ask()
    with pytest.raises(RetryableBackendError) as caught:
        await chat(url, attempts=3).send(request)
    assert (caught.value.backend, caught.value.model) == ("openai", "judge-1")
    assert caught.value.request_digest == request.digest
    assert len(tries_at(server, url)) == 3


@pytest.mark.parametrize(
    ("fault", "kind", "status"),
    [
        ("401", AccessError, 401),
        ("403", AccessError, 403),
        ("404", AccessError, 404),
        ("quota", AccessError, 429),
        ("redirect", AccessError, 302),
        ("400", FinalBackendError, 400),
        ("422", FinalBackendError, 422),
    ],
)
async def test_final_faults_are_not_retried(
    server: FakeServer, chat: Chat, fault: str, kind: type[BackendError], status: int
) -> None:
    """What no retry can mend is raised at once, as its own kind of error."""
    url = server.with_faults(fault=fault)
    with pytest.raises(kind) as caught:
        await chat(url).send(ask())
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert len(tries_at(server, url)) == 1


@pytest.mark.parametrize(("style", "wait"), [("seconds", 0.25), ("ms", 0.25), ("reset", 0.25), ("date", 0.3)])
async def test_no_try_before_its_time(server: FakeServer, chat: Chat, style: str, wait: float) -> None:
    """The next try never comes before the time the server named, however it names it."""
    url = server.with_faults(fault="429:first1", retry_after=wait, style=style)
    early = server.stats()["early"]
    await chat(url).send(ask())
    first, second = (seen["at"] for seen in tries_at(server, url))
    assert server.stats()["early"] == early
    assert second - first >= (wait if style != "date" else 0.0)
    assert second - first < wait + 2.5


async def test_a_wait_beyond_the_deadline_is_left_to_the_caller(server: FakeServer, chat: Chat) -> None:
    """Where the server asks for more time than there is, the error says how long and nothing waits."""
    url = server.with_faults(fault="429", retry_after=60)
    began = time.monotonic()
    with pytest.raises(RetryableBackendError) as caught:
        await chat(url).send(ask())
    assert caught.value.retry_after_s == 60
    assert time.monotonic() - began < 5
    assert len(tries_at(server, url)) == 1


async def test_a_hanging_server_times_out(server: FakeServer, chat: Chat) -> None:
    """A try that gets no answer ends after timeout_s; the next one may succeed."""
    url = server.with_faults(fault="hang:first1")
    backend = chat(url, timeout_s=0.3)
    reply = await backend.send(ask())
    assert reply.text
    assert len(tries_at(server, url)) == 2


async def test_an_endpoint_that_never_answered_stops_the_run(chat: Chat) -> None:
    """Where nothing ever listened, the error is one that stops the run."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    backend = chat(f"http://127.0.0.1:{port}/v1", attempts=2)
    error = await check_failing(lambda: backend)
    assert isinstance(error, AccessError)
    assert "can't reach" in error.message


async def test_an_endpoint_that_has_answered_may_come_back(server: FakeServer, chat: Chat) -> None:
    """After one answer, a lost connection is an outage and no reason to stop."""
    backend = chat(server.with_faults(fault="500:first1+reset"), attempts=3)
    with pytest.raises(RetryableBackendError):
        await backend.send(ask())


@pytest.mark.parametrize(("form", "refuse"), [("schema", "json_schema"), ("tool", "tools"), ("json", "json_object")])
async def test_a_refused_form_is_an_unsupported_feature(server: FakeServer, chat: Chat, form: str, refuse: str) -> None:
    """An endpoint without the output form says so in one try; the plain form still works."""
    url = server.with_faults(refuse=refuse)
    backend = chat(url)
    with pytest.raises(UnsupportedFeatureError) as caught:
        await backend.send(ask(form))
    assert caught.value.feature == form
    assert len(tries_at(server, url)) == 1
    assert (await backend.send(ask("text"))).text


async def test_bodies_of_the_forms(server: FakeServer, chat: Chat) -> None:
    """Each form is asked for in the way of the chat-completions interface."""
    url = server.with_faults()
    backend = chat(url)
    for form in ("schema", "tool", "json", "text", "lines"):
        await backend.send(ask(form))
    schema, tool, plain, text, lines = (seen["body"] for seen in tries_at(server, url))
    wanted = ask().schema
    assert schema["response_format"]["json_schema"] == {"name": "verdict", "strict": True, "schema": wanted}
    assert schema["model"] == "judge-1" and schema["temperature"] == 0.0 and schema["max_tokens"] == 200
    assert tool["tools"][0]["function"]["parameters"] == wanted
    assert tool["tool_choice"] == {"type": "function", "function": {"name": "submit_verdict"}}
    assert plain["response_format"] == {"type": "json_object"}
    for body in (text, lines):
        assert set(body) == {"model", "messages", "temperature", "max_tokens"}


async def test_reply_of_a_call(server: FakeServer, chat: Chat) -> None:
    """A call's name and arguments, usage, model and finish reason reach the reply."""
    reply = await chat(server.with_faults(model_alias="judge-1-0824")).send(ask("tool"))
    assert reply.tool_calls[0].name == "submit_verdict"
    assert isinstance(reply.tool_calls[0].arguments, str)
    assert reply.model == "judge-1-0824"
    assert reply.usage.prompt_tokens and reply.usage.completion_tokens and reply.usage.cached_tokens == 0
    assert reply.usage.latency_s is not None and reply.usage.latency_s > 0
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    ("fault", "text", "finish"),
    [("empty", "", "stop"), ("null", None, "stop"), ("filter", None, "content_filter"), ("refusal", None, "stop")],
)
async def test_bad_replies_are_replies(
    server: FakeServer, chat: Chat, fault: str, text: str | None, finish: str
) -> None:
    """A reply that can't be read is returned as it is, after one try."""
    url = server.with_faults(fault=fault)
    reply = await chat(url).send(ask())
    assert (reply.text, reply.finish) == (text, finish)
    assert bool(reply.refusal) == (fault == "refusal")
    assert len(tries_at(server, url)) == 1


@pytest.mark.parametrize("fault", ["prose", "fenced", "invalid", "length"])
async def test_replies_that_break_the_form_are_not_mended_here(server: FakeServer, chat: Chat, fault: str) -> None:
    """What the content means is the reader's business, not the backend's."""
    reply = await chat(server.with_faults(fault=fault)).send(ask())
    assert reply.text
    assert reply.finish == ("length" if fault == "length" else "stop")


async def test_a_filtered_prompt_is_a_refusal(server: FakeServer, chat: Chat) -> None:
    """A prompt stopped by the provider's filter is a refusal, not an error."""
    reply = await chat(server.with_faults(fault="moderation")).send(ask())
    assert reply.refusal and reply.finish == "content_filter" and reply.text is None


async def test_the_first_of_several_choices_is_read(server: FakeServer, chat: Chat) -> None:
    """Of several choices the one with index 0 counts."""
    one = await chat(server.with_faults(choices=1, seed=3)).send(ask())
    three = await chat(server.with_faults(choices=3, seed=3)).send(ask())
    assert three.text == one.text
    assert (three.usage.completion_tokens or 0) > 2 * (one.usage.completion_tokens or 0)  # so there were three


async def test_refused_parameters_are_learned(server: FakeServer, chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """Parameters refused by name are renamed or dropped, once for the backend, and said in the log."""
    url = server.with_faults(refuse=["temperature", "max_tokens", "seed", "system"])
    backend = chat(url, attempts=1)
    with caplog.at_level(logging.WARNING):
        reply = await backend.send(ask(settings={"temperature": 0.0, "max_tokens": 50, "seed": 1, "top_p": 0.9}))
    assert reply.text
    assert backend.inner.learned == {
        "temperature": None,
        "max_tokens": "max_completion_tokens",
        "seed": None,
        "system role": "user",
    }
    assert len(caplog.records) == 4
    last = tries_at(server, url)[-1]["body"]
    assert last["max_completion_tokens"] == 50 and last["top_p"] == 0.9
    assert [m["role"] for m in last["messages"]] == ["user"]
    assert "Rate the answer" in last["messages"][0]["content"]
    before = len(tries_at(server, url))
    await backend.send(ask(settings={"temperature": 0.0, "max_tokens": 50}, item_id="other"))
    assert len(tries_at(server, url)) == before + 1


async def test_learning_is_safe_in_flight(server: FakeServer, chat: Chat) -> None:
    """Requests that are refused at the same time all get through."""
    url = server.with_faults(refuse="temperature+max_tokens", latency="5-20")
    backend = chat(url, attempts=1)
    replies = await asyncio.gather(*(backend.send(request) for request in sample_requests(n=8)))
    assert all(reply.text for reply in replies)


async def test_requests_in_flight_are_bounded(server: FakeServer, chat: Chat) -> None:
    """No more requests are on the wire than the settings allow, and waiting for a turn is no timeout."""
    server.reset()
    backend = chat(server.with_faults(latency="60"), concurrency=3, timeout_s=0.4)
    await asyncio.gather(*(backend.send(request) for request in sample_requests(n=30)))
    assert server.stats()["max_inflight"] == 3


async def test_a_share_of_faults_under_load(server: FakeServer, chat: Chat) -> None:
    """With mixed faults at once every request ends in a reply, and none comes too early."""
    server.reset()
    url = server.with_faults(fault="429:0.2+500:0.05+reset:0.05+cut:0.05", retry_after=0.05)
    backend = chat(url, attempts=10, concurrency=32)
    replies = await asyncio.gather(*(backend.send(request) for request in sample_requests(n=200)))
    assert all(reply.text for reply in replies)
    stats = server.stats()
    assert stats["early"] == 0 and stats["distinct"] == 200
    assert set(stats["by_fault"]) == {"429", "500", "reset", "cut"}


async def test_the_key_is_sent_and_never_shown(
    server: FakeServer, chat: Chat, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The key goes into its header only: not into repr, identity, errors, logs or what is stored."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    header = {"X-Tenant": "tenant-secret-77"}
    url = server.with_faults(fault="401", echo=True)
    backend = chat(url, headers=header)
    with caplog.at_level(logging.DEBUG), pytest.raises(AccessError) as caught:
        await backend.send(ask())
    sent = tries_at(server, url)[0]["headers"]
    assert sent["authorization"] == f"Bearer {KEY}" and sent["x-tenant"] == "tenant-secret-77"
    assert "[redacted]" in str(caught.value)
    echoing = await chat(server.with_faults(reply=f"I was sent {KEY}")).send(ask())
    inner = backend.inner
    shown = [repr(inner), repr(inner._endpoint), str(dict(inner.identity)), repr(caught.value), caplog.text]
    for text in [*shown, str(caught.value), repr(echoing), repr(caught.value.__dict__)]:
        assert KEY not in text and "tenant-secret-77" not in text
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


async def test_text_without_utf8_form_is_sent(server: FakeServer, chat: Chat) -> None:
    """Half a surrogate pair in judged text does not stop the request."""
    url = server.with_faults(reply="broken \\ud83d emoji")
    request = ask("text", messages=({"role": "user", "content": "half \ud83d pair"},))
    assert (await chat(url).send(request)).text
    assert tries_at(server, url)[0]["body"]["messages"][0]["content"] == "half ? pair"


def test_a_key_is_needed_beyond_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key nothing is sent to another machine; this machine needs none."""
    for url in (None, "https://judge.example/v1"):
        with pytest.raises(InputError, match="OPENAI_API_KEY"):
            open_backend(BackendSettings(model="m", base_url=url))
    for url in ("http://localhost:8000/v1", "http://127.0.0.2/v1", "http://[::1]:9/v1"):
        assert open_backend(BackendSettings(model="m", base_url=url)).identity["endpoint"] == url
    assert open_backend(BackendSettings(model="m", headers={"api-key": "k"})).model == "m"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert open_backend(BackendSettings(model="m")).identity["endpoint"] == "https://api.openai.com/v1"


@pytest.mark.parametrize(
    "settings",
    [
        BackendSettings(base_url="http://127.0.0.1/v1"),
        BackendSettings(model="m", base_url="127.0.0.1:8000"),
        BackendSettings(model="m", base_url="ftp://127.0.0.1/v1"),
        BackendSettings(model="m", base_url="http://127.0.0.1:99999/v1"),
        BackendSettings(model="m", base_url="http://user:pass@127.0.0.1/v1"),
        BackendSettings(model="m", base_url="http://127.0.0.1/v1", headers={"X": "a\nb"}),
    ],
)
def test_settings_that_can_not_work_are_input_errors(settings: BackendSettings) -> None:
    """What can never work is said before anything is sent, without showing secrets."""
    with pytest.raises(InputError) as caught:
        open_backend(settings)
    assert caught.value.hint or "header" in caught.value.message
    assert "pass@" not in str(caught.value)


def test_the_address_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """OPENAI_BASE_URL stands in for the option; a full address is cut to its base, a query is kept out of sight."""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:5/v1/chat/completions?api-version=secret-2024")
    backend = open_backend(BackendSettings(model="m"))
    assert backend.identity["endpoint"] == "http://127.0.0.1:5/v1"
    assert backend._url == "http://127.0.0.1:5/v1/chat/completions?api-version=secret-2024"


async def test_loopback_bypasses_proxies(server: FakeServer, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment is for other machines only."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert (await chat(server.with_faults()).send(ask())).text
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert open_backend(BackendSettings(model="m", base_url="https://judge.example/v1"))._proxy == "http://127.0.0.1:9"
    monkeypatch.setenv("https_proxy", "socks5://127.0.0.1:9")
    with pytest.raises(InputError, match="socks5"):
        open_backend(BackendSettings(model="m", base_url="https://judge.example/v1"))
    monkeypatch.setenv("no_proxy", "judge.example")
    assert open_backend(BackendSettings(model="m", base_url="https://judge.example/v1"))._proxy is None


async def test_a_closed_backend_sends_nothing(server: FakeServer, chat: Chat) -> None:
    """After closing, a send is an error and opens no connection."""
    backend = chat(server.url)
    await backend.aclose()
    with pytest.raises(FinalBackendError, match="closed"):
        await backend.send(ask())


@pytest.fixture(scope="module")
def reference(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An independent fake server."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "bench" / "fake_openai"
    if not folder.exists():
        pytest.skip("../shared is absent")
    sys.path.insert(0, str(folder))
    import fake_openai  # type: ignore[import-not-found]

    with fake_openai.FakeOpenAI() as fake:
        yield fake
    sys.path.remove(str(folder))
    sys.modules.pop("fake_openai", None)


REFERENCE: dict[str, Any] = {
    **dict.fromkeys(("429", "503", "500", "502", "cut", "envelope"), RetryableBackendError),
    **dict.fromkeys(("reset", "close", "hang", "401"), AccessError),  # silent ones: nothing ever answered
    "400": FinalBackendError,
    **dict.fromkeys(("empty", "null"), Failure.EMPTY),
    **dict.fromkeys(("refusal", "filter"), Failure.REFUSAL),
    **dict.fromkeys(("length", "malformed"), Failure.TRUNCATED),
    "prose": Failure.NO_RATING,
    "invalid": Failure,
    **dict.fromkeys(("fenced", "slow"), None),
}


@pytest.mark.parametrize("fault", REFERENCE)
async def test_the_reference_server(reference: Any, chat: Chat, fault: str) -> None:
    """Every fault of an independent fake server is understood; those that pass cost a try."""
    expected = REFERENCE[fault]
    settings = {"retry_after": 0.02, "slow_ms": 50}
    backend = chat(reference.url_with(fault=fault, **settings), attempts=2, timeout_s=0.3 if fault == "hang" else 5.0)
    if isinstance(expected, type) and issubclass(expected, BackendError):
        assert type(await check_failing(lambda: backend)) is expected
        if expected is RetryableBackendError or fault in ("reset", "close", "hang"):
            url = reference.url_with(fault=f"{fault}:first1", **settings)
            for form in ("schema", "tool", "json"):
                for request in sample_requests(form, 2):
                    reply = await chat(url, attempts=2, timeout_s=0.3 if fault == "hang" else 5.0).send(request)
                    assert read(reply, request.fields).failure is None
        return
    reading = read(await backend.send(ask()), ask().fields)
    failure = reading.failure or reading.fields["score"].failure
    assert isinstance(failure, Failure) if expected is Failure else failure == expected


def test_requests_are_not_told_apart_by_where_they_came_from() -> None:
    """Ids and attempts are outside what is sent, so that equal questions are equal bodies."""
    from evenhand.backends.chat_wire import body_of

    request = ask()
    assert body_of(request, "m", {}) == body_of(replace(request, item_id="x", order="ba", attempt=1), "m", {})
