"""How long a server wants us to wait, as far as its headers tell."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from datetime import datetime

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_EPOCH = 1e9  # no span is so long
#: Headers of what is left of a limit, and of when it is whole again.
_LIMITS = [
    *((f"x-ratelimit-remaining-{kind}", f"x-ratelimit-reset-{kind}") for kind in ("requests", "tokens")),
    *(
        (f"anthropic-ratelimit-{kind}-remaining", f"anthropic-ratelimit-{kind}-reset")
        for kind in ("requests", "tokens", "input-tokens", "output-tokens")
    ),
]
#: All headers that may tell a wait.
_TOLD = frozenset(["retry-after-ms", "retry-after", *(name for names in _LIMITS for name in names)])


def retry_after(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks us to wait, None where it does not say.

    Read from ``retry-after-ms``, ``Retry-After`` (seconds or an HTTP date, measured against the server's own
    clock where it sends its Date), and for 429 and success from the reset times of limits that are used up; a success
    must say so of a limit.

    Args:
        status: HTTP status.
        headers: Response headers; keys compare without letter case.
        now: Wall clock, seconds since the epoch, used where the server sends no Date.
    """
    if _TOLD.isdisjoint(map(str.lower, headers)):
        return None  # as nearly always
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        if name in headers and (seconds := _number(headers[name])) is not None:
            return seconds / per_second
    resets = []
    if status < 300 or status == 429:
        unsaid = "0" if status == 429 else ""
        resets = [headers.get(reset, "") for left, reset in _LIMITS if headers.get(left, unsaid).strip() == "0"]
    at = _date(headers["retry-after"]) if "retry-after" in headers else None
    if at is None and not resets:
        return None
    server_now = _date(headers.get("date", ""))
    now = now if server_now is None else server_now
    if at is not None:
        return max(0.0, at - now)
    waits = [wait for reset in resets if (wait := _until(reset, now)) is not None]
    return max(waits, default=None)


def span(text: str) -> float | None:
    """Seconds of "1s", "120ms", "6m0s" or a bare number of seconds."""
    text = text.strip()
    bare = _number(text)
    if bare is not None:
        return bare
    pieces = _SPAN.findall(text)
    if not pieces or "".join(n + unit for n, unit in pieces) != text:
        return None
    return sum(float(n) * _SECONDS[unit] for n, unit in pieces)


def _until(reset: str, now: float) -> float | None:
    """Seconds until a reset, told as a span, as seconds or milliseconds since the epoch, or as a time of RFC 3339."""
    wait = span(reset)
    if wait is not None and wait > _EPOCH:
        return max(0.0, (wait / 1000 if wait > 1000 * _EPOCH else wait) - now)
    if wait is not None:
        return wait
    try:
        at = datetime.fromisoformat(reset.strip())
    except ValueError:
        return None
    return None if at.tzinfo is None else max(0.0, at.timestamp() - now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _date(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None
