"""More than two responses to a prompt, two by two: which pairs, under which ids."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand._canon import digest
from evenhand.errors import InputError
from evenhand.grouping import Group, read_groups
from evenhand.item import MAX_ROW_BYTES, Item
from evenhand.rubric.model import ItemSpec
from evenhand.sources import BadRow, require_counts, sampled

#: Columns that each pair gets beside the input's: the prompt's id, and whose responses are A and B.
COLUMNS = ("prompt_id", "system_a", "system_b")
_SEPARATOR = "~"
_DIGITS = 18


def budget_of(pairs: str) -> int | None:
    """The number of pairs that "all" (None) or "budget:N" stands for.

    Raises:
        InputError: neither of the two, or N is no whole number above 0.
    """
    kind, _, number = pairs.partition(":")
    if pairs == "all":
        return None
    if kind != "budget" or not (number.isascii() and number.isdecimal()) or len(number) > _DIGITS or int(number) < 1:
        raise InputError(f"pairs must be all or budget:N, N a whole number above 0, not {pairs!r:.60}")
    return int(number)


def pair_id(prompt: str, a: str, b: str) -> str:
    """The id of a pair: the prompt's id and the systems whose responses are A and B."""
    return _SEPARATOR.join([prompt, *(name.replace("%", "%25").replace(_SEPARATOR, "%7E") for name in (a, b))])


def split_pair_id(item_id: str) -> tuple[str, str, str] | None:
    """Prompt id, system of A, system of B: the inverse of `pair_id`; None for an id of another form."""
    prompt, *names = item_id.rsplit(_SEPARATOR, 2)
    if len(names) < 2:
        return None
    a, b = (name.replace("%7E", _SEPARATOR).replace("%25", "%") for name in names)
    return prompt, a, b


def read_pairs(
    source: Any,
    spec: ItemSpec,
    pairs: str,
    *,
    mapping: Mapping[str, str] | None = None,
    format: str | None = None,
    max_bytes: int = MAX_ROW_BYTES,
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    open_images: bool = False,
) -> Iterator[Item | BadRow]:
    """Read prompts with two or more responses each, as pairs.

    The responses to a prompt stand

    - in a list ``responses``: texts, or objects with ``system`` and ``response``; or an object system -> response;
    - or in columns response_a, response_b, response_c ..., whose systems may be named in system_a, system_b ...;
    - or in a row each, with ``response`` and ``system``; rows of one prompt share an id or, where there is none, all
      of the rubric's other fields.

    A column prompt_id is taken for the id. ``mapping`` may name other columns for ``id``, ``responses`` (several,
    joined by "+", hold one response each), ``response`` and ``system``.

    An item is a pair. Its id tells prompt and systems and depends on nothing else in the input; so does which of the
    two systems is A, evenly. `COLUMNS` are among its extra columns, which a judge never sees.

    Args:
        source, mapping, format, max_bytes, open_images: As for `evenhand.sources.read_items`.
        spec: What the rubric reads; it has two responses.
        pairs: "all", or "budget:N": N pairs in all, chosen by `within_budget`. With a budget the input is held in
            memory, and so is one with a row for each response.
        limit, sample, seed: As for `evenhand.sources.read_items`, but of prompts; the seed also draws the pairs of a
            budget.

    Raises:
        InputError: ``pairs`` is not written like that, or the rubric compares nothing; and what
            `evenhand.grouping.read_groups` raises.
    """
    budget = budget_of(pairs)
    if len(spec.responses) != 2:
        raise InputError("pairs go with a rubric in mode compare", hint="choose one with --rubric, as in hhh")
    require_counts(limit=limit, sample=sample)
    found = read_groups(source, spec, mapping=mapping, format=format, max_bytes=max_bytes, open_images=open_images)
    groups: Iterator[Group | BadRow] = itertools.islice(found, limit)
    return _items(groups if sample is None else sampled(groups, sample, seed), spec, budget, seed)


