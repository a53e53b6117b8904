"""One row checked against what a rubric reads."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.errors import UnknownNameError
from evenhand.item import CheckedRow, Turn, check_row, content_id, require_mapping
from evenhand.rubric.model import ItemField, ItemSpec, ItemType
from item_specs import SPEC, message

NO_TURNS = ItemSpec(SPEC.fields[:3], responses=("answer",))


def one(type: ItemType, *, required: bool = False) -> ItemSpec:
    return ItemSpec((ItemField("x", type, required),))


def check(spec: ItemSpec = SPEC, *, mapping: dict[str, str] | None = None, **row: Any) -> CheckedRow:
    return check_row(row, spec, mapping=mapping)


def problem(checked: CheckedRow) -> str:
    assert len(checked.problems) == 1
    return checked.problems[0].message


def test_a_row_gives_every_field_and_keeps_the_rest_as_it_is() -> None:
    """Fields not given are None, turns and images (); other columns stay untouched; the id is no extra column."""
    extra = {"system": "x", "meta": {"n": [1, None]}}
    checked = check(id=7, question="q", answer="a\x00b", **extra)
    assert checked == CheckedRow(
        {
            "question": "q",
            "answer": "a\x00b",
            "context": None,
            "harmful": None,
            "score": None,
            "history": (),
            "images": (),
        },
        extra,
        "7",
        (),
        ("id", "question", "answer", "system", "meta"),
        7,
    )


def test_a_field_is_read_from_mapping_then_own_name_then_alias() -> None:
    """--map wins over the field's own column, that wins over an alias; of two aliases the first listed is read."""
    assert check(prompt="p", predict="x", output="y").fields["answer"] == "x"
    assert check(prompt="p", question="q", answer="a").fields["question"] == "q"
    mapped = check(mapping={"answer": "reply", "id": "key"}, prompt="p", answer="a", reply="r", key="k", question_id=1)
    assert (mapped.fields["answer"], mapped.id) == ("r", "k")
    assert mapped.extra == {"answer": "a", "question_id": 1}
    assert check(prompt="p", answer="a", question_id=11).id == "11"


def test_a_missing_required_field_names_the_columns_and_a_remedy() -> None:
    """What is required and has no column is a problem that shows the columns and a likely --map."""
    (missing,) = check(questions="q", answer="a").problems
    assert missing.message == "no question; columns: questions, answer"
    assert missing.remedy == "--map question=questions"
    (mapped,) = check(mapping={"answer": "rely"}, question="q", reply="r").problems
    assert mapped.message == "no column 'rely' for answer; columns: question, reply"
    assert mapped.remedy == "--map answer=reply"
    (odd,) = check(question="q", zzz=1).problems
    assert odd.remedy == "--map answer=COLUMN"
    (spaced,) = check(**{"question": "q", " answer": "a"}).problems
    assert spaced.remedy == "--map 'answer= answer'"  # as a shell takes it
    whole_line = check(**{"id;question;answer": "1;q;a"}).problems
    assert [problem.remedy for problem in whole_line] == ["--map question=COLUMN", "--map answer=COLUMN"]


@pytest.mark.parametrize("response", [None, "", "  "])
def test_a_response_may_be_null_or_blank_and_stays_as_it_is(response: str | None) -> None:
    """A system that crashed or said nothing is judged: null and blank are kept apart."""
    checked = check(question="q", answer=response)
    assert checked.problems == ()
    assert checked.fields["answer"] == response


@pytest.mark.parametrize(("value", "said"), [(None, "not given"), ("", "blank"), (" \n", "blank")])
def test_another_required_text_must_be_there(value: str | None, said: str) -> None:
    """A required text that is no response may be neither null nor blank."""
    assert problem(check(question=value, answer="a")) == f"question is required, and {said}"


