"""A prompt file as texts and tables; a Python file is parsed, never executed."""

from __future__ import annotations

import ast
import keyword
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, Problem, RubricError

#: Largest file, in bytes.
MAX_BYTES = 500_000
_ASSIGNMENT = re.compile(r"[^\W\d]\w*[ \t]*(?::[^=\n]+)?=(?!=)")
_CODE = re.compile(r"(?:import|from|def|class|@|async def)\b|@")
_TITLE = re.compile(r"[^\W_][\w .,:/'&()#+-]*")
_LITERALS_ONLY = "only NAME = literal is read and nothing is executed: write the value out, or delete the line"
_KINDS: dict[type[ast.AST], str] = {
    ast.JoinedStr: "an f-string",
    ast.Call: "a call",
    ast.Attribute: "an attribute",
    ast.Name: "a name",
    ast.BinOp: "an operation",
    ast.Import: "an import",
    ast.ImportFrom: "an import",
    ast.FunctionDef: "a function",
    ast.AsyncFunctionDef: "a function",
    ast.ClassDef: "a class",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.AugAssign: "a changing assignment",
    ast.Subscript: "a subscript",
    ast.Starred: "an unpacking",
    ast.Lambda: "a lambda",
}


@dataclass(slots=True)
class Source:
    """What a prompt file holds.

    Attributes:
        file: Its name.
        python: Whether it is a Python file.
        title: A title that stood before the content and is left out; "" for none.
        texts: Where it stands (``NAME`` or ``NAME.key``) -> text; for a text file the one text, under "".
        tables: Where it stands -> mapping of texts to texts.
    """

    file: str
    python: bool
    title: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    tables: dict[str, dict[str, str]] = field(default_factory=dict)


def read_source(path: str | Path) -> Source:
    """Read a file of prompts.

    A file is read as Python where its name ends in .py, or its first line of content is an assignment, an import or a
    definition, or all of it is Python assignments; else as a text. A title line before the content is left out: in a
    Python file a line that is a file's name or no Python, in a text with holes a line of capitalised words; a blank
    line must follow.

    Raises:
        InputError: no such file, too large, or no UTF-8.
        RubricError: Python that holds anything but literal assignments; lists every place.
    """
    text = _read(Path(path))
    name = str(path)
    title, lines = _title(text)
    body = "\n" * lines + "\n".join(text.split("\n")[lines:])
    if _is_python(name, body):
        source = Source(name, python=True, title=title)
        for key, value in _assignments(body, name).items():
            _collect(source, key, value)
        return source
    words = title.split()
    if len(words) < 3 or "{" not in text or not all(word[0].isupper() or word[0].isdigit() for word in words):
        return Source(name, python=False, texts={"": text})
    return Source(name, python=False, title=title, texts={"": body.lstrip("\n")})


