"""The manifest: what a run was planned as, and whether a new command still means the same run."""

from __future__ import annotations

import difflib
import platform
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand._canon import digest
from evenhand.errors import InputError, RunError, UnknownNameError
from evenhand.judging import Judge
from evenhand.rubric.load import load_rubric, parse_rubric
from evenhand.rubric.model import Rubric
from evenhand.rubric.schema import asked_fields
from evenhand.rules import check_expression
from evenhand.sharding import Shard
from evenhand.store import Store
from evenhand.verdict import Status

_WEIGHT_TOLERANCE = 1e-9


def new_manifest(
    rubric: Rubric,
    judge: Judge,
    identity: Mapping[str, Any],
    *,
    orders: tuple[str, ...],
    repeats: int,
    short: bool,
    re_ask: bool,
    repeatable: bool = False,
    shard: Shard | None = None,
) -> dict[str, Any]:
    """The manifest of a new run: what decides its verdicts, and ``commands``, where what is harmless is recorded.

    Its key is random, so that nobody who writes an answer can know a fence mark. For a ``repeatable`` judge, whose
    verdicts must come out the same in every folder, it derives from the rubric; marks inside judged text are broken
    in any case.
    """
    return {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "evenhand": version("evenhand"),
        "python": platform.python_version(),
        "rubric": rubric_entry(rubric),
        "judge": judge_entry(judge, identity),
        "orders": list(orders),
        "repeats": repeats,
        "short": short,
        "re_ask": re_ask,
        "asked": [field.name for field in asked_fields(rubric, short=short)],
        "commands": [],
        "key": digest(["fence", rubric.digest]) if repeatable else secrets.token_hex(16),
        "form": None,
        "shard": None if shard is None else str(shard),
    }


def keys_of(manifest: Mapping[str, Any]) -> tuple[bytes, ...]:
    """The secrets that the fence marks of a run are made of: one, or those of all runs that were merged into it.

    Which of them an item's marks are made of is at `Item.key`.
    """
    return tuple(bytes.fromhex(key) for key in manifest.get("keys") or [manifest["key"]])


def rubric_entry(rubric: Rubric) -> dict[str, Any]:
    """The rubric as the manifest keeps it: enough to make it again."""
    weights = {c.name: c.weight for c in rubric.criteria if c.weight is not None}
    return {
        "name": rubric.name,
        "digest": rubric.digest,
        "options": dict(rubric.chosen),
        "weights": weights,
        "source": rubric.source,
    }


def judge_entry(judge: Judge, identity: Mapping[str, Any]) -> dict[str, Any]:
    """The judge as the manifest keeps it; no key and no header is in it."""
    return {"spec": judge.spec, "settings": dict(judge.settings), "identity": dict(identity)}


def stored_rubric(manifest: Mapping[str, Any]) -> Rubric:
    """The rubric a run was judged under.

    Raises:
        RunError: this version of evenhand doesn't take it.
    """
    entry = manifest["rubric"]
    try:
        rubric = parse_rubric(entry["source"], file=None, options=entry["options"], check_expression=check_expression)
    except InputError as error:
        hint = f"the run was made with evenhand {manifest['evenhand']}; use that, or judge again"
        raise RunError(f"the rubric stored in the run can't be read:\n{error}", hint=hint) from error
    same = entry["weights"] == rubric_entry(rubric)["weights"]
    return rubric if same else with_weights(rubric, entry["weights"])


def open_rubric(
    rubric: str | Path | Rubric,
    *,
    variant: Mapping[str, Any] | None = None,
    weights: Mapping[str, float] | None = None,
) -> Rubric:
    """A rubric by built-in name or file, with options and weights applied, its rules checked.

    Raises:
        InputError: no such rubric, mistakes in it, bad weights, or options for a `Rubric` that has its own.
    """
    if not isinstance(rubric, str | Path | Rubric):
        raise InputError(f"rubric must be a name, a file or a Rubric, not {rubric!r:.60}")
    if not isinstance(rubric, Rubric):
        rubric = load_rubric(rubric, options=variant or {}, check_expression=check_expression)
    elif variant:
        raise InputError("variant goes with a rubric's name or file; a Rubric has its options already")
    return with_weights(rubric, weights) if weights else rubric


