"""Rows whose responses stand in a file of their own, joined by id."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

from evenhand.errors import InputError, ItemError, Problem
from evenhand.item import id_column
from evenhand.item_values import Mistake, read_id
from evenhand.rows import RawRow
from evenhand.rubric.model import ItemSpec

#: Problems of the response file that are told one by one.
_TOLD = 20


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
