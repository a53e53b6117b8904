"""Figures by task and category, and over paraphrase groups."""

from __future__ import annotations

import json
import random
import statistics
from importlib.resources import files
from typing import Any

import pytest

from evenhand.item import Item
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Aggregate
from evenhand.tasks import Tasks, group_of, robustness, score_bounds

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
    assert many["note"] == "fewer than 50 groups: the interval is rough"


def test_a_figure_of_one_group_says_so() -> None:
    """Paraphrases of one question are several items, but one group."""
    told = facts(("a-0", "OCR", [5.0]), ("a-1", "OCR", [7.0]))
    assert told["overall"]["item_mean"]["note"] == "one group: no interval"
    assert told["overall"]["robustness"]["variance"]["note"] == "one group: no interval"


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
        ("id", "a-1", "a-1"),
        ("type", "a-1", "OCR"),
        ("missing", "a-1", "a-1"),
    ],
)
def test_paraphrase_groups(rule: str, key: str, group: str) -> None:
    """A group is a column, or what stands in it before a mark; without either an item is alone."""
    assert group_of(item(key, "OCR"), Aggregate(robustness={"group-by": rule})) == group


def test_a_rubric_without_tasks_has_none() -> None:
    """Without `aggregate.per` there is nothing to sum up by."""
    assert score_bounds(load_rubric("doc-qa")) is None
