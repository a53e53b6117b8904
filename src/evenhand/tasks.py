"""What items share (a question, a paraphrase group, a prompt), and figures by task, category and paraphrase group.

No layout.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand._canon import digest
from evenhand.item import Item, content_id
from evenhand.pairing import COLUMNS, split_pair_id
from evenhand.rubric.model import Rubric
from evenhand.spill import Spill
from evenhand.stats.estimates import Estimate
from evenhand.stats.means import ClusteredMean, mean_of_means

UNTYPED = "(none)"
GROUP, QUESTION, PROMPT, ITEM = "paraphrase group", "question", "prompt", "item"
_PROMPT_ID = COLUMNS[0]


class Clusters:
    """Which items of a run are not independent of each other: the one rule that every command goes by.

    Items are of one cluster where they are of one paraphrase group, if the rubric knows groups and the item has an id
    of its own to tell; else where they are about the same question: of pairs the prompt (its id, or its texts with
    their context), of scores all that the rubric requires of an item but the answer. Where texts are not kept, the
    id tells, less what ``--pairs`` or a table with a column for each system put behind it.

    Args:
        rubric: The run's rubric.
        manifest: The run's manifest; None where there are ids only, as of labels.
    """

    def __init__(self, rubric: Rubric, manifest: Mapping[str, Any] | None = None) -> None:
        commands = manifest["commands"] if manifest is not None else ()
        self._rubric = rubric
        self._grouped = rubric.aggregate.robustness.get("group-by", "id") != "id"
        self._asked = [f.name for f in rubric.item.fields if f.required and f.name not in rubric.item.by_system]
        self._of_prompts = any(command.get("pairs") for command in commands)
        self._systems = {
            f"~{name}"
            for command in commands
            if (columns := (command.get("mapping") or {}).get("responses")) and not command.get("pairs")
            for name in columns.split("+")
        }
        self._known = False

    @property
    def unit(self) -> str:
        """What a cluster is, in a word or two, of the items met so far."""
        if self._grouped:
            return GROUP
        if self._rubric.mode == "compare":
            return PROMPT if self._known or self._of_prompts else ITEM
        return QUESTION if self._known or self._systems else ITEM

    def of(self, item: Item) -> str:
        """The cluster of an item, as a key."""
        group = self.paraphrases(item)
        return group if group is not None else self._subject(item)

    def paraphrases(self, item: Item) -> str | None:
        """The paraphrase group of an item, as its rubric says; None where that isn't known."""
        rule = self._rubric.aggregate.robustness.get("group-by", "id")
        name, _, mark = rule.partition(" before the last ")
        if not self._grouped or (name == "id" and item.fields and item.id.startswith(content_id(item.fields))):
            return None
        given = self._row(item.id) if name == "id" else item.fields.get(name)
        if given is None:
            return None
        return str(given).rpartition(mark)[0] or str(given) if mark else str(given)

    def _subject(self, item: Item) -> str:
        """The prompt or question of an item."""
        if self._rubric.mode == "compare":
            if (given := item.extra.get(_PROMPT_ID)) is not None:
                self._known = True
                return str(given)
            if not item.fields:
                return self._row(item.id)
            self._known = True
            return content_id({n: v for n, v in item.fields.items() if n not in self._rubric.item.responses})
        if not item.fields or not self._asked:
            return self._row(item.id)
        self._known = True
        return question_of(item, self._rubric)

    def _row(self, own: str) -> str:
        """The id of the row that an item was made of."""
        if self._of_prompts and (pair := split_pair_id(own)) is not None:
            return pair[0]
        return next((own.removesuffix(system) for system in self._systems if own.endswith(system)), own)


def question_fields(rubric: Rubric) -> list[str]:
    """What a rubric requires of an item but the answer."""
    return [f.name for f in rubric.item.fields if f.required and f.name not in rubric.item.by_system]


def question_of(item: Item, rubric: Rubric, fields: Sequence[str] | None = None) -> str:
    """What is asked of a system, as a key: all that the rubric requires of an item but the answer.

    Where it requires nothing else, as of essays, no two items share a question.

    Args:
        item: The item.
        rubric: Its rubric.
        fields: What to go by, as what several rubrics require in common; None for `question_fields`.
    """
    asked = question_fields(rubric) if fields is None else fields
    return digest([str(item.fields.get(name)) for name in asked]) if asked else item.id


