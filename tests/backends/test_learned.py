"""What an endpoint refuses is learned once, remembered across runs, and forgotten in time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evenhand.testing.server import FakeServer
from runs import TWO, rows, run_it, statuses


def _memory() -> Path:
    return Path(os.environ["EVENHAND_STATE"]) / "learned.json"


def _requests(server: FakeServer, out: Path, url: str, **options: Any) -> int:
    """How many requests a run of four items takes."""
    server.reset()
    run_it(rows(4), TWO, "openai:m", out, base_url=url, re_ask=False, max_tokens=500, **options)
    assert set(statuses(out).values()) == {"scored"}
    return int(server.stats()["requests"])


def test_the_next_run_knows_what_is_refused(server: FakeServer, tmp_path: Path) -> None:
    """One request is refused in the first run and none in the second; another model or address starts anew."""
    url = server.with_faults(refuse="temperature+max_tokens")
    assert _requests(server, tmp_path / "one", url, concurrency=1) == 4 + 2
    assert _requests(server, tmp_path / "two", url, concurrency=1) == 4
    [(_, learned)] = json.loads(_memory().read_text()).values()
    assert learned == {"temperature": None, "max_tokens": "max_completion_tokens"}
    other = server.with_faults(refuse="temperature+max_tokens")
    assert _requests(server, tmp_path / "three", other, concurrency=1) == 4 + 2


@pytest.mark.parametrize("damage", ["old", "deleted", "garbled", "other types"])
def test_what_was_learned_is_forgotten(server: FakeServer, tmp_path: Path, damage: str) -> None:
    """After a week, with the file, or where it can't be used: the parameter is sent again."""
    url = server.with_faults(refuse="temperature")
    assert _requests(server, tmp_path / "one", url, concurrency=1) == 5
    [(key, [at, learned])] = json.loads(_memory().read_text()).items()
    if damage == "old":
        _memory().write_text(json.dumps({key: [at - 7 * 86400 - 1, learned]}))
    elif damage == "deleted":
        _memory().unlink()
    elif damage == "garbled":
        _memory().write_bytes(b"{\xff")
    else:
        _memory().write_text(json.dumps({key: [at, ["temperature", 3]]}))
    assert _requests(server, tmp_path / "two", url, concurrency=1) == 5
