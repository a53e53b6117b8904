"""Items: one row checked against what a rubric reads, column by column.

Opening files and frames is the business of `evenhand.sources`; here a row is a mapping of plain data already.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec import field as of

from evenhand._canon import digest
from evenhand._kept import kept
from evenhand.errors import Problem, UnknownNameError, close_names
from evenhand.item_values import READERS, Image, Mistake, Turn, read_id, refuse_bytes, unfold
from evenhand.rubric.model import ItemField, ItemSpec

__all__ = [
    "MAX_ROW_BYTES",
    "CheckedRow",
    "Item",
    "Turn",
    "check_row",
    "content_id",
    "fields_digest",
    "item_from_plain",
    "item_to_plain",
    "missing_columns",
    "read_field",
    "require_mapping",
    "too_big",
]

#: Most bytes one row may have: longer ones are a mistake in the file far more often than a text to be judged.
MAX_ROW_BYTES = 2_000_000
_ID = "id"
_DEPTH = 100
_SHOWN_COLUMNS = 20
_LAYOUTS = 100
_SEPARATORS = ";\t|"  # a column that holds one is most likely a whole line


class Item(Struct, frozen=True, gc=False):
    """One thing to be judged.

    Attributes:
        id: Stable id: the row's own, else content digest and occurrence number.
        row: 0-based position in the input.
        fields: The rubric's item fields -> value (text, bool, number, tuple of Turn, or None; images are a tuple of
            references as given, and of `Image` where the judge is shown them).
        extra: All other columns of the row, untouched, for slices and export.
        place: Where it came from, as in "data.jsonl:17"; for messages only.
        columns: Names of what the row's columns became (fields, "id", extra columns), in the row's order.
        own_id: The row's own id as given, where it is no text.
        key: Which of the run's secrets its fence marks are made of; 0 but in a merged run.
    """

    id: str
    row: int
    fields: Mapping[str, Any]
    extra: Mapping[str, Any] = of(default_factory=dict)
    place: str = ""
    columns: tuple[str, ...] = ()
    own_id: int | float | None = None
    key: int = 0


@dataclass(frozen=True, slots=True)
class CheckedRow:
    """What a row says, and what is wrong with it.

    Attributes:
        fields: Every item field of the rubric -> value; None (``()`` for turns and images) where not given.
        extra: Columns that no field was read from.
        id: The row's own id, None when it has none.
        problems: Mistakes, without line; the row is usable only when there are none.
        columns, own_id: As in `Item`.
    """

    fields: Mapping[str, Any]
    extra: Mapping[str, Any]
    id: str | None
    problems: tuple[Problem, ...]
    columns: tuple[str, ...] = ()
    own_id: int | float | None = None


def check_row(
    row: Mapping[str, Any],
    spec: ItemSpec,
    *,
    mapping: Mapping[str, str] | None = None,
    max_bytes: int = MAX_ROW_BYTES,
) -> CheckedRow:
    """Read a rubric's item fields from one row of plain data.

    A field is read from the column ``mapping`` names, else from the column of its own name, else from the first
    alias that the row has. A number where text is due becomes its JSON text; text where a truth value, number,
    turns or images are due is read as such, so that CSV serves as well as JSON. A list of chat messages in one of
    ``PROMPT_FIELDS`` gives its last message as the text; the earlier ones become the turns field if there is one,
    not given in the row, else they stand before the text as "role: text" lines.

    Args:
        row: Column -> value.
        spec: What the rubric reads.
        mapping: Field name or "id" -> column.
        max_bytes: Most UTF-8 bytes that the row's texts may have.

    Returns:
        The fields and all problems found. A required text may be null or blank only where it is a response, or the
        rubric says so (`ItemSpec.blank`); null and "" stay apart.
    """
    mapping = mapping or {}
    layout = _layout(spec, mapping, tuple(row))
    problems = _text_problems(row, max_bytes)
    if layout.missing:
        problems += missing_columns(row, layout.missing, spec, mapping)
    values = {name: None if column is None else row.get(column) for name, column in layout.columns.items()}
    if any(isinstance(value, list | tuple) for value in values.values()):
        unfold(values, spec)
    fields: dict[str, Any] = {}
    own_id = None
    for name, column in layout.columns.items():
        item_field = layout.fields.get(name)
        try:
            if name == _ID:
                own_id = read_id(values[name])
            if item_field is not None:
                fields[name] = read_field(item_field, values[name])
                if name in layout.filled and column in row:
                    _require_value(item_field, fields[name])
        except Mistake as mistake:
            label = name if column in (name, None) else f"{name} (column {column})"
            problems.append(Problem(None, "", f"{label} {mistake}"))
    return CheckedRow(
        fields,
        {column: row[column] for column in layout.extra},
        own_id,
        tuple(problems),
        layout.names,
        values[_ID] if isinstance(values[_ID], int | float) else None,
    )


class _Layout(NamedTuple):
    """How a rubric's item fields stand in the columns of a row.

    Attributes:
        columns: "id", and each field -> its column; None when there is none (a mapped one may still be absent).
        fields: The fields by name.
        missing: Required fields without a column.
        filled: Required fields that may not be blank.
        extra: Columns that no field is read from.
        names: Names of what the row's columns become.
    """

    columns: Mapping[str, str | None]
    fields: Mapping[str, ItemField]
    missing: tuple[str, ...]
    filled: frozenset[str]
    extra: tuple[str, ...]
    names: tuple[str, ...]


_layouts = kept(lambda _spec: dict[Any, _Layout]())  # by mapping and columns, which most rows of an input share


def _layout(spec: ItemSpec, mapping: Mapping[str, str], there: tuple[str, ...]) -> _Layout:
    known, key = _layouts(spec), (there, *mapping.items())
    if (found := known.get(key)) is not None:
        return found
    columns = {name: _column(name, there, spec, mapping) for name in (_ID, *(f.name for f in spec.fields))}
    used: dict[str | None, list[str]] = {}
    for name, column in columns.items():
        used.setdefault(column, []).append(name)
    required = [f.name for f in spec.fields if f.required]
    if len(known) >= _LAYOUTS:
        known.clear()
    known[key] = made = _Layout(
        columns,
        {f.name: f for f in spec.fields},
        tuple(name for name in required if columns[name] not in there),
        frozenset(required) - set(spec.by_system),
        tuple(column for column in there if column not in used),
        tuple(name for column in there for name in used.get(column, [column])),
    )
    return made


def read_field(item_field: ItemField, value: Any) -> Any:
    """A column's value as an item field's.

    Raises:
        Mistake: it is not of the field's type, or none of its choices (which are told apart by letter case).
    """
    refuse_bytes(value)
    read = READERS[item_field.type](value)
    if (choices := item_field.choices) and isinstance(read, str) and read.strip() and read not in choices:
        raise Mistake(f"is {_shown(f'{read!r:.60}')}, which is none of {', '.join(choices)}")
    return read


def missing_columns(
    columns: Iterable[str],
    names: Iterable[str],
    spec: ItemSpec,
    mapping: Mapping[str, str],
    others: Iterable[str] = (),
) -> list[Problem]:
    """One problem for each of some fields that no column holds, with the columns that do exist.

    A column that holds another field is never proposed: with --map rank_a=rank_b every gap would be 0.

    Args:
        columns: The row's or table's columns.
        names: Fields (or "id") to look for.
        spec: What the rubric reads.
        mapping: Field name or "id" -> column.
        others: Names of fields beyond those of ``spec``.
    """
    present = list(columns)
    known = {_ID, *(f.name for f in spec.fields), *spec.aliases, *mapping.values(), *others}
    free = [c for c in present if c not in known and not any(mark in c for mark in _SEPARATORS)]
    problems = []
    for name in names:
        if _column(name, present, spec, mapping) in present:
            continue
        sought = f"no column {mapping[name]!r} for {name}" if name in mapping else f"no {name}"
        listed = ", ".join(map(_shown, present[:_SHOWN_COLUMNS])) + (", ..." if len(present) > _SHOWN_COLUMNS else "")
        close = close_names(mapping.get(name, name), free)
        remedy = " or ".join(f"--map {quote(f'{name}={_shown(other)}')}" for other in close) or f"--map {name}=COLUMN"
        problems.append(Problem(None, "", f"{sought}; columns: {listed or 'none'}", remedy))
    return problems


def require_mapping(mapping: Mapping[str, str], spec: ItemSpec) -> None:
    """Refuse a mapping to fields that the rubric doesn't read.

    Raises:
        UnknownNameError: a key is neither a field nor "id".
    """
    known = [_ID, *(f.name for f in spec.fields)]
    for name in mapping:
        if name not in known:
            raise UnknownNameError("item field", name, known)


def id_column(columns: Iterable[str], spec: ItemSpec, mapping: Mapping[str, str]) -> str | None:
    """The column that holds a row's own id, None without one."""
    return _column(_ID, columns, spec, mapping)


