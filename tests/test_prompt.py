"""Prompts: which blocks stand where, what is static, how each output form is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import evenhand.wording as wording
from evenhand.item import Turn
from evenhand.prompt import Prompt, mark_for, re_ask, render
from evenhand.rubric.load import builtin_names, load_rubric
from evenhand.rubric.model import (
    Criterion,
    Example,
    Form,
    History,
    Instruction,
    ItemField,
    ItemSpec,
    Message,
    Note,
    Output,
    OutputField,
    Rubric,
    Rule,
    Types,
)
from evenhand.rubric.schema import asked_fields
from evenhand.scale import Anchor, Scale

MARK = "qvxm"
POINTS = Scale("points", "ordinal", low=0, high=4, anchors=(Anchor((0, 0), "wrong"), Anchor((3, 4), "right")))
SIDE = Scale("side", "nominal", values=("A", "B", "tie"), slots=True)
RANK = Scale("rank", "ordinal", low=1, high=7, anchors=(Anchor((7, 7), "flawless"),))

SCORE = Rubric(
    name="grade",
    version=1,
    mode="score",
    item=ItemSpec(
        fields=(
            ItemField("answer", "text", True, "The answer"),
            ItemField("question", "text", True, "The question"),
            ItemField("context", "text", False),
            ItemField("history", "turns", False, "Before"),
            ItemField("polite", "bool", False),
            ItemField("urgent", "bool", False),
            ItemField("kind", "text", False, "Kind"),
        ),
        responses=("answer",),
        judged=("answer", "context", "history"),
    ),
    criteria=(
        Criterion(
            "truth",
            "Is it true?",
            POINTS,
            examples=(Example(0, "Is ice hot?", ("yes", ""), "ice is cold"), Example(4, "Is ice hot?", ("no",))),
        ),
        Criterion("style", "Does it read well?", POINTS),
    ),
    output=Output(
        fields=(
            OutputField("polite", "bool", "whether it is polite"),
            OutputField("reasoning_for_truth", "text", "why", language="zh"),
            OutputField("truth", "scale", scale=POINTS, criterion="truth"),
            OutputField("rank", "scale", scale=RANK, nullable=True),
            OutputField("quotes", "list", items=()),
        ),
        function="hand_in",
    ),
    prompt=(
        Message("system", ("intro", "criteria", "scale:points", "general", "rules", "aside", "output")),
        Message("user", ("types", "item")),
    ),
    scales={"points": POINTS},
    rules=(
        Rule("low", "violation", "truth == 0", "Truth is '{truth}' though {rank} stands for {rank}'s sake."),
        Rule("odd", "warning", "truth == 1", "Odd."),
    ),
    types=Types(
        "kind",
        "given",
        {"Counting": "sums", "Tally": "sums"},
        {"sums": (Note("Count again."), Note("One off is wrong.", "5 for 6", 1))},
    ),
    texts={"intro": "You grade answers.", "aside": "Mind the {braces}."},
    general=(
        Instruction("Be fair."),
        Instruction("Be brief."),
        Instruction("Say why first.", asked="reasoning_for_truth"),
    ),
)
PAIR = Rubric(
    name="pick",
    version=1,
    mode="compare",
    item=ItemSpec(
        fields=(
            ItemField("prompt", "text", True),
            ItemField("gpt_9", "text", True, "GPT-9"),
            ItemField("baseline", "text", True, "Baseline"),
        ),
        responses=("gpt_9", "baseline"),
        judged=("gpt_9", "baseline"),
    ),
    criteria=(Criterion("better", "Which one is better?", SIDE),),
    output=Output((OutputField("better", "scale", scale=SIDE, criterion="better"),)),
    prompt=(Message("system", ("criteria", "output")), Message("user", ("item",))),
)
ITEM: dict[str, Any] = {
    "question": "How many legs has a spider?",
    "answer": "Eight.",
    "context": "Spiders have eight legs.",
    "history": (Turn("Hello", "Good day"), Turn("A riddle?", "Go on {n}")),
    "kind": "Tally",
    "polite": True,
    "urgent": False,
}


def ask(rubric: Rubric, item: dict[str, Any], form: Form = "json", mark: str = MARK) -> Prompt:
    return render(rubric, item, fields=rubric.output.fields, form=form, mark=mark)


def system(rubric: Rubric, form: Form = "json") -> str:
    return str(ask(rubric, ITEM, form).messages[0]["content"])


def in_order(text: str, *parts: str) -> bool:
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


def test_what_belongs_to_fields_not_asked_is_left_out() -> None:
    """A scale that no asked field stands on, and an instruction about a field not asked, are not told."""
    whole = system(SCORE)
    assert in_order(whole, "Scale points", "2. Be brief.\n3. Say why first.")
    short = render(SCORE, ITEM, fields=(SCORE.output.fields[0],), form="json", mark=MARK).messages[0]["content"]
    assert "2. Be brief.\n\n" in short
    assert "Scale points" not in short
    assert "Say why first." not in short


def test_blocks_stand_in_the_rubrics_order() -> None:
    """Every block is there, in order, and messages keep their roles."""
    prompt = ask(SCORE, ITEM)
    assert [m["role"] for m in prompt.messages] == ["system", "user"]
    parts = ("You grade", "Is it true?", "Does it read", "Scale points", "1. Be fair.\n2. Be brief.", "contradict")
    assert in_order(system(SCORE), *parts, "Mind the {braces}.", "Give, in this order")
    user = prompt.messages[1]["content"]
    assert in_order(user, '"Tally"', "1. Count again.\n2. One off is wrong.", "5 for 6", "The question:", "Context:")
    assert in_order(user, "Context:", "Before:", "Urgent:", "Kind:", "The answer:")


def test_static_messages_are_the_same_for_all_items() -> None:
    """Leading messages without a block of the item are counted, and identical for another item."""
    other = {"question": "Is rain wet?", "answer": "No.", "kind": "Counting"}
    assert ask(SCORE, ITEM).static_messages == 1
    assert ask(SCORE, ITEM, mark="0123456789").messages[0] == ask(SCORE, other).messages[0]


@pytest.mark.parametrize(
    ("blocks", "count"),
    [
        ([("intro",), ("item",), ("output",)], 1),
        ([("intro", "types"), ("output",), ("item",)], 0),
        ([("intro",), ("criteria",), ("question", "answer")], 2),
        ([("intro",), ("output",)], 2),
    ],
)
def test_static_count_ends_at_the_first_block_of_the_item(blocks: list[tuple[str, ...]], count: int) -> None:
    """Typed notes and single fields depend on the item too; static messages after them don't count."""
    rubric = replace(SCORE, prompt=tuple(Message("user", names) for names in blocks))
    assert ask(rubric, ITEM).static_messages == count


