"""Responses in a file of their own, joined to the rows by id, or in a column for each system."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.errors import InputError, ItemError
from evenhand.item import Item
from evenhand.rubric.load import load_rubric
from evenhand.sources import BadRow, read_items

SPEC = load_rubric("alignmm-critic").item


def data(*keys: str, **more: Any) -> list[dict[str, Any]]:
    common = {"prompt": "q", "ref_answer": "r", "task": "OCR", **more}
    return [{"question_id": key, **common} for key in keys]


def responses(*keys: str) -> list[dict[str, Any]]:
    return [{"question_id": key, "predict": f"to {key}"} for key in keys]


def read(rows: Any, answers: Any, **how: Any) -> list[Item | BadRow]:
    return list(read_items(rows, SPEC, responses=answers, **how))


def test_each_row_gets_the_response_of_its_id() -> None:
    """In the order of the rows, whatever the order of the responses."""
    found = read(data("b", "a", "c"), responses("a", "b", "c"))
    assert [(i.id, i.fields["answer"]) for i in found if isinstance(i, Item)] == [
        ("b", "to b"),
        ("a", "to a"),
        ("c", "to c"),
    ]


def test_ids_may_have_different_names_and_kinds() -> None:
    """`id` in one file and an alias in the other, a number and its text, are the same id."""
    found = read(
        [{"id": 7, "prompt": "q", "ref_answer": "r", "task": "OCR"}], [{"question_id": "7", "predict": "seven"}]
    )
    assert [i.fields["answer"] for i in found if isinstance(i, Item)] == ["seven"]


def test_a_mapped_id_may_be_a_column_of_one_file_only() -> None:
    """`--map id=nr` names the column of the file that has it; the other's own `id` joins, and neither is an error."""
    rows = [{"id": "7", "prompt": "q", "ref_answer": "r", "task": "OCR"}]
    answers = [{"nr": "7", "text": "seven"}]
    found = read(rows, answers, mapping={"id": "nr", "answer": "text"})
    assert [(i.id, i.fields["answer"]) for i in found if isinstance(i, Item)] == [("7", "seven")]
    with pytest.raises(ItemError, match="no column 'nope' for id"):
        read(rows, [{"id": "7", "predict": "x"}], mapping={"id": "nope"})


def test_a_missing_response_is_a_bad_row() -> None:
    """The row is told with the id that has no response; the others are good."""
    found = read(data("a", "b"), responses("b"))
    assert isinstance(found[0], BadRow)
    assert "no response 'a' in the responses" in found[0].problems[0].message
    assert isinstance(found[1], Item)


def test_a_response_to_no_row_is_a_bad_row() -> None:
    """It comes last, with its id and place, so that nothing is left out silently."""
    found = read(data("a"), responses("a", "z"))
    assert isinstance(found[1], BadRow)
    assert "the response 'z' in line 2 of the responses is to no row" in found[1].problems[0].message


def test_a_response_given_twice_is_an_error_with_both_lines(tmp_path: Path) -> None:
    """Which of the two counts can't be told; the file, both lines and the id are named."""
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in responses("a", "b", "a")))
    with pytest.raises(ItemError, match=r"answers\.jsonl") as caught:
        read(data("a", "b"), str(file))
    assert "'a' was given before, in line 1" in str(caught.value)
    assert ":3" in str(caught.value) or "line 3" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "told"), [("{", "JSON"), ('{"predict": "x"}', "no id to join by"), ('{"id": [], "predict": "x"}', "id")]
)
def test_a_response_that_cannot_be_joined_is_an_error(tmp_path: Path, line: str, told: str) -> None:
    """A line that is no JSON, has no id or an id that can't be one, is told with its line."""
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps(responses("a")[0]) + "\n" + line + "\n")
    with pytest.raises(ItemError) as caught:
        read(data("a"), str(file))
    assert told in str(caught.value)
    assert [problem.line for problem in caught.value.problems] == [2]


def test_responses_without_a_row_are_an_error(tmp_path: Path) -> None:
    """An empty file is told as such, not as a missing response of every row."""
    file = tmp_path / "answers.jsonl"
    file.write_text("")
    with pytest.raises(ItemError, match=r"answers\.jsonl.*no rows"):
        read(data("a"), str(file))


