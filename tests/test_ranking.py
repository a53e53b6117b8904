"""Win rates against counts by hand; what is undecided is counted and part of no rate."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from evenhand.api import Run, make_spec
from evenhand.cli.main import run as cli
from evenhand.errors import InputError
from evenhand.estimate import estimate
from evenhand.ranking import table_ranking
from evenhand.report.standings import print_ranking
from evenhand.stats.bradley_terry import bradley_terry
from evenhand.stats.means import ClusteredMean, as_share
from rubric_texts import PAIR, changed, rubric
from runs import SCORE, run_it, statuses, summary, write_jsonl

#: One blank response loses to one that isn't; both blank are a tie, without a call.
PAIRS = rubric(
    changed(
        PAIR, "each: slot, when: blank(response_x),", "each: slot, when: blank(response_x) and not blank(response_y),"
    )
)
COUNTS = ("n", "wins", "ties", "losses", "flips", "missing")


def _prompts(*responses: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"id": f"q{n}", "prompt": f"p{n}", "responses": dict(r)} for n, r in enumerate(responses)]


def _standings(out: Path, **options: Any) -> dict[str, tuple[Any, ...]]:
    found = Run(out).ranking(**options)
    return {s["system"]: (s["win_rate"], *(s[name] for name in COUNTS)) for s in found["systems"]}


def _judge(folder: Path, *prefers: tuple[str, str]) -> str:
    """A judge that finds (text of the prompt, reply's side) and else says that they tie."""
    lines: list[dict[str, Any]] = [
        {"contains": text, "reply": {"rank_a": 4, "rank_b": 4, "safe": "tie", "overall": side}}
        for text, side in prefers
    ]
    lines.append({"contains": None, "reply": {"rank_a": 4, "rank_b": 4, "safe": "tie", "overall": "tie"}})
    return f"fake:{write_jsonl(folder / 'judge.jsonl', lines)}"


def test_rates_of_three_systems(tmp_path: Path) -> None:
    """Blank responses lose by preset, equals tie by the judge: wins, ties and losses add up, ties are half a win."""
    prompts = _prompts(
        {"x": "good", "y": "fair", "z": ""},
        {"x": "good", "y": "", "z": ""},
        {"x": "good", "y": "fair", "z": "poor"},
    )
    out = tmp_path / "run"
    run_it(prompts, PAIRS, _judge(tmp_path), out, pairs="all")
    # by prompt: x-y tie, x-z win, y-z win | x-y win, x-z win, y-z tie (set in code) | three ties
    assert _standings(out) == {
        "x": (4.5 / 6, 6, 3, 3, 0, 0, 0),
        "y": (3.0 / 6, 6, 1, 4, 1, 0, 0),
        "z": (1.5 / 6, 6, 0, 3, 3, 0, 0),
    }
    told = Run(out).ranking()
    assert [s["system"] for s in told["systems"]] == ["x", "y", "z"]
    assert (told["comparisons"], told["flips"], told["missing"], told["bad_rows"]) == (9, 0, 0, 0)
    assert sum(s["win_rate"] * s["n"] for s in told["systems"]) == told["comparisons"]


def test_intervals_count_prompts(tmp_path: Path) -> None:
    """A system's comparisons on one prompt are one cluster, repeats included."""
    prompts = _prompts({"x": "good", "y": "", "z": ""}, {"x": "good", "y": "fair", "z": ""}, {"x": "good", "y": "fair"})
    out = tmp_path / "run"
    run_it(prompts, PAIRS, _judge(tmp_path), out, pairs="all", repeats=2)
    by_hand = ClusteredMean(low=0, high=1)
    for cluster in ([1, 1, 1, 1], [0.5, 0.5, 1, 1], [0.5, 0.5]):
        by_hand.add(cluster)
    best = Run(out).ranking()["systems"][0]
    assert (best["win_rate"], best["ci"], best["n"], best["prompts"]) == (
        by_hand.estimate().value,
        list(by_hand.estimate().ci or ()),
        10,
        3,
    )
    assert "fewer than 50 prompts" in best["note"]


def test_flips_and_missing_are_part_of_no_rate(tmp_path: Path) -> None:
    """A place-bound judge decides nothing; refusals and trials not asked are missing, for both systems."""
    prompts = _prompts({"x": "good", "y": "fair"})
    run_it(prompts, PAIRS, "fake:first", tmp_path / "first", pairs="all")
    assert _standings(tmp_path / "first") == dict.fromkeys("xy", (None, 0, 0, 0, 0, 1, 0))
    run_it(prompts, PAIRS, "fake:refuse", tmp_path / "refuse", pairs="all")
    assert _standings(tmp_path / "refuse") == dict.fromkeys("xy", (None, 0, 0, 0, 0, 0, 1))
    text = io.StringIO()
    print_ranking(Run(tmp_path / "first").ranking(), Console(file=text, width=100, highlight=False))
    assert "0 of 1 comparison decided; changed with the order 1; missing 0" in text.getvalue()
    assert [line.split() for line in text.getvalue().splitlines()[3:]] == [
        [s, "-", "0", "0", "0", "0", "1", "0"] for s in "xy"
    ] + [["strength", "of", "all:", "nothing", "decided"]]


def test_pairs_made_elsewhere_are_ranked_by_their_columns(tmp_path: Path) -> None:
    """Rows with system_a and system_b need no --pairs; rows with the same prompt are one cluster."""
    said = {"x": "ok", "y": "ok", "z": ""}
    rows = [
        {"prompt": f"p{n}", "response_a": said[a], "response_b": said[b], "system_a": a, "system_b": b}
        for n in range(2)
        for a, b in ("xy", "yz", "zx")
    ]
    run_it(rows, PAIRS, _judge(tmp_path), tmp_path / "run")
    told = {s["system"]: s for s in Run(tmp_path / "run").ranking()["systems"]}
    assert {name: (s["win_rate"], s["n"], s["prompts"]) for name, s in told.items()} == {
        "x": (0.75, 4, 2),
        "y": (0.75, 4, 2),
        "z": (0.0, 4, 2),
    }


def test_systems_are_known_without_stored_texts(tmp_path: Path) -> None:
    """The id of a pair tells its systems, so that a run that keeps no texts can be ranked."""
    prompts = _prompts({"a~b": "good", "50%": ""}, {"a~b": "good", "50%": "fair"})
    run_it(prompts, PAIRS, _judge(tmp_path), tmp_path / "run", pairs="all", store_texts=False)
    assert _standings(tmp_path / "run") == {"a~b": (0.75, 2, 1, 1, 0, 0, 0), "50%": (0.25, 2, 0, 1, 1, 0, 0)}


def test_what_can_t_be_ranked_is_an_input_error(tmp_path: Path) -> None:
    """Scores, and pairs that name no systems, are refused with what is needed."""
    run_it([{"question": "q", "answer": "a"}], rubric(SCORE), "fake", tmp_path / "score")
    with pytest.raises(InputError, match="rank takes runs of pairs"):
        Run(tmp_path / "score").ranking()
    run_it([{"prompt": "p", "response_a": "x", "response_b": "y"}], PAIRS, "fake", tmp_path / "pairs")
    with pytest.raises(InputError, match="no system_a or system_b\n  --systems A,B"):
        Run(tmp_path / "pairs").ranking()


def test_systems_may_stand_in_other_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs made elsewhere name their systems as they like; anything but two columns is a mistake."""
    pair = {"prompt": "p", "response_a": "good", "response_b": ""}
    run_it([{**pair, "model_a": "gpt", "model_b": "llama"}], PAIRS, _judge(tmp_path), tmp_path / "run")
    assert _standings(tmp_path / "run", systems=("model_a", "model_b"))["gpt"] == (1.0, 1, 1, 0, 0, 0, 0)
    assert cli(["rank", str(tmp_path / "run"), "--systems", "model_a, model_b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"][0]["system"] == "gpt"
    assert cli(["rank", str(tmp_path / "run"), "--systems", "model_a,model"]) == 2
    assert "no model_a or model" in capsys.readouterr().err
    for wrong in ("model_a", "model_a,", "model_a,model_a"):
        assert cli(["rank", str(tmp_path / "run"), "--systems", wrong]) == 2
        assert "--systems takes two columns" in capsys.readouterr().err


def test_a_run_of_pairs_resumes_and_grows(tmp_path: Path) -> None:
    """The same command sends nothing; a greater budget, more systems and more prompts only send what is new."""
    prompts = _prompts({"x": "good", "y": "fair", "z": "poor"}, {"x": "good", "y": "fair", "z": "poor"})
    out = tmp_path / "run"
    judge = _judge(tmp_path)
    assert run_it(prompts, PAIRS, judge, out, pairs="budget:3").asked == 6
    assert run_it(prompts, PAIRS, judge, out, pairs="budget:3").asked == 0
    assert run_it(prompts, PAIRS, judge, out, pairs="budget:5").asked == 4
    assert run_it(prompts, PAIRS, judge, out, pairs="all").asked == 2
    more = [{**p, "responses": {"w": "new", **p["responses"]}} for p in prompts]
    assert run_it(more, PAIRS, judge, out, pairs="all").asked == 2 * 3 * 2
    assert run_it([*more, *_prompts({}, {}, {"x": "good", "y": "fair"})[2:]], PAIRS, judge, out, pairs="all").asked == 2
    assert len(statuses(out)) == 2 * (6 + 6 + 1)


def test_a_dry_run_counts_the_calls_of_pairs(tmp_path: Path) -> None:
    """Trials are pairs times orders; pairs that are set in code cost no call."""
    prompts = _prompts({"x": "good", "y": "fair", "z": "poor"}, {"x": "good", "y": "", "z": ""})
    told = estimate(make_spec(prompts, PAIRS, "fake", pairs="all", reason=False))
    assert (told["rows"], told["trials"], told["calls"]) == (6, 12, 10)
    told = estimate(make_spec(prompts, PAIRS, "fake", pairs="budget:4", orders="ab", reason=False))
    assert (told["rows"], told["trials"]) == (4, 4)


def test_from_file_to_ranking_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """judge --pairs, then rank, as a table and as JSON; a wrong --pairs ends with 2 before anything is sent."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("d.jsonl"), _prompts({"gpt": "good", "llama": ""}, {"gpt": "good", "llama": "fair"}))
    Path("pair.yaml").write_text(PAIRS.source, encoding="utf-8")
    _judge(tmp_path)
    args = ["judge", "d.jsonl", "--rubric", "pair.yaml", "--judge", "fake:judge.jsonl"]
    assert cli([*args, "--out", "run", "--pairs", "all"]) == 0
    capsys.readouterr()
    assert cli(["rank", "run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[1][:5] == ["2", "of", "2", "comparisons", "decided;"]
    assert lines[3][:2] == ["gpt", "75.0%"]
    assert " ".join(word for line in lines[5:] for word in line) == (
        "win rate: (wins + ties / 2) / (wins + ties + losses); 95 % t interval, prompts as clusters "
        "strength of all: the outcomes leave no finite estimate; with ties as half a win there is one"
    )
    assert lines[3][-6:] == ["2", "1", "1", "0", "0", "0"]
    assert cli(["rank", "run", "--ties", "half"]) == 0
    assert capsys.readouterr().out.splitlines()[7].split()[:6] == ["gpt", "1", "1", "to", "2", "+0.55"]
    assert cli(["rank", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["systems"][1]["system"] == "llama"
    assert cli([*args, "--out", "no", "--pairs", "some"]) == 2
    assert "all or budget:N" in capsys.readouterr().err
    assert not Path("no").exists()


def test_figures_break_down_by_system(tmp_path: Path) -> None:
    """The systems of a pair are columns of the run, though the judge never sees them."""
    run_it(_prompts({"x": "good", "y": "fair"}), PAIRS, _judge(tmp_path), tmp_path / "run", pairs="all")
    assert set(summary(tmp_path / "run", by="system_a")["by"]) <= {"x", "y"}
    (row,) = Run(tmp_path / "run").rows()
    assert (row["prompt_id"], {row["system_a"], row["system_b"]}) == ("q0", {"x", "y"})


def test_the_figures_of_a_run_count_prompts_too(tmp_path: Path) -> None:
    """Pairs of one prompt are one cluster of a mean's interval, as many pairs as there may be."""
    responses = {"w": "good", "x": "fair", "y": "poor", "z": "bad"}
    prompts = _prompts(responses, {"x": "good", "y": "fair"}, responses)
    prefers = [("p1", "A"), ("p2", "A"), ("p0", "tie")]
    run_it(prompts, PAIRS, _judge(tmp_path, *prefers), tmp_path / "run", pairs="all")
    by_hand = ClusteredMean(low=0, high=1)
    for cluster in ([1.0] * 6, [0.0], [0.0] * 6):
        by_hand.add(cluster)
    agreement = summary(tmp_path / "run")["agreement"]
    assert (agreement["n"], agreement["items"]) == (13, 3)
    share = as_share(by_hand.estimate())
    assert (agreement["mean"], agreement["ci"]) == (share.value, list(share.ci or ()))


def _votes() -> list[dict[str, Any]]:
    """Three systems on thirty prompts in both orders, with a leaning to the first place."""
    rng = random.Random(1)
    rows = []
    for prompt in range(30):
        for a, b, odds in (("x", "y", 3.0), ("y", "z", 2.0), ("z", "x", 1 / 6)):
            for order in ("ab", "ba"):
                lean = odds * (2 if order == "ab" else 0.5)
                side = rng.choices(("A", "B", "tie"), (lean, 1, 0.5 * lean**0.5))[0]
                rows.append({"system_a": a, "system_b": b, "preference": side, "prompt": f"p{prompt}", "order": order})
    return rows


def test_a_table_of_comparisons_is_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Strengths with their order effect are those of the statistic; the win rates are counted in rows."""
    votes = _votes()
    told = table_ranking(iter(votes))
    numbers = {"x": 0, "y": 1, "z": 2}
    sides = [(v["system_a"], v["system_b"]) if v["order"] == "ab" else (v["system_b"], v["system_a"]) for v in votes]
    points = [
        0.5 if v["preference"] == "tie" else float((v["preference"] == "A") == (v["order"] == "ab")) for v in votes
    ]
    found = bradley_terry(
        [numbers[a] for a, _ in sides],
        [numbers[b] for _, b in sides],
        points,
        clusters=[v["prompt"] for v in votes],
        order=True,
    )
    assert [s["system"] for s in told["systems"]] == ["x", "y", "z"]
    for system, standing in zip(told["systems"], found.standings, strict=True):
        assert system["strength"] == pytest.approx(standing.strength.value)
        assert system["strength_ci"] == pytest.approx(standing.strength.ci)
        assert (system["rank"], tuple(system["rank_ci"])) == (standing.rank, standing.rank_ci)
        assert system["elo"] == pytest.approx(standing.elo.value)
        assert system["expected_win_rate_ci"] == pytest.approx(standing.win_rate.ci)
        assert (system["n"], system["prompts"]) == (120, 30)
    assert found.order is not None and found.order.ci is not None
    assert told["order"]["value"] == pytest.approx(found.order.value)
    assert found.order.ci[0] < math.log(2) < found.order.ci[1]
    path = write_jsonl(tmp_path / "votes.jsonl", votes)
    assert cli(["rank", str(path)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("180 of 180 comparisons decided") and "first place: +" in out
    assert cli(["rank", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == str(path)
    assert cli(["rank", str(path), "--value", "expected"]) == 2


def test_a_table_needs_neither_prompts_nor_orders(tmp_path: Path) -> None:
    """Then every row is on its own, blank preferences are missing, and no place is allowed for."""
    rows = [{"model_1": a, "model_2": b, "preference": p} for a, b, p in
            [("x", "y", "a")] * 6 + [("y", "x", "A")] * 3 + [("x", "y", "Tie")] * 2 + [("x", "y", "")]]  # fmt: skip
    told = table_ranking(rows, systems=("model_1", "model_2"))
    assert (told["comparisons"], told["missing"], told["order"]) == (12, 1, None)
    best = told["systems"][0]
    assert best["strength"] == pytest.approx(math.log(2) / 2)
    assert told["tie"]["value"] == pytest.approx(2 / math.sqrt(18))
    assert (best["win_rate"], best["expected_win_rate"]) == pytest.approx((7 / 11, 7 / 11))
    assert "fewer than 50 comparisons" in best["strength_note"]


def test_mistakes_of_a_table_are_told_with_their_rows() -> None:
    """Every row that is no comparison, and orders in some rows only."""
    good = {"system_a": "x", "system_b": "y", "preference": "A"}
    with pytest.raises(InputError) as caught:
        table_ranking([good, {**good, "preference": "C"}, {"system_a": "x", "preference": "A"}, {**good, "order": "1"}])
    text = str(caught.value)
    assert all(part in text for part in ("row 2", "'C'", "A, B or tie", "row 3", "no system_b", "row 4", "ab or ba"))
    with pytest.raises(InputError, match="some rows have an order"):
        table_ranking([good, {**good, "order": "ba"}])
    with pytest.raises(InputError, match="no rows"):
        table_ranking([])


def _written(rng: random.Random, rows: int) -> list[dict[str, Any]]:
    """Comparisons in which z writes at length, and length wins."""
    found = []
    for n in range(rows):
        a, b = rng.sample("xyz", 2)
        long = [rng.randint(20, 200) + 100 * (system == "z") for system in (a, b)]
        odds = math.exp(2 * (long[0] - long[1]) / sum(long))
        side = "A" if rng.random() < odds / (1 + odds) else "B"
        texts = {"response_a": "w" * long[0], "response_b": "w" * long[1]}
        found.append({"prompt": n % 60, "system_a": a, "system_b": b, "preference": side, **texts})
    return found


def test_strengths_at_equal_length(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The longest writer's lead goes with its length; the same from columns, from the other side, and by bootstrap."""
    rows = _written(random.Random(1), 900)
    plain, told = table_ranking(rows), table_ranking(rows, control="length,markdown")
    first = next(s for s in plain["systems"] if s["system"] == "z")
    assert first["strength_ci"][0] > 0.2
    controlled = {s["system"]: s for s in told["systems"]}
    assert all(s["strength_ci"][0] < 0 < s["strength_ci"][1] for s in controlled.values())
    length, *markdown = told["control"]
    assert length["name"] == "length"
    assert length["ci"][0] < 2 * length["unit"] < length["ci"][1]
    assert {c["name"]: c["reason"] for c in markdown} == dict.fromkeys(
        ("headers", "lists", "bold"), "equal in every comparison"
    )
    counted = [
        {
            **{k: v for k, v in row.items() if "response" not in k},
            **{f"length_{s}": len(row[f"response_{s}"]) for s in "ab"},
        }
        for row in rows
    ]
    assert table_ranking(counted, control=["length"])["control"][0]["value"] == pytest.approx(length["value"])
    sides = {"A": "B", "B": "A"}
    swapped = [
        {**row, "system_a": row["system_b"], "system_b": row["system_a"], "preference": sides[row["preference"]],
         "response_a": row["response_b"], "response_b": row["response_a"]}
        for row in rows
    ]  # fmt: skip
    assert table_ranking(swapped, control="length")["control"][0]["value"] == pytest.approx(length["value"])
    drawn = table_ranking(rows, control="length", interval="bootstrap", seed=3)
    assert drawn["interval"] == "bootstrap"
    assert drawn["control"][0]["ci"] == pytest.approx(length["ci"], abs=0.2)
    assert drawn == table_ranking(rows, control="length", interval="bootstrap", seed=3)
    assert drawn != table_ranking(rows, control="length", interval="bootstrap", seed=-3)
    capsys.readouterr()
    write_jsonl(tmp_path / "votes.jsonl", rows)
    assert cli(["rank", str(tmp_path / "votes.jsonl"), "--control", "length,markdown", "--elo", "4"]) == 0
    shown = capsys.readouterr().out
    assert "strengths are those at equal length\n" in shown
    assert f"more length: {length['value']:+.2f} log-odds a typical difference (" in shown
    assert "more bold: equal in every comparison" in shown
    assert "Elo K=4, mean over 1000 random orders, to set beside other tables only: z " in " ".join(shown.split())


def test_a_control_that_tells_who_won_is_left_out_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The ranking is the one without it, a warning names it with a remedy, and no line says it was controlled for."""
    rows = _written(random.Random(1), 300)
    for row in [row for row in rows if row["preference"] == "A"][:2]:
        row["response_a"] = "# w\n" + row["response_a"][4:]
    told, without = table_ranking(rows, control="length,markdown"), table_ranking(rows, control="length")
    for mine, other in zip(told["systems"], without["systems"], strict=True):
        assert mine["strength"] == pytest.approx(other["strength"])
        assert mine["strength_ci"] == pytest.approx(other["strength_ci"])
    headers = next(control for control in told["control"] if control["name"] == "headers")
    assert headers["value"] is None
    why = "the side with more of it won every comparison that differs in it (2): no finite effect"
    assert headers["reason"] == why
    remedy = "leave it out of --control, or compare more responses that differ in it"
    assert told["warnings"] == [f"the strengths are not those at equal headers: {why}; {remedy}"]
    write_jsonl(tmp_path / "votes.jsonl", rows)
    assert cli(["rank", str(tmp_path / "votes.jsonl"), "--control", "headers,bold"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "strengths are those at equal" not in shown
    assert "warning: the strengths are not those at equal headers" in shown
    assert "more bold: equal in every comparison" in shown


def test_a_run_is_controlled_by_its_texts(tmp_path: Path) -> None:
    """Stored responses are counted, null ones as empty; without stored texts, or columns, the error tells."""
    prompts = _prompts(*({"x": "good " * n, "y": "fair", "z": ""} for n in range(1, 9)))
    judge = _judge(tmp_path, ("good good good", "A"), ("good", "B"))
    run_it(prompts, PAIRS, judge, tmp_path / "run", pairs="all")
    told = Run(tmp_path / "run").ranking(control="length", ties="half")
    assert [c["name"] for c in told["control"]] == ["length"]
    with pytest.raises(InputError, match="no mood_a and mood_b to control for"):
        Run(tmp_path / "run").ranking(control=["mood"])
    run_it(prompts, PAIRS, judge, tmp_path / "bare", pairs="all", store_texts=False)
    with pytest.raises(InputError, match="keeps no texts"):
        Run(tmp_path / "bare").ranking(control=["length"])


def test_what_can_t_be_controlled_for_is_told_with_its_row() -> None:
    """A column that no row has is told once; blank cells by row, but not where nothing was preferred."""
    row = {"system_a": "x", "system_b": "y", "preference": "A", "mood_a": 1, "mood_b": 2}
    with pytest.raises(InputError) as caught:
        table_ranking([row, row], control="length")
    assert str(caught.value).count("no length_a") == 1
    with pytest.raises(InputError, match=r"row 2.*mood_a is blank"):
        table_ranking([row, {**row, "mood_a": ""}], control="mood")
    back = {**row, "preference": "B"}
    assert table_ranking([row, back, {**row, "mood_a": "", "preference": ""}])["missing"] == 1
    with pytest.raises(InputError, match="can't be told from the strengths"):
        table_ranking([row, back], control="mood")


def test_separability_and_elo_of_a_table() -> None:
    """Pairs with separate intervals; Elo of all who met, also of who has no strength."""
    rows = [
        {"system_a": a, "system_b": b, "preference": side}
        for a, b, side in [("x", "y", "A")] * 80 + [("x", "y", "B")] * 20 + [("top", "x", "A")]
    ]
    told = table_ranking(rows, elo=32)
    assert (told["separability"]["value"], told["separability"]["n"]) == (1.0, 1)
    ratings = {s["system"]: s["sequential_elo"] for s in told["systems"]}
    assert sum(ratings.values()) == pytest.approx(3000)
    assert ratings["top"] > 1000 > ratings["y"]
    assert told["sequential_elo"] == {"k": 32, "start": 1000, "orders": 1000}
    assert table_ranking(rows)["sequential_elo"] is None
    with pytest.raises(InputError, match="elo must be a number above 0"):
        table_ranking(rows, elo=0)
    itself = table_ranking([{"system_a": "x", "system_b": "x", "preference": "A"}], elo=4, control=())
    assert itself["separability"]["reason"] == "fewer than two intervals"
    assert itself["systems"][0]["sequential_elo"] is None


def test_a_run_in_one_order_allows_for_the_place(tmp_path: Path) -> None:
    """A judge that leans to the first place: the strengths say so where orders aren't joined, in either order."""
    rows = [
        {"prompt": f"p{n}", "response_a": "1", "response_b": "2", "system_a": a, "system_b": b}
        for n, (a, b) in enumerate([("x", "y"), ("y", "z"), ("z", "x"), ("y", "x"), ("z", "y"), ("x", "z")])
    ]
    judge = _judge(tmp_path, ("p0", "A"), ("p1", "A"), ("p2", "A"), ("p3", "B"), ("p4", "tie"))
    for orders, sign in (("ab", 1), ("ba", 1)):
        run_it(rows, PAIRS, judge, tmp_path / orders, orders=orders)
        told = Run(tmp_path / orders).ranking(ties="half")
        assert sign * told["order"]["value"] > 0
    run_it(rows, PAIRS, judge, tmp_path / "both")
    assert Run(tmp_path / "both").ranking(ties="half")["order"] is None


def test_who_never_lost_stands_first_without_a_number() -> None:
    """And who never won behind; both with the reason."""
    rows = [
        {"system_a": a, "system_b": b, "preference": "A"}
        for a, b in [("top", "x"), ("x", "y"), ("x", "y"), ("y", "x"), ("x", "low"), ("y", "x"), ("x", "y")]
    ]
    told = table_ranking(rows)
    assert [(s["system"], s["rank"]) for s in told["systems"]] == [("top", None), ("x", 1), ("y", 2), ("low", None)]
    assert told["systems"][0]["strength_note"] == "won every comparison: no finite strength"
    text = io.StringIO()
    print_ranking(told, Console(file=text, width=120, highlight=False))
    assert "strength of low: lost every comparison: no finite strength" in text.getvalue()
    assert "left out: 2 comparisons with separated systems" in text.getvalue()


def test_a_control_of_huge_or_tiny_numbers_is_one_of_usual_ones() -> None:
    """The size of a control's numbers is its unit only: the effect and the strengths are those of numbers about 1."""
    draw = random.Random(2)
    pairs = [("x", "y"), ("y", "z"), ("z", "x")] * 30
    rows = [{"system_a": a, "system_b": b, "preference": draw.choice("AAB"), "size_a": draw.choice([1, 2]), "size_b": 1}
            for a, b in pairs]  # fmt: skip
    usual = table_ranking(rows, control="size")
    for scale in (1e307, 1e-300):
        told = table_ranking(
            [{**row, **{c: row[c] * scale for c in ("size_a", "size_b")}} for row in rows], control="size"
        )
        assert told["control"][0]["unit"] == pytest.approx(usual["control"][0]["unit"] * scale, abs=0)
        assert told["control"][0]["value"] == pytest.approx(usual["control"][0]["value"])
        assert [s["strength"] for s in told["systems"]] == pytest.approx([s["strength"] for s in usual["systems"]])


def test_a_system_has_one_name_however_a_table_writes_it() -> None:
    """A number is its text, whole ones without a fraction; what is neither text nor number names no system."""
    written = [("1", 2), (1.0, "2"), (1, 2.0)]
    rows = [{"system_a": a, "system_b": b, "preference": "AB"[n % 2]} for n, (a, b) in enumerate(written * 2)]
    assert [s["system"] for s in table_ranking(rows)["systems"]] == ["1", "2"]
    for odd, told in ((["x"], "a list"), ({"x": 1}, "an object"), (True, "a truth value"), (" ", "is blank")):
        with pytest.raises(InputError, match=f"row 2.*system_b is.*{told.removeprefix('is ')}"):
            table_ranking([*rows[:1], {**rows[1], "system_b": odd}, *rows[2:]])
