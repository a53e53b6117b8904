"""Verdicts and replies: what came back, what was read from it, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from operator import attrgetter
from typing import Any, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from evenhand.scale import Value

FieldValue = Value | None | list[Any]


class Status(StrEnum):
    """The outcome of one trial."""

    SCORED = "scored"
    REFUSED = "refused"
    UNPARSED = "unparsed"
    FAILED = "failed"


class Failure(StrEnum):
    """Why a field has no value: the classes of unreadable replies."""

    EMPTY = "empty"
    REFUSAL = "refusal"
    NO_RATING = "no_rating"
    MISSING_FIELD = "missing_field"
    AMBIGUOUS = "ambiguous"
    UNKNOWN_LABEL = "unknown_label"
    OUT_OF_RANGE = "out_of_range"
    NOT_INTEGER = "not_integer"
    SCALE_MISMATCH = "scale_mismatch"
    WRONG_TYPE = "wrong_type"
    TRUNCATED = "truncated"
    UNPARSEABLE = "unparseable"


class Usage(Struct, frozen=True, gc=False):
    """What a reply cost, as the server reported it; None where it did not say.

    Attributes:
        prompt_tokens: Tokens of the prompt, cached ones included.
        completion_tokens: Tokens generated, reasoning included.
        cached_tokens: Prompt tokens served from a prefix cache.
        cost_usd: Price in US dollars, None when unknown.
        latency_s: Seconds from sending to the whole reply.
        written_tokens: Prompt tokens put into a prefix cache.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost_usd: float | None = None
    latency_s: float | None = None
    written_tokens: int | None = None


_NO_USAGE = Usage()
_spread = attrgetter("distribution")
_OF_USAGE = Usage.__struct_fields__


class ToolCall(Struct, frozen=True, gc=False, array_like=True):
    """A function call in a reply; ``arguments`` is the text as sent, or the object some servers send."""

    name: str
    arguments: str | Mapping[str, Any]


class Distribution(Struct, frozen=True, gc=False):
    """Probabilities over the legal values of one field, from the judge's token probabilities.

    Attributes:
        probabilities: value -> probability, renormalised over the legal values; sums to 1.
        missing_mass: Probability the judge put on anything else, in [0, 1].
    """

    probabilities: Mapping[Value, float]
    missing_mass: float

    @property
    def expected(self) -> float | None:
        """Probability-weighted mean of a numeric scale; None for labels."""
        if any(isinstance(v, str | bool) for v in self.probabilities):
            return None
        return sum(float(v) * p for v, p in self.probabilities.items())


