"""The language of rule conditions: a small subset of Python expressions, compiled once to closures.

Allowed: names, numbers, texts, true and false, comparisons (also chained), ``and`` / ``or`` / ``not``, ``+ - * / // %``
and unary minus on numbers, ``in`` / ``not in``, ``a if c else b`` and the functions of `evenhand.functions`. A list of
literals may stand on the right of ``in``. Nothing else parses: no attributes, subscripts, powers or loops, so an
expression from a stranger's rubric can't reach anything but the values it names.

Missing values. A name that is absent or None makes the whole expression missing (`Missing`), with these exceptions:

- ``given(x)``, ``blank(x)`` and ``turns(x)`` take a bare name and accept a missing one: false, true and 0;
- evaluation is lazy: a name in a branch or operand that is not reached does not matter.

The literal ``None`` stands for a missing value and may only be a branch of ``a if c else b``.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from evenhand.errors import Problem, RubricError, close_names
from evenhand.functions import FUNCTIONS, kind

#: Longest expression, in characters.
MAX_LENGTH = 500
#: Deepest nesting of operators and calls.
MAX_DEPTH = 40
#: Largest whole number that may be written out.
MAX_INT = 10**15

Run = Callable[[Mapping[str, Any]], Any]

#: What evaluation may raise besides `Missing`: values of the wrong type, division by zero, numbers out of range.
UNDECIDED = (TypeError, ArithmeticError, RecursionError)


class Missing(Exception):
    """A value the expression needs is not there; the one argument is its name."""


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression.

    Attributes:
        text: The source.
        names: The names it uses, in order of first use.
        evaluate: Environment (name -> value) -> value. Raises `Missing` when a needed name is absent or None, and one
            of `UNDECIDED` when the values don't fit the operators.
    """

    text: str
    names: tuple[str, ...]
    evaluate: Run


_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_ARITHMETIC: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_GIVEN_HINT = "None can't be compared; to ask whether a value is there write given(x)"
_REFUSED: Mapping[type[ast.AST], str] = {
    ast.Attribute: "attributes (a.b) are not allowed",
    ast.Subscript: "subscripts (a[b]) are not allowed",
    ast.Lambda: "lambda is not allowed",
    ast.JoinedStr: "f-strings are not allowed",
    ast.NamedExpr: "assignment (:=) is not allowed",
    ast.Starred: "stars are not allowed",
    ast.List: "a list may only stand on the right of `in`",
    ast.Tuple: "a list may only stand on the right of `in`",
    ast.Set: "a list may only stand on the right of `in`",
}


def check_expression(text: str, names: Collection[str]) -> list[str]:
    """The mistakes of an expression, each with its 1-based column; empty when there are none.

    Args:
        text: The expression.
        names: The names it may use.
    """
    return _Compiler(text, names).problems


def compile_expression(text: str, names: Collection[str] | None = None) -> Expression:
    """Compile an expression.

    Args:
        text: The expression.
        names: The names it may use; None for any.

    Raises:
        RubricError: the expression has mistakes; carries all of them.
    """
    compiler = _Compiler(text, names)
    if compiler.problems:
        raise RubricError([Problem(None, "", message) for message in compiler.problems])
    return Expression(text, tuple(compiler.used), compiler.run)


