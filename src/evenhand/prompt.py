"""From a rubric and an item to chat messages: block by block, static first, judged text fenced. Pure.

Judged text is hostile. It is put in once, never read as a template, between two lines that carry a mark its author
can't predict, and what a chat template would take for structure is broken by a space: ``<|im_start|>`` is shown as
``< |im_start|>``. All else of it is kept letter for letter.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

import evenhand.wording as wording
from evenhand._canon import keyed_mark
from evenhand._kept import kept
from evenhand.item_values import Image
from evenhand.rubric.model import Form, ItemField, OutputField, Rubric, Template
from evenhand.verbatim import filled, laid_out, shown_type
from evenhand.wording import Words

_REPLY_SHOWN = 4000
#: Found at the first character of a chat token; looking ahead keeps tokens that begin within others in sight.
_CHAT_TOKEN = re.compile(
    r"<(?=[|｜][^\s<>]{1,80}[|｜]>|/?(?:s|bos|eos|pad|unk|(?:start|end)_of_turn|im_start|im_end|think|thinking)>|</?SYS>>)"
    r"|\[(?=/?(?:INST|THINK|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])|◁(?=/?think▷)"
)
Chat = tuple[dict[str, Any], ...]


class Prompt(Struct, frozen=True, gc=False):
    """The messages of one question.

    Attributes:
        messages: Chat messages, each {"role": ..., "content": text}; with images the last of the user's has a list of
            parts: its text, then each image, see `evenhand.backend.Request`.
        static_messages: How many leading messages hold nothing of the item: the same for all items that are asked
            for the same fields.
    """

    messages: Chat
    static_messages: int


def mark_for(key: bytes, item_id: str, rubric: str) -> str:
    """The fence mark of one item under one rubric (its name or digest).

    Four letters: the same for the same item, so that caches hold, and not to be guessed without the run's key. A guess
    would gain nothing: `neutralise` breaks the mark wherever judged text holds it.
    """
    return keyed_mark(key, item_id, rubric)


def neutralise(text: str, mark: str = "") -> str:
    """Text without power over the prompt: a space after the first character of each chat token and each mark.

    Chat tokens are ``<|...|>`` (also with full-width bars), ``<s>``, ``<bos>``, ``<start_of_turn>``, ``<<SYS>>``,
    ``[INST]``, ``</think>`` and their kin. Role headers in words ("Human:") are plain text and stay. The text returned
    holds neither a chat token nor the mark.
    """
    if "<" in text or "[" in text or "◁" in text:
        text = _CHAT_TOKEN.sub(lambda found: f"{found[0]} ", text)
    while mark and mark in text:  # again, for marks that overlap
        text = text.replace(mark, f"{mark[0]} {mark[1:]}")
    return text


def render(
    rubric: Rubric, item: Mapping[str, Any], *, fields: tuple[OutputField, ...], form: Form, mark: str
) -> Prompt:
    """The messages that ask for some fields of an item's verdict.

    Args:
        rubric: The contract.
        item: Item field -> value, in presentation order. Optional fields that are missing or blank are left out;
            a missing or blank response is shown as such.
        fields: Output fields to ask for, in order; fields of ``rubric.output``.
        form: Output form, which decides how the output block is worded.
        mark: Fence mark from `mark_for`.
    """
    plan = _plan_of(rubric, fields, form)
    words = wording.of(rubric.language)
    messages: list[dict[str, Any]] = []
    for n, (role, blocks) in enumerate(plan.messages):
        if n < plan.static_messages:
            messages.append(plan.ready[n])
            continue
        parts = [b.text if b.static else _item_block(rubric, b, item, mark, words) for b in blocks]
        messages.append({"role": role, "content": "\n\n".join(filter(None, parts))})
    images = _image_parts(rubric, item, words) if rubric.images_shown else []
    if not images:
        return Prompt(tuple(messages), plan.static_messages)
    last = max((n for n, message in enumerate(messages) if message["role"] == "user"), default=len(messages) - 1)
    messages[last] = {**messages[last], "content": [{"type": "text", "text": messages[last]["content"]}, *images]}
    return Prompt(tuple(messages), min(plan.static_messages, last))


def _image_parts(rubric: Rubric, item: Mapping[str, Any], words: Words) -> list[dict[str, Any]]:
    """The images of each field under its heading."""
    parts: list[dict[str, Any]] = []
    for field in rubric.item.fields:
        images = [v for v in item.get(field.name) or () if isinstance(v, Image)] if field.type == "images" else []
        if images:
            heading = field.label or field.name.replace("_", " ").capitalize()
            parts += [{"type": "text", "text": _with_colon(heading, words)}, *map(_image_part, images)]
    return parts


def _image_part(image: Image) -> dict[str, Any]:
    if not image.sha256:
        return {"type": "image_url", "image_url": {"url": image.reference}}
    told = {"name": image.name, "media_type": image.media_type, "bytes": image.bytes, "sha256": image.sha256}
    return {"type": "image", **told}


def re_ask(messages: Chat, reply_text: str, complaints: Sequence[str], language: str) -> Chat:
    """The conversation that asks once more: the former reply (cut to 4,000 characters), and what was wrong with it."""
    words = wording.of(language)
    reply = neutralise(reply_text[:_REPLY_SHOWN]) + ("..." if len(reply_text) > _REPLY_SHOWN else "")
    listed = "\n".join(f"- {neutralise(complaint)}" for complaint in complaints)
    return (
        *messages,
        {"role": "assistant", "content": reply if reply.strip() else words.no_reply},
        {"role": "user", "content": f"{words.re_ask}\n{listed}\n{words.again}"},
    )


class _Shown(Struct, frozen=True):
    """A field of the item in a prompt; ``as_it_is``: a text of it is not worded."""

    field: ItemField
    heading: str
    response: bool
    judged: bool
    as_it_is: bool


class _Block(Struct, frozen=True):
    """A block of a message: its text; or fields of the item, a template to fill, or neither for the notes on types."""

    text: str
    static: bool
    template: Template | None = None
    fields: tuple[_Shown, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Plan:
    """What is the same for all items: (role, blocks) of each message, and the leading messages that are static.

    Those are the very same objects for all items, so that what is made of them can be kept.
    """

    messages: tuple[tuple[str, tuple[_Block, ...]], ...]
    ready: Chat

    @property
    def static_messages(self) -> int:
        return len(self.ready)


_plans = kept(lambda _: kept(lambda _: dict[Form, _Plan]()))


def _plan_of(rubric: Rubric, fields: tuple[OutputField, ...], form: Form) -> _Plan:
    """The plan, made once for the very tuple of fields, which is the same for most items."""
    known = _plans(rubric)(fields)
    if form not in known:
        known[form] = _plan(rubric, fields, form)
    return known[form]


def _plan(rubric: Rubric, fields: tuple[OutputField, ...], form: Form) -> _Plan:
    messages: list[tuple[str, list[_Block]]] = []
    static = 0
    for message in rubric.prompt:
        template = message.template
        blocks = [
            _of_item(rubric, name) or _Block(_static_block(rubric, name, fields, form), True) for name in message.blocks
        ]
        if template is not None:
            blocks = [_Block("" if template.names else filled(rubric, template, {}), not template.names, template)]
        if static == len(messages) and all(block.static for block in blocks):
            static += 1
        messages.append((message.role, blocks))
    own = [n for n, message in enumerate(rubric.prompt) if message.template is None]  # a template stays as it is
    fencing = [n for n in own if not all(block.static for block in messages[n][1])]
    if rubric.item.judged and fencing:
        told = _Block(wording.of(rubric.language).fenced, True)
        before_item = messages[static - 1 if static - 1 in own else fencing[0]][1]
        before_item.insert(next((n for n, block in enumerate(before_item) if not block.static), len(before_item)), told)
    ready = (
        {"role": role, "content": "\n\n".join(b.text for b in blocks if b.text)} for role, blocks in messages[:static]
    )
    return _Plan(tuple((role, tuple(blocks)) for role, blocks in messages), tuple(ready))


def _of_item(rubric: Rubric, name: str) -> _Block | None:
    """A block that depends on the item: all that is given of it, its type's notes, or one field."""
    if name == "types":
        return _Block("", False)
    field = None if name in rubric.texts else rubric.item.field(name)
    shown = _fields_shown(rubric) if name == "item" else None if field is None else [field]
    return None if shown is None else _Block("", False, fields=tuple(_shown(rubric, one) for one in shown))


