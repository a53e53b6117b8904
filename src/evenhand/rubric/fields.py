"""The output fields of a rubric: what the judge must give, in order of generation."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal, cast

from evenhand.rubric.expand import Binding, bindings
from evenhand.rubric.model import Criterion, FieldKind, Form, ItemSpec, Output, OutputField
from evenhand.rubric.names import check_case, check_name
from evenhand.rubric.options import Context
from evenhand.rubric.patterns import explodes
from evenhand.rubric.problems import known_names, shown
from evenhand.rubric.scales import UNKNOWN, choice_scale, read_scale
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Scale

#: Kind of an output field -> type of an input that may give its value.
_INPUT_TYPES = {"bool": "bool", "text": "text", "scale": "text"}
_REASON_TEXT = {"zh": "简短说明理由", "en": "why, in a sentence or two"}


@dataclass(frozen=True, slots=True)
class _Reader:
    context: Context
    scales: Mapping[str, Scale]
    criteria: Mapping[str, Criterion]


def read_output(context: Context, scales: Mapping[str, Scale], criteria: tuple[Criterion, ...]) -> Output:
    """The output form and its fields, expanded; the default is a reason, then every criterion."""
    reader = _Reader(context, scales, {criterion.name: criterion for criterion in criteria})
    node = context.root.get("output")
    fields: dict[str, OutputField] = {}
    dropped: set[str] = set()
    folded: dict[str, str] = {}
    if node is None or node.get("fields") is None:
        fields = {field.name: field for field in _default_fields(context, criteria)}
        _check_reason(context, criteria)
    else:
        for place, field, kept in _read_fields(reader, node):
            if not kept:
                dropped.add(field.name)
            elif field.name in fields:
                context.problems.add(place, f"field {field.name!r} stands twice")
            else:
                check_case(context.problems, place.get("name") or place, "field", field.name, folded)
                fields[field.name] = field
    for criterion in criteria:
        if criterion.name not in fields:
            remedy = 'as in {each: criterion, fields: [{name: "{criterion}", scale: criterion}]}'
            context.problems.add(node or context.root, f"no field answers criterion {criterion.name!r}", remedy)
    short = _short(context, node, fields, dropped, reader)
    if short:
        fields = {name: replace(field, short=name in short) for name, field in fields.items()}
    output = Output(tuple(fields.values()), short=short)
    if node is None:
        return output
    forms = tuple(cast(Form, form.value) for form in node.elements("forms"))
    function = node.text("function", output.function)
    return replace(output, forms=forms or output.forms, function=function, answer=node.text("answer"))


def check_given(context: Context, item: ItemSpec, output: Output) -> None:
    """A field may also be an optional input, of a fitting type: then a value given with the item is not asked for."""
    node = context.root.get("output") or context.root
    for field in output.fields:
        given = item.field(field.name)
        if given is None or field.scale is UNKNOWN:
            continue
        kind = "number" if field.scale is not None and field.scale.numeric else _INPUT_TYPES.get(field.kind)
        if given.required:
            message = f"{field.name!r} is a required input and an output field, so it would never be asked for"
            context.problems.add(node, message, "rename one of them")
        elif given.type != kind:
            message = f"{field.name!r} is an output field and an input of type {given.type}, which does not fit"
            context.problems.add(node, message, f"make the input {kind}" if kind else "rename one of them")


def _default_fields(context: Context, criteria: tuple[Criterion, ...]) -> Iterator[OutputField]:
    text = _REASON_TEXT.get(context.language.split("-")[0], _REASON_TEXT["en"])
    yield OutputField("reason", "text", text, base="reason", required=False, short=False)
    for criterion in criteria:
        name = criterion.name
        yield OutputField(name, "scale", scale=criterion.scale, criterion=name, base=name)


def _check_reason(context: Context, criteria: tuple[Criterion, ...]) -> None:
    """The field that stands before the criteria by default can't be one of them."""
    for node, criterion in zip(context.root.elements("criteria"), criteria, strict=False):
        if criterion.name.casefold() == "reason":
            message = f"criterion {criterion.name!r} has the name of the text that every verdict begins with"
            context.problems.add(node.get("name") or node, message, "choose another name, or write output.fields")


def _read_fields(reader: _Reader, output: Node) -> Iterator[tuple[Node, OutputField, bool]]:
    """Every field with its place and whether the chosen options keep it."""
    problems = reader.context.problems
    for entry in output.elements("fields"):
        each = entry.text("each")
        if each == "slot" and reader.context.mode != "compare":
            problems.add(entry, "each: slot only makes sense in compare mode")
            continue
        kept = reader.context.kept(entry)
        nodes = entry.elements("fields") if entry.get("fields") is not None else [entry]
        mark = {"slot": "_x", "criterion": "{criterion}"}.get(each, "")
        nodes = [node for node in nodes if node.get("name") is not None and _marked(node, mark, reader)]
        for binding in bindings(each, reader.criteria):
            for node in nodes:
                field = _field(reader, node, binding)
                if field is not None:
                    yield node, field, kept and reader.context.kept(node)


def _marked(node: Node, mark: str, reader: _Reader) -> bool:
    """Whether the name of a field in a group has the part that expands."""
    name = node.text("name")
    if name.endswith(mark) if mark == "_x" else mark in name:
        return True
    wanted = "end in _x" if mark == "_x" else f"hold {mark}"
    reader.context.problems.add(node, f"the name {shown(name)} must {wanted}, for the field is repeated")
    return False


