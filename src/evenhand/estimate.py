"""What a run would send, without sending it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from evenhand._words import counted
from evenhand.judging import Asker, hidden_images
from evenhand.purse import parts_of
from evenhand.rows import no_room
from evenhand.rubric.model import Form
from evenhand.run import count, make_asker, open_run, pending, take_in
from evenhand.run_spec import RunSpec
from evenhand.spending import BYTES_A_TOKEN, forecast, price_of, require_bounded, sample, text_bytes, unpriced


def estimate(spec: RunSpec) -> dict[str, Any]:
    """One rendered prompt, the number of calls and a rough number of prompt tokens, as plain data.

    The whole input is checked as for a real run. ``calls_at_most`` counts a re-ask of every trial, where re-asks are
    allowed, and ``form_probes``: what finding out the output form may add to the first trial. Tokens are prompt
    bytes / 4, from the first 200 trials; images are counted apart (``images``, ``image_bytes`` of those sent along),
    since each provider has its own price for them. ``cost_usd`` is a `evenhand.spending.Forecast` as plain data, None
    for a judge that costs nothing or whose price is not known, which ``price`` tells.
    """
    with _passing_folder() as folder:
        backend = spec.judge.open(spec.backend)
        price = price_of(backend, prices=spec.prices, cap=spec.max_cost, settings=spec.judge.settings)
        dry = replace(spec, folder=Path(folder) / "run", fresh=False)
        with open_run(dry, backend) as store:
            take_in(dry, store)
            hidden = hidden_images(dry.rubric, dry.judge, backend, store.items(read_now=True))
            if price is not None and spec.max_cost is not None:
                require_bounded(dry.rubric, price, store.items(read_now=True))
            asker = make_asker(dry, store, backend)
            total, _ = count(dry, store)
            found = sample(asker, pending(dry, store), total)
            cost = None if price is None else asdict(forecast(found, price, asker, batch=spec.batch))
            rows, bad = store.count_rows()
    first = next(iter(found.requests), None)
    parts = [part for request in found.requests for part in parts_of(request) if part["type"] != "text"]
    size = sum(text_bytes(request) for request in found.requests)
    probes = asker.form.probes if found.calls else 0
    return {
        "rows": rows,
        "bad_rows": bad,
        "trials": total,
        "calls": found.calls,
        "calls_at_most": (2 if spec.re_ask else 1) * found.calls + probes,
        "form_probes": probes,
        "prompt_tokens": round(size / BYTES_A_TOKEN * found.scale),
        "tokens_by": f"bytes / {BYTES_A_TOKEN}, from {counted(len(found.requests), 'prompt')}",
        "images": round(len(parts) * found.scale),
        "image_bytes": round(sum(part.get("bytes", 0) for part in parts) * found.scale),
        "images_not_shown": hidden,
        "form": asker.form.first,
        "cost_usd": cost,
        "price": (unpriced(backend) if not backend.deterministic else None) if price is None else price.plain(),
        "prompt": None if first is None else {"item": first.item_id, "messages": list(first.messages)},
    }


def rendered(spec: RunSpec, form: Form | None) -> Iterator[dict[str, Any]]:
    """The messages of every item, in input order, with its schema or tool where the form has one."""
    with _passing_folder() as folder:
        backend = spec.judge.open(spec.backend)
        dry = replace(spec, folder=Path(folder) / "run")
        with open_run(dry, backend) as store:
            take_in(dry, store)
            asker = make_asker(dry, store, backend)
            for trial in pending(dry, store):
                yield _line(asker, trial, form)


@contextlib.contextmanager
def _passing_folder() -> Iterator[str]:
    try:
        made = tempfile.TemporaryDirectory()
    except OSError as error:
        raise no_room(error) from None
    with made as folder:
        yield folder


def _line(asker: Asker, trial: Any, form: Form | None) -> dict[str, Any]:
    question = asker.question(trial)
    if not question.fields:
        return {"id": trial.item.id, "messages": [], "set_in_code": dict(question.fixed)}
    request = asker.request(trial, question, form or asker.form.first)
    line = {"id": trial.item.id, "form": request.form, "messages": list(request.messages)}
    if request.schema is not None:
        line["schema"] = request.schema
    if request.function is not None:
        line["function"] = request.function
    return line
