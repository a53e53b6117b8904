"""Any chat-completions server, over HTTP: hosted ones, vLLM, llama.cpp, Ollama and their like.

Of several choices in a reply the one with index 0 is read. What an endpoint refuses by name (a sampling
parameter, the system role) is left out from then on and noted in ``learned``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from evenhand.backend import BackendSettings, Request
from evenhand.backends.chat_wire import SYSTEM_ROLE, body_of, decode, encode, learn, reply_of
from evenhand.backends.connection_errors import is_unsafe, reason
from evenhand.backends.endpoint import Endpoint, find_endpoint, redactor
from evenhand.backends.http_errors import (
    Fault,
    error_for,
    fault_of,
    is_filtered,
    read_fault,
    refused_parameter,
    refuses_system_role,
)
from evenhand.backends.retry import Retry
from evenhand.errors import AccessError, BackendError, FinalBackendError, InputError, RetryableBackendError
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

_CONNECT_S = 10.0
_DEADLINE_S = 300.0
_LARGEST = 16 << 20
_log = logging.getLogger(__name__)


class OpenAIChat:
    """One model of one chat-completions server.

    Args:
        settings: Model, address, headers, limits.
        retry: How to try again; made from the settings by default.

    Attributes:
        learned: What this endpoint was found to want: parameter -> the name it takes instead, or None where
            the parameter is left out. Kept as long as the backend is open.
    """

    name = "openai"
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text", "lines")
    deterministic = False
    takes_images = True

    def __init__(self, settings: BackendSettings, *, retry: Retry | None = None) -> None:
        if not settings.model:
            raise InputError("judge openai names no model", hint="as in openai:MODEL")
        self.model = settings.model
        self.max_concurrency: int | None = max(1, settings.concurrency)
        self.learned: dict[str, str | None] = {}
        self._endpoint: Endpoint = find_endpoint(settings.base_url, settings.headers)
        self.identity: Mapping[str, Any] = {
            "backend": self.name,
            "model": self.model,
            "endpoint": self._endpoint.base,
        }
        self._proxy = self._endpoint.proxy
        self._clean = redactor(self._endpoint.secrets)
        self._timeout_s = settings.timeout_s
        self._retry = retry or Retry(max(1, settings.attempts), deadline_s=max(_DEADLINE_S, settings.timeout_s))
        self._free = asyncio.Semaphore(self.max_concurrency)
        self._session: aiohttp.ClientSession | None = None
        self._answered = False
        self._closed = False

    def __repr__(self) -> str:
        return f"OpenAIChat({self.model!r}, {self._endpoint.base!r})"

    async def send(self, request: Request) -> Reply:
        """Send one request, trying again where that can help.

        Raises:
            AccessError: key or model refused, or nothing ever answered at this address.
            UnsupportedFeatureError: the endpoint refuses the output form.
            FinalBackendError: the request is rejected, or too long.
            RetryableBackendError: still failing after the last try.
        """
        try:
            return await self._retry.run(lambda left: self._try(request, left))
        except BackendError as error:
            failed = error
            if isinstance(error, RetryableBackendError) and not self._answered:
                failed = AccessError(error.message, hint="check the base URL and the server")
            failed.backend, failed.model, failed.request_digest = self.name, self.model, request.digest
            raise failed from None

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _try(self, request: Request, left_s: float) -> Reply:
        """One try; a parameter refused by name is dropped or renamed within it."""
        while True:
            body = body_of(request, self.model, self.learned)
            status, headers, data, latency_s = await self._post(encode(body), min(self._timeout_s, left_s))
            if 200 <= status < 300:
                return self._read(request.form, headers, data, latency_s)
            fault = read_fault(data, self._clean)
            if not self._adapt(request, body, status, fault):
                return self._refusal_or_raise(request.form, status, fault, headers, latency_s)

    def _read(self, form: Form, headers: Mapping[str, str], body: bytes, latency_s: float) -> Reply:
        try:
            data = decode(body, self._clean)
        except ValueError as error:
            raise RetryableBackendError(f"the reply's envelope can't be read: {error}", status=200) from None
        if isinstance(data, dict) and data.get("error") and not data.get("choices"):
            # Some gateways report a failure under status 200, with the real status as the error's code.
            said = data["error"]
            code = said.get("code") if isinstance(said, dict) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 502
            return self._refusal_or_raise(form, status, fault_of(data), headers, latency_s)
        return reply_of(data, latency_s)

    def _refusal_or_raise(
        self, form: Form, status: int, fault: Fault, headers: Mapping[str, str], latency_s: float
    ) -> Reply:
        if is_filtered(status, fault):
            return Reply(refusal=fault.message, finish="content_filter", usage=Usage(latency_s=latency_s))
        raise error_for(status, fault, form, headers, now=time.time(), where=self._endpoint.base)

    def _adapt(self, request: Request, sent: Mapping[str, Any], status: int, fault: Fault) -> bool:
        """Learn from a refusal; whether the same request would now be sent differently."""
        if status not in (400, 404, 415, 422, 501):
            return False
        refused = refused_parameter(fault, [name for name in sent if name not in ("model", "messages")])
        if refused is not None:
            learn(refused, request, self.learned)
        elif refuses_system_role(fault) and any(m["role"] == "system" for m in request.messages):
            refused = SYSTEM_ROLE
            self.learned[SYSTEM_ROLE] = "user"
        if refused is None or body_of(request, self.model, self.learned) == sent:
            return False
        _log.warning("%s refuses %s for %s; sent without it from now on", self._endpoint.base, refused, self.model)
        return True

    async def _post(self, body: bytes, timeout_s: float) -> tuple[int, Mapping[str, str], bytes, float]:
        """Status, headers, body and seconds of one exchange; nothing in them is free of secrets yet."""
        async with self._free:
            began = time.monotonic()
            try:
                async with self._open().post(
                    self._endpoint.url,
                    data=body,
                    headers=self._endpoint.headers,
                    proxy=self._proxy,
                    timeout=aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_S),
                    allow_redirects=False,
                ) as response:
                    self._answered = True
                    data = await _whole(response)
            except (TimeoutError, aiohttp.ClientError, OSError) as error:
                # Not chained: a client's exception may carry addresses with a proxy's password.
                raise self._unreached(error, timeout_s) from None
        return response.status, response.headers, data, time.monotonic() - began

    def _open(self) -> aiohttp.ClientSession:
        """The session, made inside the running loop on first use."""
        if self._closed:
            raise FinalBackendError("the backend is closed")
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self.max_concurrency or 1)
            self._session = aiohttp.ClientSession(
                connector=connector, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=True
            )
        return self._session

    def _unreached(self, error: Exception, timeout_s: float) -> BackendError:
        told = reason(error, connect_s=_CONNECT_S, timeout_s=timeout_s)
        message = f"can't reach {self._endpoint.base}: {told}"
        if is_unsafe(error):
            hint = "check http or https in the base URL; SSL_CERT_FILE may name the server's authority"
            return AccessError(message, hint=hint)
        return RetryableBackendError(message)


async def _whole(response: aiohttp.ClientResponse) -> bytes:
    """The body, unpacked.

    Raises:
        FinalBackendError: it is larger than any honest reply.
    """
    data = bytearray()
    async for piece in response.content.iter_any():
        data += piece
        if len(data) > _LARGEST:
            response.close()
            raise FinalBackendError(f"the reply is larger than {_LARGEST >> 20} MiB", status=response.status)
    return bytes(data)


def open_backend(settings: BackendSettings) -> OpenAIChat:
    """Open a chat-completions backend; nothing is sent yet.

    Raises:
        InputError: no model, no usable address, or no key for a server beyond this machine.
    """
    return OpenAIChat(settings)
