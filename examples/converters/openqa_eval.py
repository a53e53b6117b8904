"""OpenQA-eval (NQ301: 1,490 short answers that people found acceptable or not) -> items for the rubric doc-qa.

The gold answers stand as context. `label` is the human decision, `gpt4_label` that of the published GPT-4 judge.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from _common import Row, main, read

_GOLD = "NQ301_text-davinci-003_zeroshot.jsonl"


def rows(source: Path, seed: int) -> Iterator[Row]:  # noqa: ARG001  # nothing is drawn at random
    """One item a model answer."""
    gold = {row["question"]: row["answer"] for row in read(source / _GOLD)}
    judged = {(row["Question"], row["Model answer"]): row["Acceptable?"] for row in _table(source / "NQ301_gpt-4.tsv")}
    seen: Counter[str] = Counter()
    for row in _table(source / "NQ301_human.tsv"):
        question, answer = row["Question"], row["Model answer"]
        yield {
            "id": f"{row['id']}-{seen[row['id']]:02d}",
            "question": question,
            "answer": answer,
            "context": "Acceptable answers: " + "; ".join(gold[question]),
            "context_is": "reference",
            "label": row["Acceptable?"],
            "gpt4_label": judged.get((question, answer)) or None,
        }
        seen[row["id"]] += 1


def _table(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t")


if __name__ == "__main__":
    main(__doc__ or "", rows, "label")
