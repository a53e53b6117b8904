"""From a rubric file to a concrete `Rubric`: all mistakes at once, each with its line and remedy."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from evenhand._canon import digest
from evenhand.errors import InputError, Problem, RubricError, UnknownNameError
from evenhand.rubric.asking import read_ask
from evenhand.rubric.criteria import read_criteria, read_scales
from evenhand.rubric.fields import check_given, read_output
from evenhand.rubric.format import RUBRIC
from evenhand.rubric.items import read_history, read_images, read_item, read_types, with_choices
from evenhand.rubric.layout import read_aggregate, read_general, read_preference, read_prompt, read_texts
from evenhand.rubric.logic import TYPE_NAMES, CheckExpression, LogicReader
from evenhand.rubric.marks import check_requirements
from evenhand.rubric.model import Rubric
from evenhand.rubric.options import Context, choose, read_options
from evenhand.rubric.problems import Problems
from evenhand.rubric.shapes import check
from evenhand.rubric.yaml_tree import MAX_BYTES, Node, read_yaml
from evenhand.scale import Value

_SUFFIXES = (".yaml", ".yml")


def load_rubric(
    name_or_path: str | Path,
    options: Mapping[str, Value] | None = None,
    *,
    check_expression: CheckExpression | None = None,
) -> Rubric:
    """A built-in rubric or a rubric file, for chosen options.

    Args:
        name_or_path: A built-in name, or a path.
        options: Option -> value, or the value as text; the others are at their default.
        check_expression: Checks the expressions of rules; None leaves them unchecked.

    Raises:
        RubricError: the file has mistakes; carries all of them.
        UnknownNameError: no such rubric, option or value of an option; lists what exists.
    """
    text, file = rubric_text(name_or_path)
    return parse_rubric(text, file=file, options=options, check_expression=check_expression)


def parse_rubric(
    text: str,
    *,
    file: str | None,
    options: Mapping[str, Value] | None = None,
    check_expression: CheckExpression | None = None,
) -> Rubric:
    """A rubric from the text of its file; see `load_rubric`.

    Args:
        text: The YAML text.
        file: Name of the file, for messages.
        options: Option -> value.
        check_expression: Checks the expressions of rules; None leaves them unchecked.
    """
    problems = Problems()
    root = read_structure(text, problems)
    if root is None:
        raise RubricError(problems.sorted(), file=file)
    declared = read_options(root, problems)
    # a file with mistakes is told first; its options may not be as meant
    chosen = choose(declared, {} if problems else options or {})
    rubric = build(Context(root, problems, declared, chosen), text, check_expression)
    if problems:
        raise RubricError(problems.sorted(), file=file)
    return rubric


def builtin_names() -> list[str]:
    """Names of the built-in rubrics, sorted."""
    names = (entry.name for entry in files("evenhand.rubrics").iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def expression_names(rubric: Rubric) -> set[str]:
    """The names that rules of a rubric may use: inputs, output fields and derived values."""
    names = {field.name for field in rubric.item.fields} | {field.name for field in rubric.output.fields}
    return names | set(rubric.let) | set(TYPE_NAMES if rubric.types is not None else ())


def rubric_text(name_or_path: str | Path) -> tuple[str, str]:
    """Text and file name of a built-in rubric or a file.

    Raises:
        RubricError: the file is too large or is no UTF-8 text.
        UnknownNameError: neither a built-in name nor a file.
    """
    names = builtin_names()
    if name_or_path in names:
        file = f"{name_or_path}.yaml"
        return (files("evenhand.rubrics") / file).read_text(encoding="utf-8"), file
    path = Path(name_or_path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        hint = "no such file" if path.suffix in _SUFFIXES else _beside(path)
        raise UnknownNameError("rubric", str(name_or_path), names, hint=hint) from None
    except OSError as error:
        raise InputError(f"can't read rubric {path}: {error.strerror or error}") from None
    try:
        return data.decode("utf-8-sig"), str(path)
    except UnicodeDecodeError as error:
        if len(data) > MAX_BYTES:
            return data.decode("utf-8-sig", "replace"), str(path)
        line = data.count(b"\n", 0, error.start) + 1
        problem = Problem(line, "", "not UTF-8 text", "save the file as UTF-8")
        raise RubricError([problem], file=str(path)) from None


def _beside(path: Path) -> str | None:
    """A hint at the file that was meant, where only its ending is missing."""
    for suffix in sorted(_SUFFIXES, reverse=True):
        with contextlib.suppress(OSError, ValueError):
            if (file := path.with_name(path.name + suffix)).is_file():
                return f"did you mean the file {file}?"
    return None


def read_structure(text: str, problems: Problems) -> Node | None:
    """The tree of a file with its structure and requirement marks checked; None when there is nothing to go on."""
    root, mistakes = _tree(text)
    for mistake in mistakes:
        problems.at(mistake.line, mistake.path, mistake.message, mistake.remedy)
    if root is None:
        return None
    checked = check(root, RUBRIC, problems)
    if checked is not None:
        check_requirements(checked, text, problems)
    return checked


@lru_cache(maxsize=4)
def _tree(text: str) -> tuple[Node | None, list[Problem]]:
    """Read once: a command meets its rubric again in the run that it made."""
    return read_yaml(text)


def build(context: Context, text: str, check_expression: CheckExpression | None) -> Rubric:
    """The concrete rubric; complete only if no mistake was noted."""
    root = context.root
    item = read_item(context)
    scales = read_scales(context)
    criteria = read_criteria(context, scales)
    types = read_types(context, item, [criterion.scale for criterion in criteria])
    item = with_choices(item, types)
    output = read_output(context, scales, criteria)
    check_given(context, item, output)
    texts = read_texts(context, item)
    typed = root.get("types") is not None
    logic = LogicReader(context, item, output, criteria, typed=typed, check=check_expression).read()
    version = root.get("version")
    return Rubric(
        name=root.text("rubric"),
        version=int(version.value) if version is not None else 1,
        mode=context.mode,
        item=item,
        criteria=criteria,
        output=output,
        prompt=read_prompt(context, item, texts, scales),
        language=context.language,
        title=root.text("title"),
        scales=scales,
        presets=logic.presets,
        let=logic.let,
        rules=logic.rules,
        types=types,
        history=read_history(context),
        images_shown=read_images(context, item),
        texts=texts,
        general=read_general(context, output),
        ask=read_ask(context, criteria),
        aggregate=read_aggregate(context, item, criteria),
        options=context.options,
        chosen=context.chosen,
        preference=read_preference(context, output) if context.mode == "compare" else None,
        source=text,
        digest=digest({"source": text, "options": dict(context.chosen)}),
    )
