"""Ratings made by people or other tools: one row's columns as the values of a rubric's fields. Pure.

A value is read as the same words in a judge's reply would be: letter case, aliases and full-width signs don't
matter, and nothing is rounded or guessed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from evenhand.errors import InputError, Problem, UnknownNameError
from evenhand.item import missing_columns, read_field
from evenhand.item_values import READERS, Mistake, read_id
from evenhand.labels import LABELS, SIDES, LabelSet, label_set
from evenhand.parse.lenient import Number, Pairs
from evenhand.parse.values import read_value
from evenhand.rubric.model import ItemField, OutputField, Rubric
from evenhand.scale import Scale
from evenhand.verdict import Failure

#: Rule ids, before the column's name, of what is wrong with a single value.
ILLEGAL, MISSING = "illegal-value", "missing-value"
_ID = "id"
_REMEMBERED = 1000
_SHOWN = 20
#: A column's value -> the field's, None for not given. Raises `Mistake` with a whole sentence.
_Reader = Callable[[Any], Any]


class Rating(NamedTuple):
    """One row, read.

    Attributes:
        id: The row's own id, None when it has none.
        values: Field -> value, of the fields that have one.
        wrong: Rule id -> message, for each value that is not legal, and each that is due and not given.
    """

    id: str | None
    values: Mapping[str, Any]
    wrong: Mapping[str, str]


class _Plan(NamedTuple):
    """From which columns a row of some columns is read: the id's, and (field, column) of the others."""

    id: str | None
    quick: list[tuple[str, str, dict[Any, Any]]]
    slow: list[tuple[str, str]]


