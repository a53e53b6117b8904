"""YAML 1.2 as a tree of nodes that know their line and path; every mistake of syntax, never a traceback."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from evenhand.errors import Problem
from evenhand.scale import Value

if TYPE_CHECKING:
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode

#: Largest file, in bytes of UTF-8.
MAX_BYTES = 1_000_000
#: Most nodes, what aliases repeat included.
MAX_NODES = 20_000
#: Deepest nesting of lists and mappings.
MAX_DEPTH = 20
#: Largest whole number.
MAX_INT = 10**15

Kind = Literal["map", "list", "text", "number", "bool", "null"]
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = {"str", "timestamp", "value", "yaml"}
_DIRECTIVE = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*)?\n)*%")
_QUOTES = "put a text that holds : or #, or starts with a special character, in quotes"
_TOO_LARGE = f"more than {MAX_NODES} values, or {MAX_DEPTH} levels, once aliases are expanded"
_SIMPLE_KEY = re.compile(r"[\w-]+")


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a YAML file.

    Attributes:
        kind: map, list, text, number, bool or null.
        value: A dict of nodes, a list of nodes, or the plain value.
        line: 1-based line: of the value for scalars, of the key for lists and mappings under a key.
        path: Place in the document, as in ``$.criteria[0].scale``.
        key_line: Line of its key; the same as ``line`` where it has none.
    """

    kind: Kind
    value: Any
    line: int
    path: str
    key_line: int

    def get(self, *keys: str) -> Node | None:
        """The node under one key after another; None where there is none."""
        node: Node | None = self
        for key in keys:
            node = node.value.get(key) if node is not None and node.kind == "map" else None
        return node

    def text(self, key: str, default: str = "") -> str:
        """The text under a key."""
        node = self.get(key)
        return node.value if node is not None and node.kind == "text" else default

    def flag(self, key: str, default: bool = False) -> bool:
        """The truth value under a key."""
        node = self.get(key)
        return bool(node.value) if node is not None and node.kind == "bool" else default

    def elements(self, key: str) -> list[Node]:
        """The elements of the list under a key; a lone value counts as a list of one."""
        node = self.get(key)
        if node is None or node.kind in ("map", "null"):
            return []
        return list(node.value) if node.kind == "list" else [node]

    def items(self, key: str) -> list[tuple[Any, Node]]:
        """Keys and nodes of the mapping under a key."""
        node = self.get(key)
        return list(node.value.items()) if node is not None and node.kind == "map" else []

    def with_value(self, value: Any) -> Node:
        """The same place with another value."""
        return Node(self.kind, value, self.line, self.path, self.key_line)


def plain(node: Node) -> Any:
    """A node as plain data."""
    if node.kind == "map":
        return {key: plain(value) for key, value in node.value.items()}
    return [plain(value) for value in node.value] if node.kind == "list" else node.value


