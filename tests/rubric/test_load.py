"""From a rubric file to a concrete rubric: defaults, options, expansion, names, identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import InputError, RubricError, UnknownNameError
from evenhand.rubric.load import builtin_names, expression_names, load_rubric, parse_rubric
from evenhand.rubric.model import Aggregate, Example, Instruction, Message, Option
from evenhand.rubric.schema import asked_fields
from evenhand.rules import compile_rubric
from evenhand.scale import Anchor, Scale
from rubric_texts import PAIR, SCALED, TEN_LINES, changed, rubric


def test_ten_lines_are_enough() -> None:
    """A rubric of name, mode, item and criteria gets defaults for all the rest."""
    short = rubric(TEN_LINES)
    assert (short.name, short.version, short.mode, short.language, short.title) == ("short", 1, "score", "en", "")
    assert short.item.responses == ("answer",)
    assert short.item.judged == ("question", "answer")
    assert [(f.name, f.type, f.required, f.label) for f in short.item.fields] == [
        ("question", "text", True, "Question"),
        ("answer", "text", True, "Answer"),
    ]
    scale = Scale("", "ordinal", low=1, high=5, anchors=(Anchor((1, 1), "wrong"), Anchor((5, 5), "right")))
    assert short.criteria[0].scale == scale
    reason, truth = short.output.fields
    assert (reason.name, reason.kind, reason.required, reason.short) == ("reason", "text", False, False)
    assert (truth.name, truth.kind, truth.scale, truth.criterion) == ("truth", "scale", scale, "truth")
    assert truth.required
    assert short.output.forms == ("schema", "tool", "json", "text")
    assert short.output.function == "submit_verdict"
    assert short.prompt == (Message("system", ("intro", "criteria", "output")), Message("user", ("item",)))
    assert short.texts["intro"]
    assert short.aggregate == Aggregate()
    assert (short.presets, short.let, short.rules, short.types, short.options) == ((), {}, (), None, ())
    assert short.preference is None
    assert short.source == TEN_LINES


def test_defaults_follow_the_language_and_mode() -> None:
    """The default intro and reason are in the rubric's language; intros of the two modes differ."""
    chinese = rubric(changed(TEN_LINES, "mode: score", "mode: score\nlanguage: zh-Hans"))
    assert "回答" in chinese.texts["intro"]
    assert "理由" in chinese.output.fields[0].text
    unknown = rubric(changed(TEN_LINES, "mode: score", "mode: score\nlanguage: fr"))
    assert unknown.texts["intro"] == rubric(TEN_LINES).texts["intro"]
    assert rubric(PAIR).texts["intro"] != unknown.texts["intro"]


def test_an_instruction_may_belong_to_an_output_field() -> None:
    """`asked` names an output field; another name is a mistake with its line and the fields that exist."""
    rubric = parse_rubric(TEN_LINES + "general: [Be fair., {text: Say why., asked: reason}]\n", file=None)
    assert rubric.general == (Instruction("Be fair."), Instruction("Say why.", "reason"))
    with pytest.raises(RubricError, match="unknown output field 'raeson'") as caught:
        parse_rubric(TEN_LINES + "general: [{text: Say why., asked: raeson}]\n", file=None)
    assert "reason" in str(caught.value)


def test_types_and_general_are_in_the_default_prompt() -> None:
    """Blocks that have something to show are in the default prompt; notes on a type stand with the item."""
    text = TEN_LINES + "general: [Be fair.]\ntypes: {field: question, notes: {maths: [Check the sum.]}}\n"
    assert [(message.role, message.blocks) for message in rubric(text).prompt] == [
        ("system", ("intro", "criteria", "general", "output")),
        ("user", ("types", "item")),
    ]
    types = rubric(text).types
    assert types is not None
    assert types.names == {"maths": "maths"}


