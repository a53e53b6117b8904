"""One model of one server, over HTTP: one request, one try, one reply, whatever the provider's own language.

What an endpoint refuses by name (a sampling parameter, the system role) is left out from then on and noted in
``learned``. Trying again, pacing and money are the business of `evenhand.backends.paced`.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
import time
from collections.abc import Mapping
from typing import Any

import aiohttp
from msgspec.structs import replace
from yarl import URL

from evenhand._canon import digest
from evenhand.backend import BackendSettings, Request
from evenhand.backends.batch_wire import BatchWire
from evenhand.backends.bodies import decode, encode
from evenhand.backends.connection_errors import is_unsafe, never_sent, reason
from evenhand.backends.endpoint import Endpoint, redactor
from evenhand.backends.http_errors import (
    Fault,
    error_for,
    fault_of,
    is_filtered,
    read_fault,
    refused_parameter,
    refuses_system_role,
)
from evenhand.backends.memory import Memory
from evenhand.backends.prompt_cut import require_whole
from evenhand.backends.waits import retry_after
from evenhand.backends.wire import SYSTEM_ROLE, Wire
from evenhand.errors import AccessError, BackendError, FinalBackendError, InputError, RetryableBackendError
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

_CONNECT_S = 10.0
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_LOST = frozenset((408, 502, 504, 520, 522, 524))  # of those in between, who don't know whether the work was done
_LARGEST = 16 << 20
#: Servers are mended: what one refused is tried again after so long.
_LEARNED_S = 7 * 86400.0
_log = logging.getLogger(__name__)


class HttpBackend:
    """One model of one server.

    Args:
        wire: How it is spoken to.
        settings: Model, address, headers, limits.

    Attributes:
        learned: What this endpoint was found to want: parameter -> the name it takes instead, or None where
            the parameter is left out. Remembered for a week in ``learned.json`` of the state folder, which may be
            deleted at any time.
        slowest_s: Seconds after which a try ends by itself; infinite where nothing makes sure of that.
    """

    deterministic = False
    max_concurrency: int | None = None

    def __init__(self, wire: Wire, settings: BackendSettings) -> None:
        if not settings.model:
            raise InputError(f"judge {wire.name} names no model", hint=f"as in {wire.name}:MODEL")
        if _NOT_IN_NAMES.search(settings.model):
            raise InputError("the name of the model has a character that names can't hold", hint="one line of text")
        if unknown := [n for n, v in settings.sampling.items() if v is not None and n not in (wire.settings or (n,))]:
            hint = f"it takes {', '.join(wire.settings or ())}"
            raise InputError(f"judge {wire.name} has no setting {unknown[0]}", hint=hint)
        self.name, self.forms, self.takes_images = wire.name, wire.forms, wire.takes_images
        self.model = settings.model
        self._wire = wire
        self._endpoint: Endpoint = wire.endpoint(settings)
        self.identity: Mapping[str, Any] = {
            "backend": self.name,
            "model": self.model,
            "endpoint": self._endpoint.base,
        }
        self._memory, self._key = Memory("learned.json", lapse_s=_LEARNED_S), digest(dict(self.identity))
        self.learned = _usable(self._memory.recall(self._key))
        if settings.bounded and self.learned.get("max_tokens", "") is None:
            del self.learned["max_tokens"]  # found out again: without it there is no bound
        self._url = wire.url(self._endpoint, self.model)
        self._address = URL(self._url, encoded=wire.signs)  # what is signed may not be written otherwise
        self._proxy = self._endpoint.proxy
        self._secrets = wire.secrets(self._endpoint)
        self._clean = redactor(self._secrets)
        self._timeout_s = settings.timeout_s
        self.slowest_s = math.inf if wire.signs else settings.timeout_s  # signing takes what time it takes
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout_s, sock_connect=_CONNECT_S)
        self._connections = settings.concurrency
        self._bounded = settings.bounded
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    def __repr__(self) -> str:
        return f"HttpBackend({self.name!r}, {self.model!r}, {self._endpoint.base!r})"

    async def send(self, request: Request) -> Reply:
        """Send one request, once; a parameter refused by name is dropped or renamed within it.

        Raises:
            AccessError: key or model refused.
            UnsupportedFeatureError: the endpoint refuses the output form.
            FinalBackendError: the request is rejected, or too long.
            RetryableBackendError: it may succeed later.
        """
        try:
            return await self._send(request)
        except BackendError as error:
            error.backend, error.model, error.request_digest = self.name, self.model, request.digest
            raise error from None

    def batches(self) -> BatchWire | None:
        """How the provider takes many requests at once; None where it does not."""
        return self._wire.batches(self)

    def body(self, request: Request) -> dict[str, Any]:
        """What would be sent for a request.

        Raises:
            FinalBackendError: an image is gone, or changed since the item was read.
        """
        return self._wire.body(request, self.model, self.learned)

    def answer(self, request: Request, status: int | None, data: Any) -> Reply:
        """The reply in an answer that came another way; its errors are those of `send`.

        Args:
            request: What it answers.
            status: HTTP status; None where it was never sent.
            data: The decoded body.
        """
        fault = fault_of(data)
        try:
            if status is None:
                raise RetryableBackendError(f"it was not answered: {fault.message or 'no reason given'}")
            if 200 <= status < 300:
                reply = self._understood(request, data, {}, 0.0)
                return replace(reply, usage=replace(reply.usage, latency_s=None))
            if self._adapt(request, self.body(request), status, fault):
                raise RetryableBackendError(f"refused: {fault.message}", status=status)
            return self._refusal_or_raise(request.form, status, fault, {}, 0.0)
        except BackendError as error:
            error.backend, error.model, error.request_digest = self.name, self.model, request.digest
            raise error from None

    async def call(self, method: str, path: str, body: bytes | None, kind: str, *, largest: int = _LARGEST) -> bytes:
        """The body of a successful answer of another address of the same server.

        Args:
            method: HTTP method.
            path: Behind the base URL.
            body: What is sent, if anything.
            kind: Its media type.
            largest: Bytes of an answer at most.

        Raises:
            BackendError: there is none.
        """
        headers = {**self._wire.headers(self._endpoint, path, body or b""), "Content-Type": kind}
        url = URL(f"{self._endpoint.base}{path}{self._endpoint.query}")
        status, received, data, _ = await self._exchange(method, url, body, headers, largest)
        if 200 <= status < 300:
            return data
        fault = read_fault(data, self._clean)
        raise error_for(status, fault, "text", received, now=time.time(), where=f"{self._endpoint.base}{path}")

    def clean(self, text: str) -> str:
        """A text without secrets."""
        return self._clean(text)

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _send(self, request: Request) -> Reply:
        while True:
            body = self._wire.body(request, self.model, self.learned)
            status, headers, data, latency_s = await self._post(encode(body))
            if 200 <= status < 300:
                return self._read(request, headers, data, latency_s)
            fault = read_fault(data, self._clean, kind=headers.get("x-amzn-errortype", "").partition(":")[0])
            if not self._adapt(request, body, status, fault):
                return self._refusal_or_raise(request.form, status, fault, headers, latency_s)

    def _read(self, request: Request, headers: Mapping[str, str], body: bytes, latency_s: float) -> Reply:
        try:
            return self._understood(request, decode(body, self._clean), headers, latency_s)
        except ValueError as error:
            said = f"the reply's envelope can't be read: {error}"
            raise RetryableBackendError(said, status=200, maybe_paid=True) from None

    def _understood(self, request: Request, data: Any, headers: Mapping[str, str], latency_s: float) -> Reply:
        try:
            if found := self._wire.failed(data):
                return self._refusal_or_raise(request.form, *found, headers, latency_s)
            reply = self._wire.reply(data, request, latency_s)
            require_whole(request, reply.usage)
        except RetryableBackendError as error:
            error.status, error.maybe_paid = 200, True
            raise
        wait_s = retry_after(200, headers, time.time())
        return reply if wait_s is None else replace(reply, wait_s=wait_s)

    def _refusal_or_raise(
        self, form: Form, status: int, fault: Fault, headers: Mapping[str, str], latency_s: float
    ) -> Reply:
        if is_filtered(status, fault):
            return Reply(refusal=fault.message, finish="content_filter", usage=Usage(latency_s=latency_s))
        failed = error_for(status, fault, form, headers, now=time.time(), where=self._endpoint.base)
        failed.maybe_paid = status in _LOST
        raise failed

    def _adapt(self, request: Request, sent: Mapping[str, Any], status: int, fault: Fault) -> bool:
        """Learn from a refusal; whether the same request would now be sent differently."""
        if status in (400, 403, 404, 422) and (lessened := self._wire.lessen(fault, sent, self.learned)):
            self._warn(lessened)
            return True
        if status not in (400, 404, 415, 422, 501):
            return False
        refused = refused_parameter(fault, self._wire.parameters(sent))
        if refused is not None:
            self._wire.learn(refused, request, self.learned)
            if self._bounded and self.learned.get("max_tokens", "") is None:
                said = f"{self._endpoint.base} takes no limit of tokens, so what a reply may cost has no bound"
                raise AccessError(said, hint="leave --max-cost out, or choose another judge", status=status)
        elif refuses_system_role(fault) and any(m["role"] == "system" for m in request.messages):
            refused = SYSTEM_ROLE
            self.learned[SYSTEM_ROLE] = "user"
        if refused is None or self._wire.body(request, self.model, self.learned) == sent:
            return False
        self._warn(refused)
        return True

    def _warn(self, refused: str) -> None:
        self._memory.remember(self._key, self.learned)
        _log.warning("%s refuses %s for %s; sent without it from now on", self._endpoint.base, refused, self.model)

    async def _post(self, body: bytes) -> tuple[int, Mapping[str, str], bytes, float]:
        """Status, headers, body and seconds of one exchange; nothing in them is free of secrets yet."""
        sent_headers = await self._signed(body) if self._wire.signs else None
        return await self._exchange("POST", self._address, body, sent_headers, _LARGEST)

    async def _exchange(
        self, method: str, url: URL, body: bytes | None, headers: Mapping[str, str] | None, largest: int
    ) -> tuple[int, Mapping[str, str], bytes, float]:
        """As `_post`; headers that are None are those of the session."""
        began, status = time.monotonic(), None
        try:
            async with self._open().request(
                method,
                url,
                data=body,
                headers=headers,
                proxy=self._proxy,
                timeout=self._timeout,
                allow_redirects=False,
            ) as response:
                status = response.status
                data = await _whole(response, largest)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            # Not chained: a client's exception may carry addresses with a proxy's password.
            raise self._unreached(error, status) from None
        return status, response.headers, data, time.monotonic() - began

    async def _signed(self, body: bytes) -> Mapping[str, str]:
        headers = await asyncio.to_thread(self._wire.headers, self._endpoint, self._url, body)
        if (secrets := self._wire.secrets(self._endpoint)) != self._secrets:
            self._secrets, self._clean = secrets, redactor(secrets)
        return headers

    def _open(self) -> aiohttp.ClientSession:
        """The session, made inside the running loop on first use."""
        if self._closed:
            raise FinalBackendError("the backend is closed")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=None if self._wire.signs else self._wire.headers(self._endpoint, self._url, b""),
            )
        return self._session

    def _unreached(self, error: Exception, status: int | None) -> BackendError:
        """Why there is no whole reply; with a status where it had begun."""
        told = reason(error, connect_s=_CONNECT_S, timeout_s=self._timeout_s)
        message = f"can't reach {self._endpoint.base}: {told}"
        if is_unsafe(error):
            hint = "check http or https in the base URL; SSL_CERT_FILE may name the server's authority"
            return AccessError(message, hint=hint)
        return RetryableBackendError(message, status=status, maybe_paid=not never_sent(error))


async def _whole(response: aiohttp.ClientResponse, largest: int) -> bytes:
    """The body, unpacked.

    Raises:
        FinalBackendError: it is larger than any honest reply.
    """
    if largest >= (response.content_length or largest + 1) and "Content-Encoding" not in response.headers:
        return await response.read()
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > largest:
            response.close()
            raise FinalBackendError(
                f"the reply is larger than {largest >> 20} MiB", status=response.status, maybe_paid=True
            )
    return bytes(data)


def _usable(learned: Any) -> dict[str, str | None]:
    """What was remembered, as far as it has the form of what is learned."""
    found = learned.items() if isinstance(learned, Mapping) else ()
    return {name: value for name, value in found if value is None or isinstance(value, str)}
