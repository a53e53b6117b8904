"""Everything about one item of a run: its prompts as they were sent, its replies, its verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.errors import UnknownNameError
from evenhand.judging import first_request
from evenhand.manifest import stored_rubric
from evenhand.rules import compile_rubric
from evenhand.settle import question
from evenhand.store import Store
from evenhand.trial import Trial
from evenhand.verdict import reply_to_plain, verdict_to_plain


def inspect_item(folder: Path, item_id: str) -> dict[str, Any]:
    """One item's trials with prompt (rendered again), replies and verdict, as plain JSON data.

    ``texts_stored`` tells whether the item's texts were kept; without them no prompt can be rendered.

    Raises:
        UnknownNameError: the run has no such item.
    """
    with Store.open(folder) as store:
        manifest = store.manifest
        rubric = stored_rubric(manifest)
        item = store.item(item_id)
        if item is None:
            known = [other.id for other, _ in zip(store.items(), range(20), strict=False)]
            raise UnknownNameError("item", item_id, known)
        rules = compile_rubric(rubric)
        trials = []
        for key, verdict in store.verdicts_of(item_id).items():
            trial = Trial(key, item)
            exchanges = store.exchanges(key)
            prompt: list[Any] = []
            if exchanges and item.fields:
                asked = question(rubric, rules, trial, short=manifest["short"])
                request = first_request(
                    rubric,
                    trial,
                    asked,
                    exchanges[-1].form,
                    key=bytes.fromhex(manifest["key"]),
                    settings=manifest["judge"]["settings"],
                    identity=manifest["judge"]["identity"],
                )
                prompt = [dict(message) for message in request.messages]
            replies = [
                {"attempt": e.attempt, "form": e.form, "request": e.digest, "reply": reply_to_plain(e.reply)}
                for e in exchanges
            ]
            trials.append(
                {
                    "order": key.order,
                    "repeat": key.repeat,
                    "prompt": prompt,
                    "replies": replies,
                    "verdict": verdict_to_plain(verdict),
                }
            )
    return {"id": item_id, "row": item.row, "texts_stored": bool(item.fields), "trials": trials}
