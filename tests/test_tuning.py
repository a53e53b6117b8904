"""Chat rows to train a judge on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand.cli.main import cli
from evenhand.errors import InputError, ItemError
from evenhand.parse import read
from evenhand.rubric.load import load_rubric
from evenhand.rubric.schema import asked_fields
from evenhand.tuning import answer_text, of_labels, write_training_rows
from evenhand.verdict import Reply
from runs import run_it, write_script

CRITIC = load_rubric("alignmm-critic")
HARD = '\u5f15\u53f7"\u548c\\\u659c\u6760 {score} {{x}}\n\u6362\u884c\u2028\u5b8c'


def items(groups: int, size: int = 3) -> list[dict[str, Any]]:
    return [
        {"question_id": f"{g:04}-{k}", "prompt": f"q{g}", "ref_answer": "r", "predict": f"p{k}", "task": "OCR"}
        for g in range(groups)
        for k in range(size)
    ]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def critic_run(folder: Path, groups: int, *more: tuple[str | None, Any]) -> Path:
    judge = write_script(folder / "s.jsonl", *more, (None, {"Rating": 8, "Reason": HARD}))
    run_it(items(groups), CRITIC, judge, folder / "run")
    return folder / "run"


@pytest.mark.parametrize("name", ["alignmm-critic", "alignmm-critic.en"])
def test_A36_A72_A73_the_answer_template_gives_json(name: str) -> None:
    """QA8: score and reason are put in as JSON, once; quotes, braces and line ends of the reason do no harm."""
    rubric = load_rubric(name)
    text = answer_text(rubric, asked_fields(rubric), {"Rating": 7, "Reason": HARD})
    assert text.startswith('{"Rating": 7, "Reason": "')
    assert json.loads(text) == {"Rating": 7, "Reason": HARD}
    reading = read(Reply(text=text), asked_fields(rubric))
    assert {n: o.value for n, o in reading.fields.items()} == {"Rating": 7, "Reason": HARD}


def test_without_a_fitting_template_the_answer_is_plain_json() -> None:
    """A rubric without a template, or with more fields than its template holds, gets all fields as JSON."""
    plain = load_rubric("doc-qa")
    values = {f.name: 5 if f.scale else "why" for f in asked_fields(plain)}
    assert json.loads(answer_text(plain, asked_fields(plain), values)) == values
    facts = load_rubric("alignmm-critic", options={"facts": True})
    values = {f.name: 5 if f.scale else "x" for f in asked_fields(facts)}
    assert json.loads(answer_text(facts, asked_fields(facts), values)) == values


def test_no_question_is_on_both_sides(tmp_path: Path) -> None:
    """Paraphrases of one question are all trained on or all held out; every row is in one of the files."""
    run = critic_run(tmp_path, 60)
    target = tmp_path / "sft.jsonl"
    said = CliRunner().invoke(cli, ["export", str(run), "--sft", "--to", str(target)], catch_exceptions=False)
    train, test = lines(target), lines(tmp_path / "sft.held-out.jsonl")
    sides = [{row["id"].rpartition("-")[0] for row in rows} for rows in (train, test)]
    assert not sides[0] & sides[1]
    assert len(train) + len(test) == 180
    assert 0 < len(sides[1]) < 20
    assert f"{len(train)} rows of {len(sides[0])} groups written to {target}" in said.stderr
    assert f"{len(test)} rows of {len(sides[1])} groups written to" in said.stderr


@pytest.mark.parametrize("name", ["doc-qa", "alignmm-critic"])
def test_where_no_group_is_named_a_question_is_on_one_side(name: str, tmp_path: Path) -> None:
    """Answers of several systems to one question stay together, by what is asked: under ids of their own where the
    rubric knows no groups, and without ids where it makes groups of them."""
    rubric = load_rubric(name)
    own = [{"id": f"i{n}"} if name == "doc-qa" else {"reference": "r", "type": "OCR"} for n in range(80)]
    scores = {f.name: 5 if f.scale else "Because it says so in five words." for f in asked_fields(rubric)}
    rows = [{**scores, "question": f"q{n // 4}", "answer": f"a{n}", **own[n]} for n in range(80)]
    target = tmp_path / "t.jsonl"
    report = write_training_rows(of_labels(rows, rubric), rubric, str(target), share=0.3)
    assert report.groups + report.held_out_groups == 20 and report.held_out_groups > 0
    assert (report.rows, report.held_out_rows) == (4 * report.groups, 4 * report.held_out_groups)


def test_rows_are_chats_that_end_with_the_verdict(tmp_path: Path) -> None:
    """System, user, assistant; the assistant's text is the verdict, and judged text stands between marks."""
    run = critic_run(tmp_path, 3)
    CliRunner().invoke(cli, ["export", str(run), "--sft", "--held-out", "0", "--to", str(tmp_path / "t.jsonl")])
    row = lines(tmp_path / "t.jsonl")[0]
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
    assert json.loads(row["messages"][-1]["content"]) == {"Rating": 8, "Reason": HARD}
    assert "<<<" in row["messages"][1]["content"]


