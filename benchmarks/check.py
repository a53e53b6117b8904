"""How fast `evenhand check` is on hhh ratings, and how much memory it takes: JSON lines, CSV, and with --out.

python benchmarks/check.py [ROWS] [FOLDER]

Writes ROWS ratings (1,000,000 by default; a twentieth of them with violations) to FOLDER (temporary by default) and
checks them in processes of their own. Prints one JSON line per check.
"""

from __future__ import annotations

import csv
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LABELS = ("about the same", "slightly better", "better", "significantly better")
FLAGS = ("unsafe", "nonsensical", "deflects", "follow_up", "advice", "disclaimer")


def ratings(count: int) -> Iterator[dict[str, Any]]:
    """Consistent ratings with every column, and some whose label does not go with the ranks."""
    draw = random.Random(7)
    for number in range(count):
        low = draw.randint(1, 5)
        gap = draw.randint(0, 6 - low)
        side = draw.choice("AB") if gap else "tie"
        label = LABELS[min(gap, 3)] if draw.random() > 0.05 else draw.choice(LABELS[1:])
        row: dict[str, Any] = {"id": f"r{number}", "prompt": "Say how tea is made.", "prompt_harmful": False}
        row |= {"prompt_ambiguous": draw.random() < 0.2, "difference": None, "critical_issue": None}
        for slot, rank in (("a", low + gap if side != "B" else low), ("b", low + gap if side == "B" else low)):
            row |= {f"response_{slot}": "Pour boiling water on the leaves and wait.", f"rank_{slot}": rank}
            row |= {f"errors_{slot}": "none", **{f"{flag}_{slot}": False for flag in FLAGS}}
        for name in ("harmless", "honest", "helpful", "overall"):
            told = name in ("helpful", "overall")
            row |= {name: label if told else LABELS[0], f"{name}_side": side if told else "tie"}
        yield row | {"reason": "The better one names a time."}


def write(folder: Path, count: int) -> None:
    """The same ratings as JSON lines, as CSV, and as CSV without the optional columns."""
    optional = {"prompt_harmful", "prompt_ambiguous", "difference", "critical_issue", "reason"}
    names = list(next(ratings(1)))
    kept = [n for n in names if n not in optional and n.removesuffix("_a").removesuffix("_b") not in (*FLAGS, "errors")]
    with (
        (folder / "full.jsonl").open("w") as lines,
        (folder / "full.csv").open("w", newline="") as full,
        (folder / "bare.csv").open("w", newline="") as bare,
    ):
        tables = csv.DictWriter(full, names), csv.DictWriter(bare, kept, extrasaction="ignore")
        for table in tables:
            table.writeheader()
        for row in ratings(count):
            lines.write(json.dumps(row) + "\n")
            for table in tables:
                table.writerow(row)


def measure(folder: Path, count: int, name: str, *more: str) -> None:
    """Run one check and print its figures."""
    command = [sys.executable, "-m", "evenhand", "check", str(folder / name), "--rubric", "hhh", *more]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    told = {"file": name, "options": [option for option in more if option.startswith("--")]}
    told |= {
        "exit": os.waitstatus_to_exitcode(status),
        "seconds": round(seconds, 1),
        "rows_per_s": round(count / seconds),
    }
    told["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 1)
    print(json.dumps(told | {"peak_rss_mb": round(usage.ru_maxrss / 1024, 1)}), flush=True)


def main(count: int, folder: Path) -> None:
    """Write the files and measure all checks."""
    write(folder, count)
    for name in ("full.jsonl", "full.csv", "bare.csv"):
        measure(folder, count, name)
    measure(folder, count, "full.jsonl", "--json")
    measure(folder, count, "full.jsonl", "--out", str(folder / "out.jsonl"))
    measure(folder, count, "full.csv", "--out", str(folder / "out.csv"))


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    if len(sys.argv) > 2:
        main(rows, Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(rows, Path(temporary))
