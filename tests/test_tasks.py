"""Figures by task and category, and over paraphrase groups."""

from __future__ import annotations

import json
import random
import statistics
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from evenhand.item import Item
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Aggregate
from evenhand.tasks import Clusters, Tasks, robustness, score_bounds
from rubric_texts import rubric

CRITIC = load_rubric("alignmm-critic")
PUBLISHED = json.loads((files("evenhand") / "published.json").read_text(encoding="utf-8"))


def item(key: str, task: str | None) -> Item:
    return Item(key, 0, {} if task is None else {"type": task})


def facts(*rows: tuple[str, str | None, list[float | None]]) -> dict[str, Any]:
    bounds = score_bounds(CRITIC)
    assert bounds == (1.0, 10.0)
    tasks = Tasks(CRITIC, bounds)
    for key, task, scores in rows:
        tasks.add(item(key, task), scores)
    return tasks.facts()


@pytest.mark.parametrize("row", PUBLISHED["leaderboard"], ids=lambda row: row["model"])
def test_the_published_average_is_the_task_mean(row: dict[str, Any]) -> None:
    """The unweighted mean of 13 task scores gives the published average within 0.01, for all 17 models."""
    told = facts(*((f"{n:08}-0", task, [score]) for n, (task, score) in enumerate(row["tasks"].items())))
    assert told["overall"]["task_mean"]["tasks"] == 13
    assert told["overall"]["task_mean"]["mean"] == pytest.approx(row["average"], abs=0.01)
    assert list(told["categories"]) == ["perception", "reasoning", "dialogue"]
    reasoning = list(row["tasks"].values())[6:11]
    assert told["categories"]["reasoning"]["task_mean"]["mean"] == pytest.approx(sum(reasoning) / 5)


def test_item_mean_and_task_mean_differ_where_tasks_differ_in_size() -> None:
    """Items have one voice each in the item mean, tasks in the task mean; missing scores count in planned only."""
    told = facts(
        ("a-0", "Chart", [2.0]),
        ("b-0", "Chart", [4.0]),
        ("c-0", "Chart", [None]),
        ("d-0", "Writing", [9.0]),
        ("e-0", "Writing", [None, 5.0]),
    )
    chart, writing = told["tasks"]["Chart"], told["tasks"]["Writing"]
    assert (chart["mean"], chart["n"], chart["planned"], chart["category"]) == (3.0, 2, 3, "reasoning")
    assert (writing["mean"], writing["n"], writing["planned"]) == (7.0, 2, 3)
    assert told["overall"]["item_mean"]["mean"] == 5.0
    assert told["overall"]["task_mean"]["mean"] == 5.0
    more = facts(("a-0", "Chart", [2.0]), ("b-0", "Chart", [4.0]), ("d-0", "Writing", [9.0]))["overall"]
    assert (more["item_mean"]["mean"], more["task_mean"]["mean"]) == (5.0, 6.0)
    assert more["task_mean"]["ci"] is None
    assert "1 of 2 tasks have no interval" in more["task_mean"]["note"]


def test_a_task_without_any_score_leaves_no_task_mean() -> None:
    """A mean over fewer tasks would be another quantity: none is given, with the reason."""
    told = facts(("a-0", "Chart", [None]), ("b-0", "Writing", [5.0]))["overall"]
    assert told["task_mean"]["mean"] is None
    assert "1 of 2 tasks have no score" in told["task_mean"]["note"]
    assert told["item_mean"]["mean"] == 5.0


def test_items_without_a_type_are_a_task_of_their_own() -> None:
    """They are shown under "(none)", in no category."""
    told = facts(("a-0", None, [5.0]))
    assert told["tasks"]["(none)"]["category"] is None
    assert told["categories"] == {}


def test_paraphrases_are_no_independent_items() -> None:
    """Six paraphrases that share their score give the interval of their groups, not of six times as many items."""
    scores = [3.0, 5.0, 6.0, 9.0]
    rows = [(f"{n}-{k}", "OCR", [score]) for n, score in enumerate(scores) for k in range(6)]
    single = [(f"{n}-0", "OCR", [score]) for n, score in enumerate(scores)]
    many, few = facts(*rows)["tasks"]["OCR"], facts(*single)["tasks"]["OCR"]
    assert (many["n"], many["items"], few["n"]) == (24, 4, 4)
    assert many["ci"] == pytest.approx(few["ci"])
    assert many["note"] == "fewer than 50 paraphrase groups: the interval is rough"


def test_a_figure_of_one_group_says_so() -> None:
    """Paraphrases of one question are several items, but one group."""
    told = facts(("a-0", "OCR", [5.0]), ("a-1", "OCR", [7.0]))
    assert told["overall"]["item_mean"]["note"] == "one paraphrase group: no interval"
    assert told["overall"]["robustness"]["variance"]["note"] == "one paraphrase group: no interval"


def test_groups_are_found_in_any_order() -> None:
    """The figures do not depend on the order of rows."""
    rows: list[tuple[str, str | None, list[float | None]]] = [
        (f"{n}-{k}", ("OCR", "Meme")[n % 2], [float(1 + (3 * n + 5 * k) % 10)]) for n in range(6) for k in range(5)
    ]
    mixed = rows[:]
    random.Random(3).shuffle(mixed)
    one, other = facts(*rows)["overall"], facts(*mixed)["overall"]
    for kind in ("item_mean", "task_mean"):
        assert one[kind]["ci"] == pytest.approx(other[kind]["ci"])
        assert one[kind]["mean"] == pytest.approx(other[kind]["mean"])
    assert one["robustness"]["score"]["mean"] == pytest.approx(other["robustness"]["score"]["mean"])