def _shown(rubric: Rubric, field: ItemField) -> _Shown:
    names, types = rubric.item, rubric.types
    return _Shown(
        field,
        _heading(rubric, field),
        response=field.name in names.responses,
        judged=field.name in names.judged,
        as_it_is=types is None or field.name != types.item_field,
    )


def _static_block(rubric: Rubric, name: str, fields: tuple[OutputField, ...], form: Form) -> str:
    words = wording.of(rubric.language)
    if name == "criteria":
        return wording.criteria(rubric, words)
    if name.startswith("scale:"):
        return wording.named_scale(rubric, name.removeprefix("scale:"), fields, words)
    if name == "general":
        asked = {None, *(field.name for field in fields)}
        told = (instruction.text for instruction in rubric.general if instruction.asked in asked)
        return "\n".join(f"{n}. {text}" for n, text in enumerate(told, 1))
    if name == "rules":
        return wording.rules(rubric, words)
    if name == "output":
        return wording.output(rubric, fields, form, words)
    return rubric.texts[name]


def _item_block(rubric: Rubric, block: _Block, item: Mapping[str, Any], mark: str, words: Words) -> str:
    if block.fields is not None:
        return "\n\n".join(filter(None, [_item_field(rubric, shown, item, mark, words) for shown in block.fields]))
    if block.template is not None:
        return filled(rubric, block.template, item)
    return _type_notes(rubric, item, words)


