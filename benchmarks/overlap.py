"""A judged run of doc-qa and a plain overlap of characters (chrF) against people's scores, side by side.

    python benchmarks/overlap.py RUN --human human_score
    python benchmarks/overlap.py RUN --human label --right Yes

A judge is worth its price where it beats the overlap of answer and reference, which costs nothing. Needs sacrebleu.
Prints JSON: Spearman's rho of the judge's stated and expected correctness and of chrF with the human score, and the
judge's less that of chrF, each with a bootstrap interval clustered by question.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.stats import spearmanr

import evenhand

try:
    from sacrebleu.metrics import CHRF
except ImportError:
    raise SystemExit("this needs sacrebleu: pip install sacrebleu") from None

DRAWS = 2_000


def references(row: dict[str, Any]) -> list[str]:
    """The reference answers of a row; several short ones stand in one line."""
    text = str(row["context"])
    head = "Acceptable answers: "
    return [part.strip() for part in text.removeprefix(head).split(";")] if text.startswith(head) else [text]


def scores(run: str, human: str, right: str | None) -> Iterator[tuple[str, float, float, float, float]]:
    """Question, human score, stated and expected correctness, chrF."""
    opened, chrf = evenhand.Run(run), CHRF()
    expected = {row["id"]: row["correctness"] for row in opened.rows(value="expected")}
    for row in opened.rows():
        if row["correctness"] is None:
            continue
        said = float(row[human]) if right is None else float(row[human] == right)
        overlap = chrf.sentence_score(str(row["answer"]), references(row)).score
        yield row["question"], said, row["correctness"], expected[row["id"]], overlap


def rho(human: np.ndarray, values: np.ndarray) -> float:
    """Spearman's rho; 0 where a resample has one value throughout."""
    if len(set(human)) < 2 or len(set(values)) < 2:
        return 0.0
    return float(spearmanr(human, values).statistic)


def interval(of: Callable[[np.ndarray], float], groups: list[np.ndarray], seed: int = 0) -> dict[str, Any]:
    """Value and percentile interval of a figure of row numbers, questions drawn with replacement."""
    draw = np.random.default_rng(seed)
    found = [of(np.concatenate([groups[i] for i in draw.integers(0, len(groups), len(groups))])) for _ in range(DRAWS)]
    low, high = np.percentile(found, [2.5, 97.5])
    return {"value": round(of(np.concatenate(groups)), 3), "ci": [round(float(low), 3), round(float(high), 3)]}


def main() -> None:
    """Print the figures of one run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--human", required=True, help="column of the human score or label")
    parser.add_argument("--right", help="the label that counts as 1, where the column holds labels")
    given = parser.parse_args()
    questions, *columns = zip(*scores(given.run, given.human, given.right), strict=True)
    human, stated, expected, overlap = (np.array(column) for column in columns)
    numbers = np.unique(np.array(questions), return_inverse=True)[1]
    groups = [np.flatnonzero(numbers == g) for g in range(int(numbers.max()) + 1)]
    told = {"run": given.run, "n": len(human), "questions": len(groups)}
    for name, values in (("stated", stated), ("expected", expected), ("chrF", overlap)):
        told[name] = interval(lambda rows, values=values: rho(human[rows], values[rows]), groups)  # type: ignore[misc]
    for name, values in (("stated", stated), ("expected", expected)):
        told[f"{name} less chrF"] = interval(
            lambda rows, values=values: rho(human[rows], values[rows]) - rho(human[rows], overlap[rows]),  # type: ignore[misc]
            groups,
        )
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
