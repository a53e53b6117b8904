"""What a published prompt asks for: criteria, scales and fields, as far as its own structure tells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evenhand.rubric.names import RESERVED

Plain = dict[str, Any]
_BULLET = r"^[ \t]*[•*·\-–][ \t]*"
_HEAD = re.compile(_BULLET + r"\**([A-Za-z][A-Za-z _-]{1,40}?)\**[ \t]*[:：]")
_POINT = re.compile(_BULLET + r"\**(?:Score|Rating)[ \t]+(\d{1,3})\b", re.IGNORECASE)
_LABEL = re.compile(_BULLET + r"[\"“']([^\"“”\n]{1,40})[\"”'][ \t]*$", re.MULTILINE)
_RANK = re.compile(_BULLET + r"\**(\d{1,2})[ \t]+[A-Za-z]", re.MULTILINE)
_CHAIN = re.compile(r"\b[A-Z]\w{2,30}(?:[ \t]*>[ \t]*[A-Z]\w{2,30})+")
_FUNCTION = re.compile(r"\bfunction[ \t]+[`'\"]?([A-Za-z]\w*_\w+)")
_RANGE = re.compile(r"(?<![\d.])([01])[ \t]*(?:-|–|—|~|～|to|and|到|至|和)[ \t]*(\d{1,3})(?!\d|\.\d)")
_KEY = re.compile(r"\"([^\W\d]\w{0,40})\"[ \t]*[:：]")
_REASON = re.compile(
    r"why|reason|expla|rational|justif|feedback|analy|comment|thought|evidence|critique|理由|解释|说明|分析",
    re.IGNORECASE,
)
_WINNER = re.compile(r"winner|prefer|choice|better|verdict", re.IGNORECASE)


@dataclass(slots=True)
class Asked:
    """Parts of a rubric file, and what the user should know about them.

    Attributes:
        criteria: The criteria.
        output: Forms, function and fields.
        scales: Named scales.
        guessed: What was not found in the prompt and had to be assumed.
    """

    criteria: list[Plain]
    output: Plain
    scales: Plain = field(default_factory=dict)
    guessed: list[str] = field(default_factory=list)


def asked(text: str, *, compare: bool, whole: bool, answer: str = "") -> Asked:
    """What a prompt asks for.

    Args:
        text: The prompt as a judge sees it, holes aside.
        compare: Whether two responses are compared.
        whole: Whether the prompt is all that tells the judge how to reply (no block of ours follows).
        answer: Layout of a training answer, where the file has one.
    """
    found = _compared(text) if compare else _scored(text)
    if answer:
        found.output["answer"] = answer
    if not whole:
        found.output.pop("forms", None)
    return found


def _compared(text: str) -> Asked:
    side: Plain = {"values": ["A", "B", "tie"], "slots": True}
    labels = list(dict.fromkeys(_LABEL.findall(text)))
    if len(labels) > 1:
        return _labelled(text, labels, side)
    if "[[A]]" in text:
        side["aliases"] = {"C": "tie"}
        pattern = {"name": "preference", "scale": "side", "pattern": r"\[\[([ABC])\]\]", "take": "last"}
        criteria = [{"name": "preference", "text": "Which response is better?", "scale": "side"}]
        return Asked(criteria, {"forms": ["text"], "fields": [pattern]}, {"side": side})
    keys = _keys(text)
    name = next((key for key in keys if _WINNER.search(key)), "preference")
    criteria = [{"name": name, "text": "Which response is better?", "scale": "side"}]
    fields = [_text_field(key) for key in keys if key != name and _REASON.search(key)] or [_text_field("reason")]
    forms = ["schema", "json", "text"] if name in keys else ["schema", "tool", "text"]
    place = next((n for n, key in enumerate(keys) if key == name), len(fields))
    fields.insert(place, {"name": name, "scale": "criterion"})
    guessed = [] if name in keys else ["assumed: the reply has a reason and the preferred side"]
    return Asked(criteria, {"forms": forms, "fields": fields}, {"side": side}, guessed)


def _labelled(text: str, labels: list[str], side: Plain) -> Asked:
    """A label and a side on each dimension and in all, and a rank for each response where the text defines ranks."""
    chain = _CHAIN.search(text)
    names = [name.strip().lower() for name in chain[0].split(">")] if chain else []
    names = [*(name for name in dict.fromkeys(names) if name != "overall"), "overall"]
    scales: Plain = {"label": {"values": labels, "level": "ordinal"}, "side": side}
    ranks = sorted({int(rank) for rank in _RANK.findall(text)})
    fields: list[Plain] = []
    if len(ranks) > 2:
        scales["rank"] = {"range": [ranks[0], ranks[-1]]}
        fields.append({"each": "slot", "fields": [{"name": "rank_x", "scale": "rank"}]})
    fields += [
        _text_field("reason"),
        {
            "each": "criterion",
            "fields": [
                {"name": "{criterion}_side", "scale": "side", "text": "the preferred response"},
                {"name": "{criterion}", "scale": "criterion", "text": "how much better it is"},
            ],
        },
    ]
    criteria = [
        {"name": name, "text": "All in all." if name == "overall" else f"The dimension {name}.", "scale": "label"}
        for name in names
    ]
    return Asked(criteria, {"forms": ["schema", "tool", "json", "text"], "fields": fields}, scales)


def _scored(text: str) -> Asked:
    function = _FUNCTION.search(text)
    listed = list(_listed(text))
    if listed:
        criteria = [
            {"name": name, "text": f"{name}, as the prompt says", "scale": {"range": points}} for name, points in listed
        ]
        fields: list[Plain] = [
            _text_field("reasoning_for_{criterion}"),
            {"name": "{criterion}", "scale": "criterion"},
        ]
        output: Plain = {"forms": ["schema", "tool", "text"], "fields": [{"each": "criterion", "fields": fields}]}
        if function:
            output |= {"function": function[1], "forms": ["tool", "schema"]}
        return Asked(criteria, output)
    scale, guessed = _scale(text)
    if re.search(r"\[\[(?:rating|score|\d+|x|分数|评分)\]\]", text, re.IGNORECASE):
        rating = {"name": "rating", "scale": "criterion", "pattern": r"\[\[(-?\d+(?:\.\d+)?)\]\]", "take": "last"}
        criteria = [{"name": "rating", "text": "The rating, as the prompt says", "scale": scale}]
        return Asked(criteria, {"forms": ["text"], "fields": [rating]}, {}, guessed)
    keys = _keys(text)
    names = [key for key in keys if not _REASON.search(key)]
    if not names:
        criteria = [{"name": "score", "text": "The score, as the prompt says", "scale": scale}]
        fields = [_text_field("reason"), {"name": "score", "scale": "criterion"}]
        guessed.append("assumed: the reply has a reason and a score")
        return Asked(criteria, {"forms": ["schema", "tool", "text"], "fields": fields}, {}, guessed)
    criteria = [{"name": name, "text": f"{name}, as the prompt says", "scale": scale} for name in names]
    fields = [{"name": key, "scale": "criterion"} if key in names else _text_field(key) for key in keys]
    return Asked(criteria, {"forms": ["schema", "json", "text"], "fields": fields}, {}, guessed)


def _scale(text: str) -> tuple[Plain, list[str]]:
    """The first range that the prompt names; 0 to 1 is taken for shares."""
    found = [(int(low), int(high)) for low, high in _RANGE.findall(text) if int(low) < int(high)]
    if not found:
        return {"range": [1, 10]}, ["assumed: a scale of whole numbers from 1 to 10"]
    others = [f"{low} to {high}" for low, high in dict.fromkeys(found[1:]) if (low, high) != found[0]]
    told = (
        ""
        if not others
        else f"assumed: all on {found[0][0]} to {found[0][1]}; the prompt also names {', '.join(others)}"
    )
    if found[0] == (0, 1):
        return {"range": [0, 1], "integer": False, "level": "interval"}, ["assumed: numbers between 0 and 1"]
    return {"range": list(found[0])}, [told] if told else []


def _listed(text: str) -> Iterator[tuple[str, list[int]]]:
    """Criteria as bullets with points under them: name, and lowest and highest point."""
    name, points = "", list[int]()
    for line in [*text.split("\n"), "- End:"]:
        point, head = _POINT.match(line), _HEAD.match(line)
        if point:
            points.append(int(point[1]))
        elif head and not line[:1].isspace():
            if name and len(set(points)) > 1:
                yield name, [min(points), max(points)]
            name, points = re.sub(r"[ -]+", "_", head[1].strip()).lower(), []


def _keys(text: str) -> list[str]:
    """The keys of the last JSON object that the prompt shows."""
    blocks = [found for found in re.findall(r"\{[^{}]*\}", text) if _KEY.search(found)]
    keys = _KEY.findall(blocks[-1]) if blocks else []
    return list({key.casefold(): key for key in keys if key.casefold() not in RESERVED}.values())


def _text_field(name: str) -> Plain:
    return {"name": name, "type": "text", "required": True}
