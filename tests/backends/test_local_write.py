"""Writing an answer field by field, and the grammars of its free parts, without a model."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.backends.local_engine import Alternative, Completion
from evenhand.backends.local_grammar import LIST_ITEMS, LIST_TEXT, TEXT_REST, list_value, number, one_of
from evenhand.backends.local_write import TEXT_TOKENS, room, write
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale

RANK = OutputField("rank", "scale", scale=Scale("rank", "ordinal", low=1, high=10))
LABEL = OutputField("label", "scale", scale=Scale("label", "nominal", values=('so "so"', "good")))
REASON = OutputField("reason", "text")
ISSUES = OutputField(
    "issues",
    "list",
    items=(OutputField("kind", "scale", scale=Scale("", "nominal", values=("a", "b"))), OutputField("text", "text")),
)


class Scripted:
    """A model whose tokens are characters: it continues the answer as the script says."""

    digits_apart = True

    def __init__(self, script: dict[str, str], *, endless: bool = False) -> None:
        self.script = script
        self.endless = endless
        self.seen: list[str] = []

    def tokens(self, text: str) -> tuple[int, ...]:
        return tuple(map(ord, text))

    def _follow(self, answer: Sequence[int]) -> str:
        before = "".join(map(chr, answer))
        self.seen.append(before)
        for end, text in self.script.items():
            if before.endswith(end):
                return text
            if (at := before.rfind(end)) >= 0 and text.startswith(before[at + len(end) :]):
                return text[len(before) - at - len(end) :]
        return "?"

    def next(self, answer: Sequence[int]) -> Sequence[Alternative]:
        first = self._follow(answer)[0]
        return [Alternative(ord(first), first.encode(), 0.75)]

    def go_on(self, answer: Sequence[int], grammar: str, limit: int) -> Completion:
        text = self._follow(answer)
        if self.endless or len(text) > limit:
            return Completion((text * limit)[:limit], (), (), False)
        return Completion(text, (), (), True)


def test_keys_are_given_and_values_are_the_models() -> None:
    """The answer is one JSON object, its keys in the order asked, each finite field with its distribution."""
    model = Scripted({'"reason":"': 'All \\"well\\"."', '"rank": ': "10,", '"label":"': 'good"', '"issues":': " []"})
    answer = write((REASON, RANK, LABEL, ISSUES), model)
    assert json.loads(answer.text) == {"reason": 'All "well".', "rank": 10, "label": "good", "issues": []}
    assert list(json.loads(answer.text)) == ["reason", "rank", "label", "issues"]
    assert answer.finish == "stop"
    assert answer.tokens == len(answer.text)
    assert answer.distributions["rank"].probabilities[10] == 1.0
    assert answer.distributions["label"].missing_mass == pytest.approx(0.25)
    assert set(answer.distributions) == {"rank", "label"}


def test_the_short_form_is_one_look() -> None:
    """A single score whose first tokens differ costs one look at the model."""
    model = Scripted({'{"rank": ': "7"})
    assert write((RANK,), model).text == '{"rank": 7}'
    assert model.seen == ['{"rank": ']


@pytest.mark.parametrize(("script", "value"), [(" null", None), (" true", True), (" false", False)])
def test_a_nullable_bool(script: str, value: bool | None) -> None:
    """Null is one of the choices where the field allows it."""
    answer = write((OutputField("ok", "bool", nullable=True),), Scripted({'"ok":': script}))
    assert json.loads(answer.text) == {"ok": value}


@pytest.mark.parametrize(
    ("script", "value"), [({'"reason":': " null"}, None), ({'"reason": "': 'x"', '"reason":': ' "'}, "x")]
)
def test_a_nullable_text(script: dict[str, str], value: str | None) -> None:
    """A text that may be null is null or a text."""
    answer = write((OutputField("reason", "text", nullable=True),), Scripted(script))
    assert json.loads(answer.text) == {"reason": value}


def test_no_legal_token_still_gives_a_legal_value() -> None:
    """When nothing legal is likely, the grammar forces the model's best value, without a distribution."""
    model = Scripted({'"label":"': "?"})
    model.go_on = lambda answer, grammar, limit: Completion('good"', (), (), True)  # type: ignore[method-assign]
    answer = write((LABEL,), model)
    assert json.loads(answer.text) == {"label": "good"}
    assert answer.distributions == {}