def _read(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path} is larger than {MAX_BYTES // 1000} kB", hint="name a file of prompts")
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8 text", hint="save the file as UTF-8") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"can't read {path!s:.200}: {getattr(error, 'strerror', None) or error}") from None


def _title(text: str) -> tuple[str, int]:
    """A first line that may be a title, followed by a blank line; and how many lines go with it."""
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    title = lines[first].strip() if first < len(lines) else ""
    if first + 2 >= len(lines) or lines[first + 1].strip() or lines[first][:1].isspace():
        return "", 0
    if not _TITLE.fullmatch(title) or title[-1] in ":.," or keyword.iskeyword(title.split()[0]):
        return "", 0
    return (title, first + 1) if _no_statement(title) else ("", 0)


def _no_statement(line: str) -> bool:
    """Whether a line does nothing: a name, a file's name as ``prompt.py``, or no Python at all."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(line).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    node: ast.AST = body[0].value if len(body) == 1 and isinstance(body[0], ast.Expr) else ast.Pass()
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _is_python(name: str, body: str) -> bool:
    if name.endswith(".py"):
        return True
    first = next((line for line in body.split("\n") if line.strip() and not line.startswith("#")), "")
    if _CODE.match(first):
        return True
    try:
        nodes = _parse(body).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _ASSIGNMENT.match(first) is not None
    return any(isinstance(node, ast.Assign | ast.AnnAssign) for node in nodes)


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of escapes that a later Python may refuse
        return ast.parse(text)


def _assignments(text: str, file: str) -> dict[str, Any]:
    if "\0" in text:
        line = text.partition("\0")[0].count("\n") + 1
        raise RubricError(
            [Problem(line, "", "not Python: it holds a NUL character", "delete the character")], file=file
        )
    try:
        module = _parse(text)
    except SyntaxError as error:
        raise RubricError([_no_python(error)], file=file) from None
    except (RecursionError, MemoryError):
        problem = Problem(None, "", "not readable as Python: nested too deeply", _LITERALS_ONLY)
        raise RubricError([problem], file=file) from None
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    for node in module.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        if value is None or not all(isinstance(target, ast.Name) for target in targets):
            problems.append(_refused(node))
            continue
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        problems += [_twice(name, lines[name], node.lineno) for name in names if name in lines]
        lines |= dict.fromkeys(names, node.lineno)
        wrong = [_refused(part) for part in _no_literals(value)] or list(_keys_twice(value))
        problems += wrong
        if not wrong:
            values |= dict.fromkeys(names, ast.literal_eval(value))
    if problems:
        raise RubricError(sorted(problems, key=lambda problem: problem.line or 0), file=file)
    return values


def _no_python(error: SyntaxError) -> Problem:
    """What to tell of a text that doesn't parse; Python's own advice on long numbers is about its settings."""
    said = "a number has too many digits" if "integer string conversion" in error.msg else error.msg
    return Problem(error.lineno, "", f"not Python: {said}", _LITERALS_ONLY)


def _twice(what: str, first: int, line: int) -> Problem:
    return Problem(
        line, "", f"{what} was given before, in line {first}", "only one of them can count: delete the other"
    )


def _keys_twice(value: ast.expr) -> Iterator[Problem]:
    """Keys that stand twice in a dict, and keys that no dict can have; the value holds nothing but literals."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        todo += node.elts if isinstance(node, ast.List | ast.Tuple) else []
        if not isinstance(node, ast.Dict):
            continue
        todo += node.values
        lines: dict[Any, int] = {}
        for key in filter(None, node.keys):
            read = ast.literal_eval(key)
            try:
                if read in lines:
                    yield _twice(f"the key {f'{read!r}':.60}", lines[read], key.lineno)
                lines[read] = key.lineno
            except TypeError:  # a list, or what holds one
                yield Problem(key.lineno, "", f"{f'{read!r}':.60} can't be a key", "only texts and numbers can")


def _refused(node: ast.AST) -> Problem:
    kind = _KINDS.get(type(node), "a statement" if isinstance(node, ast.stmt) else "an expression")
    return Problem(getattr(node, "lineno", None), "", f"{kind} where a literal assignment is due", _LITERALS_ONLY)


def _no_literals(value: ast.expr) -> Iterator[ast.AST]:
    """The outermost parts of a value that are no literals; a loop, for a file may nest as deep as it likes."""
    todo: list[ast.AST] = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Dict):
            todo += [part for part in (*node.keys, *node.values) if part is not None]
            if None in node.keys:
                yield ast.Starred(node, lineno=node.lineno)
        elif isinstance(node, ast.List | ast.Tuple):
            todo += node.elts
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            if type(node.operand.value) not in (int, float):
                yield node
        elif not isinstance(node, ast.Constant):
            yield node


def _collect(source: Source, place: str, value: Any) -> None:
    """Texts and tables of a value, with their places."""
    if isinstance(value, str):
        source.texts[place] = value
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _collect(source, f"{place}.{number}", part)
    elif isinstance(value, dict):
        if value and all(isinstance(part, str) for pair in value.items() for part in pair):
            source.tables[place] = value
        for key, part in value.items():
            _collect(source, f"{place}.{key}", part)
