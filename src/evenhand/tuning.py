"""Chat rows to train a judge on: the prompt it would get, and the verdict as it should be written.

of_run / of_labels -> Example -> split -> training rows and held-out rows
"""

from __future__ import annotations

import hashlib
import json
import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, ItemError
from evenhand.export import find_writer, refuse_overwriting
from evenhand.item import Item
from evenhand.prompt import mark_for, render
from evenhand.ratings import RatingReader
from evenhand.rubric.model import Form, OutputField, Rubric
from evenhand.rubric.schema import asked_fields
from evenhand.rules import compile_rubric
from evenhand.settle import question
from evenhand.sources import BadRow, read_items
from evenhand.store import Store
from evenhand.tasks import Clusters
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Status, Verdict


@dataclass(frozen=True, slots=True)
class Example:
    """One item with the verdict to be learned; ``left_out`` says why it is none, "" where it is."""

    item: Item
    values: Mapping[str, Any]
    fields: tuple[OutputField, ...]
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was written.

    Attributes:
        rows, groups: Training rows and the groups they are of.
        held_out_rows, held_out_groups: The same of the held-out file.
        left_out: Reason -> number of items that are in neither.
    """

    rows: int
    groups: int
    held_out_rows: int
    held_out_groups: int
    left_out: Mapping[str, int]


def of_run(store: Store, rubric: Rubric) -> Iterator[Example]:
    """The verdicts of a run's first repeat, as something to learn from."""
    manifest, rules = store.manifest, compile_rubric(rubric)
    if manifest["short"]:
        raise InputError("the run asked for no reasons", hint="judge without --no-reason: they are what is learned")
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        if not row.item.fields:
            raise InputError("the run keeps no texts (--no-store-texts), so there is nothing to learn from")
        key = TrialKey(row.item.id, "", 0)
        asked = question(rubric, rules, Trial(key, row.item), short=False)
        verdict = verdicts.get(key)
        values = {} if verdict is None else {f.name: verdict.value(f.name) for f in asked.fields}
        yield Example(row.item, values, asked.fields, _unfit(verdict, values, asked.fields))


def _unfit(verdict: Verdict | None, values: Mapping[str, Any], fields: tuple[OutputField, ...]) -> str:
    if verdict is None:
        return "not asked"
    if verdict.status is not Status.SCORED:
        return verdict.status.value
    if not fields:
        return "set in code"
    if not verdict.consistent:
        return "inconsistent"
    return _lacking(values, fields)


def _lacking(values: Mapping[str, Any], fields: tuple[OutputField, ...]) -> str:
    absent = [f.name for f in fields if not f.nullable and values.get(f.name) is None]
    return f"no {absent[0]}" if absent else ""


def of_labels(source: Any, rubric: Rubric, *, mapping: Mapping[str, str] | None = None) -> Iterator[Example]:
    """Rows that hold an item and its verdict, as people wrote them.

    Raises:
        ItemError: rows that are no items of the rubric.
    """
    fields = asked_fields(rubric)
    reader = RatingReader(rubric, [f.name for f in fields], partial=True)
    for item in read_items(source, rubric.item, mapping=mapping, open_images=rubric.images_shown):
        if isinstance(item, BadRow):
            raise ItemError(list(item.problems), file=source if isinstance(source, str) else None)
        said = reader.read(item.extra)
        wrong = f"illegal {next(iter(said.wrong)).partition(':')[2]}" if said.wrong else ""
        yield Example(item, said.values, fields, wrong or _lacking(said.values, fields))


def answer_text(rubric: Rubric, fields: tuple[OutputField, ...], values: Mapping[str, Any]) -> str:
    """A verdict as the judge should write it: by the rubric's answer template, else as plain JSON.

    In the template ``{score}`` is the field that answers the rubric's one criterion, ``{reason}`` its one text, and
    other names are fields; each stands for its value as JSON, put in once, and doubled braces for single ones. A
    template that leaves out a field that is asked is not used.

    Raises:
        InputError: the template names no field.
    """
    names = {f.name: f.name for f in fields}
    for alias, found in (
        ("score", [f for f in fields if f.criterion]),
        ("reason", [f for f in fields if f.kind == "text"]),
    ):
        if len(found) == 1:
            names[alias] = found[0].name
    parts = list(string.Formatter().parse(rubric.output.answer))
    holes = [hole for _, hole, _, _ in parts if hole is not None]
    unknown = [hole for hole in holes if hole not in names]
    if unknown and not rubric.chosen:
        raise InputError(f"the answer template of {rubric.name} names {unknown[0]!r}, which is no field")
    if not holes or unknown or {names[hole] for hole in holes} != {f.name for f in fields}:
        return json.dumps({f.name: values.get(f.name) for f in fields}, ensure_ascii=False)
    return "".join(
        text + ("" if hole is None else json.dumps(values.get(names[hole]), ensure_ascii=False))
        for text, hole, _, _ in parts
    )


