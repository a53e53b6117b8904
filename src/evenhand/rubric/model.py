"""The rubric as data: what is asked, on which scales, in which form, under which rules.

A `Rubric` here is concrete: options are resolved, slots and criteria expanded, so that prompt, reader,
schema and rules need no case analysis. `rubric.load` makes it from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.scale import Scale, Value

Mode = Literal["score", "compare"]
ItemType = Literal["text", "bool", "number", "turns", "images"]
Form = Literal["schema", "tool", "json", "text", "lines"]
FieldKind = Literal["scale", "bool", "text", "list"]
Severity = Literal["violation", "warning"]
#: Presentation slots of compare mode, in the order the judge sees them.
SLOTS = ("a", "b")


@dataclass(frozen=True, slots=True)
class ItemField:
    """A named input of an item.

    Attributes:
        name: Column or key name.
        type: text, bool, number, turns (history) or images.
        required: Whether every row must have it. A required text may be null or blank when it is a
            response (a system that crashed or said nothing is an answer to be judged).
        label: Heading above it in the prompt, in the rubric's language.
        choices: The only values a text may have (the names of question types); empty for any.
    """

    name: str
    type: ItemType
    required: bool
    label: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ItemSpec:
    """The inputs a rubric reads from each row.

    Attributes:
        fields: All inputs, required ones first, in file order.
        aliases: Other column names -> field name ("id" may be a target too).
        responses: Names of the fields that hold the judged responses (1 in score mode, 2 in compare mode).
        judged: Names of the fields whose text is material to be judged: fenced and neutralised.
        blank: Names of required texts that may be blank all the same, as what a system retrieved.
    """

    fields: tuple[ItemField, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)
    responses: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()

    @property
    def by_system(self) -> tuple[str, ...]:
        """The required texts that a system supplies, so that they may be blank: its responses, and ``blank``."""
        return (*self.responses, *self.blank)

    def field(self, name: str) -> ItemField | None:
        for one in self.fields:
            if one.name == name:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Example:
    """A worked example of one point of a criterion.

    Attributes:
        at: The point it stands for.
        question: The question asked.
        answers: One or more answers that deserve the point; "" is a blank answer.
        note: Why, may be empty.
    """

    at: Value
    question: str
    answers: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question of a rubric, answered on one scale, with a weight.

    Attributes:
        name: Name; also the name of its output field.
        text: The question in words.
        scale: The scale, with this criterion's own anchors.
        examples: Worked examples; empty unless the detail level asks for them.
        weight: Share in the composite; None when the rubric has no composite.
    """

    name: str
    text: str
    scale: Scale
    examples: tuple[Example, ...] = ()
    weight: float | None = None


@dataclass(frozen=True, slots=True)
class OutputField:
    """One key the judge must give, in order of generation.

    Attributes:
        name: Key in the reply.
        kind: scale (``scale`` is set; a choice is an anonymous nominal scale), bool, text or list.
        text: What to put there, one line.
        scale: Legal values of a scale field.
        criterion: The criterion it answers, None for supporting fields.
        slot: "a" or "b" for a field about one response of a pair.
        base: The name without its slot suffix, as "rank" of "rank_a"; the name itself without a slot.
        nullable: null is a legal answer.
        required: A reply without it is incomplete. Fields that answer a criterion are always required.
        language: Language the text must be written in, None for any.
        items: Element fields of a list of objects; empty for a list of texts.
        short: Kept in the short form (no reasons).
        patterns: Regular expressions with one group that find the value in free text, tried in order; for
            rubrics that read replies in a published text format.
        take: Which match of a pattern counts: the only value ("only": different values are ambiguous), the
            first or the last.
    """

    name: str
    kind: FieldKind
    text: str = ""
    scale: Scale | None = None
    criterion: str | None = None
    slot: str | None = None
    base: str = ""
    nullable: bool = False
    required: bool = True
    language: str | None = None
    items: tuple[OutputField, ...] = ()
    short: bool = True
    patterns: tuple[str, ...] = ()
    take: Literal["only", "first", "last"] = "only"


@dataclass(frozen=True, slots=True)
class Output:
    """The form of the reply.

    Attributes:
        fields: Keys in order of generation; reasons come before scores unless the rubric says otherwise.
        forms: Output forms in order of preference.
        function: Name of the function for the tool form.
        answer: Template that encodes a verdict as a training answer; "" for plain JSON.
        short: Names of the short form's fields in their order; empty keeps the order of ``fields``.
    """

    fields: tuple[OutputField, ...]
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text")
    function: str = "submit_verdict"
    answer: str = ""
    short: tuple[str, ...] = ()

    def field(self, name: str) -> OutputField | None:
        for one in self.fields:
            if one.name == name:
                return one
        return None


