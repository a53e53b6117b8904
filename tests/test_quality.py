"""Judges side by side over sets of items: which one to buy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

import evenhand
from evenhand.cli.main import run as command
from evenhand.errors import InputError
from evenhand.manifest import with_weights
from rubric_texts import rubric
from runs import GOOD, LIE, SCORE, TWO, rows, write_jsonl, write_script

ROOT = Path(__file__).resolve().parents[1]
PAIR = rubric(
    "rubric: two\nmode: compare\nitem: {required: {prompt: text, response_a: text, response_b: text}}\n"
    "scales: {side: {values: [A, B, tie], level: nominal, slots: true}}\n"
    "criteria: [{name: better, text: Which is better?, scale: side}]\n"
)
ITEMS = rows(60)
REFUSAL = "I'm sorry, but I can't help with that."
#: What is true of an item: five values, by its last digit.
TRUTH = [int(row["id"][-1]) % 5 for row in ITEMS]


def judged(tmp_path: Path, name: str, values: list[Any], given: Any = ITEMS, **options: Any) -> str:
    """A run whose judge gives these values of truth; None is a refusal."""
    lines = [
        {
            "id": row["id"],
            "reply": REFUSAL if v is None else json.dumps({**GOOD, "truth": v}),
        }
        for row, v in zip(given, values, strict=True)
    ]
    file = write_jsonl(tmp_path / f"{name}.jsonl", lines)
    evenhand.judge(given, TWO, f"replay:{file}", out=tmp_path / name, re_ask=False, **options)
    return str(tmp_path / name)


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    """A good judge, a poor one that is refused six times, and one that answers nothing."""
    poor: list[int | None] = [(v + n) % 5 if n % 3 else v for n, v in enumerate(TRUTH)]
    good = judged(tmp_path, "good", [v if n % 10 else 1 for n, v in enumerate(TRUTH)])
    return [good, judged(tmp_path, "poor", [None] * 6 + poor[6:]), judged(tmp_path, "none", [None] * 60)]


def said(**more: Any) -> list[dict[str, Any]]:
    return [{"id": row["id"], "truth": v, **more} for row, v in zip(ITEMS, TRUTH, strict=True)]


def test_same_judge_twice_is_told_by_its_folder(tmp_path: Path) -> None:
    """Rows of one judge are told apart by their runs: under one rubric, or in sets of one name with other weights."""
    runs = [str(tmp_path / name) for name in "abc"]
    for run, one in zip(runs, (TWO, TWO, with_weights(TWO, {"truth": 0.5, "style": 0.5})), strict=True):
        evenhand.judge(ITEMS, one, "fake", out=run)
    for chosen in (runs[:2], runs[1:], runs):
        names = [one["name"] for one in evenhand.judge_quality(chosen, said())["judges"]]
        assert names == [f"fake ({run})" for run in chosen]
    assert [one["name"] for one in evenhand.judge_quality(runs[:2])["judges"]] == [f"fake ({run})" for run in runs[:2]]


def test_judges_against_the_same_people(three: list[str]) -> None:
    """Each judge has its agreement, failures and costs; the difference of two is on the items both answered."""
    told = evenhand.judge_quality(three, said())
    good, poor, none = told["judges"]
    kappa = good["agreement"]["truth"]["kappa-quadratic"]
    answers = [v if n % 10 else 1 for n, v in enumerate(TRUTH)]
    assert kappa["value"] == pytest.approx(cohen_kappa_score(answers, TRUTH, weights="quadratic"))
    assert (kappa["n"], poor["agreement"]["truth"]["exact"]["n"]) == (60, 54)
    assert poor["failed"]["value"] == 0.1 and poor["failed"]["ci"][0] < 0.1 < poor["failed"]["ci"][1]
    assert (none["failed"]["value"], none["scored"], none["failures"]) == (1.0, 0, {"refusal": 60})
    assert none["agreement"]["truth"]["exact"]["value"] is None
    assert good["consistency"] is None and good["set"]["rubric"] == "two"
    (one,) = told["sets"]
    gap = next(d for d in one["differences"] if d["a"] == good["name"] and d["b"] == poor["name"])["difference"]
    assert gap["n"] == 54 and gap["ci"][1] < 0
    assert one["verdict"].startswith(f"{good['name']} agrees best with people (kappa-quadratic 0.")
    assert f"is shown to agree better than {poor['name']}" in one["verdict"]
    assert f"{none['name']} has no figure" in one["verdict"]
    json.dumps(told, allow_nan=False)


def test_the_cheapest_of_equals_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the best is not shown to be better, the answer names the cheapest; without its cost it says so."""
    from evenhand import quality

    missed = {"a": 4, "b": 9}
    runs = [judged(tmp_path, name, [v if n != m else 0 for n, v in enumerate(TRUTH)]) for name, m in missed.items()]
    costs = iter([{"cost_per_1000_items": 5.0}, {"cost_per_1000_items": 2.0}, {"cost_per_1000_items": None}, {}])
    real = quality.service_facts
    monkeypatch.setattr(quality, "service_facts", lambda *given: {**real(*given), **next(costs)})
    dear, cheap = (f"replay:{tmp_path / name}.jsonl" for name in "ab")
    verdict = evenhand.judge_quality(runs, said())["sets"][0]["verdict"]
    assert (
        f"{cheap} is not shown to be worse, and the cheapest of them is {cheap} (2.00 USD per 1,000 items)" in verdict
    )
    assert f"cost not known of {dear}" in evenhand.judge_quality(runs, said())["sets"][0]["verdict"]


