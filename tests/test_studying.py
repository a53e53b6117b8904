"""Variants of a rubric side by side: every figure against one worked out by hand or by another library."""

from __future__ import annotations

import asyncio
import json
import math
import random
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import evenhand
from evenhand.agreeing import Judged, Labels, Unit
from evenhand.api import open_rubric
from evenhand.backend import BackendSettings, Request
from evenhand.backends.fake import Fake
from evenhand.cli.main import run
from evenhand.errors import InputError, ItemError, RunError, UnknownNameError
from evenhand.registry import TABLES
from evenhand.runners.local import Stop
from evenhand.studying import People, Variant, study_facts
from evenhand.verdict import Reply
from rubric_texts import rubric
from runs import write_jsonl

RUBRIC = """\
rubric: graded
mode: score
item:
  required: {question: text, answer: text}
options:
  scale: {default: 0-10, values: [0-10, 1-5, 0-1]}
  detail: {default: anchors, values: [bare, anchors]}
  strict: {default: false}
criteria:
  - name: truth
    text: Is it true?
    weight: 0.75
    scale: &ends
      0-10: {0: wrong, 10: right}
      1-5: {1: wrong, 5: right}
      0-1: {0: wrong, 1: right}
  - {name: style, text: Is it clear?, weight: 0.25, scale: *ends}
preset:
  - {when: blank(answer), call: none, set: {"{criterion}": low}}
"""
TEN = [0, 2, 4, 6, 8, 10]
FIVE = [1, 1, 3, 4, 4, 5]


class _Scripted(Fake):
    """A fake judge whose lines may ask for several texts, so that one script knows item and scale."""

    async def send(self, request: Request) -> Reply:
        prompt = "\n".join(message["content"] for message in request.messages)
        for line in Path(self.model).read_text(encoding="utf-8").splitlines():
            rule = json.loads(line)
            if all(text in prompt for text in rule["contains"]):
                return self._reply(request, prompt, rule["reply"])
        raise AssertionError(prompt)


def open_backend(settings: BackendSettings) -> _Scripted:
    """The backend ``scripted:FILE``; the file may change between runs."""
    return _Scripted(model=settings.model, identity={"backend": "scripted"})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a rubric, six rows and a judge that knows its scale: TEN on 0-10, FIVE on 1-5, always 1 on 0-1."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(TABLES["backend"], "scripted", f"{__name__}:open_backend")
    Path("graded.yaml").write_text(RUBRIC, encoding="utf-8")
    write_jsonl(Path("rows.jsonl"), [{"id": f"i{n}", "question": f"Q{n}", "answer": f"answer {n}"} for n in range(6)])
    lines = []
    for scale, values in (("0 to 10", TEN), ("1 to 5", FIVE), ("0 to 1", [1] * 6)):
        for n, value in enumerate(values):
            both = [f"whole numbers {scale}\n", f"answer {n}"]
            lines.append({"contains": both, "reply": {"reason": "r", "truth": value, "style": value}})
    write_jsonl(Path("script.jsonl"), lines)
    return tmp_path


JUDGE = "scripted:script.jsonl"


def study(**given: Any) -> dict[str, Any]:
    options = {"vary": {"scale": ["0-10", "1-5"]}, "out": "study"} | given
    return evenhand.study("rows.jsonl", "graded.yaml", JUDGE, **options)