class Tasks:
    """Sums up the scores of a run as the rubric's ``aggregate`` says, fed row by row.

    A task is a value of the first field of ``aggregate.per``; categories are those of the rubric's types. Items of
    one cluster share what they are about, so intervals take clusters, not items, as independent. Memory does not grow
    with the number of clusters.

    Args:
        rubric: Has an ``aggregate.per``.
        bounds: Ends of the scale of the scores.
        clusters: Which items belong together; default: what the rubric alone tells.
    """

    def __init__(self, rubric: Rubric, bounds: tuple[float, float], clusters: Clusters | None = None) -> None:
        self._rubric = rubric
        self._clusters = clusters or Clusters(rubric)
        self._bounds = bounds
        self._planned: dict[str, int] = {}
        self._groups: dict[str, Spill] = {}  # of each task: cluster -> number of scores, scores, means of paraphrases

    def add(self, item: Item, scores: Sequence[float | None]) -> None:
        """Take the scores of one item, one a planned trial; None where there is none."""
        given = item.fields.get(self._rubric.aggregate.per[0])
        task = UNTYPED if given is None else str(given)
        self._planned[task] = self._planned.get(task, 0) + len(scores)
        groups = self._groups.setdefault(task, Spill())
        read = [score for score in scores if score is not None]
        if read:
            cluster = self._clusters.of(item)
            found, means = _group(groups.get(cluster) or bytes(8))
            found.extend(read)
            if self._clusters.paraphrases(item) is not None:
                means.append(math.fsum(read) / len(read))
            groups.put(cluster, array("d", [len(found), *found, *means]).tobytes())

    def facts(self) -> dict[str, Any]:
        """The figures as plain data.

        Returns:
            ``tasks``: name -> mean, ci, n (scores), items (independent groups), planned, category, and robustness
            where the rubric asks for it. ``categories`` and ``overall``: item_mean (over all scores) and task_mean
            (the unweighted mean of task means, each task one voice), if the rubric lists them in ``means``;
            ``overall`` has robustness too. Scores that are missing count nowhere but in planned.
        """
        names = self._ordered()
        tasks = {name: self._task(name) for name in names}
        categories: dict[str, list[str]] = {}
        for name in names:
            if (category := self._category(name)) is not None:
                categories.setdefault(category, []).append(name)
        facts: dict[str, Any] = {
            "by": self._rubric.aggregate.per[0],
            "tasks": tasks,
            "categories": {category: self._means(members) for category, members in categories.items()},
            "overall": self._means(names),
        }
        if self._rubric.aggregate.robustness:
            facts["overall"]["robustness"] = self._robustness(names)
        return facts

    def _ordered(self) -> list[str]:
        """Names of tasks, in the rubric's order, then those it does not know."""
        types = self._rubric.types
        known = list(types.names) if types is not None and types.item_field == self._rubric.aggregate.per[0] else []
        return [name for name in known if name in self._planned] + sorted(set(self._planned) - set(known))

    def _category(self, task: str) -> str | None:
        types = self._rubric.types
        categories = types.categories if types is not None else {}
        return next((name for name, members in categories.items() if task in members), None)

    def _task(self, name: str) -> dict[str, Any]:
        told = {**told_mean(self._mean([name])), "planned": self._planned[name], "category": self._category(name)}
        if self._rubric.aggregate.robustness:
            told["robustness"] = self._robustness([name])
        return told

    def _mean(self, tasks: Iterable[str]) -> Estimate:
        mean = ClusteredMean(low=self._bounds[0], high=self._bounds[1], unit=self._clusters.unit)
        for task in tasks:
            for kept in self._groups[task].values():
                mean.add(_group(kept)[0])
        return mean.estimate()

    def _means(self, tasks: Sequence[str]) -> dict[str, Any]:
        kinds = self._rubric.aggregate.means
        means: dict[str, Any] = {"planned": sum(self._planned[task] for task in tasks)}
        if "item" in kinds:
            means["item_mean"] = told_mean(self._mean(tasks))
        if "task" in kinds:
            estimate = mean_of_means([self._mean([task]) for task in tasks], self._bounds)
            means["task_mean"] = {**told_mean(estimate), "tasks": len(tasks)}
        return means

    def _robustness(self, tasks: Iterable[str]) -> dict[str, Any]:
        least = int(self._rubric.aggregate.robustness.get("min", 2))
        groups = (_group(kept)[1] for task in tasks for kept in self._groups[task].values())
        return robustness(means for means in groups if len(means) >= least)