@pytest.mark.parametrize(
    ("required", "response"),
    [
        ("{question: text, answer: text, context: text}", "answer"),
        ("{response: text, output: text, n: number}", "output"),
        ("{question: text, essay: text, ok: bool}", "essay"),
    ],
)
def test_the_response_is_found_by_its_usual_name(required: str, response: str) -> None:
    """Without `responses` it is the last required text of a usual name, else the last required text."""
    assert rubric(changed(TEN_LINES, "{question: text, answer: text}", required)).item.responses == (response,)


def test_item_details() -> None:
    """Aliases, labels and what is judged are taken from the file; labels are made from names else."""
    text = changed(
        TEN_LINES,
        "required: {question: text, answer: text}",
        "required: {question: text, answer: text}\n  optional: {final_turn_b: text, past: turns}\n"
        "  aliases: {prompt: question, key: id}\n  judged: [answer]",
    )
    item = rubric(text + "labels: {answer: 'What it said:'}\n").item
    assert item.aliases == {"prompt": "question", "key": "id"}
    assert item.judged == ("answer",)
    assert {f.name: f.label for f in item.fields} == {
        "question": "Question",
        "answer": "What it said:",
        "final_turn_b": "Final turn B",
        "past": "Past",
    }


def test_slots_and_criteria_expand() -> None:
    """_x gives all fields of a, then all of b; criteria give their fields one after another."""
    fields = rubric(PAIR).output.fields
    assert [f.name for f in fields] == [
        *("reason_a", "rank_a", "reason_b", "rank_b", "note_safe", "safe", "note_overall", "overall")
    ]
    by_name = {f.name: f for f in fields}
    assert (by_name["rank_b"].slot, by_name["rank_b"].base) == ("b", "rank")
    assert (by_name["safe"].slot, by_name["safe"].base, by_name["safe"].criterion) == (None, "safe", "safe")
    assert by_name["note_safe"].criterion == "safe"
    assert by_name["reason_a"].text == "What is good about A and not about B"
    assert by_name["reason_b"].text == "What is good about B and not about A"


def test_short_form_has_its_own_order() -> None:
    """`short` names the fields of the short form in order, expanded; the default leaves out texts and lists."""
    assert [f.name for f in asked_fields(rubric(PAIR), short=True)] == ["rank_a", "rank_b", "safe", "overall"]
    without = changed(PAIR, '  short: [rank_x, "{criterion}"]\n', "")
    assert [f.name for f in asked_fields(rubric(without), short=True)] == ["rank_a", "rank_b", "safe", "overall"]


def test_short_form_may_name_fields_that_an_option_drops() -> None:
    """A name that only exists in another variant is passed over."""
    text = changed(SCALED, "output:\n", 'output:\n  short: [passages, "{criterion}"]\n')
    assert rubric(text).output.short == ("truth", "style")
    assert rubric(text, quotes=True).output.short == ("passages", "truth", "style")


def test_rules_expand() -> None:
    """Slots exchange names, literals and letters; criteria fill in their name, and placeholders made of it."""
    rules = {rule.id: rule for rule in rubric(PAIR).rules}
    assert list(rules) == ["rank:a", "rank:b", "tied:safe", "tied:overall"]
    assert rules["rank:a"].condition == "rank_a > rank_b and overall == 'B'"
    assert rules["rank:b"].condition == "rank_b > rank_a and overall == 'A'"
    assert rules["rank:b"].say == "B ranks {rank_b}, A ranks {rank_a}; make rank_b low or overall B."
    assert rules["rank:a"].severity == "violation"
    assert rules["tied:safe"].condition == "safe == 'tie' and gap > 3"
    assert rules["tied:safe"].say == "safe is '{safe}' but {gap} apart"
    assert rules["tied:safe"].severity == "warning"


def test_presets_expand() -> None:
    """Slots exchange names and values of a preset; a key with {criterion} sets every criterion."""
    one, other, both = rubric(PAIR).presets
    assert (one.when, one.call) == ("blank(response_a)", True)
    assert one.set == {"rank_a": 1, "overall": "B", "reason_a": "Blank, so B wins."}
    assert other.set == {"rank_b": 1, "overall": "A", "reason_b": "Blank, so A wins."}
    assert (both.call, both.set) == (False, {"safe": "tie", "overall": "tie"})


