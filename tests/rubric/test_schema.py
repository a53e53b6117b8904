"""What derives from a rubric: reply schema, tool definition, columns, and the schema of the file format."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from evenhand.rubric.load import builtin_names, load_rubric
from evenhand.rubric.schema import asked_fields, reply_schema, report_columns, rubric_format_schema, tool_definition
from evenhand.rubric.starter import starter
from evenhand.rubric.yaml_tree import plain, read_yaml
from rubric_texts import PAIR, SCALED, TEN_LINES, changed, rubric

ALL_KINDS = (
    TEN_LINES
    + """\
output:
  function: grade
  fields:
    - {name: level, type: [low, mid], nullable: true, text: how high}
    - {name: issues, type: list, of: {kind: [a, b], real: bool, text: text}}
    - {name: quotes, type: list, of: text, nullable: true}
    - {each: criterion, fields: [{name: "{criterion}", scale: criterion}]}
    - {name: why, type: text, language: zh}
"""
)


def test_reply_schema_is_strict_and_in_order() -> None:
    """All keys are required, no others allowed, in order; null is a type of its own; texts become descriptions."""
    schema = reply_schema(rubric(ALL_KINDS))
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == schema["required"] == ["level", "issues", "quotes", "truth", "why"]
    assert schema["properties"]["level"] == {
        "type": ["string", "null"],
        "enum": ["low", "mid", None],
        "description": "how high",
    }
    issue = schema["properties"]["issues"]["items"]
    assert (issue["additionalProperties"], issue["required"]) == (False, ["kind", "real", "text"])
    assert issue["properties"]["real"] == {"type": "boolean"}
    assert schema["properties"]["quotes"] == {"type": ["array", "null"], "items": {"type": "string"}}
    assert schema["properties"]["truth"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 5,
        "description": "Is it true?",
    }
    assert schema["properties"]["why"]["description"] == "(language: zh)"


GOOD = {"level": None, "issues": [{"kind": "a", "real": True, "text": ""}], "quotes": [], "truth": 3, "why": "x"}


@pytest.mark.parametrize(
    ("changes", "valid"),
    [
        ({}, True),
        ({"level": "mid", "quotes": None}, True),
        ({"truth": 6}, False),
        ({"truth": None}, False),
        ({"truth": 2.5}, False),
        ({"level": "high"}, False),
        ({"issues": [{"kind": "a"}]}, False),
        ({"more": 1}, False),
    ],
)
def test_reply_schema_accepts_legal_verdicts_only(changes: dict[str, Any], valid: bool) -> None:
    """A verdict fits the schema if and only if its values are legal and complete."""
    schema = reply_schema(rubric(ALL_KINDS))
    jsonschema.Draft202012Validator.check_schema(schema)
    assert jsonschema.Draft202012Validator(schema).is_valid({**GOOD, **changes}) is valid


def test_tool_definition() -> None:
    """The function has the rubric's name for it, strict parameters, and a description."""
    tool = tool_definition(rubric(ALL_KINDS))
    assert tool["type"] == "function"
    assert (tool["function"]["name"], tool["function"]["strict"]) == ("grade", True)
    assert tool["function"]["parameters"] == reply_schema(rubric(ALL_KINDS))
    assert "short" in tool["function"]["description"]
    titled = rubric(changed(ALL_KINDS, "mode: score", "mode: score\ntitle: Grade it"))
    assert tool_definition(titled)["function"]["description"] == "Grade it"


def test_asked_fields_leave_out_what_is_set() -> None:
    """Fields set in code are not asked for, and neither the schema nor the tool holds them."""
    pair = rubric(PAIR)
    names = [f.name for f in asked_fields(pair, short=True, preset=("rank_a", "overall"))]
    assert names == ["rank_b", "safe"]
    fields = asked_fields(pair, preset=("rank_a",))
    assert "rank_a" not in reply_schema(pair, fields)["properties"]
    assert reply_schema(pair, ())["required"] == []


def test_report_columns() -> None:
    """The columns of a verdict are its fields, in order."""
    assert report_columns(rubric(SCALED)) == ["why_truth", "why_style", "truth", "style"]


def as_json(value: Any) -> Any:
    """YAML data as JSON data: keys are texts."""
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, list) else value


def data(text: str) -> Any:
    root, _ = read_yaml(text)
    assert root is not None
    return as_json(plain(root))


TEXTS = {
    "ten lines": TEN_LINES,
    "pair": PAIR,
    "scaled": SCALED,
    "all kinds": ALL_KINDS,
    "starter score": starter("mine", "score"),
    "starter compare": starter("mine", "compare"),
    **{name: (files("evenhand.rubrics") / f"{name}.yaml").read_text(encoding="utf-8") for name in builtin_names()},
}


@pytest.mark.parametrize("name", TEXTS)
def test_valid_rubrics_fit_the_format_schema(name: str) -> None:
    """The published schema of the file format accepts what the loader accepts."""
    schema = rubric_format_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data(TEXTS[name]), schema)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("mode: score", "mode: scored"),
        ("mode: score", "mode: score\nverson: 1"),
        ("rubric: short", "rubric: Short Name"),
        ("answer: text", "answer: txt"),
        ("    text: Is it true?\n", ""),
        ("range: [1, 5]", "range: [1, 5, 7]"),
        ("range: [1, 5]", "rang: [1, 5]"),
        ("mode: score", "mode: score\noutput: {forms: [xml]}"),
        ("mode: score", "mode: score\nrules: [{id: x, if: y}]"),
    ],
)
def test_the_format_schema_refuses_mistakes_of_structure(old: str, new: str) -> None:
    """The published schema refuses unknown and missing keys, wrong types and impossible words."""
    validator = jsonschema.Draft202012Validator(rubric_format_schema())
    assert not validator.is_valid(data(changed(TEN_LINES, old, new)))


@pytest.mark.parametrize("name", builtin_names())
def test_schemas_of_built_in_rubrics_are_valid(name: str) -> None:
    """Reply schema and tool definition of every built-in rubric are valid JSON schemas."""
    concrete = load_rubric(name)
    jsonschema.Draft202012Validator.check_schema(reply_schema(concrete))
    jsonschema.Draft202012Validator.check_schema(tool_definition(concrete)["function"]["parameters"])