def _group(kept: bytes) -> tuple[array[float], array[float]]:
    """What `Tasks` keeps of a cluster: its scores, and one mean an item of a paraphrase group."""
    numbers = array("d", kept)
    size = int(numbers[0])
    return numbers[1 : 1 + size], numbers[1 + size :]


def robustness(groups: Iterable[Sequence[float]]) -> dict[str, Any]:
    """How much scores differ between paraphrases of one question. Unofficial: the published formula is not known.

    Args:
        groups: The items' scores of each paraphrase group, two or more each.

    Returns:
        ``variance`` and ``deviation``: means over groups of the population variance and standard deviation, each
        with ci and n (groups); ``score``: one over the mean variance with its ci, None where the variance is 0;
        ``official``: False.
    """
    variance, deviation = ClusteredMean(low=0.0, unit=GROUP), ClusteredMean(low=0.0, unit=GROUP)
    for scores in groups:
        mean = math.fsum(scores) / len(scores)
        spread = math.fsum((score - mean) ** 2 for score in scores) / len(scores)
        variance.add([spread])
        deviation.add([math.sqrt(spread)])
    told = variance.estimate()
    score = None if not told.value else 1 / told.value
    inverse = None if score is None or not told.ci or told.ci[0] <= 0 else [1 / told.ci[1], 1 / told.ci[0]]
    return {
        "variance": told_mean(told),
        "deviation": told_mean(deviation.estimate()),
        "score": {"mean": score, "ci": inverse, "n": told.n},
        "official": False,
    }


def told_mean(estimate: Estimate) -> dict[str, Any]:
    """An estimate of a mean as plain data: mean, ci, n, items (clusters), cluster (what one is), method, note."""
    interval = None if estimate.low is None else [estimate.low, estimate.high]
    facts: dict[str, Any] = {"mean": estimate.value, "ci": interval, "n": estimate.n, "items": estimate.clusters}
    facts |= {"cluster": estimate.unit, "method": estimate.method}
    if estimate.note:
        facts["note"] = estimate.note
    return facts


def of_told(facts: Mapping[str, Any]) -> Estimate:
    """The estimate that `told_mean` told, but for its standard error."""
    note, ci = facts.get("note", ""), facts["ci"]
    return Estimate(
        facts["mean"], tuple(ci) if ci else None, facts["n"], facts["items"], method=facts["method"],
        reason="" if ci else note, warnings=(note,) if ci and note else (), unit=facts["cluster"],
    )  # fmt: skip


def score_bounds(rubric: Rubric) -> tuple[float, float] | None:
    """Ends of the scale that scores of `Tasks` are on; None where the rubric gives no number or no task.

    The score is the composite where criteria have weights, else the first criterion with numbers.
    """
    if not rubric.aggregate.per:
        return None
    if rubric.aggregate.composite:
        return composite_bounds(rubric)
    first = next((c.scale for c in rubric.criteria if c.scale.numeric), None)
    return None if first is None else (float(first.bottom), float(first.top))


def weights_of(rubric: Rubric) -> dict[str, float]:
    """The weights of the composite by criterion, empty where there is none."""
    return {c.name: c.weight for c in rubric.criteria if c.weight is not None}


def told_weights(weights: Mapping[str, float]) -> str:
    """Weights in words, as in "0.6 correctness, 0.4 style"."""
    return ", ".join(f"{weight:g} {name}" for name, weight in weights.items())


def composite_bounds(rubric: Rubric) -> tuple[float, float]:
    """The weighted ends of the scales of the criteria, which a composite can't leave."""
    weighted = [(c.weight, c.scale) for c in rubric.criteria if c.weight is not None and c.scale.numeric]
    low = sum(weight * float(scale.bottom) for weight, scale in weighted)
    return low, sum(weight * float(scale.top) for weight, scale in weighted)
