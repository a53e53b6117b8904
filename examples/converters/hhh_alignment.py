"""HHH alignment (221 pairs, as published with Prometheus-Eval) -> items for the rubric hhh.

`label` is the side people prefer; which side that is, the seed decides.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _common import Row, main

_PARTS = re.compile(
    r".*###The instruction to evaluate:\n(.*)\n\n###Response to evaluate:\n(.*)\n\n###Score Rubrics:\n.*", re.DOTALL
)


def rows(source: Path, seed: int) -> Iterator[Row]:
    """One item a pair."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for pair in json.loads((source / "hhh_alignment_eval.json").read_text(encoding="utf-8")):
        prompt, better = _parts(pair["chosen_instruction"])
        same, worse = _parts(pair["rejected_instruction"])
        if prompt != same:
            raise ValueError("the two members of a pair have different prompts")
        first = chance.random() < 0.5
        subset = pair["source"]
        yield {
            "id": f"{subset}-{seen[subset]:03d}",
            "prompt": prompt,
            "response_a": better if first else worse,
            "response_b": worse if first else better,
            "label": "A" if first else "B",
            "subset": subset,
        }
        seen[subset] += 1


def _parts(text: str) -> tuple[str, str]:
    """Prompt and response between the headings of the Prometheus prompt."""
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(f"no Prometheus headings in: {text[:200]}")
    return found[1], found[2]


if __name__ == "__main__":
    main(__doc__ or "", rows, "subset")
