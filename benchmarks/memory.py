"""Peak memory of commands over inputs of several sizes: MB by command and size, as JSON.

    python benchmarks/memory.py --sizes 2000,100000

Each command is a process of its own: ``judge`` with the fake judge, its resume with nothing left to ask, ``show``, and
``check`` of ratings. With ``--base-url`` a judge ``openai`` at that address is asked too, 64 trials at once. The bar:
no more than 50 MB over the first size.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BAR_MB = 50
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def write(path: Path, rows: Iterator[dict[str, Any]]) -> str:
    """Rows as JSON lines."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return str(path)


def items(n: int) -> Iterator[dict[str, Any]]:
    """Questions about an invented router, each with an answer of its own."""
    context = "To reset the router, hold the button on its back until the light blinks twice."
    for i in range(n):
        yield {"id": f"q{i}", "question": f"How is router {i} reset?", "context": context, "answer": f"Hold it. ({i})"}


def ratings(n: int) -> Iterator[dict[str, Any]]:
    """Ratings of as many answers."""
    for i in range(n):
        yield {"id": f"q{i}", "correctness": i % 11, "comprehensiveness": i * 7 % 11, "readability": i * 3 % 11}


def peak(*arguments: str) -> float:
    """Most memory that a command held, in MB."""
    command = [sys.executable, "-c", PEAK, sys.executable, "-m", "evenhand", *arguments]
    return round(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1024, 1)


def peaks(n: int, folder: Path, url: str | None) -> dict[str, float]:
    """Peaks of all commands at one size."""
    data = write(folder / f"items{n}.jsonl", items(n))
    rated = write(folder / f"ratings{n}.jsonl", ratings(n))
    judge = ["judge", data, "--rubric", "doc-qa", "--judge"]
    run = ["--out", str(folder / f"run{n}")]
    found = {
        "judge": peak(*judge, "fake", *run),
        "resume": peak(*judge, "fake", *run),
        "show": peak("show", run[-1]),
        "check": peak("check", rated, "--rubric", "doc-qa", "--partial"),
    }
    if url is not None:
        asked = ["openai:judge", "--base-url", url, "--concurrency", "64", "--out", str(folder / f"asked{n}")]
        found["judge openai"] = peak(*judge, *asked)
    return found


def main() -> int:
    """Measure all sizes; 1 where one passes the bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default="200,2000", help="the first is what the others are held against")
    parser.add_argument("--base-url", help="of a server of chat completions")
    given = parser.parse_args()
    sizes = [int(size) for size in given.sizes.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        found = {n: peaks(n, Path(folder), given.base_url) for n in sizes}
    over = max(found[n][name] - first for n in sizes for name, first in found[sizes[0]].items())
    print(json.dumps({"peak_mb": found, "over_first_mb": round(over, 1), "bar_mb": BAR_MB}))
    return int(over > BAR_MB)


if __name__ == "__main__":
    sys.exit(main())
