"""What a judge is like to work with, whatever it says: failures, contradictions, steadiness, cost, latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.rubric.model import Rubric
from evenhand.stats.estimates import Estimate
from evenhand.stats.resample import share_interval
from evenhand.store import Store
from evenhand.tasks import Clusters, of_told
from evenhand.trial import TrialKey
from evenhand.verdict import Status

#: Trials from which one in twenty is told apart.
LEAST_P95 = 20


class _Share:
    """A share of observations that come in clusters."""

    def __init__(self) -> None:
        self._values: list[float] = []
        self._ids: list[int] = []
        self._known: dict[str, int] = {}

    def add(self, cluster: str, values: Sequence[bool]) -> None:
        self._ids += [self._known.setdefault(cluster, len(self._known)) for _ in values]
        self._values += [float(value) for value in values]

    def estimate(self, unit: str) -> Estimate:
        """The share with a Wilson interval, clusters being ``unit``s."""
        ids = np.unique(np.array(self._ids, dtype=np.intp), return_inverse=True)[1].astype(np.intp)
        return share_interval(self._values, ids if self._values else None).of_unit(unit)


def service_facts(store: Store, rubric: Rubric, summary: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of a run that need no labels, as plain data.

    Args:
        store: The open run.
        rubric: Its rubric.
        summary: Its figures, of `evenhand.facts.summary`.

    Returns:
        judge, set, planned, scored, failures, ``failed`` (share of units that the judge was asked, both orders of a
        pair one unit, that are not scored; bad rows, what was never asked and what is set in code count for nothing),
        ``violated`` (share of the judge's readable replies that break a rule, after the re-ask), ``consistency``
        (share of pairs judged in both orders whose side stays when the order changes: the summary's ``agreement``;
        None where it has none), cost_usd, cost_per_1000_items (of items asked; None: unknown), latency_s (median,
        p95: seconds a trial, its re-ask included; n trials whose latency is known), tokens, calls.
    """
    manifest = store.manifest
    orders = manifest["orders"]
    failed = _Share()
    latency: list[float] = []
    clusters, asked = Clusters(rubric, manifest), 0
    for row, verdicts in store.verdicts():
        if row.item is None or not verdicts:
            continue
        asked += 1
        cluster = clusters.of(row.item)
        units = [[verdicts.get(TrialKey(row.item.id, o, r)) for o in orders] for r in range(manifest["repeats"])]
        whole = [[v for v in unit if v is not None] for unit in units if None not in unit]
        whole = [unit for unit in whole if any(v.by_judge for v in unit)]
        failed.add(cluster, [any(v.status is not Status.SCORED for v in unit) for unit in whole])
        latency += [v.usage.latency_s for v in verdicts.values() if v.calls and v.usage.latency_s is not None]
    cost, violated, steady = summary["cost_usd"], summary["violation_rate"]["after_re_ask"], summary.get("agreement")
    return {
        "judge": manifest["judge"]["spec"],
        "set": {"data": _data(manifest), "rubric": rubric.name, "version": rubric.version},
        **{name: summary[name] for name in ("planned", "scored", "failures", "tokens", "calls", "cost_usd")},
        "failed": failed.estimate(clusters.unit).as_dict(),
        "violated": of_told({**violated, "mean": violated["rate"], "n": violated["trials"]}).as_dict(),
        "consistency": of_told(steady).as_dict() if steady else None,
        "cost_per_1000_items": None if cost is None or not asked else 1000 * cost / asked,
        "latency_s": _latency(latency),
    }


def _latency(seconds: Sequence[float]) -> dict[str, Any]:
    many = len(seconds) >= LEAST_P95
    return {
        "median": float(np.median(seconds)) if seconds else None,
        "p95": float(np.quantile(seconds, 0.95)) if many else None,
        "n": len(seconds),
    }


def _data(manifest: Mapping[str, Any]) -> str:
    return Path(manifest["commands"][-1]["data"]).name if manifest["commands"] else ""