@pytest.mark.parametrize(("scale", "low", "high"), [("0-10", 0, 10), ("1-5", 1, 5)])
def test_the_scale_option_chooses_scale_anchors_and_examples(scale: str, low: int, high: int) -> None:
    """The chosen range decides anchors, examples, the value `low` and the names scale_min and scale_max."""
    concrete = rubric(SCALED, scale=scale)
    truth = concrete.criteria[0]
    assert (truth.scale.bottom, truth.scale.top) == (low, high)
    assert truth.scale.anchors[-1] == Anchor((high, high), "right")
    assert concrete.presets[0].set == {"truth": low, "style": low}
    assert list(concrete.let.items())[:2] == [("scale_min", str(low)), ("scale_max", str(high))]
    found = compile_rubric(concrete).check({"truth": low, "style": high}, {})
    assert [v.message for v in found.violations] == [f"truth {low} is the bottom {low}"]
    if scale == "0-10":
        assert truth.examples == (
            Example(0, "Why?", ("",)),
            Example(10, "Why?", ("so", "thus"), "both"),
        )


def test_the_detail_option_drops_examples_then_anchors() -> None:
    """anchors has no examples, bare has neither, on named scales too."""
    assert rubric(SCALED, detail="anchors").criteria[0].examples == ()
    assert rubric(SCALED, detail="anchors").criteria[0].scale.anchors
    assert rubric(SCALED, detail="bare").criteria[0].scale.anchors == ()
    named = changed(TEN_LINES, "{range: [1, 5], anchors: {1: wrong, 5: right}}", "five")
    named += (
        "scales: {five: {range: [1, 5], anchors: {1: wrong}}}\noptions: {detail: {default: bare, values: [bare]}}\n"
    )
    assert rubric(named).scales["five"].anchors == ()


def test_needs_and_unless() -> None:
    """Options keep and drop fields, groups, derived values and rules."""
    assert [f.name for f in rubric(SCALED).output.fields] == ["why_truth", "why_style", "truth", "style"]
    assert [f.name for f in rubric(SCALED, style=2).output.fields] == ["truth", "style"]
    assert "passages" in [f.name for f in rubric(SCALED, quotes=True).output.fields]
    assert list(rubric(SCALED).let) == ["scale_min", "scale_max"]
    assert list(rubric(SCALED, scale="1-5", quotes=True).let) == ["scale_min", "scale_max", "spare", "all"]


def test_options_are_declared_and_chosen() -> None:
    """A switch has the values false and true; values may be given as they are written."""
    concrete = rubric(SCALED, quotes="true", style="2")
    assert concrete.options[2:] == (Option("quotes", False, (False, True)), Option("style", "plain", ("plain", 2)))
    assert concrete.chosen == {"scale": "0-10", "detail": "examples", "quotes": True, "style": 2}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"skale": "0-10"}, "unknown option 'skale'"),
        ({"scale": "0-9"}, "'0-9'"),
        ({"quotes": "maybe"}, "'maybe'"),
        ({"quotes": 1}, "'1'"),
    ],
)
def test_unknown_options_are_told_with_what_exists(options: dict[str, Any], message: str) -> None:
    """An unknown option or value lists the known ones."""
    with pytest.raises(UnknownNameError) as caught:
        rubric(SCALED, **options)
    assert message in caught.value.message
    assert caught.value.known


def test_a_rubric_without_options_says_so() -> None:
    """Any option of a rubric that has none is unknown."""
    with pytest.raises(UnknownNameError, match="no options"):
        rubric(TEN_LINES, scale="0-10")


def test_weights_make_a_composite() -> None:
    """There is a composite if and only if the criteria have weights."""
    assert rubric(SCALED).aggregate.composite
    assert not rubric(PAIR).aggregate.composite


