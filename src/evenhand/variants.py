"""A study: one set of items judged under several variants of a rubric, and what that tells of them.

plan_study -> check_study -> run_study -> study_figures
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand import facts
from evenhand.agreeing import COMPOSITE, judged, read_labels
from evenhand.api import Run, make_spec, waited
from evenhand.errors import InputError
from evenhand.judging import hidden_images
from evenhand.manifest import open_rubric
from evenhand.rows import STDIN
from evenhand.rubric.model import Rubric
from evenhand.run import Progress, count, make_asker, open_run, pending, run, take_in
from evenhand.run_spec import RunSpec
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.studying import People, Variant, measures, on_scale, study_facts

#: What a study can't have of a run's options.
_NOT_OURS = ("fresh", "pairs", "orders", "ask")
_UNSAFE = re.compile(r"[^\w.=,+-]+")


@dataclass(frozen=True, slots=True)
class Study:
    """A planned study.

    Attributes:
        specs: Variant, as in ``scale=0-3,detail=bare`` -> its run.
        rubric: The rubric with what is varied at its default.
        people: What people said of the items; None without labels.
    """

    specs: Mapping[str, RunSpec]
    rubric: Rubric
    people: People | None


@dataclass(frozen=True, slots=True)
class Course:
    """What a study has before it: trials in all, those stored already, and calls, without re-asks."""

    trials: int
    stored: int
    calls: int


def plan_study(
    items: Any,
    rubric: str | Path = "doc-qa",
    judge: str = "local",
    *,
    vary: Mapping[str, Sequence[Any]],
    out: str | Path,
    labels: Any = None,
    label_scale: tuple[float, float] | None = None,
    label_map: Mapping[str, str] | None = None,
    **options: Any,
) -> Study:
    """The runs of a study, one for each combination of the values; the arguments are those of `study`.

    Raises:
        InputError: an option or value that the rubric doesn't have, fewer than two variants, rows that can be read
            only once, labels that can't be read.
    """
    fixed = options.pop("variant", None) or {}
    for name in _NOT_OURS:
        if options.pop(name, None):
            raise InputError(f"a study takes no {name}")
    if not isinstance(rubric, str | Path):
        raise InputError("a study needs a rubric's name or file; a Rubric has its options already")
    if isinstance(items, str) and items == STDIN:
        raise InputError("a study reads its rows once for each variant: give a file, not standard input")
    if isinstance(items, Iterator):
        items = list(items)
    specs: dict[str, RunSpec] = {}
    for chosen in _combinations(vary, fixed):
        name = ",".join(f"{option}={_written(value)}" for option, value in chosen.items())
        folder = Path(os.fspath(out)) / _UNSAFE.sub("_", name)
        specs[name] = make_spec(items, rubric, judge, variant={**fixed, **chosen}, out=folder, **options)
        measures(specs[name].rubric)
    if len({spec.folder for spec in specs.values()}) < len(specs):
        raise InputError("two variants would have the same folder")
    base = open_rubric(rubric, variant=fixed, weights=options.get("weights"))
    return Study(specs, base, _people(base, labels, label_scale, label_map))


def _combinations(vary: Mapping[str, Sequence[Any]], fixed: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each combination of the values, the last option changing fastest."""
    if not isinstance(vary, Mapping) or any(isinstance(values, str) for values in vary.values()):
        raise InputError("vary maps each option to the values that it is to have")
    for name, values in vary.items():
        if name in fixed:
            raise InputError(f"option {name!r} is both varied and fixed")
        if len({_written(value) for value in values}) < len(values):
            raise InputError(f"option {name!r} is to have the same value twice")
    if math.prod(len(values) for values in vary.values()) < 2:
        raise InputError("a study needs two variants or more", hint="as in --vary scale=0-10,0-3")
    for values in itertools.product(*vary.values()):
        yield dict(zip(vary, values, strict=True))


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _people(
    rubric: Rubric, labels: Any, scale: tuple[float, float] | None, mapping: Mapping[str, str] | None
) -> People | None:
    if labels is None:
        if scale is not None or mapping:
            raise InputError("a scale and columns of labels go with labels, and there are none")
        return None
    if scale is not None:
        low, high = scale
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise InputError(f"the scale of labels goes from a number to a greater one, not from {low} to {high}")
        rubric = on_scale(rubric, (float(low), float(high)))
    said = read_labels(str(labels) if isinstance(labels, Path) else labels, rubric, mapping=mapping)
    rated = {name for raters in said.of.values() for values in raters.values() for name in values}
    if not rated & measures(rubric).keys():
        raise InputError(f"the labels have no values of {', '.join(n for n in measures(rubric) if n != COMPOSITE)}")
    return People(said, measures(rubric))


