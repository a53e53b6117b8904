"""Whatever a rubric file holds: a rubric, or a RubricError with mistakes, never another error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import RubricError
from evenhand.rubric.lint import lint
from evenhand.rubric.load import load_rubric, parse_rubric
from evenhand.rubric.model import Rubric
from evenhand.rubric.schema import reply_schema
from evenhand.rubric.yaml_tree import plain, read_yaml
from evenhand.rules import check_expression, compile_rubric
from rubric_texts import PAIR, SCALED, TEN_LINES

PIECES = [
    *("a", "_x", "{criterion}", "criterion", "slot", "0-10", "1", "-1", "1e9", "null", "true", "each", "low", "tie"),
    *(": ", ", ", "\n", "  ", "- ", "{", "}", "[", "]", '"', "'", "#", "#! A1", "&a ", "*a", "!!str ", "|\n", "---\n"),
    *("scale", "range", "values", "needs: quotes", "pattern: '(('", "字", "\t", "%", "\u2028", "\x00", "9" * 30),
]


def outcome(text: str) -> Rubric | None:
    """The rubric, or None when it has mistakes; lint must agree with the loader about the default variant."""
    found = lint(text, None, check_expression=check_expression)
    default = [p for p in found if ", with " not in p.message]
    try:
        concrete = parse_rubric(text, file=None, check_expression=check_expression)
    except RubricError as error:
        assert error.problems
        assert list(error.problems) == default
        return None
    assert default == []
    return concrete


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_any_text(text: str) -> None:
    """Random text is a rubric with mistakes."""
    assert outcome(text) is None


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A valid rubric with a few pieces cut out, put in or moved."""
    text = draw(st.sampled_from([TEN_LINES, PAIR, SCALED]))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 12)))
        text = text[:start] + draw(st.sampled_from(["", *PIECES])) + text[end:]
    return text


@settings(max_examples=250, deadline=None)
@given(mutated())
def test_mutated_rubrics(text: str) -> None:
    """A rubric that still loads after a mutation is whole: its rules compile and its schema holds its fields."""
    concrete = outcome(text)
    if concrete is not None:
        compile_rubric(concrete)
        assert list(reply_schema(concrete)["properties"]) == [f.name for f in concrete.output.fields]


@pytest.mark.parametrize("base", [TEN_LINES, PAIR, SCALED], ids=["ten lines", "pair", "scaled"])
def test_any_line_lost(base: str) -> None:
    """A rubric without one of its lines loads or is told its mistakes."""
    lines = base.splitlines(keepends=True)
    outcomes = [outcome("".join(lines[:n] + lines[n + 1 :])) for n in range(len(lines))]
    assert None in outcomes


def any_value() -> st.SearchStrategy[Any]:
    """Plain data, as a rubric might hold by mistake."""
    leaves = (
        st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from(["a", "A", "0-3", "{criterion}", "x_x", ""])
    )
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(leaves, inner, max_size=3), max_leaves=6
    )


def as_json(text: str) -> str:
    root, _ = read_yaml(text)
    assert root is not None
    return json.dumps(plain(root))


#: The valid rubrics as JSON; a mapping key is a text then, as in a file that puts all of them in quotes.
TREES = [as_json(TEN_LINES), as_json(PAIR), as_json(SCALED)]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_wrong_values_anywhere(data: st.DataObject) -> None:
    """Any value replaced by any other one loads or is told as a mistake."""
    tree = json.loads(data.draw(st.sampled_from(TREES)))
    place = tree
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            break
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(any_value())
            break
        place = place[key]
    concrete = outcome(flow(tree))
    if concrete is not None:
        compile_rubric(concrete)


def flow(value: Any) -> str:
    """Plain data as YAML in flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)} : {flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


@settings(max_examples=60, deadline=None)
@given(raw=st.binary(max_size=120))
def test_any_bytes(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A file of any bytes is a rubric with mistakes."""
    path: Path = tmp_path_factory.mktemp("fuzz") / "own.yaml"
    path.write_bytes(raw)
    with pytest.raises(RubricError):
        load_rubric(path)