@pytest.mark.usefixtures("place")
def test_figures_of_two_scales() -> None:
    """Means as shares of the scale, and the agreement of the two, are those worked out without this package."""
    told = study()
    ten, five = [v / 10 for v in TEN], [(v - 1) / 4 for v in FIVE]
    assert list(told["measures"]) == ["truth", "style", "composite"]
    for measure in told["measures"].values():
        first, second = measure["variants"].values()
        assert (first["scored"], first["planned"], first["failed"]) == (6, 6, 0.0)
        assert (first["scale"], second["scale"]) == ([0, 10], [1, 5])
        assert first["mean"]["value"] == pytest.approx(sum(ten) / 6)
        assert second["mean"]["value"] == pytest.approx(sum(five) / 6)
        interval = stats.ttest_1samp(five, 0).confidence_interval(0.95)
        assert second["mean"]["ci"] == pytest.approx([interval.low, interval.high])
        (pair,) = measure["pairs"]
        assert (pair["a"], pair["b"]) == ("scale=0-10", "scale=1-5")
        assert pair["spearman"]["value"] == pytest.approx(stats.spearmanr(ten, five).statistic)
        assert pair["kendall"]["value"] == pytest.approx(stats.kendalltau(ten, five).statistic)
        assert pair["difference"]["value"] == pytest.approx(sum(abs(a - b) for a, b in zip(ten, five, strict=True)) / 6)
        for name in ("spearman", "kendall", "difference"):
            assert (pair[name]["n"], pair[name]["clusters"]) == (6, 6)
            low, high = pair[name]["ci"]
            assert low <= pair[name]["value"] <= high
        assert measure["people"] is None
    assert (told["labels"], told["interrupted"], told["rubric"]["name"]) == (None, False, "graded")
    assert {name: one["calls"] for name, one in told["runs"].items()} == {"scale=0-10": 6, "scale=1-5": 6}


@pytest.mark.usefixtures("place")
def test_labels_on_a_scale_of_their_own() -> None:
    """Fractions from 0 to 100 are set beside every variant on the unit scale; several people count as their mean."""
    given = {"i0": [0, 10], "i1": [25], "i2": [30], "i3": [50.5], "i4": [90], "i5": [100], "elsewhere": [5]}
    labels = [
        {"id": own, "rater": f"p{n}", "truth": value} for own, values in given.items() for n, value in enumerate(values)
    ]
    people = [0.05, 0.25, 0.3, 0.505, 0.9, 1.0]
    told = study(labels=labels, label_scale=(0, 100))
    assert told["labels"]["people"] == ["p0", "p1"]
    found = told["measures"]["truth"]["people"]
    for name, values in (("scale=0-10", [v / 10 for v in TEN]), ("scale=1-5", [(v - 1) / 4 for v in FIVE])):
        assert found[name]["spearman"]["value"] == pytest.approx(stats.spearmanr(people, values).statistic)
        gaps = [abs(a - b) for a, b in zip(people, values, strict=True)]
        assert found[name]["difference"]["value"] == pytest.approx(sum(gaps) / 6)
        assert found[name]["difference"]["n"] == 6
    assert told["measures"]["style"]["people"] is told["measures"]["composite"]["people"] is None


@pytest.mark.usefixtures("place")
def test_labels_are_on_the_scale_that_the_rubric_has_by_default() -> None:
    """Without a scale of their own labels are read as the rubric's default variant would be, and held against it."""
    labels = [{"id": f"i{n}", "truth": value, "style": value} for n, value in enumerate(TEN)]
    told = study(labels=labels, vary={"scale": ["1-5", "0-1"]})
    assert told["labels"]["scale"] == {"truth": [0, 10], "style": [0, 10], "composite": [0, 10]}
    assert told["measures"]["composite"]["people"]["scale=1-5"]["difference"]["n"] == 6
    with pytest.raises(ItemError, match="truth is 11"):
        study(labels=[{"id": "i0", "truth": 11}])


def graded(values: list[int], high: int, name: str) -> Variant:
    """A variant whose judge gave these values of truth, two answers to a question."""
    scaled = rubric(
        "rubric: r\nmode: score\nitem: {required: {question: text, answer: text}}\n"
        f"criteria: [{{name: truth, text: Is it?, scale: {{range: [0, {high}]}}}}]\n"
    )
    units = [Unit(f"i{n}", f"q{n // 2}", {"truth": value}) for n, value in enumerate(values)]
    told = {"planned": len(values), "scored": len(values), "failures": {}, "calls": 0, "tokens": {}, "cost_usd": high}
    return Variant(scaled, Judged(name, units, "question"), told)


