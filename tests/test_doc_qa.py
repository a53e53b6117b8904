"""doc-qa from a table to figures: what goes wrong in a row stays in that row, and counts for no mean."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.cli.main import run
from evenhand.errors import InputError
from runs import write_jsonl, write_script

CRITERIA = ("correctness", "comprehensiveness", "readability")
ROW = {"question": "How is it stopped?", "context": "To stop  the cluster,\npress Stop twice."}


def grades(value: Any = 7, **changes: Any) -> dict[str, Any]:
    """A verdict in the order of the fields, with one value for all three criteria."""
    return {key: v for c in CRITERIA for key, v in ((f"reasoning_for_{c}", "It says what it has to say."), (c, value))
            } | changes  # fmt: skip


def answers(*texts: str | None) -> list[dict[str, Any]]:
    return [{"id": f"i{n}", **ROW, "answer": text, "team": f"t{n}"} for n, text in enumerate(texts)]


@pytest.mark.parametrize("target", ["out.csv", "out.jsonl"])
def test_export_is_in_input_order_and_failed_rows_keep_their_inputs(target: str, tmp_path: Path) -> None:
    """Rows that are asked twice, refused or unreadable end later than others, and stand where they stood, all of the
    input with them.
    """
    given = answers("late", "good", "unreadable", "", "good too", "refused")
    judge = write_script(
        tmp_path / "s.jsonl",
        ("late", grades(correctness=99)),
        ("late", grades(3)),
        ("unreadable", "no rating"),
        ("refused", "I'm sorry, but I can't help with that."),
        (None, grades(9)),
        times=1,
    )
    evenhand.judge(write_jsonl(tmp_path / "in.jsonl", given), "doc-qa", judge, out=tmp_path / "run", concurrency=6)
    assert run(["export", str(tmp_path / "run"), "--to", str(tmp_path / target)]) == 0
    text = (tmp_path / target).read_text(encoding="utf-8")
    told: list[dict[str, Any]] = (
        [json.loads(line) for line in text.splitlines()]
        if target.endswith("jsonl")
        else list(csv.DictReader(text.splitlines(keepends=True)))
    )
    assert [{key: row[key] for key in given[0]} for row in told] == given
    assert [row["status"] for row in told] == ["scored", "scored", "unparsed", "scored", "scored", told[5]["status"]]
    assert [str(row["correctness"]) for row in told[:2]] == ["3", "9"]
    assert [row["correctness"] in (None, "") for row in told] == [False, False, True, False, False, True]


@pytest.mark.parametrize(
    ("value", "failure"),
    [(0.5, "not_integer"), ("0.5", "not_integer"), ("eight", None), (11, "out_of_range"), (-1, "out_of_range"),
     (True, None), (None, None), ("7 or 8", None)],
)  # fmt: skip
def test_what_is_no_whole_number_of_the_scale_enters_no_mean(value: Any, failure: str | None, tmp_path: Path) -> None:
    """A fraction, a word, a truth value and a number beyond the scale are counted with their reason; the composite
    is missing too, never of fewer criteria.
    """
    judge = write_script(tmp_path / "s.jsonl", ("odd", grades(correctness=value)), (None, grades(4)))
    with evenhand.judge(answers("odd", "even", "plain"), "doc-qa", judge) as made:
        told, (odd, *others) = made.summary(), list(made.rows())
    correctness = told["criteria"]["correctness"]
    assert (correctness["mean"], correctness["n"]) == (4.0, 2)
    assert (told["composite"]["n"], told["criteria"]["readability"]["n"]) == (2, 3)
    assert sum(correctness["failures"].values()) == told["planned"] - told["scored"] == 1
    assert failure is None or correctness["failures"] == {failure: 1}
    assert (odd["correctness"], odd["composite"], odd["readability"]) == (None, None, 7)
    assert [row["correctness"] for row in others] == [4, 4]


def test_a_whole_number_given_as_text_is_that_number(tmp_path: Path) -> None:
    """ "8" and 8.0 are read as 8; what is stored and exported is a whole number, not a text."""
    judge = write_script(tmp_path / "s.jsonl", ("quoted", grades("8")), ("float", grades(8.0)), (None, grades(5)))
    with evenhand.judge(answers("quoted", "float", "plain"), "doc-qa", judge) as made:
        values = [row[c] for row in made.rows() for c in CRITERIA]
        assert made.summary()["criteria"]["correctness"]["mean"] == 7.0
    assert values == [8] * 6 + [5] * 3
    assert {type(value) for value in values} == {int}


def test_an_empty_table_has_no_mean(tmp_path: Path) -> None:
    """No rows are an input error; a run without a single verdict has n 0 and a reason, and no number."""
    empty = tmp_path / "empty.csv"
    empty.write_text("question,answer,context\n", encoding="utf-8")
    with pytest.raises(InputError, match="no rows"):
        evenhand.judge(empty, "doc-qa", "fake")
    with evenhand.judge(answers("a", "b"), "doc-qa", "fake:garbage") as made:
        told = made.summary()
    for figure in (*told["criteria"].values(), told["composite"]):
        assert (figure["mean"], figure["ci"], figure["n"], figure["note"]) == (None, None, 0, "nothing scored")
    assert told["scored"] == 0


@pytest.mark.parametrize("name", ["in.jsonl", "in.csv"])
def test_blank_and_null_answers(name: str, tmp_path: Path) -> None:
    """Both get the bottom without a call; null is counted apart, where the format can tell the two."""
    given = answers("text", "", " \n", None)
    path = tmp_path / name
    if name.endswith("jsonl"):
        write_jsonl(path, given)
    else:
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(given[0]))
            table.writeheader()
            table.writerows(given)
    with evenhand.judge(path, "doc-qa", "fake:top") as made:
        told, rows = made.summary(), list(made.rows())
    assert [row["correctness"] for row in rows] == [10, 0, 0, 0]
    assert [row["calls"] for row in rows] == [1, 0, 0, 0]
    assert (told["set_in_code"], told["null_answers"]) == (3, 1 if name.endswith("jsonl") else told["null_answers"])


def test_quotes_are_looked_up_with_white_space_folded(tmp_path: Path) -> None:
    """A quote that stands in the context but for line breaks is fine; another is a violation, is asked for again with
    the rule's words, and stays marked when the judge insists.
    """
    found, made_up = ["stop the cluster, press Stop"], ["press Stop three times"]
    judge = write_script(
        tmp_path / "s.jsonl",
        ("mends", {"quotes_for_correctness": made_up, **grades(6)}),
        ("insists", {"quotes_for_correctness": made_up, **grades(6)}),
        (None, {"quotes_for_correctness": found, **grades(8)}),
        times=1,
    )
    with evenhand.judge(answers("fine", "mends", "insists"), "doc-qa", judge, variant={"evidence": True}) as made:
        told, rows = made.summary(), list(made.rows())
    assert [row["correctness"] for row in rows] == [8, 8, 6]
    assert ["quote-missing" in (row["violations"] or ()) for row in rows] == [False, False, True]
    assert (told["re_asked"], told["inconsistent"], told["violations"]) == (2, 1, {"quote-missing": 1})
    assert [told["violation_rate"][when]["violated"] for when in ("before_re_ask", "after_re_ask")] == [2, 1]


ACCEPTABLE = """\
rubric: acceptable
mode: score
item:
  required: {question: text, answer: text}
