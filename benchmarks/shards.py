"""Judge many rows in shards on one machine, merge them, and compare with one run over all rows.

    python benchmarks/shards.py --rows 1000000 --shards 8
    python benchmarks/shards.py --rows 2000 --shards 4           # a smoke test

The fake judge answers, so that what is measured is evenhand's own work. Prints one JSON object: wall and CPU seconds,
peak memory of one process, size on disk, and whether the merged run holds rows, verdicts and replies of the one run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

#: What a run holds, but for the times at which it was asked.
HELD = (
    "SELECT seq, id, digest, content, problem FROM item ORDER BY seq",
    'SELECT item, "order", repeat, status, verdict FROM trial ORDER BY item, "order", repeat',
    'SELECT item, "order", repeat, attempt, request, form, reply FROM reply ORDER BY item, "order", repeat, seq',
)


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=len(os.sched_getaffinity(0)), help="processes at once")
    parser.add_argument("--no-single", action="store_true", help="leave the one run out that they are compared with")
    parser.add_argument("--folder", help="where to work, in a folder that is removed again")
    given = parser.parse_args()
    print(json.dumps(measure(given.rows, given.shards, given.at_once, single=not given.no_single, where=given.folder)))


def measure(rows: int, shards: int, at_once: int, *, single: bool = True, where: str | None = None) -> dict[str, Any]:
    """The shards, their merged run, and the one run, as plain data."""
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name)
        data = folder / "items.jsonl"
        with data.open("w", encoding="utf-8") as file:
            for n in range(rows):
                row = {"id": f"q{n:07}", "question": f"What is {n}?", "answer": f"It is {n}, or so they say."}
                file.write(json.dumps(row) + "\n")
        outs = [str(folder / f"shard-{number}") for number in range(1, shards + 1)]
        judge = ["judge", str(data), "--judge", "fake", "--json"]
        began = time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            commands = [[*judge, "--shard", f"{n}/{shards}", "--out", out] for n, out in enumerate(outs, 1)]
            found = summed(pool.map(measured, commands))
        found["wall_s"] = round(time.perf_counter() - began, 2)
        told: dict[str, Any] = {"rows": rows, "shards": shards, "at_once": at_once, "judged": found}
        told["judged"]["bytes"] = sum(size(Path(out)) for out in outs)
        merged = folder / "merged"
        told["merged"] = {**measured(["merge", *outs, "--out", str(merged)]), "bytes": size(merged)}
        if single:
            told["one"] = {**measured([*judge, "--out", str(folder / "one")]), "bytes": size(folder / "one")}
            told["equal"] = digest(merged) == digest(folder / "one")
    return told


def measured(arguments: list[str]) -> dict[str, float]:
    """What one command takes, in a process of its own."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "evenhand", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}")
    return {
        "wall_s": round(time.perf_counter() - began, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / 1024, 1),
    }


def summed(found: Iterable[dict[str, float]]) -> dict[str, float]:
    """CPU of all, and the most memory of one."""
    listed = list(found)
    return {"cpu_s": round(sum(one["cpu_s"] for one in listed), 2), "peak_mb": max(one["peak_mb"] for one in listed)}


def size(run: Path) -> int:
    """Bytes of a run on disk."""
    return sum(file.stat().st_size for file in run.iterdir())


def digest(run: Path) -> str:
    """One digest of all rows, verdicts and replies."""
    found = hashlib.sha256()
    with closing(sqlite3.connect(run / "run.sqlite")) as db:
        for query in HELD:
            for row in db.execute(query):
                found.update(repr(row).encode())
    return found.hexdigest()


if __name__ == "__main__":
    main()