def test_what_is_no_example_is_counted(tmp_path: Path) -> None:
    """Unread, set in code and inconsistent verdicts are left out, each with its reason and number."""
    bad = ("q0", "no verdict at all")
    rows = [*items(4), {"question_id": "9-0", "prompt": "q", "ref_answer": "r", "predict": "", "task": "OCR"}]
    judge = write_script(tmp_path / "s.jsonl", bad, (None, {"Rating": 8, "Reason": HARD}))
    run_it(rows, CRITIC, judge, tmp_path / "run")
    args = ["export", str(tmp_path / "run"), "--sft", "--held-out", "0", "--to", str(tmp_path / "t.jsonl")]
    said = CliRunner().invoke(cli, args, catch_exceptions=False)
    assert "left out: set in code 1, unparsed 3" in said.stderr
    assert len(lines(tmp_path / "t.jsonl")) == 9


def test_labels_of_people_make_rows_too(tmp_path: Path) -> None:
    """A file of items with Rating and Reason; a row without a reason, or off the scale, is left out and counted."""
    rows = [{**row, "Rating": 6, "Reason": "\u5c1a\u53ef"} for row in items(4, 1)]
    rows += [{**items(9, 1)[7], "Rating": 6}, {**items(9, 1)[8], "Rating": 11, "Reason": "x"}]
    file = tmp_path / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    args = ["export", str(file), "--sft", "--rubric", "alignmm-critic", "--held-out", "0"]
    said = CliRunner().invoke(cli, [*args, "--to", str(tmp_path / "t.jsonl")], catch_exceptions=False)
    assert "left out: illegal Rating 1, no Reason 1" in said.stderr
    assert len(lines(tmp_path / "t.jsonl")) == 4
    with pytest.raises(InputError, match="is a file that this output is made of"):
        CliRunner().invoke(cli, [*args, "--to", str(file)], catch_exceptions=False)


def test_what_cannot_be_learned_from_is_refused(tmp_path: Path) -> None:
    """Pairs, runs without reasons, other kinds of file, no rows: each with its reason, and no file is left."""
    run_it(items(1), CRITIC, "fake", tmp_path / "short", reason=False)
    for source, target, rubric, told in (
        (tmp_path / "short", "t.jsonl", None, "no reasons"),
        (tmp_path / "short", "t.csv", None, "JSON lines"),
        (tmp_path / "none.jsonl", "t.jsonl", None, "no run folder"),
    ):
        args = [
            "export",
            str(source),
            "--sft",
            "--to",
            str(tmp_path / target),
            *(["--rubric", rubric] if rubric else []),
        ]
        with pytest.raises(InputError, match=told):
            CliRunner().invoke(cli, args, catch_exceptions=False)
    with pytest.raises(InputError, match="pairs"):
        write_training_rows(iter(()), load_rubric("hhh"), str(tmp_path / "t.jsonl"))
    with pytest.raises(InputError, match="no training rows"):
        write_training_rows(iter(()), CRITIC, str(tmp_path / "t.jsonl"))
    with pytest.raises(ItemError):
        list(of_labels([{"question_id": "a"}], CRITIC))
    assert not list(tmp_path.glob("*t.*"))