def read_yaml(text: str) -> tuple[Node | None, list[Problem]]:
    """Read one document.

    Returns:
        The tree (None when nothing could be read) and the mistakes found.
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return None, [Problem(None, "", f"the file is larger than {MAX_BYTES // 1000} kB")]
    directive = _DIRECTIVE.match(text)
    if directive and not re.match(r"YAML\s+1\.2\s", text[directive.end() :]):
        line = text.count("\n", 0, directive.end()) + 1
        return None, [Problem(line, "", "directives are not allowed", "delete the line that starts with %")]
    composed, problems = _compose(text)
    if composed is None:
        return None, problems or [Problem(1, "", "the file is empty")]
    reader = _Reader()
    root = reader.read(composed, "$", None, 0)
    return (None if reader.over else root), reader.problems


def _compose(text: str) -> tuple[Any, list[Problem]]:
    from ruamel.yaml import YAML
    from ruamel.yaml.composer import Composer, ComposerError
    from ruamel.yaml.error import YAMLError

    class Counting(Composer):
        """Gives up on a file that is far too large, before time is lost."""

        nodes = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                raise ComposerError(problem=_TOO_LARGE)
            return super().compose_node(parent, index)

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = Counting
    yaml.max_depth = MAX_DEPTH
    yaml.composer.warn_double_anchors = False
    try:
        return yaml.compose(text), []
    except YAMLError as error:
        return None, [_syntax_problem(error, text)]
    except RecursionError:
        return None, [Problem(None, "", "nested too deeply")]
    except Exception as error:  # the YAML reader lets plain Python errors out on some malformed texts
        return None, [Problem(None, "", f"not readable as YAML: {error}")]


def _syntax_problem(error: Any, text: str) -> Problem:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else None
    if line is None and isinstance(getattr(error, "character", None), int):
        line = text.count("\n", 0, error.position) + 1
        return Problem(line, "", f"character U+{error.character:04X} is not allowed", "save the file as plain text")
    what = getattr(error, "problem", None) or getattr(error, "context", None) or str(error).splitlines()[0]
    if "max_depth" in str(error):
        return Problem(line, "", f"nested deeper than {MAX_DEPTH} levels")
    if what == _TOO_LARGE:
        return Problem(None, "", what)
    opened = getattr(error, "context_mark", None)
    if opened is not None and "end of stream" in what and "quoted" in (getattr(error, "context", None) or ""):
        return Problem(opened.line + 1, "", "not YAML: a quote that opens here is not closed", "close it")
    if "another document" in what:
        return Problem(line, "", "a second document starts here", "one file holds one rubric")
    return Problem(line, "", f"not YAML: {what}", "indent with spaces" if "'\\t'" in what else _QUOTES)


class _Reader:
    """Turns composed nodes into `Node`s, and notes every mistake."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.over = False
        self._count = 0

    def read(self, node: Any, path: str, key_line: int | None, depth: int) -> Node | None:
        from ruamel.yaml.nodes import MappingNode, ScalarNode

        if self.over:
            return None
        self._count += 1
        line = node.start_mark.line + 1
        if self._count > MAX_NODES or depth > MAX_DEPTH:
            self.over = True
            self.problems.append(Problem(None, "", _TOO_LARGE))
            return None
        if isinstance(node, ScalarNode):
            return self._scalar(node, path, line if key_line is None else key_line)
        if not self._core(node, path, "map" if isinstance(node, MappingNode) else "seq"):
            return None
        at = line if key_line is None else key_line
        if isinstance(node, MappingNode):
            return Node("map", dict(self._entries(node, path, depth)), at, path, at)
        return Node("list", list(self._elements(node, path, depth)), at, path, at)

    def _elements(self, node: SequenceNode, path: str, depth: int) -> Iterator[Node]:
        for position, value in enumerate(node.value):
            element = self.read(value, f"{path}[{position}]", None, depth + 1)
            if element is not None:
                yield element

    def _entries(self, node: MappingNode, path: str, depth: int) -> Iterator[tuple[Value, Node]]:
        seen: dict[Value, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, path, line)
            if key is None:
                continue
            place = f"{path}.{key}" if _SIMPLE_KEY.fullmatch(str(key)) else f"{path}[{str(key)!r}]"
            if key in seen:
                message = f"key {key!r} stands twice, first in line {seen[key]}"
                self.problems.append(Problem(line, place, message, "keep one of the two"))
                continue
            seen[key] = line
            value = self.read(value_node, place, line, depth + 1)
            if value is not None:
                yield key, value

    def _key(self, node: Any, path: str, line: int) -> Value | None:
        from ruamel.yaml.nodes import ScalarNode

        if str(node.ctag or "") == f"{_CORE}merge":
            self.problems.append(Problem(line, path, "merge keys (<<) are not allowed", "write the keys out"))
            return None
        key = self._scalar(node, path, line) if isinstance(node, ScalarNode) else None
        if key is None or key.kind == "null":
            if not isinstance(node, ScalarNode) or key is not None:
                self.problems.append(Problem(line, path, "a key must be a text or a number", "put it in quotes"))
            return None
        value: Value = key.value
        return value

    def _scalar(self, node: ScalarNode, path: str, key_line: int) -> Node | None:
        tag, line = str(node.ctag), node.start_mark.line + 1
        name = tag.removeprefix(_CORE)
        text: str = node.value

        def made(kind: Kind, value: Any) -> Node:
            return Node(kind, value, line, path, key_line)

        if name in _TEXT_TAGS or (name == "merge" and text == "<<"):
            if any("\ud800" <= character <= "\udfff" for character in text):
                self.problems.append(Problem(line, path, "half of a surrogate pair is not a character"))
                return None
            return made("text", text)
        if name == "null":
            return made("null", None)
        if name == "bool" and text.lower() in ("true", "false"):
            return made("bool", text.lower() == "true")
        if name in ("int", "float"):
            number = _number(text, whole=name == "int")
            if number is not None:
                return made("number", number)
            self.problems.append(Problem(line, path, f"{text[:40]!r} is not a usable number"))
            return None
        self._core(node, path, "str")
        return None

    def _core(self, node: Any, path: str, name: str) -> bool:
        if str(node.ctag) == _CORE + name:
            return True
        line = node.start_mark.line + 1
        shown = str(node.ctag).removeprefix(_CORE)
        self.problems.append(Problem(line, path, f"tag {shown[:40]!r} is not allowed", "write the value without !"))
        return False


def _number(text: str, *, whole: bool) -> int | float | None:
    digits = text.replace("_", "")
    try:
        if whole:
            bare = digits.lstrip("+-")
            base = {"0x": 16, "0o": 8, "0b": 2}.get(bare[:2].lower(), 10)
            number: int | float = int(digits, base)
        else:
            number = float(digits)
    except ValueError:
        return None
    return number if abs(number) <= MAX_INT else None  # NaN is neither
