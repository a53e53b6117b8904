"""Tokens a second of the local judge against the bare runtime, on the same prompts and tokens, side by side.

    python benchmarks/local.py
    python benchmarks/local.py --items 2 --rounds 1 --rubrics doc-qa       # a smoke test

A run judges items of `examples/` in the short form. After each trial the runtime alone, with the same weights and
numbers of threads, is called for the same pieces of the answer: the prompt and the answer so far, as tokens, by calls
in process. What it takes over from the prompt before is its own longest match. The judge does more: it finds the
tokens, brings the model into a state that does not depend on the trial before, reads the probabilities. Prints one JSON
object: medians over the rounds of tokens (prompt and answer) a second of both, and of their ratio. The first trial,
with which the model is loaded, does not count.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

from prefix import MODEL, RUBRICS, items

import evenhand
from evenhand.backend import Request
from evenhand.backends import local, local_engine
from evenhand.models import locate
from evenhand.verdict import Reply

LEAST_RATIO = 0.9


class Bare:
    """The runtime alone."""

    def __init__(self, folder: Path, model: str) -> None:
        how = {"n_ctx": local._CONTEXT, "threads": local_engine.cores()}
        self._server = local_engine._start(locate(model).path, str(folder / "bare.sock"), **how)

    def complete(self, prompt: tuple[int, ...], limit: int, grammar: str = "", top: int = 0) -> None:
        """One piece of an answer."""
        body = {"prompt": list(prompt), "n_predict": limit, "temperature": 0.0, "seed": 0, "samplers": ["temperature"]}
        told = self._server.handle_completions({**body, "cache_prompt": True, "n_probs": top, "grammar": grammar})
        if "error" in told:
            raise SystemExit(str(told["error"]))


class Sides:
    """Seconds and tokens of both sides, filled in while a run judges."""

    def __init__(self, bare: Bare) -> None:
        self.tokens: list[int] = []
        self.cached: list[int] = []
        self.judge: list[float] = []
        self.bare: list[float] = []
        self._bare = bare
        self._calls: list[tuple[tuple[int, ...], int, dict[str, Any]]] = []
        self._answer, self._complete = local.LocalBackend._answer, local._Asked._complete

    def recording(self, asked: Any, answer: tuple[int, ...], limit: int, **how: Any) -> Any:
        """Stands for `_Asked._complete`."""
        self._calls.append(((*asked._prompt, *answer), limit, how))
        return self._complete(asked, answer, limit, **how)

    def answering(self, backend: Any, request: Request, *given_up: Any) -> Reply:
        """Stands for `LocalBackend._answer`: the judge's turn, then the runtime's."""
        self._calls.clear()
        began = time.perf_counter()
        reply = self._answer(backend, request, *given_up)
        between = time.perf_counter()
        for prompt, limit, how in self._calls:
            self._bare.complete(prompt, limit, **how)
        self.bare.append(time.perf_counter() - between)
        self.judge.append(between - began)
        self.tokens.append((reply.usage.prompt_tokens or 0) + (reply.usage.completion_tokens or 0))
        self.cached.append(reply.usage.cached_tokens or 0)
        return reply


def main() -> None:
    """Measure, print, and fail below the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=8, help="items of each rubric")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rubrics", nargs="+", choices=RUBRICS, default=RUBRICS)
    parser.add_argument("--model", default=MODEL, help="as in `local:MODEL`")
    parser.add_argument("--least", type=float, default=LEAST_RATIO, help="fail below this ratio")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bare = Bare(Path(folder), given.model)
        found = {name: measure(name, given, bare) for name in given.rubrics}
    told = {
        "model": given.model,
        "threads of a prompt": local_engine.cores(),
        "threads of a token": local_engine._THREADS_OF_ONE_TOKEN,
    }
    print(json.dumps({**told, **found}, indent=1))
    if any(one["ratio"] < given.least for one in found.values()):
        sys.exit(f"a ratio is below {given.least}")


def measure(name: str, given: argparse.Namespace, bare: Bare) -> dict[str, Any]:
    """Medians of some rounds under one rubric."""
    rows = list(itertools.islice(items(name), given.items))
    found = [judged(name, rows, given.model, bare) for _ in range(given.rounds)]
    names = ("tokens_per_s", "bare_tokens_per_s", "ratio")
    medians = {key: round(statistics.median(one[key] for one in found), 3) for key in names}
    return {"rounds": given.rounds, "trials": found[0]["trials"], "tokens": found[0]["tokens"], **medians}


def judged(name: str, rows: list[dict[str, Any]], model: str, bare: Bare) -> dict[str, float]:
    """One run, with the bare runtime after each trial."""
    sides = Sides(bare)
    with (
        mock.patch.object(local.LocalBackend, "_answer", lambda *given: sides.answering(*given)),
        mock.patch.object(local._Asked, "_complete", lambda *given, **how: sides.recording(*given, **how)),
    ):
        evenhand.judge(rows, name, f"local:{model}", reason=False, re_ask=False).close()
    if len(sides.tokens) < 2:
        raise SystemExit("the run was stopped, or has fewer than two trials to ask")
    tokens, judge, alone = sum(sides.tokens[1:]), sum(sides.judge[1:]), sum(sides.bare[1:])
    rates = {"tokens_per_s": tokens / judge, "bare_tokens_per_s": tokens / alone, "ratio": alone / judge}
    return {"trials": len(sides.tokens) - 1, "tokens": tokens, "cached": sum(sides.cached[1:]), **rates}


if __name__ == "__main__":
    main()
