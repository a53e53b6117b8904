"""Recorded judge outputs of public sets -> items and replies, to be judged again without a single call.

Writes for each recording NAME.items.jsonl, NAME.replies.jsonl and one line of index.jsonl, which names the rubric of
its text format (../recorded) and the presentation orders it holds. Then, for instance::

    evenhand judge OUT/NAME.items.jsonl --rubric RUBRIC --judge replay:OUT/NAME.replies.jsonl --orders both
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from _common import Row, read, write

_RUBRICS = Path(__file__).resolve().parent.parent / "recorded"
_ARENA = re.compile(
    r"\[Question\]\n(?P<question>.*)\n\n\[The Start of Reference Answer\]\n(?P<reference>.*)\n"
    r"\[The End of Reference Answer\]\n\n\[The Start of Assistant's Answer\]\n(?P<answer>.*)\n"
    r"\[The End of Assistant's Answer\]",
    re.DOTALL,
)
_JAPANESE = re.compile(
    r"\[指示\]\n.*?\n\n\[質問\]\n(?P<question>.*?)\n\n"
    r"(?:\[参考回答の開始\]\n(?P<reference>.*)\n\[参考回答の終了\]\n\n)?"
    r"\[アシスタントの回答の開始\]\n(?P<answer>.*)\n\[アシスタントの回答の終了\]\s*",
    re.DOTALL,
)


@dataclass(frozen=True)
class Recording:
    """One recorded judge on one set.

    Attributes:
        name: Name of its files.
        rubric: File name of the rubric of its text format, without suffix.
        items, replies: Lines of its two files.
        orders: Presentation orders it holds: "both", "ab", or "" for single responses.
    """

    name: str
    rubric: str
    items: list[Row]
    replies: list[Row]
    orders: str = ""


def llmbar(source: Path) -> Iterator[Recording]:
    """LLMBar: every result file; pairs in both orders, or a rating for each of the two outputs."""
    for path in sorted(source.glob("*/evaluators/*/*/result.json")):
        subset, _, judge, strategy, _ = path.relative_to(source).parts
        rows = json.loads(path.read_text(encoding="utf-8"))
        name = f"{subset}-{judge}-{strategy}"
        if strategy.startswith("Rating"):
            yield _llmbar_ratings(name, subset, rows)
        else:
            # the authors look for "Output (a) is better" where reasons come first, else for lines "Output (a)"
            reasons_first = "CoT" in strategy and judge != "PaLM2"
            yield _llmbar_pairs(name, subset, rows, "llmbar-sentence" if reasons_first else "llmbar-line")


def _llmbar_pairs(name: str, subset: str, rows: list[Row], rubric: str) -> Recording:
    items, replies = [], []
    for n, row in enumerate(rows):
        item = f"{subset}-{n:03d}"
        last = row["results"][-1]  # earlier elements are metrics, references and former rounds
        recorded = {order: last[f"swap = {order == 'ba'}"] for order in ("ab", "ba")}
        items.append(
            {
                "id": item,
                "prompt": row["input"],
                "response_a": row["output_1"],
                "response_b": row["output_2"],
                "label": _side(row["label"]),
                "recorded_ab": _side(recorded["ab"]["winner"]),
                "recorded_ba": _side(recorded["ba"]["winner"]),
            }
        )
        for order, said in recorded.items():
            text, finish = said["completion"]
            replies.append({"id": item, "order": order, "reply": text, "finish": finish})
    return Recording(name, rubric, items, replies, "both")


def _llmbar_ratings(name: str, subset: str, rows: list[Row]) -> Recording:
    items, replies = [], []
    for n, row in enumerate(rows):
        for output in ("1", "2"):
            item = f"{subset}-{n:03d}-{output}"
            text, finish = row["results"][-1][f"score_{output}"]
            items.append(
                {
                    "id": item,
                    "question": row["input"],
                    "answer": row[f"output_{output}"],
                    "pair": f"{subset}-{n:03d}",
                    "better": str(row["label"]) == output,
                }
            )
            replies.append({"id": item, "reply": text, "finish": finish})
    return Recording(name, "llmbar-rating", items, replies)


def _side(winner: str | int | None) -> str | None:
    return {"1": "A", "2": "B", "None": None}[str(winner)]


def vicuna_blog_eval(source: Path) -> Iterator[Recording]:
    """Vicuna's first reviews by GPT-4: two scores, one order. Answers that are not there are null."""
    questions = {row["question_id"]: row for row in read(source / "question.jsonl")}
    answers: dict[tuple[str, int], str] = {}
    for path in source.glob("answer/answer_*.jsonl"):
        model = path.stem.removeprefix("answer_")
        answers |= {(model, row["question_id"]): row["text"] for row in read(path)}
    for path in sorted(source.glob("review/review_*.jsonl")):
        first, second = path.stem.removeprefix("review_").split("_")
        items, replies = [], []
        for row in read(path):
            number = row["question_id"]
            items.append(
                {
                    "id": f"q{number}",
                    "prompt": questions[number]["text"],
                    "response_a": answers.get((first, number)),
                    "response_b": answers.get((second, number)),
                    "model_a": first,
                    "model_b": second,
                    "category": questions[number]["category"],
                    "recorded_a": row["score"][0],
                    "recorded_b": row["score"][1],
                }
            )
            replies.append({"id": f"q{number}", "order": "ab", "reply": row["text"]})
        yield Recording(f"{first}-vs-{second}", "vicuna-scores", items, replies, "ab")


