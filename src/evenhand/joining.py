"""Responses that stand elsewhere than in a row each: in a file of their own, or in a column for each system."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from evenhand.errors import InputError, ItemError, Problem, instead
from evenhand.item import id_column
from evenhand.item_values import Mistake, read_id, refuse_bytes
from evenhand.rows import RawRow
from evenhand.rubric.model import ItemSpec

#: Where ``--map responses=A+B`` names the columns of responses, and the column that each row then has beside.
RESPONSES = "responses"
SYSTEM = "system"
#: Problems of the response file that are told one by one.
_TOLD = 20
_SHOWN = 100  # columns that are listed
_QUESTION = "question_id"  # the id that rows made of one row share


def joined(
    rows: Iterator[RawRow],
    responses: Iterator[RawRow],
    spec: ItemSpec,
    mapping: Mapping[str, str],
    *,
    name: str,
) -> Iterator[RawRow]:
    """Rows with the columns of the response of the same id; responses are kept in a temporary database meanwhile.

    Args:
        rows: Rows without their responses.
        responses: Rows with an id and the response; no two with the same id.
        spec: What the rubric reads; says which column is the id, in both.
        mapping: Field name or "id" -> column.
        name: The response file, for messages.

    Yields:
        Every row, with a problem where it has no id, no response, or a column with another value than its
        response has; then one row with a problem for each response that no row asks for.

    Raises:
        ItemError: responses that can't be read, have no id, or have one that was given before; with their lines.
        InputError: there is no room for the temporary database.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as kept:
        kept.executescript("PRAGMA journal_mode = OFF; PRAGMA cache_size = -8000;")
        kept.execute("CREATE TABLE response (id TEXT PRIMARY KEY, line INTEGER, row TEXT, used INTEGER)")
        kept.execute("BEGIN")
        try:
            _keep(kept, responses, spec, mapping, name)
            for row in rows:
                yield row if row.problem is not None else _with_response(kept, row, spec, mapping, name)
            for own, line in kept.execute("SELECT id, line FROM response WHERE used = 0 ORDER BY rowid"):
                problem = Problem(
                    None, "", f"the response {own!r} in line {line} of {name} is to no row", "add its row"
                )
                yield RawRow({"id": own}, None, problem)
        except sqlite3.Error as error:
            raise InputError(f"the responses of {name} can't be kept meanwhile: {error}") from error


def spread(rows: Iterator[RawRow], spec: ItemSpec, mapping: Mapping[str, str], *, name: str | None) -> Iterator[RawRow]:
    """A row for each response of rows that hold several, each system's in a column of its own.

    The new rows have all other columns, the response as the rubric's field, and the column's name as ``system``. An
    own id becomes ID~SYSTEM. A column that a row lacks gives none, and null a response that is blank.

    Args:
        rows: Rows with the columns, numbered.
        spec: What the rubric reads; it has one response.
        mapping: Field name or "id" -> column; ``responses`` -> the columns, joined by "+".
        name: The file, for messages.

    Yields:
        The new rows; a row with a problem where a row has no such column, or another one of a name that is made.

    Raises:
        InputError: a column named twice or not at all, or the response mapped to a column besides.
        ItemError: a column that no row has.
    """
    columns, field = mapping[RESPONSES].split("+"), spec.responses[0]
    if len(set(columns)) < len(columns) or "" in columns:
        hint = "as in --map responses=COLUMN+COLUMN"
        raise InputError(f"responses names its columns once each, not {mapping[RESPONSES]!r:.80}", hint=hint)
    if field in mapping:
        raise InputError(f"{field} is read from the columns of responses; don't map it to another one")
    unseen, read, seen = set(columns), False, dict[str, None]()
    for row in rows:
        if row.problem is not None:
            yield row
            continue
        there = [column for column in columns if column in row.values]
        seen |= dict.fromkeys(row.values) if unseen and len(seen) < _SHOWN else {}
        unseen, read = unseen - set(there), True
        rest = {column: value for column, value in row.values.items() if column not in columns}
        clash = next((made for made in (field, SYSTEM) if made in rest), None)
        if clash is not None:
            message = f"column {clash!r} stands beside the columns of responses, which make one of that name"
            yield replace(row, problem=Problem(None, "", message, "rename it"))
        elif not there:
            yield replace(row, problem=Problem(None, "", f"no column {' or '.join(map(repr, columns))} of responses"))
        for system in there if clash is None else ():
            made = {**_with_system(rest, system, spec, mapping), field: row.values[system], SYSTEM: system}
            yield replace(row, values=made)
    if read and unseen:
        lacking = [
            Problem(None, "", f"no row has the column {column!r} of responses", instead(column, seen))
            for column in sorted(unseen)
        ]
        raise ItemError(lacking, file=name)


