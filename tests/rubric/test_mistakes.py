"""Every mistake of a rubric file is found, with its line, its place and a remedy."""

# ruff: noqa: E501  (a table: one case a line)

from __future__ import annotations

import pytest

from evenhand.errors import RubricError
from evenhand.rubric.names import RESERVED, check_case
from evenhand.rubric.problems import Problems
from evenhand.table import columns
from rubric_texts import PAIR, SCALED, TEN_LINES, changed, problems, rubric

#: rubric, piece replaced, by what, line, path, part of the message or remedy
CASES: list[tuple[str, str, str, int, str, str]] = [
    # structure
    (TEN_LINES, "rubric: short", "rubric: Short One", 1, "$.rubric", "kebab-case"),
    (TEN_LINES, "rubric: short", "rubrik: short", 1, "$.rubrik", "did you mean rubric?"),
    (TEN_LINES, "rubric: short", "rubrik: short", 1, "$", "key 'rubric' is missing"),
    (TEN_LINES, "mode: score", "mode: scorr", 2, "$.mode", "did you mean score?"),
    (TEN_LINES, "mode: score", "mode: score\nmode: score", 3, "$.mode", "stands twice, first in line 2"),
    (TEN_LINES, "mode: score", "mode: score\nversion: 1.5", 3, "$.version", "must be a whole number"),
    (TEN_LINES, "mode: score", "mode: score\ntitle: 5", 3, "$.title", "must be a text, not a number (put it in quotes)"),
    (TEN_LINES, "mode: score", "mode: score\ntitle:\n  a: b", 3, "$.title", "must be a text, not a mapping"),
    (TEN_LINES, "mode: score", "mode: score\nlanguage: English!", 3, "$.language", "language code"),
    (TEN_LINES, "    text: Is it true?\n", "", 6, "$.criteria[0]", "key 'text' is missing"),
    (TEN_LINES, "    text: Is it true?\n", "    txet: x\n", 7, "$.criteria[0].txet", "did you mean text?"),
    # item
    (TEN_LINES, "answer: text", "answer: txt", 4, "$.item.required.answer", "did you mean text?"),
    (TEN_LINES, "answer: text", "the-answer: text", 4, "$.item.required.the-answer", "map other columns with aliases"),
    (TEN_LINES, "answer: text", "answer: text, id: text", 4, "$.item.required.id", "every item has an id"),
    (TEN_LINES, "{question: text, answer: text}", "{n: number}", 3, "$.item", "no response to judge"),
    (TEN_LINES, "answer: text}", "answer: text}\n  optional: {answer: text}", 5, "$.item.optional.answer", "both"),
    (TEN_LINES, "answer: text}", "answer: text}\n  aliases: {a: anser}", 5, "$.item.aliases.a", "did you mean answer?"),
    (TEN_LINES, "answer: text}", "answer: text}\n  aliases: {answer: id}", 5, "$.item.aliases.answer", "input itself"),
    (TEN_LINES, "answer: text}", "answer: text}\n  judged: [n]", 5, "$.item.judged[0]", "unknown text input 'n'"),
    (TEN_LINES, "answer: text}", "answer: text}\n  judged: [question]", 5, "$.item.judged", "answer is judged too"),
    (TEN_LINES, "answer: text}", "answer: text}\n  blank: [n]", 5, "$.item.blank[0]", "required text input"),
    (TEN_LINES, "answer: text}", "answer: text}\n  responses: [n]", 5, "$.item.responses[0]", "required text input"),
    (TEN_LINES, "answer: text}", "answer: text}\n  responses: []", 5, "$.item.responses", "exactly one response"),
    (TEN_LINES, "mode: score", "mode: compare", 3, "$.item", "mode compare needs two responses"),
    (PAIR, "response_b: text}", "response_b: text}\n  responses: [prompt, prompt]", 5, "$.item.responses", "two different"),
    # scales and criteria
    (TEN_LINES, "{1: wrong,", "{0: wrong,", 8, "$.criteria[0].scale.anchors.0", "range: 1 to 5, whole numbers"),
    (TEN_LINES, "{1: wrong,", "{1-9: wrong,", 8, "$.criteria[0].scale.anchors.1-9", "not on the scale"),
    (TEN_LINES, "{1: wrong,", "{1-5: wrong,", 8, "$.criteria[0].scale.anchors", "overlap"),
    (TEN_LINES, "range: [1, 5]", "rang: [1, 5]", 8, "$.criteria[0].scale.rang", "did you mean range?"),
    (TEN_LINES, "{range: [1, 5], anchors: {1: wrong, 5: right}}", "five", 8, "$.criteria[0].scale", "unknown scale 'five'"),
    (TEN_LINES, "{range: [1, 5], anchors: {1: wrong, 5: right}}", "{0-3: {}}", 8, "$.criteria[0].scale", "no option `scale`"),
    (TEN_LINES, "name: truth", "name: the truth", 6, "$.criteria[0].name", "can't be the name of a criterion"),
    (PAIR, "name: overall, text", "name: safe, text", 10, "$.criteria[1].name", "criterion 'safe' stands twice"),
    (PAIR, "name: overall, text", "name: Safe, text", 10, "$.criteria[1].name", "only in letter case"),
    (TEN_LINES, "name: truth", "name: status", 6, "$.criteria[0].name", "as in status_rating"),
    (TEN_LINES, "name: truth", "name: Composite", 6, "$.criteria[0].name", "column that every export has"),
    (TEN_LINES, "name: truth", "name: reason", 6, "$.criteria[0].name", "or write output.fields"),
    (TEN_LINES, "answer: text", "answer: text, Answer: text", 4, "$.item.required.Answer", "only in letter case"),
    (TEN_LINES, "answer: text", "answer: text, ID: text", 4, "$.item.required.ID", "every item has an id"),
    (SCALED, "weight: 0.5\n", "weight: 0.4\n", 13, "$.criteria[0].weight", "sum to 0.9, not to 1"),
    (SCALED, "weight: 0.5\n", "weight: 1.5\n", 13, "$.criteria[0].weight", "not between 0 and 1"),
    (SCALED, "weight: 0.5\n", "weight: -0.5\n", 13, "$.criteria[0].weight", "not between 0 and 1"),
    (SCALED, "weight: 0.5\n", "weight: .nan\n", 13, "$.criteria[0].weight", "not a usable number"),
    (SCALED, "weight: 0.5\n", "weight: half\n", 13, "$.criteria[0].weight", "must be a number"),
    (TEN_LINES, "range: [1, 5], anchors: {1: wrong, 5: right}}", "values: [wrong, right]}\n    weight: 1", 9, "$.criteria[0].weight", "labels have no mean"),
    (TEN_LINES, "range: [1, 5], anchors: {1: wrong, 5: right}}", "values: [1, 2], level: nominal}\n    weight: 1", 9, "$.criteria[0].weight", "its values are labels"),
    (SCALED, "    weight: 0.5\n", "", 11, "$.criteria[0]", "has no weight, but others have"),
    (SCALED, "{0-10: {}, 1-5: {}}", "{0-10: {}}", 18, "$.criteria[1].scale", "no entry for '1-5'"),
    (SCALED, "{0-10: {}, 1-5: {}}", "{0-10: {}, 1-5: {}, 0-1: {}}", 18, "$.criteria[1].scale.0-1", "has no value '0-1'"),
    (SCALED, "{0-10: {}, 1-5: {}}", "{0-10: {}, 1-5: {7: x}}", 18, "$.criteria[1].scale.1-5.7", "not on the scale"),
    (SCALED, "1-5: [{at: 1,", "1-5: [{at: 0,", 17, "$.criteria[0].examples.1-5[0].at", "with scale=1-5"),
    (SCALED, "1-5: [{at: 1,", "1-4: [{at: 1,", 17, "$.criteria[0].examples.1-4", "has no value '1-4'"),
    (SCALED, "{at: 0, question: Why?", '{at: 0, question: "="', 16, "$.criteria[0].examples.0-10[0].question", "there is none"),
    (PAIR, "  rank: {range", "  criterion: {range", 7, "$.scales.criterion", "can't be called criterion"),
    # options
    (SCALED, "  quotes: {def", "  all quotes: {def", 8, "$.options['all quotes']", "can't be the name of an option"),
    (SCALED, "default: 0-10", "default: 0-9", 6, "$.options.scale.default", "not among the values"),
    (SCALED, "values: [bare,", "values: [bar,", 7, "$.options.detail.values[0]", "did you mean bare?"),
    (SCALED, "{default: plain, values: [plain, 2]}", "{default: plain}", 9, "$.options.style", "has no values"),
    (SCALED, "needs: quotes, type", "needs: qotes, type", 21, "$.output.fields[0].needs", "did you mean quotes?"),
    (SCALED, "needs: quotes, type", "needs: scale, type", 21, "$.output.fields[0].needs", "is no switch"),
    (SCALED, "style=2", "style=3", 22, "$.output.fields[1].unless", "unknown value of option 'style' '3'"),
    (TEN_LINES, "mode: score", "mode: score\noptions: {scale: {default: a, values: [a]}}", 3, "$.options.scale", "LOW-HIGH"),
    (
        TEN_LINES,
        "mode: score",
        "mode: score\noptions: {scale: {default: 0-3, values: [0-3]}}",
        3,
        "$.options.scale",
        "no criterion leaves its scale",
    ),
    (SCALED, "  quotes: {def", "  fill: {default: group, values: [given, group]}\n  quotes: {def", 8, "$.options.fill", "the rubric has no types"),
    (SCALED, "  quotes: {def", "  fill: {default: gruop, values: [given, gruop]}\n  quotes: {def", 8, "$.options.fill.values[1]", "did you mean group?"),
    (TEN_LINES, "mode: score", "mode: score\noptions: {fill: {default: group, values: [given, group]}}\ntypes: {field: question, fill: given, notes: {g: [x]}}", 4, "$.types.fill", "the option `fill` decides this"),
    # output
    (PAIR, "[rank_x, ", "[rnk_x, ", 12, "$.output.short[0]", "unknown field 'rnk_a'"),
    (PAIR, '[rank_x, "{criterion}"]', "[rank_x]", 12, "$.output.short", "leaves out safe, overall"),
    (PAIR, "- {name: rank_x, scale: rank}", "- {name: rank, scale: rank}", 17, "$.output.fields[0].fields[1]", "end in _x"),
    (PAIR, '"note_{criterion}"', "note", 20, "$.output.fields[1].fields[0]", "must hold {criterion}"),
    (PAIR, "scale: rank}", "scale: rnk}", 17, "$.output.fields[0].fields[1].scale", "did you mean rank?"),
    (PAIR, '{name: "{criterion}", scale: criterion}', "{name: 'x_{criterion}', type: bool}", 11, "$.output", "no field answers"),
    (PAIR, '{name: "{criterion}", scale: criterion}', "{name: '{criterion}', type: bool}", 21, "$.output.fields[1].fields[1]", "not on its scale"),
    (PAIR, "scale: criterion}", "scale: criterion, nullable: true}", 21, "$.output.fields[1].fields[1].nullable", "can't be nullable"),
    (PAIR, "scale: criterion}", "scale: criterion, required: false}", 21, "$.output.fields[1].fields[1].required", "can't be required: false"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}"', 20, "$.output.fields[1].fields[0]", "needs a type or a scale"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, scale: rank', 20, "$.output.fields[1].fields[0]", "either a type or a scale"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: txt', 20, "$.output.fields[1].fields[0].type", "did you mean text?"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, of: text', 20, "$.output.fields[1].fields[0].of", "goes with type: list"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, take: last', 20, "$.output.fields[1].fields[0]", "take goes with pattern"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, pattern: "(x"', 20, "$.output.fields[1].fields[0].pattern", "not a regular expression"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, pattern: [x, "(y)"]', 20, "$.output.fields[1].fields[0].pattern[0]", "exactly one group, has 0"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, pattern: "((a+)+)$"', 20, "$.output.fields[1].fields[0].pattern", "exactly one group, has 2"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, pattern: "(?:a+)+(b)$"', 20, "$.output.fields[1].fields[0].pattern", "busy for ever"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: text, pattern: ["(y)", "(?:a|ab)*(b)"]', 20, "$.output.fields[1].fields[0].pattern[1]", "make the inner repeat possessive"),
    (PAIR, 'note_{criterion}", type: text', 'note_{criterion}", type: list, pattern: "(y)"', 20, "$.output.fields[1].fields[0]", "can't be read by a pattern"),
    (SCALED, "{name: passages,", "{name: truth,", 23, "$.output.fields[2].fields[0]", "field 'truth' stands twice, with quotes=true"),
    (SCALED, "{name: passages,", "{name: status,", 21, "$.output.fields[0].name", "column that every export has"),
    (SCALED, "{name: passages,", "{name: two words,", 21, "$.output.fields[0]", "can't be the name of a field"),
    (SCALED, "{name: passages,", "{name: answer,", 19, "$.output", "required input and an output field"),
    (SCALED, "{name: passages,", "{name: 'x_{criterion}',", 21, "$.output.fields[0]", "put it under each: criterion"),
    (SCALED, "answer: text}", "answer: text}\n  optional: {why_truth: bool}", 20, "$.output", "make the input text"),
    (SCALED, "{name: passages, needs: quotes, type: list, of: text}", "{each: slot, fields: [{name: a_x, type: bool}]}", 21, "$.output.fields[0]", "only makes sense in compare mode"),
    # presets
    (PAIR, "{rank_x: 1,", "{rank_x: 0,", 23, "$.preset[0].set.rank_x", "range: 1 to 7"),
    (PAIR, "{rank_x: 1,", "{rnk_x: 1,", 23, "$.preset[0].set.rnk_x", "did you mean rank_a"),
    (PAIR, "{rank_x: 1,", "{rank_x: null,", 23, "$.preset[0].set.rank_x", "can't be null"),
    (PAIR, 'reason_x: "Blank, so Y wins."', "reason_x: 5", 23, "$.preset[0].set.reason_x", "does not fit"),
    (PAIR, "blank(response_x), set", "blank(respons_x), set", 23, "$.preset[0].when", "unknown name 'respons_a'"),
    (SCALED, '{"{criterion}": low}', "{truth: low}", 25, "$.preset[0]", "nothing sets style"),
    # let, rules
    (PAIR, "abs(rank_a - rank_b)", "abs(rank_a - rank)", 25, "$.let.gap", "unknown name 'rank'"),
    (PAIR, "let: {gap:", "let: {safe:", 25, "$.let.safe", "name 'safe' is taken"),
    (PAIR, "let: {gap:", "let: {the gap:", 25, "$.let['the gap']", "can't be a name"),
    (PAIR, "rank_x > rank_y", "rank_x > rank_z", 27, "$.rules[0].if", "unknown name 'rank_z'"),
    (PAIR, "rank_x > rank_y", "rank_x >", 27, "$.rules[0].if", "not a valid expression"),
    (PAIR, "{rank_y};", "{rank_z};", 28, "$.rules[0].say", "unknown placeholder {rank_z}"),
    (PAIR, "severity: warning", "severity: waring", 29, "$.rules[1].severity", "did you mean warning?"),
    (PAIR, "id: tied, each: criterion", "id: tied, each: criteria", 29, "$.rules[1].each", "did you mean criterion?"),
    (SCALED, "id: bottom,", "id: bottom, each: slot,", 30, "$.rules[0]", "only makes sense in compare mode"),
    (SCALED, "rules:\n", "rules:\n  - {id: bottom, if: truth == 3, say: x}\n", 31, "$.rules[1].id", "rule 'bottom' stands twice"),
    # the rest
    (PAIR, "preference: overall", "preference: rank_a", 31, "$.report.preference", "field on a scale of slots 'rank_a'"),
    (TEN_LINES, "mode: score", "mode: score\nlabels: {anser: x}", 3, "$.labels.anser", "did you mean answer?"),
    (TEN_LINES, "mode: score", "mode: score\ntext: {item: x}", 3, "$.text.item", "already is a block"),
    (TEN_LINES, "mode: score", "mode: score\nask: {Is it?: trut}", 3, "$.ask['Is it?']", "did you mean truth?"),
    (TEN_LINES, "mode: score", "mode: score\nask: {Is it?: truth, is  it !: null}", 3, "$.ask['is  it !']", "is the same as 'Is it?'"),
    (TEN_LINES, "mode: score", "mode: score\nask: {'?': truth}", 3, "$.ask['?']", "a phrase needs words"),
    (TEN_LINES, "mode: score", "mode: score\naggregate: {per: [kind]}", 3, "$.aggregate.per[0]", "unknown input 'kind'"),
    (TEN_LINES, "mode: score", "mode: score\naggregate: {robustness: {min: 1}}", 3, "$.aggregate.robustness.min", "2 members"),
    (TEN_LINES, "mode: score", "mode: score\naggregate: {robustness: {group-by: idd before the last -}}", 3, "$.aggregate.robustness.group-by", "did you mean id?"),
    (TEN_LINES, "mode: score", "mode: score\nhistory: {turn: x}", 3, "$.history.turn", "neither {user} nor {assistant}"),
    (TEN_LINES, "mode: score", "mode: score\nprompt: [{role: user, blocks: [itm]}]", 3, "$.prompt[0].blocks[0]", "did you mean item?"),
    (TEN_LINES, "mode: score", "mode: score\nprompt: [{role: user, blocks: [question]}]", 3, "$.prompt", "no user message shows answer"),
    (TEN_LINES, "mode: score", "mode: score\nprompt: [{role: system, blocks: [item]}]", 3, "$.prompt", "no user message shows answer"),
    (TEN_LINES, "mode: score", "mode: score\nprompt: [{role: user, blocks: [item, types]}]", 3, "$.prompt[0].blocks[1]", "has no types"),
    (TEN_LINES, "mode: score", "mode: score\nprompt: [{role: user, blocks: [item, 'scale:x']}]", 3, "$.prompt[0].blocks[1]", "unknown block"),
    # types
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: kind, notes: {g: [x]}}", 3, "$.types.field", "unknown text input 'kind'"),
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: question, notes: {g: []}}", 3, "$.types.notes.g", "has no notes"),
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: question, names: {n: h}, notes: {g: [x]}}", 3, "$.types.names.n", "unknown group of notes 'h'"),
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: question, names: {n: h}, notes: {g: [x], h: [x]}}", 3, "$.types.notes.g", "no type name leads to"),
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: question, notes: {g: [x]}, categories: {c: [h]}}", 3, "$.types.categories.c[0]", "unknown type name 'h'"),
    (TEN_LINES, "mode: score", "mode: score\ntypes: {field: question, notes: {g: [{text: x, score: 9}]}}", 3, "$.types.notes.g[0].score", "no criterion's scale"),
    # requirement marks
    (TEN_LINES, "mode: score", "mode: score  #! A01\nrequirements: {ids: [A01-A03], elsewhere: [A03]}", 3, "$.requirements.ids", "no line is marked with A02"),
    (TEN_LINES, "mode: score", "mode: score  #! A01 A04\nrequirements: {ids: [A01]}", 2, "", "unknown requirement A04"),
    (TEN_LINES, "mode: score", "mode: score  #! A01\nrequirements: {ids: [A01], elsewhere: [A02]}", 3, "$.requirements.elsewhere[0]", "A02 is not among the ids"),
    (TEN_LINES, "mode: score", "mode: score\nrequirements: {ids: [A3-A1]}", 3, "$.requirements.ids[0]", "no id or range of ids"),
]  # fmt: skip


@pytest.mark.parametrize("text", [TEN_LINES, PAIR, SCALED])
def test_the_base_rubrics_have_no_mistake(text: str) -> None:
    """What the cases start from is free of mistakes in all variants."""
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "old", "new", "line", "path", "part"), CASES, ids=[f"{c[4]} {c[5]}"[:70] for c in CASES]
)
def test_mistake(text: str, old: str, new: str, line: int, path: str, part: str) -> None:
    """The mistake is told at its line and path, in words that help; the loader refuses what lint finds by default."""
    broken = changed(text, old, new)
    found = problems(broken)
    told = [p for p in found if p.path == path and part in p.render(None)]
    assert told, [p.render("r.yaml") for p in found]
    assert told[0].line == line
    if ", with " not in told[0].message:
        with pytest.raises(RubricError):
            rubric(broken)


def test_a_wrong_type_of_input_brings_no_further_mistakes() -> None:
    """One misspelt word is one mistake, although much depends on it."""
    assert len(problems(changed(SCALED, "answer: text", "answer: txt"))) == 1


def test_many_mistakes_at_once() -> None:
    """Mistakes of all kinds are told together, sorted by line."""
    text = changed(PAIR, "mode: compare", "mode: compare\nverson: 2")
    text = changed(text, "range: [1, 7]", "range: [7, 1]")
    text = changed(text, "gap > 3", "gp > 3")
    text = changed(text, "preference: overall", "preference: all")
    found = problems(text)
    assert [p.line for p in found] == [3, 8, 30, 32]
    assert found == sorted(found, key=lambda p: p.line or 0)


def test_mistakes_of_a_variant_name_it() -> None:
    """What is only wrong with an option changed says with which; the default variant loads."""
    text = changed(SCALED, "value: count(passages), needs: quotes", "value: count(pasages), needs: quotes")
    assert [p.message for p in problems(text)] == [
        "column 7: unknown name 'pasages'; did you mean passages?, with quotes=true"
    ]
    assert rubric(text).chosen["quotes"] is False


def test_expressions_are_checked_only_when_asked() -> None:
    """The structural loader knows nothing of the rule language."""
    from evenhand.rubric.load import parse_rubric

    text = changed(PAIR, "abs(rank_a - rank_b)", "this is + no expression")
    assert parse_rubric(text, file=None).let == {"gap": "this is + no expression"}
    assert problems(text)


@pytest.mark.parametrize("long", [False, True])
def test_reserved_names_are_the_columns_of_an_export(long: bool) -> None:
    """No output field can hide a column that evenhand adds."""
    manifest = {"asked": [], "orders": ["ab", "ba"]}
    names = set(columns(rubric(SCALED), manifest, long=long)) | set(columns(rubric(PAIR), manifest, long=long))
    assert names <= RESERVED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("blank(response_x), set", "blank(respons_x), set"),
        ("{rank_x: 1,", "{rnk_x: 1,"),
        ("{rank_y};", "{rnk_y};"),
        ("[rank_x, ", "[rnk_x, "),
        ("rank_x > rank_y", "rnk_x > rank_y"),
        ("{criterion} == 'tie'", "the_{criterion} == 'tie'"),
    ],
)
def test_a_mistake_of_an_expanded_entry_is_told_once(old: str, new: str) -> None:
    """A mistake in an entry for both slots or all criteria is one mistake."""
    assert len(problems(changed(PAIR, old, new))) == 1


def test_letter_case_is_checked_in_one_look_a_name() -> None:
    """Twenty thousand names take no time that one would notice (all against all would be minutes)."""
    found, folded = Problems(), dict[str, str]()
    for k in range(20_000):
        check_case(found, None, "field", f"field_{k}", folded)  # type: ignore[arg-type]
    assert (len(folded), found.sorted()) == (20_000, [])
