"""Which slice of a run a row belongs to: the value of a column of the input, or of an item field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.errors import UnknownNameError
from evenhand.keywords import text
from evenhand.rubric.model import Rubric
from evenhand.store import StoredRow


class Column:
    """What a run is broken down by.

    Args:
        by: A column of the input, an item field of the rubric, or "id".
        rubric: The run's rubric.
        manifest: The run's manifest; it knows which columns fields were read from.
    """

    def __init__(self, by: str, rubric: Rubric, manifest: Mapping[str, Any]) -> None:
        self._by = text("by", by)
        self._names = _names(by, rubric, manifest)
        self._columns: set[str] = set()

    def slice_of(self, row: StoredRow) -> str:
        """The row's value as text; "(none)" where it has none."""
        source = {**row.raw, "id": row.item.id, **row.item.fields} if row.item else row.raw
        self._columns.update(source)
        return label(next((source[name] for name in self._names if name in source), None))

    def require_known(self) -> None:
        """To be called after all rows.

        Raises:
            UnknownNameError: no row had such a column or field.
        """
        if not self._columns & set(self._names):
            hint = None if self._columns - {"id"} else "this run keeps no columns of its items (--no-store-texts)"
            raise UnknownNameError("column", self._by, self._columns, hint=hint)


def label(value: Any) -> str:
    """A value as the name of a slice, or of a system; a whole number has one name, as a float too."""
    told = ", ".join(map(str, value)) if isinstance(value, tuple) else value
    if isinstance(told, float) and told.is_integer():
        return f"{told:.0f}"
    return "(none)" if told is None or value == () else str(told)


def _names(by: str, rubric: Rubric, manifest: Mapping[str, Any]) -> list[str]:
    """Where a row may hold what ``by`` names, likeliest first: a field was read from a column of any of these names."""
    read_as = dict(rubric.item.aliases)
    for command in manifest["commands"]:
        read_as.update({column: field for field, column in command["mapping"].items()})
    field = read_as.get(by, by)
    return [by, field, *(column for column, other in read_as.items() if other == field)]
