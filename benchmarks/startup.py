"""How long a command takes to start, beside programs that do little: medians in ms, as JSON.

python benchmarks/startup.py

``--help`` and ``import evenhand`` stand beside an empty Python; the first request of ``evenhand judge``, from the
command's start to its arrival at a server on this machine, beside a script that imports aiohttp and posts. For the
first request there is processor time too. All are run from compiled modules, as an installed package is.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
COMMANDS = {
    "python": ["-c", "pass"],
    "import evenhand": ["-c", "import evenhand"],
    "evenhand --help": ["-m", "evenhand", "--help"],
}
POST = """
import asyncio, json, sys
import aiohttp

async def main():
    async with aiohttp.ClientSession() as session:
        body = json.dumps({"model": "judge", "messages": [{"role": "user", "content": "x"}]})
        async with session.post(sys.argv[1] + "/chat/completions", data=body) as response:
            await response.read()

asyncio.run(main())
"""
Measure = Callable[[list[str], dict[str, str]], tuple[float, float]]


def ended(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor time of a command, in ms."""
    start, before = time.perf_counter(), os.times()
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall * 1000, used * 1000


def first_request(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and processor time from a command's start until it sends to ``URL``, in ms; then it is stopped."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        places = {"URL": f"http://127.0.0.1:{server.getsockname()[1]}/v1", "RUN": f"{folder}/run"}
        told = [places.get(part, part) for part in command]
        start = time.perf_counter()
        process = subprocess.Popen([sys.executable, *told], env=environment, stderr=subprocess.DEVNULL)
        try:
            server.settimeout(60)
            connection, _ = server.accept()
            with contextlib.closing(connection):
                connection.settimeout(60)
                connection.recv(1)
                wall = time.perf_counter() - start
                used = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        finally:
            process.kill()
            process.wait()
    return wall * 1000, sum(map(int, used)) * 1000 / os.sysconf("SC_CLK_TCK")


def requests(folder: str) -> dict[str, list[str]]:
    """The programs that send a request."""
    item = Path(folder) / "one.jsonl"
    item.write_text((EXAMPLES / "doc-qa.jsonl").read_text(encoding="utf-8").splitlines()[0] + "\n", encoding="utf-8")
    judge = ["-m", "evenhand", "judge", str(item), "--rubric", "doc-qa", "--judge", "openai:judge"]
    return {
        "first request": [*judge, "--base-url", "URL", "--out", "RUN"],
        "first request of the bare script": ["-c", POST, "URL"],
    }


def main() -> None:
    """Time the commands in turn, so that a busy moment hits all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        todo: dict[str, tuple[Measure, list[str]]] = {name: (ended, command) for name, command in COMMANDS.items()}
        todo |= {name: (first_request, command) for name, command in requests(folder).items()}
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in todo}
        for number in range(rounds + 1):
            for name, (measure, command) in todo.items():
                found = measure(command, environment)
                if number:  # the first only compiles
                    seen[name].append(found)
    told = {name: round(statistics.median(wall for wall, _ in found), 1) for name, found in seen.items()}
    for name in ("first request", "first request of the bare script"):
        told[f"{name}, processor"] = round(statistics.median(cpu for _, cpu in seen[name]), 1)
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