def test_the_variant_that_agrees_best_with_people_is_told() -> None:
    """A difference in tau-b is paired, clustered by question, and in the answer; what isn't shown is told as open."""
    draw = random.Random(2)
    true = [draw.randint(0, 10) for _ in range(160)]
    noisy = [v if draw.random() < 0.3 else draw.randint(0, 10) for v in true]
    said = Labels({f"i{n}": {"p": {"truth": v}} for n, v in enumerate(true)}, {"p": None})
    people = People(said, {"truth": (0.0, 10.0)})
    fine, coarse = graded(true, 10, "fine"), graded([round(v / 10) for v in noisy], 1, "coarse")
    told = study_facts({"coarse": coarse, "fine": fine}, people)["measures"]["truth"]
    (apart,) = told["differences"]
    taus = [stats.kendalltau(true, side).statistic for side in (true, [round(v / 10) for v in noisy])]
    assert apart["difference"]["value"] == pytest.approx(taus[0] - taus[1])
    assert (apart["difference"]["clusters"], apart["difference"]["cluster"]) == (80, "question")
    assert apart["difference"]["ci"][0] > 0
    assert told["verdict"].endswith(
        "fine agrees best with people (Kendall tau-b 1.00), and is shown to agree better than coarse"
    )
    other = graded([v if n % 30 else 10 - v for n, v in enumerate(noisy)], 10, "other")
    same = study_facts({"a": graded(noisy, 10, "a"), "b": other}, people)["measures"]["truth"]["verdict"]
    assert "can't be told yet; labels of about " in same


@pytest.mark.usefixtures("place")
def test_people_are_compared_on_the_same_items() -> None:
    """An item that one variant has no value of counts for none of them."""
    lines = [json.loads(line) for line in Path("script.jsonl").read_text(encoding="utf-8").splitlines()]
    lines[6]["reply"] = "no rating at all"  # answer 0 on 1-5
    write_jsonl(Path("script.jsonl"), lines)
    told = study(labels=[{"id": f"i{n}", "truth": value} for n, value in enumerate(TEN)])["measures"]["truth"]
    one = told["variants"]["scale=1-5"]
    assert (one["scored"], one["planned"], one["failed"]) == (5, 6, pytest.approx(1 / 6))
    assert {found["difference"]["n"] for found in told["people"].values()} == {5}
    assert told["pairs"][0]["spearman"]["n"] == 5
    assert sum(told["pairs"][0]["spearman"]["missing"].values()) == 1


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.usefixtures("place")
def test_what_is_undefined_has_a_reason() -> None:
    """A scale of which one point is used has no correlation, one item no interval, and nothing scored no mean."""
    told = study(vary={"scale": ["0-10", "0-1"]})
    (pair,) = told["measures"]["truth"]["pairs"]
    for name in ("spearman", "kendall"):
        assert (pair[name]["value"], pair[name]["reason"]) == (None, "a rater gave one value throughout: undefined")
    assert told["measures"]["truth"]["variants"]["scale=0-1"]["mean"]["reason"] == "all values equal: no interval"
    one = study(out="one", limit=1)
    assert one["measures"]["truth"]["variants"]["scale=1-5"]["mean"]["reason"] == "one question: no interval"
    write_jsonl(Path("script.jsonl"), [{"contains": [], "reply": "no rating at all"}])
    none = study(out="none")
    for measure in none["measures"].values():
        assert {v["mean"]["reason"] for v in measure["variants"].values()} == {"nothing scored"}
        assert {v["failed"] for v in measure["variants"].values()} == {1.0}
        assert measure["pairs"][0]["difference"]["reason"] == "no unit has two ratings"
    assert all(map(finite, (told, one, none)))
    for name, folder in (("0-10,0-1", "study"), ("0-10,1-5", "none")):
        assert run(["study", "rows.jsonl", "--rubric", "graded.yaml", "--judge", JUDGE, "--vary", f"scale={name}",
            "--out", folder]) == 0  # fmt: skip


