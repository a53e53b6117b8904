"""Where a server is, and what must stay secret about it."""

from __future__ import annotations

import base64
import html
import ipaddress
import os
import re
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, parse_qsl, urlsplit

from evenhand.backends.keys import SERVICE, find_key
from evenhand.errors import InputError

#: Shorter values are words like "none" or "EMPTY"; blotting them out would garble replies.
_SHORTEST_SECRET = 8
#: Such a value is a key rather than words; a part of it, as servers quote, is blotted out too.
_LIKE_A_KEY = re.compile(r"(?=sk-|.*[A-Z0-9])[\w.~+/=-]+")
_BLOT = "[redacted]"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KEY_HEADERS = ("authorization", "api-key", "x-api-key")
_NOT_IN_HEADERS = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider's servers are.

    Attributes:
        url: Base URL where none is given.
        keys: Environment variables of the key; the first one set counts.
        url_env: Environment variable of the base URL, "" for none.
        header: Header of the key.
        prefix: What stands before the key in it.
        ends: Ends of an address that users give along with the base, cut off one after another.
        example: A base URL, for messages.
        fixed: Headers that every request has.
        key_needed: No request goes beyond this machine without a key.
        others: Host, or the end of one -> what differs there, for providers that speak the same language.
    """

    url: str
    keys: tuple[str, ...]
    url_env: str = ""
    header: str = "Authorization"
    prefix: str = "Bearer "
    ends: tuple[str, ...] = ()
    example: str = "http://127.0.0.1:8000/v1 or https://host/v1"
    fixed: Mapping[str, str] = field(default_factory=dict)
    key_needed: bool = True
    others: Mapping[str, Place] = field(default_factory=dict)

    def at(self, host: str) -> Place:
        """The place for a host."""
        return next((o for name, o in self.others.items() if host == name or host.endswith(f".{name}")), self)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address and its headers.

    Attributes:
        base: Base URL without query; part of the judge's identity, and safe to show.
        query: The query of the address, "" or with its question mark; may be secret.
        headers: Headers to send.
        secrets: Values that may stand in no message, log or stored reply.
        loopback: The server is on this machine.
    """

    base: str
    query: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    loopback: bool

    @property
    def proxy(self) -> str | None:
        """The proxy the environment names for it; never one for this machine.

        Raises:
            InputError: a proxy that does not speak HTTP, or an address that can't be read.
        """
        parts = urlsplit(self.base)
        if self.loopback or urllib.request.proxy_bypass(parts.hostname or ""):
            return None
        proxies = urllib.request.getproxies()
        proxy = proxies.get(parts.scheme) or proxies.get("all")
        if proxy and "://" not in proxy:
            proxy = f"http://{proxy}"
        if not proxy:
            return None
        remedy = f"add {parts.hostname} to no_proxy, or name an HTTP proxy as in http://host:3128"
        try:
            scheme = urlsplit(proxy).scheme
            usable = bool(urlsplit(proxy).hostname) and urlsplit(proxy).port != 0
        except ValueError:
            raise InputError(f"the {parts.scheme} proxy of the environment has no address", hint=remedy) from None
        if scheme not in ("http", "https"):
            raise InputError(f"the environment names a {scheme} proxy; only HTTP proxies are served", hint=remedy)
        if not usable:
            raise InputError(f"the {parts.scheme} proxy of the environment has no address", hint=remedy)
        return proxy


def find_endpoint(base_url: str | None, headers: Mapping[str, str], place: Place) -> Endpoint:
    """The endpoint of settings and environment.

    Args:
        base_url: The address given; None for that of the environment, or else the provider's own.
        headers: Headers to send; they come before those made here.
        place: The provider.

    Raises:
        InputError: an address that can't be used, no key for a server beyond this machine, or a broken header.
    """
    own_url = base_url is None and place.url_env in os.environ
    given, named = (os.environ[place.url_env], place.url_env) if own_url else (base_url, "base URL")
    parts = _address(place.url if given is None else given, named, place)
    host = parts.hostname or ""
    place, loopback = place.at(host), is_loopback(host)
    path = parts.path.rstrip("/")
    for end in place.ends:
        path = path.removesuffix(end)
    base = f"{parts.scheme}://{parts.netloc}{path}"
    own = {name.lower() for name in headers} & {*_KEY_HEADERS, place.header.lower()}
    key = find_key(place.keys, stored=not loopback and not own)
    if place.key_needed and not (key or loopback or own):
        hint = (
            f"set {place.keys[0]}, to any text where the server wants none; or keep it in a keyring, service {SERVICE}"
        )
        raise InputError(f"no API key for {base}", hint=hint)
    sent = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "evenhand", **place.fixed}
    if key and place.header.lower() not in own:
        sent[place.header] = f"{place.prefix}{key}"
    sent.update(headers)
    for name, value in sent.items():
        if not _HEADER_NAME.fullmatch(name):  # not shown: a key may stand in it where its sign = was forgotten
            raise InputError("the name of a header has a character that headers can't hold", hint="as in X-Name=value")
        if _NOT_IN_HEADERS.search(value):
            raise InputError(f"header {name!r} has a character that headers can't hold", hint="one line of text")
    query = f"?{parts.query}" if parts.query else ""
    return Endpoint(base, query, sent, _secrets(key, headers, parts.query), loopback)


