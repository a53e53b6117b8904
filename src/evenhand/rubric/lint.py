"""All mistakes of a rubric file, in every variant."""

from __future__ import annotations

from evenhand.errors import Problem
from evenhand.rubric.load import build, read_structure
from evenhand.rubric.logic import CheckExpression
from evenhand.rubric.options import Context, choose, read_options, same, written
from evenhand.rubric.problems import Problems


def lint(text: str, file: str | None = None, *, check_expression: CheckExpression | None = None) -> list[Problem]:  # noqa: ARG001
    """All mistakes of a rubric, with every option at its default and with each option changed alone.

    Args:
        text: The YAML text.
        file: Name of the file; for symmetry with `parse_rubric`, problems don't carry it.
        check_expression: Checks the expressions of rules; None leaves them unchecked.

    Returns:
        The mistakes, by line; empty when there are none.
    """
    problems = Problems()
    root = read_structure(text, problems)
    if root is None:
        return problems.sorted()
    options = read_options(root, problems)
    build(Context(root, problems, options, choose(options, {})), text, check_expression)
    for option in options:
        for value in option.values:
            if not same(value, option.default):
                variant = Problems(f"with {option.name}={written(value)}")
                chosen = choose(options, {option.name: value})
                build(Context(root, variant, options, chosen), text, check_expression)
                problems.merge(variant)
    return problems.sorted()