async def check_study(study: Study) -> Course:
    """Check all that can be checked without a call, of every variant; runs that are new are made.

    Raises:
        InputError: bad rows or options; runs that were made for it are removed again.
        RunError: a folder holds another run, is in use, or its rows changed.
    """
    first = next(iter(study.specs.values()))
    backend = first.judge.open(first.backend)
    trials = stored = calls = 0
    try:
        with contextlib.ExitStack() as stack:
            for spec in study.specs.values():
                store = stack.enter_context(open_run(spec, backend))
                take_in(spec, store)
                _require_labelled(study.people, store)
                hidden_images(spec.rubric, spec.judge, backend, store.items(read_now=True))
                asker = make_asker(spec, store, backend)
                calls += sum(bool(asker.question(trial).fields) for trial in pending(spec, store))
                total, known = count(spec, store)
                trials, stored = trials + total, stored + known
    finally:
        await backend.aclose()
    return Course(trials, stored, calls)


def _require_labelled(people: People | None, store: Store) -> None:
    if people is not None and not any(item.id in people.labels.of for item in store.items(read_now=True)):
        raise InputError("no label is of an item of the data", hint="labels are joined by id; map id to its column")


async def run_study(
    study: Study, *, progress: Progress | None = None, stop: Stop | None = None, signals: bool = False
) -> bool:
    """Judge all variants, one after the other; whether it was stopped before all was asked."""
    stop = stop or Stop()
    for spec in study.specs.values():
        outcome = await run(spec, progress=progress, stop=stop, signals=signals)
        if outcome.interrupted:
            return True
    return False


def study_figures(study: Study, *, value: facts.ValueKind = "stated") -> dict[str, Any]:
    """The figures of a study whose runs are there; see `evenhand.studying.study_facts`."""
    found = {}
    for name, spec in study.specs.items():
        made = Run(spec.folder)
        summary = made.summary(value=value)
        with Store.open(spec.folder) as store:
            found[name] = Variant(made.rubric, judged(store, made.rubric, value), summary)
    told = study_facts(found, study.people)
    folders = {name: str(spec.folder) for name, spec in study.specs.items()}
    return {**told, "value": value, "folders": folders}


def study(
    items: Any,
    rubric: str | Path = "doc-qa",
    judge: str = "local",
    *,
    vary: Mapping[str, Sequence[Any]],
    out: str | Path,
    labels: Any = None,
    label_scale: tuple[float, float] | None = None,
    label_map: Mapping[str, str] | None = None,
    value: facts.ValueKind = "stated",
    progress: Progress | None = None,
    stop: Stop | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Which scale to use, or how much detail: judge the same items under variants of a rubric, and set them side by
    side.

    Everything of every variant is checked before the first call. Each variant is a run of its own under ``out``, and
    the same call again goes on where an interrupted one ended.

    Args:
        items, rubric, judge, progress, stop: As for `evenhand.judge`; the rubric is a name or a file.
        vary: Option of the rubric -> the values that it is to have; all combinations are judged.
        out: Folder of the runs.
        labels: What people said of the items, as for `Run.agreement`.
        label_scale: Ends of the scale that people used; by default the rubric's own.
        label_map: Field name, "id" or "rater" -> column of the labels.
        value: As for `Run.summary`.
        **options: As for `evenhand.judge`, apart from fresh, pairs, orders and ask.

    Returns:
        See `evenhand.studying.study_facts`; also ``value``, ``folders`` (variant -> run folder) and ``interrupted``.

    Raises:
        InputError: options, rows or labels that can't be used; nothing was sent.
        BackendError: the judge can't be reached or refuses us.
        RunError: a folder under ``out`` holds another run or is in use.
    """
    planned = plan_study(
        items, rubric, judge, vary=vary, out=out, labels=labels, label_scale=label_scale, label_map=label_map, **options
    )
    stop = stop or Stop()

    async def all_of_it(signals: bool) -> bool:
        await check_study(planned)
        return await run_study(planned, progress=progress, stop=stop, signals=signals)

    interrupted = waited(all_of_it, stop)
    if interrupted:
        return {"interrupted": True, "folders": {name: str(spec.folder) for name, spec in planned.specs.items()}}
    return {**study_figures(planned, value=value), "interrupted": False}


def estimate_study(study: Study) -> dict[str, Any]:
    """The number of calls and a rough number of prompt tokens, by variant and in all; sends and keeps nothing."""
    from evenhand.estimate import estimate

    counted = ("trials", "calls", "calls_at_most", "prompt_tokens")
    told = {name: estimate(spec) for name, spec in study.specs.items()}
    variants = {name: {key: one[key] for key in counted} for name, one in told.items()}
    return {**{key: sum(one[key] for one in variants.values()) for key in counted}, "variants": variants}
