"""A judge against people, and people against each other."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import kendalltau, pearsonr, spearmanr

import evenhand
from evenhand.agreeing import Judged, Labels, Unit, agreement_facts, published, read_labels
from evenhand.cli.main import cli
from evenhand.errors import InputError, ItemError
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Rubric
from rubric_texts import rubric
from runs import rows, run_it, write_script

CRITIC = load_rubric("alignmm-critic")
DOC_QA = load_rubric("doc-qa")


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