def _type_notes(rubric: Rubric, item: Mapping[str, Any], words: Words) -> str:
    """The notes for this item's type of question; nothing where no type is given.

    A type that the rubric doesn't know never gets here: `evenhand.item.check_row` refuses it.
    """
    types = rubric.types
    given = item.get(types.item_field) if types is not None else None
    if types is None or not isinstance(given, str) or not given.strip():
        return ""
    lines = [words.type_notes.format(type=shown_type(rubric, given))]
    for n, note in enumerate(types.notes.get(types.names[given], ()), 1):
        lines.append(f"{n}. {note.text}")
        if note.example:
            score = "" if note.score is None else words.scored.format(score=note.score)
            lines.append(f"   {words.example}{score}{words.colon}{note.example}")
    return "\n".join(lines)


def _fields_shown(rubric: Rubric) -> list[ItemField]:
    """All that is given of the item, responses last; not the flags the judge is to find out."""
    answers = rubric.item.responses
    shown = [
        field
        for field in rubric.item.fields
        if field.name not in answers and not (field.type in ("bool", "number") and rubric.output.field(field.name))
    ]
    return [*shown, *(field for field in rubric.item.fields if field.name in answers)]


def _item_field(rubric: Rubric, shown: _Shown, item: Mapping[str, Any], mark: str, words: Words) -> str:
    """A heading and the field's value, fenced where it is to be judged; "" where there is nothing to show."""
    field = shown.field
    value = item.get(field.name)
    if shown.as_it_is and type(value) is str and (value.strip() or not shown.response):
        text = neutralise(value, mark)
    elif field.type == "turns":
        text = _history(rubric, value or (), words, mark)
        if not text:
            return rubric.history.empty
    elif shown.response and (value is None or not str(value).strip()):
        return f"{shown.heading}\n{words.no_response if value is None else words.blank}"
    elif value is None or field.type == "images":
        return ""
    else:
        text = neutralise(_as_text(rubric, field, value, words), mark)
    if not text.strip():
        return f"{shown.heading}\n{words.blank}" if field.required else ""
    return f"{shown.heading}\n<<<{mark}\n{text}\n{mark}>>>" if shown.judged else f"{shown.heading}\n{text}"


def _heading(rubric: Rubric, field: ItemField) -> str:
    words = wording.of(rubric.language)
    heading = field.label or field.name.replace("_", " ").capitalize()
    if rubric.mode == "compare" and field.name in rubric.item.responses:
        # the responses of a pair have neutral names, whatever their columns are called
        heading = words.slot.format(slot="AB"[rubric.item.responses.index(field.name)])
    if field.type == "turns":
        heading = rubric.history.heading or heading
    return _with_colon(heading, words)


def _with_colon(heading: str, words: Words) -> str:
    return heading.rstrip(":： ") + words.colon.rstrip()


def _as_text(rubric: Rubric, field: ItemField, value: Any, words: Words) -> str:
    if isinstance(value, bool):
        return words.yes if value else words.no
    if rubric.types is not None and field.name == rubric.types.item_field:
        return shown_type(rubric, str(value))
    return str(value)


def _history(rubric: Rubric, turns: Sequence[Any], words: Words, mark: str) -> str:
    layout = rubric.history.turn or words.turn
    return "\n\n".join(laid_out(layout, turns, functools.partial(neutralise, mark=mark)))