def _items(groups: Iterable[Group | BadRow], spec: ItemSpec, budget: int | None, seed: int) -> Iterator[Item | BadRow]:
    chosen: Iterator[Iterable[tuple[str, str]]] | None = None
    if budget is not None:
        groups = list(groups)
        systems = [tuple(group.responses) for group in groups if isinstance(group, Group)]
        chosen = iter(within_budget(systems, budget, seed))
    row = itertools.count()
    for group in groups:
        if isinstance(group, BadRow):
            yield replace(group, row=next(row))
            continue
        for pair in next(chosen) if chosen is not None else itertools.combinations(group.responses, 2):
            yield _item(group, spec, next(row), *sorted(pair))


def _item(group: Group, spec: ItemSpec, row: int, a: str, b: str) -> Item:
    if int(digest([group.id, a, b]), 16) % 2:  # or the system first in the alphabet would always be A
        a, b = b, a
    answers = dict(zip(spec.responses, (group.responses[a], group.responses[b]), strict=True))
    extra = {**group.extra, **dict(zip(COLUMNS, (group.id, a, b), strict=True))}
    return Item(pair_id(group.id, a, b), row, {**group.fields, **answers}, extra, group.place)


def within_budget(prompts: Sequence[Sequence[str]], budget: int, seed: int) -> list[list[tuple[str, str]]]:
    """Pairs of systems for each prompt, at most ``budget`` in all.

    Prompts take turns, in an order drawn by the seed, so that they get as many pairs as each other, while they have
    any left. Each turn takes the pair that keeps a prompt's responses and, next, the systems over all prompts, equally
    often compared; while the responses of a prompt are not yet linked to each other by comparisons, a pair that links
    more of them. So n responses are linked by the first n - 1 pairs. A greater budget has all pairs of a smaller one.

    Args:
        prompts: The systems with a response, for each prompt; two or more, all different.
        budget: Number of pairs; there may be fewer.
        seed: Draws what is otherwise equal.
    """
    draw = random.Random(seed)
    graphs = [_Graph(systems) for systems in prompts]
    used: Counter[str] = Counter()
    met: Counter[frozenset[str]] = Counter()
    turns = list(range(len(graphs)))
    draw.shuffle(turns)
    while turns and budget > 0:
        turns = turns[:budget]
        for n in turns:
            pair = graphs[n].add(used, met, draw)
            used.update(pair)
            met[frozenset(pair)] += 1
        budget -= len(turns)
        turns = [n for n in turns if not graphs[n].complete]
    return [graph.pairs for graph in graphs]


class _Graph:
    """The comparisons of one prompt's responses so far."""

    def __init__(self, systems: Sequence[str]) -> None:
        self.pairs: list[tuple[str, str]] = []
        self._rivals: dict[str, set[str]] = {system: set() for system in systems}
        self._part = {system: n for n, system in enumerate(systems)}  # linked responses are of one part

    @property
    def complete(self) -> bool:
        """Whether every response was compared with every other."""
        return len(self.pairs) == len(self._rivals) * (len(self._rivals) - 1) // 2

    def add(self, used: Counter[str], met: Counter[frozenset[str]], draw: random.Random) -> tuple[str, str]:
        """Take one more pair: the response compared least so far, and the one that it suits best."""
        rivals = self._rivals
        one = min(
            (system for system in rivals if len(rivals[system]) < len(rivals) - 1),
            key=lambda system: (len(rivals[system]), used[system], draw.random()),
        )
        linked = len(set(self._part.values())) == 1
        other = min(
            (s for s in rivals if s != one and s not in rivals[one] and (linked or self._part[s] != self._part[one])),
            key=lambda system: (len(rivals[system]), met[frozenset((one, system))], used[system], draw.random()),
        )
        rivals[one].add(other)
        rivals[other].add(one)
        gone, kept = self._part[other], self._part[one]
        self._part = {system: kept if part == gone else part for system, part in self._part.items()}
        self.pairs.append((one, other))
        return one, other
