"""What a fault server is asked to do: settings from a path prefix, and which fault strikes which request."""

from __future__ import annotations

import base64
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any
from urllib.parse import quote, unquote

#: Fault -> what the client sees.
FAULTS: Mapping[str, str] = {
    "400": "status 400, the context is too long",
    "401": "status 401, the key is refused",
    "403": "status 403",
    "404": "status 404, no such model",
    "408": "status 408",
    "409": "status 409",
    "422": "status 422, a validation list",
    "429": "status 429 with the time of the next try, as `style` says",
    "500": "status 500 with an error body",
    "502": "status 502 with a page of HTML",
    "503": "status 503 with the time of the next try",
    "529": "status 529, overloaded, with the time of the next try",
    "quota": "status 429, the quota is used up",
    "moderation": "status 400, the provider's filter stopped the prompt",
    "redirect": "status 302 to another address",
    "reset": "the connection is reset before the reply",
    "close": "the connection is closed before the reply",
    "cut": "the connection is closed half-way through the body",
    "hang": "no reply, the connection stays open",
    "slow": "the body dribbles in over slow_ms",
    "envelope": "status 200, the envelope is not whole JSON",
    "choices": "status 200, an envelope without choices",
    "gateway": "status 200 with an error object of code 503",
    "empty": "content is the empty text",
    "null": "content is null",
    "refusal": "a refusal beside a null content",
    "filter": "finish reason content_filter and no content",
    "prose": "prose without a value",
    "fenced": "the JSON in a fence with prose around",
    "invalid": "JSON that breaks the schema",
    "length": "JSON cut short, finish reason length",
}
FEATURES = (
    "json_schema", "tools", "json_object", "temperature", "max_tokens", "seed", "top_p", "logprobs", "top_logprobs",
    "system",
)  # fmt: skip
_FREE_TEXTS = ("reply", "plain", "salt", "model_alias")
STYLES = ("seconds", "date", "ms", "reset", "none")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and whom it strikes.

    Attributes:
        kind: A key of `FAULTS`.
        first: The first so many tries of each distinct body; None for a share.
        share: Share of tries, in [0, 1]; which ones is decided by the body and the try's number.
    """

    kind: str
    first: int | None
    share: float


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How a server answers.

    Attributes:
        latency: Milliseconds before a reply, "50", or a range decided by the body, "20-80", or
            "lognormal:MEDIAN:SIGMA", decided by it as well.
        fault: Faults joined by "+", each ``KIND`` (always), ``KIND:0.05`` (that share of tries) or ``KIND:first2``
            (the first two tries of each distinct body). Shares add up; "first" counts add up.
        retry_after: Seconds sent with 429 and 503.
        style: How they are sent: seconds, date (an HTTP date), ms (retry-after-ms), reset (the provider's own way:
            rate limit headers, or a detail of the body), none.
        max_inflight: Status 429 above so many requests at once; 0 for no limit.
        rps: Status 429 above so many requests a second (a bucket that holds a second's worth); 0 for no limit.
        batch: How the first batch ends: "expired" with half of its requests answered, "failed", or ""
            as it should; "none" for a server without batches.
        refuse: Features refused with status 400, joined by "+", out of `FEATURES`.
        drop: Features silently ignored: tools, json_schema, json_object.
        slow_ms: Milliseconds the body of a slow reply takes.
        choices: How many choices a reply has; the further ones differ from the first.
        model_alias: Model name in replies; "" echoes the one asked for.
        reply: The content of every reply (or the arguments of its call); "" for values made from the schema.
        plain: The content of replies that no schema binds, such as those to JSON mode; "" for prose, or some JSON.
        seed: Other seeds draw other values.
        echo: Error bodies repeat the header of the key.
        prompt_tokens: Tokens of the prompt that every reply reports, as a server that cuts prompts does; 0 for a
            quarter of its bytes.
        top_logprobs: Most alternatives of a token that it lists; a request for more is refused.
        salt: Any text; equal bodies under different salts are counted apart.
    """

    latency: str = "0"
    fault: str = ""
    retry_after: float = 1.0
    style: str = "seconds"
    max_inflight: int = 0
    rps: float = 0.0
    batch: str = ""
    refuse: str = ""
    drop: str = ""
    slow_ms: float = 200.0
    choices: int = 1
    model_alias: str = ""
    reply: str = ""
    plain: str = ""
    seed: int = 0
    echo: bool = False
    prompt_tokens: int = 0
    top_logprobs: int = 20
    salt: str = ""

    def strike(self, body_hash: int, tries: int) -> str | None:
        """The fault of one try (0 is the first) of a body; the same whatever the order of arrival."""
        if not self.fault:
            return None
        draw = random.Random(f"{body_hash}.{tries}.{self.seed}").random()
        for fault in self.faults:
            if fault.first is not None:
                if tries < fault.first:
                    return fault.kind
                tries -= fault.first
            elif draw < fault.share:
                return fault.kind
            else:
                draw -= fault.share
        return None

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(_fault(text) for text in _split(self.fault))

    @property
    def refused(self) -> frozenset[str]:
        return frozenset(_split(self.refuse))

    @property
    def dropped(self) -> frozenset[str]:
        return frozenset(_split(self.drop))

    def latency_s(self, share: float) -> float:
        """Seconds before the reply to a body; ``share`` of all bodies, in [0, 1), is answered sooner."""
        if self.latency.startswith("lognormal:"):
            median, sigma = map(float, self.latency.split(":")[1:])
            return median / 1e3 * math.exp(sigma * NormalDist().inv_cdf(min(max(share, 1e-4), 1 - 1e-4)))
        low, _, high = self.latency.partition("-")
        return (float(low) + (float(high or low) - float(low)) * share) / 1e3

    def check(self) -> None:
        """Raise ValueError where a setting means nothing."""
        _ = self.faults, self.latency_s(0.5)
        for name in self.refused | self.dropped:
            if name not in FEATURES:
                raise ValueError(f"unknown feature {name!r}; known: {', '.join(FEATURES)}")
        if self.style not in STYLES:
            raise ValueError(f"unknown style {self.style!r}; known: {', '.join(STYLES)}")