@dataclass(frozen=True, slots=True)
class Preset:
    """Values set in code because the item decides them.

    Attributes:
        when: Condition over item fields, in the rule language.
        set: Output field -> value.
        call: Whether the judge is still asked about the other fields.
    """

    when: str
    set: Mapping[str, Value | None]
    call: bool


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition between fields; true means broken.

    Attributes:
        id: Id; expanded rules end in ":a", ":b" or ":criterion".
        severity: violation or warning.
        condition: Expression in the rule language.
        say: Message with {name} placeholders: what clashes and what would resolve it.
    """

    id: str
    severity: Severity
    condition: str
    say: str


@dataclass(frozen=True, slots=True)
class Note:
    """One note of a question type, with an optional worked example.

    Attributes:
        text: The note.
        example: Worked example as text, "" for none.
        score: Score of the example, None for none.
    """

    text: str
    example: str = ""
    score: Value | None = None


@dataclass(frozen=True, slots=True)
class Types:
    """Typed notes: what to heed for each type of question.

    Attributes:
        item_field: Item field that holds the type.
        fill: What the prompt shows as the type: "given" (as in the row) or "group"; the option ``fill`` decides where
            there is one.
        names: Accepted type name -> group of notes.
        notes: Group -> notes.
        categories: Category -> type names, for aggregates.
    """

    item_field: str
    fill: Literal["given", "group"]
    names: Mapping[str, str]
    notes: Mapping[str, tuple[Note, ...]]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class History:
    """Layout of earlier turns.

    Attributes:
        heading: Line above the turns.
        turn: Template of one turn with {n}, {user} and {assistant}; filled in one pass.
        empty: Shown when there are no earlier turns; "" leaves the block out.
    """

    heading: str = ""
    turn: str = ""
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One general instruction; with ``asked``, told only to a judge who is asked for that output field."""

    text: str
    asked: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A message kept as it was published: its text, cut at the holes.

    Attributes:
        pieces: (text, name) in order: a text, then what is put in after it: an item field, ``types`` for the notes of
            the item's type, or "" for nothing.
        strip: Whether space around the filled text is taken away.
    """

    pieces: tuple[tuple[str, str], ...]
    strip: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What is put in, in order."""
        return tuple(name for _, name in self.pieces if name)


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the prompt: blocks in order, or a template.

    Attributes:
        role: system or user.
        blocks: intro, criteria, scale:NAME, types, rules, output, item, an item field's name, or a key of ``texts``.
        template: The message as it was published, in place of blocks.
    """

    role: Literal["system", "user"]
    blocks: tuple[str, ...] = ()
    template: Template | None = None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """How verdicts are summed up.

    Attributes:
        composite: Whether there is a weighted composite (weights sit on the criteria and sum to 1).
        per: Item fields to break results down by.
        means: "item" and / or "task" (unweighted mean of type means).
        robustness: Settings of the paraphrase-group score, empty for none.
    """

    composite: bool = False
    per: tuple[str, ...] = ()
    means: tuple[str, ...] = ("item",)
    robustness: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Option:
    """A declared switch of a rubric.

    Attributes:
        name: Name as used in ``--variant name=value``.
        default: Value when not given.
        values: All legal values; (False, True) for a plain switch.
    """

    name: str
    default: Value
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Rubric:
    """Everything that turns an item into a question and a reply into a verdict.

    Attributes:
        name, version, title, language: Identity and language (BCP 47).
        mode: score (one response) or compare (two responses).
        item: Inputs.
        scales: Named scales.
        criteria: Criteria, in order of priority.
        output: Output form and fields.
        presets, let, rules: Values set in code; derived values (name -> expression, in order); rules.
        types, history, images_shown: Typed notes; layout of turns; whether the judge sees images.
        prompt: Messages; static blocks first, the item last.
        texts: Named texts for blocks (always has "intro").
        general: Numbered general instructions, the block "general".
        ask: Entry phrase -> criterion that reports show first, or None; the prompt is the same for all.
        aggregate: How verdicts are summed up.
        options: Declared switches; ``chosen`` holds their values in this rubric.
        preference: compare mode: the output field that holds the preferred side.
        source: The file's text, as loaded; digest: identity of the concrete rubric (source and chosen options).
    """

    name: str
    version: int
    mode: Mode
    item: ItemSpec
    criteria: tuple[Criterion, ...]
    output: Output
    prompt: tuple[Message, ...]
    language: str = "en"
    title: str = ""
    scales: Mapping[str, Scale] = field(default_factory=dict)
    presets: tuple[Preset, ...] = ()
    let: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    types: Types | None = None
    history: History = field(default_factory=History)
    images_shown: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    general: tuple[Instruction, ...] = ()
    ask: Mapping[str, str | None] = field(default_factory=dict)
    aggregate: Aggregate = field(default_factory=Aggregate)
    options: tuple[Option, ...] = ()
    chosen: Mapping[str, Value] = field(default_factory=dict)
    preference: str | None = None
    source: str = ""
    digest: str = ""

    def criterion(self, name: str) -> Criterion | None:
        return next((c for c in self.criteria if c.name == name), None)
