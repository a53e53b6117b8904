"""A rubric's own options: reading them, choosing values, and what a choice keeps or drops."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.errors import UnknownNameError
from evenhand.rubric.format import DETAILS, FILLS, RANGE_KEY
from evenhand.rubric.model import Mode, Option
from evenhand.rubric.problems import Problems, shown
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Value

_NAME = re.compile(r"[A-Za-z][\w-]*")


@dataclass(frozen=True, slots=True)
class Context:
    """What every part of the loader needs.

    Attributes:
        root: The file, its structure checked.
        problems: Where mistakes go.
        options: Declared options.
        chosen: Option -> value.
    """

    root: Node
    problems: Problems
    options: tuple[Option, ...]
    chosen: Mapping[str, Value]

    @property
    def mode(self) -> Mode:
        return "compare" if self.root.text("mode") == "compare" else "score"

    @property
    def language(self) -> str:
        return self.root.text("language", "en")

    def kept(self, node: Node) -> bool:
        """Whether an entry's ``needs`` and ``unless`` keep it; both conditions are checked."""
        needs, unless = (self._holds(node.get(key)) for key in ("needs", "unless"))
        return needs is not False and unless is not True

    def _holds(self, condition: Node | None) -> bool | None:
        """Whether an option condition holds; None where there is none, or it has a mistake."""
        if condition is None:
            return None
        name, equals, text = (part.strip() for part in condition.value.partition("="))
        option = next((o for o in self.options if o.name == name), None)
        if option is None:
            self.problems.unknown(condition, "option", name, [o.name for o in self.options])
            return None
        if not equals:
            if set(option.values) <= {True, False}:
                return bool(self.chosen[name])
            values = ", ".join(map(written, option.values))
            self.problems.add(condition, f"option {name!r} is no switch", f"write {name}=VALUE; values: {values}")
            return None
        value = find_value(option, text)
        if value is None:
            self.problems.unknown(condition, f"value of option {name!r}", text, map(written, option.values))
            return None
        return value == self.chosen[name]


def read_options(root: Node, problems: Problems) -> tuple[Option, ...]:
    """The declared options, in file order."""
    options = []
    for name, node in root.items("options"):
        if not _NAME.fullmatch(name):
            problems.at(
                node.key_line, node.path, f"{shown(name)} can't be the name of an option", "letters, digits, _ and -"
            )
        default = node.get("default")
        if default is None:
            continue
        values = tuple(entry.value for entry in node.elements("values"))
        if not values and isinstance(default.value, bool):
            values = (False, True)
        elif not values:
            problems.add(node, f"option {name!r} has no values", "list them under values, or make the default a switch")
            values = (default.value,)
        if not any(same(value, default.value) for value in values):
            problems.add(default, f"default {shown(default.value)} is not among the values of option {name!r}")
        _check_reserved(name, node, values, problems)
        options.append(Option(name, default.value, values))
    return tuple(options)


def _check_reserved(name: str, node: Node, values: tuple[Value, ...], problems: Problems) -> None:
    for known in (("detail", DETAILS), ("fill", FILLS)):
        for entry in node.elements("values") if name == known[0] else ():
            if entry.value not in known[1]:
                problems.unknown(entry, name, str(entry.value), known[1])
    if name == "scale":
        for value in values:
            if not isinstance(value, str) or not RANGE_KEY.fullmatch(value):
                problems.add(node, f"scale {shown(value)} is not LOW-HIGH", "as in 0-10")


def choose(options: tuple[Option, ...], given: Mapping[str, Value]) -> dict[str, Value]:
    """Values of all options: those given, else the defaults.

    Args:
        options: Declared options.
        given: Option -> value; a text stands for the value written that way.

    Raises:
        UnknownNameError: no such option, or no such value of it; lists what exists.
    """
    chosen = {option.name: option.default for option in options}
    by_name = {option.name: option for option in options}
    for name, value in given.items():
        if name not in by_name:
            hint = None if options else "this rubric has no options"
            raise UnknownNameError("option", name, by_name, hint=hint)
        found = find_value(by_name[name], value)
        if found is None:
            raise UnknownNameError(f"value of option {name!r}:", str(value), map(written, by_name[name].values))
        chosen[name] = found
    return chosen


def find_value(option: Option, given: Value) -> Value | None:
    """The option's value that is given or written as given; None where there is none."""
    for value in option.values:
        if same(value, given):
            return value
    if isinstance(given, str):
        return next((value for value in option.values if written(value) == given.strip()), None)
    return None


def same(a: object, b: object) -> bool:
    """Equal and of one kind: true is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def written(value: Value) -> str:
    """A value as written on the command line."""
    return str(value).lower() if isinstance(value, bool) else str(value)
