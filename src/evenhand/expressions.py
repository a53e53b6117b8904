"""The language of rule conditions: a small subset of Python expressions, compiled once.

Allowed: names, numbers, texts, true and false, comparisons (also chained), ``and`` / ``or`` / ``not``, ``+ - * / // %``
and unary minus on numbers, ``in`` / ``not in``, ``a if c else b`` and the functions of `evenhand.functions`. A list of
literals may stand on the right of ``in``. Nothing else parses: no attributes, subscripts, powers or loops, so an
expression from a stranger's rubric can't reach anything but the values it names. What is compiled is not the parsed
tree but a new one, built of the allowed parts alone: names are looked up in the environment, arithmetic is checked.

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

#: What `Missing` names where the literal None stands for a missing value.
UNNAMED = "a value"

#: A compiled expression: `Environment` -> value.
Run = Callable[["Environment"], Any]

#: What evaluation may raise besides `Missing`: values of the wrong type, division by zero, numbers out of range.
UNDECIDED = (TypeError, ArithmeticError, RecursionError)


class Missing(Exception):
    """A value the expression needs is not there; the one argument is its name."""


class Environment(dict[str, Any]):
    """Name -> value, of the names that have one: a value is never None. Asking for another name raises `Missing`."""

    __slots__ = ()

    def __missing__(self, name: str) -> Any:
        raise Missing(name)


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression.

    Attributes:
        text: The source.
        names: The names it uses, in order of first use.
        run: `Environment` -> value. Raises `Missing` when a needed name is absent, and one of `UNDECIDED` when the
            values don't fit the operators.
        first: The name that is looked up first, whatever the values; None where there is none, or it may be missing.
    """

    text: str
    names: tuple[str, ...]
    run: Run
    first: str | None


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
    return Expression(text, tuple(compiler.used), _function(compiler.body), _first(compiler.body))


