"""doc-qa-rag: what a system retrieved and what it answered, with what is blank set in code field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.errors import ItemError
from evenhand.rubric.load import load_rubric
from evenhand.rubric.schema import reply_schema
from evenhand.rules import compile_rubric
from runs import write_script

RAG = load_rubric("doc-qa-rag")
CRITERIA = ("context_relevance", "correctness")
FIELDS = [name for c in CRITERIA for name in (f"reasoning_for_{c}", c)]
ROW = {"question": "When does the ferry leave?", "context": "Ferry: 9:40 daily.", "answer": "At 9:40."}
BLANKS = (None, "", " \n\t")
TWO = {
    "reasoning_for_context_relevance": "The timetable holds the hour that is asked for.",
    "context_relevance": 2,
    "reasoning_for_correctness": "The hour is the one of the timetable.",
    "correctness": 1,
}


def test_four_fields_reason_before_score() -> None:
    """The function grading_function takes a reasoning, then its whole number from 0 to 2, for both criteria."""
    schema = reply_schema(RAG)
    assert (RAG.output.function, RAG.output.forms[0]) == ("grading_function", "tool")
    assert schema["required"] == FIELDS
    for criterion in RAG.criteria:
        told = schema["properties"][criterion.name]
        assert (told["type"], told["minimum"], told["maximum"]) == ("integer", 0, 2)
        assert [anchor.span[0] for anchor in criterion.scale.anchors] == [0, 1, 2]
    bare = load_rubric("doc-qa-rag", options={"detail": "bare"})
    assert all(not criterion.scale.anchors for criterion in bare.criteria)


@pytest.mark.parametrize(("context", "answer"), list(product(("text", *BLANKS), ("text", *BLANKS))))
def test_blank_context_and_answer_are_set_field_by_field(context: str | None, answer: str | None) -> None:
    """A blank context sets its relevance to 0 and a blank answer its correctness; nothing else is set."""
    rules = compile_rubric(RAG)
    values = rules.preset({"question": "q", "context": context, "answer": answer}).values
    expected = {}
    if context != "text":
        expected["context_relevance"] = 0
    if answer != "text":
        expected["correctness"] = 0
    assert {name: value for name, value in values.items() if name in CRITERIA} == expected
    assert set(values) == {name for c in expected for name in (f"reasoning_for_{c}", c)}
    assert rules.check(values, {}).violations == ()


def asked(folder: Path, rows: list[dict[str, Any]], **options: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The rows of a run, each with the prompt's system message ("" where nothing was asked)."""
    messages = {line["id"]: line["messages"] for line in rendered(rows, **options)}
    judge = write_script(folder / "script.jsonl", (None, TWO))
    with evenhand.judge(rows, "doc-qa-rag", judge, out=folder / "run", **options) as run:
        for row in run.rows():
            shown = messages[row["id"]]
            yield row, shown[0]["content"] if shown else ""


def rendered(rows: list[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    from evenhand.api import make_spec
    from evenhand.estimate import rendered as lines

    return list(lines(make_spec(rows, "doc-qa-rag", "fake", **options), None))


@pytest.mark.parametrize("reason", [True, False])
def test_the_call_asks_for_what_is_left(reason: bool, tmp_path: Path) -> None:
    """One call for a row with one of the two, none where both are blank; what is set in code is not asked for."""
    blanks = [
        {"id": "both", **ROW},
        {"id": "no context", **ROW, "context": " "},
        {"id": "null context", **ROW, "context": None},
        {"id": "no answer", **ROW, "answer": ""},
        {"id": "null answer", **ROW, "answer": None},
        {"id": "nothing", **ROW, "context": "", "answer": "\n"},
    ]
    found = {row["id"]: (row, shown) for row, shown in asked(tmp_path, blanks, reason=reason)}
    expected = {
        "both": (2, 1, 1),
        "no context": (0, 1, 1),
        "null context": (0, 1, 1),
        "no answer": (2, 0, 1),
        "null answer": (2, 0, 1),
        "nothing": (0, 0, 0),
    }
    for name, (relevance, correctness, calls) in expected.items():
        row, shown = found[name]
        assert (row["context_relevance"], row["correctness"], row["calls"]) == (relevance, correctness, calls), name
        assert ("- context_relevance:" in shown) == (calls == 1 and "context" not in name), name
        assert ("- correctness:" in shown) == (calls == 1 and "answer" not in name), name
    with evenhand.judge(blanks, "doc-qa-rag", "fake", reason=reason) as run:
        assert (run.summary()["null_answers"], run.summary()["coverage"]) == (1, 1.0)


def test_the_source_is_shown() -> None:
    """Where the context comes from stands in the prompt, fenced as all judged text; without one there is no heading."""
    with_source, without = rendered([{**ROW, "id": "a", "source": "harbour.txt"}, {**ROW, "id": "b"}])
    assert "Where the context comes from:\n<<<" in with_source["messages"][1]["content"]
    assert "harbour.txt" in with_source["messages"][1]["content"]
    assert "Where the context comes from:" not in without["messages"][1]["content"]


def test_a_missing_column_is_no_blank_context() -> None:
    """A table without a context column is refused, instead of every context counting as blank."""
    rows = [{"question": "q", "answer": "a", "contxt": "c"}]
    with pytest.raises(ItemError, match="contxt"):
        evenhand.judge(rows, "doc-qa-rag", "fake")
    with pytest.raises(ItemError, match="question is required"):
        evenhand.judge([{**ROW, "question": " "}], "doc-qa-rag", "fake")


def test_systems_are_compared_on_their_own_contexts(tmp_path: Path) -> None:
    """Two systems that retrieved other passages for a question are paired on that question."""
    rows = [
        {"question": f"q{n}", "context": f"{system} {n}", "answer": "a", "system": system}
        for n in range(6)
        for system in ("old", "new")
    ]
    lines = [{"contains": "new ", "reply": TWO}, {"contains": None, "reply": {**TWO, "context_relevance": 0}}]
    script = tmp_path / "script.jsonl"
    script.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    evenhand.judge(rows, "doc-qa-rag", f"fake:{script}", out=tmp_path / "run")
    told = evenhand.compare(tmp_path / "run", by="system")["comparisons"]
    (relevance,) = (one for one in told if one["measure"] == "context_relevance")
    assert (relevance["paired"], relevance["questions"], relevance["difference"]["value"]) == (True, 6, 2.0)


def test_values_set_in_code_are_counted_by_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A blank context or answer sets one field of a trial that is asked for the other; the figures say so."""
    from evenhand.cli.main import main

    rows = [ROW, {**ROW, "id": "b", "context": ""}, {**ROW, "id": "c", "answer": ""}, {**ROW, "id": "d", "answer": " "}]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"id": "a", **row}) + "\n" for row in rows))
    with evenhand.judge(path, "doc-qa-rag", "fake", out=tmp_path / "run") as run:
        told = run.summary()["criteria"]
    assert {name: told[name]["set_in_code"] for name in CRITERIA} == {"context_relevance": 1, "correctness": 2}
    with pytest.raises(SystemExit, match="0"):
        main(["show", str(tmp_path / "run")])
    shown = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].strip() for line in shown if line.startswith(CRITERIA)] == [
        "set in code: 1",
        "set in code: 2",
    ]
