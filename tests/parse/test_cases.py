"""Replies and what must be read from them: the reference cases, and cases of our own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.parse import read
from evenhand.parse.line import fields_from_line, line_from_reading, reply_from_line
from reading import field_from, outcomes, reply_from, same

OWN = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


def test_reference_cases(shared: Callable[[str], Path]) -> None:
    """Every reference case comes out as expected: all its keys equal, or its class of error and no value."""
    wrong = []
    lines = shared("cases/judge-outputs.jsonl").read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        fields = fields_from_line(line)
        told = line_from_reading(line["id"], read(reply_from_line(line), fields), fields)
        expected = line["expected"]
        if "error" in expected:
            right = told == {"id": line["id"], **expected}
        else:
            right = all(same(told.get("value", {}).get(key), value) for key, value in expected.items())
        if not right:
            wrong.append((told, expected))
    assert len(lines) == 60
    assert wrong == []


@pytest.mark.parametrize("case", OWN, ids=[case["id"] for case in OWN])
def test_own_cases(case: dict[str, Any]) -> None:
    """Each case is read field by field as its line says, with repair only where it says so."""
    fields = tuple(field_from(field) for field in case["fields"])
    reading = read(reply_from(case["reply"]), fields, function="submit")
    assert same(outcomes(reading), case["expected"]), case["note"]
    assert reading.repaired == case["repaired"], case["note"]


def test_own_cases_are_many_and_distinct() -> None:
    """The file is not cut short, and no id stands twice."""
    assert len({case["id"] for case in OWN}) == len(OWN) >= 40
