"""Scores by measure, system and question, of one run with a column of systems or of several runs. No layout.

of_column / of_runs -> Scores
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evenhand import facts
from evenhand._words import counted, listed
from evenhand.errors import InputError, UnknownNameError
from evenhand.item import Item
from evenhand.keywords import text
from evenhand.rubric.model import Rubric
from evenhand.slices import label
from evenhand.store import Store
from evenhand.tasks import QUESTION, Clusters, composite_bounds, question_fields, question_of, told_weights, weights_of
from evenhand.verdict import Verdict

COMPOSITE = "composite"
#: Open runs by name, each with its rubric.
OpenRuns = Mapping[str, tuple[Store, Rubric]]
_PAIRS = "systems are compared by scores; pairs name the better one themselves"
_RANK = "see: evenhand rank"


@dataclass(slots=True)
class Scores:
    """Scores by measure, system and question; each a list, as a question may have several.

    Attributes:
        by: What tells systems apart.
        of: Measure -> system -> question -> scores.
        clusters: Question -> what it shares its subject with.
        planned: System -> its questions -> number of answers planned to be judged.
        bounds: Measure -> ends of its scale.
        asked: Question -> what is asked, as a key; nothing where texts are not kept.
        unit: What a cluster is, in a word or two.
        warnings: What to know of the whole.
        paired_by: What a question is here: "id" of an item, or "question" where it is what was asked.
    """

    by: str
    bounds: Mapping[str, tuple[float, float]]
    of: dict[str, dict[str, dict[str, list[float]]]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)
    planned: dict[str, dict[str, int]] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    unit: str = QUESTION
    warnings: list[str] = field(default_factory=list)
    paired_by: Literal["id", "question"] = "question"

    def add(self, system: str, question: str, cluster: str, verdicts: Iterable[Verdict], how: _How) -> None:
        """Take one answer; a verdict without a value of a measure counts in planned only."""
        planned = self.planned.setdefault(system, {})
        planned[question] = planned.get(question, 0) + 1
        self.clusters.setdefault(question, cluster)
        found = list(verdicts)
        for measure in how.measures:
            scores = self.of.setdefault(measure, {}).setdefault(system, {})
            values = [value for verdict in found if (value := how.value(verdict, measure)) is not None]
            if values:
                scores.setdefault(question, []).extend(values)

    def by_question(self) -> None:
        """Pair what is asked instead of ids, where no id is of two systems and questions are; with a warning."""
        sides = [set(planned) for planned in self.planned.values()]
        texts = [{self.asked.get(own) for own in side} for side in sides]
        pairs = list(itertools.combinations(range(len(sides)), 2))
        if any(sides[i] & sides[j] for i, j in pairs) or not any((texts[i] & texts[j]) - {None} for i, j in pairs):
            return
        self.planned = {system: _renamed(planned, self.asked) for system, planned in self.planned.items()}
        for systems in self.of.values():
            for system, scores in systems.items():
                systems[system] = _renamed(scores, self.asked)
        self.clusters = {self.asked.get(own, own): cluster for own, cluster in self.clusters.items()}
        self.paired_by = "question"
        self.warnings.append("the runs have no id in common: their answers are paired by question")

    def several(self) -> Iterator[str]:
        """Systems that answered a question more than once."""
        for system, planned in self.planned.items():
            if (answers := sum(planned.values())) > len(planned):
                told = f"{answers} answers to {counted(len(planned), 'question')}"
                yield f"{system} gave {told}: those to one question count by their mean"


@dataclass(frozen=True, slots=True)
class _How:
    """Which numbers are compared."""

    rubric: Rubric
    kind: facts.ValueKind
    measures: Mapping[str, tuple[float, float]]

    @classmethod
    def of(cls, rubric: Rubric, kind: facts.ValueKind) -> _How:
        if rubric.mode != "score":
            raise InputError(_PAIRS, hint=_RANK)
        measures = {COMPOSITE: composite_bounds(rubric)} if rubric.aggregate.composite else {}
        scales = {c.name: c.scale for c in rubric.criteria if c.scale.numeric}
        measures.update((name, (float(scale.bottom), float(scale.top))) for name, scale in scales.items())
        return cls(rubric, kind, measures)

    def value(self, verdict: Verdict, measure: str) -> float | None:
        if measure == COMPOSITE:
            return facts.composite(verdict, self.rubric, self.kind)
        outcome = verdict.fields.get(measure)
        picked = facts.pick(outcome, self.kind) if outcome is not None else None
        return float(picked) if isinstance(picked, int | float) else None


def of_column(store: Store, rubric: Rubric, by: str, value: facts.ValueKind = "stated") -> Scores:
    """Scores of a run whose rows are answers of several systems, a column telling which.

    A question is all that the rubric requires of an item but the answer; what a system found for itself (an optional
    context, or one that may be blank) may differ.

    Raises:
        UnknownNameError: no row has the column.
        InputError: a rubric of pairs, or a run without texts.
    """
    how = _How.of(rubric, value)
    scores, clusters = Scores(text("by", by), how.measures), Clusters(rubric, store.manifest)
    columns: set[str] = set()
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        if not row.item.fields:
            raise InputError("the run keeps no texts (--no-store-texts), so questions can't be told apart")
        source = {**row.item.extra, **row.item.fields}
        columns |= source.keys()
        if source.get(by) is not None:
            question, cluster = question_of(row.item, rubric), clusters.of(row.item)
            scores.add(label(source[by]), question, cluster, verdicts.values(), how)
    if not scores.planned:
        raise UnknownNameError("column", by, columns)
    scores.unit = clusters.unit
    return scores


def of_runs(runs: OpenRuns, value: facts.ValueKind = "stated") -> Scores:
    """Scores of several runs over the same items, by id; by question where no id is in two runs.

    Runs whose composites have different weights are compared by their criteria alone: the difference of the composites
    would be one of weights too.

    Args:
        runs: Name -> the open run and its rubric.
        value: As in a summary.

    Raises:
        InputError: rubrics with other scales, a rubric of pairs, or an id that names different questions.
    """
    if unlike := _unlike_rubrics({name: rubric for name, (_, rubric) in runs.items()}):
        raise unlike
    hows = {name: _How.of(rubric, value) for name, (_, rubric) in runs.items()}
    first = next(iter(hows.values()))
    scores = Scores("run", first.measures, paired_by="id")
    if warning := unlike_weights({name: rubric for name, (_, rubric) in runs.items()}):
        scores.warnings.append(warning)
        hows = {name: replace(how, measures=_but_composite(how.measures)) for name, how in hows.items()}
    fields = _common_fields(rubric for _, rubric in runs.values())
    for name, (store, rubric) in runs.items():
        clusters = Clusters(rubric, store.manifest)
        for row, verdicts in store.verdicts():
            if row.item is not None:
                _require_same_question(scores.asked, row.item, question_of(row.item, rubric, fields), name)
                scores.add(name, row.item.id, clusters.of(row.item), verdicts.values(), hows[name])
        scores.unit = clusters.unit
    scores.by_question()
    return scores


def comparable(
    runs: OpenRuns, questions: tuple[list[list[str]], dict[str, str]]
) -> tuple[list[OpenRuns], dict[str, str]]:
    """Runs in groups of two and more whose scores `of_runs` compares, and of each other run why it is in none.

    A group has the same criteria on the same scales, and no id that names different questions.

    Args:
        runs: The runs.
        questions: What `same_questions` tells of them.
    """
    reasons, alike = dict[str, str](), list[dict[str, tuple[Store, Rubric]]]()
    worlds, other = questions
    for world in worlds:
        groups: dict[tuple[Any, ...], dict[str, tuple[Store, Rubric]]] = {}
        for name in world:
            rubric = runs[name][1]
            if rubric.mode != "score":
                reasons[name] = "it judges pairs, which name the better one themselves"
            elif not any(c.scale.numeric for c in rubric.criteria):
                reasons[name] = "none of its criteria has a scale of numbers"
            else:
                groups.setdefault(_criteria(rubric), {})[name] = runs[name]
        alike += groups.values()
    for group in alike:
        if len(group) == 1:
            ((name, (_, rubric)),) = group.items()
            as_it = any(_criteria(runs[n][1]) == _criteria(rubric) for rest in alike if rest is not group for n in rest)
            reasons[name] = other[name] if as_it and name in other else _told_criteria(rubric)
    return [group for group in alike if len(group) > 1], {name: reasons[name] for name in runs if name in reasons}


def same_questions(runs: OpenRuns) -> tuple[list[list[str]], dict[str, str]]:
    """Names of runs in groups whose ids name the same questions, and why runs of different groups are in such.

    Questions are told apart by what both rubrics require of an item; where texts are not kept, they can't be.
    """
    groups: list[list[str]] = []
    reasons: dict[str, str] = {}
    for name, run in runs.items():
        for group in groups:
            met = ((member, _other_question(run, runs[member])) for member in group)
            other, own = next(((member, own) for member, own in met if own is not None), ("", ""))
            if not other:
                group.append(name)
                break
            for one, another in ((name, other), (other, name)):
                told = f"its item {own} asks another question than the item of that id in {another}"
                reasons.setdefault(one, told)
        else:
            groups.append([name])
    return groups, reasons


def _other_question(run: tuple[Store, Rubric], before: tuple[Store, Rubric]) -> str | None:
    """The first id that names different questions in two runs."""
    (store, rubric), (known, theirs) = run, before
    fields = _common_fields((rubric, theirs))
    for item in store.items():
        other = known.item(item.id)
        if other is None or not (item.fields and other.fields):
            continue
        if question_of(item, rubric, fields) != question_of(other, theirs, fields):
            return item.id
    return None


def _common_fields(rubrics: Iterable[Rubric]) -> list[str]:
    first, *others = (question_fields(rubric) for rubric in rubrics)
    return [name for name in first if all(name in other for other in others)]


def _criteria(rubric: Rubric) -> tuple[Any, ...]:
    return tuple((c.name, c.scale.bottom, c.scale.top) for c in rubric.criteria)


def _told_criteria(rubric: Rubric) -> str:
    return f"no other run has its criteria and scales ({_shown_criteria(rubric)})"


def _shown_criteria(rubric: Rubric) -> str:
    return listed([f"{name} {low} to {high}" for name, low, high in _criteria(rubric)], 5)


def _unlike_rubrics(rubrics: Mapping[str, Rubric]) -> InputError | None:
    """Why scores under some rubrics can't be compared; None where they can."""
    pairs = [name for name, rubric in rubrics.items() if rubric.mode != "score"]
    if pairs:
        of = "" if len(pairs) == len(rubrics) else f"; a run of pairs: {', '.join(pairs)}"
        return InputError(f"{_PAIRS}{of}", hint=_RANK)
    (first, rubric), *others = rubrics.items()
    for name, other in others:
        if _criteria(other) != _criteria(rubric):
            told = f"{_shown_criteria(other)} in {name}, {_shown_criteria(rubric)} in {first}"
            why = f"the runs have other criteria or scales, so their scores are not comparable: {told}"
            return InputError(why, hint="compare runs of one rubric; `evenhand report` sets others side by side")
    return None


