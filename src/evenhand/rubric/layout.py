"""The prompt of a rubric: named texts and blocks in order; and how verdicts are summed up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from evenhand.rubric.format import is_template
from evenhand.rubric.model import Aggregate, Criterion, Instruction, ItemSpec, Message, Output
from evenhand.rubric.options import Context
from evenhand.rubric.problems import shown
from evenhand.rubric.templates import read_template
from evenhand.rubric.yaml_tree import Node

#: Blocks made from the rubric's own data.
BLOCKS = ("intro", "criteria", "types", "rules", "general", "output", "item")
_PREFERENCE_NAMES = ("overall_side", "preference", "winner")
_INTRO = {
    ("en", "score"): (
        "You assess one response with care. Rate it on each criterion below, by what it says and nothing else: "
        "length and confidence earn nothing."
    ),
    ("en", "compare"): (
        "You compare two responses, A and B, with care. Decide on each criterion below by what they say: "
        "order, length and confidence earn nothing."
    ),
    ("zh", "score"): "请仔细评估一个回答，按下列每条标准打分。只看内容，篇幅和语气不加分。",
    ("zh", "compare"): "请仔细比较 A、B 两个回答，按下列每条标准作出判断。只看内容，先后、篇幅和语气都不算数。",
}


def read_texts(context: Context, item: ItemSpec) -> dict[str, str]:
    """Named texts; there is always an intro."""
    language = context.language.split("-")[0]
    texts = {"intro": _INTRO.get((language, context.mode), _INTRO["en", context.mode])}
    for name, node in context.root.items("text"):
        taken = (name in BLOCKS and name != "intro") or item.field(name) is not None or name.startswith("scale:")
        if taken:
            context.problems.at(node.key_line, node.path, f"{shown(name)} already is a block", "choose another name")
        texts[name] = node.value
    return texts


def read_general(context: Context, output: Output) -> tuple[Instruction, ...]:
    """The general instructions."""
    found = []
    for node in context.root.elements("general"):
        asked = node.get("asked")
        if asked is not None and output.field(asked.value) is None:
            context.problems.unknown(asked, "output field", asked.value, [field.name for field in output.fields])
        text = node.text("text") if node.kind == "map" else str(node.value)
        found.append(Instruction(text, asked.value if asked is not None else None))
    return tuple(found)


def read_prompt(
    context: Context, item: ItemSpec, texts: Mapping[str, str], scales: Collection[str]
) -> tuple[Message, ...]:
    """The messages and their blocks."""
    general, types = (bool(context.root.get(key)) for key in ("general", "types"))
    nodes = context.root.elements("prompt")
    if not nodes:
        # notes on a type differ between items: with the item they leave the system message the same for all
        system = ("intro", "criteria", *(["general"] if general else []), "output")
        return Message("system", system), Message("user", (*(["types"] if types else []), "item"))
    absent = {name for name, there in (("general", general), ("types", types)) if not there}
    fields = [field.name for field in item.fields]
    known = [*BLOCKS, *(f"scale:{name}" for name in scales), *fields, *texts]
    messages = []
    for node in nodes:
        role: Literal["system", "user"] = "user" if node.text("role") == "user" else "system"
        if is_template(node):
            messages.append(Message(role, template=read_template(context, node, item)))
            continue
        for block in node.elements("blocks"):
            if block.value not in known:
                context.problems.unknown(block, "block", block.value, dict.fromkeys(known))
            elif block.value in absent:
                context.problems.add(block, f"block {block.value!r}, but the rubric has no {block.value}")
        blocks = tuple(block.value for block in node.elements("blocks") if block.value in known)
        messages.append(Message(role, blocks))
    _check_shown(context, item, messages)
    return tuple(messages)


def _check_shown(context: Context, item: ItemSpec, messages: list[Message]) -> None:
    """The judge must see what it judges, in a message of the user."""
    node = context.root.get("prompt") or context.root
    asked = [message for message in messages if message.role == "user"]
    blocks = {block for message in asked for block in message.blocks}
    blocks |= {name for message in asked if message.template is not None for name in message.template.names}
    missing = [] if "item" in blocks else [name for name in item.responses if name not in blocks]
    if missing:
        context.problems.add(node, f"no user message shows {', '.join(missing)}", "add the block item")


def read_aggregate(context: Context, item: ItemSpec, criteria: tuple[Criterion, ...]) -> Aggregate:
    """How verdicts are summed up; a composite exists iff the criteria have weights."""
    weighted = bool(criteria) and all(criterion.weight is not None for criterion in criteria)
    node = context.root.get("aggregate")
    if node is None:
        return Aggregate(composite=weighted)
    inputs = [field.name for field in item.fields]
    for entry in node.elements("per"):
        if entry.value not in inputs:
            context.problems.unknown(entry, "input", entry.value, inputs)
    means = tuple(entry.value for entry in node.elements("means")) or ("item",)
    return Aggregate(
        weighted, tuple(entry.value for entry in node.elements("per")), means, _robustness(context, node, inputs)
    )


def _robustness(context: Context, node: Node, inputs: Sequence[str]) -> dict[str, Any]:
    least = node.get("robustness", "min")
    if least is not None and least.value < 2:
        context.problems.add(least, "a group needs at least 2 members")
    rule = node.get("robustness", "group-by")
    if rule is not None and rule.value.partition(" before the last ")[0] not in (known := ["id", *inputs]):
        context.problems.unknown(rule, "input", rule.value.partition(" before the last ")[0], known)
    return {key: entry.value for key, entry in node.items("robustness")}


def read_preference(context: Context, output: Output) -> str | None:
    """compare mode: the field that holds the preferred side."""
    sides = [field.name for field in output.fields if field.scale is not None and field.scale.slots]
    given = context.root.get("report", "preference")
    if given is not None:
        if given.value not in sides:
            context.problems.unknown(given, "field on a scale of slots", given.value, sides)
        return str(given.value)
    if len(sides) == 1:
        return sides[0]
    return next((name for name in _PREFERENCE_NAMES if name in sides), None)
