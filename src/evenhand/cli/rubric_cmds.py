"""``evenhand rubric``: new, import, list, show, lint, schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import options
from evenhand.cli.output import say

if TYPE_CHECKING:
    from evenhand.rubric.model import Rubric

MISTAKES = 2

_variant = click.option("--variant", multiple=True, metavar="NAME=VALUE,...", help="The rubric's own options.")


@click.group("rubric")
def rubric_group() -> None:
    """Rubrics: start one, list, show, lint, and derive schemas.

    Example: evenhand rubric show doc-qa
    """


@rubric_group.command("new")
@click.argument("name")
@click.option("--mode", type=click.Choice(["score", "compare"]), default="score", show_default=True)
@click.option("--out", metavar="FILE", help="File to write  [default: NAME.yaml]")
def new_rubric(name: str, mode: str, out: str | None) -> None:
    """Write a small commented rubric to start from; never overwrites.

    Example: evenhand rubric new my-rubric --mode compare --out /tmp/my-rubric.yaml
    """
    from evenhand.rubric.starter import starter

    _write_new(Path(out or f"{name}.yaml"), starter(name, mode))


@rubric_group.command("import")
@click.argument("file")
@click.option("--out", required=True, metavar="R.yaml", help="File to write; it must not exist.")
@click.option("--name", metavar="NAME", help="Name of the rubric  [default: from R.yaml]")
@click.option("--mode", type=click.Choice(["score", "compare"]), help="Found out by default.")
@click.option("--template", metavar="PLACE", help="Which text of a Python file to ask with: NAME or NAME.key.")
@click.option("--map", "mapping", multiple=True, metavar="FIELD=HOLE", help="Which hole shows an input.")
@click.option(
    "--style", type=click.Choice(["format", "plain", "double"]), help="How it is filled; found out by default."
)
@click.option("--strip/--no-strip", default=None, help="Take space around the filled text away.")
def import_rubric(file: str, out: str, name: str | None, mapping: tuple[str, ...], **given: Any) -> None:
    """Write a rubric that asks with a published prompt, byte for byte.

    FILE is Python that holds nothing but literal assignments, or a text with {placeholders} or {{placeholders}}.
    Nothing in it is executed.

    Example: evenhand rubric import examples/prompts/plain-language.txt --out /tmp/plain-language.yaml
    """
    import re

    from evenhand.importing import import_prompt

    path = Path(out)
    name = name or "-".join(re.findall("[a-z0-9]+", path.stem.lower())) or "imported"
    done = import_prompt(file, name=name, map=options.pairs(mapping, "--map"), **given)
    _write_new(path, done.text)
    for note in done.notes:
        click.echo(note, err=True)


def _write_new(path: Path, text: str) -> None:
    """Write a file that is not there yet, and print its name."""
    from evenhand.errors import InputError

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise InputError(f"{path} exists already", hint="give another name or --out") from None
    except OSError as error:
        raise InputError(f"can't write {path}: {error.strerror or error}") from None
    say(path)


@rubric_group.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON line for each rubric.")
def list_rubrics(as_json: bool) -> None:
    """Show the built-in rubrics.

    Example: evenhand rubric list
    """
    from evenhand.rubric.load import builtin_names, load_rubric

    for rubric in map(load_rubric, builtin_names()):
        facts = {"name": rubric.name, "mode": rubric.mode, "language": rubric.language, "title": rubric.title}
        if as_json:
            say(json.dumps(facts, ensure_ascii=False))
        else:
            say("{name:<20} {mode:<8} {language:<3} {title}".format(**facts))


@rubric_group.command("show")
@click.argument("rubric")
@_variant
@options.json_option
def show_rubric(rubric: str, variant: tuple[str, ...], as_json: bool) -> None:
    """Show what RUBRIC (a built-in name or a file) asks, on which scales and under which rules.

    Example: evenhand rubric show doc-qa --variant scale=0-3
    """
    from evenhand.rubric.summary import summary

    facts = summary(_load(rubric, variant))
    if as_json:
        say(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        say("\n".join(_told(facts)))


@rubric_group.command("lint")
@click.argument("rubrics", metavar="FILE_OR_NAME...", nargs=-1, required=True)
@click.pass_context
def lint_rubrics(ctx: click.Context, rubrics: tuple[str, ...]) -> None:
    """Print every mistake of rubric files, in all variants; exit with 2 if there is one.

    Example: evenhand rubric lint doc-qa hhh
    """
    found = False
    for name in rubrics:
        lines = _mistakes(name)
        found = found or bool(lines)
        say("\n".join(lines or [f"{name}: ok"]))
    if found:
        ctx.exit(MISTAKES)


@rubric_group.command("schema")
@click.argument("rubric", required=False)
@click.option("--tool", is_flag=True, help="The function definition of the tool form.")
@click.option("--format", "file_format", is_flag=True, help="The format of rubric files itself; needs no RUBRIC.")
@_variant
def rubric_schema(rubric: str | None, tool: bool, file_format: bool, variant: tuple[str, ...]) -> None:
    """Print the JSON schema of a reply under RUBRIC.

    Example: evenhand rubric schema doc-qa --tool
    """
    from evenhand.rubric import schema

    if tool and file_format:
        raise click.UsageError("--tool and --format don't go together")
    if file_format:
        found = schema.rubric_format_schema()
    elif rubric is None:
        raise click.UsageError("name a rubric, or give --format")
    else:
        concrete = _load(rubric, variant)
        found = schema.tool_definition(concrete) if tool else schema.reply_schema(concrete)
    say(json.dumps(found, ensure_ascii=False, indent=2))


def _load(name: str, variant: tuple[str, ...]) -> Rubric:
    from evenhand.rubric.load import load_rubric
    from evenhand.rules import check_expression

    return load_rubric(name, options.variant(variant), check_expression=check_expression)


def _mistakes(name: str) -> list[str]:
    from evenhand.errors import RubricError
    from evenhand.rubric.lint import lint
    from evenhand.rubric.load import rubric_text
    from evenhand.rules import check_expression

    try:
        text, file = rubric_text(name)
    except RubricError as error:
        return [problem.render(error.file) for problem in error.problems]
    return [problem.render(file) for problem in lint(text, check_expression=check_expression)]


def _told(facts: dict[str, Any]) -> list[str]:
    """A summary as lines for a person."""
    head = f"{facts['name']}: {facts['title']}" if facts["title"] else facts["name"]
    lines = [head, f"mode {facts['mode']}, language {facts['language']}, version {facts['version']}", "", "inputs"]
    for field in facts["inputs"]:
        traits = ["required" if field["required"] else "optional"]
        traits += [trait for trait in ("response", "judged") if field[trait]]
        lines.append(f"  {field['name']}: {field['type']}, {', '.join(traits)}")
    lines += ["", "criteria"]
    for criterion in facts["criteria"]:
        weight = "" if criterion["weight"] is None else f" (weight {criterion['weight']:g})"
        lines += [f"  {criterion['name']}{weight}: {criterion['text']}", f"    {_scale(criterion['scale'])}"]
        lines += [f"      {label}: {text}" for label, text in criterion["scale"]["anchors"].items()]
        if criterion["examples"]:
            lines.append(f"    {criterion['examples']} worked examples")
    lines += ["", f"output ({', '.join(facts['forms'])})"]
    for field in facts["fields"]:
        kind = _scale(field["scale"]) if "scale" in field else field["kind"]
        lines.append(f"  {field['name']}: {kind}{'' if field['required'] else ', may be left out'}")
    if facts["preference"]:
        lines.append(f"  preferred side: {facts['preference']}")
    lines += ["", f"rules: {len(facts['rules'])}"]
    lines += [f"  {rule['id']} ({rule['severity']})" for rule in facts["rules"]]
    if facts["options"]:
        lines += ["", "options"]
    for option in facts["options"]:
        values = ", ".join(_word(value) for value in option["values"])
        lines.append(f"  {option['name']}={_word(option['value'])} (values: {values})")
    return lines


def _scale(scale: dict[str, Any]) -> str:
    if "values" in scale:
        return f"{scale['level']}: {', '.join(_word(value) for value in scale['values'])}"
    whole = "" if scale["integer"] else ", fractions allowed"
    return f"{scale['level']}: {scale['min']} to {scale['max']}{whole}"


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
