"""Rules between the fields of a verdict, values derived from them, and presets decided by the item. Pure.

A rule whose condition can't be decided, because a field is missing or of the wrong kind, is *not checked*: it is
neither broken nor kept, and it is counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from msgspec import Struct
from msgspec import field as of

from evenhand.errors import Problem, RubricError
from evenhand.expressions import UNDECIDED, UNNAMED, Environment, Missing, Run, check_expression, compile_expression
from evenhand.rubric.model import Preset, Rubric, Rule
from evenhand.verdict import FieldValue, Violation

__all__ = [
    "Checked",
    "PresetResult",
    "Rules",
    "check_expression",
    "compile_expression",
    "compile_rubric",
    "fill",
]

_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*)\}")
_MISSING = "?"


class Checked(Struct, frozen=True, gc=False):
    """What the rules say about one verdict.

    Attributes:
        violations: Broken rules, warnings included, in the rubric's order.
        not_checked: Ids of rules that could not be decided, in the rubric's order.
        derived: Values of the rubric's ``let`` entries; those that could not be derived are left out.
        reasons: Id of each rule not checked -> why, as in "rank_a is missing".
    """

    violations: tuple[Violation, ...] = ()
    not_checked: tuple[str, ...] = ()
    derived: Mapping[str, Any] = of(default_factory=dict)
    reasons: Mapping[str, str] = of(default_factory=dict)


class PresetResult(Struct, frozen=True, gc=False):
    """What an item decides by itself.

    Attributes:
        values: Output field -> value.
        call: Whether the judge is still asked about the other fields.
    """

    values: dict[str, FieldValue]
    call: bool


class Rules:
    """The compiled conditions of one rubric; immutable, so threads may share it. Made by `compile_rubric`.

    Args:
        rubric: The rubric.

    Raises:
        RubricError: a condition has mistakes; carries all of them.
    """

    def __init__(self, rubric: Rubric) -> None:
        _raise_mistakes(rubric)
        derived = {name: compile_expression(text) for name, text in rubric.let.items()}
        self._let = [(name, expression.run) for name, expression in derived.items()]
        compiled = [(rule, compile_expression(rule.condition)) for rule in rubric.rules]
        self._rules: list[tuple[Rule, str | None, Run]] = [(rule, c.first, c.run) for rule, c in compiled]
        self._presets: list[tuple[Preset, Run]] = [(p, compile_expression(p.when).run) for p in rubric.presets]
        self._types = rubric.types
        #: The fields and inputs that decide what `check` finds, and the derived values.
        self.names = frozenset(
            [
                *(name for expression in (*derived.values(), *(c for _, c in compiled)) for name in expression.names),
                *(name for rule in rubric.rules for name in _pieces(rule.say)[1::2]),
                *([rubric.types.item_field] if rubric.types else []),
            ]
        )
        self._category = {
            name: category
            for category, names in (rubric.types.categories if rubric.types else {}).items()
            for name in names
        }

    def check(self, fields: Mapping[str, Any], item: Mapping[str, Any]) -> Checked:
        """Check a verdict against every rule.

        Args:
            fields: Output field -> value; None or absent is missing, and then an item field of that name counts.
            item: Item field -> value, or the `environment` made of it.
        """
        env = Environment(item) if isinstance(item, Environment) else self.environment(item)
        env.update(_given(fields))
        derived: dict[str, Any] = {}
        causes: dict[str, str] = {}  # derived value -> the name it lacks
        for name, evaluate in self._let:
            try:
                env[name] = derived[name] = evaluate(env)
            except Missing as missing:
                env.pop(name, None)
                if (cause := str(missing)) != UNNAMED:
                    causes[name] = causes.get(cause, cause)
            except UNDECIDED:
                env.pop(name, None)
        broken: list[Violation] = []
        reasons: dict[str, str] = {}
        for rule, first, evaluate in self._rules:
            # as the exception below would say it, but many times quicker where columns are missing from every row
            if first is not None and first not in env:
                reasons[rule.id] = f"{causes.get(first, first)} is missing"
                continue
            try:
                if evaluate(env):
                    broken.append(Violation(rule.id, rule.severity, fill(rule.say, env)))
            except Missing as missing:
                reasons[rule.id] = f"{causes.get(str(missing), missing)} is missing"
            except UNDECIDED as error:
                reasons[rule.id] = str(error)
        return Checked(tuple(broken), tuple(reasons), derived, reasons)

    def preset(self, item: Mapping[str, Any]) -> PresetResult:
        """The values an item decides; of presets that set the same field the first counts.

        A preset whose condition can't be decided does not apply. ``item`` is as for `check`.
        """
        env = item if isinstance(item, Environment) else self.environment(item)
        values: dict[str, FieldValue] = {}
        call = True
        for preset, evaluate in self._presets:
            try:
                applies = evaluate(env)
            except (Missing, *UNDECIDED):
                continue
            if applies:
                for name, value in preset.set.items():
                    values.setdefault(name, value)
                call = call and preset.call
        return PresetResult(values, call)

    def environment(self, item: Mapping[str, Any]) -> Environment:
        """The item's values, and the group and category of its type."""
        env = Environment()
        if self._types is not None and isinstance(kind := item.get(self._types.item_field), str):
            derived = {"group": self._types.names.get(kind), "category": self._category.get(kind)}
            item = {**derived, **item}
        env.update(_given(item))
        return env


