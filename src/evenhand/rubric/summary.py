"""A rubric in brief, as plain data."""

from __future__ import annotations

from typing import Any

from evenhand.rubric.model import OutputField, Rubric
from evenhand.scale import Scale


def summary(rubric: Rubric) -> dict[str, Any]:
    """What a rubric asks, of what, on which scales and under which rules; plain JSON data."""
    item = rubric.item
    return {
        "name": rubric.name,
        "version": rubric.version,
        "title": rubric.title,
        "mode": rubric.mode,
        "language": rubric.language,
        "digest": rubric.digest,
        "inputs": [
            {
                "name": field.name,
                "type": field.type,
                "required": field.required,
                "response": field.name in item.responses,
                "judged": field.name in item.judged,
            }
            for field in item.fields
        ],
        "aliases": dict(item.aliases),
        "criteria": [
            {
                "name": criterion.name,
                "text": criterion.text,
                "weight": criterion.weight,
                "scale": scale_summary(criterion.scale),
                "examples": len(criterion.examples),
            }
            for criterion in rubric.criteria
        ],
        "forms": list(rubric.output.forms),
        "fields": [_field(field) for field in rubric.output.fields],
        "preference": rubric.preference,
        "presets": len(rubric.presets),
        "derived": list(rubric.let),
        "rules": [{"id": rule.id, "severity": rule.severity} for rule in rubric.rules],
        "ask": dict(rubric.ask),
        "options": [
            {
                "name": option.name,
                "value": rubric.chosen[option.name],
                "default": option.default,
                "values": list(option.values),
            }
            for option in rubric.options
        ],
    }


def scale_summary(scale: Scale) -> dict[str, Any]:
    """Legal values, level and anchors of a scale."""
    values: dict[str, Any] = {"name": scale.name, "level": scale.level}
    if scale.values is not None:
        values["values"] = list(scale.values)
    else:
        values |= {"min": scale.bottom, "max": scale.top, "integer": scale.integer}
    values["anchors"] = {anchor.label: anchor.text for anchor in scale.anchors}
    return values


def _field(field: OutputField) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": field.name, "kind": field.kind, "required": field.required, "short": field.short}
    if field.scale is not None:
        facts["scale"] = scale_summary(field.scale)
    return facts
