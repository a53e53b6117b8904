"""What a run would send, without sending it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand._words import counted
from evenhand.backend import Request
from evenhand.judging import Asker, hidden_images
from evenhand.rows import no_room
from evenhand.rubric.model import Form
from evenhand.run import RunSpec, count, make_asker, open_run, pending, take_in

_BYTES_A_TOKEN = 4
_SAMPLED = 200


def estimate(spec: RunSpec) -> dict[str, Any]:
    """One rendered prompt, the number of calls and a rough number of prompt tokens, as plain data.

    The whole input is checked as for a real run. ``calls_at_most`` counts a re-ask of every trial, where re-asks are
    allowed, and ``form_probes``: what finding out the output form may add to the first trial. Tokens are prompt
    bytes / 4, from the first 200 trials; images are counted apart (``images``, ``image_bytes`` of those sent along),
    since each provider has its own price for them.
    """
    with _passing_folder() as folder:
        backend = spec.judge.open(spec.backend)
        dry = replace(spec, folder=Path(folder) / "run", fresh=False)
        with open_run(dry, backend) as store:
            take_in(dry, store)
            hidden = hidden_images(dry.rubric, dry.judge, backend, store.items(read_now=True))
            asker = make_asker(dry, store, backend)
            total, _ = count(dry, store)
            seen = asked = size = images = image_bytes = 0
            example: Any = None
            for trial in pending(dry, store):
                if seen == _SAMPLED:
                    break
                seen += 1
                question = asker.question(trial)
                if not question.fields:
                    continue
                request = asker.request(trial, question, asker.form.first)
                asked += 1
                parts = list(_parts(request))
                size += sum(len(part["text"].encode("utf-8", "replace")) for part in parts if part["type"] == "text")
                images += sum(part["type"] != "text" for part in parts)
                image_bytes += sum(part["bytes"] for part in parts if part["type"] == "image")
                example = example or {"item": trial.item.id, "messages": list(request.messages)}
            rows, bad = store.count_rows()
    calls = round(total * asked / seen) if seen else 0
    probes = asker.form.probes if calls else 0
    share = calls / asked if asked else 0.0
    return {
        "rows": rows,
        "bad_rows": bad,
        "trials": total,
        "calls": calls,
        "calls_at_most": (2 if spec.re_ask else 1) * calls + probes,
        "form_probes": probes,
        "prompt_tokens": round(size / _BYTES_A_TOKEN * share),
        "tokens_by": f"bytes / {_BYTES_A_TOKEN}, from {counted(asked, 'prompt')}",
        "images": round(images * share),
        "image_bytes": round(image_bytes * share),
        "images_not_shown": hidden,
        "form": asker.form.first,
        "prompt": example,
    }


def _parts(request: Request) -> Iterator[Mapping[str, Any]]:
    for message in request.messages:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


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
