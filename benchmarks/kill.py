"""Kill a run again and again, resume it, and count what was lost, doubled or paid twice.

    python benchmarks/kill.py --trials 2000 --kills 30

Prints one JSON object. A killed run must end with the same verdicts as one left alone.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evenhand.testing.server import FakeServer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    print(json.dumps(measure(given.trials, given.kills, given.concurrency, given.seed)))


def measure(trials: int, kills: int, concurrency: int, seed: int) -> dict[str, Any]:
    """Run the same items with and without kills and compare."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name, FakeServer(latency="40") as server:
        folder = Path(name)
        data = folder / "items.jsonl"
        rows = ({"id": f"q{i}", "question": f"What is {i}?", "answer": f"It is {i}."} for i in range(trials))
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        calm = command(data, folder / "calm", server.url, concurrency)
        subprocess.run(calm, check=True, capture_output=True)
        paid_calm = server.stats()["requests"]
        server.reset()
        struck = command(data, folder / "struck", server.url, concurrency)
        done_at_kill = [killed(struck, folder / "struck", rng) for _ in range(kills)]
        subprocess.run(struck, check=True, capture_output=True)
        paid_struck = server.stats()["requests"]
        before, after = verdicts(folder / "calm"), verdicts(folder / "struck")
    return {
        "trials": trials,
        "kills": len(done_at_kill),
        "stored_when_killed": done_at_kill,
        "lost": len(set(before) - set(after)),
        "doubled": len(after) - len(set(after)),
        "equal": sorted(before) == sorted(after),
        "requests_left_alone": paid_calm,
        "requests_killed": paid_struck,
        "paid_twice": paid_struck - paid_calm,
        "bound": kills * concurrency,
    }


def command(data: Path, out: Path, url: str, concurrency: int) -> list[str]:
    """The command line that starts or resumes the run."""
    options = ["--rubric", "doc-qa", "--judge", "openai:judge", "--base-url", url, "--out", str(out)]
    return [sys.executable, "-m", "evenhand", "judge", str(data), *options, "--concurrency", str(concurrency)]


def killed(run: list[str], folder: Path, rng: random.Random) -> int:
    """Start the run, kill it at a random moment after its first new verdict; how many were stored then."""
    before = stored(folder)
    process = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and stored(folder) == before:
        time.sleep(0.01)
    time.sleep(rng.uniform(0, 0.25))
    process.send_signal(signal.SIGKILL)
    process.wait()
    return stored(folder)


def stored(folder: Path) -> int:
    """Verdicts in the store right now."""
    import sqlite3

    if not (folder / "run.sqlite").exists():
        return 0
    try:
        with sqlite3.connect(f"file:{folder / 'run.sqlite'}?mode=ro", uri=True) as store:
            return int(store.execute("SELECT count(*) FROM trial").fetchone()[0])
    except sqlite3.Error:
        return 0


def verdicts(folder: Path) -> list[str]:
    """All verdicts of a run, as comparable text."""
    from evenhand import Run

    return [json.dumps(row, sort_keys=True) for row in Run(folder).rows(long=True)]


if __name__ == "__main__":
    main()