def _with_system(row: dict[str, Any], system: str, spec: ItemSpec, mapping: Mapping[str, str]) -> dict[str, Any]:
    """A row whose own id, if it has a good one, tells the system too, and stands beside as the question's."""
    column, own, _ = _own_id(row, spec, mapping)
    return row if column is None or own is None else {_QUESTION: own, **row, column: f"{own}~{system}"}


def _keep(
    kept: sqlite3.Connection, responses: Iterator[RawRow], spec: ItemSpec, mapping: Mapping[str, str], name: str
) -> None:
    problems: list[Problem] = []
    number = 0
    for number, row in enumerate(responses, 1):
        line = row.line or number
        problem = row.problem or _kept(kept, row.values, line, spec, mapping)
        if problem is not None:
            problems.append(replace(problem, line=line))
        if len(problems) >= _TOLD:
            break
    if not number:
        problems.append(Problem(None, "", "no rows"))
    if problems:
        raise ItemError(problems, file=name)


def _kept(
    kept: sqlite3.Connection, row: Mapping[str, Any], line: int, spec: ItemSpec, mapping: Mapping[str, str]
) -> Problem | None:
    _, own, problem = _own_id(row, spec, mapping)
    if problem is not None:
        return problem
    for column, value in row.items():
        try:
            refuse_bytes(value)
        except Mistake as mistake:
            return Problem(None, "", f"{column} {mistake}")
    if kept.execute("INSERT OR IGNORE INTO response VALUES (?, ?, ?, 0)", (own, line, json.dumps(dict(row)))).rowcount:
        return None
    first = kept.execute("SELECT line FROM response WHERE id = ?", (own,)).fetchone()[0]
    return Problem(None, "", f"a response {own!r} was given before, in line {first}", "keep one of the two")


def _own_id(
    row: Mapping[str, Any], spec: ItemSpec, mapping: Mapping[str, str]
) -> tuple[str | None, str | None, Problem | None]:
    """The column of a row's id and the id, or what is wrong with it."""
    column = id_column(row, spec, mapping)
    if column not in row:  # mapped for the other file
        column = id_column(row, spec, {})
    try:
        own = None if column is None else read_id(row.get(column))
    except Mistake as mistake:
        return column, None, Problem(None, "", f"id {mistake}")
    if own is None:
        return column, None, Problem(None, "", "no id to join by", "give it as `id`, or say --map id=COLUMN")
    return column, own, None


def _with_response(
    kept: sqlite3.Connection, row: RawRow, spec: ItemSpec, mapping: Mapping[str, str], name: str
) -> RawRow:
    _, own, problem = _own_id(row.values, spec, mapping)
    if problem is not None:
        return replace(row, problem=problem)
    found = kept.execute("SELECT row FROM response WHERE id = ?", (own,)).fetchone()
    if found is None:
        return replace(row, problem=Problem(None, "", f"no response {own!r} in {name}"))
    kept.execute("UPDATE response SET used = 1 WHERE id = ?", (own,))
    response = json.loads(found[0])
    if (column := _own_id(response, spec, mapping)[0]) in row.values:
        response.pop(column)  # the same id, if perhaps as a number here and as a text there
    clash = next((column for column, value in response.items() if row.values.get(column, value) != value), None)
    if clash is not None:
        message = f"column {clash!r} differs between the row and its response"
        return replace(row, problem=Problem(None, "", message, "rename one of the two"))
    return replace(row, values={**row.values, **response})
