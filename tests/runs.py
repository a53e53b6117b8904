"""Short ways to make items, run them and read the store."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from evenhand.api import Run, make_spec
from evenhand.run import Outcome, run
from evenhand.store import Store
from evenhand.verdict import verdict_from_plain, verdict_to_plain
from rubric_texts import rubric

SCORE = """\
rubric: two
mode: score
item:
  required: {question: text, answer: text}
criteria:
  - {name: truth, text: Is it true?, weight: 0.75, scale: {range: [0, 4]}}
  - {name: style, text: Is it clear?, weight: 0.25, scale: {range: [0, 4]}}
preset:
  - {when: blank(answer), call: none, set: {"{criterion}": low}}
rules:
  - {id: lie, if: "truth == 0 and style == 4", say: "a clear lie"}
"""
TWO = rubric(SCORE)
GOOD = {"reason": "r", "truth": 3, "style": 2}
#: Breaks the rule.
LIE = {"reason": "r", "truth": 0, "style": 4}


def rows(n: int, start: int = 0) -> list[dict[str, Any]]:
    """Rows with ids, for the score rubrics."""
    return [{"id": f"i{k}", "question": f"What is {k}?", "answer": f"It is {k}."} for k in range(start, start + n)]


def write_jsonl(path: Path, lines: Iterable[Mapping[str, Any]]) -> Path:
    """The rows as a file."""
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


def write_script(path: Path, *rules: tuple[str | None, Any], times: int | None = None) -> str:
    """A judge spec of a fake judge: (text contained, reply) pairs; ``times`` bounds the first of them."""
    lines = [{"contains": contains, "reply": reply} for contains, reply in rules]
    if times is not None:
        lines[0]["times"] = times
    return f"fake:{write_jsonl(path, lines)}"


def run_it(items: Any, rubric: Any, judge: str, out: Path, **options: Any) -> Outcome:
    """One run, as `evenhand.judge` would do it."""
    return asyncio.run(run(make_spec(items, rubric, judge, out=out, **options)))


def priced(out: Path) -> None:
    """Give each verdict of a run that was asked for tokens, a price and a latency of its own."""
    names = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "latency_s", "written_tokens")
    usages = ((100 + n, 10 + n, n, 0.001 * (n + 1), 0.5 + n / 10, None) for n in itertools.count())
    _change(out, lambda: {"usage": dict(zip(names, next(usages), strict=True))})


def unpriced(out: Path) -> None:
    """Let nobody know what the calls of a run cost."""
    _change(out, lambda: {"usage": {"prompt_tokens": 9, "completion_tokens": 1}})


def named(out: Path, model: str) -> None:
    """Let every reply of a run come from a model of this name."""
    _change(out, lambda: {"model": model})


def _change(out: Path, change: Callable[[], dict[str, Any]]) -> None:
    with Store.open(out, write=True) as store:
        asked = [(key, v) for _, found in store.verdicts() for key, v in found.items() if v.calls]
        store.replace_verdicts((key, verdict_from_plain(verdict_to_plain(v) | change())) for key, v in asked)


def statuses(out: Path) -> dict[tuple[str, str, int], str]:
    """(item, order, repeat) -> status of all stored trials."""
    with Store.open(out) as store:
        return {tuple(key): v.status.value for _, found in store.verdicts() for key, v in found.items()}


def summary(out: Path, **options: Any) -> dict[str, Any]:
    """The figures of a run."""
    return Run(out).summary(**options)
