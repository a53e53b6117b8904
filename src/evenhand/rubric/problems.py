"""Collecting the mistakes of one file: all of them, each once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from evenhand.errors import Problem, close_names
from evenhand.rubric.yaml_tree import Node

#: How many known names a remedy lists.
LISTED = 12


class Problems:
    """The mistakes found so far.

    Args:
        variant: Appended to every message, as in "with scale=0-3"; "" for the default variant.
    """

    def __init__(self, variant: str = "") -> None:
        self._variant = variant
        self._found: dict[Problem, None] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, node: Node, message: str, remedy: str = "") -> None:
        """Note a mistake at a node."""
        self.at(node.line, node.path, message, remedy)

    def at(self, line: int | None, path: str, message: str, remedy: str = "") -> None:
        """Note a mistake at a line and path."""
        self._found.setdefault(Problem(line, path, message, remedy))

    def unknown(self, node: Node, kind: str, name: str, known: Iterable[str]) -> None:
        """Note a name that doesn't exist, with close names or the ones that do."""
        self.add(node, f"unknown {kind} {shown(name)}", known_names(name, known))

    def noted(self, node: Node) -> bool:
        """Whether a mistake was noted at a node; one copy of an expanded entry is enough."""
        return any(problem.path == node.path for problem in self._found)

    def merge(self, other: Problems) -> None:
        """Take over what another variant found and this one did not."""
        told = {(problem.line, problem.path, problem.message) for problem in self._found}
        for problem in other._found:
            if (problem.line, problem.path, problem.message) not in told:
                self._found.setdefault(replace(problem, message=f"{problem.message}, {other._variant}"))

    def sorted(self) -> list[Problem]:
        """All mistakes, by line."""
        return sorted(self._found, key=lambda problem: problem.line or 0)


def known_names(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: close names, else the known ones."""
    names = list(known)
    close = close_names(name, names)
    if close:
        return f"did you mean {' or '.join(close)}?"
    if not names:
        return "there are none"
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"known: {', '.join(names[:LISTED])}{more}"


def shown(value: object) -> str:
    """A value in a message, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