@pytest.mark.usefixtures("place")
def test_all_combinations_are_runs_of_their_own() -> None:
    """Every combination of values, and what is fixed, is an ordinary run in a folder named after it."""
    told = study(vary={"scale": ["0-10", "1-5"], "detail": ["bare", "anchors"]}, variant={"strict": True}, repeats=2)
    assert list(told["folders"]) == [
        f"scale={scale},detail={detail}" for scale in ("0-10", "1-5") for detail in ("bare", "anchors")
    ]
    assert len(told["measures"]["truth"]["pairs"]) == 6
    made = evenhand.Run("study/scale=1-5,detail=bare")
    assert dict(made.rubric.chosen) == {"scale": "1-5", "detail": "bare", "strict": True}
    assert (made.summary()["scored"], made.summary()["calls"]) == (12, 12)
    pair = told["measures"]["truth"]["pairs"][0]
    assert (pair["difference"]["n"], pair["difference"]["clusters"]) == (12, 6)
    assert list(study(out="switch", vary={"strict": [False, True]})["folders"]) == ["strict=false", "strict=true"]


@pytest.mark.usefixtures("place")
def test_the_same_call_goes_on_where_it_stopped() -> None:
    """An interrupted study has no figures; the same call asks only what is lacking, one with new rows only those."""
    stop = Stop()
    stop()
    assert study(stop=stop) == {
        "interrupted": True,
        "folders": {"scale=0-10": "study/scale=0-10", "scale=1-5": "study/scale=1-5"},
    }
    first = study(limit=2)
    assert {one["calls"] for one in first["runs"].values()} == {2}
    Path("script.jsonl").rename("kept.jsonl")
    write_jsonl(Path("script.jsonl"), [{"contains": [], "reply": {"reason": "r", "truth": 1, "style": 1}}])
    told = study()
    assert told["measures"]["truth"]["variants"]["scale=0-10"]["scored"] == 6
    rows = [row["truth"] for row in evenhand.Run("study/scale=0-10").rows()]
    assert rows == [0, 2, 1, 1, 1, 1]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ({"vary": {"scale": ["0-10", "0-7"]}}, UnknownNameError, "0-7"),
        ({"vary": {"scales": ["0-10", "1-5"]}}, UnknownNameError, "scale"),
        ({"vary": {"scale": ["1-5"]}}, InputError, "two variants"),
        ({"vary": {}}, InputError, "two variants"),
        ({"vary": {"scale": []}}, InputError, "two variants"),
        ({"vary": {"scale": ["1-5", "1-5"]}}, InputError, "same value twice"),
        ({"vary": {"scale": "0-10"}}, InputError, "maps each option"),
        ({"variant": {"scale": "0-10"}}, InputError, "both varied and fixed"),
        ({"limit": 0}, InputError, "limit must be"),
        ({"limt": 3}, UnknownNameError, "limit"),
        ({"fresh": True}, InputError, "no fresh"),
        ({"label_scale": (0, 1)}, InputError, "there are none"),
        ({"labels": "labels.csv", "label_scale": (1, 1)}, InputError, "to a greater one"),
        ({"labels": "labels.csv"}, InputError, "no label is of an item"),
        ({"labels": "nowhere.csv"}, InputError, "nowhere.csv"),
        ({"labels": [{"id": "i0", "reason": "x"}]}, InputError, "holds a value of"),
        ({"map": {"question": "nowhere"}}, ItemError, "nowhere"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(given: dict[str, Any], error: type[Exception], told: str) -> None:
    """Options, values, rows and labels that can't be used end the study before a call, and leave no run behind."""
    Path("labels.csv").write_text("id,truth\nelsewhere,4\n", encoding="utf-8")
    with pytest.raises(error, match=told):
        study(**given)
    assert not list(Path().glob("study/*/run.sqlite"))


@pytest.mark.usefixtures("place")
def test_a_folder_with_another_run_stops_the_study_before_a_call() -> None:
    """A run of other settings in the last variant's folder is found before the first variant is asked."""
    evenhand.judge("rows.jsonl", "graded.yaml", "fake:top", variant={"scale": "1-5"}, out="study/scale=1-5")
    with pytest.raises(RunError, match="holds another run"):
        study()
    assert evenhand.Run("study/scale=0-10").summary()["calls"] == 0


def test_rubrics_without_numbers_are_refused(tmp_path: Path) -> None:
    """Pairs, a Rubric whose options are chosen, and rows that can be read once only are refused or kept."""
    with pytest.raises(InputError, match="pairs have no scale"):
        evenhand.study([{}], "hhh", "fake", vary={"strict_errors": [False, True]}, out=tmp_path)
    rubric = open_rubric("doc-qa")
    with pytest.raises(InputError, match="name or file"):
        evenhand.study([{}], rubric, "fake", vary={"scale": ["0-10", "0-3"]}, out=tmp_path)
    with pytest.raises(InputError, match="standard input"):
        evenhand.study("-", "doc-qa", "fake", vary={"scale": ["0-10", "0-3"]}, out=tmp_path)
    rows = ({"question": f"q{n}", "answer": "a"} for n in range(3))
    told = evenhand.study(rows, "doc-qa", "fake", vary={"scale": ["0-10", "0-3"]}, out=tmp_path / "once")
    assert {one["planned"] for one in told["runs"].values()} == {3}


async def test_a_study_inside_an_event_loop(place: Path) -> None:
    """In a running event loop, as in a notebook, a study works as elsewhere."""
    await asyncio.sleep(0)
    assert study()["interrupted"] is False


COMMAND = ["study", "rows.jsonl", "--rubric", "graded.yaml", "--judge", JUDGE, "--out", "study"]


@pytest.mark.usefixtures("place")
def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command tells the calls before the first, prints the tables, and as JSON what Python gives."""
    Path("labels.csv").write_text("key,truth\ni0,0\ni1,0.5\ni3,1\n", encoding="utf-8")
    labelled = ["--labels", "labels.csv", "--label-scale", "0-1", "--label-map", "id=key"]
    assert run([*COMMAND, "--vary", "scale=0-10, 1-5", *labelled]) == 0
    out, err = capsys.readouterr()
    assert err.startswith(
        "2 variants: 12 trials, 0 of them stored already; 12 calls to come, at most 24 with re-asks\n"
    )
    assert "scale=0-10 | scale=1-5" in out
    assert "each variant against people" in out
    assert out.count("Kendall tau-b") == 7
    assert run([*COMMAND, "--vary", "scale=0-10,1-5", *labelled, "--json", "--no-re-ask"]) == 4  # other settings
    capsys.readouterr()
    assert run([*COMMAND, "--vary", "scale=0-10,1-5", *labelled, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "12 of them stored already; 0 calls to come" in err
    told = json.loads(out)
    mapped = {"labels": "labels.csv", "label_scale": (0, 1), "label_map": {"id": "key"}}
    assert told == {key: value for key, value in study(**mapped).items() if key != "interrupted"}


@pytest.mark.usefixtures("place")
def test_dry_run_tells_calls_and_keeps_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The calls of each variant and in all, re-asks included at most, and no folder."""
    assert run([*COMMAND, "--vary", "scale=0-10,1-5", "--vary", "strict=true,false", "--dry-run"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["calls"], told["trials"], len(told["variants"])) == (24, 24, 4)
    assert told["calls_at_most"] >= 48
    assert not Path("study").exists()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "given",
    [
        ["--vary", "scale=0-10,0-7"], ["--vary", "scale"], ["--vary", "scale=0-10,1-5", "--vary", "scale=0-1"], [],
        ["--vary", "scale=0-10,1-5", "--labels", "l.csv"], ["--vary", "scale=0-10,1-5", "--label-scale", "low-high"],
    ],
)  # fmt: skip
def test_command_refuses_mistakes(given: list[str]) -> None:
    """Anything that is wrong with the options ends with 2 before a call."""
    assert run([*COMMAND, *given]) == 2
    assert not Path("study").exists()
