"""Presets, derived values and rules of a rubric: expansion, and the names and values they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import cast

from evenhand.rubric.criteria import option_scale
from evenhand.rubric.expand import Binding, bindings
from evenhand.rubric.model import Criterion, ItemSpec, Output, OutputField, Preset, Rule, Severity
from evenhand.rubric.options import Context
from evenhand.rubric.problems import known_names, shown
from evenhand.rubric.scales import UNKNOWN, describe, legal
from evenhand.rubric.yaml_tree import Node
from evenhand.scale import Value

#: Checks an expression: (text, names it may use) -> mistakes. Injected, for the rule language sits above.
CheckExpression = Callable[[str, Collection[str]], list[str]]

#: The value of a preset that stands for the bottom of its field's scale.
LOW = "low"
#: Names derived from an item's type.
TYPE_NAMES = ("group", "category")
_PLACEHOLDER = re.compile(r"\{([^\W\d]\w*)\}")


@dataclass(frozen=True, slots=True)
class Logic:
    """What is decided in code.

    Attributes:
        presets: Values set because the item decides them.
        let: Derived values: name -> expression, in order.
        rules: Conditions between fields.
    """

    presets: tuple[Preset, ...]
    let: Mapping[str, str]
    rules: tuple[Rule, ...]


class LogicReader:
    """Reads presets, derived values and rules.

    Args:
        context: The file and its options.
        item: The inputs.
        output: The output fields.
        criteria: The criteria.
        typed: Whether the rubric has typed notes.
        check: Checks an expression; None leaves expressions unchecked.
    """

    def __init__(
        self,
        context: Context,
        item: ItemSpec,
        output: Output,
        criteria: tuple[Criterion, ...],
        *,
        typed: bool,
        check: CheckExpression | None,
    ) -> None:
        self._context = context
        self._problems = context.problems
        self._output = output
        self._criteria = [criterion.name for criterion in criteria]
        self._check = check
        names = [*(field.name for field in item.fields), *(field.name for field in output.fields)]
        self._names = dict.fromkeys([*names, *(TYPE_NAMES if typed else ())])  # in order, for messages

    def read(self) -> Logic:
        """All three, in the order in which they build on each other."""
        presets = self._presets()
        return Logic(presets, self._let(), self._rules())

    def _bindings(self, node: Node) -> list[Binding]:
        each = node.text("each")
        if each == "slot" and self._context.mode != "compare":
            self._problems.add(node, "each: slot only makes sense in compare mode")
            return []
        return bindings(each, self._criteria)

    def _expression(self, node: Node | None, binding: Binding, names: Collection[str]) -> str:
        if node is None:
            return ""
        text = binding.expression(node.value)
        if self._check is not None and not self._problems.noted(node):
            for mistake in self._check(text, names):
                self._problems.add(node, mistake)
        return text

    def _presets(self) -> tuple[Preset, ...]:
        presets = []
        for node in self._context.root.elements("preset"):
            kept = self._context.kept(node)
            for binding in self._bindings(node) if kept else ():
                when = self._expression(node.get("when"), binding, self._names)
                values: dict[str, Value | None] = {}
                for name, value in node.items("set"):
                    values.update(self._set(name, value, binding))
                presets.append((node, Preset(when, values, node.text("call") != "none")))
        covered = {name for _, preset in presets for name in preset.set}
        for node, preset in presets:
            missing = [name for name in self._criteria if name not in covered]
            if not preset.call and missing:
                self._problems.add(node, f"call: none, but nothing sets {', '.join(missing)}", "set every criterion")
        return tuple(preset for _, preset in presets)

    def _set(self, key: str, node: Node, binding: Binding) -> dict[str, Value | None]:
        """The values one entry of ``set`` gives, with ``{criterion}`` in its key expanded."""
        inner = [binding]
        if "{criterion}" in key and binding.criterion is None:
            inner = [Binding(binding.slot, name) for name in self._criteria]
        values = {}
        for one in inner:
            field = self._output.field(one.name(key))
            if field is None:
                if not self._problems.noted(node):
                    remedy = known_names(one.name(key), [f.name for f in self._output.fields])
                    self._problems.at(node.key_line, node.path, f"unknown field {shown(one.name(key))}", remedy)
                continue
            value = one.text(node.value) if isinstance(node.value, str) else node.value
            values[field.name] = self._value(field, value, node)
        return values

    def _value(self, field: OutputField, value: Value | None, node: Node) -> Value | None:
        """A preset's value, held against its field."""
        if value is None:
            if not field.nullable:
                self._problems.add(node, f"field {field.name!r} can't be null")
            return None
        if field.kind == "scale" and field.scale is not None and field.scale is not UNKNOWN:
            found = legal(field.scale, value)
            if found is None and value == LOW:
                return field.scale.bottom
            if found is None:
                message = f"{shown(value)} is not on the scale of {field.name!r}"
                self._problems.add(node, message, describe(field.scale))
            return found
        wanted = {"bool": bool, "text": str}.get(field.kind)
        if field.kind == "list":
            self._problems.add(node, f"field {field.name!r} is a list, which a preset can't set")
        elif wanted is not None and not isinstance(value, wanted):
            remedy = "true or false" if field.kind == "bool" else "put it in quotes"
            self._problems.add(node, f"{shown(value)} does not fit field {field.name!r}", remedy)
        return value

    def _let(self) -> dict[str, str]:
        let: dict[str, str] = {}
        scale = option_scale(self._context)
        if scale is not None:
            let |= {"scale_min": str(scale.bottom), "scale_max": str(scale.top)}
            self._names |= dict.fromkeys(let)
        for name, node in self._context.root.items("let"):
            if not self._context.kept(node):
                continue
            if not name.isidentifier():
                self._problems.at(
                    node.key_line, node.path, f"{shown(name)} can't be a name", "letters, digits and _ only"
                )
            elif name in self._names:
                self._problems.at(node.key_line, node.path, f"name {name!r} is taken", "choose another one")
            else:
                text = node if node.kind == "text" else node.get("value")
                let[name] = self._expression(text, Binding(), self._names)
                self._names[name] = None
        return let

    def _rules(self) -> tuple[Rule, ...]:
        rules: dict[str, Rule] = {}
        for node in self._context.root.elements("rules"):
            name = node.text("id")
            if not self._context.kept(node):
                continue
            for binding in self._bindings(node):
                severity = cast(Severity, node.text("severity", "violation"))
                condition = self._expression(node.get("if"), binding, self._names)
                rule = Rule(name + binding.suffix, severity, condition, self._say(node.get("say"), binding))
                if rule.id in rules:
                    self._problems.add(node.get("id") or node, f"rule {rule.id!r} stands twice")
                rules[rule.id] = rule
        return tuple(rules.values())

    def _say(self, node: Node | None, binding: Binding) -> str:
        if node is None:
            return ""
        text = binding.text(node.value)
        unknown = [name for name in _PLACEHOLDER.findall(text) if name not in self._names]
        if not self._problems.noted(node):
            for name in unknown:
                self._problems.add(node, f"unknown placeholder {{{name}}}", known_names(name, self._names))
        return text
