"""From a published prompt to a rubric file that asks with exactly that prompt. Nothing of the file is executed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, RubricError, TemplateError, UnknownNameError
from evenhand.importing.holes import ALIASES, find_pair, holes_of, leads, positional, style_of
from evenhand.importing.reply import Asked, asked
from evenhand.importing.source import Source, read_source
from evenhand.importing.write import yaml_text
from evenhand.rubric.load import parse_rubric
from evenhand.rubric.model import Mode
from evenhand.rubric.templates import MAX_HOLES, NOTES, Style, split
from evenhand.rubric.yaml_tree import plain, read_yaml

_SHOWN = 5
_CJK = re.compile(r"[\u4e00-\u9fff]")
_PAIR = re.compile(
    r"\b(?:response|answer|assistant|model|output)s?\s+A\b|\btwo\s+(?:\w+\s+)?(?:responses|answers)\b|两个回答",
    re.IGNORECASE,
)
#: What `str.format` would fill with a conversion or a format: no hole of ours.
_FORMATTED = re.compile(r"\{[^\W\d]\w*(?:![rsa])?(?::[^{}\s]{1,20})?\}")
_SYSTEM = ("system", "system_prompt", "system_message")
#: A type name that was published with a slip -> the name in the data it goes with.
_MISSPELT = {"Descrpition": "Description"}
#: Layout of earlier turns in templates with a hole for them; the Chinese one is that of AlignMMBench.
_HISTORY = {
    "zh": {
        "heading": "       - **对话历史：**\n",
        "turn": "        【第 {n} 轮】\n\n        问: {user}\n\n        答: {assistant}\n\n",
    },
    "en": {"turn": "User: {user}\nAssistant: {assistant}\n"},
}


@dataclass(frozen=True, slots=True)
class Imported:
    """A rubric made from a published prompt.

    Attributes:
        text: The rubric file.
        notes: What was left out or assumed, for the user to check.
    """

    text: str
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The message to ask with, and what belongs to it."""

    place: str
    text: str
    style: Style
    holes: list[str]
    system: str
    answer: str
    notes: dict[str, str]
    names: dict[str, str]


def import_prompt(
    file: str | Path,
    *,
    name: str = "imported",
    mode: Mode | None = None,
    template: str | None = None,
    map: Mapping[str, str] | None = None,
    style: Style | None = None,
    strip: bool | None = None,
) -> Imported:
    """A rubric file whose messages are those of a published prompt, byte for byte.

    Args:
        file: Python assignments of texts and dicts of texts, or a text with ``{name}`` or ``{{name}}``. A text without
            holes becomes the system message; the item follows in the layout of our own rubrics.
        name: Name of the rubric.
        mode: score or compare; None finds out.
        template: Which text of a Python file to ask with, as NAME or NAME.key; None: the one that shows a response.
        map: Input of the rubric (or ``types``, the notes) -> hole that shows it, where the names don't tell.
        style: How the text is filled: format, plain or double; None finds out.
        strip: Whether space around the filled text is taken away; None: where a text of a Python file both begins and
            ends with space.

    Raises:
        InputError: the file can't be read, or is no prompt.
        RubricError: a Python file holds anything but literal assignments.
        TemplateError: no response is shown, or holes have no names.
        UnknownNameError: no such template or hole.
    """
    source = read_source(file)
    given = {hole: field for field, hole in (map or {}).items()}
    chosen = _choose(source, template, style, given)
    unknown = [hole for hole in given if hole not in chosen.holes]
    if unknown:
        raise UnknownNameError("hole", unknown[0], chosen.holes)
    seen = "".join(text for text, _ in split(chosen.text, chosen.style)) if chosen.holes else chosen.text
    if mode is None:
        pair = find_pair(chosen.holes) or "response_a" in given.values()
        mode = "compare" if pair or (not chosen.holes and _PAIR.search(seen)) else "score"
    ask = asked(seen, compare=mode == "compare", whole=bool(chosen.holes), answer=chosen.answer)
    notes = list(ask.guessed)
    if source.title:
        notes.insert(0, f"left out: the title {source.title!r}")
    if left := sorted(set(_FORMATTED.findall(seen))):
        notes.append(f"left as text, not filled: {', '.join(left[:_SHOWN])}{', ...' if left[_SHOWN:] else ''}")
    language = "zh" if len(_CJK.findall(seen)) * 5 > len(seen) else "en"
    data: dict[str, Any] = {"rubric": name, "mode": mode, "language": language}
    if chosen.holes:
        data |= _templated(chosen, mode, given, ask, strip, source.python, language)
    else:
        data |= _described(chosen, mode, ask)
    return Imported(_written(data, str(file)), tuple(notes))