def write_training_rows(
    examples: Iterator[Example],
    rubric: Rubric,
    target: str,
    *,
    share: float = 0.1,
    seed: int = 0,
    keys: Sequence[bytes] = (b"",),
    sources: Iterable[str | Path] = (),
) -> Report:
    """Write chat rows to a file, and those of the held-out groups to a file beside it.

    A group is in one file only, drawn by its name and the seed; so no question that is tested was trained on. It is
    what the rubric calls a paraphrase group; where it knows none, or the item has no id of its own, all items that ask
    the same question.

    Args:
        examples: What to learn from.
        rubric: A rubric of scores.
        target: A .jsonl file; the held-out rows go to NAME.held-out.jsonl.
        share: Share of groups held out, in [0, 1).
        seed: Seed of the draw.
        keys: Keys of the marks between which judged text stands; an item's is at `Item.key`.
        sources: Files that the examples come from, which must not be overwritten.

    Raises:
        InputError: a rubric of pairs, another kind of file, or nothing to learn from.
    """
    if rubric.mode != "score":
        raise InputError("training rows are made of scores; pairs have no single answer to learn")
    path = Path(target)
    if path.suffix != ".jsonl":
        raise InputError(f"{target}: training rows are JSON lines", hint="end the name in .jsonl")
    find_writer(path)
    tally, clusters = _Tally(), Clusters(rubric)
    targets = {False: path, True: held_out_file(path)}
    for file in targets.values():
        refuse_overwriting(file, sources)
    beside = {held_out: file.with_name(f".{file.name}.part") for held_out, file in targets.items()}
    try:
        with beside[False].open("w", encoding="utf-8") as training, beside[True].open("w", encoding="utf-8") as testing:
            for example in examples:
                if example.left_out:
                    tally.left_out[example.left_out] += 1
                    continue
                held_out = tally.take(clusters.of(example.item), share, seed)
                row = json.dumps(_chat_row(example, rubric, keys), ensure_ascii=False)
                (testing if held_out else training).write(row + "\n")
        if not tally.rows[False]:
            raise InputError(f"no training rows; {tally.rows[True]} held out", hint=told_left_out(tally.left_out))
        for held_out, file in targets.items():
            beside[held_out].replace(file)
    except OSError as error:
        raise InputError(f"can't write {target}: {error.strerror or error}") from error
    finally:
        for file in beside.values():
            file.unlink(missing_ok=True)
    rows, groups = tally.rows, tally.groups
    return Report(rows[False], len(groups[False]), rows[True], len(groups[True]), dict(tally.left_out))


class _Tally:
    """Counts of what goes where."""

    def __init__(self) -> None:
        self.rows: Counter[bool] = Counter()
        self.groups: dict[bool, set[str]] = {False: set(), True: set()}
        self.left_out: Counter[str] = Counter()

    def take(self, group: str, share: float, seed: int) -> bool:
        """Count a row of a group; whether the group is held out."""
        held_out = _drawn(group, seed) < share
        self.groups[held_out].add(group)
        self.rows[held_out] += 1
        return held_out


def told_left_out(left_out: Mapping[str, int]) -> str | None:
    """What was left out and why, in one line; None where nothing was."""
    told = ", ".join(f"{reason} {n}" for reason, n in sorted(left_out.items()))
    return f"left out: {told}" if told else None


def held_out_file(path: Path) -> Path:
    """Where the held-out rows go."""
    return path.with_name(f"{path.stem}.held-out{path.suffix}")


def _drawn(group: str, seed: int) -> float:
    """A number in [0, 1) that depends on a group and a seed only."""
    return int.from_bytes(hashlib.sha256(f"{seed}:{group}".encode()).digest()[:7]) / (1 << 56)


def _chat_row(example: Example, rubric: Rubric, keys: Sequence[bytes]) -> dict[str, Any]:
    form: Form = "json" if "json" in rubric.output.forms else rubric.output.forms[-1]
    mark = mark_for(keys[example.item.key], example.item.id, rubric.name)
    prompt = render(rubric, example.item.fields, fields=example.fields, form=form, mark=mark)
    answer = {"role": "assistant", "content": answer_text(rubric, example.fields, example.values)}
    return {"id": example.item.id, "messages": [*prompt.messages, answer]}
