"""A server that speaks the languages of providers and misbehaves on request, in a process of its own, on loopback only.

    with FakeServer() as server:
        flaky = server.with_faults(fault="429:first2", retry_after=0.05)   # the same server, another behaviour
        ...
        assert server.stats()["early"] == 0     # nobody came back before the time named

Under one address it takes chat completions, Anthropic's messages, Gemini's generateContent and Bedrock's Converse.

From a shell: ``python -m evenhand.testing.server --port 0`` prints its address. It ends by itself after
``--max-seconds`` and with the process that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request
import zlib
from collections import Counter, deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from evenhand.testing.batches import Batches
from evenhand.testing.behaviour import Behaviour, behaviour, from_prefix, to_prefix
from evenhand.testing.dialects import Dialect, find_dialect
from evenhand.testing.replies import Response, completion, error, failure, refusal, understood

_BODY_FAULTS = frozenset(
    ("envelope", "choices", "gateway", "empty", "null", "refusal", "filter", "prose", "fenced", "invalid", "length")
)
_WIRE_FAULTS = frozenset(("reset", "close", "cut", "hang", "slow"))
_REASONS = {200: "OK", 302: "Found", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}
_KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_SLOW_PIECES = 10
_PARENT_CHECK_S = 0.5


class FakeServer:
    """A running server; use it as a context manager.

    Args:
        record: How many requests are kept for `requests`.
        max_seconds: When it stops by itself.
        settings: Default behaviour, see `evenhand.testing.behaviour.Behaviour`.

    Attributes:
        url: Base URL of the default behaviour, ending in /v1; it serves for each provider.
    """

    def __init__(self, *, record: int = 1000, max_seconds: float = 3600, **settings: Any) -> None:
        command = [sys.executable, "-m", "evenhand.testing.server", "--port", "0", "--record", str(record)]
        command += ["--max-seconds", str(max_seconds), "--parent", str(os.getpid()), "--behaviour", to_prefix(settings)]
        self._salts = count(1)
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        assert self._process.stdout is not None
        line = self._process.stdout.readline().split()
        if not line:
            self.close()
            raise RuntimeError("the server did not start; its message is on stderr")
        self.url = line[-1]
        self._root = self.url.removesuffix("/v1")

    def with_faults(self, **settings: Any) -> str:
        """Base URL of another behaviour of the same server; equal bodies are counted apart for each."""
        settings.setdefault("salt", f"u{next(self._salts)}")
        return f"{self._root}/{to_prefix(settings)}/v1"

    def behave(self, **settings: Any) -> None:
        """Change the default behaviour, that of `url`, from the next request on."""
        self._call(f"/__behave/{to_prefix(settings)}")

    def stats(self) -> dict[str, Any]:
        """Counters since the last reset: requests, distinct (bodies), max_inflight, connections, by_status,
        by_fault, batches and their batch_lines, and early: requests that came before the time their body had been told
        to wait for."""
        return dict(self._call("/__stats"))

    def requests(self, url: str = "") -> list[dict[str, Any]]:
        """The last requests, or those at one address of `with_faults`: path (of the behaviour), url (the rest), headers
        (lower-case names), body (decoded), raw (its text), at (wall clock), fault, status."""
        return list(self._call(f"/__requests{url.removeprefix(self._root).removesuffix('/v1')}"))

    def reset(self) -> None:
        """Set all counters to zero and forget all requests."""
        self._call("/__reset")

    def close(self) -> None:
        """Stop the process."""
        self._process.terminate()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def __enter__(self) -> FakeServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _call(self, path: str) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self._root + path, timeout=10) as answer:
            return json.load(answer)


class Server:
    """Counters and behaviours shared by all connections."""

    def __init__(self, default: Behaviour, record: int) -> None:
        self._behaviours: dict[str, Behaviour] = {"": default}
        self._record = record
        self.reset()

    def reset(self) -> None:
        """Start counting afresh."""
        self.inflight = self.max_inflight = self.connections = self.early = 0
        self.by_status: Counter[str] = Counter()
        self.by_fault: Counter[str] = Counter()
        self.tries: Counter[tuple[str, int]] = Counter()
        self.not_before: dict[tuple[str, int], float] = {}
        self.batches: dict[str, Batches] = {}
        self.buckets: dict[str, tuple[float, float]] = {}  # when, and how many requests it held then
        self.kept: deque[dict[str, Any]] = deque(maxlen=self._record)

    def find(self, prefix: str) -> Behaviour:
        """The behaviour of a path prefix."""
        if prefix not in self._behaviours:
            self._behaviours[prefix] = from_prefix(prefix)
        return self._behaviours[prefix]

    def behave(self, prefix: str) -> None:
        """Change the default behaviour."""
        self._behaviours[""] = from_prefix(prefix)

    def stats(self) -> dict[str, Any]:
        """Plain data of the counters."""
        return {
            "requests": self.tries.total(),
            "distinct": len(self.tries),
            "inflight": self.inflight,
            "max_inflight": self.max_inflight,
            "connections": self.connections,
            "early": self.early,
            "batches": sum(held.made for held in self.batches.values()),
            "batch_lines": sum(held.lines for held in self.batches.values()),
            "by_status": dict(self.by_status),
            "by_fault": dict(self.by_fault),
        }

    def arrive(
        self, prefix: str, path: str, dialect: Dialect, headers: Mapping[str, str], body: bytes
    ) -> tuple[Response, str | None, Behaviour]:
        """Count a request and decide its answer."""
        how = self.find(prefix)
        now = time.time()
        key = prefix, zlib.crc32(body)
        tries = self.tries[key]
        self.tries[key] += 1
        self.inflight += 1
        self.max_inflight = max(self.max_inflight, self.inflight)
        self.early += now < self.not_before.get(key, 0.0)
        asked = understood(body, path, dialect)
        # What is wrong with the request comes before any fault.
        wrong = error(400, "the body is no such request", "invalid_request_error", dialect=dialect)
        refused = wrong if asked is None else refusal(asked, how, dialect)
        fault = None
        if refused is None:
            fault = "429" if self._too_many(prefix, how, now) else how.strike(key[1], tries)
        if refused is not None or asked is None:
            response = refused or wrong
        elif fault is None or fault in _BODY_FAULTS or fault in _WIRE_FAULTS:
            response = completion(asked, body, how, fault, dialect)
        else:
            sent = next((headers[name] for name in _KEY_HEADERS if name in headers), "")
            response = failure(fault, how, now, sent, dialect)
        if response.not_before is not None:
            self.not_before[key] = response.not_before
        if fault:
            self.by_fault[fault] += 1
        if fault not in _WIRE_FAULTS or fault == "slow":
            self.by_status[str(response.status)] += 1
        if self._record:
            seen = {"path": prefix, "url": path, "headers": headers, "body": body, "at": now, "fault": fault}
            self.kept.append({**seen, "status": response.status})
        return response, fault, how

    def of_batch(self, method: str, prefix: str, path: str, headers: Mapping[str, str], body: bytes) -> Response | None:
        """The answer to a request about files or batches, None for any other; each behaviour has its own."""

        def answer(inner: str, asked: bytes) -> Response:
            self.inflight -= 1  # it is no request of its own
            return self.arrive(prefix, inner, find_dialect(inner) or Dialect(), headers, asked)[0]

        return self.batches.setdefault(prefix, Batches()).handle(method, path, headers, body, self.find(prefix), answer)

    def _too_many(self, prefix: str, how: Behaviour, now: float) -> bool:
        """Whether a request is above the limits of a behaviour."""
        if how.rps:
            at, held = self.buckets.get(prefix, (now, how.rps))
            held = min(how.rps, held + (now - at) * how.rps)
            self.buckets[prefix] = now, held - (held >= 1)
            if held < 1:
                return True
        return 0 < how.max_inflight < self.inflight


class Connection(asyncio.Protocol):
    """One HTTP/1.1 connection; requests on it are answered one after another."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._buffer = bytearray()
        self._busy = False
        self._transport: asyncio.Transport | None = None
        self._timers: list[asyncio.TimerHandle] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        for timer in self._timers:
            timer.cancel()
        if self._busy:
            self._server.inflight = max(0, self._server.inflight - 1)
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._pump()

    def _pump(self) -> None:
        while not self._busy and self._transport is not None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self._buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.strip().lower(): value.strip() for name, _, value in (h.partition(":") for h in lines[1:])}
            size = int(headers.get("content-length") or 0)
            if len(self._buffer) < end + 4 + size:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + size])
            del self._buffer[: end + 4 + size]
            method, path, *_ = [*lines[0].split(" "), ""]
            self._handle(method, path.partition("?")[0], headers, body)

    def _handle(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        head, _, rest = path.lstrip("/").partition("/")
        prefix, rest = (head, rest) if head.startswith(("~", "%7E")) else ("", path.lstrip("/"))
        of_batch = re.match("v1/(files|(messages/)?batches)", rest)
        if of_batch and (response := self._server.of_batch(method, prefix, rest, headers, body)):
            self._write(response)
            return
        dialect = find_dialect(rest)
        if method != "POST" or dialect is None:
            self._write(self._control(path))
            return
        self._busy = True
        try:
            response, fault, how = self._server.arrive(prefix, rest, dialect, headers, body)
        except ValueError as problem:
            self._server.inflight += 1
            self._finish(error(400, str(problem), "bad_behaviour"), None, 0)
            return
        wait = how.latency_s(zlib.crc32(body) % 1000 / 1000)
        if wait > 0:
            self._later(wait, lambda: self._finish(response, fault, how.slow_ms / 1e3))
        else:
            self._finish(response, fault, how.slow_ms / 1e3)

    def _control(self, path: str) -> Response:
        if path == "/__stats":
            return Response(200, json.dumps(self._server.stats()).encode())
        if path.startswith("/__requests"):
            prefix = path.removeprefix("/__requests").lstrip("/")
            kept = [
                {**seen, "body": _decoded(seen["body"]), "raw": seen["body"].decode("utf-8", "replace")}
                for seen in self._server.kept
                if not prefix or seen["path"] == prefix
            ]
            return Response(200, json.dumps(kept).encode())
        if path.startswith("/__behave/"):
            self._server.behave(path.removeprefix("/__behave/"))
            return Response(200, b"{}")
        if path == "/__reset":
            self._server.reset()
            return Response(200, b"{}")
        if path.endswith("/models"):
            return Response(200, b'{"object":"list","data":[{"id":"fake","object":"model"}]}')
        return error(404, "there is nothing at this address", "not_found")

    def _finish(self, response: Response, fault: str | None, slow_s: float) -> None:
        transport = self._transport
        if transport is None or fault == "hang":
            return
        if fault == "reset":
            linger = struct.pack("ii", 1, 0)  # closing now sends RST
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        elif fault == "close":
            transport.close()
        elif fault == "cut":
            whole = _bytes(response)
            transport.write(whole[: len(whole) - len(response.body) // 2 - 1])
            transport.close()
        elif fault == "slow":
            self._dribble(_bytes(response), slow_s / _SLOW_PIECES)
        else:
            self._write(response)
            self._done()

    def _dribble(self, left: bytes, pause: float, size: int = 0) -> None:
        size = size or -(-len(left) // _SLOW_PIECES)
        if self._transport is not None:
            self._transport.write(left[:size])
        if len(left) > size:
            self._later(pause, lambda: self._dribble(left[size:], pause, size))
        else:
            self._done()

    def _done(self) -> None:
        self._busy = False
        self._timers.clear()
        self._server.inflight = max(0, self._server.inflight - 1)
        if self._buffer:
            asyncio.get_running_loop().call_soon(self._pump)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        self._timers.append(asyncio.get_running_loop().call_later(seconds, call))

    def _write(self, response: Response) -> None:
        if self._transport is not None:
            self._transport.write(_bytes(response))


async def serve(port: int, default: Behaviour, *, record: int, max_seconds: float, parent: int) -> None:
    """Serve until the time is over, a signal comes, or the parent process ends."""
    loop = asyncio.get_running_loop()
    shared = Server(default, record)
    listener = await loop.create_server(lambda: Connection(shared), "127.0.0.1", port, backlog=1024)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    address = listener.sockets[0].getsockname()
    sys.stdout.write(f"serving on http://{address[0]}:{address[1]}/v1\n")
    sys.stdout.flush()
    end = loop.time() + max_seconds
    while not stop.is_set() and loop.time() < end and os.getppid() == parent:
        try:
            await asyncio.wait_for(stop.wait(), min(_PARENT_CHECK_S, max(0.0, end - loop.time())))
        except TimeoutError:
            continue
    listener.close()


def main(arguments: list[str] | None = None) -> None:
    """Run a server from the command line."""
    parser = argparse.ArgumentParser(prog="python -m evenhand.testing.server", description=__doc__)
    parser.add_argument("--port", type=int, default=8089, help="0 for any free port")
    parser.add_argument("--record", type=int, default=1000, help="how many requests are kept")
    parser.add_argument("--max-seconds", type=float, default=3600)
    parser.add_argument("--parent", type=int, default=os.getppid(), help="process id whose end ends the server")
    parser.add_argument("--behaviour", default="", help="as in ~latency=50,fault=429:0.05")
    given = parser.parse_args(arguments)
    default = from_prefix(given.behaviour) if given.behaviour else behaviour({})
    asyncio.run(serve(given.port, default, record=given.record, max_seconds=given.max_seconds, parent=given.parent))


def _bytes(response: Response) -> bytes:
    extra = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    head = (
        f"HTTP/1.1 {response.status} {_REASONS.get(response.status, 'Status')}\r\n"
        f"Content-Type: {response.content_type}\r\nContent-Length: {len(response.body)}\r\n{extra}\r\n"
    )
    return head.encode("latin-1") + response.body


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("utf-8", "replace")


if __name__ == "__main__":
    main()
