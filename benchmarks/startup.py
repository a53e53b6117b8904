"""How long ``evenhand --help`` and ``import evenhand`` take beside an empty Python: medians in ms, as JSON.

python benchmarks/startup.py
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python": [sys.executable, "-c", "pass"],
    "import evenhand": [sys.executable, "-c", "import evenhand"],
    "evenhand --help": [sys.executable, "-m", "evenhand", "--help"],
}


def main(rounds: int = 15) -> None:
    """Time the commands in turn, so that a busy moment hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        for name, command in COMMANDS.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            times[name].append((time.perf_counter() - start) * 1000)
    print(json.dumps({name: round(statistics.median(seen), 1) for name, seen in times.items()}))


if __name__ == "__main__":
    main()
