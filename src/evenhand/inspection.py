"""Everything about one item of a run: its prompts as they were sent, its replies, its verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.errors import UnknownNameError
from evenhand.facts import null_answers
from evenhand.item import Item
from evenhand.judging import Exchange, first_request, reply_text
from evenhand.manifest import keys_of, stored_rubric
from evenhand.prompt import re_ask
from evenhand.rubric.model import Rubric
from evenhand.rules import compile_rubric
from evenhand.settle import Question, complaints, question, settle
from evenhand.sides import CHANGED, preferred
from evenhand.store import Store
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Verdict, reply_to_plain, verdict_to_plain


def inspect_item(folder: Path, item_id: str) -> dict[str, Any]:
    """One item's trials with prompt (rendered again), replies and verdict, as plain JSON data.

    A trial that failed without a reply has its prompt too, in the form it was most likely sent in.

    ``re_ask`` has the messages that a re-ask put after those of the prompt. ``texts_stored`` tells whether the item's
    texts were kept; without them no prompt can be rendered. For a pair judged in both orders, ``preferred`` has the
    sides of each repeat, in the item's own order, and what holds of both.

    Raises:
        UnknownNameError: the run has no such item.
    """
    with Store.open(folder) as store:
        manifest = store.manifest
        item = store.item(item_id)
        if item is None:
            known = [other.id for other, _ in zip(store.items(), range(20), strict=False)]
            raise UnknownNameError("item", item_id, known)
        return told_item(store, stored_rubric(manifest), manifest, item, store.verdicts_of(item_id))


def told_item(
    store: Store, rubric: Rubric, manifest: Mapping[str, Any], item: Item, verdicts: Mapping[TrialKey, Verdict]
) -> dict[str, Any]:
    """What `inspect_item` tells, of an item of an open run and its verdicts."""
    told = {"id": item.id, "row": item.row, "texts_stored": bool(item.fields)}
    told["trials"] = [_told_trial(store, rubric, manifest, Trial(key, item), v) for key, v in verdicts.items()]
    told["null_answers"] = null_answers(item, rubric)
    if rubric.preference is not None and len(manifest["orders"]) > 1:
        told["preferred"] = _preferred(rubric, verdicts, item.id, manifest)
    return told


def _told_trial(
    store: Store, rubric: Rubric, manifest: Mapping[str, Any], trial: Trial, verdict: Verdict
) -> dict[str, Any]:
    exchanges = store.exchanges(trial.key)
    prompt: list[Any] = []
    again: list[Any] = []
    asked = question(rubric, compile_rubric(rubric), trial, short=manifest["short"]) if trial.item.fields else None
    if asked is not None and asked.fields:
        request = first_request(
            rubric,
            trial,
            asked,
            exchanges[-1].form if exchanges else manifest["form"] or rubric.output.forms[0],
            keys=keys_of(manifest),
            settings=manifest["judge"]["settings"],
            identity=manifest["judge"]["identity"],
        )
        prompt = [dict(message) for message in request.messages]
        again = _re_ask(rubric, asked, request, exchanges)
    replies = [
        {"attempt": e.attempt, "form": e.form, "request": e.digest, "reply": reply_to_plain(e.reply)} for e in exchanges
    ]
    return {
        "order": trial.key.order,
        "repeat": trial.key.repeat,
        "prompt": prompt,
        "re_ask": again,
        "replies": replies,
        "verdict": verdict_to_plain(verdict),
    }


def _re_ask(rubric: Rubric, asked: Question, first: Request, exchanges: Sequence[Exchange]) -> list[dict[str, Any]]:
    """What the re-ask added to the prompt; nothing without one, or where rules have changed since it was sent."""
    sent = next((e for e in exchanges if e.attempt), None)
    if sent is None:
        return []
    reply = next(e.reply for e in reversed(exchanges) if not e.attempt)
    rules = compile_rubric(rubric)
    wrong = complaints(rubric, rules, asked, settle(rubric, rules, asked, reply))
    whole = re_ask(tuple(dict(message) for message in first.messages), reply_text(reply), wrong, rubric.language)
    if replace(first, messages=whole, attempt=1).digest != sent.digest:
        return []
    return [dict(message) for message in whole[len(first.messages) :]]


def _preferred(
    rubric: Rubric, verdicts: Mapping[TrialKey, Verdict], item_id: str, manifest: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The sides in each order, and the one that both name; None where they differ or one is missing."""
    found = []
    for repeat in range(manifest["repeats"]):
        unit = {order: verdicts.get(TrialKey(item_id, order, repeat)) for order in manifest["orders"]}
        sides = {order: verdict.value(rubric.preference or "") if verdict else None for order, verdict in unit.items()}
        both = preferred(list(unit.values()), rubric)
        found.append(
            {
                "repeat": repeat,
                "sides": sides,
                "side": None if both == CHANGED else both,
                "flip": None if both is None else both == CHANGED,
            }
        )
    return found