class RatingReader:
    """Reads rows of ratings under one rubric.

    Args:
        rubric: The rubric.
        names: The names that the rubric's rules use; other texts, lists and inputs are not looked at.
        mapping: Field name or "id" -> column.
        labels: Name of the label set in which the preference labels are written, None for the rubric's own.
        partial: No column is required.

    Raises:
        UnknownNameError: ``mapping`` names no field of the rubric, or there is no such label set.
        InputError: a label set for a rubric without the labels it converts to.
    """

    def __init__(
        self,
        rubric: Rubric,
        names: Collection[str],
        *,
        mapping: Mapping[str, str] | None = None,
        labels: str | None = None,
        partial: bool = False,
    ) -> None:
        self._spec = rubric.item
        self._mapping = mapping or {}
        known = [_ID, *(f.name for f in rubric.item.fields), *(f.name for f in rubric.output.fields)]
        for name in self._mapping:
            if name not in known:
                raise UnknownNameError("field", name, known)
        self._readers: dict[str, _Reader] = {f.name: _input_reader(f) for f in rubric.item.fields if f.name in names}
        for f in rubric.output.fields:
            if f.kind in ("scale", "bool") or f.name in names:
                self._readers[f.name] = _field_reader(f)
        self._set: LabelSet | None = None
        self._converted: tuple[tuple[str, str], ...] = ()
        if labels is not None:
            self._set, self._converted = label_set(labels), preferences(rubric)
            if not self._converted:
                raise InputError(
                    f"rubric {rubric.name} has no labels of preference with sides, so no label set applies"
                )
            for name, _ in self._converted:
                self._readers[name] = _unread
        due = [f for f in rubric.output.fields if _is_due(f)]
        told = {side for _, side in self._converted if self._set is not None and not self._set.side_apart}
        #: Fields that every row must have a value of.
        self.required = () if partial else tuple(f.name for f in due if f.name not in told)
        self._ratings = frozenset(self._readers) & {f.name for f in rubric.output.fields}
        self._due = {f.name: f"{f.name} has no value. Make it {_legal(f)}." for f in due}
        self._responses = frozenset(rubric.item.responses)
        self._enumerable = frozenset(f.name for f in rubric.output.fields if f.kind in ("scale", "bool"))
        # few different values fill a column of these: what was read once need not be read again
        self._known: dict[str, dict[Any, Any]] = {name: {} for name in self._enumerable}
        self._plans: dict[tuple[str, ...], _Plan] = {}

    def missing(self, columns: Collection[str]) -> list[Problem]:
        """One problem for each required or mapped field that none of some columns holds, or where none is a rating."""
        needed = dict.fromkeys([*self.required, *self._mapping])
        problems = missing_columns(columns, needed, self._spec, self._mapping, self._readers)
        plan = self._plan(tuple(columns))
        if not problems and self._ratings.isdisjoint(column[0] for column in (*plan.quick, *plan.slow)):
            found, sought = ", ".join([*columns][:_SHOWN]), ", ".join(sorted(self._ratings))
            problems = [
                Problem(None, "", f"no column holds a rating: {sought}; columns: {found}", "--map FIELD=COLUMN")
            ]
        return problems

    def read(self, row: Mapping[str, Any]) -> Rating:
        """Read one row; whatever is wrong with it is in the result."""
        columns = tuple(row)
        plan = self._plans.get(columns)
        if plan is None:
            plan = self._plan(columns)
        values: dict[str, Any] = {}
        wrong: dict[str, str] = {}
        for name, column, known in plan.quick:
            raw = row[column]
            try:
                value = known[raw if raw.__class__ is str else (raw.__class__, raw)]  # True is not 1, nor 1.0
            except (KeyError, TypeError):  # TypeError: a list can't be looked up
                value = self._read_new(name, raw, wrong)
            if value is not None:
                values[name] = value
        for name, column in plan.slow:
            value = self._read_value(name, row[column], wrong)
            if value is not None:
                values[name] = value
        told = self._convert(self._set, values, wrong) if self._set is not None else ()
        for name in self.required:
            if name not in values and name not in told and f"{ILLEGAL}:{name}" not in wrong:
                wrong[f"{MISSING}:{name}"] = self._due[name]
        own_id = _own_id(row[plan.id]) if plan.id is not None else None
        return Rating(own_id, values, wrong)

    def _plan(self, columns: tuple[str, ...]) -> _Plan:
        """Which field is read from which column."""
        found: dict[str, str] = {}
        for name in (_ID, *self._readers):
            aliases = (other for other, target in self._spec.aliases.items() if target == name)
            candidates = [self._mapping[name]] if name in self._mapping else [name, *aliases]
            column = next((c for c in candidates if c in columns), None)
            if column is not None:
                found[name] = column
        plan = _Plan(
            found.pop(_ID, None),
            [(name, column, self._known[name]) for name, column in found.items() if name in self._enumerable],
            [(name, column) for name, column in found.items() if name not in self._enumerable],
        )
        if len(self._plans) < _REMEMBERED:
            self._plans[columns] = plan
        return plan

    def _read_new(self, name: str, raw: Any, wrong: dict[str, str]) -> Any:
        """A value not met before; remembered if it is legal."""
        value = self._read_value(name, raw, wrong)
        known = self._known[name]
        if len(known) < _REMEMBERED and f"{ILLEGAL}:{name}" not in wrong:
            with contextlib.suppress(TypeError):
                known[raw if raw.__class__ is str else (raw.__class__, raw)] = value
        return value

    def _read_value(self, name: str, raw: Any, wrong: dict[str, str]) -> Any:
        if raw is None:
            return "" if name in self._responses else None  # a response that never came is a blank one
        try:
            return self._readers[name](raw)
        except Mistake as mistake:
            wrong[f"{ILLEGAL}:{name}"] = str(mistake)
            return None

    def _convert(self, labels: LabelSet, values: dict[str, Any], wrong: dict[str, str]) -> set[str]:
        """Replace the values of a label set by the rubric's labels and sides; the names of those replaced."""
        told = set()
        for name, side in self._converted:
            if name not in values:
                continue
            try:
                found = labels.read(values.pop(name), values.get(side))
                if not labels.side_apart and values.get(side, found.side) != found.side:
                    raise InputError(f"it prefers {found.side}, but {side} is {values[side]}")
            except InputError as error:
                wrong[f"{ILLEGAL}:{name}"] = f"{name}: {error.message}. Correct {name}."
                continue
            told.add(name)
            values.update((k, v) for k, v in ((name, found.label), (side, found.side)) if v is not None)
        return told