def test_a_rambling_reason_ends_at_a_sentence() -> None:
    """A text that does not end is cut after its last whole sentence, and the score still follows."""
    model = Scripted({'"reason":"': "On and on. ", '"rank": ': "3"}, endless=True)
    answer = write((REASON, RANK), model)
    reason = json.loads(answer.text)["reason"]
    assert reason.endswith("On and on.")
    assert len(reason) <= TEXT_TOKENS
    assert json.loads(answer.text)["rank"] == 3
    assert answer.finish == "stop"


def test_a_cut_never_splits_an_escape() -> None:
    """Half an escape at the end of a cut text is left out."""
    answer = write((REASON,), Scripted({'"reason":"': "x" + "\\\\" * TEXT_TOKENS}, endless=True))
    assert json.loads(answer.text)["reason"].startswith("x\\")


@pytest.mark.parametrize("max_tokens", [5, 30, 60])
def test_too_few_tokens_is_said(max_tokens: int) -> None:
    """An answer that does not fit the caller's limit is unfinished, and says "length"."""
    model = Scripted({'"reason":"': "word " * 40, '"rank": ': "3"}, endless=True)
    answer = write((REASON, RANK), model, max_tokens=max_tokens)
    assert answer.finish == "length"
    with pytest.raises(ValueError, match="char"):
        json.loads(answer.text)


def test_an_unfinished_list_is_said() -> None:
    """A list that does not end is not mended."""
    answer = write((ISSUES,), Scripted({'"issues":': " ["}, endless=True))
    assert answer.finish == "length"


def test_room_grows_with_the_fields() -> None:
    """The space kept for an answer covers its longest texts and lists."""
    assert room((REASON, RANK)) > TEXT_TOKENS + 32
    assert room((REASON, RANK, ISSUES)) > room((REASON, RANK)) + LIST_ITEMS * LIST_TEXT


class Gbnf:
    """Random texts of a grammar: enough of GBNF for ours."""

    TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(\[(?:[^\]\\]|\\.)*\])|(\{\d+,?\d*\}|[*?|()])|([a-z]+)|\s+')

    def __init__(self, grammar: str, seed: int) -> None:
        self.rules = dict(line.split(" ::= ", 1) for line in grammar.strip().splitlines())
        self.random = random.Random(seed)

    def text(self, rule: str = "root") -> str:
        found = list(self.TOKEN.finditer(self.rules[rule]))
        assert "".join(m.group() for m in found) == self.rules[rule]
        tokens = [m for m in found if m.lastindex]
        text, rest = self._alternatives(tokens)
        assert not rest
        return text

    def _alternatives(self, tokens: list[re.Match[str]]) -> tuple[str, list[re.Match[str]]]:
        options = []
        while True:
            parts = []
            while tokens and tokens[0].group() not in ("|", ")"):
                part, tokens = self._repeated(tokens)
                parts.append(part)
            options.append("".join(parts))
            if not tokens or tokens[0].group() == ")":
                return self.random.choice(options), tokens
            tokens = tokens[1:]

    def _repeated(self, tokens: list[re.Match[str]]) -> tuple[str, list[re.Match[str]]]:
        _, rest = self._single(tokens)
        low, high = 1, 1
        if rest and (bound := rest[0].group())[0] in "*?{":
            numbers = [int(n) for n in re.findall(r"\d+", bound)]
            low, high = {"*": (0, 9), "?": (0, 1)}.get(bound) or (numbers[0], numbers[-1])
            after = rest[1:]
        else:
            after = rest
        count = self.random.randint(low, high)
        return "".join(self._single(tokens)[0] for _ in range(count)), after

    def _single(self, tokens: list[re.Match[str]]) -> tuple[str, list[re.Match[str]]]:
        first, rest = tokens[0], tokens[1:]
        if first.group() == "(":
            text, rest = self._alternatives(rest)
            return text, rest[1:]
        if first.group(2):
            return self._character(first.group(2)), rest
        if first.group(4):
            return self.text(first.group(4)), rest
        return json.loads(f'"{first.group(1)}"'), rest

    def _character(self, pattern: str) -> str:
        legal = re.compile(pattern)
        while True:
            drawn = self.random.choice('a 7."\\/bn\n\t\x00\x7fé甲')
            if legal.fullmatch(drawn):
                return drawn


