"""``evenhand read``: the reader alone, on recorded replies, without a model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from evenhand.cli.output import say

if TYPE_CHECKING:
    from evenhand.rubric.model import OutputField
    from evenhand.verdict import Reply

_MOST_PROBLEMS = 100


@click.command("read")
@click.argument("replies")
def read_command(replies: str) -> None:
    """Read raw replies: JSON lines in, one JSON line each out. Never calls a model.

    REPLIES is a file of JSON lines, or - for standard input. A line has "id", "raw_kind" ("text" or
    "message"), "raw", "scale" ({"min", "max", "integer"}) or "labels", and "fields", the value's key first.
    Optional: "required" (keys that must be there), "finish" (the finish reason).

    Example: evenhand read examples/replies.jsonl
    """
    from evenhand import parse
    from evenhand.parse.line import line_from_reading

    with _opened(replies) as file:
        _check(file, replies)
        file.seek(0)
        for line_id, reply, fields in (_parsed(raw) for raw in file if raw.strip()):
            told = line_from_reading(line_id, parse.read(reply, fields), fields)
            say(json.dumps(told, allow_nan=False))


def _check(file: IO[bytes], name: str) -> None:
    """Look at every line before anything is printed.

    Raises:
        ItemError: lines that can't be used, with their numbers.
    """
    from evenhand.errors import ItemError, Problem

    problems = []
    bad = 0
    for number, raw in enumerate(file, 1):
        try:
            _parsed(raw) if raw.strip() else None
        except (ValueError, RecursionError) as error:
            bad += 1
            if bad <= _MOST_PROBLEMS:
                problems.append(Problem(number, "", _wrong(error)))
    if problems:
        hint = "each line must be one JSON object; evenhand read --help lists its keys"
        raise ItemError(problems, file=name, hint=hint, more=bad - len(problems))


def _wrong(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if "integer string conversion" in str(error):  # Python's own bound
        return "a number of too many digits"
    return "not valid JSON" if isinstance(error, json.JSONDecodeError | RecursionError) else str(error)


def _parsed(raw: bytes) -> tuple[Any, Reply, tuple[OutputField, ...]]:
    from evenhand.parse.line import fields_from_line, reply_from_line

    line = json.loads(raw)
    if not isinstance(line, dict):
        raise ValueError("not a JSON object")
    if not isinstance(line.get("id"), str | int):
        raise ValueError("id must be a text or a whole number")
    return line["id"], reply_from_line(line), fields_from_line(line)


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """The file, or standard input spooled to one, so that it can be read twice."""
    from evenhand.errors import InputError
    from evenhand.rows import spooled, stdin_pieces

    if name == "-":
        with spooled(stdin_pieces()) as spool:
            yield spool
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115
    except FileNotFoundError:
        raise InputError(f"no file {name}", hint="- reads standard input") from None
    except (OSError, ValueError) as error:
        raise InputError(f"can't read {name:.200}: {getattr(error, 'strerror', None) or error}") from None
    with file:
        yield file