def preferences(rubric: Rubric) -> tuple[tuple[str, str], ...]:
    """The fields (label, side) of a rubric's preferences that label sets can stand for."""
    fields = [f for f in rubric.output.fields if f.criterion is not None and f.scale is not None]
    sides = {f.criterion: f.name for f in fields if f.scale and f.scale.slots and f.scale.values == SIDES}
    labels = [f.name for f in fields if f.scale and f.scale.values == LABELS and f.name == f.criterion]
    return tuple((name, sides[name]) for name in labels if name in sides)


def _is_due(field: OutputField) -> bool:
    """Whether every rating has the field: it answers a criterion, or stands on one of the rubric's named scales."""
    if field.kind != "scale" or field.scale is None or field.nullable:
        return False
    return field.name == field.criterion or bool(field.scale.name)


def _input_reader(field: ItemField) -> _Reader:
    def run(raw: Any) -> Any:
        try:
            return read_field(field, raw)
        except Mistake as mistake:
            raise Mistake(f"{field.name} {mistake}.") from None

    return run


def _field_reader(field: OutputField) -> _Reader:
    if field.kind == "text":
        return _input_reader(ItemField(field.name, "text", False))
    if field.kind == "bool":
        return lambda raw: _truth(field, raw)
    return lambda raw: _legal_value(field, raw)


def _truth(field: OutputField, raw: Any) -> bool | None:
    """A truth value as tables hold it (yes, 1); the words for none are those of every other field."""
    try:
        value: bool | None = READERS["bool"](raw)
    except Mistake as mistake:
        outcome = read_value(field, _as_read(raw))
        if outcome.failure not in (None, Failure.NO_RATING):
            raise Mistake(f"{field.name} {mistake}.") from None
        value = None
    return value


def _legal_value(field: OutputField, raw: Any) -> Any:
    if field.kind == "list" and isinstance(raw, str):
        if not raw.strip():
            return None
        try:
            raw = json.loads(raw)
        except ValueError:
            raise Mistake(f"{field.name} is no list in JSON. Make it {_legal(field)}.") from None
    outcome = read_value(field, _as_read(raw))
    if outcome.failure is None or outcome.failure is Failure.NO_RATING:
        return outcome.value
    raise Mistake(f"{field.name} is {raw!r:.60}. Make it {_legal(field)}{_as_number(field.scale, raw)}.")


def _as_number(scale: Scale | None, raw: Any) -> str:
    """How to write yes and no on a scale of 0 and 1."""
    if scale is None or scale.points is None or list(scale.points) != [0, 1]:
        return ""
    try:
        READERS["bool"](raw)
    except Mistake:
        return ""
    return ": 1 for yes, 0 for no"


def _as_read(value: Any) -> Any:
    """Plain data in the form that the reader of replies takes."""
    if isinstance(value, Mapping):
        return Pairs((str(key), _as_read(v)) for key, v in value.items())
    if isinstance(value, list | tuple):
        return [_as_read(v) for v in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Number(json.dumps(value))
    return value


def _legal(field: OutputField) -> str:
    """What a field may hold, in words."""
    return "a list" if field.scale is None else _points(field.scale)


def _points(scale: Scale) -> str:
    if scale.values is not None:
        *others, last = (str(value) for value in scale.values)
        return f"{', '.join(others)} or {last}"
    return f"a {'whole ' if scale.integer else ''}number from {scale.bottom} to {scale.top}"


def _own_id(raw: Any) -> str | None:
    try:
        return read_id(raw)
    except Mistake:
        return None


def _unread(raw: Any) -> Any:
    """A value as it stands; a blank one is none."""
    return None if isinstance(raw, str) and not raw.strip() else raw