def behaviour(settings: Mapping[str, Any]) -> Behaviour:
    """A behaviour from settings given as text or as Python values.

    Raises:
        ValueError: an unknown setting, fault, feature or style.
    """
    kinds: dict[str, Callable[[Any], Any]] = {f.name: type(f.default) for f in fields(Behaviour)}
    unknown = set(settings) - set(kinds)
    if unknown:
        raise ValueError(f"unknown settings {sorted(unknown)}; known: {', '.join(kinds)}")
    made: dict[str, Any] = {}
    for name, value in settings.items():
        if kinds[name] is bool:
            made[name] = str(value).lower() in ("1", "true", "yes")
        elif isinstance(value, list | tuple | set | frozenset):
            made[name] = "+".join(map(str, value))
        else:
            made[name] = kinds[name](value)
    result = Behaviour(**made)
    result.check()
    return result


def to_prefix(settings: Mapping[str, Any]) -> str:
    """The path segment that asks for a behaviour, without slashes; inverse of `from_prefix`."""
    behaviour(settings)  # mistakes show here, not in the server
    pairs = []
    for name, value in settings.items():
        text = "+".join(map(str, value)) if isinstance(value, list | tuple | set | frozenset) else str(value)
        if name in _FREE_TEXTS:
            text = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        pairs.append(f"{name}={quote(text.replace(',', '+'), safe='+:.-_')}")
    return "~" + ",".join(pairs)


def from_prefix(prefix: str) -> Behaviour:
    """The behaviour that a path segment like ``~latency=50,fault=429:first2`` asks for.

    Raises:
        ValueError: as in `behaviour`.
    """
    settings: dict[str, str] = {}
    for pair in filter(None, unquote(prefix).removeprefix("~").split(",")):
        name, _, text = pair.partition("=")
        if name in _FREE_TEXTS:
            text = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
        settings[name] = text
    return behaviour(settings)


def _fault(text: str) -> Fault:
    kind, _, how = text.partition(":")
    if kind not in FAULTS:
        raise ValueError(f"unknown fault {kind!r}; known: {', '.join(FAULTS)}")
    if how.startswith("first"):
        return Fault(kind, int(how[5:] or 1), 0.0)
    return Fault(kind, None, float(how or 1))


def _split(text: str) -> list[str]:
    return [part for part in text.replace(",", "+").split("+") if part]
