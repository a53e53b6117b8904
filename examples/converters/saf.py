"""SAF (student answers with feedback; English and German) -> items for the rubric doc-qa.

The reference answer stands as context. `human_score` is the human score times ten, on the scale 0-10.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

from _common import Row, main


def rows(source: Path, seed: int) -> Iterator[Row]:  # noqa: ARG001  # nothing is drawn at random
    """One item a student answer."""
    for path in sorted(source.glob("unseen_answers/*/*.xml")):
        question = ET.parse(path).getroot()
        references = [_text(reference) for reference in question.iterfind("referenceAnswers/referenceAnswer")]
        for n, answer in enumerate(question.iterfind("studentAnswers/studentAnswer")):
            yield {
                "id": f"{path.parent.name}-{path.stem}-{n:03d}",
                "question": _text(question.find("questionText")),
                "answer": _text(answer.find("response")),
                "context": "\n\n".join(references),
                "context_is": "reference",
                "human_score": round(float(_text(answer.find("score"))) * 10, 6),
                "label": _text(answer.find("verification_feedback")),
                "human_reason": _text(answer.find("response_feedback")),
                "subset": path.parent.name,
            }


def _text(element: ET.Element | None) -> str:
    return (element.text or "").strip() if element is not None else ""


if __name__ == "__main__":
    main(__doc__ or "", rows, "label")
