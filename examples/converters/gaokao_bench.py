"""GAOKAO-Bench (GPT-4's answers to Chinese exam questions, marked by GPT-4-1106) -> items for alignmm-critic.

`recorded_points` of `full_points` is the published judge's mark; there is no human mark of single answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from _common import Row, main

_FILE = re.compile(r"gpt-4-0314_\d{4}-\d{4}_(.+)_wo_marking_criterion\.json")
#: Kind of question -> type of the rubric whose notes fit it.
_TYPES = {
    "Chemistry_Open-ended_Questions": "Problem",
    "Chinese_Language_Ancient_Poetry_Reading": "Reasoning",
    "Chinese_Language_Famous_Passages_and_Sentences_Dictation": "Knowledge",
    "Chinese_Language_Language_and_Writing_Skills_Open-ended_Questions": "Writing",
    "Chinese_Language_Literary_Text_Reading": "Reasoning",
    "Chinese_Language_Practical_Text_Reading": "Reasoning",
    "English_Language_Error_Correction": "Problem",
    "Math_II_Fill-in-the-Blank": "Problem",
    "Math_I_Fill-in-the-Blank": "Problem",
    "Math_I_Open-ended_Questions": "Problem",
    "Physics_Open-ended_Questions": "Problem",
    "Political_Science_Open-ended_Questions": "Knowledge",
}


def rows(source: Path, seed: int) -> Iterator[Row]:  # noqa: ARG001  # nothing is drawn at random
    """One item a question."""
    for path in sorted(source.glob("gpt-4-0314_*.json")):
        found = _FILE.fullmatch(path.name)
        if found is None:
            raise ValueError(f"not a file of this data set: {path.name}")
        for example in json.loads(path.read_text(encoding="utf-8"))["example"]:
            yield {
                "id": f"{found[1].replace('-', '_')}_{example['index']:03d}",  # no "-": these are no paraphrases
                "question": example["question"].strip(),
                "reference": example["standard_answer"].strip(),
                "answer": example["model_output"].strip(),
                "type": _TYPES[found[1]],
                "recorded_points": sum(example["model_correction_score"]),
                "full_points": float(example["score"]),
                "subset": found[1],
            }


if __name__ == "__main__":
    main(__doc__ or "", rows, "subset")
