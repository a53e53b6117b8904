"""What may be meant where a table doesn't have the columns that a rubric reads."""

from __future__ import annotations

from collections.abc import Collection

from evenhand.item import missing_columns
from evenhand.rubric.load import builtin_names, load_rubric
from evenhand.rubric.model import ItemSpec

_RESPONSES = "responses"


def column_hint(columns: Collection[str], spec: ItemSpec) -> str | None:
    """What to do about missing columns; None where the columns are all there.

    Args:
        columns: The columns that there are.
        spec: What the rubric reads.
    """
    required = [field.name for field in spec.fields if field.required]
    missing = {name for name in required if missing_columns(columns, [name], spec, {})}
    if not missing:
        return None
    (only, *others) = columns or [""]
    if not others:
        for mark, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
            if mark in only:
                remedy = "--format tsv" if mark == "\t" else "save it with commas, or as .tsv with tabs"
                return f"the one column's name holds {name}: if they separate cells, {remedy}"
    if _RESPONSES in columns and missing <= set(spec.responses) and len(spec.responses) > 1:
        return "--pairs all makes pairs of the texts in the column responses"
    fitting = [name for name in builtin_names() if not _lacking(columns, name)]
    found = f"; these columns fit --rubric {' or '.join(fitting)}" if fitting else ""
    unread = [column for column in columns if column != "id" and column not in spec.aliases and not spec.field(column)]
    alone = len(spec.responses) == 1 and missing == set(spec.responses) and len(unread) > 1
    wide = ", or --map responses=COLUMN+COLUMN a response from each" if alone else ""
    return f"--map FIELD=COLUMN reads a field from another column{wide}{found}"


def _lacking(columns: Collection[str], rubric: str) -> bool:
    spec = load_rubric(rubric).item
    return bool(missing_columns(columns, [field.name for field in spec.fields if field.required], spec, {}))
