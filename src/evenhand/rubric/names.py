"""Names that a rubric may give: every table of verdicts has its own columns, and not every tool tells A from a."""

from __future__ import annotations

from evenhand.rubric.problems import Problems
from evenhand.rubric.yaml_tree import Node

#: Names of the columns that stand beside the fields when verdicts are exported.
RESERVED = {
    "id", "status", "failure", "composite", "violations", "set_in_code", "re_asked", "repaired", "calls", "model",
    "flip", "order", "repeat",
}  # fmt: skip


def check_name(problems: Problems, node: Node, kind: str, name: str) -> None:
    """Note a criterion or field that has the name of one of the columns of every export, letter case aside."""
    if name.casefold() in RESERVED:
        message = f"{kind} {name!r} has the name of a column that every export has"
        problems.add(node, message, f"choose another name, as in {name}_rating")


def check_case(problems: Problems, node: Node, kind: str, name: str, folded: dict[str, str]) -> None:
    """Note a name that differs from an earlier one only in letter case.

    Args:
        problems: Takes the note.
        node: Where the name stands.
        kind: What is named, as in "field".
        name: The name.
        folded: Name without letter case -> the first that has it; takes this name too.
    """
    other = folded.setdefault(name.casefold(), name)
    if other != name:
        message = f"{kind} {name!r} differs from {kind} {other!r} only in letter case"
        problems.add(node, message, "choose another name")
