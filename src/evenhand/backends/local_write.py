"""Write an answer field by field: keys are given, values are the model's.

The model is asked only where it has a choice. Keys and punctuation are put there by us, which takes a
fraction of the time, makes every answer legal JSON, and gives each value a place of its own where its
probabilities can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from evenhand.backends.local_choice import Option, choose
from evenhand.backends.local_engine import Alternative, Completion
from evenhand.backends.local_grammar import TEXT_REST, list_value, number, one_of
from evenhand.rubric.model import OutputField
from evenhand.scale import Value
from evenhand.verdict import Distribution

#: Most tokens of one text, of one list, and of any other value.
TEXT_TOKENS = 128
LIST_TOKENS = 1024
VALUE_TOKENS = 64


class Writer(Protocol):
    """A model after a question: what it would write next."""

    #: A number is a token of its own, apart from the space before it.
    digits_apart: bool

    def tokens(self, text: str) -> tuple[int, ...]:
        """Tokens of a piece of the answer."""
        ...

    def next(self, answer: Sequence[int]) -> Sequence[Alternative]:
        """The likeliest tokens after the answer so far."""
        ...

    def go_on(self, answer: Sequence[int], grammar: str, limit: int) -> Completion:
        """What the model writes after the answer so far, bound by a grammar."""
        ...


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to one question.

    Attributes:
        text: A JSON object; its beginning only when ``finish`` is "length".
        finish: "stop" or "length".
        tokens: How many tokens it has.
        distributions: Field name -> probabilities over its legal values.
    """

    text: str
    finish: str
    tokens: int
    distributions: dict[str, Distribution]


def room(fields: Sequence[OutputField]) -> int:
    """Tokens to keep free for an answer."""
    longest = {"text": TEXT_TOKENS, "list": LIST_TOKENS}
    return sum(longest.get(f.kind, VALUE_TOKENS) + 16 for f in fields) + 16


def opening(fields: Sequence[OutputField], *, digits_apart: bool) -> str:
    """The beginning of every answer to these fields, up to the first choice of the model."""
    return _key(fields[0], first=True) + _lead(fields[0], digits_apart=digits_apart)


def write(fields: Sequence[OutputField], model: Writer, *, max_tokens: int | None = None) -> Answer:
    """Have a model fill in the fields, in order.

    Args:
        fields: The fields asked, at least one.
        model: The model after the question.
        max_tokens: Most tokens of the answer; None for no limit beyond those of the single values.
    """
    draft = _Draft(model, max_tokens)
    for position, asked in enumerate(fields):
        draft.put(_key(asked, first=position == 0))
        draft.fill(asked)
        if draft.full:
            break
    else:
        draft.put("}")
        draft.read()
    return Answer(draft.text, "length" if draft.full else "stop", len(draft.answer), draft.distributions)


@dataclass(slots=True)
class _Draft:
    """The answer so far; ``pending`` is text of ours the model has not read yet, so that pieces join naturally."""

    model: Writer
    max_tokens: int | None
    text: str = ""
    pending: str = ""
    answer: tuple[int, ...] = ()
    full: bool = False
    distributions: dict[str, Distribution] = field(default_factory=dict)

    def put(self, text: str) -> None:
        self.text += text
        self.pending += text

    def fill(self, asked: OutputField) -> None:
        if asked.kind == "text":
            self._text(asked)
        elif asked.kind == "list":
            self._span(list_value(asked), LIST_TOKENS)
        elif asked.kind == "scale" and asked.scale is not None and asked.scale.points is None:
            self._span(number(asked.scale), VALUE_TOKENS)
        else:
            self._choice(asked)

    def _choice(self, asked: OutputField) -> None:
        lead = _lead(asked, digits_apart=self.model.digits_apart)
        self.put(lead)
        options = [_option(value, lead) for value in _choices(asked)]
        chosen = choose(options, self._ask())
        if chosen is None:  # nothing legal among the likely tokens: no probabilities, but the model's best legal value
            self._span(one_of(option.text.decode() for option in options), VALUE_TOKENS)
            return
        self.put(chosen.option.text.decode())
        if chosen.distribution is not None:
            self.distributions[asked.name] = chosen.distribution

    def _ask(self) -> Callable[[tuple[int, ...]], Sequence[Alternative]]:
        self.read()
        return lambda path: self.model.next((*self.answer, *path))

    def _text(self, asked: OutputField) -> None:
        if asked.nullable:
            chosen = choose([Option("", b' "', True), Option(None, b" null", False)], self._ask())
            if chosen is not None and chosen.option.value is None:
                self.put(" null")
                return
        self.put(_lead(asked, digits_apart=False) or ' "')
        written, ended = self._go_on(TEXT_REST, TEXT_TOKENS)
        if not ended:
            self.full = self.max_tokens is not None and len(self.answer) + TEXT_TOKENS > self.max_tokens
        body = written[:-1] if ended else _last_sentence(written)
        self.text += body
        self.answer += self.model.tokens(body)
        if not self.full:
            self.put('"')

    def _span(self, grammar: str, limit: int) -> None:
        written, ended = self._go_on(grammar, limit)
        self.text += written
        self.answer += self.model.tokens(written)
        self.full = not ended

    def _go_on(self, grammar: str, limit: int) -> tuple[str, bool]:
        self.read()
        if self.max_tokens is not None:
            limit = min(limit, self.max_tokens - len(self.answer))
        if limit <= 0:
            return "", False
        written = self.model.go_on(self.answer, grammar, limit)
        return written.text, written.ended

    def read(self) -> None:
        """Give the model what we put."""
        self.answer += self.model.tokens(self.pending)
        self.pending = ""


def _key(asked: OutputField, *, first: bool) -> str:
    return ("{" if first else ",") + json.dumps(asked.name, ensure_ascii=False) + ":"


def _choices(asked: OutputField) -> tuple[Value | None, ...]:
    """The legal values, null included; none for texts, lists, and numbers without end."""
    points = (asked.scale.points or ()) if asked.scale is not None else (True, False) if asked.kind == "bool" else ()
    return (*points, None) if asked.nullable else tuple(points)


def _lead(asked: OutputField, *, digits_apart: bool) -> str:
    """What we put between the colon and the model's choice: a quote, a space before a digit, or nothing.

    Where the model writes the quote itself we put nothing, as one right after our space would be an unusual token.
    The space before a digit matters: right after the colon this judge calls nearly everything a 7.
    """
    choices = _choices(asked)
    if (asked.kind == "text" and not asked.nullable) or (choices and all(isinstance(v, str) for v in choices)):
        return '"'
    return " " if digits_apart and choices and all(type(v) in (int, float) for v in choices) else ""


def _option(value: Value | None, lead: str) -> Option:
    text = json.dumps(value, ensure_ascii=False)
    text = {'"': text[1:], " ": text}.get(lead, f" {text}")
    return Option(value, text.encode(), isinstance(value, str))


def _last_sentence(body: str) -> str:
    """A text up to its last whole sentence, or else without the half of an escape at its end."""
    ends = [match.end() for match in re.finditer(r"[.!?](?=\s)|[。！？]", body)]
    if ends:
        return body[: ends[-1]]
    slashes = len(body) - len(body.rstrip("\\"))
    return body[:-1] if slashes % 2 else body
