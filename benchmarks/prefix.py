"""The share of prompt tokens that a server's prefix cache has, for each built-in rubric.

    python benchmarks/prefix.py
    python benchmarks/prefix.py --items 6 --rubrics doc-qa --slots 1       # a smoke test

Starts the project's llama.cpp server with the smallest model and judges items of `examples/`, which a seed has mixed:
one after the other, then as many at once as the server has slots, each time with a new server. What counts are the
prompts, so a reply may have one token. Prints one JSON object: prompt tokens, those of them from the cache, the share,
and for a rubric with types the same of a run that asks in input order.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import evenhand
from evenhand.models import locate
from evenhand.rubric.load import load_rubric
from evenhand.rubric.model import Rubric
from evenhand.store import Store
from evenhand.testing.llama_server import MODEL_NAME, LlamaServer

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
RUBRICS = ("hhh", "alignmm-critic", "doc-qa")
MODEL = "smollm2-135m"
LEAST_SHARE = 0.6


def main() -> None:
    """Measure, print, and fail below the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=24, help="items of each rubric")
    parser.add_argument("--rubrics", nargs="+", choices=RUBRICS, default=RUBRICS)
    parser.add_argument(
        "--slots", type=int, nargs="+", default=[1, 2], help="slots of the server, and requests at once"
    )
    given = parser.parse_args()
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="evenhand-")  # nothing is known of the server yet
    found = {name: measure(name, given.items, given.slots) for name in given.rubrics}
    print(json.dumps(found, indent=1))
    if any(one["share"] <= LEAST_SHARE for of in found.values() for one in of["asked"].values()):
        sys.exit(f"a share is not above {LEAST_SHARE:.0%}")


def measure(name: str, count: int, slots: list[int]) -> dict[str, Any]:
    """The shares of one rubric, by the order of its items and by slots."""
    rows = list(itertools.islice(items(name), count))
    random.Random(1).shuffle(rows)
    rubric = load_rubric(name)
    rubric = replace(rubric, output=replace(rubric.output, forms=("schema",)))  # the one that this server honours
    told: dict[str, Any] = {"items": len(rows), "asked": {n: asked(rubric, rows, n) for n in slots}}
    if rubric.types is not None:
        told["types"] = len({rubric.types.names[row["task"]] for row in rows})
        with mock.patch.object(Store, "open_items", _as_they_come(Store.open_items)):
            told["in input order"] = {n: asked(rubric, rows, n) for n in slots}
    return told


def _as_they_come(open_items: Callable[..., Any]) -> Callable[..., Any]:
    """Open items in input order, whatever is asked for."""
    return lambda store, settled, **_: open_items(store, settled)


def items(name: str) -> Iterator[dict[str, Any]]:
    """Rows of the examples for a rubric: its own, then rows made of the answers of several systems."""
    systems = read("systems")
    if name == "doc-qa":
        yield from read("doc-qa")
        yield from systems
    elif name == "hhh":
        yield from read("hhh")
        for first, second in itertools.pairwise(systems):
            if first["question_id"] == second["question_id"]:
                pair = {"response_a": first["answer"], "response_b": second["answer"]}
                yield {"id": f"{first['id']}-{second['id']}", "prompt": first["question"], **pair}
    else:
        own = read("critic")
        yield from own
        types = load_rubric(name).types
        assert types is not None
        alone = [t for t in types.names if types.names[t] != "多轮对话"]  # the others need earlier turns
        for row, task in zip(systems, itertools.cycle(alone), strict=False):
            told = {"prompt": row["question"], "ref_answer": row["context"], "predict": row["answer"], "task": task}
            yield {"question_id": row["id"], **told}


def read(name: str) -> list[dict[str, Any]]:
    """Rows of an example."""
    return [json.loads(line) for line in (EXAMPLES / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def asked(rubric: Rubric, rows: list[dict[str, Any]], slots: int) -> dict[str, Any]:
    """Prompt tokens and cached tokens of a run with a server of its own, from the usages that the run stored."""
    with (
        LlamaServer(locate(MODEL).path, slots=slots, n_ctx=8192, cache_prompt=True) as server,
        tempfile.TemporaryDirectory() as folder,
    ):
        out = Path(folder) / "run"
        how: dict[str, Any] = {"concurrency": slots, "max_tokens": 1, "re_ask": False, "timeout": 600.0, "attempts": 1}
        evenhand.judge(rows, rubric, f"openai:{MODEL_NAME}", base_url=server.base_url, out=out, **how)
        with Store.open(out) as store:
            usages = list(store.usages())
    prompt, cached = (sum(getattr(u, f"{kind}_tokens") or 0 for u in usages) for kind in ("prompt", "cached"))
    return {"requests": len(usages), "prompt": prompt, "cached": cached, "share": round(cached / prompt, 3)}


if __name__ == "__main__":
    main()