def content_id(fields: Mapping[str, Any]) -> str:
    """32 hex digits for a row's item fields, the same from whatever kind of file it was read.

    Null, "" and no turns are the same here (CSV can't tell them apart), and so are 1 and 1.0.
    """
    return digest({name: _plain(value) for name, value in fields.items() if value not in (None, "", ())})


def fields_digest(fields: Mapping[str, Any]) -> str:
    """32 hex digits that tell whether a stored row's fields changed; an image counts by its bytes, not its name."""
    return digest({name: _field_to_plain(_by_identity(value)) for name, value in fields.items()})


def item_to_plain(item: Item) -> dict[str, Any]:
    """Plain JSON data of all that the item's row held."""
    fields = {name: _field_to_plain(v) for name, v in item.fields.items()}
    plain: dict[str, Any] = {"fields": fields, "extra": dict(item.extra)}
    if item.columns:
        plain["columns"] = list(item.columns)
    if item.own_id is not None:
        plain["id"] = item.own_id
    if item.key:
        plain["key"] = item.key
    return plain


def _field_to_plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_entry_to_plain(v) for v in value]
    return value


def _entry_to_plain(value: Any) -> Any:
    if isinstance(value, Turn):
        return {"user": value.user, "assistant": value.assistant}
    return asdict(value) if isinstance(value, Image) else value


