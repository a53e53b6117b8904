"""Patterns that could keep a reader busy for ever, told from those that can't."""

from __future__ import annotations

import re

import pytest

from evenhand.rubric.patterns import explodes


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(?:a*)*(b)",
        "(?:a?){30}(b)",
        "(?:a{1,9}){1,9}(b)",
        "(?:a+?)+?(b)",
        "(?:a|a)*(b)",
        "(?:a|ab)*(b)",
        "(?i:aa|A)*(b)",
        r"(?:\w+\s*)*(b)",
        "(?:(?:a+)+b)*+(c)",
        "(?=(?:a+)+b)(c)",
        "(?!(?:a+)+b)(c)",
        "(x)(?(1)(?:a+)+|b)",
        "(?:a+,)+(b)",
    ],
)
def test_explosive(pattern: str) -> None:
    """A repeat of another repeat, or of alternatives that begin alike, is refused, wherever it stands."""
    assert re.compile(pattern)
    assert explodes(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        r"\[\[(\d+(?:\.\d+)?)\]\]",
        r"(?:\A|\n)[ \t]*([123])\s*\Z",
        "(?:good|bad)*(b)",
        r"(?:\s*x){0,3}(b)",
        "(?:a++,)*(b)",
        "(?>a+)+(b)",
        "(?:a{3}){4}(b)",
        "(?=a+)(b)",
        "(?s).*Score: (\\d+).*",
    ],
)
def test_harmless(pattern: str) -> None:
    """One repeat after another, a few rounds, possessive repeats and atomic groups are fine."""
    assert re.compile(pattern)
    assert not explodes(pattern)
