"""Cells that several tables share, and what figures rest on in words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenhand._words import counted, rounded, span

#: What is told of pairs that were judged in one order.
ONE_ORDER = "asked in one order only: position bias was not controlled"
_INTERVALS = ("BCa", "percentile", "Wilson", "t interval", "no disagreement seen")  # how methods of intervals begin


def mean_cells(fact: Mapping[str, Any]) -> tuple[str, str, str]:
    """Mean, interval and n of a figure; what is lacking is told where the interval stands."""
    if fact["mean"] is None:
        return "-", fact["note"], str(fact["n"])
    interval = span(fact["ci"]) if fact["ci"] else fact.get("note", "")
    return rounded(fact["mean"]), interval, str(fact["n"])


def with_mean(part: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a summary that are means, the composite first."""
    found = {"composite": part["composite"]} if part["composite"] else {}
    return found | {n: f for n, f in {**part["criteria"], **part["fields"]}.items() if "mean" in f}


def unfinished(facts: Mapping[str, Any]) -> bool:
    """Whether trials of a run are still to be asked."""
    return bool(facts["trials_asked"] < facts["trials"])


def tokens_known(facts: Mapping[str, Any]) -> bool:
    """Whether replies told their tokens; without any told the sums are 0, which no call takes."""
    return not facts["calls"] or any(facts["tokens"].values())


def estimate_cells(estimate: Mapping[str, Any], digits: int = 3) -> tuple[str, str, str]:
    """Value, interval and n of an `Estimate` as plain data."""
    if estimate["value"] is None:
        return "-", "-", str(estimate["n"])
    interval = span(estimate["ci"], digits) if estimate["ci"] else "-"
    return rounded(estimate["value"], digits), interval, str(estimate["n"])


def share_words(fact: Mapping[str, Any]) -> str:
    """A share that a summary tells as a mean, with interval, n and method in one line."""
    value, interval, n = mean_cells(fact)
    ends = f" ({interval})" if fact["ci"] else ""
    return "; ".join([f"{value}{ends}, n {n}", *(share_methods(fact) if fact["ci"] else [interval])])


def share_methods(fact: Mapping[str, Any]) -> list[str]:
    """How the interval of a share was made, of how many clusters, and that it is rough; nothing without one."""
    clusters = counted(fact["items"], fact["cluster"])
    return ["; ".join(filter(None, (fact["method"], clusters, fact.get("note"))))] if fact["ci"] else []


def mean_methods(facts: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """How the intervals of means were made, of how many clusters, and that they are rough; nothing without any."""
    known = [fact for fact in facts if fact and fact.get("ci")]
    if not known:
        return []
    sizes: dict[str, list[int]] = {}
    for fact in known:
        sizes.setdefault(fact["cluster"], []).append(fact["items"])
    clusters = ", ".join(
        counted(max(n), unit) if min(n) == max(n) else f"{min(n)} to {counted(max(n), unit)}"
        for unit, n in sizes.items()
    )
    notes = dict.fromkeys(fact["note"] for fact in known if fact.get("note"))
    how = f"95% intervals: Student's t, cut at the ends of the scale; clusters: {clusters}"
    return ["; ".join([how, *notes])]


def estimate_methods(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """How the intervals of `Estimate`s as plain data were made, each kind once; what a figure is called is left out."""
    kinds: dict[str, None] = {}
    for one in figures:
        if one["ci"] is not None:
            at = next((at for word in _INTERVALS if (at := one["method"].find(word)) >= 0), 0)
            kinds.setdefault(one["method"][at:])
    return [f"95% intervals: {'; '.join(kinds)}"] if kinds else []


def estimate_warnings(figures: Iterable[Mapping[str, Any]]) -> list[str]:
    """Why to read figures with care, each once."""
    return [f"warning: {text}" for text in dict.fromkeys(w for one in figures for w in one["warnings"])]


def comparison_methods(comparisons: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The tests of a comparison, and how intervals were made: each once."""
    found: dict[tuple[str, ...], list[str]] = {}
    for told in comparisons:
        how = [told["test"]] if told["p"] is not None else []
        how += [told["difference"]["method"]] if told["difference"]["ci"] is not None else []
        if how := [*how, *told["difference"]["warnings"]]:
            found.setdefault(tuple(how), []).append(f"{told['b']} and {told['a']}, {told['measure']}")
    for method, where in found.items():
        place = f" of {'; '.join(where)}" if len(found) > 1 and len(where) <= len(comparisons) / 2 else ""
        yield f"method{place}: {'; '.join(method)}"


def left_out_words(name: str, told: Mapping[str, Any]) -> list[str]:
    """How many of a field a confusion table leaves out, and why; nothing where it has all."""
    lost = sum(told["missing"].values())
    reasons = ", ".join(f"{reason} {n}" for reason, n in told["missing"].items())
    return [f"{name}: {lost} of {told['n'] + lost} are not in the table of values: {reasons}"] if lost else []
