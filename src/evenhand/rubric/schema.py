"""What derives from a rubric's output fields: reply schema, tool definition, asked fields, report columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from evenhand.rubric.format import RUBRIC
from evenhand.rubric.model import OutputField, Rubric
from evenhand.rubric.shapes import json_schema


def asked_fields(rubric: Rubric, *, short: bool = False, preset: Collection[str] = ()) -> tuple[OutputField, ...]:
    """The fields to ask for, in order of generation, less those already set.

    Args:
        rubric: The rubric.
        short: Only the fields of the short form, in its order.
        preset: Names of fields that need no asking.
    """
    fields = rubric.output.fields
    if short:
        fields = tuple(field for field in fields if field.short)
        if rubric.output.short:
            fields = tuple(sorted(fields, key=lambda field: rubric.output.short.index(field.name)))
    return tuple(field for field in fields if field.name not in preset)


def reply_schema(rubric: Rubric, fields: Collection[OutputField] | None = None) -> dict[str, Any]:
    """JSON schema of a reply, in the strict form servers enforce: every key required, no others allowed."""
    return _object(rubric.output.fields if fields is None else fields, rubric)


def tool_definition(rubric: Rubric, fields: Collection[OutputField] | None = None) -> dict[str, Any]:
    """The function a judge calls to submit its verdict, in chat-completions form."""
    return {
        "type": "function",
        "function": {
            "name": rubric.output.function,
            "description": rubric.title or f"Submit the verdict of rubric {rubric.name}.",
            "strict": True,
            "parameters": reply_schema(rubric, fields),
        },
    }


def report_columns(rubric: Rubric) -> list[str]:
    """Names of the columns that hold a verdict's fields, in order."""
    return [field.name for field in rubric.output.fields]


def rubric_format_schema() -> dict[str, Any]:
    """JSON schema of a rubric file, for editors; keys that are numbers in YAML are texts in JSON.

    It holds the structure only: `evenhand.rubric.lint` finds wrong names and values too.
    """
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "evenhand rubric"}
    return {**head, **json_schema(RUBRIC)}


def _object(fields: Collection[OutputField], rubric: Rubric) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {field.name: _field(field, rubric) for field in fields},
        "required": [field.name for field in fields],
        "additionalProperties": False,
    }


def _field(field: OutputField, rubric: Rubric) -> dict[str, Any]:
    schema: dict[str, Any]
    if field.kind == "scale" and field.scale is not None:
        schema = field.scale.json_schema()
    elif field.kind == "bool":
        schema = {"type": "boolean"}
    elif field.kind == "list":
        schema = {"type": "array", "items": _object(field.items, rubric) if field.items else {"type": "string"}}
    else:
        schema = {"type": "string"}
    if field.nullable:
        kinds = schema["type"]
        schema["type"] = [*(kinds if isinstance(kinds, list) else [kinds]), "null"]
        if "enum" in schema:
            schema["enum"] = [*schema["enum"], None]
    text = _description(field, rubric)
    return {**schema, "description": text} if text else schema


def _description(field: OutputField, rubric: Rubric) -> str:
    criterion = rubric.criterion(field.criterion) if field.criterion == field.name else None
    text = field.text or (criterion.text if criterion else "")
    return f"{text} (language: {field.language})".strip() if field.language else text
