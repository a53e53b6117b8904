"""Help texts: their examples work in a clone of the project."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from evenhand.cli.main import run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    ("before", "command", "code"),
    [
        ("", "evenhand read examples/replies.jsonl", 0),
        ("", "evenhand check examples/ratings.csv --rubric hhh --out checked.csv", 6),
        ("", "evenhand rubric show doc-qa", 0),
        ("", "evenhand study examples/doc-qa.jsonl --vary scale=0-10,0-3 --judge fake --out runs/scales", 0),
        ("", "evenhand model list", 0),
        (
            "evenhand judge examples/doc-qa.jsonl --judge fake --out runs/doc-qa",
            "evenhand report runs/doc-qa --out report.html",
            0,
        ),
        (
            "evenhand judge examples/many.jsonl --rubric hhh --pairs all --judge fake --out runs/many",
            "evenhand rank runs/many",
            0,
        ),
        (
            "evenhand judge examples/systems.jsonl --judge fake --out runs/systems",
            "evenhand compare runs/systems --by system",
            0,
        ),
        (
            "evenhand judge examples/many.jsonl --rubric hhh --pairs all --judge fake --out runs/many",
            "evenhand variance runs/many",
            0,
        ),
    ],
)
def test_examples_of_the_help_run_in_a_clone(
    before: str,
    command: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The example that a command's help shows names files that are there, and ends as it should."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    assert run([command.split()[1], "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert command in told and before in told
    if before:
        assert run(shlex.split(before)[1:]) == 0
    assert run(shlex.split(command)[1:]) == code