def test_a_row_without_an_id_cannot_be_joined() -> None:
    """It is a bad row with the remedy."""
    found = read([{"prompt": "q", "ref_answer": "r", "task": "OCR"}], responses("a"))
    assert isinstance(found[0], BadRow)
    assert found[0].problems[0].message == "no id to join by"


def test_columns_that_differ_are_told() -> None:
    """A column of both files must be the same in both, or it can't be told which one counts."""
    answers = [{**responses("a")[0], "task": "Meme"}]
    (row,) = read(data("a"), answers)
    assert isinstance(row, BadRow)
    assert "column 'task' differs" in row.problems[0].message
    assert isinstance(read(data("a"), [{**responses("a")[0], "task": "OCR"}])[0], Item)


def test_a_run_joins_and_keeps_all_columns(tmp_path: Path) -> None:
    """The verdicts are on the joined rows; both files' columns are exported; the responses' file is protected."""
    rows, answers = tmp_path / "metadata.jsonl", tmp_path / "responses.jsonl"
    rows.write_text("".join(json.dumps(r) + "\n" for r in data("a-0", "a-1", category="Perception")))
    answers.write_text("".join(json.dumps({**r, "seconds": 3}) + "\n" for r in responses("a-1", "a-0")))
    with evenhand.judge(rows, "alignmm-critic", "fake", responses=answers, out=tmp_path / "run") as run:
        assert [(r["id"], r["category"], r["seconds"]) for r in run.rows()] == [
            ("a-0", "Perception", 3),
            ("a-1", "Perception", 3),
        ]
        assert answers in run.sources()


def test_pairs_are_not_joined(tmp_path: Path) -> None:
    """Prompts with several responses have them in the rows."""
    with pytest.raises(InputError, match="responses go with one response a row"):
        evenhand.judge(
            [{"prompt": "q", "responses": {"x": "1", "y": "2"}}], "hhh", "fake", pairs="all", responses=[],
            out=tmp_path / "run",
        )  # fmt: skip


DOC_QA = load_rubric("doc-qa").item
WIDE = {"responses": "atlas+brook"}


