"""JSON bodies of providers: what is sent, and what comes back from a server that may send anything."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from evenhand.verdict import Usage

#: Levels of lists and objects in a body. No honest reply comes near.
_DEEPEST = 100
_ARGUMENTS = ("arguments", "input", "args")
_OBJECT_OF_ARGUMENTS = re.compile(rf'"(?:{"|".join(_ARGUMENTS)})"\s*:\s*\{{')
#: The same, each name by itself: a pattern that begins with one text is found many times quicker.
_BYTES_OF_ARGUMENTS = [re.compile(rb'"%s"\s*:\s*\{' % name.encode()) for name in _ARGUMENTS]
#: More tokens or dollars of one reply are nonsense, and would spoil every sum they stand in.
_MOST = 10**12


def encode(body: Mapping[str, Any]) -> bytes:
    """JSON bytes; a lone surrogate, which has no UTF-8 form, becomes a question mark."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")


def decode(body: bytes, clean: Callable[[str], str] = str) -> Any:
    """Plain data from JSON bytes; lone surrogates as in `encode`.

    Args:
        body: What was received, or a line of a file.
        clean: Applied to every text in it, keys included.

    Raises:
        ValueError: not JSON, or nested deeper than 100 levels.
    """
    try:
        body = _twice_as_text(body)
        try:
            data = msgspec.json.decode(body)
            if _is_flat(body) and (clean is str or (text := body.decode()) == clean(text)):
                return data  # as nearly always: nothing to clean, whether it is looked for in one text or in each
        except ValueError:
            # The usual cause in a sound body is an escaped half of a surrogate pair, left by a cut emoji.
            data = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON at character {error.pos + 1}: {error.msg}") from None
    return _cleaned(data, clean, _DEEPEST)


def _is_flat(body: bytes) -> bool:
    """Whether so few lists and objects can't be nested too deeply."""
    return body.count(b"[") + body.count(b"{") <= _DEEPEST


def _twice_as_text(body: bytes) -> bytes:
    """A body in which arguments that have a key twice are a text: as an object they would keep the last one only."""
    if not any(pattern.search(body) for pattern in _BYTES_OF_ARGUMENTS):
        return body
    twice: list[bool] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        twice.append(len({name for name, _ in pairs}) < len(pairs))

    decoder, text = json.JSONDecoder(object_pairs_hook=note), body.decode()
    parts, kept, end = [], 0, 0
    for found in _OBJECT_OF_ARGUMENTS.finditer(text):
        start = found.end() - 1
        if start < end:  # within others
            continue
        twice.clear()
        try:
            _, end = decoder.raw_decode(text, start)
        except ValueError:  # told of by who reads the whole
            return body
        if any(twice):
            parts += [text[kept:start], json.dumps(text[start:end])]
            kept = end
    return "".join([*parts, text[kept:]]).encode()


def _cleaned(value: Any, clean: Callable[[str], str], levels: int) -> Any:
    if isinstance(value, str):
        return clean(value if value.isascii() else value.encode("utf-8", "replace").decode())
    if not isinstance(value, dict | list):
        return value
    if not levels:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return [_cleaned(element, clean, levels - 1) for element in value]
    return {_cleaned(k, clean, levels): _cleaned(v, clean, levels - 1) for k, v in value.items()}


def count(value: Any) -> int | None:
    """A number of tokens; None for what can't be one."""
    return value if type(value) is int and 0 <= value <= _MOST else None


def amount(value: Any) -> float | None:
    """A number of dollars or tokens; None for what can't be one."""
    return float(value) if type(value) in (int, float) and 0 <= value <= _MOST else None


def split_usage(usage: Any, latency_s: float, names: tuple[str, str, str, str]) -> Usage:
    """A usage in which tokens read from the cache and written to it are counted apart.

    Args:
        usage: What the server sent; anything.
        latency_s: Seconds of the exchange.
        names: Keys of the tokens of the prompt that were not cached, read from the cache, written to it; of the reply.
    """
    if not isinstance(usage, Mapping):
        return Usage(latency_s=latency_s)
    fresh, cached, written, completion = (count(usage.get(name)) for name in names)
    return Usage(
        prompt_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
        completion_tokens=completion,
        cached_tokens=cached,
        written_tokens=written,
        latency_s=latency_s,
    )


def text(value: Any) -> str | None:
    """A text; None for anything else."""
    return value if isinstance(value, str) else None


def mappings(value: Any) -> list[Mapping[str, Any]]:
    """The objects of a list; nothing for what is no list."""
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
