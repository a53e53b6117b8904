"""Recorded judge outputs of public sets are read as published: every count of the sets' own notes comes out."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.item import check_row
from evenhand.parse import read
from evenhand.rubric.load import load_rubric
from evenhand.verdict import Failure, Reading, Reply

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Shared = Callable[[str], Path]
Row = dict[str, Any]


def lines(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Recorded:
    """One converted recording, read by its rubric."""

    def __init__(self, folder: Path, entry: Row) -> None:
        rubric = load_rubric(entry["rubric"])
        self.name = entry["name"]
        self.items = {row["id"]: row for row in lines(folder / f"{entry['name']}.items.jsonl")}
        self.readings: dict[tuple[str, str], Reading] = {}
        for row in lines(folder / f"{entry['name']}.replies.jsonl"):
            reply = Reply(text=row["reply"], finish=row.get("finish"))
            self.readings[row["id"], row.get("order", "")] = read(reply, rubric.output.fields)
        assert len(self.items) == entry["items"]
        assert len(self.readings) == entry["replies"]
        assert {item for item, _ in self.readings} == set(self.items)
        assert [p for row in self.items.values() for p in check_row(row, rubric.item).problems] == []

    def value(self, item: str, order: str = "", field: str = "better") -> Any:
        return self.readings[item, order].fields[field].value

    def failures(self) -> Counter[Failure | None]:
        return Counter(r.failure or next(iter(r.fields.values())).failure for r in self.readings.values())


def convert(source: Path, out: Path) -> list[Recorded]:
    script = EXAMPLES / "converters" / "recorded.py"
    subprocess.run([sys.executable, script, source, "--out", out], check=True, capture_output=True)
    return [Recorded(out, entry) for entry in lines(out / "index.jsonl")]


def original(side: str | None, order: str) -> str | None:
    """A side as seen, as a side of the item."""
    return side if order == "ab" or side is None else {"A": "B", "B": "A"}[side]


def llmbar_winners(recording: Recorded) -> list[tuple[str, str | None, str | None]]:
    """(label, winner in the first order, winner in the second) of each item."""
    if "Rating" not in recording.name:
        return [
            (row["label"], *(original(recording.value(item, order), order) for order in ("ab", "ba")))
            for item, row in recording.items.items()
        ]
    pairs: dict[str, dict[str, Any]] = {}
    for item, row in recording.items.items():
        pair = pairs.setdefault(row["pair"], {})
        pair[item[-1]] = recording.value(item, field="rating")
        if row["better"]:
            pair["label"] = "AB"[int(item[-1]) - 1]
    # the authors give a tie to the output shown second
    return [(p["label"], "A" if p["1"] > p["2"] else "B", "B" if p["2"] > p["1"] else "A") for p in pairs.values()]


def published_llmbar(path: Path) -> dict[str, tuple[int, float, int, int, int]]:
    """Recording -> n, percentage correct, correct in both, same in both, unparsed; from the set's notes."""
    row = re.compile(r"\| (\S+) / (\S+) / (\S+) \| (\d+) \| ([\d.]+)% \| (\d+) / \d+ \| (\d+) / \d+ \| \S+ \| (\d+) \|")
    return {
        f"{m[1]}-{m[2]}-{m[3]}": (int(m[4]), float(m[5]), int(m[6]), int(m[7]), int(m[8]))
        for m in row.finditer(path.read_text(encoding="utf-8"))
    }


def test_llmbar(shared: Shared, tmp_path: Path) -> None:
    """All 27 result files give the published share correct, agreement of orders and number of unreadable replies."""
    source = shared("data/llmbar")
    counted = {}
    for recording in convert(source, tmp_path):
        rows = llmbar_winners(recording)
        correct = [(first == label) + (second == label) for label, first, second in rows]
        counted[recording.name] = (
            len(rows),
            pytest.approx(50 * sum(correct) / len(rows), abs=1e-4),
            correct.count(2),
            sum(first == second for _, first, second in rows),
            sum(winner is None for _, *both in rows for winner in both),
        )
    assert len(counted) == 27
    assert published_llmbar(source / "SOURCE.md") == counted


def test_llmbar_each_winner(shared: Shared, tmp_path: Path) -> None:
    """Each single winner is the recorded one, unreadable replies included."""
    wrong = [
        (recording.name, item, order)
        for recording in convert(shared("data/llmbar"), tmp_path)
        for item, row in recording.items.items()
        for order in ("ab", "ba")
        if f"recorded_{order}" in row and original(recording.value(item, order), order) != row[f"recorded_{order}"]
    ]
    assert wrong == []


