"""Systems ranked by whose responses are preferred, over the pairs of a run or a table of comparisons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from evenhand.controls import control_names, difference, unavailable
from evenhand.errors import InputError, ItemError, Problem
from evenhand.facts import NOT_VALIDATED, ValueKind
from evenhand.item import Item
from evenhand.item_values import Mistake, read_id
from evenhand.keywords import number, texts
from evenhand.pairing import COLUMNS, split_pair_id
from evenhand.rubric.model import Rubric
from evenhand.sides import CHANGED, preferred
from evenhand.slices import label
from evenhand.sources import bad_row, open_source
from evenhand.stats.means import ClusteredMean
from evenhand.store import Store
from evenhand.tasks import Clusters
from evenhand.trial import TrialKey
from evenhand.verdict import Verdict

if TYPE_CHECKING:
    from evenhand.stats.bradley_terry import Ranking, Standing

METHOD = "(wins + ties / 2) / (wins + ties + losses); 95 % t interval, prompts as clusters"
_PROMPT, _SYSTEM_A, _SYSTEM_B = COLUMNS
_MODEL_KEYS = (
    "strength", "strength_ci", "elo", "elo_ci", "expected_win_rate", "expected_win_rate_ci", "rank", "rank_ci"
)  # fmt: skip
_TOLD = 100  # problems of a table that are listed
_POINTS = {"a": 1.0, "b": 0.0, "tie": 0.5}
_RESPONSES = ("response_a", "response_b")
_NO_TEXTS = "the run keeps no texts (--no-store-texts), so nothing can be counted in them"


class Model(TypedDict, total=False):
    """How strengths are estimated.

    Attributes:
        ties: "davidson", or "half": a tie is half a win in the strengths too.
        control: What strengths are to be told apart from, as names or one text joined by commas: "length",
            "markdown" (headers, lists, bold), or NAME of columns NAME_a and NAME_b; see `evenhand.controls`.
        interval: "sandwich", or "bootstrap": prompts drawn with replacement.
        elo: K of sequential Elo ratings to show beside the strengths; None for none.
        seed: Of the bootstrap, the rank intervals and the orders of Elo ratings.
    """

    ties: Literal["davidson", "half"]
    control: str | Sequence[str]
    interval: Literal["sandwich", "bootstrap"]
    elo: float | None
    seed: int


def ranking(
    store: Store,
    rubric: Rubric,
    *,
    value: ValueKind = "stated",
    systems: tuple[str, str] = (_SYSTEM_A, _SYSTEM_B),
    **model: Unpack[Model],
) -> dict[str, Any]:
    """Strengths, ranks and win rates of the systems that a run compares, as plain JSON data.

    A comparison is one pair and repeat, both orders together. It is won by the side that every order prefers; a tie is
    half a win for both. Pairs whose side changes with the order, and those without a verdict, are counted and are part
    of no figure. A win rate depends on the rivals a system met; a strength (`evenhand.stats.bradley_terry`) allows for
    them. Where the run has one order only, so it does for the place of a response.

    Args:
        store: An open run.
        rubric: The run's rubric, in mode compare.
        value: "stated", or "expected": one side from the probabilities of both orders.
        systems: The columns that name the systems of response A and B.
        **model: See `Model`.

    Returns:
        systems: best first, each with win_rate (None when nothing was decided), ci, n (wins, ties and losses), wins,
        ties, losses, flips, missing and prompts; and of strength, elo, expected_win_rate (against the average rival)
        and rank the value and NAME_ci, all None where strength_note tells why. The whole run's comparisons, flips and
        missing; as estimates tie (Davidson's nu), order (log-odds of the first place; None where a comparison joins
        both orders), control (one for each, with its name: log-odds of a difference of size ``unit``, the root mean
        square of the differences; strengths are those without a difference) and separability (share of pairs of
        systems whose strengths' intervals don't overlap); interval, strength_method, warnings; bad_rows, and judge,
        rubric, value and method. With elo, sequential_elo (k, start, orders), and of each system sequential_elo and
        sequential_elo_spread, the standard deviation over the orders.

    Raises:
        InputError: the run compares nothing, its rows don't name systems or lack what is to be controlled for, or a
            control can't be told from the strengths.
    """
    if rubric.preference is None:
        raise InputError(f"rubric {rubric.name} has no preferred side to rank by", hint="rank takes runs of pairs")
    systems, manifest = _columns(systems), store.manifest
    names = control_names(model.get("control", ()))
    tally, bad_rows, clusters = _Tally(names), 0, Clusters(rubric, manifest)
    for row, verdicts in store.verdicts():
        if row.item is None:
            bad_rows += 1
            continue
        a, b = _systems(row.item, systems)
        gaps = _differences(row.item, rubric, names)
        for outcome, point in _comparisons(row.item.id, verdicts, rubric, manifest, value):
            tally.add(clusters.of(row.item), a, b, outcome, point, gaps, swapped=manifest["orders"] == ["ba"])
    if not tally.outcomes:
        raise InputError("the run has no pairs to rank")
    return {
        **tally.facts(model, order=len(manifest["orders"]) == 1, unit=clusters.unit),
        "bad_rows": bad_rows,
        "judge": {**manifest["judge"], "status": NOT_VALIDATED},
        "rubric": {"name": rubric.name, "version": rubric.version, "digest": rubric.digest},
        "value": value,
        "method": METHOD,
    }


def table_ranking(
    source: Any,
    *,
    systems: tuple[str, str] = (_SYSTEM_A, _SYSTEM_B),
    format: str | None = None,
    **model: Unpack[Model],
) -> dict[str, Any]:
    """The ranking of a table with a row for each comparison, made by people or other tools.

    Columns: those that name the systems; ``preference``: A, B or tie, blank where there is none; ``prompt`` or
    ``prompt_id``, if any: rows of one prompt are one cluster; ``order``, if any: ab or ba, which response was read
    first. With orders each row stays a comparison of its own, and the strengths allow for the first place. To control
    for length or markdown: ``response_a`` and ``response_b``, or counts in columns such as ``length_a`` and
    ``length_b``.

    Args:
        source: As for `evenhand.sources.open_source`.
        systems, model: As for `ranking`.
        format: Input format, None to tell from the file name.

    Returns:
        As `ranking`, with ``source`` (the file's name or None) in place of judge, rubric and value.

    Raises:
        ItemError: rows without a system or with another preference or order, or without what is controlled for.
        InputError: no such source, no rows, or a control that can't be told from the strengths.
    """
    systems, opened = _columns(systems), open_source(source, format=format)
    names = control_names(model.get("control", ()))
    tally, problems, ordered, clustered, rows = _Tally(names), list[Problem](), set[bool](), False, 0
    for rows, raw in enumerate(opened.rows, 1):
        lacking = [] if raw.problem is not None else _lacking(raw.values, systems, names)
        found = lacking or ([raw.problem] if raw.problem is not None else _wrong(raw.values, systems))
        gaps = [] if found else _table_differences(raw.values, names, found)
        if found:
            problems += bad_row(rows - 1, raw, found).problems
            if (lacking and rows == 1) or len(problems) >= _TOLD:  # the other rows will lack the same
                break
            continue
        a, b = (str(read_id(raw.values[column])) for column in systems)
        prompt = next((raw.values[name] for name in ("prompt", _PROMPT) if raw.values.get(name) is not None), None)
        clustered |= prompt is not None
        order = _word(raw.values.get("order"))
        ordered.add(bool(order))
        point = _POINTS.get(_word(raw.values["preference"]))
        cluster = f"row {rows}" if prompt is None else f"prompt {prompt}"
        tally.add(cluster, a, b, "missing" if point is None else "decided", point, gaps, swapped=order == "ba")
    if ordered == {True, False}:
        problems.append(Problem(None, "", "some rows have an order and some don't", "give it in every row or in none"))
    if problems:
        raise ItemError(problems, file=opened.name)
    if not rows:
        raise InputError(f"{opened.name or 'the table'}: no rows")
    told = tally.facts(model, order=ordered == {True}, unit="prompt" if clustered else "comparison")
    return {**told, "bad_rows": 0, "source": opened.name, "method": METHOD}


def _columns(systems: Any) -> tuple[str, str]:
    """The columns of the systems of response A and B."""
    found = texts("systems", systems)
    if len(set(found)) != 2 or len(found) != 2:
        raise InputError(f"systems are named by two columns, not by {found!r:.60}")
    return found[0], found[1]


def _lacking(row: Mapping[str, Any], systems: tuple[str, str], controls: Sequence[str]) -> list[Problem]:
    """Columns that a table has to have and doesn't."""
    found = [f"no {name}" for name in (*systems, "preference") if name not in row]
    found += unavailable(controls, row, texts=all(name in row for name in _RESPONSES))
    return [Problem(None, "", message, f"columns: {', '.join(map(str, row))}"[:500]) for message in found]


def _wrong(row: Mapping[str, Any], systems: tuple[str, str]) -> list[Problem]:
    """What keeps a row from being a comparison."""
    found = [Problem(None, "", f"{name} {why}", "name the system") for name in systems if (why := _unnamed(row[name]))]
    for name, legal in (("preference", ("a", "b", "tie")), ("order", ("ab", "ba"))):
        if (word := _word(row.get(name))) and word not in legal:
            words = "ab or ba" if name == "order" else "A, B or tie"
            found.append(Problem(None, "", f"{name} is {row[name]!r:.60}", f"make it {words}, or leave it blank"))
    return found


def _unnamed(value: Any) -> str:
    """Why a value names no system; "" where it does."""
    try:
        return "is blank" if read_id(value) is None else ""
    except Mistake as mistake:
        return str(mistake)


def _table_differences(row: Mapping[str, Any], names: Sequence[str], problems: list[Problem]) -> list[float]:
    """Response A's differences from B; what keeps a row from having them goes to the problems."""
    gaps = []
    for name in names if _word(row["preference"]) else ():  # rows without a preference are part of no strength
        try:
            gaps.append(difference(name, row, [row.get(name) for name in _RESPONSES]))
        except ValueError as error:
            problems.append(Problem(None, "", str(error), f"mend it, or leave {name} out of --control"))
    return gaps


def _differences(item: Item, rubric: Rubric, names: Sequence[str]) -> list[float]:
    """The same of a run's pair."""
    row = {**item.extra, **item.fields}
    if lacking := unavailable(names, row, texts=bool(item.fields)):
        raise InputError(f"item {item.id}: {lacking[0]}", hint=None if item.fields else _NO_TEXTS)
    try:
        return [difference(name, row, [item.fields.get(name) for name in rubric.item.responses]) for name in names]
    except ValueError as error:
        raise InputError(f"item {item.id}: {error}", hint="mend it, or leave it out of --control") from None


def _word(value: Any) -> str:
    return "" if value is None else str(value).strip().casefold()


class _Tally:
    """Comparisons as they are met, with differences to control for."""

    def __init__(self, controls: Sequence[str]) -> None:
        self._controls = controls
        self._gaps: list[list[float]] = []  # of the first from the second
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._points: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._totals: Counter[str] = Counter()
        self._numbers: dict[str, int] = {}
        self._clusters: dict[str, int] = {}
        self._decided: list[tuple[int, int, float, int]] = []  # first, second, points of the first, cluster

    def add(
        self, cluster: str, a: str, b: str, outcome: str, point: float | None, gaps: list[float], *, swapped: bool
    ) -> None:
        """One comparison, the points of A and its differences from B; swapped if B was read first."""
        self._totals[outcome] += 1
        for system, mine in ((a, point), (b, None if point is None else 1 - point)):
            self.outcomes[system][_seen_by(outcome, mine)] += 1
            self._points[system][cluster].extend([] if mine is None else [mine])
        if point is None or a == b:  # a system against itself tells nothing of strengths
            return
        i, j = (self._numbers.setdefault(system, len(self._numbers)) for system in (a, b))
        which = self._clusters.setdefault(cluster, len(self._clusters))
        self._decided.append((j, i, 1 - point, which) if swapped else (i, j, point, which))
        self._gaps.append([-gap for gap in gaps] if swapped else gaps)

    def facts(self, model: Model, *, order: bool, unit: str) -> dict[str, Any]:
        """All figures."""
        import numpy as np

        from evenhand.stats.bradley_terry import bradley_terry
        from evenhand.stats.elo import sequential_elo

        interval = model.get("interval", "sandwich")
        seed = number("seed", model.get("seed", 0)) % 2**64  # a generator takes no negative one
        first, second, points, clusters = zip(*self._decided, strict=True) if self._decided else ((), (), (), ())
        gaps = np.array(self._gaps, dtype=float).reshape(len(points), len(self._controls))
        largest = np.abs(gaps).max(axis=0, initial=0.0)
        shares = gaps / np.where(largest > 0, largest, 1)  # squares of huge numbers would not be finite
        units = largest * np.sqrt((shares**2).mean(axis=0)) if len(points) else largest
        found = bradley_terry(
            first, second, points, size=len(self._numbers), clusters=clusters, order=order, unit=unit,
            ties=model.get("ties", "davidson"), covariates=gaps / np.where(units > 0, units, 1), interval=interval,
            seed=seed,
        )  # fmt: skip
        k = model.get("elo")
        elo = (
            None
            if k is None
            else sequential_elo(first, second, points, k=number("elo", k), size=len(self._numbers), seed=seed)
        )
        told = []
        for system, counts in self.outcomes.items():
            at = self._numbers.get(system)
            standing = None if at is None else found.standings[at]
            told.append({**_standing(system, counts, self._points[system], unit), **_strength(standing)})
            if elo is not None:
                told[-1]["sequential_elo"] = None if at is None else float(elo.mean[at])
                told[-1]["sequential_elo_spread"] = None if at is None else float(elo.spread[at])
        return {
            "systems": sorted(told, key=_place),
            "comparisons": self._totals.total(),
            "flips": self._totals["flips"],
            "missing": self._totals["missing"],
            **self._told(found, units),
            "interval": interval,
            "sequential_elo": None if elo is None else {"k": elo.k, "start": elo.start, "orders": elo.orders},
            "warnings": [*found.warnings, *self._not_controlled(found)],
        }

    def _not_controlled(self, found: Ranking) -> Iterator[str]:
        """Controls that vary and that the strengths don't allow for."""
        if not any(standing.strength.value is not None for standing in found.standings):
            return
        for column, (name, effect) in enumerate(zip(self._controls, found.effects, strict=True)):
            if effect.value is None and any(gap[column] for gap in self._gaps):
                yield (
                    f"the strengths are not those at equal {name}: {effect.reason}; leave it out of --control, "
                    "or compare more responses that differ in it"
                )

    def _told(self, found: Ranking, units: Iterable[float]) -> dict[str, Any]:
        """What else there is to the strengths."""
        controls = zip(self._controls, units, found.effects, strict=True)
        return {
            "tie": found.tie.as_dict(),
            "order": found.order.as_dict() if found.order else None,
            "control": [{**effect.as_dict(), "name": name, "unit": float(unit)} for name, unit, effect in controls],
            "separability": found.separability.as_dict(),
            "strength_method": next((s.strength.method for s in found.standings if s.strength.ci), ""),
        }


def _place(told: Mapping[str, Any]) -> tuple[Any, ...]:
    """By rank; who never lost a comparison, and so has no finite strength, before, and others without one behind."""
    unbeaten = told["rank"] is None and told["wins"] == told["n"] > 0
    group = 0 if unbeaten else 1 if told["rank"] is not None else 2
    return group, told["rank"] or 0, told["win_rate"] is None, -(told["win_rate"] or 0), told["system"]


def _strength(standing: Standing | None) -> dict[str, Any]:
    """Figures of the model, in plain data."""
    if standing is None:
        return {**dict.fromkeys(_MODEL_KEYS), "strength_note": "nothing decided"}
    told: dict[str, Any] = {}
    for name, estimate in zip(_MODEL_KEYS[::2], (standing.strength, standing.elo, standing.win_rate), strict=False):
        told |= {name: estimate.value, f"{name}_ci": list(estimate.ci) if estimate.ci else None}
    told |= {"rank": standing.rank, "rank_ci": list(standing.rank_ci) if standing.rank_ci else None}
    return {**told, "strength_note": standing.strength.note}


def _systems(item: Item, columns: tuple[str, str]) -> tuple[str, str]:
    """The systems of response A and B."""
    a, b = (item.extra.get(column, item.fields.get(column)) for column in columns)
    if not item.fields and (parts := split_pair_id(item.id)) is not None:
        return parts[1:]  # its columns were not stored
    if a is None or b is None:
        hint = "--systems A,B names other columns; `evenhand judge --pairs` makes pairs that have them"
        lacking = f"no {' or '.join(columns)}"
        raise InputError(f"item {item.id} does not say which systems it compares: {lacking}", hint=hint)
    return label(a), label(b)


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


def _standing(system: str, counts: Counter[str], points: Mapping[str, list[float]], unit: str) -> dict[str, Any]:
    mean = ClusteredMean(low=0.0, high=1.0, unit=unit)
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
