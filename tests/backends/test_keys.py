"""Keys: by host, from the environment or the keyring, sent to nobody else; and signed requests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from evenhand.backend import BackendSettings
from evenhand.backends.paced import Paced
from evenhand.errors import AccessError, InputError, MissingExtraError
from evenhand.registry import load
from evenhand.testing.conformance import sample_requests
from evenhand.testing.server import FakeServer

Chat = Callable[..., Paced]
OWN = {
    "OPENROUTER_API_KEY": "https://openrouter.ai/api/v1",
    "AZURE_OPENAI_API_KEY": "https://name.openai.azure.com/openai/v1",
    "DEEPSEEK_API_KEY": "https://api.deepseek.com",
    "GROQ_API_KEY": "https://api.groq.com/openai/v1",
    "MISTRAL_API_KEY": "https://api.mistral.ai/v1",
    "TOGETHER_API_KEY": "https://api.together.xyz/v1",
}


def headers(base_url: str, provider: str = "openai", **settings: Any) -> dict[str, str]:
    """The headers a backend would send, names in lower case."""
    made = load("backend", provider)(BackendSettings(model="m", base_url=base_url, **settings))
    return {name.lower(): value for name, value in made._endpoint.headers.items()}


@pytest.mark.parametrize("variable", OWN)
def test_hosts_have_keys_of_their_own(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The key of a host goes there, and OPENAI_API_KEY does not; without it the usual one serves."""
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    header = "api-key" if "AZURE" in variable else "authorization"
    assert headers(OWN[variable])[header].endswith("usual-key")
    monkeypatch.setenv(variable, "own-key")
    sent = headers(OWN[variable])
    assert sent[header] == ("own-key" if header == "api-key" else "Bearer own-key")
    assert "usual-key" not in str(sent)
    for other in ("https://judge.example/v1", f"https://x{OWN[variable].split('/')[2]}.example/v1"):
        assert headers(other)["authorization"] == "Bearer usual-key"