def test_criteria_show_scale_anchors_and_examples() -> None:
    """A criterion brings its scale in words, its anchors and its examples; a blank example answer is named so."""
    text = system(replace(SCORE, prompt=(Message("system", ("criteria",)),)))
    assert in_order(text, "truth: Is it true?", "whole numbers 0 to 4", "- 0: wrong", "- 3-4: right", "Is ice hot?")
    assert text.count("Is ice hot?") == 1
    assert in_order(text, "(score 0): yes (ice is cold)", "(score 0): (blank) (ice is cold)", "(score 4): no")


def test_a_scale_with_its_own_block_is_explained_once() -> None:
    """Anchors are not repeated for each criterion when the scale has a block."""
    assert system(SCORE).count("- 3-4: right") == 1


def test_rules_name_fields_instead_of_values() -> None:
    """The rules block tells the violations' messages with the names of the fields; warnings stay out."""
    text = system(SCORE)
    assert '- Truth is "truth" though "rank" stands for "rank"\'s sake.' in text
    assert "Odd." not in text


def test_output_names_each_field_and_what_it_holds() -> None:
    """Fields come in order with their legal values; anchors of a scale that is explained nowhere else follow."""
    text = system(SCORE, "schema")
    assert in_order(
        text,
        "- polite: whether it is polite (true or false)",
        "- reasoning_for_truth: why (text in Chinese)",
        "- truth: whole numbers 0 to 4",
        "- rank: whole numbers 1 to 7 or null",
        "  - 7: flawless",
        "- quotes: list of text",
    )


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("schema", "JSON object only"),
        ("tool", "calling the function hand_in exactly once"),
        ("json", '{"polite": ..., "reasoning_for_truth": ..., "truth": ..., "rank": ..., "quotes": ...}'),
        ("text", "exactly one JSON object"),
        ("lines", "Reasoning for truth: (why (text in Chinese))\nScore for truth: (whole numbers 0 to 4)"),
    ],
)
def test_each_form_is_asked_for_in_its_own_words(form: Form, said: str) -> None:
    """Every output form says how to reply, and only the tool form names the function."""
    text = system(SCORE, form)
    assert said in text
    assert ("hand_in" in text) == (form == "tool")