class _Compiler:
    """One pass over one syntax tree: builds the tree to compile, notes the names used and every mistake."""

    def __init__(self, text: str, names: Collection[str] | None) -> None:
        self.problems: list[str] = []
        self.used: dict[str, None] = {}
        self._names = names
        flat = re.sub(r"[\t\r\n]", " ", text)
        self._source = flat.strip()
        self._indent = len(flat) - len(flat.lstrip())
        tree = self._parse("#" in text and "\n" in text)
        self.body: ast.expr = self._build(tree, 0) if tree is not None else _NOTHING

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

    def _refuse(self, node: ast.AST, message: str) -> ast.expr:
        # col_offset counts UTF-8 bytes; people count characters
        before = self._source.encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
        self.problems.append(f"column {self._indent + len(before) + 1}: {message}")
        return _NOTHING

    def _build(self, node: ast.expr, depth: int) -> ast.expr:
        if depth > MAX_DEPTH:
            return self._refuse(node, f"nested deeper than {MAX_DEPTH}; split it with `let`")
        match node:
            case ast.Name():
                return self._name(node)
            case ast.Constant():
                return self._constant(node)
            case ast.BoolOp():
                return ast.BoolOp(node.op, [self._build(value, depth + 1) for value in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return ast.UnaryOp(node.op, self._build(node.operand, depth + 1))
            case ast.UnaryOp(op=ast.USub()):
                return _call("Sub", ast.Constant(0), self._number(node.operand, depth + 1))
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                left, right = self._number(node.left, depth + 1), self._number(node.right, depth + 1)
                return _call(type(node.op).__name__, left, right)
            case ast.Compare():
                return self._compare(node, depth)
            case ast.IfExp():
                test = self._build(node.test, depth + 1)
                body, other = (self._branch(branch, depth + 1, node.test) for branch in (node.body, node.orelse))
                return ast.IfExp(test, body, other)
            case ast.Call():
                return self._call(node, depth)
            case ast.BinOp() | ast.UnaryOp():
                return self._refuse(node, "only + - * / // % and unary minus are allowed between numbers")
        return self._refuse(node, _REFUSED.get(type(node), f"{type(node).__name__} is not allowed"))

    def _name(self, node: ast.Name) -> ast.expr:
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

    def _constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if value is None:
            return self._refuse(node, "None may only be a branch of `a if c else b`; to ask for a value write given(x)")
        if not isinstance(value, str | int | float):  # a bool is an int
            return self._refuse(node, f"a literal of type {type(value).__name__} is not allowed")
        if isinstance(value, int) and value > MAX_INT:
            return self._refuse(node, f"a number above {MAX_INT:.0e} is not allowed")
        if isinstance(value, float) and not isfinite(value):
            return self._refuse(node, "a number this large is not allowed")
        return ast.Constant(value)

    def _branch(self, node: ast.expr, depth: int, test: ast.expr) -> ast.expr:
        if not isinstance(node, ast.Constant) or node.value is not None:
            return self._build(node, depth)
        match test:  # what is missing has a name where the test asked for one
            case ast.Call(func=ast.Name(id="given"), args=[ast.Name(id=name)]):
                return _lookup(name)
        return _NOTHING

    def _number(self, node: ast.expr, depth: int) -> ast.expr:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._refuse(node, "a text can't be calculated with")
        return self._build(node, depth)

    def _compare(self, node: ast.Compare, depth: int) -> ast.expr:
        if any(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
            return self._refuse(node, "`is` is not allowed; compare with ==, or ask given(x)")
        sides = [node.left, *node.comparators]
        membership = [False, *(isinstance(op, ast.In | ast.NotIn) for op in node.ops)]
        left, *right = [self._side(side, depth + 1, member) for side, member in zip(sides, membership, strict=True)]
        return ast.Compare(left, node.ops, right)

    def _side(self, node: ast.expr, depth: int, member: bool) -> ast.expr:
        if isinstance(node, ast.Constant):
            if node.value is None:
                return self._refuse(node, _GIVEN_HINT)
            if member:
                return self._refuse(node, "write the right side of `in` as a list, as in x in ['a', 'b']")
        if member and isinstance(node, ast.List | ast.Tuple | ast.Set):
            return ast.Tuple([ast.Constant(self._element(element)) for element in node.elts], ast.Load())
        return self._build(node, depth)

    def _element(self, node: ast.expr) -> Any:
        sign = isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)
        inner = node.operand if isinstance(node, ast.UnaryOp) and sign else node
        if not isinstance(inner, ast.Constant) or (sign and isinstance(inner.value, str)):
            self._refuse(node, "a list may only hold texts and numbers")
            return None
        literal = self._constant(inner)
        value = literal.value if isinstance(literal, ast.Constant) else None
        return -value if sign and isinstance(value, int | float) else value

    def _call(self, node: ast.Call, depth: int) -> ast.expr:
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
            return _call(name, *(self._build(argument, depth + 1) for argument in node.args))
        argument = node.args[0]
        if not isinstance(argument, ast.Name):
            return self._refuse(argument, f"{name}() takes a name")
        self._use(argument)
        return _call(name, _call("_get", _ENV, ast.Constant(argument.id)))


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


_ENV = ast.Name("env", ast.Load())


def _lookup(name: str) -> ast.expr:
    return ast.Subscript(_ENV, ast.Constant(name), ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


#: Stands for a missing value, and for whatever was refused.
_NOTHING = _lookup(UNNAMED)


def _first(node: ast.expr) -> str | None:
    """The first name that a compiled tree looks up, None where something else comes first."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case ast.BoolOp(values=[part, *_]) | ast.UnaryOp(operand=part) | ast.Compare(left=part) | ast.IfExp(test=part):
            return _first(part)
        case ast.Call(args=[part, *_]):
            return _first(part)
    return None


def _arithmetic(operate: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    # numbers only: a text times a number, or a text as a % format, could fill the memory
    def run(a: Any, b: Any) -> Any:
        if not isinstance(a, int | float) or not isinstance(b, int | float):
            raise TypeError(f"{kind(a if not isinstance(a, int | float) else b)} can't be calculated with")
        value = operate(a, b)
        if not isfinite(value):
            raise OverflowError("the result is out of range")
        return value

    return run


#: All that a compiled expression can reach besides its environment.
_REACH: Mapping[str, Any] = {
    "__builtins__": {},
    "_get": dict.get,
    **{name: function.run for name, function in FUNCTIONS.items()},
    **{operation.__name__: _arithmetic(operate) for operation, operate in _ARITHMETIC.items()},
}


def _function(body: ast.expr) -> Run:
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg("env")], kwonlyargs=[], kw_defaults=[], defaults=[])
    tree = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, body)))
    run: Run = eval(compile(tree, "<condition>", "eval"), dict(_REACH))
    return run