def _address(given: str, named: str, place: Place) -> SplitResult:
    """The parts of an address that can be used.

    Raises:
        InputError: it can't be; what may be secret in it is not shown.
    """
    given = given.strip()
    parts = None
    try:
        parts = urlsplit(given)
        wrong = _wrong(given, parts)
    except ValueError:  # brackets, a port that is no number, or a name that can't be looked up
        wrong = "its host or port can't be read"
    if parts is not None and not wrong:
        return parts
    hint = f"as in {place.example}"
    if not given:
        raise InputError(f"{named} is empty", hint=f"{hint}; leave it out altogether for {place.url}")
    if "@" in given:
        hint = f"{hint}; give a key in {place.keys[0]}"
    shown = re.split(r"[?#]", given, maxsplit=1)[0].rpartition("@")[2]
    keys = (os.environ.get(name, "").strip() for name in place.keys)
    shown = redactor(tuple(key for key in keys if len(key) >= _SHORTEST_SECRET))(shown)
    raise InputError(f"{named} {shown!r} can't be used: {wrong}", hint=hint)


def _wrong(given: str, parts: SplitResult) -> str:
    """What is wrong with an address; "" where nothing is.

    Raises:
        ValueError: its host or port can't be read.
    """
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return "it does not begin with http:// or https://"
    if "@" in parts.netloc:
        return "it holds a user name or password"
    if re.search(r"[\s\x00-\x20\x7f]", given):
        return "it holds a space or a control character"
    host = parts.hostname or ""
    host.encode("idna")
    if not re.fullmatch(r"[\w.:-]+(%\w+)?", host) or (":" in host and not _is_address(host)):
        return "its host can't be read" if host else "it names no host"
    return "" if parts.port is None or parts.port > 0 else "its port is 0"


def redactor(secrets: tuple[str, ...]) -> Callable[[str], str]:
    """A function that blots out every secret in a text, also where it is written with the escapes of JSON, of
    addresses or of HTML, or in base64; of a key also its first or last eight characters or more."""
    if not secrets:
        return str
    keys = [secret for secret in secrets if _LIKE_A_KEY.fullmatch(secret)]
    encoded = re.compile("|".join(re.escape(form) for secret in secrets for form in _base64(secret)))
    plain = re.compile("|".join(map(re.escape, secrets)))
    escaped = re.compile("|".join("".join(map(_writings, secret)) for secret in secrets))
    signs = {char for secret in secrets for char in secret if not char.isalnum()}
    marks = ["\\u", "%", "&", *(f"\\{sign}" for sign in signs), *("+" for sign in signs if sign == " ")]

    def redact(text: str) -> str:
        pattern = escaped if any(mark in text for mark in marks) else plain  # seldom needed, and slow
        text = encoded.sub(_BLOT, pattern.sub(_BLOT, text))
        for key in keys:
            text = _without_begin(text, key, _BLOT)
            if key[-_SHORTEST_SECRET:] in text:
                text = _without_begin(text[::-1], key[::-1], _BLOT[::-1])[::-1]
        return text

    return redact


def _base64(secret: str) -> set[str]:
    """A secret in base64, both alphabets, without what is filled up at the end."""
    data = secret.encode("utf-8", "surrogatepass")
    return {encode(data).decode().rstrip("=") for encode in (base64.b64encode, base64.urlsafe_b64encode)}


def _without_begin(text: str, key: str, blot: str) -> str:
    """The text without what begins as the key does, as far as it goes on so."""
    begin = key[:_SHORTEST_SECRET]
    pieces, done, at = [], 0, text.find(begin)
    while at >= 0:
        pieces += [text[done:at], blot]
        part = text[at : at + len(key)]
        done = at + next((n for n, (one, other) in enumerate(zip(part, key, strict=False)) if one != other), len(part))
        at = text.find(begin, done)
    return "".join([*pieces, text[done:]])


def _writings(char: str) -> str:
    """A pattern of all ways to write one character."""
    code = ord(char)
    percent = "".join(f"%(?:25)*{byte:02x}" for byte in char.encode("utf-8", "replace"))
    ways = [rf"\\+u{code:04x}", percent, f"&#0*{code};", f"&#x0*{code:x};", re.escape(html.escape(char))]
    ways += [r"\+"] if char == " " else []
    return rf"(?:(?i:{'|'.join(ways)})|\\*{re.escape(char)})"


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine."""
    if _is_address(host):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _secrets(key: str, headers: Mapping[str, str], query: str) -> tuple[str, ...]:
    found = {key, *(value or name for name, value in parse_qsl(query, keep_blank_values=True))}
    for value in headers.values():
        found |= {value, value.split(" ", 1)[-1]}
    return tuple(sorted((s for s in found if len(s) >= _SHORTEST_SECRET), key=len, reverse=True))