def test_robustness_is_one_over_the_mean_variance_within_groups() -> None:
    """Population variance of each group's items; groups of one don't count; repeats are one item."""
    told = facts(
        ("a-0", "OCR", [4.0]),
        ("a-1", "OCR", [6.0]),
        ("b-0", "OCR", [5.0, 9.0]),
        ("b-1", "OCR", [7.0]),
        ("b-2", "OCR", [None]),
        ("c-0", "OCR", [1.0]),
    )["tasks"]["OCR"]["robustness"]
    spread = [statistics.pvariance([4.0, 6.0]), statistics.pvariance([7.0, 7.0])]
    assert (told["variance"]["mean"], told["variance"]["n"]) == (pytest.approx(statistics.fmean(spread)), 2)
    assert told["deviation"]["mean"] == pytest.approx(0.5)
    assert told["score"]["mean"] == pytest.approx(2.0)
    assert told["official"] is False


def test_no_spread_gives_no_inverse() -> None:
    """Where all paraphrases score alike the mean variance is 0 and there is no inverse; with no group, no variance."""
    assert robustness([[5.0, 5.0], [7.0, 7.0]])["score"] == {"mean": None, "ci": None, "n": 2}
    assert robustness([])["variance"]["mean"] is None


def test_the_inverse_has_the_interval_of_the_variance_turned_over() -> None:
    """Its ends are one over the ends of the variance's interval."""
    draw = random.Random(1)
    told = robustness([[draw.gauss(5, 1) for _ in range(6)] for _ in range(200)])
    low, high = told["variance"]["ci"]
    assert told["score"]["ci"] == [1 / high, 1 / low]
    assert low < 5 / 6 < high  # the population variance of six draws of variance 1


@pytest.mark.parametrize(
    ("rule", "key", "group"),
    [
        ("id before the last -", "00000012-3", "00000012"),
        ("id before the last -", "a-b-c", "a-b"),
        ("id before the last -", "alone", "alone"),
        ("id", "a-1", None),
        ("type", "a-1", "OCR"),
        ("missing", "a-1", None),
    ],
)
def test_paraphrase_groups(rule: str, key: str, group: str | None) -> None:
    """A group is a column, or what stands in it before a mark; without either an item is of none."""
    ruled = replace(CRITIC, aggregate=Aggregate(robustness={"group-by": rule}))
    clusters = Clusters(ruled)
    assert clusters.paraphrases(item(key, "OCR")) == group
    assert (clusters.of(item(key, "OCR")) == group) is (group is not None)


def _answer(key: str, question: str | None, answer: str = "x") -> Item:
    return Item(key, 0, {} if question is None else {"question": question, "answer": answer, "context": key})


def test_answers_to_one_question_are_one_cluster() -> None:
    """All that the rubric requires but the answer tells: other answers, contexts and ids don't make it another one."""
    clusters = Clusters(load_rubric("doc-qa"))
    same = [clusters.of(_answer(*row)) for row in (("1", "why", "a"), ("2", "why", "b"), ("3", "how", "a"))]
    assert (same[0] == same[1], same[0] == same[2], clusters.unit) == (True, False, "question")


def test_without_texts_the_id_tells_less_what_was_put_behind_it() -> None:
    """Items stand alone by their ids; a table of systems, or --pairs, names the row that they were made of."""
    alone = Clusters(load_rubric("doc-qa"), {"commands": [{"mapping": {}}]})
    assert (alone.of(_answer("1~a", None)), alone.unit) == ("1~a", "item")
    wide = Clusters(load_rubric("doc-qa"), {"commands": [{"mapping": {"responses": "a+b-2"}}]})
    assert ([wide.of(_answer(key, None)) for key in ("1~a", "1~b-2", "1~c")], wide.unit) == (
        ["1", "1", "1~c"],
        "question",
    )
    pairs = Clusters(load_rubric("hhh"), {"commands": [{"mapping": {}, "pairs": "all"}]})
    assert ([pairs.of(_answer(key, None)) for key in ("p~a~b", "p~b~c")], pairs.unit) == (["p", "p"], "prompt")
    ruled = Clusters(CRITIC, {"commands": [{"mapping": {"responses": "gpt-4+b"}}]})
    assert [ruled.of(item(key, "OCR")) for key in ("7-0~gpt-4", "7-1~b")] == ["7", "7"]


def test_pairs_of_one_prompt_and_its_context_are_one_cluster() -> None:
    """The prompt's id tells, else its texts with all that stands beside the responses."""
    clusters = Clusters(load_rubric("hhh"))

    def pair(key: str, prompt: str, **extra: Any) -> Item:
        return Item(key, 0, {"prompt": prompt, "response_a": key, "response_b": "x"}, extra)

    assert clusters.of(pair("1", "p")) == clusters.of(pair("2", "p")) != clusters.of(pair("3", "q"))
    assert clusters.of(pair("4", "p", prompt_id=7)) == clusters.of(pair("5", "q", prompt_id="7")) == "7"
    assert clusters.unit == "prompt"


def test_texts_that_stand_alone_share_no_question() -> None:
    """A rubric that requires the answer only, as of essays, has no question: every item is a cluster."""
    text = "rubric: essay\nmode: score\nitem: {required: {answer: text}}\n"
    essays = rubric(text + "criteria: [{name: good, text: Is it good?, scale: {range: [1, 5]}}]\n")
    clusters = Clusters(essays)
    keys = {clusters.of(Item(str(k), 0, {"answer": "same"})) for k in range(3)}
    assert (len(keys), clusters.unit) == (3, "item")


def test_a_rubric_without_tasks_has_none() -> None:
    """Without `aggregate.per` there is nothing to sum up by."""
    assert score_bounds(load_rubric("doc-qa")) is None