VALUES = st.lists(st.text('ab"\\ {}|甲', min_size=1, max_size=5), min_size=1, max_size=4, unique=True)


@given(VALUES, st.booleans(), st.integers(0, 2**20))
def test_every_list_of_the_grammar_is_legal(values: list[str], nullable: bool, seed: int) -> None:
    """Whatever the labels, every text of a list's grammar is JSON with the right keys, labels and length."""
    kind = OutputField('ki"nd', "scale", scale=Scale("", "nominal", values=tuple(values)), nullable=nullable)
    flag, rank = OutputField("flag", "bool"), OutputField("rank", "scale", scale=Scale("", "ordinal", low=-1, high=1))
    field = OutputField("issues", "list", items=(kind, flag, rank, OutputField("text", "text")), nullable=nullable)
    read = json.loads(Gbnf(list_value(field), seed).text())
    if read is None:
        assert nullable
        return
    assert len(read) <= LIST_ITEMS
    for element in read:
        assert list(element) == ['ki"nd', "flag", "rank", "text"]
        assert element['ki"nd'] in values or (nullable and element['ki"nd'] is None)
        assert isinstance(element["flag"], bool)
        assert element["rank"] in (-1, 0, 1)
        assert len(element["text"]) <= LIST_TEXT


@given(st.integers(0, 2**20))
def test_texts_of_the_grammar_are_legal(seed: int) -> None:
    """The rest of a text is JSON once its opening quote stands before it; so is a list of texts."""
    assert isinstance(json.loads('"' + Gbnf(TEXT_REST, seed).text()), str)
    assert all(isinstance(t, str) for t in json.loads(Gbnf(list_value(OutputField("notes", "list")), seed).text()))


@given(VALUES, st.integers(0, 2**20))
def test_fixed_texts_of_the_grammar(values: list[str], seed: int) -> None:
    """A grammar of fixed texts gives one of them."""
    assert Gbnf(one_of(values), seed).text() in values


@given(st.integers(0, 3), st.integers(1, 5), st.integers(0, 2**20))
def test_numbers_of_the_grammar_are_in_range(low: int, width: int, seed: int) -> None:
    """A fraction lies on its scale, both ends included."""
    scale = Scale("p", "interval", low=low, high=low + width, integer=False)
    assert scale.legal(json.loads(Gbnf(number(scale), seed).text()))


def test_unusual_ranges_are_left_to_the_reader() -> None:
    """A range that begins below 0 or between whole numbers takes any number; the reader checks it."""
    scale = Scale("p", "interval", low=-0.5, high=0.5, integer=False)
    assert isinstance(json.loads(Gbnf(number(scale), 3).text()), int | float)


def test_a_scripted_number_is_written() -> None:
    """A field of a continuous scale is written under its grammar, without a distribution."""
    field: Any = OutputField("p", "scale", scale=Scale("p", "interval", low=0, high=1, integer=False))
    answer = write((field,), Scripted({'"p":': " 0.5"}))
    assert json.loads(answer.text) == {"p": 0.5}
    assert answer.distributions == {}
