"""Read a stored run again under new weights, rules or reader: never a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from evenhand.errors import RunError
from evenhand.item import Item
from evenhand.judging import Exchange, first_request
from evenhand.manifest import keys_of, rubric_entry, stored_rubric
from evenhand.rubric.model import Rubric
from evenhand.rules import Rules, compile_rubric
from evenhand.settle import Question, better, question, re_asked, settle
from evenhand.store import Store
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Status, Verdict


def rescore(store: Store, rubric: Rubric) -> dict[str, int]:
    """Read every stored reply again under a rubric; verdicts are replaced, all or none, and replies stay.

    Failed verdicts stay failed (there is nothing to read). A new violation is reported, never re-asked.

    Where nothing but the weights is new, replies need not be read, so that the items' texts are not needed.

    Returns:
        verdicts: read again; changed: those whose outcome or composite differs from before.

    Raises:
        RunError: the rubric asks something else than what the replies answered, or texts were not stored.
    """
    counts = {"verdicts": 0, "changed": 0}
    store.replace_verdicts(_read_again(store, rubric, counts), rubric=rubric_entry(rubric))
    return counts


def _read_again(store: Store, rubric: Rubric, counts: dict[str, int]) -> Iterator[tuple[TrialKey, Verdict]]:
    manifest = store.manifest
    rules = compile_rubric(rubric)
    old = stored_rubric(manifest)
    weighed = _but_weights(manifest["rubric"]) == _but_weights(rubric_entry(rubric))
    for row, verdicts in store.verdicts():
        if row.item is None:
            continue
        texts = bool(row.item.fields)
        if not texts and verdicts and not weighed:
            raise RunError(f"item {row.item.id}: its texts were not stored, so its replies can't be read again")
        for key, before in verdicts.items():
            if before.status is Status.FAILED:
                continue
            if not texts:
                counts["verdicts"] += 1
                counts["changed"] += _composite(old, before) != _composite(rubric, before)
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
            same = (after.fields, after.violations) == (before.fields, before.violations)
            counts["changed"] += not same or _composite(old, before) != _composite(rubric, after)
            yield key, after


def _but_weights(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != "weights"}


def _composite(rubric: Rubric, verdict: Verdict) -> float | None:
    """The stated weighted mean, only to tell whether it moved; figures are made elsewhere."""
    parts = [(c.weight, verdict.value(c.name)) for c in rubric.criteria if c.weight is not None]
    if not parts or not all(isinstance(value, int | float) for _, value in parts):
        return None
    return round(sum(weight * value for weight, value in parts), 9)  # type: ignore[operator, misc]


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
        return settle(rubric, rules, asked, None)
    start = max(n for n, e in enumerate(exchanges) if e.attempt == 0)  # what came before was asked again since
    first = exchanges[start]
    _require_same_question(rubric, manifest, trial, asked, first)
    verdict = settle(rubric, rules, asked, first.reply)
    for exchange in exchanges[start + 1 :]:
        verdict = better(rubric, verdict, settle(rubric, rules, asked, exchange.reply))
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
        keys=keys_of(manifest),
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