def test_the_preferred_side() -> None:
    """It is the field named in `report`, else the only slots field, else one of a usual name, else none."""
    assert rubric(PAIR).preference == "overall"
    unsaid = changed(PAIR, "report: {preference: overall}\n", "")
    assert rubric(unsaid).preference is None
    usual = unsaid.replace("overall", "winner")
    assert rubric(usual).preference == "winner"
    single = changed(TEN_LINES, "mode: score", "mode: compare")
    single = changed(single, "{question: text, answer: text}", "{response_a: text, response_b: text}")
    single = changed(single, "range: [1, 5], anchors: {1: wrong, 5: right}", "values: [A, B, tie], slots: true")
    assert rubric(single).preference == "truth"


def test_types_and_history() -> None:
    """Notes keep examples and scores, names lead to groups, and the layout of turns is kept."""
    text = changed(TEN_LINES, "answer: text}", "answer: text, kind: text}\n  optional: {past: turns, picture: images}")
    text += """\
types:
  field: kind
  fill: group
  names: {sum: maths, product: maths}
  notes: {maths: [Add up., {text: Show steps., example: 1 + 1, score: 5}]}
  categories: {numbers: [sum, product]}
history: {heading: Before, turn: "{n}: {user} / {assistant}", empty: nothing}
images: {shown: true}
aggregate: {per: [kind], means: [item, task], robustness: {group-by: id, min: 2}}
ask: {Is it true?: truth, How good?: null}
"""
    concrete = rubric(text)
    types = concrete.types
    assert types is not None
    assert (types.item_field, types.fill, types.names) == ("kind", "group", {"sum": "maths", "product": "maths"})
    assert [(note.text, note.example, note.score) for note in types.notes["maths"]] == [
        ("Add up.", "", None),
        ("Show steps.", "1 + 1", 5),
    ]
    assert types.categories == {"numbers": ("sum", "product")}
    assert (concrete.history.heading, concrete.history.empty) == ("Before", "nothing")
    assert concrete.images_shown
    assert concrete.aggregate.per == ("kind",)
    assert concrete.aggregate.means == ("item", "task")
    assert concrete.aggregate.robustness == {"group-by": "id", "min": 2}
    assert concrete.ask == {"Is it true?": "truth", "How good?": None}
    assert {"group", "category"} <= expression_names(concrete)


def test_the_fill_option_says_how_types_are_shown() -> None:
    """An option called fill switches between the type as given and its group, for built-in rubrics too."""
    text = changed(TEN_LINES, "mode: score", "mode: score\noptions: {fill: {default: group, values: [given, group]}}")
    text += "types: {field: question, names: {sum: maths}, notes: {maths: [Add up.]}}\n"
    for rubrics in (rubric(text), rubric(text, fill="given")):
        assert rubrics.types is not None
        assert rubrics.types.fill == rubrics.chosen["fill"]
    for name in ("alignmm-critic", "alignmm-critic.en"):
        fills = [load_rubric(name, chosen).types for chosen in ({}, {"fill": "group"})]
        assert [types.fill for types in fills if types is not None] == ["given", "group"]


def test_names_of_expressions() -> None:
    """Rules may use inputs, output fields and derived values."""
    assert expression_names(rubric(SCALED, quotes=True)) == {
        *("question", "answer", "passages", "why_truth", "why_style", "truth", "style"),
        *("scale_min", "scale_max", "all"),
    }


def test_output_fields_in_full() -> None:
    """Choices, lists of objects, languages and patterns of published text formats."""
    text = (
        TEN_LINES
        + """\
output:
  forms: [lines, text]
  function: grade
  answer: "{score}"
  fields:
    - {name: level, type: [low, mid], nullable: true, required: false}
    - {name: issues, type: list, of: {kind: [a, b], real: bool, text: text}, required: true}
    - each: criterion
      fields: [{name: "{criterion}", scale: criterion, pattern: ["Score for {criterion}: (\\\\d)"], take: last}]
    - {name: why, type: text, language: zh}
"""
    )
    output = rubric(text).output
    level, issues, truth, why = output.fields
    assert (output.forms, output.function, output.answer) == (("lines", "text"), "grade", "{score}")
    assert level.scale == Scale("", "nominal", values=("low", "mid"))
    assert (level.nullable, level.required, level.short) == (True, False, True)
    assert [(f.name, f.kind) for f in issues.items] == [("kind", "scale"), ("real", "bool"), ("text", "text")]
    assert (issues.required, issues.short) == (True, False)
    assert (truth.patterns, truth.take) == (("Score for truth: (\\d)",), "last")
    assert (why.language, why.required) == ("zh", False)


