"""Requirement ids: each must stand in a ``#! ID`` comment of the file, or be held elsewhere."""

from __future__ import annotations

import re

from evenhand.rubric.problems import Problems, known_names, shown
from evenhand.rubric.yaml_tree import Node

_ID = re.compile(r"[A-Z]+\d+")
_RANGE = re.compile(r"([A-Z]+)(\d{1,6})(?:-([A-Z]+)(\d{1,6}))?")
_MAX_RANGE = 10_000


def check_requirements(root: Node, text: str, problems: Problems) -> None:
    """Note requirements without a mark, and marks of no requirement."""
    node = root.get("requirements")
    if node is None:
        return
    wanted = _expand(node.elements("ids"), problems)
    elsewhere = _expand(node.elements("elsewhere"), problems)
    for identifier, place in elsewhere.items():
        if identifier not in wanted:
            problems.add(place, f"{identifier} is not among the ids")
    marked: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        for identifier in _ID.findall(line.partition("#!")[2]):
            marked.add(identifier)
            if identifier not in wanted:
                message = f"mark of an unknown requirement {identifier}"
                problems.at(number, "", message, known_names(identifier, wanted))
    lost = [identifier for identifier in wanted if identifier not in marked and identifier not in elsewhere]
    if lost:
        ids = node.get("ids") or node
        remedy = "mark the line that honours each with #! ID, or list it under elsewhere"
        problems.add(ids, f"no line is marked with {', '.join(lost)}", remedy)


def _expand(nodes: list[Node], problems: Problems) -> dict[str, Node]:
    """Ids and ranges of ids, as in H01-H49, one by one."""
    found: dict[str, Node] = {}
    for node in nodes:
        match = _RANGE.fullmatch(node.value)
        first, last = (int(match[2]), int(match[4] or match[2])) if match else (1, 0)
        if match is None or not 0 <= last - first < _MAX_RANGE or match[3] not in (None, match[1]):
            problems.add(node, f"{shown(node.value)} is no id or range of ids", "as in H01 or H01-H49")
            continue
        width = len(match[2])
        found |= {f"{match[1]}{number:0{width}}": node for number in range(first, last + 1)}
    return found