class Reply(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a backend returned for one request.

    Attributes:
        text: The content, None when there was none.
        tool_calls: Function calls, in order.
        refusal: The provider's own refusal field.
        reasoning: A reasoning field beside the content; never mined for values.
        finish: The finish reason as the server names it ("stop", "length", "content_filter", ...).
        model: The model name the server returned.
        usage: Cost and latency.
        distributions: field name -> distribution, where the backend gives probabilities.
        wait_s: Seconds for which the server wants no further request; not stored.
    """

    text: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    refusal: str | None = None
    reasoning: str | None = None
    finish: str | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    distributions: Mapping[str, Distribution] = field(default_factory=dict)
    wait_s: float | None = None


class FieldOutcome(Struct, frozen=True, gc=False, omit_defaults=True):
    """One field of a verdict: a value, or the reason there is none.

    Attributes:
        value: The value read; None when ``failure`` is set or the field is null.
        failure: Why there is no value.
        detail: The piece of the reply that could not be read, shortened.
        preset: The value was set in code, not by the judge.
        distribution: Probabilities over the legal values, where the backend gave them.
    """

    value: FieldValue = None
    failure: Failure | None = None
    detail: str = ""
    preset: bool = False
    distribution: Distribution | None = None


class Reading(Struct, frozen=True, gc=False):
    """What the reader made of one reply.

    Attributes:
        fields: field name -> outcome, for every field asked.
        repaired: Whether repair was needed to read it.
        failure: A failure of the whole reply (empty, refusal, truncated, ...); then every field carries it.
    """

    fields: Mapping[str, FieldOutcome]
    repaired: bool = False
    failure: Failure | None = None


class Violation(Struct, frozen=True, gc=False, array_like=True):
    """A broken rule.

    Attributes:
        rule: Id of the rule; expanded rules carry their slot or criterion, as in "unsafe-rank:a".
        severity: "violation" (the verdict contradicts itself) or "warning".
        message: What clashes, with the values.
    """

    rule: str
    severity: Literal["violation", "warning"]
    message: str


class Verdict(Struct, frozen=True, gc=False):
    """The recorded answer to one trial, mapped back to the item's own response order.

    Attributes:
        status: Scored (every criterion has a value), Refused, Unparsed or Failed.
        fields: field name -> outcome.
        violations: Broken rules, warnings included.
        not_checked: Ids of rules that could not be checked for want of a field.
        failure: For Unparsed the class, for Failed the error's name, for Refused "refusal".
        detail: The error text of a Failed verdict.
        calls: Requests sent for this verdict (0: set in code; 2: re-asked).
        repaired: A reply needed repair.
        re_asked: The trial's one re-ask was used.
        first_violations: Of a re-asked trial, the rules of severity "violation" that its first reply broke; None
            where there was no re-ask, or the first reply could not be read.
        model: The model name the server returned.
        usage: Summed over its calls.
        reply_digests: Digests of the requests whose replies it was read from, in order.
    """

    status: Status
    fields: Mapping[str, FieldOutcome] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    not_checked: tuple[str, ...] = ()
    failure: str | None = None
    detail: str = ""
    calls: int = 0
    repaired: bool = False
    re_asked: bool = False
    first_violations: tuple[str, ...] | None = None
    model: str | None = None
    usage: Usage = field(default_factory=Usage)
    reply_digests: tuple[str, ...] = ()

    def value(self, name: str) -> FieldValue:
        """The value of one field, None when it has none."""
        outcome = self.fields.get(name)
        return outcome.value if outcome is not None else None

    @property
    def by_judge(self) -> bool:
        """Whether the judge was asked, in vain or not; else the verdict is set in code."""
        return self.calls > 0 or self.status is not Status.SCORED

    @property
    def broken(self) -> tuple[str, ...]:
        """Ids of the broken rules of severity "violation"."""
        return tuple(v.rule for v in self.violations if v.severity == "violation")

    @property
    def consistent(self) -> bool:
        """No rule of severity "violation" is broken."""
        return not self.broken


def outcome_to_plain(outcome: FieldOutcome) -> dict[str, Any]:
    """Plain JSON data of one field's outcome; keys at their default are left out."""
    plain: dict[str, Any] = {"value": outcome.value}
    if outcome.failure is not None:
        plain["failure"] = outcome.failure.value
    if outcome.detail:
        plain["detail"] = outcome.detail
    if outcome.preset:
        plain["preset"] = True
    if outcome.distribution is not None:
        plain["distribution"] = distribution_to_plain(outcome.distribution)
    return plain


def outcome_from_plain(plain: Mapping[str, Any]) -> FieldOutcome:
    """The inverse of `outcome_to_plain`."""
    failure = plain.get("failure")
    spread = plain.get("distribution")
    return FieldOutcome(
        value=plain.get("value"),
        failure=Failure(failure) if failure else None,
        detail=plain.get("detail", ""),
        preset=plain.get("preset", False),
        distribution=distribution_from_plain(spread) if spread else None,
    )


def distribution_to_plain(spread: Distribution) -> dict[str, Any]:
    """Plain JSON data; values stay typed because they are kept as pairs, not as keys."""
    return {"p": [[value, p] for value, p in spread.probabilities.items()], "missing": spread.missing_mass}


def distribution_from_plain(plain: Mapping[str, Any]) -> Distribution:
    """The inverse of `distribution_to_plain`."""
    return Distribution(dict(plain["p"]), plain["missing"])


def verdict_to_plain(verdict: Verdict) -> dict[str, Any]:
    """Plain JSON data of a verdict."""
    return {
        "status": verdict.status.value,
        "fields": {name: outcome_to_plain(outcome) for name, outcome in verdict.fields.items()},
        "violations": [[v.rule, v.severity, v.message] for v in verdict.violations],
        "not_checked": list(verdict.not_checked),
        "failure": verdict.failure,
        "detail": verdict.detail,
        "calls": verdict.calls,
        "repaired": verdict.repaired,
        "re_asked": verdict.re_asked,
        "first_violations": None if verdict.first_violations is None else list(verdict.first_violations),
        "model": verdict.model,
        "usage": asdict(verdict.usage),
        "reply_digests": list(verdict.reply_digests),
    }


def verdict_to_stored(verdict: Verdict) -> Any:
    """What msgspec encodes to JSON that `verdict_from_plain` reads, in a fraction of the time of plain data."""
    return verdict_to_plain(verdict) if any(map(_spread, verdict.fields.values())) else verdict


def verdict_from_plain(plain: Mapping[str, Any]) -> Verdict:
    """The inverse of `verdict_to_plain`."""
    rest = {key: plain[key] for key in ("failure", "detail", "calls", "repaired", "re_asked", "model")}
    first = plain.get("first_violations")
    return Verdict(
        status=Status(plain["status"]),
        fields={name: outcome_from_plain(outcome) for name, outcome in plain["fields"].items()},
        violations=tuple(Violation(*broken) for broken in plain["violations"]),
        not_checked=tuple(plain["not_checked"]),
        first_violations=None if first is None else tuple(first),
        usage=Usage(**plain["usage"]),
        reply_digests=tuple(plain["reply_digests"]),
        **rest,
    )


def reply_to_plain(reply: Reply) -> dict[str, Any]:
    """Plain JSON data of a reply, so that it can be read again without a call."""
    plain: dict[str, Any] = {
        "text": reply.text,
        "refusal": reply.refusal,
        "reasoning": reply.reasoning,
        "finish": reply.finish,
        "model": reply.model,
        "usage": asdict(reply.usage),
    }
    if reply.tool_calls:
        plain["tool_calls"] = [[call.name, call.arguments] for call in reply.tool_calls]
    if reply.distributions:
        plain["distributions"] = {name: distribution_to_plain(d) for name, d in reply.distributions.items()}
    return plain


def reply_to_stored(reply: Reply) -> Any:
    """As `verdict_to_stored`: what is at its default is left out."""
    return reply_to_plain(reply) if reply.distributions or reply.wait_s is not None else reply


def reply_from_plain(plain: Mapping[str, Any]) -> Reply:
    """The inverse of `reply_to_plain`."""
    return Reply(
        text=plain.get("text"),
        tool_calls=tuple(ToolCall(name, arguments) for name, arguments in plain.get("tool_calls", ())),
        refusal=plain.get("refusal"),
        reasoning=plain.get("reasoning"),
        finish=plain.get("finish"),
        model=plain.get("model"),
        usage=Usage(**plain.get("usage", {})),
        distributions={n: distribution_from_plain(d) for n, d in plain.get("distributions", {}).items()},
    )


def add_usage(a: Usage, b: Usage) -> Usage:
    """Sum of two usages; what only one of them reports is kept."""
    if a == _NO_USAGE:
        return b

    def plus(x: float | None, y: float | None) -> Any:
        return x if y is None else y if x is None else x + y

    return Usage(*(plus(getattr(a, name), getattr(b, name)) for name in _OF_USAGE))