def _by_identity(value: Any) -> Any:
    if not isinstance(value, tuple):
        return value
    return tuple(v.identity if isinstance(v, Image) else v for v in value)


def item_from_plain(item_id: str, seq: int, plain: Mapping[str, Any]) -> Item:
    """The inverse of `item_to_plain`; no fields where none were kept."""
    fields = plain.get("fields", {})
    if list in map(type, fields.values()):
        fields = {name: _field_from_plain(value) for name, value in fields.items()}
    columns, own_id = tuple(plain.get("columns", ())), plain.get("id")
    key = plain.get("key", 0)
    return Item(item_id, seq, fields, plain.get("extra", {}), columns=columns, own_id=own_id, key=key)


def _field_from_plain(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_entry_from_plain(v) if isinstance(v, dict) else v for v in value)
    return value


def _entry_from_plain(value: dict[str, Any]) -> Turn | Image:
    return Image(**value) if "reference" in value else Turn(**value)


def told_plain(value: Any) -> str:
    """A stored field's value, to be told where it changed."""
    if not isinstance(value, list):
        return str(value)
    return str([Image(**v) if isinstance(v, dict) and "reference" in v else v for v in value])


def too_big(size: int, limit: int) -> str:
    """The message about a row of too many bytes."""
    return f"the row has {size:,} bytes, more than the limit of {limit:,}"


def _column(name: str, columns: Iterable[str], spec: ItemSpec, mapping: Mapping[str, str]) -> str | None:
    """The column a field is read from; None when there is none (a mapped one may still be absent)."""
    if name in mapping:
        return mapping[name]
    if name in columns:
        return name
    return next((other for other, target in spec.aliases.items() if target == name and other in columns), None)


def _text_problems(row: Mapping[str, Any], max_bytes: int) -> list[Problem]:
    """Texts that can't be sent or stored, and a row that is too big."""
    problems = []
    size = 0
    for column, value in row.items():
        try:
            size += _bytes(column) + _bytes(value)
        except UnicodeEncodeError:
            problems.append(Problem(None, "", f"{_shown(column)} holds half a surrogate pair, which is no text"))
        except Mistake as mistake:
            problems.append(Problem(None, "", f"{_shown(column)} {mistake}"))
    if size > max_bytes:
        problems.append(Problem(None, "", too_big(size, max_bytes)))
    return problems


def _bytes(value: Any, depth: int = 0) -> int:
    """UTF-8 bytes of all texts in plain data."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if depth > _DEPTH:
        raise Mistake(f"is nested more than {_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return sum(_bytes(k) + _bytes(v, depth + 1) for k, v in value.items())
    if isinstance(value, list | tuple):
        return sum(_bytes(v, depth + 1) for v in value)
    if isinstance(value, float) and not math.isfinite(value):
        raise Mistake(f"holds {value}, which is no finite number")
    return 0


def _shown(name: str) -> str:
    return name.encode("utf-8", "backslashreplace").decode()


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [[v.user, v.assistant] if isinstance(v, Turn) else v for v in _by_identity(value)]
    return value


def _require_value(item_field: ItemField, value: Any) -> None:
    """A required value must be there; only turns may be none at all."""
    if value is None or (value == () and item_field.type != "turns"):
        raise Mistake("is required, and not given")
    if isinstance(value, str) and not value.strip():
        raise Mistake("is required, and blank")
