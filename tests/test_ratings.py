"""Reading ratings: columns found, values as people write them, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.errors import InputError, UnknownNameError
from evenhand.ratings import Rating, RatingReader
from evenhand.rubric.load import load_rubric, parse_rubric
from evenhand.rubric.model import Rubric
from evenhand.rules import compile_rubric

HHH = load_rubric("hhh")
NAMES = ("harmless", "honest", "helpful", "overall")
BARE = {**dict.fromkeys(NAMES, "better"), **{f"{n}_side": "A" for n in NAMES}, "rank_a": 5, "rank_b": 2}
NOTES = """
rubric: notes
mode: score
item: {required: {question: text, answer: text}, optional: {history: turns}, aliases: {row: id}}
scales: {share: {range: [0, 1], integer: false, level: interval}}
criteria: [{name: done, text: "How much is done?", scale: share}]
output:
  fields:
    - {name: quotes, type: list, of: text}
    - {name: issues, type: list, of: {kind: [a, b]}}
    - {name: done, scale: share}
    - {name: sure, type: bool, nullable: true}
rules:
  - {id: quotes, severity: warning, if: "count(quotes) + count(issues) > 1 and turns(history) == 0", say: "{quotes}"}
"""


def reader(rubric: Rubric = HHH, **options: Any) -> RatingReader:
    return RatingReader(rubric, compile_rubric(rubric).names, **options)


def read(changes: dict[str, Any], rubric: Rubric = HHH, **options: Any) -> Rating:
    return reader(rubric, **options).read({**BARE, **changes} if rubric is HHH else changes)


@pytest.mark.parametrize(
    ("name", "raw", "value"),
    [
        ("rank_a", "3", 3),
        ("rank_a", " 3.0 ", 3),
        ("rank_a", 3.0, 3),
        ("rank_a", "７", 7),
        ("overall", "SLIGHTLY  BETTER", "slightly better"),
        ("overall", "Almost the same", "about the same"),
        ("overall_side", "b", "B"),
        ("overall_side", "Response A", "A"),
        ("overall_side", "Tie", "tie"),
        ("unsafe_a", "yes", True),
        ("unsafe_a", "FALSE", False),
        ("unsafe_a", 1, True),
        ("unsafe_a", "0", False),
        ("errors_a", "None", "none"),
        ("response_a", "", ""),
        ("response_a", None, ""),
        ("reason", " ", " "),
        ("critical_issue", 7, "7"),
    ],
)
def test_values_are_read_as_people_write_them(name: str, raw: object, value: object) -> None:
    """Case, aliases, spaces and full-width signs don't matter; numbers and truth values may be text."""
    rating = read({name: raw})
    assert rating.wrong == {}
    assert rating.values[name] == value
    assert type(rating.values[name]) is type(value)


@pytest.mark.parametrize(
    ("name", "raw"),
    [("rank_a", v) for v in (9, 0, "6.5", 6.5, True, "seven", "4-5", [5], {"rank": 5}, "1e999", float("inf"))]
    + [("overall", v) for v in ("great", 3, True, "better or slightly better")]
    + [("overall_side", "C"), ("unsafe_a", "maybe"), ("unsafe_a", 2), ("errors_a", "many"), ("difference", "huge")]
    + [("reason", ["x"]), ("response_a", {"text": "x"})],
)
def test_an_illegal_value_is_named(name: str, raw: object) -> None:
    """A value off its scale is reported with its column, and counts as not given."""
    rating = read({name: raw})
    assert list(rating.wrong) == [f"illegal-value:{name}"]
    assert rating.wrong[f"illegal-value:{name}"].startswith(name)
    assert name not in rating.values


def test_the_message_says_what_is_legal() -> None:
    """The message shows the value and what may stand there."""
    assert read({"rank_a": 9}).wrong["illegal-value:rank_a"] == "rank_a is 9. Make it a whole number from 1 to 7."
    assert "Make it A, B or tie." in read({"overall_side": "C"}).wrong["illegal-value:overall_side"]


@pytest.mark.parametrize("nothing", ["", "  ", None, "n/a"])
def test_a_value_that_is_due_and_not_given(nothing: str | None) -> None:
    """An empty cell of a required column is wrong; of another it is no value."""
    rating = read({"rank_a": nothing, "errors_a": nothing, "difference": nothing})
    assert rating.wrong == {"missing-value:rank_a": "rank_a has no value. Make it a whole number from 1 to 7."}
    assert read({"rank_a": nothing}, partial=True).wrong == {}
    assert read({"unsafe_a": ""}).wrong == {}