@pytest.mark.parametrize(
    ("type", "value", "read"),
    [
        ("text", 5, "5"),
        ("text", 5.0, "5"),
        ("text", 0.5, "0.5"),
        ("text", [message("assistant", "hi")], "hi"),
        ("bool", True, True),
        ("bool", "Yes", True),
        ("bool", " FALSE ", False),
        ("bool", 0, False),
        ("bool", 1.0, True),
        ("bool", " ", None),
        ("number", 3, 3),
        ("number", "-2.5e1", -25.0),
        ("number", " 12345678901234567890 ", 12345678901234567890),
        ("number", "", None),
        ("images", "a.png", ("a.png",)),
        ("images", '["a.png", "b.png"]', ("a.png", "b.png")),
        ("images", " ", ()),
        ("images", ["a.png"], ("a.png",)),
        ("turns", [], ()),
        ("turns", "", ()),
        ("turns", [{"user": "u", "assistant": "a"}], (Turn("u", "a"),)),
        ("turns", '[["u", "a"]]', (Turn("u", "a"),)),
        ("turns", [message("user", "u"), message("assistant", "a")], (Turn("u", "a"),)),
        ("turns", (Turn("u", "a"),), (Turn("u", "a"),)),
    ],
)
def test_values_are_read_by_their_type(type: ItemType, value: Any, read: Any) -> None:
    """Plain values and their CSV text read the same."""
    checked = check(one(type), x=value)
    assert checked.problems == ()
    assert checked.fields == {"x": read}
    assert repr(checked.fields["x"]) == repr(read)  # 1 is not True here


@pytest.mark.parametrize(
    ("type", "value", "said"),
    [
        ("text", True, "a truth value where text is due"),
        ("text", {"a": 1}, "an object where text is due"),
        ("text", ["a"], "a list where text is due"),
        ("text", [message("user", None)], "neither text nor text parts"),
        ("text", [message("user", [{"type": "image_url"}])], "neither text nor text parts"),
        ("text", [message("user", "a"), message("assistant", "b")], "a conversation of 2 messages"),
        ("bool", "maybe", "'maybe' where true or false is due"),
        ("bool", 2, "2 where true or false is due"),
        ("bool", [], "where true or false is due"),
        ("number", "1_000", "'1_000' where a finite number is due"),
        ("number", "inf", "where a finite number is due"),
        ("number", "nan", "where a finite number is due"),
        ("number", "9" * 5000, "where a finite number is due"),
        ("number", False, "False where a finite number is due"),
        ("images", [1], "not a list of images"),
        ("images", "[1", "not JSON"),
        ("turns", 5, "a number where a list of turns is due"),
        ("turns", '{"user": "u"}', "an object where a list of turns is due"),
        ("turns", [["u"]], "a turn that is not"),
        ("turns", [{"user": "u", "assistant": None}], "a turn that is not"),
        ("turns", '[{"user": "u", "user": "v"}]', "the key 'user' stands twice"),
        ("turns", "[NaN]", "NaN is no finite number"),
        ("turns", [message("user", "u")], "messages of user and assistant in turn"),
    ],
)
def test_a_value_of_another_type_is_a_problem_that_names_the_field(type: ItemType, value: Any, said: str) -> None:
    """Nothing is guessed: what is not of the field's type is named and refused."""
    text = problem(check(one(type), x=value))
    assert text.startswith("x ")
    assert said in text


def test_a_problem_names_the_column_where_it_differs() -> None:
    """A mistake in an aliased or mapped column shows both names."""
    assert problem(check(prompt=True, answer="a")) == "question (column prompt) is a truth value where text is due"


def test_required_lists() -> None:
    """Required images must be there; required turns may be none (a first turn has no history)."""
    assert "not given" in problem(check(one("images", required=True), x=[]))
    assert check(one("turns", required=True), x=None).fields == {"x": ()}


def test_a_conversation_as_prompt_becomes_text_and_history() -> None:
    """The last user message is the question; earlier messages become turns."""
    talk = [message("user", "1"), message("assistant", "2"), message("user", [{"type": "text", "text": "3"}])]
    checked = check(question=talk, answer=[message("assistant", "4")])
    assert checked.problems == ()
    assert checked.fields["question"] == "3"
    assert checked.fields["answer"] == "4"
    assert checked.fields["history"] == (Turn("1", "2"),)
    assert check(question=talk[-1:], answer="a").fields["question"] == "3"


