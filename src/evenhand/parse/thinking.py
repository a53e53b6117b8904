"""Reasoning blocks, which are no part of the answer."""

from __future__ import annotations

import re

from evenhand.parse.asked import Asked
from evenhand.parse.structured import budget_for, next_opening, region_at
from evenhand.verdict import Failure

_NAMES = ("think", "thinking", "thought", "thoughts", "reasoning", "analysis", "reflection", "scratchpad")
#: What may stand before an object with which a reply begins.
_BEFORE = re.compile(r"\s*(?:```\w{0,10}\s*)?")


def without_thinking(text: str, asked: Asked) -> str | Failure:
    """A reply without its reasoning blocks and without all that stands before a lone closing tag.

    A tag inside the string of an object is only text, and so is a lone closing tag after an object of the fields asked
    for with which the reply begins: whoever begins with a verdict was not thinking, and may quote what it judged.

    Returns:
        What is left; or TRUNCATED for a block that never ends, UNPARSEABLE where it can't be told whether a
        tag stands inside a string.
    """
    tag = _tags(asked)
    budget = budget_for(text)
    kept: list[str] = []
    start = at = 0
    mark, opening = tag.search(text), next_opening(text, 0)
    begun = False
    while mark is not None:
        if opening is not None and opening < at:
            opening = next_opening(text, at)
        if opening is not None and opening < mark.start():
            region = region_at(text, opening, asked, budget)
            at = opening + 1
            if region is not None and (region.kind == "clean" or region.end <= mark.start()):
                begun = begun or _BEFORE.fullmatch(text, 0, opening) is not None
                at = region.end
            elif region is not None:
                return Failure.UNPARSEABLE
        elif mark["close"] and not kept and begun:
            at = mark.end()
        elif mark["close"]:
            kept, start = [], mark.end()
            at = start
        else:
            end = next((m for m in tag.finditer(text, mark.end()) if m["close"]), None)
            if end is None:
                return Failure.TRUNCATED
            kept.append(text[start : mark.start()])
            start = at = end.end()
        if at > mark.start():
            mark = tag.search(text, at)
    return "\n".join([*kept, text[start:]])


def _tags(asked: Asked) -> re.Pattern[str]:
    """Opening and closing tags; a tag named like a field asked for holds that field."""
    names = "|".join(name for name in _NAMES if name not in asked.names)
    return re.compile(
        rf"(?P<close></(?:\w{{1,20}}:)?(?:{names})\s{{0,9}}>|\[/THINK\]|◁/think▷)"
        rf"|<(?:\w{{1,20}}:)?(?:{names})(?:\s[^<>]{{0,80}})?>|\[THINK\]|◁think▷",
        re.IGNORECASE,
    )