def test_required_columns() -> None:
    """Labels, sides and ranks are required; `partial` requires none; mapped columns are looked for."""
    assert reader().missing([*BARE]) == []
    (problem,) = reader().missing([n for n in BARE if n != "rank_b"])
    assert problem.message.startswith("no rank_b; columns: harmless,")
    assert reader(partial=True).missing(["rank_a"]) == []
    (mapped,) = reader(partial=True, mapping={"rank_a": "A rank"}).missing(["A rnk"])
    assert "'A rank'" in mapped.message
    assert mapped.remedy == "--map 'rank_a=A rnk'"


def test_columns_are_mapped_and_aliases_known() -> None:
    """A field is read from the column it is mapped to; inputs and the id from their aliases too."""
    rating = read({"rank_a": 1, "Rank A": "6", "answer_a": "x"}, mapping={"rank_a": "Rank A"})
    assert (rating.values["rank_a"], rating.values["response_a"]) == (6, "x")
    assert read({"id": 17}).id == "17"
    assert [read({"id": blank}).id for blank in ("", None, ["x"])] == [None, None, None]
    assert reader(parse_rubric(NOTES, file=None)).read({"row": "r1", "done": "0.5"}).id == "r1"
    with pytest.raises(UnknownNameError, match="rank_a"):
        reader(mapping={"rank": "x"})


def test_a_value_met_again_is_read_the_same() -> None:
    """True, 1 and 1.0 stay apart however often each was met; so do rows of other columns."""
    reading = reader(partial=True)
    for _ in range(2):
        assert reading.read({"rank_a": 1}).values == {"rank_a": 1}
        assert list(reading.read({"rank_a": True}).wrong) == ["illegal-value:rank_a"]
        assert reading.read({"rank_a": 1.0, "unsafe_a": 1}).values == {"rank_a": 1, "unsafe_a": True}
        assert reading.read({}).values == {}


def test_lists_numbers_and_turns() -> None:
    """Lists may be JSON text; inputs that rules use are read by their type, others are left alone."""
    notes = parse_rubric(NOTES, file=None)
    told = read({"done": 0.25, "quotes": '["a"]', "issues": [{"kind": "b"}], "sure": "null", "question": 5}, notes)
    assert told == (None, {"done": 0.25, "quotes": ["a"], "issues": [{"kind": "b"}]}, {})
    assert read({"done": "1", "quotes": " ", "issues": ""}, notes).values == {"done": 1.0}
    wrong = read({"done": 1.5, "quotes": "a; b", "issues": [{"kind": "c"}], "history": "x", "sure": "?"}, notes).wrong
    assert set(wrong) == {f"illegal-value:{n}" for n in ("done", "quotes", "issues", "history", "sure")}
    assert wrong["illegal-value:done"].endswith("Make it a number from 0 to 1.")


def test_a_label_set_gives_labels_and_sides() -> None:
    """HelpSteer2 strengths give both, so that no side column is needed."""
    strengths = {**dict.fromkeys(NAMES, -1), "rank_a": 5, "rank_b": 4}
    reading = reader(labels="helpsteer2")
    assert reading.missing(list(strengths)) == []
    values = reading.read({**strengths, "overall": "2"}).values
    assert (values["honest"], values["honest_side"]) == ("slightly better", "A")
    assert (values["overall"], values["overall_side"]) == ("better", "B")
    wrong = reading.read({**strengths, "overall": 7, "honest": " ", "helpful_side": "B"}).wrong
    assert set(wrong) == {"illegal-value:overall", "missing-value:honest", "illegal-value:helpful"}


def test_label_sets_that_tell_less() -> None:
    """A FastChat verdict leaves the label unknown, which is not a missing value; Llama 2 keeps the side apart."""
    verdicts = {**dict.fromkeys(NAMES, "[[B]]"), "overall": "[[C]]", "rank_a": 1, "rank_b": 1}
    told = reader(labels="fastchat").read(verdicts)
    assert told.wrong == {}
    assert "honest" not in told.values
    assert (told.values["honest_side"], told.values["overall"], told.values["overall_side"]) == (
        "B",
        "about the same",
        "tie",
    )
    llama = reader(labels="llama2")
    assert "overall_side" in llama.required
    degrees = {**BARE, "overall": "negligibly better / unsure"}
    assert llama.read(degrees).values["overall_side"] == "tie"
    assert set(llama.read({**degrees, "honest_side": None}).wrong) == {"missing-value:honest_side"}


def test_a_label_set_needs_a_rubric_with_such_labels() -> None:
    """Scores are no preferences."""
    with pytest.raises(InputError, match="no label set applies"):
        reader(load_rubric("doc-qa"), labels="helpsteer2")
    with pytest.raises(UnknownNameError, match="llama2"):
        reader(labels="llama3")
