"""Wrong values in the columns of a store: told as damage by every command, or harmless."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import run
from runs import GOOD, LIE, SCORE, rows, write_jsonl, write_script

COMMANDS = {
    "show": ["show", "run"],
    "item": ["show", "run", "--item", "i1"],
    "report": ["report", "run", "--out", "report.html"],
    "export": ["export", "run", "--to", "x.jsonl"],
    "agree": ["agree", "run", "--labels", "labels.jsonl"],
    "rescore": ["rescore", "run", "--weights", "truth=0.5,style=0.5"],
    "judge": ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "fake:script.jsonl", "--out", "run"],
    "merge": ["merge", "run", "--out", "merged"],
}
BYTES, TEXT, NUMBER, HUGE = b"\xff\x00\x01", "garbage", 5, 1 << 62
#: Values of the wrong type, or that no version wrote, by table and column.
WRONG: dict[str, dict[str, tuple[Any, ...]]] = {
    "manifest": {"key": (BYTES, TEXT, NUMBER), "value": (BYTES, TEXT, NUMBER, None)},
    "item": {
        "seq": (-1,),
        "id": (BYTES, TEXT, NUMBER, None),
        "digest": (BYTES, TEXT, NUMBER, None),
        "content": (BYTES, TEXT, NUMBER, None),
        "problem": (BYTES, TEXT, NUMBER),
    },
    "trial": {
        "item": (BYTES, TEXT, NUMBER, None),
        "order": (BYTES, TEXT, NUMBER, None),
        "repeat": (BYTES, TEXT, HUGE, -1, None, 0.5),
        "status": (BYTES, TEXT, NUMBER, None, "failed"),
        "verdict": (BYTES, TEXT, NUMBER, None),
        "at": (BYTES, TEXT, None),
    },
    "reply": {
        "item": (BYTES, TEXT, NUMBER, None),
        "order": (BYTES, TEXT, NUMBER, None),
        "repeat": (BYTES, TEXT, HUGE, -1, None),
        "attempt": (BYTES, TEXT, 1, HUGE, -1, None, 0.5),
        "request": (BYTES, TEXT, NUMBER, None),
        "form": (BYTES, TEXT, NUMBER, None),
        "reply": (BYTES, TEXT, NUMBER, None),
        "at": (BYTES, TEXT, None),
    },
}
CASES = [
    (table, column, value) for table, columns in WRONG.items() for column, found in columns.items() for value in found
]
#: Damage inside the text of a column, and a status that differs from the verdict's, are met where they are decoded.
_DECODED = {
    ("item", "content"): ("item", "rescore"),
    ("trial", "status"): ("merge",),
    ("reply", "reply"): ("show", "report", "export", "agree"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, its data and human marks."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_jsonl(folder / "data.jsonl", rows(4))
        write_jsonl(
            folder / "labels.jsonl", [{"id": f"i{n}", "rater": "r", "truth": n % 3, "style": n % 2} for n in range(4)]
        )
        (folder / "two.yaml").write_text(SCORE)
        write_script(folder / "script.jsonl", ("It is 2", LIE), (None, GOOD))
        assert run(COMMANDS["judge"]) == 0
    return folder


@pytest.fixture
def store(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of a copy of that run, in the working directory."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run" / "run.sqlite"


def _put(store: Path, table: str, column: str, value: Any) -> None:
    """Put a value in the second row of a table, whatever its declaration allows, as damage would."""
    key = {"manifest": "key = 'judge'", "item": "seq = 1"}.get(table, "rowid = 2")
    free = (
        "replace(replace(replace(replace(sql, ' NOT NULL', ''), ' TEXT', ''), ' REAL', ''), 'repeat INTEGER', 'repeat')"
    )
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        kept = db.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        _declare(db, table, free)
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        assert db.execute(f'UPDATE {table} SET "{column}" = ? WHERE {key}', (value,)).rowcount == 1
        _declare(db, table, "?", kept)


def _declare(db: sqlite3.Connection, table: str, sql: str, *values: Any) -> None:
    db.execute("PRAGMA writable_schema = ON")
    db.execute(f"UPDATE sqlite_master SET sql = {sql} WHERE name = ?", (*values, table))


def _outcomes(capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[int, str]]:
    """What each command ends with, and its errors."""
    told = {}
    kept = Path("run/run.sqlite").read_bytes()
    for name, command in COMMANDS.items():
        told[name] = run(command), capsys.readouterr().err
        Path("run/run.sqlite").write_bytes(kept)
        for other in ("run/run.sqlite-wal", "run/run.sqlite-shm"):
            Path(other).unlink(missing_ok=True)
        shutil.rmtree("merged", ignore_errors=True)
    return told


@pytest.mark.parametrize(("table", "column", "value"), CASES)
def test_wrong_values_are_damage_in_every_command(
    store: Path, capsys: pytest.CaptureFixture[str], table: str, column: str, value: Any
) -> None:
    """A value that the store never wrote ends every command that meets it with 4, the place and a remedy.

    A run that goes on may ask or read again what it can't use, and so mend it.
    """
    _put(store, table, column, value)
    for command, (code, error) in _outcomes(capsys).items():
        decoded = type(value) is str and command in _DECODED.get((table, column), ())
        assert code in ((0, 4) if decoded or command == "judge" else (4,)), (command, error)
        if code == 4:
            (said,) = [line for line in error.splitlines() if line.startswith("error: ")]
            assert "run/run.sqlite is damaged: " in said, command
            assert "judge again with --fresh" in error


@pytest.mark.parametrize(("table", "column"), [(t, c) for t, cs in WRONG.items() for c in cs if t != "manifest"])
def test_the_place_is_named(store: Path, capsys: pytest.CaptureFixture[str], table: str, column: str) -> None:
    """Table, column and row of a value of the wrong type are told."""
    _put(store, table, column, -1 if column == "seq" else BYTES)
    assert run(["show", "run"]) == 4
    place = "rowid -1" if column == "seq" else "rowid 1" if table == "item" else "rowid 2"
    assert f"column {column} of table {table} holds what was never written there ({place})" in capsys.readouterr().err


def test_sound_stores_with_bad_rows_are_no_damage(store: Path) -> None:
    """Rows that could not be used have a reason and no id, and are as sound as others."""
    write_jsonl(Path("more.jsonl"), [*rows(2), {"id": "i9", "question": "no answer"}])
    other = [
        part if part not in ("data.jsonl", "run") else {"data.jsonl": "more.jsonl", "run": "o"}[part]
        for part in COMMANDS["judge"]
    ]
    assert run([*other, "--skip-bad"]) == 0
    assert run(["show", "o"]) == 0