criteria:
  - {name: acceptable, text: Is the answer acceptable?, scale: {values: ["No", "Yes"], level: nominal}}
output:
  forms: [text]
  fields:
    - {name: acceptable, scale: criterion, pattern: '(?i)^\\W*(yes|no)\\b', take: first}
"""


def test_recorded_verdicts_of_gpt4_give_the_published_figures(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """1,488 verdicts of GPT-4 on answers to open questions, replayed and held against people: agreement and kappa are
    those known of the files, and the verdicts that were never given are missing.
    """
    tables = {}
    for name in ("human", "gpt-4"):
        with shared(f"data/openqa_eval/NQ301_{name}.tsv").open(encoding="utf-8", newline="") as file:
            tables[name] = {(r["Question"], r["Model answer"]): r for r in csv.DictReader(file, delimiter="\t")}
    common = [key for key in tables["human"] if key in tables["gpt-4"]]
    ids = {key: f"a{n}" for n, key in enumerate(common)}
    (tmp_path / "acceptable.yaml").write_text(ACCEPTABLE, encoding="utf-8")
    given = [{"id": ids[key], "question": key[0], "answer": key[1]} for key in common]
    labels = [{"id": ids[key], "acceptable": tables["human"][key]["Acceptable?"]} for key in common]
    recorded = ({"id": ids[k], "reply": tables["gpt-4"][k]["Acceptable?"] or "I can't determine that."} for k in common)
    judge = f"replay:{write_jsonl(tmp_path / 'recorded.jsonl', recorded)}"
    made = evenhand.judge(given, tmp_path / "acceptable.yaml", judge, out=tmp_path / "run", re_ask=False)
    told = made.summary()
    assert (told["planned"], told["scored"], sum(told["failures"].values())) == (1488, 1486, 2)
    figures = made.agreement(labels)["fields"]["acceptable"]["statistics"]
    exact, kappa = figures["exact"]["judge"], figures["kappa"]["judge"]
    assert (round(exact["value"], 6), exact["n"]) == (0.847914, 1486)
    assert (round(kappa["value"], 6), kappa["n"]) == (0.694873, 1486)
    assert exact["ci"][0] < exact["value"] < exact["ci"][1]


def test_the_words_of_gpt4_are_read_as_its_authors_read_them(shared: Callable[[str], Path], tmp_path: Path) -> None:
    """The raw replies, read by their first word: 1,479 of 1,490 as recorded, one otherwise, ten without a verdict."""
    with shared("data/openqa_eval/NQ301_gpt-4.tsv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    (tmp_path / "acceptable.yaml").write_text(ACCEPTABLE, encoding="utf-8")
    given = [{"id": f"a{n}", "question": r["Question"], "answer": r["Model answer"]} for n, r in enumerate(table)]
    recorded = ({"id": f"a{n}", "reply": row["gpt-4"]} for n, row in enumerate(table))
    judge = f"replay:{write_jsonl(tmp_path / 'recorded.jsonl', recorded)}"
    with evenhand.judge(given, tmp_path / "acceptable.yaml", judge, re_ask=False) as made:
        read = [row["acceptable"] for row in made.rows()]
    recorded_as = [row["Acceptable?"] or None for row in table]
    pairs = list(zip(read, recorded_as, strict=True))
    assert sum(a is None for a in read) == 10
    assert sum(a is not None and a == b for a, b in pairs) == 1479
    assert sum(a is not None and a != b for a, b in pairs) == 1
