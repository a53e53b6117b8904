"""Responses in a file of their own, joined to the rows by id."""

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