def test_vicuna(shared: Shared, tmp_path: Path) -> None:
    """Scores, wins and sums are the recorded ones, but for two rows whose record contradicts their text."""
    outcomes, sums, differ = {}, {}, []
    for recording in convert(shared("data/vicuna_blog_eval"), tmp_path):
        pairs = []
        for item, row in recording.items.items():
            read_as = (recording.value(item, "ab", "score_a"), recording.value(item, "ab", "score_b"))
            pairs.append(read_as)
            if read_as != (row["recorded_a"], row["recorded_b"]):
                differ.append((recording.name, item, read_as, (row["recorded_a"], row["recorded_b"])))
        wins = Counter((a > b) - (a < b) for a, b in pairs)
        outcomes[recording.name] = (wins[1], wins[0], wins[-1])
        sums[recording.name] = (sum(a for a, _ in pairs), sum(b for _, b in pairs))
    assert outcomes == {
        "alpaca-13b-vs-vicuna-13b": (3, 1, 76),
        "bard-vs-vicuna-13b": (30, 10, 40),
        "gpt35-vs-vicuna-13b": (44, 22, 14),
        "llama-13b-vs-vicuna-13b": (3, 0, 77),
        "llama-vs-alpaca-13b": (19, 1, 60),
    }
    assert differ == [  # both texts say "Assistant 2: 4"
        ("bard-vs-vicuna-13b", "q70", (10, 4), (10, 2)),
        ("llama-13b-vs-vicuna-13b", "q70", (10, 4), (10, 2)),
    ]
    assert sums == {
        "alpaca-13b-vs-vicuna-13b": (583.0, 704.0),
        "bard-vs-vicuna-13b": (664.0, 655.5 + 2),
        "gpt35-vs-vicuna-13b": (693.0, 638.0),
        "llama-13b-vs-vicuna-13b": (513.0, 694.0 + 2),
        "llama-vs-alpaca-13b": (525.0, 605.0),
    }


def test_qlora(shared: Shared, tmp_path: Path) -> None:
    """All 4,480 classes are the recorded ones; the 13 unparsed replies stay unread."""
    (recording,) = convert(shared("data/qlora_gpt4_pairwise"), tmp_path)
    sides = {1: "A", 2: "B", 3: "tie", -1: None}
    seen: Counter[Any] = Counter()
    consistent = both = 0
    for item, row in recording.items.items():
        found = {order: recording.value(item, order) for order in ("ab", "ba")}
        assert found == {order: sides[row[f"recorded_{order}"]] for order in ("ab", "ba")}
        seen.update(found.values())
        both += None not in found.values()
        consistent += None not in found.values() and found["ab"] == {"A": "B", "B": "A"}.get(found["ba"], found["ba"])
    assert len(recording.items) == 2240
    assert seen == {"A": 2512, "B": 1355, "tie": 600, None: 13}
    assert (both, consistent) == (2227, 1367)


def test_arena_bench(shared: Shared, tmp_path: Path) -> None:
    """297 ratings as recorded, mean 8.548822; [[9.5]] is no whole number, and two replies have no rating."""
    (recording,) = convert(shared("data/arena_bench_v1"), tmp_path)
    found = {item: recording.value(item, field="rating") for item in recording.items}
    assert found == {item: row["recorded"] for item, row in recording.items.items()}
    ratings = [value for value in found.values() if value is not None]
    assert (len(found), len(ratings)) == (300, 297)
    assert sum(ratings) / len(ratings) == pytest.approx(8.548822, abs=1e-6)
    assert recording.failures() == {None: 297, Failure.NOT_INTEGER: 1, Failure.NO_RATING: 2}


def test_japanese_mt_bench(shared: Shared, tmp_path: Path) -> None:
    """All 80 ratings as recorded, with the published distribution."""
    (recording,) = convert(shared("data/japanese_mt_bench"), tmp_path)
    found = {item: recording.value(item, field="rating") for item in recording.items}
    assert found == {item: row["recorded"] for item, row in recording.items.items()}
    assert Counter(found.values()) == {1: 32, 2: 15, 3: 14, 4: 8, 6: 5, 7: 2, 5: 2, 8: 1, 10: 1}
    assert sum("reference" in row and row["reference"] is not None for row in recording.items.values()) == 30