def test_only_the_asked_fields_are_asked_for() -> None:
    """Fields that are not asked for don't stand in the output block."""
    prompt = render(SCORE, ITEM, fields=SCORE.output.fields[2:3], form="json", mark=MARK)
    assert '{"truth": ...}' in prompt.messages[0]["content"]
    assert "reasoning_for_truth" not in prompt.messages[0]["content"]


def test_flags_the_judge_finds_out_are_not_shown() -> None:
    """A flag that is also an output field is not shown; any other flag is."""
    user = ask(SCORE, ITEM).messages[1]["content"]
    assert "Polite" not in user
    assert "Urgent:\nno" in user


def test_missing_and_blank_values() -> None:
    """Optional fields without a value are left out; a response says whether it is missing or blank."""
    missing = ask(SCORE, {"question": "Why?", "answer": None, "context": "  "}).messages[1]["content"]
    assert missing == "The question:\nWhy?\n\nThe answer:\n(no response given)"
    blank = ask(SCORE, {"question": "", "answer": " \n"}).messages[1]["content"]
    assert blank == "The question:\n(blank)\n\nThe answer:\n(blank)"


def test_history_is_laid_out_turn_by_turn() -> None:
    """Turns are numbered from 1 in the rubric's layout, filled in one pass; no turns give the layout's empty text."""
    rubric = replace(SCORE, history=History("Earlier", "#{n} {user} > {assistant}", "Nothing before."))
    user = ask(rubric, ITEM).messages[1]["content"]
    assert f"Earlier:\n<<<{MARK}\n#1 Hello > Good day\n\n#2 A riddle? > Go on {{n}}\n{MARK}>>>" in user
    assert "Nothing before." in ask(rubric, {**ITEM, "history": None}).messages[1]["content"]
    assert "Turn 2\nUser: A riddle?\nAssistant: Go on {n}" in ask(SCORE, ITEM).messages[1]["content"]
    assert "Before" not in ask(SCORE, {**ITEM, "history": ()}).messages[1]["content"]


def test_pairs_have_neutral_names() -> None:
    """Responses of a pair are called A and B, whatever their columns are called, and come in the order given."""
    item = {"prompt": "Hi", "gpt_9": "first", "baseline": "second"}
    text = "".join(m["content"] for m in ask(PAIR, item).messages)
    assert in_order(text, "Response A:", "first", "Response B:", "second")
    assert "gpt_9" not in text.lower() and "baseline" not in text.lower() and "GPT-9" not in text


def test_chinese_rubrics_have_chinese_words() -> None:
    """The fixed words follow the rubric's language; an unknown language gets English ones."""
    pair = ask(replace(PAIR, language="zh-CN"), {"prompt": "你好", "gpt_9": "好", "baseline": None})
    text = "".join(m["content"] for m in pair.messages)
    assert in_order(text, "评判标准：", "以下之一：A, B, tie", "回答 A：", "回答 B：\n（没有给出回答）")
    chinese = replace(SCORE, language="zh")
    assert "本题类型为“Tally”" in ask(chinese, ITEM).messages[1]["content"]
    assert "中文文字" in ask(chinese, ITEM).messages[0]["content"]
    assert "Give, in this order" in ask(replace(SCORE, language="eo"), ITEM).messages[0]["content"]


def test_types_show_the_group_where_the_rubric_says_so() -> None:
    """`fill: group` shows the group instead of the given type; where no type is given there are no notes."""
    assert SCORE.types is not None
    grouped = replace(SCORE, types=replace(SCORE.types, fill="group"))
    user = ask(grouped, ITEM).messages[1]["content"]
    assert '"sums"' in user and "Kind:\nsums" in user and "Tally" not in user
    assert "Count again" not in ask(SCORE, {**ITEM, "kind": ""}).messages[1]["content"]


