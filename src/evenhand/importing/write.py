"""Plain data as YAML that people like to read: short things on one line, long texts as blocks."""

from __future__ import annotations

import json
import re
from typing import Any

_WIDTH = 110
_BARE = re.compile(r"[A-Za-z][\w-]*(?: [A-Za-z][\w-]*)*")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_NO_BLOCK = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def yaml_text(data: dict[str, Any], *, blocks: bool = True) -> str:
    """A mapping as a YAML document.

    Args:
        data: Texts, numbers, truth values, lists and mappings.
        blocks: Whether texts of several lines are written as blocks; else in quotes.
    """
    return "".join(f"{line}\n" for line in _mapping(data, 0, blocks))


def _mapping(data: dict[str, Any], depth: int, blocks: bool) -> list[str]:
    lines = []
    for key, value in data.items():
        first, *rest = _value(value, depth + 1, blocks)
        lines += [f"{'  ' * depth}{_scalar(key)}:{first and ' '}{first}", *rest]
    return lines


def _value(value: Any, depth: int, blocks: bool) -> list[str]:
    """Lines of a value; the first goes on the line of its key."""
    if isinstance(value, str) and blocks and "\n" in value.rstrip("\n") and not _NO_BLOCK.search(value):
        return _block(value, depth)
    short = _flow(value)
    if not isinstance(value, dict | list) or (len(short) + 2 * depth < _WIDTH and "\\n" not in short) or not value:
        return [short]
    if isinstance(value, dict):
        return ["", *_mapping(value, depth, blocks)]
    lines = [""]
    for part in value:
        inner = _flow(part)
        if isinstance(part, dict) and (len(inner) + 2 * depth >= _WIDTH or "\\n" in inner):
            entry = _mapping(part, depth + 1, blocks)
            lines += [f"{'  ' * depth}- {entry[0].lstrip()}", *entry[1:]]
        else:
            first, *rest = _value(part, depth + 1, blocks)
            lines += [f"{'  ' * depth}- {first}", *rest]
    return lines


def _block(text: str, depth: int) -> list[str]:
    """A text as a literal block, with its indentation said, so that its own stays."""
    body = text.rstrip("\n")
    ends = len(text) - len(body)
    lines = [f"{'  ' * depth}{line}" if line else "" for line in body.split("\n")]
    return [f"|2{'-' if not ends else '' if ends == 1 else '+'}", *lines, *[""] * (ends - 1)]


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(part) for part in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _BARE.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
    return json.dumps(value)