@pytest.mark.parametrize(
    ("base", "url"),
    [
        (
            "https://name.openai.azure.com/openai/deployments/judge?api-version=2024-10-21",
            "https://name.openai.azure.com/openai/deployments/judge/chat/completions?api-version=2024-10-21",
        ),
        (
            "https://name.openai.azure.com/openai/v1/chat/completions",
            "https://name.openai.azure.com/openai/v1/chat/completions",
        ),
    ],
)
def test_both_addresses_of_azure(base: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deployment with its api-version, and the newer path."""
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "own-key")
    assert load("backend", "openai")(BackendSettings(model="m", base_url=base))._url == url


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A keyring with what the test puts in, under the service evenhand."""
    found: dict[str, str] = {}
    module, errors = ModuleType("keyring"), ModuleType("keyring.errors")

    class KeyringError(Exception):
        pass

    def get_password(service: str, name: str) -> str | None:
        assert service == "evenhand"
        if found.get(name) == "locked":
            raise KeyringError("locked")
        return found.get(name)

    module.get_password = get_password  # type: ignore[attr-defined]
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return found


def test_a_keyring_serves_where_the_environment_does_not(
    keyring: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable first, then the keyring under its name; a locked keyring holds nothing."""
    with pytest.raises(InputError, match="no API key") as caught:
        headers("https://api.anthropic.com", "anthropic")
    assert "keyring" in (caught.value.hint or "")
    keyring["ANTHROPIC_API_KEY"] = "stored-key"
    assert headers("https://api.anthropic.com", "anthropic")["x-api-key"] == "stored-key"
    assert "x-api-key" not in headers("http://127.0.0.1:9", "anthropic")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "set-key")
    assert headers("https://api.anthropic.com", "anthropic")["x-api-key"] == "set-key"
    monkeypatch.setenv("OPENAI_API_KEY", "usual-key")
    keyring["OPENROUTER_API_KEY"] = "own-key"
    assert headers(OWN["OPENROUTER_API_KEY"])["authorization"] == "Bearer own-key"
    keyring["OPENROUTER_API_KEY"] = "locked"
    assert headers(OWN["OPENROUTER_API_KEY"])["authorization"] == "Bearer usual-key"


def test_without_the_package_there_is_no_keyring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where keyring is not installed, only the environment is asked."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(InputError, match="no API key"):
        headers("https://host", "gemini")


def test_the_first_of_two_variables_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """GEMINI_API_KEY before GOOGLE_API_KEY."""
    monkeypatch.setenv("GOOGLE_API_KEY", "google-key")
    assert headers("https://host/v1beta", "gemini")["x-goog-api-key"] == "google-key"
    monkeypatch.setenv("GEMINI_API_KEY", "gemini-key")
    assert headers("https://host/v1beta", "gemini")["x-goog-api-key"] == "gemini-key"


def test_signing_needs_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bearer key and without botocore, the error names the extra."""
    monkeypatch.setenv("AWS_REGION", "eu-x-1")
    monkeypatch.setitem(sys.modules, "botocore.session", None)
    with pytest.raises(MissingExtraError, match=r"evenhand\[bedrock\]"):
        load("backend", "bedrock")(BackendSettings(model="m"))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bearer-key-1")
    opened = load("backend", "bedrock")(BackendSettings(model="m"))
    assert opened._endpoint.headers["Authorization"] == "Bearer bearer-key-1"


async def test_requests_are_signed(server: FakeServer, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature holds for the very bytes and path that arrive; what signs them is shown nowhere."""
    pytest.importorskip("botocore", reason="botocore is not installed (evenhand[bedrock])")
    secret, token = "secret/0123456789abcdefSECRET", "session-token-0123456789ABCDEF"
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0123456789ABCDEF")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    monkeypatch.setenv("AWS_REGION", "eu-x-1")
    url = server.with_faults(fault="500:first1", reply=f'{{"reason": "{token}", "score": 3}}')
    backend = chat(url, "bedrock", retry={"base_s": 0.0})
    reply = await backend.send(sample_requests()[0])
    assert token not in str(reply) and "[redacted]" in str(reply.text)
    assert secret not in repr(backend.inner) + repr(backend.inner._endpoint)
    seen = server.requests(url)
    assert len(seen) == 2
    for one in seen:
        assert one["headers"]["authorization"] == _signature(url, one)


def _signature(url: str, seen: dict[str, Any]) -> str:
    """What a server computes from what it received."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    root = url.split("/~")[0]
    given = seen["headers"]
    signed = {name: given[name] for name in ("content-type", "accept", "x-amz-date", "x-amz-security-token")}
    request = AWSRequest("POST", f"{root}/{seen['path']}/{seen['url']}", headers=signed, data=seen["raw"].encode())
    request.context["timestamp"] = given["x-amz-date"]
    credentials = Credentials("AKIA0123456789ABCDEF", "secret/0123456789abcdefSECRET", given["x-amz-security-token"])
    auth = SigV4Auth(credentials, "bedrock", "eu-x-1")
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    names = given["authorization"].split("SignedHeaders=")[1].split(",")[0]
    scope = f"Credential={auth.scope(request)}"
    return f"AWS4-HMAC-SHA256 {scope}, SignedHeaders={names}, Signature={signature}"


async def test_credentials_that_end_stop_the_run(
    chat: Chat, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Session credentials that can't be renewed are a question of access."""
    exceptions = pytest.importorskip("botocore.exceptions", reason="botocore is not installed (evenhand[bedrock])")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0123456789ABCDEF")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-x-1")
    backend = chat(server.with_faults(), "bedrock")

    class Ended:
        def get_frozen_credentials(self) -> None:
            raise exceptions.CredentialRetrievalError(provider="sso", error_msg="the session has ended")

    backend.inner._wire._signer._credentials = Ended()
    with pytest.raises(AccessError, match="session has ended"):
        await backend.send(sample_requests()[0])


def test_no_credentials_are_an_input_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Where nothing signs, nothing is sent beyond this machine."""
    pytest.importorskip("botocore", reason="botocore is not installed (evenhand[bedrock])")
    monkeypatch.setenv("AWS_REGION", "eu-x-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="no AWS credentials") as caught:
        load("backend", "bedrock")(BackendSettings(model="m"))
    assert "AWS_BEARER_TOKEN_BEDROCK" in (caught.value.hint or "")
