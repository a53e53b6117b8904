"""Read a stored run again under new weights, rules or reader: never a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from evenhand.errors import RunError
from evenhand.item import Item
from evenhand.judging import Exchange, first_request
from evenhand.manifest import rubric_entry
from evenhand.rubric.model import Rubric
from evenhand.rules import Rules, compile_rubric
from evenhand.settle import Question, better, question, re_asked, settle
from evenhand.store import Store
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Status, Verdict


def rescore(store: Store, rubric: Rubric) -> dict[str, int]:
    """Read every stored reply again under a rubric; verdicts are replaced, all or none, and replies stay.

    Failed verdicts stay failed (there is nothing to read). A new violation is reported, never re-asked.

    Returns:
        verdicts: read again; changed: those whose outcome differs from before.

    Raises:
        RunError: the rubric asks something else than what the replies answered, or texts were not stored.
    """
    counts = {"verdicts": 0, "changed": 0}
    store.replace_verdicts(_read_again(store, rubric, counts), rubric=rubric_entry(rubric))
    return counts


def _read_again(store: Store, rubric: Rubric, counts: dict[str, int]) -> Iterator[tuple[TrialKey, Verdict]]:
    manifest = store.manifest
    rules = compile_rubric(rubric)
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        if not row.item.fields and verdicts:
            raise RunError(f"item {row.item.id}: its texts were not stored, so its replies can't be read again")
        for key, before in verdicts.items():
            if before.status is Status.FAILED:
                continue
            exchanges = store.exchanges(key)
            after = _settle(rubric, rules, manifest, row.item, key, exchanges)
            if before.re_asked and not after.re_asked:  # the second request failed
                after = re_asked(after, after)
            after = replace(
                after,
                calls=before.calls,
                model=before.model,
                usage=before.usage,
                reply_digests=before.reply_digests,
            )
            counts["verdicts"] += 1
            counts["changed"] += (after.fields, after.violations) != (before.fields, before.violations)
            yield key, after


def _settle(
    rubric: Rubric,
    rules: Rules,
    manifest: Mapping[str, Any],
    item: Item,
    key: TrialKey,
    exchanges: list[Exchange],
) -> Verdict:
    trial = Trial(key, item)
    asked = question(rubric, rules, trial, short=manifest["short"])
    if not exchanges:
        if asked.fields:
            raise _other_question(item)
        return settle(rubric, rules, item.fields, asked, None)
    start = max(n for n, e in enumerate(exchanges) if e.attempt == 0)  # what came before was asked again since
    first = exchanges[start]
    _require_same_question(rubric, manifest, trial, asked, first)
    verdict = settle(rubric, rules, item.fields, asked, first.reply)
    for exchange in exchanges[start + 1 :]:
        verdict = better(rubric, verdict, settle(rubric, rules, item.fields, asked, exchange.reply))
    return verdict


def _require_same_question(
    rubric: Rubric, manifest: Mapping[str, Any], trial: Trial, asked: Question, first: Exchange
) -> None:
    """A reply may only be read as the answer to the question it was given."""
    judge = manifest["judge"]
    request = first_request(
        rubric,
        trial,
        asked,
        first.form,
        key=bytes.fromhex(manifest["key"]),
        settings=judge["settings"],
        identity=judge["identity"],
    )
    if request.digest != first.digest:
        raise _other_question(trial.item)


def _other_question(item: Item) -> RunError:
    return RunError(
        f"item {item.id}: this rubric asks something else than what the stored reply answered",
        hint="rescoring takes new weights, rules or readers; for a changed prompt judge again with another --out",
    )