def wide(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": n, "question": f"q{n}", "atlas": f"a{n}", "brook": f"b{n}", **more} for n in numbers]


def read_wide(rows: Any, mapping: Any = WIDE, **how: Any) -> list[Item | BadRow]:
    return list(read_items(rows, DOC_QA, mapping=mapping, **how))


def test_a_column_for_each_system_is_a_row_for_each() -> None:
    """Each response is an item with the row's other columns, its system, and an id of both."""
    found = [item for item in read_wide(wide(1, 2, split="test")) if isinstance(item, Item)]
    assert [(i.id, i.fields["question"], i.fields["answer"], i.extra["system"]) for i in found] == [
        ("1~atlas", "q1", "a1", "atlas"),
        ("1~brook", "q1", "b1", "brook"),
        ("2~atlas", "q2", "a2", "atlas"),
        ("2~brook", "q2", "b2", "brook"),
    ]
    assert found[0].extra == {"question_id": "1", "split": "test", "system": "atlas"}
    assert [i.row for i in found] == [0, 1, 2, 3]


def test_rows_without_ids_have_those_of_their_content() -> None:
    """As in the long form, so that a run of either form knows the other's items."""
    rows = [{"question": "q", "atlas": "x", "brook": "y"}]
    long = [{"question": "q", "answer": answer, "system": s} for s, answer in (("atlas", "x"), ("brook", "y"))]
    ids = [[item.id for item in read_items(r, DOC_QA, mapping=m) if isinstance(item, Item)]
           for r, m in ((rows, WIDE), (long, {}))]  # fmt: skip
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 2


def test_a_system_without_a_column_in_a_row_was_not_asked() -> None:
    """An absent column gives no item, null one with a blank response; a column that no row has is a mistake."""
    rows = wide(1, 2)
    del rows[0]["brook"]
    rows[1]["atlas"] = None
    found = read_wide(rows)
    assert [(i.id, i.fields["answer"]) for i in found if isinstance(i, Item)] == [
        ("1~atlas", "a1"), ("2~atlas", None), ("2~brook", "b2")
    ]  # fmt: skip
    with pytest.raises(ItemError, match="no row has the column 'brok' of responses") as caught:
        read_wide(wide(1), {"responses": "atlas+brok"})
    assert "did you mean brook? known: atlas, brook, " in str(caught.value)


def test_what_would_be_lost_is_a_bad_row() -> None:
    """Columns called as the ones that are made, and rows without any response, with the place in the source."""
    rows = [*wide(1), *wide(2, answer="the reference"), *wide(3, system="s"), {"id": 4, "question": "q"}]
    bad = [row for row in read_wide(rows) if isinstance(row, BadRow)]
    assert [(row.problems[0].path, row.problems[0].message[:40]) for row in bad] == [
        ("row 2", "column 'answer' stands beside the column"),
        ("row 3", "column 'system' stands beside the column"),
        ("row 4", "no column 'atlas' or 'brook' of response"),
    ]
    again = [row for row in read_wide([*wide(1), *wide(1)]) if isinstance(row, BadRow)]
    assert [(row.problems[0].path, row.problems[0].message) for row in again] == [
        ("row 2", "the id '1~atlas' was given before, in row 1"),
        ("row 2", "the id '1~brook' was given before, in row 1"),
    ]


def test_limit_and_sample_take_whole_rows() -> None:
    """Of ten rows with two responses each, two rows are four items, two of each question."""
    for how in ({"limit": 2}, {"sample": 2, "seed": 3}, {"limit": 5, "sample": 2}):
        found = read_wide(wide(*range(10)), **how)  # type: ignore[arg-type]
        ids = [item.id.partition("~")[0] for item in found if isinstance(item, Item)]
        assert len(ids) == 4 and ids[0] == ids[1] != ids[2] == ids[3]


def test_columns_of_responses_are_named_once_each() -> None:
    """A name twice, none, the response mapped besides, or a rubric of pairs: an error that says so."""
    for columns in ("atlas+atlas", "atlas+", ""):
        with pytest.raises(InputError, match="names its columns once each"):
            read_wide(wide(1), {"responses": columns})
    with pytest.raises(InputError, match="don't map it to another one"):
        read_wide(wide(1), {**WIDE, "answer": "atlas"})
    with pytest.raises(InputError, match="responses"):
        list(read_items(wide(1), load_rubric("hhh").item, mapping=WIDE))


def test_a_wide_table_without_its_option_is_told_of_it() -> None:
    """Where only the response is missing and several columns are not read; elsewhere the hint would be noise."""
    with pytest.raises(ItemError, match="--map responses=COLUMN"):
        evenhand.judge(wide(1), "doc-qa", "fake")
    with pytest.raises(ItemError) as error:
        evenhand.judge([{"question": "q", "note": "n"}], "doc-qa", "fake")
    assert "responses=" not in str(error.value)


def test_wide_responses_may_stand_in_a_file_of_their_own() -> None:
    """Joined by id first, then a row for each system."""
    rows, answers = [{"id": 1, "question": "q"}], [{"id": 1, "atlas": "x", "brook": "y"}]
    found = read_wide(rows, responses=answers)
    assert [(i.id, i.fields["answer"]) for i in found if isinstance(i, Item)] == [("1~atlas", "x"), ("1~brook", "y")]


def test_systems_of_a_wide_table_are_compared(tmp_path: Path) -> None:
    """A CSV table with a column a system is judged with doc-qa, resumed, and compared; both forms give one answer."""
    table = tmp_path / "wide.csv"
    lines = [f"{n},question {n},context {n},answer {n} of atlas,answer {n} of brook" for n in range(12)]
    table.write_text("\n".join(["nr,question,context,atlas,brook", *lines]) + "\n", encoding="utf-8")
    how: dict[str, Any] = {"map": {**WIDE, "id": "nr"}, "out": tmp_path / "run"}
    assert evenhand.judge(table, "doc-qa", "fake", **how).summary()["rows"] == 24
    assert evenhand.judge(table, "doc-qa", "fake", **how).summary()["rows"] == 24
    long = [
        {"question": f"question {n}", "context": f"context {n}", "answer": f"answer {n} of {s}", "system": s}
        for n in range(12)
        for s in ("atlas", "brook")
    ]
    evenhand.judge(long, "doc-qa", "fake", out=tmp_path / "long")
    told = [evenhand.compare(tmp_path / name, by="system") for name in ("run", "long")]
    assert told[0] == told[1]
    assert [(c["paired"], c["questions"]) for c in told[0]["comparisons"]] == [(True, 12)] * 4
