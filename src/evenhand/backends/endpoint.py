"""Where a chat-completions server is, and what must stay secret about it."""

from __future__ import annotations

import ipaddress
import os
import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from evenhand.errors import InputError

DEFAULT_URL = "https://api.openai.com/v1"
_PATH = "/chat/completions"
#: Shorter values are words like "none" or "EMPTY"; blotting them out would garble replies.
_SHORTEST_SECRET = 8


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and its headers.

    Attributes:
        base: Base URL without query; part of the judge's identity, and safe to show.
        url: The address requests go to.
        headers: Headers to send.
        secrets: Values that may stand in no message, log or stored reply.
        loopback: The server is on this machine.
    """

    base: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    loopback: bool

    @property
    def proxy(self) -> str | None:
        """The proxy the environment names for it; never one for this machine.

        Raises:
            InputError: a proxy that does not speak HTTP.
        """
        parts = urlsplit(self.url)
        if self.loopback or urllib.request.proxy_bypass(parts.hostname or ""):
            return None
        proxies = urllib.request.getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy and "://" not in proxy:
            proxy = f"http://{proxy}"
        if proxy and urlsplit(proxy).scheme not in ("http", "https"):
            raise InputError(
                f"the environment names a {urlsplit(proxy).scheme} proxy; only HTTP proxies are served",
                hint=f"add {parts.hostname} to no_proxy, or name an HTTP proxy",
            )
        return proxy or None


def find_endpoint(base_url: str | None, headers: Mapping[str, str]) -> Endpoint:
    """The endpoint of settings and environment: OPENAI_BASE_URL where no address is given, OPENAI_API_KEY.

    Raises:
        InputError: an address that can't be used, no key for a server beyond this machine, or a broken header.
    """
    given = base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_URL
    parts = urlsplit(given)
    try:
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if parts.username or parts.password:
        raise InputError("the base URL holds a user name or password", hint="give the key in OPENAI_API_KEY")
    if not usable:
        raise InputError(f"{given!r} is no base URL", hint="as in http://127.0.0.1:8000/v1 or https://host/v1")
    base = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/').removesuffix(_PATH)}"
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    own = {name.lower() for name in headers}
    loopback = is_loopback(parts.hostname or "")
    if not key and not loopback and not own & {"authorization", "api-key", "x-api-key"}:
        raise InputError(f"no API key for {base}", hint="set OPENAI_API_KEY, to any text where the server wants none")
    sent = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "evenhand"}
    if key and "authorization" not in own:
        sent["Authorization"] = f"Bearer {key}"
    sent.update(headers)
    for name, value in sent.items():
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name) or re.search(
            r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]", value
        ):
            raise InputError(f"header {name!r} has a character that headers can't hold")
    query = f"?{parts.query}" if parts.query else ""
    return Endpoint(base, f"{base}{_PATH}{query}", sent, _secrets(key, headers, parts.query), loopback)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _secrets(key: str, headers: Mapping[str, str], query: str) -> tuple[str, ...]:
    found = {key, *(value for _, value in parse_qsl(query))}
    for value in headers.values():
        found |= {value, value.split(" ", 1)[-1]}
    return tuple(sorted((s for s in found if len(s) >= _SHORTEST_SECRET), key=len, reverse=True))