def unlike_weights(rubrics: Mapping[str, Rubric]) -> str | None:
    """Why composites can't be compared, with the weights of each run; None where they are the same."""
    weights = {name: weights_of(rubric) for name, rubric in rubrics.items()}
    if all(found == next(iter(weights.values())) for found in weights.values()):
        return None
    told = "; ".join(f"{name}: {told_weights(found) if found else 'none'}" for name, found in weights.items())
    return f"composites are not compared, as their weights differ ({told}); rescore gives runs the same weights"


def _but_composite(measures: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    return {name: bounds for name, bounds in measures.items() if name != COMPOSITE}


def _renamed(of: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Numbers or lists under other keys, added where these are the same."""
    found: dict[str, Any] = {}
    for own, value in of.items():
        key = names.get(own, own)
        found[key] = found[key] + value if key in found else value
    return found


def _require_same_question(asked: dict[str, str], item: Item, question: str, run: str) -> None:
    """Refuse an id that names another question in a former run; where texts are not stored, it can't be told."""
    if item.fields and asked.setdefault(item.id, question) != question:
        hint = "runs are compared on the same questions: give each question one id, the same in both files"
        raise InputError(f"item {item.id} of {run} asks another question than the item of that id before", hint=hint)


def word_of(by: str) -> Literal["higher", "better"]:
    """What the greater score of two is: of systems the better answers', of runs, as of judges, the higher only."""
    return "higher" if by == "run" else "better"
