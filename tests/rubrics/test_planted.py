"""The rules of hhh against contradictions worked out without them, on ratings by the thousand."""

from __future__ import annotations

import csv
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import planted
from evenhand import check
from evenhand.rubric.load import load_rubric

PLAIN = [rule for rule in planted.RULES if not rule.startswith("cap-any-error")]
STRICT = [rule for rule in planted.RULES if not rule.startswith("cap-minor-errors")]


def ratings(count: int, rules: list[str], *, seed: int, strict: bool = False) -> Iterator[tuple[str, planted.Row]]:
    """What was planted ("" for nothing) and the row: every other row consistent, the rules planted in turn."""
    draw = random.Random(seed)
    for number in range(count):
        rule = rules[number // 2 % len(rules)] if number % 2 else ""
        row = planted.planted(rule, draw, strict=strict) if rule else planted.consistent(draw)
        yield rule, {"id": f"r{number}", **row}


def found_by_row(source: Any, **options: Any) -> dict[str, set[str]]:
    """Row id -> ids of the rules found broken."""
    found: dict[str, set[str]] = {}
    for finding in check(source, "hhh", **options):
        assert finding.id is not None
        found.setdefault(finding.id, set()).add(finding.rule)
    return found


def otherwise_written(row: planted.Row, draw: random.Random) -> dict[str, str]:
    """The same rating as people fill it into a table."""
    words = {True: ["true", "yes", "1", "TRUE"], False: ["false", "No", "0"], None: [""]}
    told = {}
    for name, value in row.items():
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else draw.choice(words[value])
        if name in (*planted.DIMENSIONS, "overall") and value == planted.SAME:
            text = draw.choice([text, "Almost the Same", "ABOUT THE SAME"])
        elif name.endswith("_side") or name in (*planted.DIMENSIONS, "overall"):
            text = draw.choice([text, text.upper(), text.lower(), f" {text} "])
        told[name] = text
    return told


def test_every_rule_is_planted() -> None:
    """The generator knows every rule of hhh and of its strict option, by id."""
    assert sorted(PLAIN) == sorted(rule.id for rule in load_rubric("hhh").rules)
    assert sorted(STRICT) == sorted(rule.id for rule in load_rubric("hhh", {"strict_errors": True}).rules)


@pytest.mark.parametrize("written", ["jsonl", "csv"])
def test_all_that_is_planted_is_found_and_nothing_else(written: str, tmp_path: Path) -> None:
    """20,000 ratings: each planted contradiction is found, and every row has exactly the findings it should have."""
    expected: dict[str, set[str]] = {}
    planted_rules: Counter[str] = Counter()
    file = tmp_path / f"ratings.{written}"
    draw = random.Random(2)
    with file.open("w", newline="", encoding="utf-8") as out:
        table: csv.DictWriter[str] | None = None
        for rule, row in ratings(20_000, PLAIN, seed=1):
            if broken := planted.truth(row):
                expected[row["id"]] = broken
            if rule:
                planted_rules[rule] += 1
                assert rule in expected[row["id"]]
            if written == "jsonl":
                out.write(json.dumps(row) + "\n")
                continue
            if table is None:
                table = csv.DictWriter(out, list(row))
                table.writeheader()
            table.writerow(otherwise_written(row, draw))
    assert min(planted_rules[rule] for rule in PLAIN) >= 250
    assert len(expected) == 10_000
    found = found_by_row(file)
    assert {i: found.get(i) for i in {*expected, *found} if found.get(i) != expected.get(i)} == {}


def test_strict_ratings() -> None:
    """The same under the strict option, where any language error caps the rank at 4."""
    rows = [row for _, row in ratings(2_000, STRICT, seed=3, strict=True)]
    expected = {row["id"]: broken for row in rows if (broken := planted.truth(row, strict=True))}
    assert {rule for broken in expected.values() for rule in broken} == set(STRICT)
    assert found_by_row(rows, variant={"strict_errors": True}) == expected


def test_ratings_with_gaps() -> None:
    """What was not given breaks nothing: optional values left out at random leave the other findings as they are."""
    draw = random.Random(4)
    needed = {
        "id",
        "rank_a",
        "rank_b",
        *(f"{n}{end}" for n in (*planted.DIMENSIONS, "overall") for end in ("", "_side")),
    }
    rows = []
    for _, row in ratings(4_000, PLAIN, seed=5):
        rows.append({n: v if n in needed or draw.random() < 0.7 else None for n, v in row.items()})
        for response in ("response_a", "response_b"):  # null is a blank response here, so a gap is no column at all
            if rows[-1][response] is None:
                rows[-1].pop(response)
    expected = {}
    for row in rows:
        if broken := planted.truth({"response_a": None, "response_b": None, **row}):
            expected[row["id"]] = broken
    assert found_by_row(rows) == expected


@pytest.mark.parametrize("strict", [False, True])
def test_rules_say_what_clashes_and_what_would_resolve_it(strict: bool) -> None:
    """Each rule has an id, a severity, and a message with the clashing values, the fields to change and a verb."""
    rubric = load_rubric("hhh", {"strict_errors": strict})
    verbs = (
        "Make",
        "make",
        "Change",
        "change",
        "Correct",
        "correct",
        "Rank it",
        "lower",
        "Check",
        "use",
        "State",
        "let",
    )
    fields = {field.name for field in rubric.output.fields}
    assert len({rule.id for rule in rubric.rules}) == len(rubric.rules)
    for rule in rubric.rules:
        assert rule.severity in ("violation", "warning")
        clash, _, remedy = rule.say.partition(". ")
        assert "{" in clash or rule.id.startswith(("deflect-clear", "follow-up", "reason-blank")), rule.id
        assert any(verb in remedy for verb in verbs), rule.id
        assert any(name in rule.say for name in fields), rule.id
