"""A run by this process against the same run by one and by two workers over Ray, side by side.

    python benchmarks/ray_engine.py            # --smoke for a small one

A fake server answers after 50 ms. Each run has a process of its own, with a Ray cluster of so many processors on this
machine, and they take turns. Prints JSON: for each the medians of judgments a second (from the first one on, without
the start of a cluster and its workers), of the seconds of that start, and of the CPU seconds of the process that gives
out the trials; and whether all sent a request for each item.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from evenhand.testing.server import FakeServer

WORKERS = (0, 1, 2)  # 0 is the local engine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--smoke", action="store_true", help="300 items, once")
    parser.add_argument("--one", nargs=3, metavar=("WORKERS", "URL", "FILE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(int(given.one[0]), given.one[1], given.one[2], given.concurrency)))
        return
    items, rounds = (300, 1) if given.smoke else (given.items, given.rounds)
    print(json.dumps(measure(items, rounds, given.concurrency), indent=2))


def measure(items: int, rounds: int, concurrency: int) -> dict[str, Any]:
    """All in turn, so that a busy moment hits all."""
    seen: dict[int, list[dict[str, float]]] = {workers: [] for workers in WORKERS}
    requests = set()
    with tempfile.TemporaryDirectory() as name, FakeServer(latency="50") as server:
        path = Path(name) / "items.jsonl"
        rows = ({"id": f"q{i}", "question": f"What is {i}?", "answer": f"It is {i}."} for i in range(items))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        for _ in range(rounds):
            for workers in WORKERS:
                server.reset()
                command = [sys.executable, __file__, "--concurrency", str(concurrency)]
                command += ["--one", str(workers), server.url, str(path)]
                found = subprocess.run(command, check=True, capture_output=True, text=True)
                seen[workers].append(json.loads(found.stdout.splitlines()[-1]))
                requests.add(server.stats()["requests"])
    told = {
        "local" if not workers else f"ray, {workers} workers": {
            key: round(statistics.median(run[key] for run in runs), 2) for key in runs[0]
        }
        for workers, runs in seen.items()
    }
    return {"items": items, "rounds": rounds, "concurrency": concurrency, "equal": requests == {items}, "runs": told}


def one(workers: int, url: str, path: str, concurrency: int) -> dict[str, float]:
    """One run, in this process."""
    from evenhand.api import make_spec
    from evenhand.run import Progress, run
    from evenhand.runners import on_ray

    class Clock(Progress):
        first = last = 0.0

        def done(self, _: Any) -> None:
            Clock.first = Clock.first or time.perf_counter()
            Clock.last = time.perf_counter()

    began = time.perf_counter()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if workers:
            import ray

            on_ray._begin(folder, workers)
        options: dict[str, Any] = {"engine": "ray"} if workers else {}
        spec = make_spec(
            path, "doc-qa", "openai:judge", out=f"{folder}/run", base_url=url, concurrency=concurrency, re_ask=False,
            **options,
        )  # fmt: skip
        outcome = asyncio.run(run(spec, progress=Clock()))
        if workers:
            ray.shutdown()
    own = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "judgments_a_second": (outcome.asked - 1) / (Clock.last - Clock.first),
        "start_s": Clock.first - began,
        "cpu_s": own.ru_utime + own.ru_stime,
    }


if __name__ == "__main__":
    main()
