"""A judge against people, and people against each other."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import kendalltau, pearsonr, spearmanr

import evenhand
from evenhand.agreeing import Judged, Labels, Unit, agreement_facts, published, read_labels
from evenhand.cli.main import cli
from evenhand.cli.main import run as command
from evenhand.errors import InputError, ItemError, UnknownNameError
from evenhand.report.cells import left_out_words
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Rubric
from rubric_texts import rubric
from runs import GOOD, TWO, rows, run_it, write_jsonl, write_script

CRITIC = load_rubric("alignmm-critic")
DOC_QA = load_rubric("doc-qa")
ZERO_ONE = """
rubric: yes-or-no
mode: score
item: {required: {question: text, answer: text}}
criteria: [{name: truth, text: Is it true?, scale: {range: [0, 1], level: ordinal, integer: true}}]
"""


def labels(values: Iterable[tuple[str, str, dict[str, Any]]], of: Rubric = CRITIC) -> Labels:
    return read_labels([{"id": own, "rater": rater, **said} for own, rater, said in values], of)


def judge(values: dict[str, Any], field: str = "Rating") -> Judged:
    return Judged("fake", [Unit(own, own, {field: value}) for own, value in values.items()])


def drawn(n: int, seed: int = 4) -> tuple[list[int], list[int]]:
    draw = random.Random(seed)
    people = [draw.randint(1, 10) for _ in range(n)]
    return people, [min(10, max(1, value + draw.choice([-2, -1, 0, 0, 1]))) for value in people]


def test_figures_of_one_person_are_those_of_scipy() -> None:
    """Correlations, mean difference, bias and equal bands agree with scipy, numpy and a count by hand."""
    people, said = drawn(80)
    told = agreement_facts(
        CRITIC,
        labels((str(n), "ann", {"Rating": value}) for n, value in enumerate(people)),
        judge({str(n): value for n, value in enumerate(said)}),
    )["fields"]["Rating"]
    found = {name: figure["judge"]["value"] for name, figure in told["statistics"].items()}
    assert found["spearman"] == pytest.approx(spearmanr(people, said).statistic)
    assert found["kendall"] == pytest.approx(kendalltau(people, said).statistic)
    assert found["pearson"] == pytest.approx(pearsonr(people, said).statistic)
    assert found["mae"] == pytest.approx(np.abs(np.subtract(people, said)).mean())
    assert found["bias"] == pytest.approx(np.subtract(said, people).mean())
    strict = {1: 0, 2: 1, 3: 2, 4: 3, 5: 3, 6: 4, 7: 5, 8: 5, 9: 6, 10: 6}
    fuzzy = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1, 6: 1, 7: 2, 8: 2, 9: 3, 10: 3}
    for name, band in (("strict", strict), ("fuzzy", fuzzy)):
        equal = sum(band[a] == band[b] for a, b in zip(people, said, strict=True)) / 80
        assert found[name] == pytest.approx(equal)
    assert told["statistics"]["mae"]["people"] is None
    assert all(figure["judge"]["ci"] and figure["judge"]["n"] == 80 for figure in told["statistics"].values())


def test_people_among_themselves_are_the_ceiling() -> None:
    """With two people and more each figure stands beside theirs, with the difference; a name "judge" is no trap."""
    people, said = drawn(60)
    values = [(str(n), who, {"Rating": v}) for who in ("ann", "judge") for n, v in enumerate(people)]
    told = agreement_facts(CRITIC, labels(values), judge(dict(zip(map(str, range(60)), said, strict=True))))
    exact = told["fields"]["Rating"]["statistics"]["exact"]
    equal = sum(a == b for a, b in zip(people, said, strict=True)) / 60
    assert exact["people"]["value"] == 1.0
    assert exact["judge"]["value"] == pytest.approx(equal)
    assert exact["gap"]["value"] == pytest.approx(equal - 1)
    assert told["people"] == ["ann", "judge"]
    assert told["fields"]["Rating"]["alternative_test"]["passed"] is False


def test_people_alone() -> None:
    """Without a judge there are people's figures only; with one person nothing is compared."""
    people, other = drawn(40)
    values = [(str(n), who, {"Rating": v}) for who, all_ in (("a", people), ("b", other)) for n, v in enumerate(all_)]
    told = agreement_facts(CRITIC, labels(values))
    assert told["judge"] is None
    assert told["fields"]["Rating"]["statistics"]["mae"]["judge"] is None
    assert told["fields"]["Rating"]["statistics"]["mae"]["people"]["n"] == 40
    assert agreement_facts(CRITIC, labels(values[:40]))["fields"] == {}


