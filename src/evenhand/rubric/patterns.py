"""Regular expressions of a rubric: those that could keep a reader busy for ever are refused."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

#: Repeats of at most so many rounds multiply the work, but don't let it explode.
_FEW = 3
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT")
_LOOKS = ("ASSERT", "ASSERT_NOT")


def explodes(pattern: str) -> bool:
    """Whether matching may take time that grows exponentially with the text.

    That needs a repeat of what can itself match a text in several ways: of another repeat, as in ``(?:a+)+``, or of
    alternatives that begin alike. Such a repeat is refused even where it would do no harm, as in ``(?:a+,)+``.
    Possessive repeats and atomic groups, which never try a second way, are harmless. Work that grows with a power
    of the text's length, as that of ``.*.*x``, is not found.

    Args:
        pattern: A regular expression that compiles.
    """
    parser = importlib.import_module("re._parser")  # no public module has the parts of an expression
    return _explodes(parser.parse(pattern))


def _explodes(parts: Iterable[tuple[Any, Any]]) -> bool:
    for operation, argument in parts:
        if str(operation) in _REPEATS and argument[1] > _FEW and _several_ways(argument[2]):
            return True
        if any(_explodes(inner) for inner in _inside(argument)):
            return True
    return False


def _several_ways(parts: Iterable[tuple[Any, Any]]) -> bool:
    """Whether what is repeated may match one text in several ways."""
    for operation, argument in parts:
        name = str(operation)
        if name in _REPEATS and argument[0] != argument[1]:
            return True
        if name == "GROUPREF_EXISTS" or (name == "BRANCH" and not _begin_differently(argument[1])):
            return True
        alone = name in (*_LOOKS, "ATOMIC_GROUP", "POSSESSIVE_REPEAT")
        if not alone and any(_several_ways(inner) for inner in _inside(argument)):
            return True
    return False


def _begin_differently(branches: Iterable[Any]) -> bool:
    """Whether the first character alone tells alternatives apart."""
    first = [branch[0] if len(branch) else None for branch in branches]
    letters = [chr(part[1]).casefold() for part in first if part is not None and str(part[0]) == "LITERAL"]
    return len(letters) == len(first) == len(set(letters))


def _inside(argument: Any) -> Iterable[Any]:
    """The expressions inside the argument of one operation."""
    if type(argument).__name__ == "SubPattern":
        yield argument
    elif isinstance(argument, tuple | list):
        for element in argument:
            yield from _inside(element)
