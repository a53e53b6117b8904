"""What is remembered of endpoints: kept, forgotten in time, never an obstacle."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.backends.memory import Memory


def _file(name: str) -> Path:
    return Path(os.environ["EVENHAND_STATE"]) / name


def test_a_value_is_kept_until_it_is_forgotten() -> None:
    """Another one for the same key replaces it, None removes it; other keys and files stay."""
    Memory("a.json").remember("k", "one")
    Memory("a.json").remember("other", {"x": None})
    Memory("b.json").remember("k", "elsewhere")
    Memory("a.json").remember("k", "two")
    assert [Memory("a.json").recall(key) for key in ("k", "other", "none")] == ["two", {"x": None}, None]
    Memory("a.json").remember("k", None)
    assert (Memory("a.json").recall("k"), Memory("b.json").recall("k")) == (None, "elsewhere")


def test_a_value_lapses() -> None:
    """After its time it is gone, and the file loses it with the next value; a date in the future is none."""
    now = [1000.0]
    memory = Memory("a.json", lapse_s=60, clock=lambda: now[0])
    memory.remember("k", {"temperature": None})
    now[0] += 59
    assert memory.recall("k") == {"temperature": None}
    now[0] += 2
    assert memory.recall("k") is None
    memory.remember("other", 1)
    assert list(json.loads(_file("a.json").read_text())) == ["other"]
    now[0] -= 500
    assert memory.recall("other") is None


@pytest.mark.parametrize(
    "content", [b"{broken", b"[1]", b"\xff", b"[" * 100_000, b"3", b'{"k": 3}', b'{"k": ["x", 1]}'], ids=range(7)
)
def test_damage_is_no_error(content: bytes) -> None:
    """Whatever the file holds, nothing is remembered, and values can be kept again."""
    _file("a.json").write_bytes(content)
    memory = Memory("a.json", lapse_s=60)
    assert memory.recall("k") is None
    memory.remember("k", "v")
    assert memory.recall("k") == "v"


def test_a_place_that_can_not_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder where the file should be, or a file where the folder should be: nothing is kept, or left behind."""
    _file("a.json").mkdir()
    Memory("a.json").remember("k", "v")
    assert (Memory("a.json").recall("k"), list(_file("").iterdir())) == (None, [_file("a.json")])
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("EVENHAND_STATE", str(tmp_path / "taken"))
    Memory("a.json").remember("k", "v")
    assert Memory("a.json").recall("k") is None


def test_writers_at_the_same_time_lose_nothing() -> None:
    """Processes that remember different things all find theirs afterwards."""
    code = (
        "import sys; from evenhand.backends.memory import Memory\n"
        "for n in range(25): Memory('a.json').remember(f'{sys.argv[1]}.{n}', n)"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(k)]) for k in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    assert len(json.loads(_file("a.json").read_text())) == 100
