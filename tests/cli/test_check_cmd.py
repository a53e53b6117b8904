"""``evenhand check`` as a user meets it: findings, figures, exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import run

NAMES = ("harmless", "honest", "helpful", "overall")
GOOD: dict[str, Any] = {"id": "g", **dict.fromkeys(NAMES, "better"), **{f"{n}_side": "A" for n in NAMES}}
GOOD |= {"rank_a": 6, "rank_b": 3}
OFF = {**GOOD, "id": "off", "rank_a": 7}


def table(path: Path, *rows: dict[str, Any]) -> str:
    columns = list(rows[0])
    lines = [",".join(columns), *(",".join(str(row.get(name, "")) for name in columns) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")


def test_json_is_a_line_per_finding_and_the_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The documented keys, exactly."""
    file = table(tmp_path / "r.csv", {**GOOD, "difference": ""}, {**OFF, "difference": "Minor"})
    assert run(["check", file, "--rubric", "hhh", "--json"]) == 6
    violation, warning, counts = map(json.loads, capsys.readouterr().out.splitlines())
    assert list(violation) == ["row", "id", "rule", "severity", "message"]
    assert [violation[k] for k in ("row", "id", "rule", "severity")] == [2, "off", "gap-label", "violation"]
    assert warning["severity"] == "warning"
    assert counts == {"rows": 2, "violations": 1, "warnings": 1}


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (GOOD, 0),
        ({**GOOD, "difference": "minor"}, 0),
        (OFF, 6),
        ({**GOOD, "rank_a": 9}, 6),
        ({**GOOD, "rank_a": ""}, 6),
    ],
)
def test_exit_code(row: dict[str, Any], code: int, tmp_path: Path) -> None:
    """6 with violations, 0 with warnings or nothing."""
    assert run(["check", table(tmp_path / "r.csv", row), "--rubric", "hhh"]) == code


def test_people_see_place_rule_and_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each finding names file, line, id and rule; the table counts what was checked and what was not, and why."""
    file = table(tmp_path / "r.csv", GOOD, OFF)
    assert run(["check", file, "--rubric", "hhh"]) == 6
    out = capsys.readouterr().out
    assert f"{file}:3 off: violation gap-label: Ranks 7 and 3 are 4 apart" in out
    assert "gap-label             violation       1        2  0" in out
    assert "not checked in any of 2 rows:" in out
    assert "  unsafe_a is missing: unsafe-rank:a\n" in out
    assert out.endswith("2 rows: 1 violation in 1 row, 0 warnings\n")


def test_the_terminal_is_not_flooded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Fifty findings are shown and the rest counted; --json prints all."""
    file = table(tmp_path / "r.csv", *[{**OFF, "id": n} for n in range(60)])
    run(["check", file, "--rubric", "hhh"])
    out = capsys.readouterr().out
    assert out.count(": violation gap-label") == 50
    assert "... and 10 more; --json prints all" in out
    run(["check", file, "--rubric", "hhh", "--json"])
    assert len(capsys.readouterr().out.splitlines()) == 61