def _field(reader: _Reader, node: Node, binding: Binding) -> OutputField | None:
    problems = reader.context.problems
    raw = node.text("name")
    name = binding.name(raw)
    if not name.isidentifier():
        remedy = "letters, digits and _ only"
        if "{criterion}" in name:
            remedy = "put it under each: criterion"
        problems.add(node, f"{shown(name)} can't be the name of a field", remedy)
        return None
    check_name(problems, node.get("name") or node, "field", name)
    kind, scale = _kind(reader, node, name, binding)
    criterion = binding.criterion or (name if name in reader.criteria else None)
    answers = name in reader.criteria
    if answers:
        _check_answer(reader, node, name, scale)
    return OutputField(
        name=name,
        kind=kind,
        text=binding.text(node.text("text")),
        scale=scale,
        criterion=criterion,
        slot=binding.slot,
        base=raw.removesuffix("_x") if binding.slot else name,
        nullable=node.flag("nullable"),
        required=answers or node.flag("required", kind not in ("text", "list")),
        language=node.text("language") or None,
        items=_items(reader, node, kind),
        short=kind not in ("text", "list"),
        patterns=_patterns(reader, node, kind, binding),
        take=cast(Literal["only", "first", "last"], node.text("take", "only")),
    )


def _kind(reader: _Reader, node: Node, name: str, binding: Binding) -> tuple[FieldKind, Scale | None]:
    """What a field holds; a scale that can't be read becomes `UNKNOWN`."""
    problems = reader.context.problems
    kind, scale = node.get("type"), node.get("scale")
    if kind is not None and scale is not None:
        problems.add(node, "a field has either a type or a scale")
    elif kind is not None:
        if kind.kind == "list":
            return "scale", choice_scale(kind, problems) or UNKNOWN
        return cast(FieldKind, kind.value), None
    elif scale is None:
        problems.add(node, "a field needs a type or a scale", "type: text, bool, list or [choices], or scale: NAME")
    elif scale.kind == "map":
        return "scale", read_scale(scale, problems, compare=reader.context.mode == "compare") or UNKNOWN
    elif scale.value == "criterion":
        criterion = reader.criteria.get(binding.criterion or name)
        if criterion is not None:
            return "scale", criterion.scale
        problems.add(scale, "scale: criterion needs each: criterion, or a field named as a criterion")
    elif scale.value in reader.scales:
        return "scale", reader.scales[scale.value]
    elif scale.value not in (known := [key for key, _ in reader.context.root.items("scales")]):
        problems.unknown(scale, "scale", scale.value, [*known, "criterion"])
    return "scale", UNKNOWN


def _check_answer(reader: _Reader, node: Node, name: str, scale: Scale | None) -> None:
    """The field that answers a criterion is on the criterion's scale and never left out."""
    problems = reader.context.problems
    wanted = reader.criteria[name].scale
    if wanted is not UNKNOWN and scale is not UNKNOWN and scale != wanted:
        problems.add(node, f"field {name!r} answers a criterion but is not on its scale", "scale: criterion")
    for key, value in (("nullable", True), ("required", False)):
        given = node.get(key)
        if given is not None and given.value is value:
            problems.add(given, f"a field that answers a criterion can't be {key}: {str(value).lower()}")


def _items(reader: _Reader, node: Node, kind: FieldKind) -> tuple[OutputField, ...]:
    """The element fields of a list of objects."""
    of = node.get("of")
    if of is not None and kind != "list":
        reader.context.problems.add(of, "of goes with type: list")
    if of is None or of.kind != "map":
        return ()
    items = []
    for name, given in of.value.items():
        if given.kind == "text":
            items.append(OutputField(name, cast(FieldKind, given.value), base=name))
        elif (choice := choice_scale(given, reader.context.problems)) is not None:
            items.append(OutputField(name, "scale", scale=choice, base=name))
    return tuple(items)


def _patterns(reader: _Reader, node: Node, kind: FieldKind, binding: Binding) -> tuple[str, ...]:
    problems = reader.context.problems
    if node.get("take") is not None and node.get("pattern") is None:
        problems.add(node, "take goes with pattern")
    if kind == "list" and node.get("pattern") is not None:
        problems.add(node, "a list can't be read by a pattern")
    patterns = []
    for given in node.elements("pattern"):
        pattern = given.value
        if binding.criterion:
            pattern = pattern.replace("{criterion}", re.escape(binding.criterion))
        if binding.slot:
            pattern = pattern.replace("{X}", binding.slot.upper())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of syntax that a later Python may read otherwise
                groups = re.compile(pattern).groups
            explosive = explodes(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            problems.add(given, f"not a regular expression: {error}")
            continue
        if explosive:
            problems.add(
                given,
                "a reply could keep this pattern busy for ever: it repeats what may match in several ways",
                "make the inner repeat possessive, as in (?:a++,)*, or don't repeat it",
            )
        if groups != 1:
            problems.add(
                given, f"a pattern needs exactly one group, has {groups}", "the value; write other groups as (?:...)"
            )
        patterns.append(pattern)
    return tuple(patterns)


def _short(
    context: Context, output: Node | None, fields: Mapping[str, OutputField], dropped: set[str], reader: _Reader
) -> tuple[str, ...]:
    """Names of the short form's fields in their order, expanded; empty for the default."""
    nodes = output.elements("short") if output is not None else []
    names: dict[str, None] = {}
    for node in nodes:
        each = "criterion" if "{criterion}" in node.value else "slot" if node.value.endswith("_x") else ""
        for binding in bindings(each, reader.criteria):
            name = binding.name(node.value)
            if name in fields:
                names[name] = None
            elif name not in dropped and not context.problems.noted(node):
                context.problems.add(node, f"unknown field {shown(name)}", known_names(name, fields))
    if nodes:
        missing = [name for name in reader.criteria if name in fields and name not in names]
        if missing and output is not None and (short := output.get("short")) is not None:
            context.problems.add(short, f"the short form leaves out {', '.join(missing)}", "it needs every criterion")
    return tuple(names)
