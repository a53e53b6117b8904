"""What a failed HTTP answer of a chat-completions server means: whose fault it is, and whether a retry can help."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.backends.bodies import decode
from evenhand.errors import (
    AccessError,
    BackendError,
    FinalBackendError,
    RetryableBackendError,
    UnsupportedFeatureError,
)
from evenhand.rubric.model import Form

_SHOWN = 300
#: Bytes of a body that is no JSON; pages of proxies say what is wrong at their head.
_READ = 65_536
_CONTEXT = re.compile(
    r"context[ _](length|window|size)|maximum context|prompt is too long|input is too long|too many (input )?tokens",
    re.IGNORECASE,
)
_MODEL = re.compile(r"\bmodels?\b|\bdeployment\b", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|(model|deployment)\b.{0,80}?(not (be )?found|not exist|unknown|invalid)"
    r"|(invalid|unknown|no such|unrecognized) model",
    re.IGNORECASE | re.DOTALL,
)
_FILTER = re.compile(
    r"content_filter|content_policy|content management policy|moderation|input was flagged", re.IGNORECASE
)
_REFUSED = re.compile(
    r"unsupported|not support|n't support|unrecogni[sz]ed|unknown|unexpected|not (allowed|permitted|available)"
    r"|extra (fields?|inputs?)|not implemented",
    re.IGNORECASE,
)
_SYSTEM = re.compile(r"system.{0,20}role|role.{0,40}system", re.IGNORECASE)
_FEATURES: Mapping[Form, re.Pattern[str]] = {
    "schema": re.compile(r"response_?format|json_?schema|structured output|guided|grammar", re.IGNORECASE),
    "tool": re.compile(r"\btools?\b|tool_|function", re.IGNORECASE),
    "json": re.compile(r"response_?format|json_?object|json mode|\bjson\b", re.IGNORECASE),
}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error body says.

    Attributes:
        message: The server's words.
        code: Its error code and type, joined by a space; "" where it gives none.
        param: The parameter it names; "" where it names none.
    """

    message: str
    code: str = ""
    param: str = ""

    @property
    def words(self) -> str:
        """All of it, to search in."""
        return f"{self.message} {self.code} {self.param}"


def read_fault(body: bytes, clean: Callable[[str], str] = str) -> Fault:
    """The error in a body: the usual error object, a validation list, or plain text cut short.

    Args:
        body: The body of the answer.
        clean: Applied to every text in it, before anything is cut.
    """
    try:
        data: Any = decode(body, clean)
    except ValueError:
        text = clean(body[:_READ].decode("utf-8", "replace"))
        return Fault(_short(re.sub(r"<[^<>]*>", " ", text)))
    return fault_of(data)


def fault_of(data: Any) -> Fault:
    """The error in a decoded body."""
    if not isinstance(data, Mapping):
        return Fault(_short(str(data)))
    inner = data.get("error") or data
    if not isinstance(inner, Mapping):
        return Fault(_short(str(inner)))
    message = inner.get("message") or inner.get("detail") or inner.get("msg") or ""
    if isinstance(message, list):  # a validation list: only places and messages; it may quote the whole request
        message = "; ".join(
            f"{_place(entry.get('loc'))}: {entry.get('msg', '')}" for entry in message if isinstance(entry, Mapping)
        )
    codes = [str(inner[key]) for key in ("code", "type") if inner.get(key) is not None]
    return Fault(_short(str(message)), _short(" ".join(codes)), _short(str(inner.get("param") or "")))


def _place(loc: Any) -> str:
    """The place that a validation error names, as in ``body.tools``."""
    steps = loc if isinstance(loc, list) else [loc]
    return ".".join(str(step) for step in steps if isinstance(step, str | int))


def refused_parameter(fault: Fault, names: list[str]) -> str | None:
    """The one of the parameters sent that the server says it does not know or support."""
    if not _REFUSED.search(fault.words) or _CONTEXT.search(fault.words):
        return None
    if fault.param in names:
        return fault.param
    # The first one named is the refused one; a later one may be its replacement.
    found = [(at.start(), name) for name in names if (at := re.search(rf"\b{re.escape(name)}\b", fault.message))]
    return min(found)[1] if found else None


def refuses_system_role(fault: Fault) -> bool:
    """Whether the server says that it takes no system message."""
    return bool(_REFUSED.search(fault.words) and _SYSTEM.search(fault.words))


def is_filtered(status: int, fault: Fault) -> bool:
    """Whether the provider's content filter stopped the prompt: a refusal, not an error."""
    return status in (400, 403) and _FILTER.search(fault.words) is not None


def error_for(
    status: int, fault: Fault, form: Form, headers: Mapping[str, str], *, now: float, where: str
) -> BackendError:
    """The error that an HTTP answer with status >= 300 amounts to.

    Args:
        status: HTTP status.
        fault: What the body says; free of secrets.
        form: Output form that was asked for.
        headers: Response headers; keys compare without letter case.
        now: Wall clock, seconds since the epoch, used where the server sends no Date.
        where: The endpoint, for messages.
    """
    said = f"{where} answered {status}: {fault.message or fault.code or 'no reason given'}"
    if status < 400:
        return AccessError(said, hint="the endpoint redirects; give the final address as base URL", status=status)
    if status in (401, 402, 403):
        return AccessError(said, hint="check the API key and what it may use", status=status)
    if status == 429 and "insufficient_quota" in fault.code:
        return AccessError(said, hint="the account has no quota left", status=status)
    if status in (400, 404, 415, 422, 501) and form in _FEATURES and _FEATURES[form].search(fault.words):
        return UnsupportedFeatureError(said, feature=form, status=status)
    if status in (400, 413, 422) and _CONTEXT.search(fault.words):
        return FinalBackendError(said, hint="the prompt does not fit into the model's context", status=status)
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(fault.words)):
        remedy = "model" if _MODEL.search(fault.words) else "base URL (it usually ends in /v1)"
        return AccessError(said, hint=f"check the name of the {remedy}", status=status)
    if status in (408, 409, 425, 429) or (status >= 500 and status != 501):
        return RetryableBackendError(said, status=status, retry_after_s=retry_after(status, headers, now))
    return FinalBackendError(said, status=status)


def retry_after(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the server asks us to wait, None where it does not say.

    Read from ``retry-after-ms``, ``Retry-After`` (seconds or an HTTP date, measured against the server's own
    clock where it sends its Date), and for 429 from the reset times of limits that are used up.
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        seconds = _number(headers.get(name, ""))
        if seconds is not None:
            return seconds / per_second
    at = _date(headers.get("retry-after", ""))
    if at is not None:
        server_now = _date(headers.get("date", ""))
        return max(0.0, at - (now if server_now is None else server_now))
    if status != 429:
        return None
    waits = [
        span
        for kind in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{kind}", "0").strip() == "0"
        and (span := _span(headers.get(f"x-ratelimit-reset-{kind}", ""))) is not None
    ]
    return max(waits, default=None)


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


def _span(text: str) -> float | None:
    """Seconds of "1s", "120ms", "6m0s" or a bare number of seconds."""
    text = text.strip()
    bare = _number(text)
    if bare is not None:
        return bare
    pieces = _SPAN.findall(text)
    if not pieces or "".join(n + unit for n, unit in pieces) != text:
        return None
    return sum(float(n) * _SECONDS[unit] for n, unit in pieces)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
