"""Prompts with any number of responses, read from rows: all of them in one row, or a row for each.

read_groups -> _Reader (one row: the prompt, and what it holds of responses) -> Group or BadRow
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.errors import ItemError, Problem
from evenhand.images import folder_of, with_images
from evenhand.item import MAX_ROW_BYTES, CheckedRow, check_row, content_id, require_mapping
from evenhand.item_values import READERS, Mistake, read_json
from evenhand.rows import RawRow
from evenhand.rubric.model import ItemSpec
from evenhand.sources import BadRow, IdBook, bad_row, id_book, open_source, where

_RESPONSES = "responses"
_PROMPT_ID = "prompt_id"
_RESPONSE = ("response", "answer", "output", "completion", "text")
_SYSTEM = ("system", "model", "generator", "name")
_NONE = (
    "no responses; give them as a list `responses`, as columns response_a, response_b ..., or in a row each with"
    " `response` and `system`"
)


@dataclass(frozen=True, slots=True)
class Group:
    """A prompt and the responses to it.

    Attributes:
        id: The prompt's id: its own, else a content digest.
        row: 0-based position of its first row in the input.
        fields: The rubric's item fields but the responses -> value.
        extra: Other columns; of several rows, those that are the same in all.
        responses: System -> response, in order; None for a system that gave none. At least two.
        place: Where it came from, for messages.
    """

    id: str
    row: int
    fields: Mapping[str, Any]
    extra: Mapping[str, Any]
    responses: Mapping[str, str | None]
    place: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A row with one response."""

    row: int
    raw: RawRow
    checked: CheckedRow
    system: str | None
    response: str | None


def read_groups(
    source: Any,
    spec: ItemSpec,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    max_bytes: int = MAX_ROW_BYTES,
    open_images: bool = False,
) -> Iterator[Group | BadRow]:
    """Read prompts with their responses; see `evenhand.pairing.read_pairs` for how they stand in rows.

    Prompts whose responses stand in one row come as they are read; those of several rows are held in memory until
    the input ends.

    Raises:
        UnknownNameError: ``mapping`` names a field that the rubric doesn't read.
        ItemError: no rows at all.
    """
    reader = _Reader(spec, mapping or {}, max_bytes, folder_of(source) if open_images else None)
    opened = open_source(source, format=format, max_bytes=max_bytes)
    several: dict[str, list[_Part]] = {}
    row = -1
    with id_book() as ids:
        for row, raw in enumerate(opened.rows):
            try:
                checked, found = reader.read(raw)
                if not isinstance(found, Mapping):
                    key = checked.id or content_id(checked.fields)
                    several.setdefault(key, []).append(_Part(row, raw, checked, *found))
                    continue
                yield _group(row, raw, checked, found, opened.name, ids)
            except ItemError as error:
                yield bad_row(row, raw, error.problems)
        for parts in several.values():
            first = parts[0]
            try:
                yield _group(first.row, first.raw, *_joined(parts), opened.name, ids)
            except ItemError as error:
                yield bad_row(first.row, first.raw, error.problems)
    if row < 0:
        raise ItemError([Problem(None, "", "no rows")], file=opened.name)


def _group(
    row: int, raw: RawRow, checked: CheckedRow, responses: Mapping[str, str | None], file: str | None, ids: IdBook
) -> Group:
    if len(responses) < 2:
        remedy = "rows of one prompt share an id, or all other fields" if responses else ""
        raise _bad(f"{len(responses) or 'no'} response to this prompt: nothing to compare", remedy)
    place = row + 1 if raw.line is None else raw.line
    own = checked.id
    if own is not None and (first := ids.claim(own, place)) is not None:
        raise _bad(f"the id {own!r} was given before, in {'row' if raw.line is None else 'line'} {first}")
    prompt_id = own if own is not None else ids.number(content_id(checked.fields), place)
    return Group(prompt_id, row, checked.fields, checked.extra, responses, where(file, row, raw.line))


def _joined(parts: list[_Part]) -> tuple[CheckedRow, dict[str, str | None]]:
    """The prompt of several rows, and its responses."""
    first = parts[0].checked
    for part in parts[1:]:
        if part.checked.fields != first.fields:
            differing = ", ".join(name for name, value in part.checked.fields.items() if value != first.fields[name])
            there = f"row {part.row + 1}" if part.raw.line is None else f"line {part.raw.line}"
            raise _bad(f"{there} has the same id {first.id!r}, but another {differing}")
    extra = {
        name: value
        for name, value in first.extra.items()
        if all(name in part.checked.extra and part.checked.extra[name] == value for part in parts)
    }
    return replace(first, extra=extra), _named((part.system, part.response) for part in parts)


def _named(responses: Iterable[tuple[str | None, str | None]]) -> dict[str, str | None]:
    """Responses by system; those without a name are numbered."""
    named: dict[str, str | None] = {}
    for number, (system, response) in enumerate(responses, 1):
        name = system or str(number)
        if name in named:
            raise _bad(f"two responses of system {name!r} to one prompt")
        named[name] = response
    return named


def _bad(message: str, remedy: str = "") -> ItemError:
    return ItemError([Problem(None, "", message, remedy)])


