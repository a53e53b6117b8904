"""YAML as a tree with lines and paths, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.rubric.yaml_tree import MAX_NODES, Node, plain, read_yaml

TEXT = """\
a: 1
"b c":
  - x
  - y: >-
      folded
      text
    z: 'q'
d:
  plain value
"""


def test_values_lines_and_paths() -> None:
    """Scalars know their own line and that of their key; collections that of their key; paths lead back."""
    root, found = read_yaml(TEXT)
    assert root is not None
    assert found == []
    assert plain(root) == {"a": 1, "b c": ["x", {"y": "folded text", "z": "q"}], "d": "plain value"}
    listed = root.get("b c")
    assert listed is not None
    assert (listed.line, listed.path) == (2, "$['b c']")
    inner: Node = listed.value[1].value["z"]
    assert (inner.line, inner.path) == (7, "$['b c'][1].z")
    last = root.get("d")
    assert last is not None
    assert (last.line, last.key_line) == (9, 8)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("none", "none"),
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("0-10", "0-10"),
        ("4-5", "4-5"),
        ("2024-01-01", "2024-01-01"),
        ("12:30", "12:30"),
        ("010", 10),
        ("0x1F", 31),
        ("1_000", 1000),
        ("-3", -3),
        ("1.50", 1.5),
        ("1e3", 1000.0),
        ('"5"', "5"),
        ("!!str 5", "5"),
        ("=", "="),
        ("字", "字"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: Any) -> None:
    """yes and no are words, dates and ranges are texts, numbers are numbers."""
    root, found = read_yaml(f"- {text}\n")
    assert root is not None
    assert found == []
    assert plain(root) == [value]
    assert type(plain(root)[0]) is type(value)


def test_anchors_are_allowed() -> None:
    """A value may be written once and used again; mistakes in it point to where it stands."""
    root, found = read_yaml("a: &x [1, 2]\nb: *x\n")
    assert root is not None
    assert (plain(root), found) == ({"a": [1, 2], "b": [1, 2]}, [])


NESTED = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n" for old, new in zip("abcde", "bcdef", strict=True)
)


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("", 1, "the file is empty"),
        ("# nothing\n", 1, "the file is empty"),
        ("a: [1\n", 2, "not YAML"),
        ("a: b: c\n", 1, "put a text that holds"),
        ("a:\n\t- 1\n", 2, "indent with spaces"),
        ("a: *x\n", 1, "undefined alias"),
        ("a: &x [*x]\n", None, "levels"),
        ("a: 1\na: 2\n", 2, "key 'a' stands twice, first in line 1"),
        ("a: {b: 1, b: 2}\n", 1, "$.a.b: key 'b' stands twice"),
        ("a: 1\nb: !thing x\n", 2, "tag '!thing' is not allowed"),
        ("a: !!python/object/apply:os.getcwd []\n", 1, "is not allowed"),
        ("a: !!set {x}\n", 1, "tag 'set' is not allowed"),
        ("a: {<<: {b: 1}}\n", 1, "merge keys"),
        ("? [a]\n: 1\n", 1, "a key must be a text or a number"),
        ("~: 1\n", 1, "a key must be a text or a number"),
        ("a: .nan\n", 1, "not a usable number"),
        ("a: 1e999\n", 1, "not a usable number"),
        (f"a: {'9' * 5000}\n", 1, "not a usable number"),
        ("a: 1\n---\nb: 2\n", 2, "one file holds one rubric"),
        ("# old\n%YAML 1.1\n---\na: yes\n", 2, "directives are not allowed"),
        ("%TAG ! tag:x,2000:\n---\na: 1\n", 1, "directives are not allowed"),
        ("a: 1\nb: \x07\n", 2, "U+0007 is not allowed"),
        ("a: \ud800\n", 1, "U+D800 is not allowed"),
        ('a: "\\ud800"\n', 1, "half of a surrogate pair"),
        ('a: "\\UFFFFFFFF"\n', None, "not readable as YAML"),
        ("[" * 5000, 1, "nested deeper than"),
        ("- " * 5000 + "x", 1, "nested deeper than"),
        (NESTED, None, "once aliases are expanded"),
        ("- x\n" * (MAX_NODES + 1), None, "once aliases are expanded"),
        ("x" * 1_000_001, None, "larger than"),
        ("字" * 400_000, None, "larger than"),
    ],
)
def test_what_is_refused(text: str, line: int | None, part: str) -> None:
    """Bad syntax and whatever could do harm are one mistake with its line, never a traceback."""
    _, found = read_yaml(text)
    assert [p.line for p in found] == [line]
    assert part in found[0].render(None)


def test_a_version_1_2_directive_is_fine() -> None:
    """The one directive that changes nothing is accepted."""
    root, found = read_yaml("%YAML 1.2\n---\na: yes\n")
    assert root is not None
    assert (plain(root), found) == ({"a": "yes"}, [])


def test_a_percent_sign_in_a_text_is_no_directive() -> None:
    """Only lines before the document are directives."""
    root, found = read_yaml('a: "x\n% y"\n')
    assert root is not None
    assert (plain(root), found) == ({"a": "x % y"}, [])


@pytest.mark.parametrize("number", ["9" * 400, "9" * 4000, "9" * 5000, "-" + "9" * 4000, "1e999", ".inf", ".nan"])
def test_a_number_beyond_all_bounds_is_a_mistake_with_its_line(number: str) -> None:
    """However many digits a number has, it is told with line and path, never a traceback."""
    _, problems = read_yaml(f"a: 1\nb: {number}\n")
    assert [(p.line, p.path) for p in problems] == [(2, "$.b")]
    assert "is not a usable number" in problems[0].message