@dataclass(frozen=True, slots=True)
class _ByDigest:
    """A rubric as a cache key: two rubrics of the same digest are the same."""

    digest: str
    rubric: Rubric = field(compare=False)


@lru_cache(maxsize=32)
def _cached(key: _ByDigest) -> Rules:
    return Rules(key.rubric)


def compile_rubric(rubric: Rubric) -> Rules:
    """The rules of a rubric, compiled once per digest (a rubric without one is compiled each time).

    Raises:
        RubricError: a condition has mistakes; carries all of them.
    """
    return _cached(_ByDigest(rubric.digest, rubric)) if rubric.digest else Rules(rubric)


def fill(template: str, env: Mapping[str, Any]) -> str:
    """Fill each ``{name}`` of a template, in one pass: what a value holds is never read as a placeholder.

    Texts go in as they are, truth values as true or false, fractions with at most four decimals, lists with commas.
    A name without a value becomes "?". Braces around anything but a name stay.
    """
    pieces = _pieces(template)
    if len(pieces) == 1:
        return template
    return "".join(_show(env.get(piece)) if n % 2 else piece for n, piece in enumerate(pieces))


@lru_cache(maxsize=1024)
def _pieces(template: str) -> list[str]:
    """Texts and names in turn."""
    return _PLACEHOLDER.split(template)


def _given(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The values that are there."""
    if None not in values.values():
        return values
    return {name: value for name, value in values.items() if value is not None}


def _show(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return _MISSING
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        short = f"{value:.4g}" if abs(value) < 1 else repr(round(value, 4))
        return short.removesuffix(".0")
    if isinstance(value, list | tuple):
        return ", ".join(map(_show, value))
    try:
        return str(value)
    except ValueError:  # a whole number of thousands of digits
        return _MISSING


def _raise_mistakes(rubric: Rubric) -> None:
    """All mistakes of a rubric's conditions at once."""
    items = {f.name for f in rubric.item.fields} | ({"group", "category"} if rubric.types else set())
    # a column may carry an output field's value, so a preset may ask for it
    known = items | {f.name for f in rubric.output.fields}
    parts = [(f"$.preset[{i}].when", preset.when, set(known)) for i, preset in enumerate(rubric.presets)]
    for name, text in rubric.let.items():
        parts.append((f"$.let.{name}", text, set(known)))
        known.add(name)
    parts += [(f"rule {rule.id}", rule.condition, known) for rule in rubric.rules]
    problems = [
        Problem(None, path, mistake) for path, text, names in parts for mistake in check_expression(text, names)
    ]
    if problems:
        raise RubricError(problems)
