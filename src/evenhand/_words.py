"""Words that messages share."""

from __future__ import annotations


def counted(n: int, noun: str) -> str:
    """A number with its noun, as in "1 row" and "2 rows"; the plural must end in a bare s."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