def test_each_set_has_an_answer_of_its_own(tmp_path: Path) -> None:
    """As many files of labels as runs: one each; judges of other labels are not compared."""
    other = [row | {"question": f"another {n}", "answer": f"{n}"} for n, row in enumerate(rows(20))]
    runs = [judged(tmp_path, "a", TRUTH), judged(tmp_path, "b", [2] * 20, given=other)]
    first = write_jsonl(tmp_path / "first.jsonl", said())
    second = write_jsonl(tmp_path / "second.jsonl", [{"id": row["id"], "truth": n % 3} for n, row in enumerate(other)])
    told = evenhand.judge_quality(runs, [first, second])
    assert [one["differences"] for one in told["sets"]] == [[], []]
    assert told["sets"][1]["verdict"].startswith("too little data to choose by (20 questions, 50 needed); so far")
    with pytest.raises(InputError, match=r"item i0 of .*b is another than that of .*a"):
        evenhand.judge_quality(runs, first)
    with pytest.raises(InputError, match="3 files of labels for 2 runs"):
        evenhand.judge_quality(runs, [first, second, first])


def test_judges_against_each_other(three: list[str]) -> None:
    """Without labels judges are raters of the same items: two by two, and all of them together."""
    told = evenhand.judge_quality(three)
    fields = told["fields"]
    assert told["sets"] == [] and set(fields) == {"truth", "style", "composite"}
    pair = fields["truth"]["pairs"][0]
    assert (pair["statistics"]["exact"]["n"], sum(map(sum, pair["confusion"]["counts"]))) == (54, 54)
    assert fields["truth"]["pairs"][1]["statistics"]["exact"]["reason"] == "no pair of raters has 10 units in common"
    assert fields["truth"]["together"]["alpha"]["n"] == 54
    assert fields["style"]["warnings"][0].startswith("100% of the ratings are 2")
    json.dumps(told, allow_nan=False)


def test_pairs_tell_how_steady_a_judge_is(tmp_path: Path) -> None:
    """The share of pairs whose side stays when the order changes; what changes is no judgement."""
    items = [{"id": f"p{n}", "prompt": f"p{n}.", "response_a": "x", "response_b": "y"} for n in range(60)]
    ties = [(f"p{n}.", {"better": "tie"}) for n in range(45)]
    runs = []
    for name, rules in (("steady", [(None, {"better": "tie"})]), ("first", [*ties, (None, {"better": "A"})])):
        judge = write_script(tmp_path / f"{name}.jsonl", *rules)
        evenhand.judge(items, PAIR, judge, out=tmp_path / name)
        runs.append(tmp_path / name)
    told = evenhand.judge_quality(runs, [{"id": item["id"], "better": "tie"} for item in items])
    steady, first = (one["consistency"] for one in told["judges"])
    assert (steady["value"], first["value"], first["n"]) == (1.0, 0.75, 60)
    assert steady["ci"][0] > 0.9 and first["ci"][0] < 0.75 < first["ci"][1]
    assert told["judges"][1]["agreement"]["better"]["exact"]["n"] == 45
    assert told["sets"][0]["statistic"] == "kappa"
    assert "undefined for at least one pair of raters" in told["sets"][0]["verdict"]


