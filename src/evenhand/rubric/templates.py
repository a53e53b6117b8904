"""Messages kept as they were published: a text with holes, in one of three styles."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Literal

from evenhand.rubric.model import ItemSpec, Template
from evenhand.rubric.options import Context
from evenhand.rubric.problems import known_names, shown
from evenhand.rubric.yaml_tree import Node

Style = Literal["plain", "format", "double"]
#: What a hole may show beside the fields of an item: the notes for its type of question.
NOTES = "types"
#: Most different holes one template may have: a prompt that shows more inputs is a mistake, and slow to check.
MAX_HOLES = 100
_HOLES = {"plain": re.compile(r"\{([^\W\d]\w*)\}"), "double": re.compile(r"\{\{[ \t]*([^\W\d]\w*)[ \t]*\}\}")}


def split(text: str, style: Style) -> list[tuple[str, str]]:
    """A text cut at its holes.

    Args:
        text: The text.
        style: plain: ``{name}`` is a hole and all else stands as it is; double: ``{{name}}`` is; format: as in
            Python's ``str.format``, where doubled braces stand for single ones.

    Returns:
        (text, hole) in order; the hole of the last pair may be "".

    Raises:
        ValueError: not such a text; says why.
    """
    if style == "format":
        return _split_format(text)
    pieces = _HOLES[style].split(text)  # text, hole, text, hole, ..., text
    return list(zip(pieces[::2], [*pieces[1::2], ""], strict=True))


def _split_format(text: str) -> list[tuple[str, str]]:
    pieces = []
    for literal, name, spec, conversion in string.Formatter().parse(text):
        if name is not None and (not name.isidentifier() or spec or conversion):
            written = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
            raise ValueError(f"the hole {{{written[:40]}}} is no plain name")
        pieces.append((literal, name or ""))
    return pieces


def read_template(context: Context, node: Node, item: ItemSpec) -> Template:
    """A message's template; every hole must lead to an input, or to the notes of the rubric's types."""
    problems = context.problems
    place = node.get("template") or node
    style = _style(node)
    try:
        pieces = split(node.text("template"), style)
    except ValueError as error:
        remedy = "double the braces that are no holes, or choose style: plain" if style == "format" else ""
        problems.add(place, f"not a template of style {style}: {error}", remedy)
        pieces = []
    leads = dict(node.items("holes"))
    fields = [field.name for field in item.fields if field.type != "images"]
    known = [*fields, *([NOTES] if context.root.get(NOTES) is not None else [])]
    holes = dict.fromkeys(hole for _, hole in pieces if hole)
    if len(holes) > MAX_HOLES:
        problems.add(
            place, f"the template has {len(holes)} different holes, more than {MAX_HOLES}", "show fewer inputs"
        )
        return Template((), node.flag("strip"))
    for hole, lead in leads.items():
        if hole not in holes:
            problems.at(lead.key_line, lead.path, f"the template has no hole {shown(hole)}", known_names(hole, holes))
        elif lead.value not in known:
            problems.unknown(lead, "input", lead.value, known)
    for hole in holes:
        if hole not in leads and hole not in known:
            remedy = f"{known_names(hole, known)}; or say under holes which one it is"
            problems.add(place, f"no input for the hole {{{hole}}}", remedy)
    names = {hole: str(leads[hole].value) if hole in leads else hole for hole in holes}
    _check_history(context, place, item, names.values())
    return Template(tuple((text, names.get(hole, "")) for text, hole in pieces), node.flag("strip"))


def _style(node: Node) -> Style:
    style = node.text("style")
    return "format" if style == "format" else "double" if style == "double" else "plain"


def _check_history(context: Context, place: Node, item: ItemSpec, names: Iterable[str]) -> None:
    """Earlier turns need a layout, for nothing is added to what is written."""
    turns = {field.name for field in item.fields if field.type == "turns"}
    if turns.intersection(names) and context.root.get("history", "turn") is None:
        context.problems.add(place, "the template shows earlier turns, whose layout is not given", "add history.turn")