def test_identity_is_text_and_options() -> None:
    """The digest changes with the text and with every chosen option, and with nothing else."""
    base = rubric(SCALED)
    assert base.digest == rubric(SCALED, scale="0-10").digest
    assert len({base.digest, rubric(SCALED, scale="1-5").digest, rubric(SCALED + "# \n").digest}) == 3
    assert parse_rubric(SCALED, file=None).digest == base.digest


def test_builtin_names_and_files(tmp_path: Path) -> None:
    """A rubric is loaded by built-in name, dots included, or by path, with or without a byte-order mark."""
    assert "alignmm-critic.en" in builtin_names()
    assert load_rubric("alignmm-critic.en").name == "alignmm-critic.en"
    path = tmp_path / "own.yaml"
    path.write_text("\ufeff" + TEN_LINES, encoding="utf-8")
    assert load_rubric(path).name == "short"
    assert load_rubric(str(path)).digest == rubric(TEN_LINES).digest


@pytest.mark.parametrize("name", ["doc-qs", "nowhere/own.yaml", "", "a\0b"])
def test_neither_name_nor_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is neither built in nor a file is an unknown rubric, or an unreadable one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError):
        load_rubric(name)


def test_close_builtin_names_are_offered() -> None:
    """A misspelt built-in name is told with the one that is close."""
    with pytest.raises(UnknownNameError) as caught:
        load_rubric("doc_qa")
    assert caught.value.close == ["doc-qa", "doc-qa-rag"]


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    """Bytes that are not UTF-8 are a mistake with its line."""
    path = tmp_path / "own.yaml"
    path.write_bytes(b"rubric: short\ntitle: \xff\n")
    with pytest.raises(RubricError) as caught:
        load_rubric(path)
    assert [p.line for p in caught.value.problems] == [2]


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    """A file over a megabyte is refused without reading on."""
    path = tmp_path / "own.yaml"
    path.write_bytes("# 字\n".encode() * 300_000)
    with pytest.raises(RubricError, match="larger than"):
        load_rubric(path)


def test_all_mistakes_come_in_one_error() -> None:
    """The error names the file and carries every mistake, sorted by line; a wrong option does not hide them."""
    text = changed(changed(TEN_LINES, "mode: score", "mode: scor"), "text: Is it true?", "txt: Is it true?")
    with pytest.raises(RubricError) as caught:
        rubric(text, nothing="here")
    lines = str(caught.value).splitlines()
    assert lines[0] == "r.yaml:2 $.mode: 'scor' is not possible here (did you mean score?)"
    assert [p.line for p in caught.value.problems] == [2, 6, 7]


def test_a_name_without_its_ending_offers_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where tone.yaml lies beside, `tone` is told so; otherwise the built-in names are."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnknownNameError, match="known: "):
        load_rubric("tone")
    (tmp_path / "tone.yaml").write_text("rubric: tone\n")
    with pytest.raises(UnknownNameError, match=r"did you mean the file tone\.yaml\?"):
        load_rubric("tone")


def test_an_open_quote_is_told_where_it_opens() -> None:
    """Not at the end of the file, where the reader misses its end."""
    with pytest.raises(RubricError) as caught:
        parse_rubric('rubric: x\ntitle: "abc\nmode: score\n', file="r.yaml")
    assert "r.yaml:2: not YAML: a quote that opens here is not closed" in str(caught.value)