def qlora_gpt4_pairwise(source: Path) -> Iterator[Recording]:
    """QLoRA's three-class reviews: 8 systems, 80 questions, each pair in both orders. The answers are not there."""
    items: dict[str, Row] = {}
    replies = []
    for path in sorted(source.glob("*-vs-*-threeclass.jsonl")):
        names = path.name.removesuffix("-gpt-4-reviewer-threeclass.jsonl").split("-vs-")
        first, second = (_system(name) for name in names)
        order = "ab" if first < second else "ba"
        one, other = sorted((first, second))
        for row in read(path):
            item = f"{one}-{other}-q{row['question_id']}"
            line = items.setdefault(
                item,
                {
                    "id": item,
                    "prompt": f"Vicuna question {row['question_id']}",
                    "response_a": None,
                    "response_b": None,
                    "model_a": one,
                    "model_b": other,
                },
            )
            line[f"recorded_{order}"] = row["score"]
            replies.append({"id": item, "order": order, "reply": row["text"]})
    yield Recording("qlora-threeclass", "qlora-threeclass", list(items.values()), replies, "both")


def _system(name: str) -> str:
    return name.removeprefix("answer-").removesuffix("-vicuna-generations-topp0.9-temp0.7")


def arena_bench_v1(source: Path) -> Iterator[Recording]:
    """Arena-Bench: 300 answers rated [[1]] to [[10]] against a reference."""
    yield _ratings("arena-bench-v1", source / "gpt-4-0314.jsonl", _ARENA)


def japanese_mt_bench(source: Path) -> Iterator[Recording]:
    """Japanese MT-bench: 80 answers rated [[1]] to [[10]], reasons in Japanese."""
    yield _ratings("japanese-mt-bench", source / "gpt-4_single_80.jsonl", _JAPANESE)


def _ratings(name: str, path: Path, layout: re.Pattern[str]) -> Recording:
    items, replies = [], []
    for row in read(path):
        found = layout.fullmatch(row["user_prompt"])
        if found is None:
            raise ValueError(f"question {row['question_id']} has another layout")
        item = str(row["question_id"])
        items.append({"id": item, **found.groupdict(), "model": row["model"], "recorded": row["score"]})
        replies.append({"id": item, "reply": row["judgment"]})
    return Recording(name, "bracket-rating", items, replies)


SETS: dict[str, Callable[[Path], Iterator[Recording]]] = {
    made.__name__: made for made in (llmbar, vicuna_blog_eval, qlora_gpt4_pairwise, arena_bench_v1, japanese_mt_bench)
}


def main() -> None:
    """Convert one set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="folder of the public data set")
    parser.add_argument("--set", choices=SETS, help="which set it is (default: by the folder's name)")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    given = parser.parse_args()
    if not given.source.is_dir():
        parser.error(f"no folder {given.source}")
    name = given.set or given.source.resolve().name
    if name not in SETS:
        parser.error(f"{name} is no known set; say which it is with --set")
    index = []
    for recording in SETS[name](given.source):
        files = {kind: given.out / f"{recording.name}.{kind}.jsonl" for kind in ("items", "replies")}
        write(files["items"], recording.items)
        write(files["replies"], recording.replies)
        index.append(
            {
                "name": recording.name,
                "rubric": str(_RUBRICS / f"{recording.rubric}.yaml"),
                "orders": recording.orders,
                "items": len(recording.items),
                "replies": len(recording.replies),
            }
        )
    write(given.out / "index.jsonl", index)
    print(f"{len(index)} recordings in {given.out}")


if __name__ == "__main__":
    main()