def with_weights(rubric: Rubric, weights: Mapping[str, float]) -> Rubric:
    """The rubric with other weights for its composite.

    Raises:
        InputError: weights that don't name every criterion, are negative, or don't sum to 1; scales of labels.
    """
    names = [c.name for c in rubric.criteria]
    for name in weights:
        if name not in names:
            raise UnknownNameError("criterion", name, names)
    if labels := [c.name for c in rubric.criteria if not c.scale.numeric]:
        raise InputError(f"no composite of labels: {', '.join(labels)}", hint="weights need scales of numbers")
    missing = [name for name in names if name not in weights]
    if missing:
        raise InputError(f"no weight for {', '.join(missing)}", hint="give every criterion a weight; 0 is allowed")
    if any(not 0 <= w <= 1 for w in weights.values()) or abs(sum(weights.values()) - 1) > _WEIGHT_TOLERANCE:
        raise InputError(f"weights must lie in 0-1 and sum to 1; these sum to {sum(weights.values()):g}")
    criteria = tuple(replace(c, weight=weights[c.name]) for c in rubric.criteria)
    return replace(rubric, criteria=criteria, aggregate=replace(rubric.aggregate, composite=True))


def require_same(old: Mapping[str, Any], new: Mapping[str, Any], folder: str) -> None:
    """Refuse to mix two different runs in one folder.

    Raises:
        RunError: rubric, judge, settings, short form, re-asking, orders or shard differ; the message shows how.
    """
    of_rubric, others = differences(old, new)
    before, now = (manifest.get("shard") or "the whole input" for manifest in (old, new))
    if before != now:
        others.append(f"shard: {before} -> {now}")
    if new["repeats"] < old["repeats"]:
        others.append(f"repeats: {old['repeats']} -> {new['repeats']}")
    if changes := of_rubric + others:
        hint = "give another --out, or --fresh to start over"
        kept = old["rubric"]["weights"]
        if not others and all(old["rubric"][key] == new["rubric"][key] for key in ("name", "options")):
            hint += "; `evenhand rescore` applies new weights or rules to the replies that are stored"
        if kept and kept != new["rubric"]["weights"]:
            given = ",".join(f"{name}={weight!r}" for name, weight in kept.items())
            hint = f"--weights {given} goes on with the weights that the run has; or {hint}"
        raise RunError(f"{folder} holds another run:\n" + "\n".join(f"  {c}" for c in changes), hint=hint)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What tells two runs apart in what they ask, a line each: in their rubrics, and in judge, orders and form."""
    others = [f"{key}: {b!r} -> {a!r}" for key, b, a in _compare(old["judge"], new["judge"], "judge")]
    plan = ("orders", "short", "re_ask")
    others += [f"{key}: {old[key]!r} -> {new[key]!r}" for key in plan if old[key] != new[key]]
    return _rubric_changes(old["rubric"], new["rubric"]), others


def holds_nothing(store: Store) -> bool:
    """Whether a run has no reply of its judge, no verdict set in code and no cost: nothing is lost with it."""
    told = store.manifest
    if told.get("batches") or (told.get("cost") or {}).get("at_most_usd") or next(store.usages(), None) is not None:
        return False
    return all(v.status is Status.FAILED for _, found in store.verdicts() for v in found.values())


def _rubric_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    named = ("name", "options", "weights")
    before, after = ({key: entry[key] for key in named} for entry in (old, new))
    changes = [f"{key}: {b!r} -> {a!r}" for key, b, a in _compare(before, after, "rubric")]
    if old["source"] != new["source"]:
        lines = difflib.unified_diff(
            old["source"].splitlines(), new["source"].splitlines(), "stored rubric", "rubric now", lineterm="", n=0
        )
        changes.extend(list(lines)[:30])
    return changes


def _compare(old: Any, new: Any, path: str) -> list[tuple[str, Any, Any]]:
    """Paths at which two pieces of plain data differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [c for k in {**old, **new} for c in _compare(old.get(k), new.get(k), f"{path}.{k}")]
    return [] if old == new else [(path, old, new)]