def test_only_shared_items_count() -> None:
    """Labels of other items, items without labels and missing verdicts are left out, and the counts say so."""
    told = agreement_facts(
        CRITIC,
        labels((str(n), "ann", {"Rating": 5}) for n in range(30)),
        judge({str(n): None if n % 2 else 5 for n in range(10, 50)}),
    )
    assert told["items"] == {"labelled": 30, "judged": 40, "both": 20}
    exact = told["fields"]["Rating"]["statistics"]["exact"]["judge"]
    assert (exact["value"], exact["n"]) == (1.0, 10)
    with pytest.raises(InputError, match="no label is of an item of the run"):
        agreement_facts(CRITIC, labels([("z", "ann", {"Rating": 5})]), judge({"a": 5}))


def test_paraphrases_are_clustered() -> None:
    """Intervals take paraphrase groups as independent: copies of an item don't narrow them."""
    people, said = drawn(30)
    once = agreement_facts(
        CRITIC,
        labels((f"{n}-0", "ann", {"Rating": v}) for n, v in enumerate(people)),
        Judged("fake", [Unit(f"{n}-0", str(n), {"Rating": v}) for n, v in enumerate(said)]),
    )
    often = agreement_facts(
        CRITIC,
        labels((f"{n}-{k}", "ann", {"Rating": v}) for n, v in enumerate(people) for k in range(5)),
        Judged("fake", [Unit(f"{n}-{k}", str(n), {"Rating": v}) for n, v in enumerate(said) for k in range(5)]),
    )
    one, five = (told["fields"]["Rating"]["statistics"]["mae"]["judge"] for told in (once, often))
    assert (one["n"], five["n"], five["clusters"]) == (30, 150, 30)
    assert five["ci"] == pytest.approx(one["ci"], rel=0.2)


def test_the_composite_is_compared_too() -> None:
    """Where people rated all weighted criteria, their composite stands against the judge's."""
    draw = random.Random(1)
    said = {str(n): {c.name: draw.randint(0, 10) for c in DOC_QA.criteria} for n in range(20)}
    told = agreement_facts(DOC_QA, labels(((own, "ann", values) for own, values in said.items()), DOC_QA))
    assert told["fields"] == {}
    both = labels([(own, who, values) for own, values in said.items() for who in ("a", "b")], DOC_QA)
    figures = agreement_facts(DOC_QA, both)["fields"]
    assert set(figures) == {"correctness", "comprehensiveness", "readability", "composite"}
    assert figures["composite"]["statistics"]["mae"]["people"]["value"] == 0.0


@pytest.mark.parametrize(
    ("lines", "told", "line"),
    [
        (['{"id": "a", "Rating": 5}', '{"id": "a", "Rating": 5}'], "no column 'rater' tells by whom", 2),
        (['{"id": "a", "rater": 1, "Rating": 5}'] * 2, "was rated by '1' before", 2),
        (['{"id": "a", "rater": ["x"], "Rating": 5}'], "rater is a list", 1),
        (['{"id": "a", "rater": true, "Rating": 5}'], "rater is a truth value", 1),
        (['{"id": "a", "Rating": 11}'], "11", 1),
        (['{"Rating": 5}'], "no id", 1),
        (['{"id;Rating": "x;5"}'], "columns: id;Rating", 1),
        (['{"id": "a", "Rating": 5}', "{"], "JSON", 2),
    ],
)
def test_bad_labels_are_told_with_their_line(tmp_path: Path, lines: list[str], told: str, line: int) -> None:
    """A value off the scale, a second rating by the same rater, a row without id: nothing is dropped silently."""
    file = tmp_path / "labels.jsonl"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ItemError) as caught:
        read_labels(str(file), CRITIC)
    assert told in str(caught.value)
    assert [problem.line for problem in caught.value.problems] == [line]