def test_one_figure_has_one_interval(tmp_path: Path) -> None:
    """Steadiness and contradictions of judges are the figures of the run itself, by one method; set in code is none."""
    recorded = f"replay:{ROOT / 'docs' / 'recorded' / 'hhh.jsonl'}"
    given = str(ROOT / "examples" / "hhh.jsonl")
    run = evenhand.judge(given, "hhh", recorded, out=tmp_path / "run", reason=False, re_ask=False)
    evenhand.judge(given, "hhh", "fake", out=tmp_path / "other", reason=False)
    both = evenhand.judge_quality([tmp_path / "run", tmp_path / "other"], [{"id": "moon-age", "overall_side": "A"}])
    told = both["judges"][0]
    steady, broken = run.summary()["agreement"], run.summary()["violation_rate"]["after_re_ask"]
    assert (steady["n"], told["failed"]["n"]) == (7, 7)  # the eighth pair is set in code
    for one, value, ci in (
        (told["consistency"], steady["mean"], steady["ci"]),
        (told["violated"], broken["rate"], broken["ci"]),
    ):
        assert (one["value"], one["ci"]) == (value, ci)
        assert one["method"].startswith("share, Wilson interval clustered by ")


def test_contradictions_are_a_share_of_replies(tmp_path: Path) -> None:
    """Replies that break a rule, of those that could be read."""
    for name, reply in (("honest", GOOD), ("liar", LIE)):
        judge = write_script(tmp_path / f"{name}.jsonl", (None, reply))
        evenhand.judge(ITEMS, TWO, judge, out=tmp_path / name, re_ask=False)
    told = evenhand.judge_quality([tmp_path / "honest", tmp_path / "liar"], said())["judges"]
    assert [one["violated"]["value"] for one in told] == [0.0, 1.0]


def test_runs_that_can_not_be_compared_are_refused(three: list[str], tmp_path: Path) -> None:
    """One run, a run twice, labels of other items, another scale: each says what is wrong."""
    with pytest.raises(InputError, match="two runs or more"):
        evenhand.judge_quality(three[:1], said())
    with pytest.raises(InputError, match="given twice"):
        evenhand.judge_quality([three[0], three[0]], said())
    with pytest.raises(InputError, match=r"no label is of an item of .*good"):
        evenhand.judge_quality(three, [{"id": "z", "truth": 1}])
    wide = rubric(SCORE.replace("range: [0, 4]", "range: [0, 9]"))
    evenhand.judge(ITEMS, wide, "fake", out=tmp_path / "wide")
    with pytest.raises(InputError, match="other rubrics, scales or weights"):
        evenhand.judge_quality([three[0], tmp_path / "wide"])
    evenhand.judge(ITEMS, TWO, "fake", out=tmp_path / "weighted", weights={"truth": 0.1, "style": 0.9})
    with pytest.raises(InputError, match="other rubrics, scales or weights"):
        evenhand.judge_quality([three[0], tmp_path / "weighted"])


def test_the_command_prints_the_answer(three: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables of agreement, failures and cost, then the answer; options of one run are refused."""
    labels = str(write_jsonl(tmp_path / "l.jsonl", said()))
    assert command(["agree", *three, "--labels", labels]) == 0
    out = capsys.readouterr().out
    text = " ".join(out.split())
    assert "judges against people" in text and "agrees best with people" in text
    assert command(["agree", *three, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["fields"]["truth"]["pairs"]) == 3
    assert command(["agree", *three]) == 0
    assert "all judges" in capsys.readouterr().out
    for option in (["--by", "id"], ["--width", "0.1"], ["--require", "kappa>=0.1"], ["--rubric", "doc-qa"]):
        assert command(["agree", *three, "--labels", labels, *option]) == 2
        assert f"{option[0]} goes with one run, not with 3" in capsys.readouterr().err
