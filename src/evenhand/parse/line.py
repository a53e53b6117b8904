"""Recorded replies as data: one line of a replies file to a reply and the fields it was asked for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from evenhand.rubric.model import OutputField
from evenhand.scale import Scale
from evenhand.verdict import Reading, Reply, ToolCall

_MOST = 10**15  # as in rubrics


def fields_from_line(line: Mapping[str, Any]) -> tuple[OutputField, ...]:
    """The fields a line asks for: the first key of ``fields`` is the value, the others are texts.

    Raises:
        ValueError: ``fields``, ``scale``, ``labels`` or ``required`` do not say what is asked.
    """
    names = line.get("fields")
    if not _is_texts(names) or not all(names) or not names or len({name.casefold() for name in names}) < len(names):
        raise ValueError("fields must be a list of different keys, none empty, the value's first")
    required = line.get("required", [])
    if not _is_texts(required) or not set(required) <= set(names):
        raise ValueError("required must list keys of fields")
    value = OutputField(names[0], "scale", scale=_scale(line), criterion=names[0])
    return value, *(OutputField(name, "text", required=name in required) for name in names[1:])


def reply_from_line(line: Mapping[str, Any]) -> Reply:
    """The reply of a line, from its ``raw_kind`` and ``raw``; ``finish`` may hold the finish reason.

    Raises:
        ValueError: ``raw`` is not what ``raw_kind`` says.
    """
    kind, raw, finish = line.get("raw_kind"), line.get("raw"), line.get("finish")
    if finish is not None and not isinstance(finish, str):
        raise ValueError("finish must be a text")
    if kind == "text" and isinstance(raw, str):
        return Reply(text=raw, finish=finish)
    if kind == "message" and isinstance(raw, Mapping):
        return Reply(
            text=_content(raw.get("content")),
            tool_calls=_calls(raw),
            refusal=_text_or_none(raw, "refusal"),
            reasoning=_text_or_none(raw, "reasoning_content"),
            finish=finish,
        )
    raise ValueError('raw_kind must be "text" (raw: a text) or "message" (raw: a chat message object)')


def line_from_reading(line_id: Any, reading: Reading, fields: tuple[OutputField, ...]) -> dict[str, Any]:
    """What was read, as a line: the values found, or the class of the error.

    The first failure of the value, then of a required text, is the line's error; a text that was not
    required is left out where it is absent or unreadable.
    """
    told: dict[str, Any] = {"id": line_id}
    failures = [reading.fields[f.name].failure for f in fields if f.required]
    failure = next((f for f in failures if f is not None), None)
    if failure is not None:
        return {**told, "error": failure.value}
    told["value"] = {n: o.value for n, o in reading.fields.items() if o.failure is None and o.value is not None}
    return {**told, "repaired": True} if reading.repaired else told


def _scale(line: Mapping[str, Any]) -> Scale:
    labels, scale = line.get("labels"), line.get("scale")
    if labels is not None and scale is None:
        if not _is_texts(labels) or len({label.casefold() for label in labels}) < len(labels) or not labels:
            raise ValueError("labels must be a list of different texts")
        return Scale("", "nominal", values=tuple(labels))
    if labels is None and isinstance(scale, Mapping):
        low, high, integer = scale.get("min"), scale.get("max"), scale.get("integer")
        if _is_number(low) and _is_number(high) and low <= high and isinstance(integer, bool):
            return Scale("", "ordinal" if integer else "interval", low=low, high=high, integer=integer)
        raise ValueError("scale must have min <= max (numbers up to 10^15) and integer (true or false)")
    raise ValueError("either scale or labels must be given, and the other be null")


def _content(content: Any) -> str | None:
    """The content of a message: a text, null, or parts of which the texts count."""
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        return "".join(part["text"] for part in content if isinstance(part.get("text"), str))
    raise ValueError("content must be a text, null or a list of parts")


def _calls(message: Mapping[str, Any]) -> tuple[ToolCall, ...]:
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise ValueError("tool_calls must be a list")
    functions = [call.get("function") if isinstance(call, Mapping) else None for call in calls]
    if message.get("function_call") is not None:
        functions.append(message["function_call"])
    return tuple(_call(function) for function in functions)


def _call(function: Any) -> ToolCall:
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(arguments, str | Mapping):
        raise ValueError("a tool call must have a function with arguments (a text or an object)")
    return ToolCall(str(function.get("name", "")), arguments)


def _text_or_none(message: Mapping[str, Any], key: str) -> str | None:
    value = message.get(key)
    if value is None or isinstance(value, str):
        return value
    raise ValueError(f"{key} must be a text or null")


def _is_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(element, str) for element in value)


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST
