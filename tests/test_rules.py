"""Rules, derived values and presets of a rubric, over verdicts with and without all their fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import RubricError
from evenhand.item import Turn
from evenhand.rubric.model import ItemField, ItemSpec, Output, OutputField, Preset, Rubric, Rule, Types
from evenhand.rules import Checked, PresetResult, Rules, compile_rubric, fill
from evenhand.verdict import Violation

ITEM_FIELDS = ("answer", "context", "history", "type", "harmful")
OUTPUT_FIELDS = ("rank_a", "rank_b", "overall", "reason", "quotes", "harmful")


def make(*rules: Rule, **changes: Any) -> Rubric:
    """A small rubric with the given rules."""
    rubric = Rubric(
        name="small",
        version=1,
        mode="score",
        item=ItemSpec(tuple(ItemField(name, "text", False) for name in ITEM_FIELDS)),
        criteria=(),
        output=Output(tuple(OutputField(name, "text") for name in OUTPUT_FIELDS)),
        prompt=(),
        rules=rules,
    )
    return replace(rubric, **changes)


def rule(condition: str, say: str = "broken", *, id: str = "it", severity: Any = "violation") -> Rule:
    return Rule(id, severity, condition, say)


def check(rubric: Rubric, fields: dict[str, Any], item: dict[str, Any] | None = None) -> Checked:
    return compile_rubric(rubric).check(fields, item or {})


def test_broken_rules_come_in_order_with_severity_and_message() -> None:
    """A true condition is a violation with the rule's id, severity and filled message; a false one is nothing."""
    rubric = make(
        rule("gap > 3 and overall != 'better'", "ranks differ by {gap}; that is not '{overall}'", id="gap-label"),
        rule("rank_a < rank_b", id="kept"),
        rule("words(reason) < 5", "only {n_words} words", id="short", severity="warning"),
        let={"gap": "abs(rank_a - rank_b)", "n_words": "words(reason)"},
    )
    assert check(rubric, {"rank_a": 7, "rank_b": 2, "overall": "slightly better", "reason": "太短"}) == Checked(
        violations=(
            Violation("gap-label", "violation", "ranks differ by 5; that is not 'slightly better'"),
            Violation("short", "warning", "only 2 words"),
        ),
        derived={"gap": 5, "n_words": 2},
    )


@pytest.mark.parametrize("fields", [{}, {"rank_a": None}, {"rank_b": 3}])
def test_a_missing_field_leaves_the_rule_unchecked(fields: dict[str, Any]) -> None:
    """Null and absent are alike: the rule is neither broken nor kept, and says which name was missing."""
    checked = check(make(rule("rank_a > 6", id="cap:a"), rule("rank_b > 6", id="cap:b")), fields)
    assert checked.violations == ()
    assert "cap:a" in checked.not_checked
    assert checked.reasons["cap:a"] == "rank_a is missing"
    assert ("cap:b" in checked.not_checked) == ("rank_b" not in fields)


def test_a_clash_of_types_leaves_the_rule_unchecked() -> None:
    """A text compared with a number is no violation and no crash; the reason is kept."""
    checked = check(make(rule("rank_a > 6"), rule("rank_b / 0 > 1", id="zero")), {"rank_a": "seven", "rank_b": 1})
    assert checked.violations == ()
    assert checked.not_checked == ("it", "zero")
    assert "str" in checked.reasons["it"]
    assert "zero" in checked.reasons["zero"]


def test_a_missing_name_does_not_matter_where_it_is_not_reached() -> None:
    """Evaluation is lazy, and blank, given and turns accept what is missing."""
    rubric = make(
        rule("harmful and rank_a < 5", id="lazy"),
        rule("blank(context)", id="no-context", severity="warning"),
        rule("turns(history) == 0", id="no-history", severity="warning"),
        rule("given(rank_a) and rank_a > 7", id="asked"),
    )
    checked = check(rubric, {"harmful": False})
    assert [v.rule for v in checked.violations] == ["no-context", "no-history"]
    assert checked.not_checked == ()


def test_derived_values_build_on_each_other_and_pass_on_what_is_missing() -> None:
    """A derived value with a missing input is missing itself, and so is what depends on it; others are not."""
    rubric = make(
        rule("double > 4", id="double"),
        rule("side == 'A'", id="side"),
        let={"gap": "rank_a - rank_b", "double": "gap * 2", "side": "'A' if rank_a > 3 else None"},
    )
    whole = check(rubric, {"rank_a": 5, "rank_b": 2})
    assert whole.derived == {"gap": 3, "double": 6, "side": "A"}
    assert [v.rule for v in whole.violations] == ["double", "side"]
    part = check(rubric, {"rank_a": 5})
    assert part.derived == {"side": "A"}
    assert part.reasons == {"double": "rank_b is missing"}
    assert check(rubric, {"rank_a": 1, "rank_b": 0}).reasons == {"side": "side is missing"}


def test_an_output_field_counts_before_the_item_field_of_the_same_name() -> None:
    """The judge's value wins; where it gave none, the value given with the item is used."""
    rubric = make(rule("harmful"))
    assert check(rubric, {"harmful": False}, {"harmful": True}).violations == ()
    assert len(check(rubric, {"harmful": None}, {"harmful": True}).violations) == 1
    assert len(check(rubric, {}, {"harmful": True}).violations) == 1


def test_history_and_quotes_are_read_from_item_and_verdict() -> None:
    """Turns are counted on the item's tuple of turns; quotes are looked up in the item's text."""
    rubric = make(
        rule("turns(history) > 1", "{history}", id="turns"),
        rule("missing > 0", "{missing} quotes are not in the context", id="quote-missing"),
        let={"missing": "missing_quotes(quotes, context)"},
    )
    item = {"history": (Turn("q", "a"),), "context": "Press stop,\nthen confirm."}
    checked = check(rubric, {"quotes": ["stop, then confirm", "press Start"]}, item)
    assert checked.violations == (Violation("quote-missing", "violation", "1 quotes are not in the context"),)


TYPES = Types(
    item_field="type",
    fill="given",
    names={"Counting": "计数类", "OCR": "OCR理解", "Other": "其他"},
    notes={},
    categories={"perception": ("Counting", "OCR")},
)


@pytest.mark.parametrize(
    ("item", "broken", "unchecked"),
    [
        ({"type": "Counting"}, ["group", "category"], []),
        ({"type": "OCR"}, ["category"], []),
        ({"type": "Other"}, [], ["category"]),
        ({"type": "Unheard-of"}, [], ["group", "category"]),
        ({"type": None}, [], ["group", "category"]),
        ({"type": 3}, [], ["group", "category"]),
        ({}, [], ["group", "category"]),
    ],
)
def test_group_and_category_of_the_type(item: dict[str, Any], broken: list[str], unchecked: list[str]) -> None:
    """Typed rubrics offer the group of notes and the category of the item's type; an unknown type has neither."""
    rubric = make(rule("group == '计数类'", id="group"), rule("category == 'perception'", id="category"), types=TYPES)
    checked = check(rubric, {}, item)
    assert [v.rule for v in checked.violations] == broken
    assert list(checked.not_checked) == unchecked


def test_the_first_preset_that_sets_a_field_counts() -> None:
    """All presets that apply are merged, earlier ones win, also with null; one `call: none` is enough."""
    rubric = make(
        presets=(
            Preset("blank(answer)", {"rank_a": 1, "overall": None}, call=True),
            Preset("blank(context)", {"rank_b": 1}, call=False),
            Preset("blank(answer)", {"rank_a": 2, "overall": "x", "reason": "blank"}, call=True),
            Preset("answer == 'never'", {"reason": "no"}, call=False),
        )
    )
    rules = compile_rubric(rubric)
    assert rules.preset({"answer": None, "context": " "}) == PresetResult(
        {"rank_a": 1, "overall": None, "rank_b": 1, "reason": "blank"}, call=False
    )
    assert rules.preset({"answer": "", "context": "c"}) == PresetResult(
        {"rank_a": 1, "overall": None, "reason": "blank"}, call=True
    )
    assert rules.preset({"answer": "a", "context": "c"}) == PresetResult({}, call=True)


@pytest.mark.parametrize("when", ["answer == 'x'", "chars(answer) > 1", "answer > 3"])
@pytest.mark.parametrize("answer", [None, 4.5])
def test_a_preset_that_cannot_be_decided_does_not_apply(when: str, answer: object) -> None:
    """A missing or ill-typed value never sets a field in code."""
    rubric = make(presets=(Preset(f"({when}) and chars(context) < 0", {"rank_a": 1}, call=False),))
    assert compile_rubric(rubric).preset({"answer": answer}) == PresetResult({}, call=True)


def test_a_preset_may_depend_on_the_type() -> None:
    """The group of the item's type is known before anything is asked."""
    rubric = make(presets=(Preset("group == 'OCR理解'", {"rank_a": 1}, call=True),), types=TYPES)
    assert compile_rubric(rubric).preset({"type": "OCR"}).values == {"rank_a": 1}
    assert compile_rubric(rubric).preset({"type": "Counting"}).values == {}


def test_all_mistakes_of_a_rubric_come_at_once() -> None:
    """Conditions with mistakes are refused together, each with its place; a let may only use what stands before it."""
    rubric = make(
        rule("rank_c > 1", id="one"),
        rule("gap > 1", id="fine"),
        presets=(Preset("blnk(answer)", {}, True), Preset("gap > 1", {}, True)),
        let={"late": "gap + 1", "gap": "rank_a - rank_b"},
    )
    with pytest.raises(RubricError) as caught:
        compile_rubric(rubric)
    assert [p.path for p in caught.value.problems] == ["$.preset[0].when", "$.preset[1].when", "$.let.late", "rule one"]
    assert "did you mean rank_b or rank_a?" in caught.value.problems[-1].message


def test_group_is_unknown_without_types() -> None:
    """An untyped rubric has no group."""
    with pytest.raises(RubricError, match="unknown name 'group'"):
        compile_rubric(make(rule("group == 'x'")))


def test_compiled_once_per_digest() -> None:
    """Rubrics of one digest share their rules; a rubric without a digest is compiled afresh."""
    first = compile_rubric(make(digest="d1"))
    assert compile_rubric(make(digest="d1")) is first
    assert compile_rubric(make(digest="d2")) is not first
    loose = make()
    assert compile_rubric(loose) is not compile_rubric(loose)
    assert isinstance(first, Rules)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("as {it} is {{}} %s", "as {it} is {{}} %s"),
        ("", ""),
        (3, "3"),
        (True, "true"),
        (False, "false"),
        (2.0, "2"),
        (0.1 + 0.2, "0.3"),
        (2 / 3, "0.6667"),
        (12345.678, "12345.678"),
        (1e300, "1e+300"),
        (0.00001234, "1.234e-05"),
        (["a", 1.0, None], "a, 1, ?"),
        ((), ""),
        (None, "?"),
        pytest.param(10**5000, "?", id="huge"),
        (float("nan"), "nan"),
    ],
)
def test_values_in_messages(value: object, shown: str) -> None:
    """Texts go in untouched, numbers short, truth values as in JSON; what has no text becomes a question mark."""
    assert fill("<{it}|{it}>", {"it": value}) == f"<{shown}|{shown}>"


def test_fill_reads_only_names_and_only_once() -> None:
    """A value that looks like a placeholder stays as it is; so do braces around anything but a name."""
    env = {"a": "{b}", "b": "{a}", "评分": 9, "harmful": None}
    template = "{a}{b} {评分} {gone} {harmful} {} {0} {a.b} {a!r} {a:>9} {{a}} {\n} {"
    assert fill(template, env) == "{b}{a} 9 ? ? {} {0} {a.b} {a!r} {a:>9} {{b}} {\n} {"


CONDITIONS = [
    "rank_a > 6 and rank_b < 3",
    "(overall == 'better') != (harmful == True)",
    "rank_a - rank_b * 2 / rank_a % 3 // rank_b > gap",
    "overall in ['better', 1, -2.5] or reason not in ('x',)",
    "'a' in reason or reason in quotes",
    "blank(reason) or words(reason) < 5 or cjk(reason) == 0 or chars(reason) > 9",
    "count(quotes) > 1 and missing_quotes(quotes, context) > 0",
    "turns(history) == 0 or max(rank_a, rank_b) > min(rank_a, 3)",
    "rank_a < overall <= reason",
    "abs(-rank_a) if given(rank_a) else quotes == history",
]
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=6))
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.lists(st.text(max_size=4), max_size=3).map(tuple))


@given(st.dictionaries(st.sampled_from(OUTPUT_FIELDS), VALUES), st.dictionaries(st.sampled_from(ITEM_FIELDS), VALUES))
def test_checking_never_raises(fields: dict[str, Any], item: dict[str, Any]) -> None:
    """Whatever values arrive, each rule is broken, kept or not checked, with a message or a reason."""
    rules = tuple(rule(c, "{gap} {reason} {quotes} {rank_a}", id=str(i)) for i, c in enumerate(CONDITIONS))
    presets = tuple(Preset(c, {"rank_a": 1}, False) for c in ("blank(answer)", "answer > context", "words(answer) < 2"))
    compiled = compile_rubric(make(*rules, let={"gap": "rank_a - rank_b"}, presets=presets, digest="never-raises"))
    checked = compiled.check(fields, item)
    broken = [violation.rule for violation in checked.violations]
    assert not set(broken) & set(checked.not_checked)
    assert list(checked.reasons) == list(checked.not_checked)
    assert all(checked.reasons.values())
    assert compiled.preset(item).values in ({}, {"rank_a": 1})


@given(
    st.integers(1, 7),
    st.integers(1, 7),
    st.sampled_from(["about the same", "better"]),
    st.booleans(),
    st.text(max_size=9),
)
def test_complete_verdicts_are_checked_completely(a: int, b: int, overall: str, harmful: bool, reason: str) -> None:
    """With every field there and of its type, no rule is left unchecked, and each agrees with plain Python."""
    rubric = make(
        rule("gap > 3 and overall != 'better'", id="gap"),
        rule("harmful and rank_a < 5", id="harmful"),
        rule("words(reason) < 2", id="words"),
        rule("overall == 'better' if rank_a == rank_b else overall == 'about the same'", id="same"),
        let={"gap": "abs(rank_a - rank_b)"},
        digest="complete",
    )
    fields = {"rank_a": a, "rank_b": b, "overall": overall, "harmful": harmful, "reason": reason}
    checked = check(rubric, fields)
    assert checked.not_checked == ()
    broken = {violation.rule for violation in checked.violations} - {"words"}
    expected = {
        "gap": abs(a - b) > 3 and overall != "better",
        "harmful": harmful and a < 5,
        "same": (overall == "better") == (a == b),
    }
    assert broken == {name for name, wrong in expected.items() if wrong}
