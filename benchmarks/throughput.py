"""A run of doc-qa against a bare loop on the same HTTP stack, side by side: CPU per judgment, and wall time.

    python benchmarks/throughput.py --server ../shared/bench/fake_openai

Both read the same file, ask a fake server for the same number of verdicts with the same prompts, and take turns. The
bare loop renders a prompt, posts it, checks the reply against a schema and appends a line to a file; the run does all
that a run does. The run reads and checks the whole file before it sends anything: its figures are those from then on,
and its ``whole`` ones those with it. Prints JSON: for each setting the medians of both and their ratio. Without
``--server`` the project's own is used.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SETTINGS = {  # name -> latency, in flight, judgments
    "0 ms, 64 in flight": ("0", 64, 20_000),
    "50 ms, 64 in flight": ("50", 64, 4000),
    "log-normal 800 ms, 1,024 in flight": ("lognormal:800:0.6", 1024, 8000),
}
ANSWER = "Hold the reset button for ten seconds until the light blinks twice, then let go and wait. " * 3
CONTEXT = "To reset the router, hold the button on its back until the light blinks twice. " * 4


def items(n: int) -> list[dict[str, str]]:
    """Questions about an invented router, each with an answer of its own."""
    return [
        {"id": f"q{i}", "question": f"How is router {i} reset?", "context": CONTEXT, "answer": f"{ANSWER} ({i})"}
        for i in range(n)
    ]


@contextmanager
def fake(folder: str | None, latency: str) -> Iterator[str]:
    """Base URL of a fake server."""
    if folder is None:
        from evenhand.testing.server import FakeServer

        with FakeServer(latency=latency) as server:
            yield server.url
        return
    sys.path.insert(0, folder)
    from fake_openai import FakeOpenAI

    with FakeOpenAI(latency=latency) as server:
        yield server.url


def used() -> float:
    """CPU seconds of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def run_once(url: str, path: str, concurrency: int) -> None:
    """The run."""
    from evenhand.api import make_spec
    from evenhand.run import Progress, run

    class Asking(Progress):
        def start(self, *_: int) -> None:
            self.began = time.perf_counter(), used()

    asking = Asking()
    with tempfile.TemporaryDirectory() as folder:
        spec = make_spec(
            path, "doc-qa", "openai:judge", variant={"detail": "anchors"}, base_url=url, concurrency=concurrency,
            out=f"{folder}/run",
        )  # fmt: skip
        began, cpu = time.perf_counter(), used()
        asyncio.run(run(spec, progress=asking))
        told((began, cpu), asking.began)


def told(whole: tuple[float, float], asking: tuple[float, float]) -> None:
    """Wall and CPU since two beginnings, for the process that asked."""
    now = time.perf_counter(), used()
    seconds = {
        "wall_s": now[0] - asking[0],
        "cpu_s": now[1] - asking[1],
        "whole_wall_s": now[0] - whole[0],
        "whole_cpu_s": now[1] - whole[1],
    }
    print(json.dumps({**seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def bare_once(url: str, path: str, concurrency: int) -> None:
    """The bare loop: template, post, decode and validate, append."""
    import aiohttp
    import msgspec

    from evenhand.api import make_spec
    from evenhand.estimate import rendered
    from evenhand.judging import parse_judge

    spec = make_spec(path, "doc-qa", "openai:judge", variant={"detail": "anchors"}, base_url=url)
    first = next(iter(rendered(spec, "tool")))
    template = first["messages"]
    rows = [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]
    system, user = template[0]["content"], template[-1]["content"]
    for name in ("question", "context", "answer"):
        user = user.replace(rows[0][name].strip(), f"\0{name}\0")
    tool = {"type": "function", "function": {"name": first["function"], "strict": True, "parameters": first["schema"]}}
    choice = {"type": "function", "function": {"name": first["function"]}}
    Verdict = msgspec.defstruct(
        "Verdict",
        [(name, int if part["type"] == "integer" else str) for name, part in first["schema"]["properties"].items()],
    )
    decoder = msgspec.json.Decoder(Verdict)
    assert parse_judge("openai:judge").settings == {"temperature": 0.0}

    async def main() -> None:
        with Path(path).open("rb") as lines:
            await ask_all(map(msgspec.json.decode, lines))

    async def ask_all(waiting: Iterator[dict[str, str]]) -> None:
        connector = aiohttp.TCPConnector(limit=concurrency)
        headers = {"Content-Type": "application/json"}
        with tempfile.NamedTemporaryFile("wb") as out:
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

                async def work() -> None:
                    for row in waiting:
                        text = user
                        for name in ("question", "context", "answer"):
                            text = text.replace(f"\0{name}\0", row[name])
                        messages = [{"role": "system", "content": system}, {"role": "user", "content": text}]
                        body = {
                            "model": "judge", "messages": messages, "temperature": 0.0, "tools": [tool],
                            "tool_choice": choice,
                        }  # fmt: skip
                        async with session.post(f"{url}/chat/completions", data=msgspec.json.encode(body)) as response:
                            data = msgspec.json.decode(await response.read())
                        call = data["choices"][0]["message"]["tool_calls"][0]["function"]
                        verdict = decoder.decode(call["arguments"])
                        out.write(msgspec.json.encode({"id": row["id"], "verdict": verdict}) + b"\n")

                await asyncio.gather(*(work() for _ in range(concurrency)))

    began = time.perf_counter(), used()
    asyncio.run(main())
    told(began, began)


def measured(which: str, url: str, path: str, concurrency: int) -> dict[str, float]:
    """One of both in a process of its own."""
    command = [sys.executable, __file__, which, url, path, str(concurrency)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(found.stdout.splitlines()[-1]))


def compared(server: str | None, latency: str, concurrency: int, n: int, rounds: int) -> dict[str, Any]:
    """Both in turn, so that a busy moment hits both."""
    seen: dict[str, list[dict[str, float]]] = {"run": [], "bare": []}
    with tempfile.TemporaryDirectory() as folder, fake(server, latency) as url:
        path = f"{folder}/items.jsonl"
        Path(path).write_text("".join(json.dumps(item) + "\n" for item in items(n)))
        for _ in range(rounds):
            for which, found in seen.items():
                found.append(measured(which, url, path, concurrency))
    middle = {
        which: {key: statistics.median(one[key] for one in found) for key in found[0]} for which, found in seen.items()
    }
    told = {
        f"{which}_{key}": round(value / (n / 1000) if key.endswith("cpu_s") else value, 4)
        for which, found in middle.items()
        for key, value in found.items()
    }
    told = {key.replace("cpu_s", "cpu_ms_each"): value for key, value in told.items()}
    ratios = {
        f"{key}_ratio": round(middle["run"][key] / middle["bare"][key], 3)
        for key in ("cpu_s", "wall_s", "whole_cpu_s", "whole_wall_s")
    }
    return {"judgments": n, **told, **ratios}


def main() -> None:
    """Measure all settings, or be one of both."""
    if len(sys.argv) == 5 and sys.argv[1] in ("run", "bare"):
        {"run": run_once, "bare": bare_once}[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="folder of a fake_openai.py")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0, help="share of the judgments, for a quick look")
    parser.add_argument("--only", help="settings whose name starts so")
    given = parser.parse_args()
    for name, (latency, concurrency, n) in SETTINGS.items():
        if given.only is None or name.startswith(given.only):
            found = compared(given.server, latency, concurrency, max(1, int(n * given.share)), given.rounds)
            print(json.dumps({"setting": name, **found}), flush=True)


if __name__ == "__main__":
    main()