@pytest.mark.parametrize(
    ("content", "said"),
    [("", "no rows"), ('{"id": "a", "score": 5}\n', "no row holds a value of .*its fields: Rating")],
)
def test_labels_without_a_field_of_the_rubric_are_refused(tmp_path: Path, content: str, said: str) -> None:
    """Labels without rows are told; where no row holds a value of any field, the fields there are are named."""
    file = tmp_path / "labels.jsonl"
    file.write_text(content)
    with pytest.raises(InputError, match=f"(?s){said}"):
        read_labels(str(file), CRITIC)


def test_columns_may_be_mapped() -> None:
    """Field, id and rater may have other names."""
    found = read_labels(
        [{"key": 1, "who": "x", "score": "7"}], CRITIC, mapping={"id": "key", "rater": "who", "Rating": "score"}
    )
    assert found.of == {"1": {"x": {"Rating": 7}}}


def test_a_rater_column_that_is_mapped_must_be_there() -> None:
    """A slip in its name is an error with the columns there are, not one rater for all rows."""
    with pytest.raises(ItemError, match="no column 'nope' for rater; columns: id, who, Rating"):
        read_labels([{"id": 1, "who": "x", "Rating": 7}], CRITIC, mapping={"rater": "nope"})


def test_published_figures_are_the_benchmarks_own() -> None:
    """They stand beside the critic's figures only, and say that they are of other data."""
    told = published(CRITIC)
    assert told is not None
    assert {row["judge"] for row in told["evaluators"]} == {"ChatGLM3-6B", "ChatGPT", "GPT-4", "CritiqueVLM"}
    assert published(DOC_QA) is None


def two(n: int = 60) -> tuple[Labels, Judged]:
    """Two people and a judge of n items, half of them in slice a."""
    people, said = drawn(n)
    found = labels((str(k), who, {"Rating": v}) for who in ("ann", "bob") for k, v in enumerate(people))
    units = [Unit(str(k), str(k), {"Rating": v}, "ab"[k % 2]) for k, v in enumerate(said)]
    return found, Judged("fake", units)


def test_statistics_are_chosen_by_name() -> None:
    """Those named are told, in that order; "all" are all that fit; a slip lists what is near."""
    told = agreement_facts(CRITIC, *two(), statistic="kappa, alpha:interval,within:2,strict")
    assert list(told["fields"]["Rating"]["statistics"]) == ["kappa", "alpha:interval", "within:2", "strict"]
    every = agreement_facts(CRITIC, *two(), statistic=["all"])["fields"]["Rating"]["statistics"]
    assert {"exact", "within:1", "ac2-linear", "fleiss", "pi", "bias", "fuzzy"} <= set(every)
    assert all(figure["judge"]["value"] is not None for figure in every.values())
    assert every["bias"]["people"] is None
    with pytest.raises(UnknownNameError, match="did you mean kappa"):
        agreement_facts(CRITIC, *two(), statistic="kapa")


def test_a_statistic_that_does_not_fit_says_why() -> None:
    """Labels without an order have no weighted kappa: a reason stands where the figure would; "all" leaves it out."""
    said = labels([(str(n), who, {"better": "tie"}) for n in range(20) for who in "ab"], PAIR)
    told = agreement_facts(PAIR, said, statistic="kappa-linear,mae,exact")["fields"]["better"]["statistics"]
    assert "labels without an order have no distance" in told["kappa-linear"]["people"]["reason"]
    assert told["mae"]["people"]["reason"] and told["exact"]["people"]["value"] == 1.0
    every = agreement_facts(PAIR, said, statistic="all")["fields"]["better"]
    assert set(every["statistics"]) == {"exact", "kappa", "pi", "fleiss", "alpha", "ac1"}
    assert every["warnings"][0].startswith("100% of the ratings are 'tie': agreement beyond chance is unstable")


def test_many_people_are_told_together() -> None:
    """A measure of any number of raters has the figure of all people at once, missing ratings included."""
    draw = random.Random(2)
    given = [(str(n), f"p{k}", {"Rating": min(10, n % 9 + draw.randint(1, 2))}) for n in range(40) for k in range(9)]
    said = labels(row for row in given if draw.random() < 0.4)
    figure = agreement_facts(CRITIC, said, statistic="alpha,kappa")["fields"]["Rating"]["statistics"]
    grid = [[said.of.get(str(n), {}).get(f"p{k}", {}).get("Rating", np.nan) for n in range(40)] for k in range(9)]
    whole = krippendorff.alpha(np.array(grid, dtype=float), level_of_measurement="ordinal")
    assert figure["alpha"]["together"]["value"] == pytest.approx(whole)
    assert figure["kappa"]["together"] is None