class _Reader:
    """Reads one row.

    Args:
        spec: What the rubric reads.
        mapping: Field -> column; also for responses (several columns joined by "+"), response, system and id.
        max_bytes: Most bytes one row may have.
        images: Where relative paths of images start; None leaves images unopened.

    Raises:
        UnknownNameError: ``mapping`` names a field that the rubric doesn't read.
    """

    def __init__(self, spec: ItemSpec, mapping: Mapping[str, str], max_bytes: int, images: Path | None) -> None:
        self._named = {name: mapping[name] for name in (_RESPONSES, "response", "system") if name in mapping}
        self._mapping = {name: column for name, column in mapping.items() if name not in self._named}
        fields = tuple(field for field in spec.fields if field.name not in spec.responses)
        aliases = {name: target for name, target in spec.aliases.items() if target not in spec.responses}
        self._spec = ItemSpec(fields, aliases, judged=spec.judged)
        self._taken = {*(field.name for field in fields), *aliases, *self._mapping.values()}
        stems = {name[:-1] for name in (*spec.responses, *spec.aliases) if name not in self._taken}
        self._lettered = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(stems)))})([A-Za-z]|[0-9]+)")
        self._max_bytes = max_bytes
        self._images = images
        require_mapping(self._mapping, self._spec)

    def read(self, raw: RawRow) -> tuple[CheckedRow, Mapping[str, str | None] | tuple[str | None, str | None]]:
        """What a row says of the prompt, and its responses by system, or its one system and response.

        Raises:
            ItemError: the row can't be used; has all its problems.
        """
        if raw.problem is not None:
            raise ItemError([raw.problem])
        mapping = {"id": _PROMPT_ID, **self._mapping} if _PROMPT_ID in raw.values else self._mapping
        checked = check_row(raw.values, self._spec, mapping=mapping, max_bytes=self._max_bytes)
        if self._images is not None:
            checked = with_images(checked, self._spec, self._images)
        if checked.problems:
            raise ItemError(checked.problems)
        try:
            used, found = self._responses(raw.values)
        except Mistake as mistake:
            raise _bad(str(mistake)) from None
        return replace(checked, extra={c: v for c, v in checked.extra.items() if c not in used}), found

    def _responses(
        self, values: Mapping[str, Any]
    ) -> tuple[set[str], Mapping[str, str | None] | tuple[str | None, str | None]]:
        """The columns that hold responses, and what they hold."""
        listed = self._named.get(_RESPONSES, _RESPONSES)
        if listed in values:
            return {listed}, _named(_listed(listed, values[listed]))
        columns = self._columns(values, listed)
        if len(columns) > 1:
            told = {name: f"system_{name}" for name in columns if f"system_{name}" in values}
            systems = [_text(told[name], values[told[name]]) if name in told else name for name in columns]
            responses = [_text(column, values[column]) for column in columns.values()]
            return {*columns.values(), *told.values()}, _named(zip(systems, responses, strict=True))
        response = self._first("response", _RESPONSE, values)
        system = self._first("system", _SYSTEM, values)
        if response is None:
            raise Mistake(_NONE)
        name = _text(system, values[system]) if system is not None else None
        return {response, system or response}, (name, _text(response, values[response]))

    def _columns(self, values: Mapping[str, Any], listed: str) -> dict[str, str]:
        """System, or the letter that stands for it -> column, where each response has a column of its own."""
        if _RESPONSES in self._named:
            there = [column for column in listed.split("+") if column in values]
            if not there:
                raise Mistake(f"no column {listed!r} for responses")
            return {column: column for column in there}
        found = ((self._lettered.fullmatch(column), column) for column in values)
        return {match[1]: column for match, column in found if match is not None}

    def _first(self, name: str, usual: tuple[str, ...], values: Mapping[str, Any]) -> str | None:
        if name in self._named:
            if self._named[name] not in values:
                raise Mistake(f"no column {self._named[name]!r} for {name}")
            return self._named[name]
        return next((column for column in usual if column in values and column not in self._taken), None)


def _listed(column: str, value: Any) -> Iterator[tuple[str | None, str | None]]:
    """Systems and responses of a list or object, which may be given as JSON text."""
    if isinstance(value, str):
        try:
            value = read_json(value)
        except ValueError as error:
            raise Mistake(f"{column} is {error}") from None
    if isinstance(value, Mapping):
        for name, response in value.items():
            yield name, _text(f"{column}.{name}", response)
        return
    if not isinstance(value, list | tuple):
        raise Mistake(f"{column} is no list of responses")
    for number, entry in enumerate(value):
        place = f"{column}[{number}]"
        if not isinstance(entry, Mapping):
            yield None, _text(place, entry)
            continue
        response = next((key for key in _RESPONSE if key in entry), None)
        if response is None:
            raise Mistake(f"{place} has no response")
        system = next((entry[key] for key in _SYSTEM if key in entry), None)
        yield _text(f"{place}.system", system), _text(f"{place}.{response}", entry[response])


def _text(place: str, value: Any) -> str | None:
    try:
        text: str | None = READERS["text"](value)
    except Mistake as mistake:
        raise Mistake(f"{place} {mistake}") from None
    return text
