"""A report of 50,000 items: time and memory to write it, its size, and the time until a browser shows its table.

    python benchmarks/report.py [ITEMS ...]

Memory must not grow with the items: the peak for the largest number is held against that for the smallest. The page
must be ready within 3 s. The judge is `fake`; rows have an answer of some 100 words.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ITEMS = (5_000, 50_000)
MOST_SECONDS = 3.0
MOST_GROWTH = 1.3
_WRITE = """
import resource, sys, time
from evenhand import write_report
start = time.perf_counter()
write_report(sys.argv[1], sys.argv[2])
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def rows(path: Path, count: int) -> None:
    """Rows with answers that differ, of words drawn at random: they compress worse than real ones."""
    draw = random.Random(1)
    words = ["".join(draw.choices("etaoinshrdlucmfwypvbgk", k=draw.randint(2, 9))) for _ in range(4000)]
    with path.open("w", encoding="utf-8") as file:
        for n in range(count):
            answer = " ".join(draw.choices(words, k=100))
            row = {"id": f"q{n}", "question": f"How is tea number {n} made?", "answer": answer, "kind": f"k{n % 7}"}
            file.write(json.dumps({**row, "context": f"Page {n}. {answer[:200]}"}) + "\n")


def opening_time(page: Path) -> float | None:
    """Seconds until the table is filled, None without a browser."""
    found = next((p for name in ("chromium", "chromium-browser") if (p := shutil.which(name))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    if found is None:
        return None
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        opened = browser.new_page()
        start = time.perf_counter()
        opened.goto(page.as_uri())
        opened.wait_for_selector("body[data-ready]")
        seconds = time.perf_counter() - start
        assert opened.locator("[role=rowheader]").count() > 5
        browser.close()
    return seconds


def main() -> int:
    """Measure, print, and end with 1 where a bar is missed."""
    peaks, good = [], True
    for count in [int(n) for n in sys.argv[1:]] or ITEMS:
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            rows(place / "rows.jsonl", count)
            judge = [sys.executable, "-m", "evenhand", "judge", "rows.jsonl", "--judge", "fake", "--out", "run"]
            subprocess.run(judge, cwd=place, check=True, capture_output=True)
            command = [sys.executable, "-c", _WRITE, "run", "report.html"]
            done = subprocess.run(command, cwd=place, check=True, capture_output=True, text=True)
            seconds, peak = map(float, done.stdout.split())
            size = (place / "report.html").stat().st_size / 2**20
            shown = opening_time(place / "report.html")
        peaks.append(peak)
        told = "no browser" if shown is None else f"open in {shown:.2f} s"
        print(f"{count:7,} items: written in {seconds:.1f} s, peak {peak:.0f} MiB, {size:.1f} MiB, {told}")
        good = good and (shown is None or shown <= MOST_SECONDS)
    return 0 if good and max(peaks) <= MOST_GROWTH * min(peaks) else 1


if __name__ == "__main__":
    sys.exit(main())