def test_people_may_be_called_as_judges_are() -> None:
    """The names of people, also those that the figures use themselves, change no figure."""
    ours = ("judge", "judge (person)", "judge (person)'", "people", "most people")
    named, plain = (
        [{"id": f"i{n}", "rater": rater, "truth": (n * n + k) % 5} for n in range(20) for k, rater in enumerate(names)]
        for names in (ours, "abcde")
    )
    run = evenhand.judge(rows(20), TWO, "fake")
    told, usual = (run.agreement(said)["fields"]["truth"] for said in (named, plain))
    assert told["people"] == list(ours)
    assert told["statistics"] == usual["statistics"]
    assert told["confusion"] == usual["confusion"]


def test_slices_have_figures_of_their_own() -> None:
    """Each slice has the figures of its items; one that is too small has a reason, one without labels no field."""
    said, judge = two()
    units = [
        *judge.units,
        Unit("z", "z", {"Rating": 3}, "c"),
        *(Unit(str(k), str(k), {"Rating": 3}, "d") for k in (1, 2)),
    ]
    told = agreement_facts(CRITIC, said, Judged("fake", units), by="team", statistic="exact")
    assert list(told["by"]) == ["a", "b", "c", "d"]
    one = told["by"]["a"]["fields"]["Rating"]["statistics"]["exact"]["judge"]
    kept = [(said.of[u.id]["ann"]["Rating"], u.said["Rating"]) for u in judge.units if u.slice == "a"]
    assert (one["value"], one["n"]) == (pytest.approx(sum(a == b for a, b in kept) / 30), 30)
    assert told["by"]["c"] == {"items": {"judged": 1, "both": 0}, "fields": {}}
    small = told["by"]["d"]["fields"]["Rating"]["statistics"]["exact"]["judge"]
    assert small["value"] is None and small["reason"] == "no pair of raters has 10 units in common"


def test_slices_by_a_column_of_the_input_and_of_the_labels(tmp_path: Path) -> None:
    """`agree --by` follows the rule of `show --by`; of people alone it is a column of their file, one value an item."""
    given = [row | {"team": "xy"[k % 2]} for k, row in enumerate(rows(24))]
    made = evenhand.judge(given, TWO, write_script(tmp_path / "s.jsonl", (None, GOOD)), out=tmp_path / "run")
    said = [{"id": row["id"], "rater": who, "truth": 3, "team": row["team"]} for row in given for who in "ab"]
    assert list(made.agreement(said, by="team")["by"]) == ["x", "y"]
    assert len(made.agreement(said, by="question")["by"]) == 24
    with pytest.raises(UnknownNameError, match="did you mean team"):
        made.agreement(said, by="teams")
    alone = evenhand.agreement(said, TWO, by="team")
    assert {name: one["items"]["both"] for name, one in alone["by"].items()} == {"x": 12, "y": 12}
    with pytest.raises(UnknownNameError, match="unknown column 'nope'"):
        evenhand.agreement(said, TWO, by="nope")
    with pytest.raises(ItemError, match="'i0' has team 'z' here, and 'x' in a row before"):
        evenhand.agreement([*said, said[0] | {"rater": "c", "team": "z"}], TWO, by="team")


def test_the_confusion_table_counts_the_judge_against_most_people() -> None:
    """Rows are the judge's, columns what most people gave; ties of people are left out, and counted."""
    values = {"1": (3, 4, 4), "2": (5, 5, 5), "3": (2, 3, 1), "4": (5, 5, 4)}
    said = labels(
        (own, who, {"Rating": v}) for own, three in values.items() for who, v in zip("abc", three, strict=True)
    )
    told = agreement_facts(CRITIC, said, judge({"1": 4, "2": 5, "3": 2, "4": 9}))["fields"]["Rating"]["confusion"]
    assert (told["rows"], told["columns"], told["n"]) == ("judge", "most people", 3)
    assert {(i + 1, j + 1): n for i, row in enumerate(told["counts"]) for j, n in enumerate(row) if n} == {
        (4, 4): 1, (5, 5): 1, (9, 5): 1,
    }  # fmt: skip
    assert told["missing"] == {"people divided evenly": 1}
    assert left_out_words("Rating", told) == ["Rating: 1 of 4 are not in the table of values: people divided evenly 1"]


