"""A store that was damaged on disk, as a shell sees it: never a traceback, and the remedy works."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from evenhand.cli.main import run
from runs import SCORE, rows, statuses, write_jsonl

PAGE = 4096
JUDGE = ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "fake", "--out", "run"]
COMMANDS = {
    "show": ["show", "run"],
    "item": ["show", "run", "--item", "i2"],
    "export": ["export", "run", "--to", "x.csv"],
    "rescore": ["rescore", "run", "--weights", "truth=0.5,style=0.5"],
    "judge": [*JUDGE, "--repeats", "2"],
}
GARBAGE = bytes(range(255, 55, -1))


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of a finished run in the working directory."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", [{**row, "answer": row["answer"] * 40} for row in rows(6)])
    (tmp_path / "two.yaml").write_text(SCORE)
    assert run(JUDGE) == 0
    return tmp_path / "run" / "run.sqlite"


def _spoil(store: Path, whole: bytes, change: Callable[[bytearray], object]) -> None:
    """The run again as it was, but for one change of its file."""
    shutil.rmtree(store.parent)
    store.parent.mkdir()
    spoilt = bytearray(whole)
    change(spoilt)
    store.write_bytes(spoilt)


@pytest.mark.parametrize("command", COMMANDS)
def test_overwritten_bytes_are_damage_that_is_told(
    store: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Wherever bytes were overwritten, a command that meets them ends with 4, the file's name and a remedy."""
    whole, told = store.read_bytes(), 0
    for page in range(0, len(whole), PAGE):
        for at in (page, page + PAGE // 2, page + PAGE - len(GARBAGE)):
            _spoil(store, whole, lambda spoilt, at=at: spoilt.__setitem__(slice(at, at + len(GARBAGE)), GARBAGE))
            code, error = run(COMMANDS[command]), capsys.readouterr().err
            assert code in (0, 4), error
            if code == 4 and "is damaged: " in error:
                told += 1
                assert "error: run/run.sqlite is damaged: " in error
                assert "judge again with --fresh" in error
    assert told > 3


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_cut_short_is_damage(store: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """A store whose end is missing, or that is no store at all, ends with 4 in every command."""
    whole = store.read_bytes()
    for change in (
        lambda spoilt: spoilt.__delitem__(slice(PAGE * 3, None)),
        lambda spoilt: spoilt.__setitem__(slice(0, 100), b"x" * 100),
    ):
        _spoil(store, whole, change)
        assert run(COMMANDS[command]) == 4
        assert "run/run.sqlite is damaged: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "column", "command", "said"),
    [
        ("manifest", "value", "show", "its manifest"),
        ("item", "content", "show", "row 1"),
        ("trial", "verdict", "show", "the verdicts of item i0"),
        ("reply", "reply", "item", "the replies of item i2"),
    ],
)
def test_texts_that_are_not_what_was_written(
    store: Path, capsys: pytest.CaptureFixture[str], table: str, column: str, command: str, said: str
) -> None:
    """Damage that SQLite can't notice is met where a text is decoded, and told with its place."""
    with sqlite3.connect(store) as db:
        db.execute(f"UPDATE {table} SET {column} = replace({column}, ':', ';')")
    db.close()
    assert run(COMMANDS[command]) == 4
    assert f"run/run.sqlite is damaged: {said} can't be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "column", "command", "said"),
    [
        ("item", "content", "show", "row 1"),
        ("item", "content", "item", "item i2"),
        ("trial", "verdict", "show", "the verdicts of item i0"),
        ("reply", "reply", "item", "the replies of item i2"),
    ],
)
def test_texts_nested_too_deeply(
    store: Path, capsys: pytest.CaptureFixture[str], table: str, column: str, command: str, said: str
) -> None:
    """A text whose nesting no reader can follow is damage like any other."""
    with sqlite3.connect(store) as db:
        db.execute(f"UPDATE {table} SET {column} = ?", ("[" * 100_000,))
    db.close()
    assert run(COMMANDS[command]) == 4
    assert f"run/run.sqlite is damaged: {said} can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("item", ["\udcff\udcfe", "i\x01", "", "i22", "9" * 5000])
def test_an_id_that_no_item_has_is_no_damage(store: Path, capsys: pytest.CaptureFixture[str], item: str) -> None:
    """Bytes that are no text and ids of all kinds are told as unknown, with those that exist."""
    assert run(["show", "run", "--item", item]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: unknown item")
    assert "i0" in error


def test_fresh_starts_over_whatever_the_file_is(store: Path) -> None:
    """--fresh, the remedy that is told, works on a file that can't be opened, and leaves nothing of it."""
    store.write_bytes(b"this is no database" * 100)
    store.with_name("run.sqlite-wal").write_bytes(b"nor this")
    assert run(JUDGE) == 4
    assert run([*JUDGE, "--fresh"]) == 0
    assert len(statuses(store.parent)) == 6
    assert sorted(p.name for p in store.parent.iterdir()) == ["lock", "run.sqlite"]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_file_is_damage(store: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """A store of no bytes ends with 4 and a remedy in every command."""
    _spoil(store, b"", lambda spoilt: None)
    assert run(COMMANDS[command]) == 4
    error = capsys.readouterr().err
    assert "run/run.sqlite is damaged: it is empty, or holds no run" in error and "--fresh" in error