def _choose(source: Source, wanted: str | None, style: Style | None, given: Mapping[str, str]) -> _Chosen:
    """The text to ask with: the one named, else the only one that shows a response, else the only one with holes."""
    styles = {place: style or style_of(text, python=source.python) for place, text in source.texts.items()}
    holes = {place: holes_of(text, styles[place]) for place, text in source.texts.items()}
    if not any(text.strip() for text in source.texts.values()):
        raise InputError(f"{source.file} holds no text", hint="name a file of prompts")
    if wanted is not None and wanted not in source.texts:
        raise UnknownNameError("template", wanted, [place for place in source.texts if place])
    showing = [place for place, found in holes.items() if _shows_response(found, given)]
    able = [wanted] if wanted is not None else showing or [place for place in holes if holes[place]]
    if not able:
        nameless = [place for place, text in source.texts.items() if positional(text)]
        if nameless and source.python:
            raise TemplateError(
                f"{source.file}: the holes of {nameless[0]} have no names", hint="write {question}, {answer} for {}"
            )
        able = list(source.texts)
    if len(able) > 1:
        hint = f"say which one with --template: {', '.join(able[:12])}"
        raise TemplateError(f"{source.file} holds {len(able)} templates", hint=hint)
    place = able[0]
    if len(holes[place]) > MAX_HOLES:
        message = f"{f'{place} of ' if place else ''}{source.file} has {len(holes[place])} different holes"
        raise TemplateError(
            f"{message}, more than {MAX_HOLES}", hint="show fewer inputs, or double braces that are no holes"
        )
    notes, names = _type_notes(source)
    parent = place.rpartition(".")[0]
    beside = {key.rpartition(".")[2].lower(): key for key in source.texts if key.rpartition(".")[0] == parent}
    system = next((source.texts[beside[key]] for key in _SYSTEM if key in beside and beside[key] != place), "")
    answers = [t for p, t in source.texts.items() if p != place and {"score", "reason"} == set(holes[p])]
    answer = answers[0].strip() if len(answers) == 1 and styles[place] == "format" else ""
    return _Chosen(place, source.texts[place], styles[place], holes[place], system, answer, notes, names)


def _shows_response(holes: list[str], given: Mapping[str, str]) -> bool:
    found = set(leads(holes, given, notes=False, compare=False).values())
    return bool(found & {"answer", "response_a", "response_b"} or find_pair(holes))


def _type_notes(source: Source) -> tuple[dict[str, str], dict[str, str]]:
    """Group -> note, and type name -> group: two tables of a file, the values of one being keys of the other."""
    for place, names in source.tables.items():
        for other, notes in source.tables.items():
            if place != other and set(names.values()) <= set(notes):
                used = {group: notes[group] for group in notes if group in names.values()}
                slips = {right: names[slip] for slip, right in _MISSPELT.items() if slip in names}
                return used, {**slips, **names}
    return {}, {}