def test_labels_needed_for_a_width() -> None:
    """With a width each figure tells the labels it takes, or why it can't."""
    told = agreement_facts(CRITIC, *two(), width=0.2)["fields"]["Rating"]["statistics"]
    exact = told["exact"]["judge"]
    spread = exact["ci"][1] - exact["ci"][0]
    assert exact["labels_needed"] == math.ceil(60 * (spread / 0.2) ** 2)  # two people: by the interval there is
    assert told["spearman"]["people"]["labels_reason"]
    assert "labels_needed" not in agreement_facts(CRITIC, *two())["fields"]["Rating"]["statistics"]["exact"]["judge"]
    for width in (0, 1e-300):
        with pytest.raises(InputError, match="must be a number from 1e-06"):
            agreement_facts(CRITIC, *two(), width=width)


def test_bars_hold_the_judge_to_account(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A bar that is not met, or can't be told, ends with 7 and a line; the figure need not be among those shown."""
    given = rows(60)
    judge = write_script(tmp_path / "s.jsonl", ("1", GOOD | {"truth": 1}), (None, GOOD | {"truth": 4}))
    evenhand.judge(given, TWO, judge, out=tmp_path / "run")
    people = [3 if n == 8 else 1 if "1" in str(n) else 4 for n in range(60)]
    lines = [{"id": row["id"], "truth": value} for row, value in zip(given, people, strict=True)]
    said = write_jsonl(tmp_path / "l.jsonl", lines)
    agree = ["agree", str(tmp_path / "run"), "--labels", str(said), "--statistic", "mae"]
    assert command([*agree, "--require", "exact>=0.9", "--require", "kappa@truth>=0.9"]) == 0
    assert command([*agree, "--require", "exact>=0.9", "--require", "mae>=0.1"]) == 7
    assert "mae>=0.1 of truth is not met: it is 0.017 (0.000 to 0.088), n 60" in (told := capsys.readouterr().err)
    assert "exact>=0.9 of truth is met: it is 0.983 (" in told
    assert command([*agree, "--require", "kappa@style>=0.1"]) == 7
    assert "kappa@style>=0.1 of style can't be told: no such figure" in capsys.readouterr().err
    assert command([*agree, "--require", "kappa>0.1"]) == 2
    assert command([*agree, "--require", "kappa@nope>=0.1"]) == 2
    write_jsonl(said, [{"id": row["id"], "truth": 4} for row in given[:20]])
    assert command([*agree, "--require", "exact>=0.5"]) == 7
    assert "too little data: 20 independent questions, 50 needed" in capsys.readouterr().err


PANDALM = """\
rubric: pandalm
mode: score
item: {required: {question: text, answer: text}}
criteria:
  - {name: better, text: Which is better?, scale: {values: ["0", "1", "2"], level: nominal}}
"""


def test_three_annotators_agree_as_published(shared: Callable[[str], Path]) -> None:
    """The annotators of PandaLM through labels and rubric: mean of their kappas, and Fleiss and alpha of all three."""
    table = json.loads(shared("data/pandalm/testset-v1.json").read_text(encoding="utf-8"))
    said = [{"id": r["idx"], "rater": k, "better": str(r[f"annotator{k}"])} for r in table for k in (1, 2, 3)]
    told = evenhand.agreement(said, rubric(PANDALM), statistic="kappa,fleiss,alpha")["fields"]["better"]["statistics"]
    kappa = told["kappa"]["people"]
    assert kappa["value"] == pytest.approx((0.852023 + 0.878944 + 0.861661) / 3, abs=5.1e-7)
    assert kappa["n"] == 999 and kappa["ci"][0] < kappa["value"] < kappa["ci"][1]
    assert told["fleiss"]["together"]["value"] == pytest.approx(0.864175, abs=5.1e-7)
    assert told["alpha"]["together"]["value"] == pytest.approx(0.864221, abs=5.1e-7)


PAIR = rubric(
    "rubric: two\nmode: compare\nitem: {required: {prompt: text, response_a: text, response_b: text}}\n"
    "scales: {side: {values: [A, B, tie], level: nominal, slots: true}}\n"
    "criteria: [{name: better, text: Which is better?, scale: side}]\n"
)


def test_pairs_count_where_both_orders_agree(tmp_path: Path) -> None:
    """A side that changes with the order is no judgement: it is left out, and n says so."""
    items = [{"id": str(n), "prompt": f"p{n}", "response_a": "x", "response_b": "y"} for n in range(24)]
    steady = [(f"p{n}\n", {"better": "A"}) for n in range(12)]
    run = run_it(items, PAIR, write_script(tmp_path / "s.jsonl", *steady, (None, {"better": "tie"})), tmp_path / "run")
    assert run is not None
    told = evenhand.Run(tmp_path / "run").agreement([{"id": str(n), "better": "tie"} for n in range(24)])
    exact = told["fields"]["better"]["statistics"]["exact"]["judge"]
    assert (exact["value"], exact["n"]) == (1.0, 12)


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    """A table a field for people, all figures as JSON for scripts; wrong uses end with 2 and a remedy."""
    run_it(rows(12), DOC_QA, "fake", tmp_path / "run")
    file = tmp_path / "labels.csv"
    keys = [row["id"] for row in evenhand.Run(tmp_path / "run").rows()]
    file.write_text("id,rater,correctness\n" + "".join(f"{key},{who},5\n" for key in keys for who in "ab"))
    here = CliRunner()
    printed = here.invoke(cli, ["agree", str(tmp_path / "run"), "--labels", str(file)], catch_exceptions=False)
    lines = [" ".join(line.split()) for line in printed.output.splitlines()]
    assert "12 items with labels of 12 items judged; 2 raters: a, b" in lines
    assert any(line.startswith("equal judge-people 0.") for line in lines)
    assert any(line.startswith("people-people 1.000") for line in lines)
    args = ["agree", str(tmp_path / "run"), "--labels", str(file), "--json"]
    assert json.loads(here.invoke(cli, args).output)["items"]["both"] == 12
    alone = here.invoke(cli, ["agree", str(file), "--rubric", "doc-qa"], catch_exceptions=False)
    assert "doc-qa v1: people" in alone.output
    for wrong in ([str(tmp_path / "run")], [str(file)], [str(tmp_path / "run"), "--labels", "l", "--rubric", "doc-qa"]):
        with pytest.raises(InputError):
            here.invoke(cli, ["agree", *wrong], catch_exceptions=False)


def test_the_same_mistake_of_many_rows_is_told_once() -> None:
    """Each kind with its first row and how many rows more have it; yes and no on a scale of 0 and 1 get a remedy."""
    zero_one = rubric(ZERO_ONE)
    rows = [{"id": n, "truth": "Yes" if n % 3 else "No"} for n in range(300)]
    with pytest.raises(ItemError) as caught:
        read_labels(rows, zero_one)
    yes, no = sorted(str(caught.value).splitlines(), reverse=True)[:2]
    assert "'Yes'" in yes
    assert "1 for yes, 0 for no; the same in 199 more rows" in yes
    assert "the same in 99 more rows" in no
    with pytest.raises(ItemError, match="and 100 more"):
        read_labels([*({"id": n, "truth": 2 + n} for n in range(200)), {"id": "good", "truth": 1}], zero_one)


def test_statistics_that_two_values_make_the_same_are_told_once() -> None:
    """Neither by default nor with all; named, each has its value."""
    zero_one = rubric(ZERO_ONE)
    rated = [(str(n), who, {"truth": int(n % k == 0)}) for n in range(60) for who, k in (("a", 2), ("b", 3))]
    said = labels(rated, zero_one)
    for asked in (None, "all"):
        told = agreement_facts(zero_one, said, statistic=asked)["fields"]["truth"]["statistics"]
        values = [figure["people"]["value"] for name, figure in told.items() if name in ("kappa", "spearman", "ac1")]
        assert len(values) == (2 if asked is None else 3)
        assert not {"kappa-quadratic", "pearson", "kendall", "ac2-linear", "within:1"} & told.keys()
    named = agreement_facts(zero_one, said, statistic="kappa,kappa-quadratic")["fields"]["truth"]["statistics"]
    assert named["kappa"]["people"]["value"] == pytest.approx(named["kappa-quadratic"]["people"]["value"])
