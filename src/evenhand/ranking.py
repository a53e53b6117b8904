"""How often each system's responses are preferred, over the pairs of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from evenhand.errors import InputError
from evenhand.facts import CHANGED, NOT_VALIDATED, ValueKind, preferred
from evenhand.item import Item, content_id
from evenhand.pairing import COLUMNS, split_pair_id
from evenhand.rubric.model import Rubric
from evenhand.stats.means import ClusteredMean
from evenhand.store import Store
from evenhand.trial import TrialKey
from evenhand.verdict import Verdict

METHOD = "(wins + ties / 2) / (wins + ties + losses); 95 % t interval, prompts as clusters"
_PROMPT, _SYSTEM_A, _SYSTEM_B = COLUMNS


def ranking(
    store: Store, rubric: Rubric, *, value: ValueKind = "stated", systems: tuple[str, str] = (_SYSTEM_A, _SYSTEM_B)
) -> dict[str, Any]:
    """Win rates of the systems that a run compares, as plain JSON data.

    A comparison is one pair and repeat, both orders together. It is won by the side that every order prefers; a tie is
    half a win for both. Pairs whose side changes with the order, and those without a verdict, are counted and are part
    of no rate. A win rate depends on the rivals a system met: compare systems that met the same ones.

    Args:
        store: An open run.
        rubric: The run's rubric, in mode compare.
        value: "stated", or "expected": one side from the probabilities of both orders.
        systems: The columns that name the systems of response A and B.

    Returns:
        systems: best first, each with win_rate (None when nothing was decided), ci, n (wins, ties and losses), wins,
        ties, losses, flips, missing and prompts; the whole run's comparisons, flips and missing; bad_rows, and judge,
        rubric, value and method.

    Raises:
        InputError: the run compares nothing, or its rows don't name systems.
    """
    if rubric.preference is None:
        raise InputError(f"rubric {rubric.name} has no preferred side to rank by", hint="rank takes runs of pairs")
    manifest = store.manifest
    outcomes: dict[str, Counter[str]] = defaultdict(Counter)
    points: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    totals: Counter[str] = Counter()
    for row, verdicts in store.verdicts():
        if row.item is None:
            totals["bad_rows"] += 1
            continue
        prompt, a, b = _systems(row.item, rubric, systems)
        for outcome, point in _comparisons(row.item.id, verdicts, rubric, manifest, value):
            totals[outcome] += 1
            for system, mine in ((a, point), (b, None if point is None else 1 - point)):
                outcomes[system][_seen_by(outcome, mine)] += 1
                points[system][prompt].extend([] if mine is None else [mine])
    if not outcomes:
        raise InputError("the run has no pairs to rank")
    told = [_standing(system, counts, points[system]) for system, counts in outcomes.items()]
    return {
        "systems": sorted(told, key=lambda s: (s["win_rate"] is None, -(s["win_rate"] or 0), s["system"])),
        "comparisons": totals.total() - totals["bad_rows"],
        "flips": totals["flips"],
        "missing": totals["missing"],
        "bad_rows": totals["bad_rows"],
        "judge": {**manifest["judge"], "status": NOT_VALIDATED},
        "rubric": {"name": rubric.name, "version": rubric.version, "digest": rubric.digest},
        "value": value,
        "method": METHOD,
    }


def _systems(item: Item, rubric: Rubric, columns: tuple[str, str]) -> tuple[str, str, str]:
    """The prompt that a pair is about, and the systems of response A and B."""
    a, b = (item.extra.get(column, item.fields.get(column)) for column in columns)
    if not item.fields and (parts := split_pair_id(item.id)) is not None:
        return parts  # its columns were not stored
    if a is None or b is None:
        hint = "--systems A,B names other columns; `evenhand judge --pairs` makes pairs that have them"
        lacking = f"no {' or '.join(columns)}"
        raise InputError(f"item {item.id} does not say which systems it compares: {lacking}", hint=hint)
    prompt = item.extra.get(_PROMPT)
    if prompt is None:  # pairs that were not made here
        prompt = content_id({n: v for n, v in item.fields.items() if n not in rubric.item.responses})
    return str(prompt), str(a), str(b)


def _comparisons(
    item_id: str, verdicts: Mapping[TrialKey, Verdict], rubric: Rubric, manifest: Mapping[str, Any], value: ValueKind
) -> list[tuple[str, float | None]]:
    """What each repeat comes to, and the points of A: 1, 0.5 or 0; None where nothing is decided."""
    found: list[tuple[str, float | None]] = []
    for repeat in range(manifest["repeats"]):
        unit = [verdicts.get(TrialKey(item_id, order, repeat)) for order in manifest["orders"]]
        side = preferred(unit, rubric, value)
        if side is None or side == CHANGED:
            found.append(("missing" if side is None else "flips", None))
        else:
            found.append(("decided", {"A": 1.0, "B": 0.0}.get(side, 0.5)))
    return found


def _seen_by(outcome: str, points: float | None) -> str:
    """An outcome as one of the two systems counts it."""
    return outcome if points is None else "ties" if points == 0.5 else "wins" if points else "losses"


def _standing(system: str, counts: Counter[str], points: Mapping[str, list[float]]) -> dict[str, Any]:
    mean = ClusteredMean(low=0.0, high=1.0, unit="prompt")
    for values in points.values():
        mean.add(values)
    estimate = mean.estimate()
    return {
        "system": system,
        "win_rate": estimate.value,
        "ci": list(estimate.ci) if estimate.ci else None,
        "note": estimate.note,
        "n": estimate.n,
        **{name: counts[name] for name in ("wins", "ties", "losses", "flips", "missing")},
        "prompts": estimate.clusters,
    }
