"""The criteria of a rubric: scale, worked examples, weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evenhand.rubric.format import several_scales
from evenhand.rubric.model import Criterion, Example
from evenhand.rubric.names import check_case, check_name
from evenhand.rubric.options import Context
from evenhand.rubric.problems import shown
from evenhand.rubric.scales import UNKNOWN, describe, legal, range_scale, read_anchors, read_scale
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Scale

#: How far the sum of the weights may be from 1.
TOLERANCE = 1e-9
#: An example's question that is the one before.
SAME = "="


def read_scales(context: Context) -> dict[str, Scale]:
    """The named scales, with their anchors unless the detail is bare."""
    scales = {}
    for name, node in context.root.items("scales"):
        if name == "criterion":
            message = "a scale can't be called criterion: that word stands for the scale of each criterion"
            context.problems.at(node.key_line, node.path, message)
        scale = read_scale(node, context.problems, name=name, compare=context.mode == "compare")
        if scale is not None:
            scales[name] = _at_detail(scale, context)
    return scales


def read_criteria(context: Context, scales: Mapping[str, Scale]) -> tuple[Criterion, ...]:
    """The criteria, in order of priority."""
    criteria: dict[str, Criterion] = {}
    folded: dict[str, str] = {}
    for node in context.root.elements("criteria"):
        name = node.text("name")
        name_node = node.get("name")
        if name_node is None:
            continue
        if not name.isidentifier():
            context.problems.add(
                name_node, f"{shown(name)} can't be the name of a criterion", "letters, digits and _ only"
            )
            continue
        if name in criteria:
            context.problems.add(name_node, f"criterion {name!r} stands twice")
            continue
        check_name(context.problems, name_node, "criterion", name)
        check_case(context.problems, name_node, "criterion", name, folded)
        scale = _scale(node, context, scales)
        examples = _examples(node, scale, context)
        if context.chosen.get("detail", "examples") != "examples":
            examples = ()
        weight = node.get("weight")
        criteria[name] = Criterion(
            name,
            node.text("text"),
            _at_detail(scale, context) if scale is not None else UNKNOWN,
            examples,
            weight.value if weight is not None else None,
        )
    _check_scale_option(context)
    _check_weights(context, criteria)
    return tuple(criteria.values())


def option_scale(context: Context) -> Scale | None:
    """The whole-number scale chosen by the option ``scale``, where a criterion leaves its scale to it."""
    chosen = context.chosen.get("scale")
    uses = any(
        (scale := node.get("scale")) is not None and scale.kind == "map" and several_scales(scale)
        for node in context.root.elements("criteria")
    )
    return range_scale(chosen) if uses and isinstance(chosen, str) else None


def _at_detail(scale: Scale, context: Context) -> Scale:
    return replace(scale, anchors=()) if context.chosen.get("detail") == "bare" else scale


def _scale(node: Node, context: Context, scales: Mapping[str, Scale]) -> Scale | None:
    given = node.get("scale")
    if given is None:
        return None
    if given.kind == "text":
        if given.value not in scales:
            known = [name for name, _ in context.root.items("scales")]
            if given.value not in known:
                context.problems.unknown(given, "scale", given.value, known)
            return None
        return scales[given.value]
    if several_scales(given):
        return _chosen_scale(given, context)
    return read_scale(given, context.problems, compare=context.mode == "compare")


def _chosen_scale(node: Node, context: Context) -> Scale | None:
    """One of several ranges, by the option ``scale``; the others are checked too."""
    problems = context.problems
    option = next((o for o in context.options if o.name == "scale"), None)
    if option is None:
        remedy = "declare options: {scale: {default: 0-10, values: [0-10, ...]}}, or give one scale with range"
        problems.add(node, "several scales, but no option `scale` to choose one", remedy)
    found: dict[str, Scale] = {}
    for key, anchors in node.value.items():
        scale = range_scale(key)
        if scale is None:
            problems.at(anchors.key_line, anchors.path, f"{shown(key)} is no scale LOW-HIGH", "as in 0-10")
            continue
        if option is not None and key not in option.values:
            problems.at(anchors.key_line, anchors.path, f"option `scale` has no value {shown(key)}")
        found[key] = replace(scale, anchors=read_anchors(anchors, scale, problems))
    if option is None:
        return None
    for value in option.values:
        if value not in node.value:
            problems.add(node, f"no entry for {shown(value)}, a value of the option `scale`")
    return found.get(str(context.chosen["scale"]))


def _examples(node: Node, scale: Scale | None, context: Context) -> tuple[Example, ...]:
    """The worked examples on the chosen scale; those of other scales are checked when these are chosen."""
    given = node.get("examples")
    if given is None:
        return ()
    if given.kind == "list":
        return _example_list(given, scale, context)
    option = next((o for o in context.options if o.name == "scale"), None)
    if option is None:
        context.problems.add(given, "examples for several scales, but no option `scale` to choose one")
        return ()
    for key, entry in given.value.items():
        if key not in option.values:
            context.problems.at(entry.key_line, entry.path, f"option `scale` has no value {shown(key)}")
    chosen = given.get(str(context.chosen["scale"]))
    return _example_list(chosen, scale, context) if chosen is not None else ()


def _example_list(node: Node, scale: Scale | None, context: Context) -> tuple[Example, ...]:
    examples: list[Example] = []
    question = ""
    for entry in node.value:
        at, asked = entry.get("at"), entry.get("question")
        if at is None or asked is None:
            continue
        if asked.value == SAME and not question:
            context.problems.add(asked, "'=' repeats the question before, and there is none")
        question = question if asked.value == SAME else asked.value
        point = at.value
        if scale is not None:
            point = legal(scale, at.value)
            if point is None:
                context.problems.add(at, f"{shown(at.value)} is not on the scale", describe(scale))
                continue
        answers = tuple(answer.value for answer in entry.elements("answers"))
        examples.append(Example(point, question, answers, entry.text("note")))
    return tuple(examples)


def _check_scale_option(context: Context) -> None:
    node = context.root.get("options", "scale")
    if node is not None and option_scale(context) is None:
        remedy = "give a criterion's scale as {0-10: {0: anchor, ...}, 0-3: {...}}"
        context.problems.add(node, "no criterion leaves its scale to the option `scale`", remedy)


def _check_weights(context: Context, criteria: Mapping[str, Criterion]) -> None:
    """All criteria have a weight or none has; all are in [0, 1], on scales of numbers, and sum to 1."""
    weights = [(node, node.get("weight")) for node in context.root.elements("criteria")]
    given = [weight for _, weight in weights if weight is not None]
    if not given:
        return
    problems = context.problems
    for node, weight in weights:
        if weight is None:
            problems.add(node, f"criterion {node.text('name')!r} has no weight, but others have", "0 is a weight too")
        elif not 0 <= weight.value <= 1:
            problems.add(weight, f"weight {weight.value} is not between 0 and 1")
        criterion = criteria.get(node.text("name"))
        if weight is not None and criterion is not None and _labels(criterion.scale):
            remedy = "labels have no mean: give it a scale of numbers, or drop all weights"
            problems.add(weight, f"criterion {criterion.name!r} has a weight, but its values are labels", remedy)
    total = sum(weight.value for weight in given)
    if len(given) == len(weights) and abs(total - 1) > TOLERANCE:
        problems.add(given[0], f"the weights sum to {total:.10g}, not to 1")


def _labels(scale: Scale) -> bool:
    """Whether a scale's values name something, so that no mean of them exists."""
    return scale is not UNKNOWN and (not scale.numeric or scale.level == "nominal")