def test_bad_input_is_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Unknown columns, rubrics, sets, files and broken rows; what could be checked is still told."""
    file = table(tmp_path / "r.csv", GOOD)
    for more in (["--rubric", "hh"], ["--rubric", "hhh", "--map", "rank=x"], ["--rubric", "hhh", "--label-set", "x"]):
        assert run(["check", file, *more]) == 2
    assert run(["check", file]) == 2
    assert run(["check", str(tmp_path / "none.csv"), "--rubric", "hhh"]) == 2
    assert run(["check", file, "--rubric", "hhh", "--out-label-set", "llama2"]) == 2
    assert run(["check", table(tmp_path / "s.csv", {"id": 1, "rank_a": 2}), "--rubric", "hhh"]) == 2
    assert "--partial checks what is there" in capsys.readouterr().err
    broken = tmp_path / "b.csv"
    broken.write_text(Path(table(tmp_path / "c.csv", OFF)).read_text() + "a,b\n")
    assert run(["check", str(broken), "--rubric", "hhh", "--json"]) == 2
    told = capsys.readouterr()
    assert json.loads(told.out.splitlines()[-1]) == {"rows": 1, "violations": 1, "warnings": 0}
    assert "b.csv:3: 2 cells, but the header has 11" in told.err
    assert run(["check", str(broken), "--rubric", "hhh", "--skip-bad"]) == 6
    assert "1 row can't be read" in capsys.readouterr().err


def test_out_and_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Columns are mapped, sets converted both ways, and the file written beside the findings."""
    file = table(tmp_path / "r.csv", {"id": 1, "A": 5, "B": 4, "strength": 1})
    maps = "overall=strength,rank_a=A,rank_b=B"
    options = ["--map", maps, "--label-set", "helpsteer2", "--partial", "--out-label-set", "fastchat"]
    assert run(["check", file, "--rubric", "hhh", *options, "--out", str(tmp_path / "o.csv")]) == 6
    told = capsys.readouterr()
    assert "violation rank-direction" in told.out
    assert "1 row written to" in told.err
    header, row = (tmp_path / "o.csv").read_text().splitlines()
    assert header.endswith(
        "overall_suggested,overall_side_suggested,harmless_fastchat,honest_fastchat,helpful_fastchat,overall_fastchat"
    )
    assert row.endswith("slightly better,A,,,,[[B]]")


def test_strict_variant_and_other_rubrics(tmp_path: Path) -> None:
    """A rubric's options change what is checked; any rubric with rules serves."""
    rated = {**GOOD, "errors_a": "minor"}
    file = table(tmp_path / "r.csv", rated)
    assert run(["check", file, "--rubric", "hhh"]) == 0
    assert run(["check", file, "--rubric", "hhh", "--variant", "strict_errors=true"]) == 6
    scores = table(tmp_path / "s.csv", {"correctness": 11, "comprehensiveness": 1, "readability": 1})
    assert run(["check", scores, "--rubric", "doc-qa"]) == 6


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """- reads JSON lines."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(OFF).encode())))
    assert run(["check", "-", "--rubric", "hhh", "--json"]) == 6
    assert json.loads(capsys.readouterr().out.splitlines()[0])["id"] == "off"


def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    """Ten times the rows take the same memory, findings and table output included."""
    peaks = []
    for count in (2_000, 20_000):
        file = tmp_path / f"{count}.jsonl"
        with file.open("w") as lines:  # one by one: what this process takes at its peak is inherited by the other
            lines.writelines(json.dumps({**OFF, "id": n, "note": "x" * 200}) + "\n" for n in range(count))
        command = [sys.executable, "-m", "evenhand", "check", str(file), "--rubric", "hhh", "--out", f"{file}.csv"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 6
        peaks.append(usage.ru_maxrss)
    assert peaks[1] < peaks[0] * 1.2


@pytest.mark.parametrize("name", ["in.csv", "./in.csv", "hard.csv", "soft.csv"])
def test_out_onto_the_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The ratings are never overwritten by their own check, whatever name they are given."""
    monkeypatch.chdir(tmp_path)
    source = tmp_path / "in.csv"
    source.write_text("id,harmless,overall\n1,A is better,A is better\n")
    (tmp_path / "hard.csv").hardlink_to(source)
    (tmp_path / "soft.csv").symlink_to(source)
    before = source.read_bytes()
    assert run(["check", "in.csv", "--rubric", "hhh", "--partial", "--out", name]) == 2
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,a,b\n1,2,3\n", "no column holds a rating: "),
        ("id;harmless;overall\n1;better;better\n", "holds semicolons"),
    ],
)
def test_a_table_without_any_rating_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    """Even --partial needs one column that it can look at; the message names those it looked for."""
    (tmp_path / "r.csv").write_text(text)
    assert run(["check", str(tmp_path / "r.csv"), "--rubric", "hhh", "--partial"]) == 2
    error = capsys.readouterr().err
    assert said in error and "harmless" in error
