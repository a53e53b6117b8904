"""Addresses that can be used, and secrets that are never shown."""

from __future__ import annotations

import json
from base64 import b64encode
from urllib.parse import quote

import pytest

from evenhand.backend import BackendSettings
from evenhand.backends.endpoint import Endpoint, redactor
from evenhand.backends.endpoint import find_endpoint as find_endpoint_of
from evenhand.backends.openai_chat import PLACE
from evenhand.errors import InputError


def find_endpoint(url: str | None, headers: dict[str, str]) -> Endpoint:
    return find_endpoint_of(url, headers, PLACE)


SECRET = 'sk-a+b/c=d&e"f g'
JUNK = [
    "",
    "   ",
    "127.0.0.1:8000",
    "//127.0.0.1/v1",
    "localhost/v1",
    "ftp://127.0.0.1/v1",
    "http://",
    "http:///v1",
    "http://127.0.0.1:99999/v1",
    "http://127.0.0.1:0/v1",
    "http://127.0.0.1:abc/v1",
    "http://127.0.0.1:-1/v1",
    "http://[::1/v1",
    "http://::1]/v1",
    "http://[zz]/v1",
    "http://[v1.x:y]/v1",
    "http://::1/v1",
    "http://a..b/v1",
    f"http://{'a' * 70}.example/v1",
    "http://ho st/v1",
    "http://127.0.0.1/v 1",
    "http://127.0.0.1/v1\x00",
    "http://127.0.0.1\t/v1",
    "http://%zz/v1",
    "http://ho\u2100st/v1",
    "http://@127.0.0.1/v1",
    "http://user:pass-word-1@127.0.0.1/v1",
    "user:pass-word-1@127.0.0.1/v1",
    "ftp://user:pass-word-1@host/v1?key=pass-word-1",
    "127.0.0.1:8000?key=pass-word-1#pass-word-1",
]


@pytest.mark.parametrize("url", JUNK)
def test_addresses_that_can_not_be_used(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether given or from the environment: an input error with place and remedy, without what may be secret."""
    with pytest.raises(InputError) as caught:
        find_endpoint(url, {})
    assert caught.value.message.startswith("base URL ")
    monkeypatch.setattr("os.environ", {"OPENAI_BASE_URL": url})  # a real one holds no NUL
    with pytest.raises(InputError) as from_environment:
        find_endpoint(None, {})
    assert from_environment.value.message.startswith("OPENAI_BASE_URL ")
    for error in (caught.value, from_environment.value):
        assert "as in http://127.0.0.1:8000/v1" in (error.hint or "")
        assert "pass-word-1" not in str(error) and "user" not in error.message.replace("user name", "")


def test_an_address_that_is_the_key_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key given in the place of the address is blotted out in the message."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    with pytest.raises(InputError, match=r"\[redacted\]") as caught:
        find_endpoint("sk-0123456789", {})
    assert "0123456789" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "base"),
    [
        (" http://127.0.0.1:8000/v1/ ", "http://127.0.0.1:8000/v1"),
        ("HTTP://LOCALHOST/v1", "http://LOCALHOST/v1"),
        ("http://[::1]:9/v1", "http://[::1]:9/v1"),
        ("http://127.0.0.1/v1/chat/completions?k=v#x", "http://127.0.0.1/v1"),
    ],
)
def test_addresses_that_can_be_used(url: str, base: str) -> None:
    """Space around, a slash or the whole path at the end do no harm."""
    assert find_endpoint(url, {}).base == base


def test_names_of_other_alphabets() -> None:
    """A host's name may be of any alphabet."""
    assert find_endpoint("https://bücher.example/v1", {"api-key": "k"}).base == "https://bücher.example/v1"


@pytest.mark.parametrize("proxy", ["http://[::1", "http://h:99999", "http://h:abc", "http://", "http://h:0"])
def test_proxies_that_can_not_be_used(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy without a readable address is an input error that shows nothing of it."""
    monkeypatch.setenv("https_proxy", proxy)
    with pytest.raises(InputError, match="proxy of the environment has no address") as caught:
        _ = find_endpoint("https://judge.example/v1", {"api-key": "k"}).proxy
    assert "no_proxy" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["Authorization: Bearer sk-0123456789", "", "a b"])
def test_names_of_headers_are_not_shown(name: str) -> None:
    """A name that headers can't hold may have a key in it, and is not repeated."""
    with pytest.raises(InputError, match="name of a header") as caught:
        find_endpoint("http://127.0.0.1/v1", {name: "x"})
    assert "0123456789" not in str(caught.value) and caught.value.hint


@pytest.mark.parametrize(
    "written",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(json.dumps(SECRET)),
        SECRET.replace("+", "\\u002b").replace("/", "\\/"),
        "".join(f"\\u{ord(char):04X}" for char in SECRET),
        quote(SECRET),
        quote(SECRET, safe=""),
        quote(quote(SECRET, safe=""), safe=""),
        quote(SECRET, safe="").lower(),
        SECRET.replace(" ", "+"),
        SECRET.replace("&", "&amp;").replace('"', "&#34;").replace("+", "&#x2B;"),
    ],
)
def test_secrets_are_blotted_out_however_written(written: str) -> None:
    """Escapes of JSON, of addresses and of HTML don't get a secret past."""
    clean = redactor((SECRET,))
    assert clean(f"a {written} b").replace('"', "").replace("\\", "") == "a [redacted] b"
    assert clean("100 % of a\\b & c+d") == "100 % of a\\b & c+d"


def test_secrets_of_an_endpoint() -> None:
    """Key, header values with and without their scheme, and what a query holds, named or not."""
    headers = {"Authorization": "Bearer header-secret", "X-Short": "short"}
    found = find_endpoint("http://127.0.0.1/v1?key=query%2Bsecret&bare-secret&v=1", headers)
    assert set(found.secrets) == {"Bearer header-secret", "header-secret", "query+secret", "bare-secret"}
    shown = repr(found) + repr(BackendSettings(base_url=found.base + found.query, headers=headers))
    assert "secret" not in shown


@pytest.mark.parametrize("key", ["sk-SECRETabcdef", "sk-proj-0123456789abcdef"])
def test_parts_and_base64_of_a_key_are_blotted_out(key: str) -> None:
    """Servers quote a key's begin or end, and some send it back encoded; words and short parts stay."""
    clean = redactor(("Bearer " + key, key, "a header of words"))
    for part in (key[:8], key[:11], key[-8:], key[-10:], b64encode(key.encode()).decode().rstrip("=")):
        assert clean(f"Incorrect API key {part}...") == "Incorrect API key [redacted]..."
    assert clean(f"{key[:9]}***{key[-9:]} {key[:9]}") == "[redacted]***[redacted] [redacted]"
    assert (
        clean(f"{key[:7]}* Bearer scheme, a header, *{key[-7:]}") == f"{key[:7]}* Bearer scheme, a header, *{key[-7:]}"
    )
