"""Paths that can't be used, or hardly: told with the path and 2, and read-only runs are shown."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evenhand.cli.main import run
from runs import SCORE, rows, write_jsonl

LONG = "x" * 300
ODD = os.fsdecode(b"\xff\xfe.jsonl")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data, a rubric and a finished run in the working directory."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", rows(2))
    (tmp_path / "two.yaml").write_text(SCORE)
    assert run(["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "fake", "--out", "run"]) == 0
    (tmp_path / "folder.jsonl").mkdir()
    return tmp_path


JUDGE = ["--rubric", "two.yaml", "--judge", "fake"]
COMMANDS = {
    "data": ["judge", "PATH.jsonl", *JUDGE, "--out", "new"],
    "rubric": ["judge", "data.jsonl", "--rubric", "PATH.yaml", "--judge", "fake", "--out", "new"],
    "out": ["judge", "data.jsonl", *JUDGE, "--out", "PATH"],
    "replay": ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "replay:PATH.jsonl", "--out", "new"],
    "run": ["show", "PATH"],
    "to": ["export", "run", "--to", "PATH.csv"],
    "to-in": ["export", "run", "--to", "PATH/x.csv"],
    "check": ["check", "PATH.csv", "--rubric", "two.yaml"],
    "check-out": ["check", "data.jsonl", "--rubric", "two.yaml", "--partial", "--out", "PATH.csv"],
    "read": ["read", "PATH.jsonl"],
    "lint": ["rubric", "lint", "PATH.yaml"],
    "show": ["rubric", "show", "PATH.yaml"],
    "new": ["rubric", "new", "mine", "--out", "PATH.yaml"],
}


@pytest.mark.parametrize("path", [LONG, "a/" * 3000 + "x"])
@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_no_file_can_have(
    project: Path, capsys: pytest.CaptureFixture[str], command: str, path: str
) -> None:
    """An over-long or forbidden name is the caller's mistake wherever it is given."""
    capsys.readouterr()
    assert run([word.replace("PATH", path) for word in COMMANDS[command]]) == 2
    shown = capsys.readouterr()
    assert "Traceback" not in shown.err and shown.out + shown.err


@pytest.mark.parametrize(
    "command",
    [
        ["judge", "folder.jsonl", *JUDGE, "--out", "new"],
        ["judge", "data.jsonl", *JUDGE, "--out", "data.jsonl"],
        ["judge", "data.jsonl", *JUDGE, "--out", "data.jsonl/run"],
        ["judge", "data.jsonl", "--rubric", "folder.jsonl", "--judge", "fake", "--out", "new"],
        ["show", "data.jsonl"],
        ["show", "data.jsonl/run"],
        ["export", "run", "--to", "folder.jsonl"],
        ["export", "run", "--to", "data.jsonl/x.csv"],
        ["check", "folder.jsonl", "--rubric", "two.yaml"],
        ["read", "folder.jsonl"],
        ["rubric", "lint", "folder.jsonl"],
        ["rubric", "new", "mine", "--out", "folder.jsonl"],
    ],
)
def test_a_folder_for_a_file_and_a_file_for_a_folder(
    project: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """The path is named, and nothing is made."""
    before = sorted(project.rglob("*"))
    capsys.readouterr()
    assert run(command) == 2
    shown = capsys.readouterr()
    assert "folder.jsonl" in shown.out + shown.err or "data.jsonl" in shown.err
    assert sorted(project.rglob("*")) == before


def test_names_that_are_no_text_work_everywhere(project: Path) -> None:
    """Bytes that are not UTF-8 in a name are kept, shown as escapes, and found again."""
    shutil.copy("data.jsonl", ODD)
    for _ in range(2):
        done = _process("judge", ODD, *JUDGE, "--out", f"run-{ODD}")
        assert (done.returncode, done.stderr.splitlines()[-1]) == (0, b"run: run-\\udcff\\udcfe.jsonl")
    assert _process("export", f"run-{ODD}", "--to", f"out-{ODD}").returncode == 0
    assert len(Path(f"out-{ODD}").read_text().splitlines()) == 2
    assert _process("export", f"run-{ODD}", "--to", ODD).returncode == 2
    done = _process("judge", f"no-{ODD}")
    assert (done.returncode, done.stderr) == (2, b"error: no such file: no-\\udcff\\udcfe.jsonl\n")


def _process(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "evenhand", *words], capture_output=True, check=False)


def test_a_name_as_long_as_can_be(project: Path) -> None:
    """A file name of 255 bytes can be written."""
    name = "x" * 249 + ".jsonl"
    assert run(["export", "run", "--to", name]) == 0
    assert len(Path(name).read_text().splitlines()) == 2


def test_a_read_only_run_is_shown(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run in a folder that can't be written is shown and exported, and nothing is made beside it."""
    if os.geteuid() != 0:
        (project / "run").chmod(0o555)
    else:  # root may write everywhere
        monkeypatch.setattr(os, "access", lambda *_, **__: False)
    assert run(["show", "run", "--item", "i0"]) == 0
    assert run(["export", "run", "--to", "x.jsonl"]) == 0
    assert [json.loads(line)["status"] for line in Path("x.jsonl").read_text().splitlines()] == ["scored"] * 2
    assert sorted(p.name for p in Path("run").iterdir()) == ["lock", "run.sqlite"]
    (project / "run").chmod(0o755)
