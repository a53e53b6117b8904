"""Standard output and standard error, in whatever encoding and state the shell hands them to us."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
from typing import Any

import click

from evenhand._words import visible
from evenhand.errors import EvenhandError

_ESCAPE = "evenhand.escape"


class OutputError(EvenhandError):
    """Standard output can't be written: it is closed, or the disk behind it is full."""


def say(text: object) -> None:
    """A line of data or figures, on standard output."""
    click.echo(visible(str(text)), file=sys.stdout)


def note(text: object) -> None:
    """A line of progress or complaint, on standard error."""
    click.echo(visible(str(text)), file=sys.stderr)


def take_over() -> None:
    """Make the process's streams safe: characters that an encoding lacks are written as JSON escapes, a failure of
    standard output is an `OutputError`, and one of standard error is nothing to stop for.
    """
    codecs.register_error(_ESCAPE, _escaped)
    for number, mode in enumerate((os.O_RDONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:  # closed: take the number, so that no file of ours gets it
            os.open(os.devnull, mode)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _wrapped(sys.stdout, 1, _Out)
    sys.stderr = _wrapped(sys.stderr, 2, _Err)


def give_up() -> None:
    """Write what is still to come on standard output to nowhere, so that the flush at exit is silent."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _wrapped(stream: Any, number: int, kind: type[io.TextIOWrapper]) -> io.TextIOWrapper:
    if stream is None:
        return kind(open(number, "wb", closefd=False), "utf-8", errors=_ESCAPE)
    return kind(stream.buffer, stream.encoding, errors=_ESCAPE, line_buffering=stream.line_buffering)


class _Out(io.TextIOWrapper):
    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise _failed(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise _failed(error) from error


class _Err(io.TextIOWrapper):
    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            super().write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            super().flush()


def _failed(error: OSError) -> OutputError:
    return OutputError(f"can't write to standard output: {error.strerror or error}")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """The characters as they stand in JSON, so that JSON stays JSON; half a surrogate pair is one of them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
