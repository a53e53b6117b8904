"""What a failed HTTP answer of a provider means: whose fault it is, and whether a retry can help."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evenhand.backends.bodies import decode
from evenhand.backends.waits import retry_after, span
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
    r"context[ _](length|window|size|limit)|maximum context|(prompt|input) is too long|too many (input )?tokens(?! per)"
    r"|input tokens? exceed|token count.{0,40}exceed|exceeds? (the )?maximum (number of )?(input )?(length|tokens)"
    r"|number of input tokens",
    re.IGNORECASE,
)
_MODEL = re.compile(r"\bmodels?\b|\bdeployment\b", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model_not_found|(model|deployment)\b.{0,80}?(not (be )?found|not exist|unknown|invalid)"
    r"|(invalid|unknown|no such|unrecognized) model|on-demand throughput|resolve the foundation model",
    re.IGNORECASE | re.DOTALL,
)
#: Some providers say these with a status of 400.
_NO_ACCESS = re.compile(
    r"API[ _]key (not valid|expired)|API_KEY_INVALID|credit balance|location is not supported|ExpiredToken"
    r"|UnrecognizedClient|InvalidSignature|IncompleteSignature",
    re.IGNORECASE,
)
#: Limits that no wait within a run outlasts.
_NO_QUOTA = re.compile(r"insufficient_quota|PerDay|(?i:too many tokens per day)")
_FILTER = re.compile(
    r"content_filter|content_policy|content management policy|moderation|input was flagged|content filtering policy",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"unsupported|not support|n['\u2019]t support|unrecogni[sz]ed|unknown|unexpected|deprecated"
    r"|not (allowed|permitted|available|enabled)|extra (fields?|inputs?)|extraneous|not implemented",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"system.{0,20}(role|message|instruction|prompt)|role.{0,40}system|developer instruction", re.IGNORECASE
)
_FEATURES: Mapping[Form, re.Pattern[str]] = {
    "schema": re.compile(
        r"response_?(format|schema|mime)|(json|response_json)_?schema|output_?(config|format)|structured output"
        r"|json mode|guided|grammar",
        re.IGNORECASE,
    ),
    "tool": re.compile(r"\btools?\b|tool_|tool(choice|config|spec)|function", re.IGNORECASE),
    "json": re.compile(r"response_?(format|mime)|json_?object|json mode|\bjson\b", re.IGNORECASE),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What an error body says.

    Attributes:
        message: The server's words.
        code: Its error code and type, joined by a space; "" where it gives none.
        param: The parameter it names; "" where it names none.
        wait_s: Seconds it asks us to wait, in the body itself.
    """

    message: str
    code: str = ""
    param: str = ""
    wait_s: float | None = None

    @property
    def words(self) -> str:
        """All of it, to search in."""
        return f"{self.message} {self.code} {self.param}"


def read_fault(body: bytes, clean: Callable[[str], str] = str, *, kind: str = "") -> Fault:
    """The error in a body: the usual error object, a validation list, or plain text cut short.

    Args:
        body: The body of the answer.
        clean: Applied to every text in it, before anything is cut.
        kind: The error's type, where a header names it.
    """
    try:
        data: Any = decode(body, clean)
    except ValueError:
        text = clean(body[:_READ].decode("utf-8", "replace"))
        return Fault(_short(re.sub(r"<[^<>]*>", " ", text)), clean(kind))
    fault = fault_of(data)
    return replace(fault, code=_short(f"{fault.code} {clean(kind)}".strip())) if kind else fault


def fault_of(data: Any) -> Fault:
    """The error in a decoded body."""
    if isinstance(data, list) and data:
        data = data[0]
    if not isinstance(data, Mapping):
        return Fault(_short(str(data)))
    inner = data.get("error") or data
    if not isinstance(inner, Mapping):
        return Fault(_short(str(inner)))
    message = next((inner[key] for key in ("message", "detail", "msg", "Message") if inner.get(key)), "")
    if isinstance(message, list):  # a validation list: only places and messages; it may quote the whole request
        message = "; ".join(
            f"{_place(entry.get('loc'))}: {entry.get('msg', '')}" for entry in message if isinstance(entry, Mapping)
        )
    codes = [str(inner[key]) for key in ("code", "type", "status", "__type") if inner.get(key) is not None]
    more, wait_s = _details(inner.get("details"))
    return Fault(_short(str(message)), _short(" ".join(codes + more)), _short(str(inner.get("param") or "")), wait_s)


def _details(details: Any) -> tuple[list[str], float | None]:
    """Reasons and quotas that a list of details names, and the longest wait."""
    found = [entry for entry in details if isinstance(entry, Mapping)] if isinstance(details, list) else []
    waits = [wait for entry in found if (wait := span(str(entry.get("retryDelay", "")))) is not None]
    quotas = [v for entry in found if isinstance(entry.get("violations"), list) for v in entry["violations"]]
    names = [str(entry["reason"]) for entry in found if entry.get("reason")]
    names += [str(quota["quotaId"]) for quota in quotas if isinstance(quota, Mapping) and quota.get("quotaId")]
    return names, max(waits, default=None)


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
    found = [(at.start(), name) for name in names if (at := re.search(_writings(name), fault.message))]
    return min(found)[1] if found else None


def _writings(name: str) -> str:
    """A pattern of a parameter's name, also with its words joined by an underscore."""
    return rf"\b(?i:{re.sub('(?<=[a-z])(?=[A-Z])', '_?', re.escape(name))})\b"


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
    words = fault.words
    if status in (401, 402, 403) or (status == 400 and _NO_ACCESS.search(words)):
        return AccessError(said, hint="check the API key and what it may use", status=status)
    if status == 429 and _NO_QUOTA.search(words):
        return AccessError(said, hint="the account has no quota left", status=status)
    if status in (400, 413, 422) and _CONTEXT.search(words):
        hint = "the prompt does not fit into the model's context; give shorter items, or a model that takes more"
        return FinalBackendError(said, hint=hint, status=status)
    if status in (400, 404, 415, 422, 501) and form in _FEATURES and _FEATURES[form].search(words):
        return UnsupportedFeatureError(said, feature=form, status=status)
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(words)):
        remedy = "model" if _MODEL.search(words) else "base URL (it usually ends in /v1)"
        return AccessError(said, hint=f"check the name of the {remedy}", status=status)
    if status in (408, 409, 424, 425, 429) or (status >= 500 and status != 501):
        waits = [wait for wait in (retry_after(status, headers, now), fault.wait_s) if wait is not None]
        return RetryableBackendError(said, status=status, retry_after_s=max(waits, default=None))
    return FinalBackendError(said, status=status)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
