"""Every requirement of the three judge systems stands in a built-in rubric, or is held by a test that names it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest

from evenhand.rubric.lint import lint

TESTS = Path(__file__).resolve().parents[1]
#: Rubric file -> the requirement ids it answers for.
RUBRICS = {
    "hhh": [f"H{n:02}" for n in range(1, 50)],
    "alignmm-critic": [f"A{n:02}" for n in range(1, 88)],
    "alignmm-critic.en": [f"A{n:02}" for n in range(1, 88)],
    "doc-qa": [f"D{n:02}" for n in range(1, 38)],
}
IDS = sorted({identifier for listed in RUBRICS.values() for identifier in listed})


@cache
def text(name: str) -> str:
    return (files("evenhand.rubrics") / f"{name}.yaml").read_text(encoding="utf-8")


def marks(source: str) -> list[str]:
    """The ids in "#!" comments, in order."""
    return [found for line in re.findall(r"#!(.*)", source) for found in re.findall(r"[HAD]\d\d", line)]


@cache
def named_in_tests() -> frozenset[str]:
    sources = (path.read_text(encoding="utf-8") for path in TESTS.rglob("test_*.py"))
    return frozenset(found for source in sources for found in re.findall(r"def test_([HAD]\d\d)_", source))


def test_there_are_173_requirements() -> None:
    """The table is complete: 49 of HHH, 87 of the critic, 37 of doc-QA."""
    assert len(IDS) == 173


@pytest.mark.parametrize("identifier", IDS)
def test_requirement_is_held(identifier: str) -> None:
    """Each id stands once in each file that answers for it, or a test carries it in its name."""
    for name, listed in RUBRICS.items():
        if identifier in listed:
            assert marks(text(name)).count(identifier) == 1 or identifier in named_in_tests(), (identifier, name)


@pytest.mark.parametrize("name", RUBRICS)
def test_no_mark_is_unknown_or_double(name: str) -> None:
    """A file marks no id it does not answer for, and none twice."""
    found = marks(text(name))
    assert len(found) == len(set(found))
    assert set(found) <= set(RUBRICS[name])


def test_critics_mark_the_same_ids() -> None:
    """The Chinese and the English critic answer for the same ids."""
    assert set(marks(text("alignmm-critic"))) == set(marks(text("alignmm-critic.en")))


@pytest.mark.parametrize("name", RUBRICS)
def test_built_in_rubrics_are_free_of_mistakes(name: str) -> None:
    """lint finds nothing, in any variant."""
    assert lint(text(name), f"{name}.yaml") == []


def some_marked_lines(name: str) -> list[int]:
    """Every fifth marked line, and the last."""
    marked = [number for number, line in enumerate(text(name).splitlines()) if marks(line)]
    return sorted({*marked[::5], marked[-1]})


@pytest.mark.parametrize(("name", "number"), [(name, n) for name in RUBRICS for n in some_marked_lines(name)])
def test_losing_a_marked_line_is_a_mistake(name: str, number: int) -> None:
    """lint of a file without one of its marked lines names the lost ids, or the place that broke."""
    lines = text(name).splitlines()
    lost = marks(lines.pop(number))
    problems = lint("\n".join(lines), f"{name}.yaml")
    assert problems
    named = " ".join(problem.message for problem in problems)
    assert all(identifier in named for identifier in lost) or "not YAML" in named
