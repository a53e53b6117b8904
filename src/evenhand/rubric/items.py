"""The inputs of a rubric: item fields, what is judged, and notes by type of question."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Literal, cast

from evenhand.rubric.model import History, ItemField, ItemSpec, ItemType, Note, Types
from evenhand.rubric.names import check_case
from evenhand.rubric.options import Context
from evenhand.rubric.problems import shown
from evenhand.rubric.scales import UNKNOWN, legal
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Scale

#: Names a response goes by, where the rubric doesn't say which input is judged.
_RESPONSE_NAMES = ("answer", "response", "output", "prediction")
_PAIR = ("response_a", "response_b")
#: Columns that images usually stand in, where the rubric has one field of them.
_IMAGE_COLUMNS = ("image", "images", "image_path")
_TURN_HOLES = ("{n}", "{user}", "{assistant}")


def read_item(context: Context) -> ItemSpec:
    """The inputs, with defaults for what the file leaves out."""
    problems = context.problems
    node = context.root.get("item")
    if node is None:
        return ItemSpec(())
    labels = {name: label.value for name, label in context.root.items("labels")}
    fields: dict[str, ItemField] = {}
    folded: dict[str, str] = {}
    for group in ("required", "optional"):
        for name, kind in node.items(group):
            if not name.isidentifier():
                remedy = "letters, digits and _ only; map other columns with aliases"
                problems.at(kind.key_line, kind.path, f"{shown(name)} can't be the name of an input", remedy)
            elif name.casefold() == "id":
                problems.at(kind.key_line, kind.path, "every item has an id; it can't be an input")
            elif name in fields:
                problems.at(kind.key_line, kind.path, f"input {name!r} is both required and optional")
            else:
                check_case(problems, kind, "input", name, folded)
                label = labels.get(name) or _humanised(name)
                fields[name] = ItemField(name, cast(ItemType, kind.value), group == "required", label)
    for name, label_node in context.root.items("labels"):
        if name not in fields:
            problems.unknown(label_node, "input", name, fields)
    found = tuple(fields.values())
    responses = _responses(node, found, context)
    aliases = _aliases(node, fields, context)
    return ItemSpec(found, aliases, responses, _judged(node, found, responses, context), _blank(node, found, context))


def read_history(context: Context) -> History:
    """The layout of earlier turns."""
    node = context.root.get("history")
    if node is None:
        return History()
    turn = node.get("turn")
    if turn is not None and not any(hole in turn.value for hole in _TURN_HOLES[1:]):
        context.problems.add(turn, "the layout of a turn shows neither {user} nor {assistant}")
    return History(node.text("heading"), node.text("turn"), node.text("empty"))


def read_images(context: Context, item: ItemSpec) -> bool:
    """Whether the judge is shown the images of an item."""
    node = context.root.get("images")
    if node is None or not node.flag("shown"):
        return False
    if not any(field.type == "images" for field in item.fields):
        context.problems.add(
            node, "images are shown, but no input is of type images", "as in optional: {image: images}"
        )
    return True


def read_types(context: Context, item: ItemSpec, scales: Collection[Scale]) -> Types | None:
    """Typed notes; every type name must lead to a group that has notes."""
    node = context.root.get("types")
    problems = context.problems
    field_node = node.get("field") if node is not None else None
    if node is None and (option := context.root.get("options", "fill")) is not None:
        problems.add(option, "option `fill` says how types are shown, but the rubric has no types")
    if node is None or field_node is None:
        return None
    texts = [field.name for field in item.fields if field.type == "text"]
    if field_node.value not in texts:
        problems.unknown(field_node, "text input", field_node.value, texts)
    notes = {
        group: tuple(_note(entry, context, scales) for entry in given.value) for group, given in node.items("notes")
    }
    for group, given in node.items("notes"):
        if not given.value:
            problems.at(given.key_line, given.path, f"group {group!r} has no notes")
    names = {name: target.value for name, target in node.items("names")} or {group: group for group in notes}
    for _, target in node.items("names"):
        if target.value not in notes:
            problems.unknown(target, "group of notes", target.value, notes)
    for group, given in node.items("notes"):
        if group not in names.values():
            problems.at(given.key_line, given.path, f"no type name leads to group {group!r}", "add one under names")
    categories = {}
    for category, members in node.items("categories"):
        for member in members.value:
            if member.value not in names:
                problems.unknown(member, "type name", member.value, names)
        categories[category] = tuple(member.value for member in members.value)
    fill: Literal["given", "group"] = "group" if _fill(node, context) == "group" else "given"
    return Types(field_node.value, fill, names, notes, categories)


def with_choices(item: ItemSpec, types: Types | None) -> ItemSpec:
    """The inputs, where the one that holds the type of question takes no other names than those of the types."""
    if types is None:
        return item
    names = tuple(types.names)
    fields = (replace(field, choices=names) if field.name == types.item_field else field for field in item.fields)
    return replace(item, fields=tuple(fields))


def _fill(node: Node, context: Context) -> object:
    """How a type is shown: as the option ``fill`` says, where there is one."""
    given = node.get("fill")
    if "fill" in context.chosen and given is not None:
        context.problems.add(given, "the option `fill` decides this already", "drop one of the two")
    return context.chosen.get("fill", given.value if given is not None else "given")


def _note(node: Node, context: Context, scales: Collection[Scale]) -> Note:
    if node.kind == "text":
        return Note(node.value)
    score = node.get("score")
    if score is not None and not any(scale is UNKNOWN or legal(scale, score.value) is not None for scale in scales):
        context.problems.add(score, f"score {shown(score.value)} is on no criterion's scale")
    return Note(node.text("text"), node.text("example"), score.value if score is not None else None)


def _aliases(node: Node, fields: Mapping[str, ItemField], context: Context) -> dict[str, str]:
    aliases = {}
    for name, target in node.items("aliases"):
        if target.value != "id" and target.value not in fields:
            context.problems.unknown(target, "input", target.value, [*fields, "id"])
        elif name in fields:
            context.problems.at(target.key_line, target.path, f"alias {name!r} is the name of an input itself")
        else:
            aliases[name] = target.value
    images = [name for name, field in fields.items() if field.type == "images"]
    if len(images) == 1:
        aliases = {**aliases, **{c: images[0] for c in _IMAGE_COLUMNS if c not in fields and c not in aliases}}
    return aliases


def _responses(node: Node, fields: tuple[ItemField, ...], context: Context) -> tuple[str, ...]:
    """The judged responses: as given, else by their usual names."""
    problems = context.problems
    texts = [field.name for field in fields if field.required and field.type == "text"]
    wanted = 2 if context.mode == "compare" else 1
    given = node.get("responses")
    if given is not None:
        names = [entry.value for entry in given.value]
        for entry in given.value:
            if entry.value not in texts:
                problems.unknown(entry, "required text input", entry.value, texts)
        if len(set(names)) != wanted or len(names) != wanted:
            needed = "two different responses" if wanted == 2 else "exactly one response"
            problems.add(given, f"mode {context.mode} needs {needed}, not {len(names)}")
        return tuple(names)
    if wanted == 2:
        if not set(_PAIR) <= set(texts):
            remedy = "require response_a and response_b (text), or name two required texts under responses"
            problems.add(node, "mode compare needs two responses", remedy)
        return _PAIR
    if not texts:
        problems.add(node, "there is no response to judge", "require a text input, as in answer: text")
        return ()
    usual = [name for name in texts if name in _RESPONSE_NAMES]
    return ((usual or texts)[-1],)


def _blank(node: Node, fields: tuple[ItemField, ...], context: Context) -> tuple[str, ...]:
    """The required texts that may be blank."""
    texts = [field.name for field in fields if field.required and field.type == "text"]
    entries = node.elements("blank")
    for entry in entries:
        if entry.value not in texts:
            context.problems.unknown(entry, "required text input", entry.value, texts)
    return tuple(entry.value for entry in entries)


def _judged(node: Node, fields: tuple[ItemField, ...], responses: tuple[str, ...], context: Context) -> tuple[str, ...]:
    """The texts that are fenced: as given, else all; a response always is one of them."""
    texts = [field.name for field in fields if field.type in ("text", "turns")]
    given = node.get("judged")
    if given is None:
        return tuple(texts)
    for entry in given.value:
        if entry.value not in texts:
            context.problems.unknown(entry, "text input", entry.value, texts)
    judged = tuple(entry.value for entry in given.value)
    loose = [name for name in responses if name in texts and name not in judged]
    if loose:
        context.problems.add(given, f"{', '.join(loose)} is judged too", "list every response")
    return judged


def _humanised(name: str) -> str:
    """A heading from a name: response_a -> Response A."""
    head, _, last = name.rpartition("_")
    words = f"{head} {last.upper()}" if head and len(last) == 1 else name
    text = words.replace("_", " ").strip()
    return text[:1].upper() + text[1:]