def test_a_conversation_without_place_for_turns_is_written_out() -> None:
    """Without a turns field, with one given already, or with other roles, all messages stand in the text."""
    talk = [message("user", "1"), message("assistant", "2"), message("user", "3")]
    told = "user: 1\nassistant: 2\nuser: 3"
    assert check(NO_TURNS, question=talk, answer="a").fields["question"] == told
    given = check(question=talk, answer="a", history=[["u", "a"]])
    assert (given.fields["question"], given.fields["history"]) == (told, (Turn("u", "a"),))
    system = check(question=[message("system", "s"), message("user", "u")], answer="a")
    assert (system.fields["question"], system.fields["history"]) == ("system: s\nuser: u", ())


def test_a_conversation_that_is_no_prompt_is_a_problem() -> None:
    """One that ends with the assistant, or an answer of several messages, is not cut down to one of them."""
    talk = [message("user", "1"), message("assistant", "2")]
    assert "conversation of 2 messages" in problem(check(question=talk, answer="a"))
    assert "conversation of 2 messages" in problem(check(question="q", answer=talk))


@pytest.mark.parametrize("row", [{"answer": "a\ud800"}, {"answer": "a", "tag": [{"k": "\udfff"}]}])
def test_half_a_surrogate_pair_is_a_problem_anywhere(row: dict[str, Any]) -> None:
    """A lone surrogate can't be sent or stored, so its column is named, extra columns too."""
    text = problem(check(question="q", **row))
    assert text == f"{list(row)[-1]} holds half a surrogate pair, which is no text"


def test_a_surrogate_in_a_column_name_can_be_shown() -> None:
    """The message itself can be printed."""
    checked = check_row({"q\ud800": "x"}, one("text", required=True))
    assert [p.message.encode() for p in checked.problems] == [
        rb"q\ud800 holds half a surrogate pair, which is no text",
        rb"no x; columns: q\ud800",
    ]


def test_a_row_of_too_many_bytes_says_its_size_and_the_limit() -> None:
    """Size is UTF-8 bytes of all texts, names too."""
    row = {"x": "é" * 50, "y": {"z": ["w" * 10]}}
    assert check_row(row, one("text"), max_bytes=113).problems == ()
    assert problem(check_row(row, one("text"), max_bytes=112)) == "the row has 113 bytes, more than the limit of 112"


def test_extra_columns_must_be_storable() -> None:
    """Infinite numbers and endless nesting are refused in any column."""
    deep: Any = []
    for _ in range(200):
        deep = [deep]
    assert "nested" in problem(check(one("text"), x="a", y=deep))
    assert "no finite number" in problem(check(one("text"), x="a", y=float("inf")))


@pytest.mark.parametrize(("value", "said"), [("", "is blank"), (" ", "is blank"), (True, "truth"), ([1], "list")])
def test_an_own_id_must_be_a_text_or_number(value: Any, said: str) -> None:
    """A blank id or one of another type is a problem; null is no id."""
    assert said in problem(check(question="q", answer="a", id=value))
    assert check(question="q", answer="a", id=None).id is None


def test_content_ids_do_not_depend_on_how_a_row_was_written() -> None:
    """Null, blank and absent are the same, so are 1 and 1.0 and text of either; another value is another id."""
    plain = check(question="q", answer="a", score=1, harmful=True, history=[["u", "a"]], tag=1)
    written = check(
        question="q", answer="a", score="1.0", harmful="yes", context="", images="",
        history='[{"user": "u", "assistant": "a"}]',
    )  # fmt: skip
    assert content_id(plain.fields) == content_id(written.fields)
    assert len(content_id(plain.fields)) == 32
    other = check(question="q", answer="a", score=0, harmful=True, history=[["u", "a"]])
    assert content_id(other.fields) != content_id(plain.fields)
    assert content_id({"x": False}) != content_id({"x": None}) != content_id({"x": 0})


def test_a_mapping_to_an_unknown_field_is_refused() -> None:
    """--map of a field the rubric doesn't read lists close names."""
    require_mapping({"id": "key", "answer": "x"}, SPEC)
    with pytest.raises(UnknownNameError, match="unknown item field 'anwser'") as caught:
        require_mapping({"anwser": "x"}, SPEC)
    assert caught.value.close == ["answer"]
