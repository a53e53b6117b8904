"""Every fault of a server, with every provider's interface: the outcome, and how many tries it takes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from evenhand.backend import BackendSettings, Request
from evenhand.backends.paced import Paced
from evenhand.errors import (
    AccessError,
    BackendError,
    FinalBackendError,
    RetryableBackendError,
    UnsupportedFeatureError,
)
from evenhand.parse import read
from evenhand.registry import load
from evenhand.testing.conformance import check_backend, check_failing, sample_requests
from evenhand.testing.server import FakeServer
from evenhand.verdict import Failure, Reply

Chat = Callable[..., Paced]
PROVIDERS = ("openai", "anthropic", "gemini", "bedrock")
PASSING = (
    "429", "500", "502", "503", "529", "408", "409",
    "reset", "close", "cut", "hang", "envelope", "choices", "gateway",
)  # fmt: skip
FINAL = {
    "401": AccessError,
    "403": AccessError,
    "404": AccessError,
    "quota": AccessError,
    "redirect": AccessError,
    "400": FinalBackendError,
    "422": FinalBackendError,
}
READ: dict[str, Failure | None] = {
    "empty": Failure.EMPTY,
    "null": Failure.EMPTY,
    "refusal": Failure.REFUSAL,
    "filter": Failure.REFUSAL,
    "moderation": Failure.REFUSAL,
    "prose": Failure.NO_RATING,
    "fenced": None,
    "invalid": Failure.OUT_OF_RANGE,
    "length": Failure.TRUNCATED,
    "slow": None,
}
#: Parameters that each interface has, and may lose.
PARAMETERS = {
    "openai": ("temperature", "max_tokens", "seed", "top_p", "logprobs", "top_logprobs", "system"),
    "anthropic": ("temperature", "top_p"),
    "gemini": ("temperature", "max_tokens", "seed", "top_p", "system"),
    "bedrock": ("temperature", "max_tokens", "top_p", "system"),
}
VALUES = {"temperature": 0.0, "max_tokens": 50, "seed": 1, "top_p": 0.9, "logprobs": True, "top_logprobs": 3}
#: What the server says where no schema binds it.
VERDICT = '{"reason": "r", "score": 7}'
FORMS = {"schema": "json_schema", "tool": "tools", "json": "json_object"}

each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def ask(form: Any = "schema", **changes: Any) -> Request:
    return sample_requests(form, **changes)[0]


def tries_at(server: FakeServer, url: str) -> list[dict[str, Any]]:
    """The requests that reached one behaviour of the server."""
    return server.requests(url)


def failure_of(reply: Reply) -> Failure | None:
    """What the reader makes of the score."""
    reading = read(reply, ask().fields, function="submit_verdict")
    return reading.failure or reading.fields["score"].failure


@pytest.fixture
def early(server: FakeServer) -> Any:
    """No request of the test came before its time."""
    before = server.stats()["early"]
    yield
    assert server.stats()["early"] == before


@each_provider
async def test_conforms(server: FakeServer, provider: str) -> None:
    """It does what every backend must do, in every form."""
    url = server.with_faults(latency="1-5")
    await check_backend(lambda: load("backend", provider)(BackendSettings(model="m-1:0", base_url=url)))


@pytest.mark.usefixtures("early")
@each_provider
@pytest.mark.parametrize("fault", PASSING)
async def test_what_passes_costs_a_try(server: FakeServer, chat: Chat, provider: str, fault: str) -> None:
    """After a fault that passes the reply comes whole, with the next try."""
    url = server.with_faults(fault=f"{fault}:first1", retry_after=0.02)
    reply = await chat(url, provider, attempts=2, timeout_s=0.3 if fault == "hang" else 5.0).send(ask())
    assert failure_of(reply) is None
    assert len(tries_at(server, url)) == 2


@pytest.mark.usefixtures("early")
@each_provider
@pytest.mark.parametrize("fault", PASSING)
async def test_what_stays_ends_after_the_tries(server: FakeServer, chat: Chat, provider: str, fault: str) -> None:
    """A fault that stays is an error after as many tries as are allowed; a server that never answered stops all."""
    url = server.with_faults(fault=fault, retry_after=0.02)
    backend = chat(url, provider, attempts=2, timeout_s=0.2 if fault == "hang" else 5.0)
    error = await check_failing(lambda: backend)
    silent = fault in ("reset", "close", "hang")
    assert type(error) is (AccessError if silent else RetryableBackendError)
    assert (error.backend, error.model) == (provider, "judge-1")
    assert len(tries_at(server, url)) == 2


@each_provider
@pytest.mark.parametrize("fault", FINAL)
async def test_what_no_retry_mends_is_said_at_once(server: FakeServer, chat: Chat, provider: str, fault: str) -> None:
    """Key, model, quota and requests that are wrong are errors of their own kind after one try."""
    url = server.with_faults(fault=fault)
    backend = chat(url, provider)
    error = await check_failing(lambda: backend)
    assert type(error) is FINAL[fault]
    assert fault != "400" or "context" in (error.hint or "")
    assert len(tries_at(server, url)) == 1


@each_provider
@pytest.mark.parametrize("form", ["schema", "tool", "text"])
@pytest.mark.parametrize("fault", READ)
async def test_bad_replies_are_outcomes(server: FakeServer, chat: Chat, provider: str, fault: str, form: str) -> None:
    """A reply that holds no verdict is a reply after one try, and reads as the same failure with all providers."""
    url = server.with_faults(fault=fault, plain=VERDICT)
    reply = await chat(url, provider).send(ask(form))
    assert failure_of(reply) == READ[fault]
    assert len(tries_at(server, url)) == 1


@pytest.mark.usefixtures("early")
@each_provider
async def test_no_try_before_its_time(server: FakeServer, chat: Chat, provider: str) -> None:
    """The next try waits as long as the server says, in the ways of its provider; used up limits go with 429."""
    ways = [(fault, style) for fault in ("429", "503", "529") for style in ("seconds", "date", "ms", "none")]
    ways.append(("429", "reset"))
    urls = [server.with_faults(fault=f"{fault}:first1", retry_after=0.15, style=style) for fault, style in ways]
    await asyncio.gather(*(chat(url, provider).send(ask()) for url in urls))
    for url, (fault, style) in zip(urls, ways, strict=True):
        first, second = (seen["at"] for seen in tries_at(server, url))
        assert second - first >= (0.15 if style in ("seconds", "ms") else 0), (fault, style)
        assert second - first < 3.5, (fault, style)


@each_provider
async def test_refused_parameters_are_learned(server: FakeServer, chat: Chat, provider: str) -> None:
    """Each parameter that is refused by name is left out, or named otherwise, from then on."""
    for name in PARAMETERS[provider]:
        url = server.with_faults(refuse=name)
        backend = chat(url, provider, attempts=1)
        settings = {key: value for key, value in VALUES.items() if key in PARAMETERS[provider]}
        for expected in (2, 3):
            assert failure_of(await backend.send(ask(settings=settings))) is None
            assert len(tries_at(server, url)) == expected, name
        assert set(backend.inner.learned) >= {"system role" if name == "system" else name}
        assert len(backend.inner.learned) == (2 if "logprobs" in name else 1)


@each_provider
@pytest.mark.parametrize("form", FORMS)
async def test_refused_forms_are_unsupported_features(server: FakeServer, chat: Chat, provider: str, form: str) -> None:
    """A form that is refused is told as such, in one try, and others still work."""
    backend = chat(url := server.with_faults(refuse=FORMS[form], plain=VERDICT), provider)
    if form not in backend.forms:
        pytest.skip(f"{provider} has no form {form}")
    with pytest.raises(UnsupportedFeatureError) as caught:
        await backend.send(ask(form))
    assert caught.value.feature == form
    assert len(tries_at(server, url)) == 1
    assert failure_of(await backend.send(ask("text"))) is None


@each_provider
async def test_the_key_is_sent_and_never_shown(
    server: FakeServer, chat: Chat, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    """The key goes into its header only, and a server that repeats it is not repeated."""
    variable, header = {
        "openai": ("OPENAI_API_KEY", "authorization"),
        "anthropic": ("ANTHROPIC_API_KEY", "x-api-key"),
        "gemini": ("GOOGLE_API_KEY", "x-goog-api-key"),
        "bedrock": ("AWS_BEARER_TOKEN_BEDROCK", "authorization"),
    }[provider]
    monkeypatch.setenv(variable, "key-0123456789abcdef")
    url = server.with_faults(fault="500", echo=True)
    with pytest.raises(BackendError) as caught:
        await chat(url, provider, attempts=1).send(ask())
    assert tries_at(server, url)[0]["headers"][header].endswith("key-0123456789abcdef")
    assert "[redacted]" in str(caught.value) and "0123456789" not in str(caught.value)


@pytest.mark.usefixtures("early")
@each_provider
async def test_a_share_of_faults_loses_nothing(server: FakeServer, chat: Chat, provider: str) -> None:
    """With many faults at once every request ends in a reply of its own."""
    url = server.with_faults(fault="429:0.2+529:0.05+reset:0.05+cut:0.05+envelope:0.05", retry_after=0.03)
    backend = chat(url, provider, attempts=12, concurrency=8)
    replies = await asyncio.gather(*(backend.send(request) for request in sample_requests(n=40)))
    assert [failure_of(reply) for reply in replies] == [None] * 40
    tries: dict[str, int] = {}
    for seen in tries_at(server, url):
        body = json.dumps(seen["body"])
        tries[body] = tries.get(body, 0) + 1
    assert len(tries) == 40 and max(tries.values()) <= 12
