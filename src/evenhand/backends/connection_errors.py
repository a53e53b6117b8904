"""What a connection that failed means, in words of our own: a client's may hold class names, addresses and secrets."""

from __future__ import annotations

import os
import socket
import ssl

import aiohttp


def is_unsafe(error: Exception) -> bool:
    """Whether TLS failed: another try would fail too."""
    return isinstance(error, aiohttp.ClientSSLError | aiohttp.ServerFingerprintMismatch | ssl.SSLError)


def never_sent(error: Exception) -> bool:
    """Whether no connection came about, so that nothing can have been done, or be paid for."""
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def reason(error: Exception, *, connect_s: float, timeout_s: float) -> str:
    """Why there is no reply.

    Args:
        error: A timeout, or what the client raised.
        connect_s: Seconds that were allowed for connecting.
        timeout_s: Seconds that were allowed for the whole exchange.
    """
    inner = getattr(error, "os_error", error)
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection within {connect_s:g} s"
    if isinstance(error, TimeoutError):
        return f"no whole reply within {timeout_s:.3g} s"
    if is_unsafe(error):
        return _tls(error)
    if isinstance(error, aiohttp.ClientConnectorDNSError) or isinstance(inner, socket.gaierror):
        return "no such host is known"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    if isinstance(error, aiohttp.ClientHttpProxyError):
        return f"the proxy answered {error.status}"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the reply broke off or is wrongly packed"
    if isinstance(error, aiohttp.ClientResponseError):
        return "what answers there does not speak HTTP as it should"
    by = "the proxy: " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
    number = getattr(inner, "errno", None)
    return f"{by}{os.strerror(number)}" if number and number > 0 else f"{by}the connection failed"


def _tls(error: Exception) -> str:
    inner = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    if isinstance(inner, ssl.SSLCertVerificationError):
        return f"its certificate does not hold: {inner.verify_message}"
    if getattr(inner, "reason", None) in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"):
        return "what answers there does not speak TLS"
    return "TLS failed"
