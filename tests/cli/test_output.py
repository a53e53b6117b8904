"""What the commands print, whatever encoding and state standard output is in."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import run
from evenhand.cli.output import OutputError, take_over
from runs import SCORE, rows, write_jsonl

ID = "é评😀"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run with an id of all kinds of characters, in the working directory."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", [{**rows(1)[0], "id": ID}])
    (tmp_path / "two.yaml").write_text(SCORE)
    assert run(["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "fake", "--out", "run"]) == 0
    return tmp_path


def _shell(command: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    line = command.replace("evenhand", f"{sys.executable} -m evenhand")
    done = subprocess.run(["bash", "-c", line], capture_output=True, env=os.environ | environment, check=False)
    assert b"Traceback" not in done.stderr
    return done


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk", "utf-8"])
def test_json_is_json_in_every_encoding(project: Path, encoding: str) -> None:
    """Characters that the encoding lacks are JSON escapes."""
    for command in ("evenhand export run --to -", "evenhand show run --json --item $ID"):
        done = _shell(command, PYTHONIOENCODING=encoding, ID=ID)
        assert done.returncode == 0
        assert json.loads(done.stdout.decode(encoding))["id"] == ID


def test_texts_are_readable_in_a_poor_locale(project: Path) -> None:
    """With an ASCII locale an item is found by its id, and its page is printed."""
    poor = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = _shell("evenhand show run --item $ID", ID=ID, **poor)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode("ascii").startswith("item \\u00e9\\u8bc4\\ud83d\\ude00, row 1\n")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("evenhand show run >&-", "Bad file descriptor"),
        ("evenhand export run --to - >&-", "Bad file descriptor"),
        ("evenhand --help >/dev/full", "No space left on device"),
        ("evenhand show run >/dev/full", "No space left on device"),
    ],
)
def test_what_cannot_be_printed_is_one_line_and_1(project: Path, command: str, said: str) -> None:
    """A standard output that is closed or full is told in one line."""
    done = _shell(command)
    lines = done.stderr.decode().splitlines()
    assert (done.returncode, lines) == (1, [f"error: can't write to standard output: {said}"])


def test_without_standard_error_everything_else_goes_on(project: Path) -> None:
    """A closed or full standard error changes no exit code and no figure."""
    for place in ("2>&-", "2>/dev/full"):
        assert _shell(f"evenhand show run {place}").returncode == 0
        assert _shell(f"evenhand show nothing {place}").returncode == 2


def test_streams_of_the_process_are_wrapped_once_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits the encoding is written as it is."""
    before = [io.TextIOWrapper(io.BytesIO(), "latin-1") for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", before[0])
    monkeypatch.setattr(sys, "stderr", before[1])
    take_over()
    sys.stdout.write("é \ud800 评")
    sys.stdout.flush()
    assert before[0].buffer.getvalue() == b"\xe9 \\ud800 \\u8bc4"  # type: ignore[attr-defined]
    assert OutputError.exit_code == 1


def test_no_room_for_temporary_files(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder for temporary files that is full or gone is told with its path, and ends with 2."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    (project / "ratings.csv").write_text("id,truth,style\n1,2,3\n")
    assert run(["check", "ratings.csv", "--rubric", "two.yaml", "--out", "x.csv"]) == 2
    error = capsys.readouterr().err
    assert f"can't write a temporary file in {tempfile.gettempdir()}: No space left on device" in error
    assert "TMPDIR" in error
    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)
    assert run(["render", "data.jsonl", "--rubric", "two.yaml"]) == 2
    assert "can't write a temporary file" in capsys.readouterr().err
