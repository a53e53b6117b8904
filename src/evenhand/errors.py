"""Every error evenhand raises, who must act on it, and whether a retry can help.

    EvenhandError                 base; never raised itself
    |- InputError                 the caller's; found before the first model call; exit 2
    |  |- RubricError             a rubric file; carries every mistake found in it
    |  |- ItemError               a data file; carries every bad row found in it
    |  |- TemplateError           a placeholder missing or unknown
    |  |- UnknownNameError        no such thing; lists close names
    |  `- StatisticError          undefined for this level of measurement or shape
    |- BackendError               the judge's side; exit 3
    |  |- RetryableBackendError   rate limit, timeout, unavailable: the same request may succeed later
    |  `- FinalBackendError       the same request will never succeed
    |     |- AccessError          key or model refused: the whole run stops
    |     `- UnsupportedFeatureError   this endpoint lacks a feature; another output form may do
    |- RunError                   the store: mismatch, corrupt, locked, budget reached; exit 4
    `- MissingExtraError          an optional package is needed; names the extra; exit 2

A bad *reply* is not an exception: it becomes an outcome of the verdict and is counted.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar


class EvenhandError(Exception):
    """Base of all errors evenhand raises on purpose.

    Args:
        message: What is wrong, with its place.
        hint: What to do about it; printed after the message.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class InputError(EvenhandError, ValueError):
    """What the caller gave can't be used; nothing was sent."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file: where it is, what it is, what to do.

    Attributes:
        line: 1-based line in the file, None when there is no file.
        path: The place inside the document, as in ``$.criteria[0].scale``.
        message: What is wrong.
        remedy: What would mend it; may be empty.
    """

    line: int | None
    path: str
    message: str
    remedy: str = ""

    def render(self, file: str | None) -> str:
        place = ":".join(str(p) for p in (file, self.line) if p is not None)
        head = " ".join(p for p in (place, self.path) if p)
        tail = f" ({self.remedy})" if self.remedy else ""
        return f"{head}: {self.message}{tail}" if head else f"{self.message}{tail}"


class _FileError(InputError):
    """An input error that carries all the mistakes of one file."""

    def __init__(
        self, problems: Sequence[Problem], *, file: str | None = None, hint: str | None = None, more: int = 0
    ) -> None:
        self.problems = tuple(problems)
        self.file = file
        self.more = more
        lines = [problem.render(file) for problem in self.problems]
        if more:
            lines.append(f"... and {more} more")
        super().__init__("\n".join(lines), hint=hint)


class RubricError(_FileError):
    """A rubric file has mistakes; ``problems`` lists all of them."""


class ItemError(_FileError):
    """A data file has bad rows; ``problems`` lists the first hundred, ``more`` counts the rest.

    Where a run has no good row, what is wrong with many of them alike is one problem.
    """


class TemplateError(InputError):
    """A prompt template has a placeholder that is missing or unknown."""


class UnknownNameError(InputError):
    """A name that does not exist.

    Args:
        kind: What was looked for, as in "rubric".
        name: The name given.
        known: The names that exist.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str | None = None) -> None:
        self.name = name
        self.known = sorted(known)
        self.close = close_names(str(name), self.known)  # Python callers may give anything
        hint = (instead(str(name), self.known) or None) if hint is None else hint
        super().__init__(f"unknown {kind} {name!r}", hint=hint)


class StatisticError(InputError):
    """A statistic is undefined for these data."""


class BackendError(EvenhandError):
    """The judge's side failed.

    Attributes:
        backend: Name of the backend, as in "openai".
        model: Model asked for.
        status: HTTP status, where there was one.
        request_digest: Digest of the request that failed.
        retry_after_s: Seconds to wait before the next try, where the server said so.
        maybe_paid: The server may have done the work, and may charge for it.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        backend: str | None = None,
        model: str | None = None,
        status: int | None = None,
        request_digest: str | None = None,
        retry_after_s: float | None = None,
        maybe_paid: bool = False,
    ) -> None:
        super().__init__(message, hint=hint)
        self.backend = backend
        self.model = model
        self.status = status
        self.request_digest = request_digest
        self.retry_after_s = retry_after_s
        self.maybe_paid = maybe_paid


class RetryableBackendError(BackendError):
    """Rate limit, timeout or outage: the same request may succeed later."""


class FinalBackendError(BackendError):
    """The same request will never succeed: rejected, or its context is too long."""


class AccessError(FinalBackendError):
    """The key or the model is refused: every further request would fail too, so the run stops."""


class UnsupportedFeatureError(FinalBackendError):
    """The endpoint does not offer a feature the request used; ``feature`` names it."""

    def __init__(self, message: str, *, feature: str, hint: str | None = None, status: int | None = None) -> None:
        super().__init__(message, hint=hint, status=status)
        self.feature = feature


class RunError(EvenhandError):
    """The run's store can't go on: mismatch, corrupt, locked, or a budget was reached."""

    exit_code = 4


class MissingExtraError(EvenhandError, ImportError):
    """An optional package is not installed."""

    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(f"this needs the package {package}", hint=f"pip install 'evenhand[{extra}]'")


def instead(name: str, known: Iterable[str]) -> str:
    """The names that there are instead of one, close ones first; "" where there are none."""
    names = sorted(known)
    close = close_names(name, names)
    near = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{near}known: {', '.join(names)}" if names else ""


def close_names(name: str, known: Iterable[str]) -> list[str]:
    """Up to three of ``known`` that look like ``name``, letter case aside."""
    by_lower = {k.lower(): k for k in known}
    return [by_lower[m] for m in difflib.get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.6)]