def test_fences_are_explained_once_in_the_static_part() -> None:
    """One sentence about the fences ends the static part; the mark itself stands around judged text only."""
    prompt = ask(SCORE, ITEM)
    system, user = (message["content"] for message in prompt.messages)
    assert system.endswith(f"\n\n{wording.of('en').fenced}") and MARK not in system
    assert in_order(user, f"<<<{MARK}\n", f"\n{MARK}>>>")


def test_fences_are_explained_before_the_item_without_a_static_part() -> None:
    """Where the first message holds the item, the sentence stands right before the item's first block."""
    rubric = replace(SCORE, prompt=(Message("user", ("intro", "types", "context", "answer")),))
    (message,) = ask(rubric, ITEM).messages
    assert message["content"].count(wording.of("en").fenced) == 1
    assert in_order(message["content"], rubric.texts["intro"], wording.of("en").fenced, "Count again", f"<<<{MARK}")


def test_without_judged_text_nothing_is_said_of_fences() -> None:
    """A rubric that fences no field doesn't speak of fences."""
    bare = replace(SCORE, item=replace(SCORE.item, judged=()))
    assert all("<<<" not in message["content"] for message in ask(bare, ITEM).messages)


def test_a_rubric_with_a_digest_is_planned_once() -> None:
    """Rubrics of equal digest share their static text; without a digest no two rubrics do."""
    first = replace(SCORE, digest="d1")
    assert ask(first, ITEM) == ask(replace(first), ITEM)
    assert ask(replace(SCORE, texts={**SCORE.texts, "intro": "Other."}), ITEM) != ask(SCORE, ITEM)


def test_marks_need_the_key() -> None:
    """A mark is the same for the same item and key, and another for any other item, key or rubric."""
    same = mark_for(b"key", "item", "grade")
    others = {mark_for(b"kez", "item", "grade"), mark_for(b"key", "item2", "grade"), mark_for(b"key", "item", "d")}
    assert same == mark_for(b"key", "item", "grade")
    assert same not in others and len(others) == 3


def test_re_ask_quotes_the_reply_and_lists_complaints() -> None:
    """The former messages stay as they are; a long reply is cut, a missing one is named, complaints are listed."""
    messages = ask(SCORE, ITEM).messages
    again = re_ask(messages, "x" * 5000, ["truth: 9 is out of range", "rank: missing"], "en")
    assert again[:2] == messages
    assert again[2] == {"role": "assistant", "content": "x" * 4000 + "..."}
    assert again[3]["role"] == "user"
    assert "- truth: 9 is out of range\n- rank: missing" in again[3]["content"]
    assert re_ask(messages, " ", ["x"], "zh")[2]["content"] == "（无内容）"


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_rubrics_render(name: str) -> None:
    """Each built-in rubric has one static message with every asked field, and fences all judged text."""
    rubric = load_rubric(name)
    texts = [field for field in rubric.item.fields if field.type == "text"]
    item: dict[str, Any] = {f.name: f.choices[0] if f.choices else f"<value of {f.name}>" for f in texts}
    fields = asked_fields(rubric)
    for form in rubric.output.forms:
        prompt = render(rubric, item, fields=fields, form=form, mark=MARK)
        assert prompt.static_messages == 1
        static = prompt.messages[0]["content"]
        assert all(field.name in static for field in fields)
        assert MARK not in static
        user = prompt.messages[1]["content"]
        judged = [f for f in rubric.item.judged if f in item]
        assert all(f"<<<{MARK}\n<value of {f}>\n{MARK}>>>" in user for f in judged)
        assert user.count("<<<") == len(judged)


@pytest.mark.parametrize("name", builtin_names())
def test_builtin_short_forms_render(name: str) -> None:
    """The short form of each built-in rubric asks for its fields in its own order."""
    rubric = load_rubric(name)
    fields = asked_fields(rubric, short=True)
    static = render(rubric, {}, fields=fields, form="json", mark=MARK).messages[0]["content"]
    assert in_order(static, *(f'"{field.name}": ...' for field in fields))