class _Compiler:
    """One pass over one syntax tree: builds the closure, notes the names used and every mistake."""

    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.problems: list[str] = []
        self.used: dict[str, None] = {}
        self._names = names
        flat = re.sub(r"[\t\r\n]", " ", text)
        self._source = flat.strip()
        self._indent = len(flat) - len(flat.lstrip())
        tree = self._parse("#" in text and "\n" in text)
        self.run: Run = self._build(tree, 0) if tree is not None else _nothing

    def _parse(self, comment: bool) -> ast.expr | None:
        if not self._source:
            self.problems.append("the expression is empty")
        elif len(self._source) > MAX_LENGTH:
            self.problems.append(f"longer than {MAX_LENGTH} characters; split it with `let`")
        elif comment:
            self.problems.append("a comment can't stand inside an expression of several lines")
        else:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    return ast.parse(self._source, mode="eval").body
            except SyntaxError as error:
                place = f"column {self._indent + error.offset}: " if error.offset and error.offset > 0 else ""
                self.problems.append(f"{place}not a valid expression: {error.msg}{_style_hint(self._source)}")
            except UnicodeError:
                self.problems.append("not valid Unicode text")
            except (ValueError, RecursionError, MemoryError) as error:
                self.problems.append(f"not a valid expression: {error or 'nested too deep'}")
        return None

    def _refuse(self, node: ast.AST, message: str) -> Run:
        # col_offset counts UTF-8 bytes; people count characters
        before = self._source.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
        self.problems.append(f"column {self._indent + len(before) + 1}: {message}")
        return _nothing

    def _build(self, node: ast.expr, depth: int) -> Run:
        if depth > MAX_DEPTH:
            return self._refuse(node, f"nested deeper than {MAX_DEPTH}; split it with `let`")
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                return self._constant(node)
            case ast.BoolOp():
                parts = [self._build(value, depth + 1) for value in node.values]
                return _all_of(parts) if isinstance(node.op, ast.And) else _any_of(parts)
            case ast.UnaryOp(op=ast.Not()):
                return _negation(self._build(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.USub()):
                return _arithmetic(operator.sub, _always(0), self._number(node.operand, depth + 1))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self._number(node.left, depth + 1), self._number(node.right, depth + 1)
                return _arithmetic(_ARITHMETIC[type(node.op)], left, right)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.IfExp():
                test = self._build(node.test, depth + 1)
                return _choice(test, self._branch(node.body, depth + 1), self._branch(node.orelse, depth + 1))
            case ast.Call():
                return self._call(node, depth)
            case ast.BinOp() | ast.UnaryOp():
                return self._refuse(node, "only + - * / // % and unary minus are allowed between numbers")
        return self._refuse(node, _REFUSED.get(type(node), f"{type(node).__name__} is not allowed"))

    def _name(self, node: ast.Name) -> Run:
        self._use(node)
        return _lookup(node.id)

    def _use(self, node: ast.Name) -> None:
        if self._names is not None and node.id not in self._names and node.id not in self.used:
            literals = {"True", "False"} if node.id in ("true", "false") else set()
            # looking for close names is slow, and no one needs it for a whole line of wrong ones
            known = {*self._names, *literals} if len(self.problems) < 10 else ()
            self._refuse(node, _unknown("name", node.id, known))
            if node.id in FUNCTIONS:
                self.problems[-1] += f"; the function is called as {node.id}(...)"
        self.used[node.id] = None

    def _constant(self, node: ast.Constant) -> Run:
        value = node.value
        if value is None:
            return self._refuse(node, "None may only be a branch of `a if c else b`; to ask for a value write given(x)")
        if not isinstance(value, str | int | float):  # a bool is an int
            return self._refuse(node, f"a literal of type {type(value).__name__} is not allowed")
        if isinstance(value, int) and value > MAX_INT:
            return self._refuse(node, f"a number above {MAX_INT:.0e} is not allowed")
        if isinstance(value, float) and not isfinite(value):
            return self._refuse(node, "a number this large is not allowed")
        return _always(value)

    def _branch(self, node: ast.expr, depth: int) -> Run:
        if isinstance(node, ast.Constant) and node.value is None:
            return _nothing
        return self._build(node, depth)

    def _number(self, node: ast.expr, depth: int) -> Run:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._refuse(node, "a text can't be calculated with")
        return self._build(node, depth)

    def _compare(self, node: ast.Compare, depth: int) -> Run:
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return self._refuse(node, "`is` is not allowed; compare with ==, or ask given(x)")
        sides = [node.left, *node.comparators]
        membership = [False, *(isinstance(op, ast.In | ast.NotIn) for op in node.ops)]
        runs = [self._side(side, depth + 1, member) for side, member in zip(sides, membership, strict=True)]
        tests = [(_COMPARE[type(op)], right) for op, right in zip(node.ops, runs[1:], strict=True)]
        if len(tests) == 1:
            return _comparison(*tests[0], runs[0])
        return _chain(runs[0], tests)

    def _side(self, node: ast.expr, depth: int, member: bool) -> Run:
        if isinstance(node, ast.Constant):
            if node.value is None:
                return self._refuse(node, _GIVEN_HINT)
            if member:
                return self._refuse(node, "write the right side of `in` as a list, as in x in ['a', 'b']")
        if member and isinstance(node, ast.List | ast.Tuple | ast.Set):
            return _always(tuple(self._element(element) for element in node.elts))
        return self._build(node, depth)

    def _element(self, node: ast.expr) -> Any:
        sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        inner = node.operand if isinstance(node, ast.UnaryOp) and sign else node
        if not isinstance(inner, ast.Constant) or (sign and isinstance(inner.value, str)):
            self._refuse(node, "a list may only hold texts and numbers")
            return None
        before = len(self.problems)
        run = self._constant(inner)
        if len(self.problems) > before:
            return None
        return -run({}) if sign else run({})

    def _call(self, node: ast.Call, depth: int) -> Run:
        if not isinstance(node.func, ast.Name):
            return self._refuse(node, "only the listed functions can be called")
        name = node.func.id
        function = FUNCTIONS.get(name)
        if function is None:
            return self._refuse(node, _unknown("function", name, FUNCTIONS, listed=True))
        if node.keywords:
            return self._refuse(node, f"{name}() takes no named arguments")
        given = len(node.args)
        if given < function.least or (function.most is not None and given > function.most):
            wanted = function.least if function.most is not None else f"at least {function.least}"
            return self._refuse(node, f"{name}() takes {wanted} argument{'' if wanted == 1 else 's'}, not {given}")
        if not function.bare:
            return _application(function.run, [self._build(argument, depth + 1) for argument in node.args])
        argument = node.args[0]
        if not isinstance(argument, ast.Name):
            return self._refuse(argument, f"{name}() takes a name")
        self._use(argument)
        return _bare(function.run, argument.id)


def _unknown(kind: str, name: str, known: Collection[str], *, listed: bool = False) -> str:
    close = close_names(name, known)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    if not close and listed:
        hint = f"; known: {', '.join(sorted(known))}"
    return f"unknown {kind} {name!r}{hint}"


def _style_hint(source: str) -> str:
    """A remedy for conditions written as in C or JavaScript."""
    if any(mark in source for mark in ("&&", "||", "?")) or re.search(r"!(?!=)", source):
        return " (write and, or, not, and `a if c else b`)"
    return " (to compare write ==)" if re.search(r"(?<![=!<>])=(?!=)", source) else ""


def _always(value: Any) -> Run:
    return lambda _env: value


def _nothing(_env: Mapping[str, Any]) -> Any:
    raise Missing("a value")


def _lookup(name: str) -> Run:
    def run(env: Mapping[str, Any]) -> Any:
        value = env.get(name)
        if value is None:
            raise Missing(name)
        return value

    return run


def _bare(function: Callable[[Any], Any], name: str) -> Run:
    return lambda env: function(env.get(name))


def _all_of(parts: list[Run]) -> Run:
    def run(env: Mapping[str, Any]) -> Any:
        for part in parts:
            value = part(env)
            if not value:
                break
        return value

    return run


def _any_of(parts: list[Run]) -> Run:
    def run(env: Mapping[str, Any]) -> Any:
        for part in parts:
            value = part(env)
            if value:
                break
        return value

    return run


def _negation(part: Run) -> Run:
    return lambda env: not part(env)


def _choice(test: Run, body: Run, other: Run) -> Run:
    return lambda env: body(env) if test(env) else other(env)


def _comparison(compare: Callable[[Any, Any], Any], right: Run, left: Run) -> Run:
    return lambda env: compare(left(env), right(env))


def _chain(first: Run, tests: list[tuple[Callable[[Any, Any], Any], Run]]) -> Run:
    def run(env: Mapping[str, Any]) -> Any:
        left = first(env)
        for compare, side in tests:
            right = side(env)
            if not compare(left, right):
                return False
            left = right
        return True

    return run


def _arithmetic(operate: Callable[[Any, Any], Any], left: Run, right: Run) -> Run:
    # numbers only: a text times a number, or a text as a % format, could fill the memory
    def run(env: Mapping[str, Any]) -> Any:
        a, b = left(env), right(env)
        if not isinstance(a, int | float) or not isinstance(b, int | float):
            raise TypeError(f"{kind(a if not isinstance(a, int | float) else b)} can't be calculated with")
        value = operate(a, b)
        if not isfinite(value):
            raise OverflowError("the result is out of range")
        return value

    return run


def _application(function: Callable[..., Any], arguments: list[Run]) -> Run:
    if len(arguments) == 1:
        only = arguments[0]
        return lambda env: function(only(env))
    return lambda env: function(*(argument(env) for argument in arguments))