def _templated(
    chosen: _Chosen,
    mode: Mode,
    given: Mapping[str, str],
    ask: Asked,
    strip: bool | None,
    python: bool,
    language: str,
) -> dict[str, Any]:
    """Inputs and messages of a prompt with holes."""
    system_style = style_of(chosen.system, python=python)
    system_holes = holes_of(chosen.system, system_style)
    every = dict.fromkeys([*chosen.holes, *system_holes])
    shown = leads(every, given, notes=bool(chosen.notes), compare=mode == "compare")
    responses = ["response_a", "response_b"] if mode == "compare" else ["answer"]
    if mode == "score" and "answer" not in shown.values():
        raise TemplateError(
            f"none of the holes {', '.join(chosen.holes)} is known to show the response",
            hint="say which one with --map answer=HOLE",
        )
    if mode == "compare" and not set(responses) <= set(shown.values()):
        raise TemplateError(
            f"no two of the holes {', '.join(chosen.holes)} are known to show the responses",
            hint="say which with --map response_a=HOLE,response_b=HOLE",
        )
    fields = [name for name in dict.fromkeys(shown.values()) if name != NOTES]
    typed = bool(chosen.notes) and NOTES in shown.values()
    if typed and "type" not in fields:
        fields.append("type")
    asked_names = {criterion["name"] for criterion in ask.criteria}
    item: dict[str, Any] = {"required": {name: "text" for name in fields if name != "history"}}
    if "history" in fields:
        item["optional"] = {"history": "turns"}
    item |= {"aliases": _aliases(fields, shown), "responses": responses}
    clash = asked_names & set(fields)
    if clash:
        raise TemplateError(f"{min(clash)} is both shown and asked for", hint=f"--map {min(clash)}_shown={min(clash)}")
    message: dict[str, Any] = {"role": "user", "template": chosen.text, "style": chosen.style}
    space = chosen.text[:1].isspace() and chosen.text[-1:].isspace()
    if strip if strip is not None else python and space:
        message["strip"] = True
    messages = [message | _renamed(chosen.holes, shown)]
    if chosen.system:
        system = {"role": "system", "template": chosen.system, "style": system_style}
        messages.insert(0, system | _renamed(system_holes, shown))
    data = {"item": item, "scales": ask.scales, "criteria": ask.criteria, "output": ask.output}
    if typed:
        data |= {
            "options": {"fill": {"default": "given", "values": ["given", "group"]}},
            "types": {
                "field": "type",
                "names": chosen.names,
                "notes": {group: [note] for group, note in chosen.notes.items()},
            },
            "aggregate": {"per": ["type"], "means": ["item", "task"]},
        }
    if "history" in fields:
        data["history"] = _HISTORY[language]
    return {key: value for key, value in data.items() if value} | {"prompt": messages}


def _renamed(holes: list[str], shown: Mapping[str, str]) -> dict[str, Any]:
    """The holes that don't have the name of their input."""
    renamed = {hole: shown[hole] for hole in holes if hole != shown[hole]}
    return {"holes": renamed} if renamed else {}


def _described(chosen: _Chosen, mode: Mode, ask: Asked) -> dict[str, Any]:
    """A prompt without holes is the system message; the item and the form of the reply follow."""
    required = ["prompt", "response_a", "response_b"] if mode == "compare" else ["question", "answer"]
    aliases = {"question": "prompt"} if mode == "compare" else {}
    item = {"required": dict.fromkeys(required, "text"), "aliases": aliases | _aliases(required, {})}
    data = {"item": item, "scales": ask.scales, "criteria": ask.criteria, "output": ask.output}
    messages = [
        {"role": "system", "template": chosen.text, "style": "plain"},
        {"role": "user", "blocks": ["item", "output"]},
    ]
    return {key: value for key, value in data.items() if value} | {"prompt": messages}


def _aliases(fields: list[str], shown: Mapping[str, str]) -> dict[str, str]:
    aliases = {hole: name for hole, name in shown.items() if hole not in fields and name in fields}
    for name, others in ALIASES.items():
        if name in fields:
            aliases |= {other: name for other in others if other not in fields and other not in aliases}
    return aliases | {"question_id": "id"}


def _written(data: dict[str, Any], file: str) -> str:
    """The file's text, proved to hold exactly the data."""
    name = " ".join(Path(file).name.split())
    head = f"# The messages are those of {name}. Check the scales and fields: a prompt need not tell them all.\n"
    for blocks in (True, False):
        text = head + yaml_text(data, blocks=blocks)
        root, _ = read_yaml(text)
        if root is not None and plain(root) == data:
            try:
                parse_rubric(text, file=None)
            except RubricError as error:
                raise InputError(f"{file} makes no rubric: {error.message}", hint="rename its holes or keys") from None
            return text
    raise InputError(f"{file} holds characters that a rubric file can't", hint="save it as plain UTF-8 text")
