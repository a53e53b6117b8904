"""``evenhand read``: one line out for each line in, and all of them checked first."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import run

LINE: dict[str, Any] = {
    "id": "a",
    "raw_kind": "text",
    "raw": '{"rating": 4, "reason": "评 \\"x\\""}',
    "scale": {"min": 1, "max": 5, "integer": True},
    "labels": None,
    "fields": ["rating", "reason"],
}
MESSAGE = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"function": {"name": "f", "arguments": '{"rating": 2'}}],
}


def _read(tmp_path: Path, capsys: pytest.CaptureFixture[str], *lines: Any) -> tuple[int, list[Any], str]:
    file = tmp_path / "replies.jsonl"
    file.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines), "utf-8")
    code = run(["read", str(file)])
    shown = capsys.readouterr()
    return code, [json.loads(line) for line in shown.out.splitlines()], shown.err


def test_values_errors_and_repairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Values keep their JSON types, errors are their class, repair is told; blank lines are skipped."""
    code, out, err = _read(
        tmp_path,
        capsys,
        LINE,
        "",
        {**LINE, "id": 2, "raw": '{"rating": 4,}'},
        {**LINE, "id": "c", "raw": "8/10"},
        {**LINE, "id": "d", "raw": '{"rating": 4}', "required": ["reason"]},
        {**LINE, "id": "e", "raw": '{"rating": 0.5}', "scale": {"min": 0, "max": 1, "integer": False}},
        {**LINE, "id": "f", "raw": "Rating: tie", "scale": None, "labels": ["A", "B", "tie"]},
        {**LINE, "id": "g", "raw_kind": "message", "raw": MESSAGE},
        {**LINE, "id": "h", "raw": "4", "finish": "length"},
    )
    assert (code, err) == (0, "")
    assert out == [
        {"id": "a", "value": {"rating": 4, "reason": '评 "x"'}},
        {"id": 2, "value": {"rating": 4}, "repaired": True},
        {"id": "c", "error": "scale_mismatch"},
        {"id": "d", "error": "missing_field"},
        {"id": "e", "value": {"rating": 0.5}},
        {"id": "f", "value": {"rating": "tie"}},
        {"id": "g", "error": "truncated"},
        {"id": "h", "error": "truncated"},
    ]


BAD = [
    ("{", "not valid JSON"),
    ("[" * 100_000, "not valid JSON"),
    ("[1]", "not a JSON object"),
    ({**LINE, "id": None}, "id must be"),
    ({**LINE, "raw": None}, "raw_kind must be"),
    ({**LINE, "raw_kind": "message"}, "raw_kind must be"),
    ({**LINE, "raw_kind": "html"}, "raw_kind must be"),
    ({**LINE, "raw_kind": "message", "raw": {"content": 4}}, "content must be"),
    ({**LINE, "raw_kind": "message", "raw": {"tool_calls": [{}]}}, "a tool call must"),
    ({**LINE, "raw_kind": "message", "raw": {"tool_calls": {}, "refusal": 4}}, "refusal must"),
    ({**LINE, "raw_kind": "message", "raw": {"tool_calls": "x"}}, "tool_calls must"),
    ({**LINE, "fields": []}, "fields must be"),
    ({**LINE, "fields": ["a", "A"]}, "fields must be"),
    ({**LINE, "required": ["x"]}, "required must"),
    ({**LINE, "finish": 1}, "finish must be"),
    ({**LINE, "scale": None}, "either scale or labels"),
    ({**LINE, "labels": ["a"]}, "either scale or labels"),
    ({**LINE, "scale": None, "labels": ["a", "A"]}, "labels must be"),
    ({**LINE, "scale": {"min": 5, "max": 1, "integer": True}}, "scale must have"),
    ({**LINE, "scale": {"min": 1, "max": float("nan"), "integer": True}}, "scale must have"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[message for _, message in BAD])
def test_a_bad_line_stops_before_anything_is_printed(
    line: Any, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A line that can't be used is told with its place; exit 2, no traceback, no output."""
    code, out, err = _read(tmp_path, capsys, LINE, line)
    assert (code, out) == (2, [])
    assert f"replies.jsonl:2: {message}" in err
    assert "Traceback" not in err


def test_bad_lines_are_all_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first hundred bad lines are listed, the rest counted."""
    code, _, err = _read(tmp_path, capsys, *["{"] * 130)
    assert code == 2
    assert err.count("not valid JSON") == 100
    assert "and 30 more" in err


def test_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bytes that are no UTF-8 are a bad line."""
    file = tmp_path / "replies.jsonl"
    file.write_bytes(b'{"id": "\xff"}\n')
    assert run(["read", str(file)]) == 2
    assert "not UTF-8" in capsys.readouterr().err


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """- reads standard input, and checks it whole all the same."""
    good = json.dumps(LINE).encode() + b"\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(good * 3)))
    assert run(["read", "-"]) == 0
    assert capsys.readouterr().out.count("\n") == 3
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(good + b"no\n")))
    assert run(["read", "-"]) == 2
    assert capsys.readouterr().out == ""


def test_no_such_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is not there is an input error."""
    assert run(["read", str(tmp_path / "none.jsonl")]) == 2
    assert "no file" in capsys.readouterr().err


def test_reference_cases_by_command(shared: Callable[[str], Path], capsys: pytest.CaptureFixture[str]) -> None:
    """The reference file is read line by line, in order."""
    file = shared("cases/judge-outputs.jsonl")
    assert run(["read", str(file)]) == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [t["id"] for t in told] == [line["id"] for line in lines]
    assert all(("error" in t) == ("error" in line["expected"]) for t, line in zip(told, lines, strict=True))


@pytest.mark.parametrize("number", ["9" * 400, "9" * 4000, "9" * 5000, "1e400", "-1e308"])
def test_numbers_beyond_all_bounds_are_told_with_their_line(
    number: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A scale of such numbers is a mistake of its line; a reply of such digits is a reply that can't be read."""
    line = '{"id": 1, "raw_kind": "text", "raw": "RAW", "scale": SCALE, "labels": null, "fields": ["rating"]}\n'
    for low, high in (("0", number), (number, "5")):
        bad = line.replace("SCALE", f'{{"min": {low}, "max": {high}, "integer": true}}')
        (tmp_path / "r.jsonl").write_text(bad)
        assert run(["read", str(tmp_path / "r.jsonl")]) == 2
        assert "r.jsonl:1: " in capsys.readouterr().err
    for raw in (number, f'{{\\"rating\\": {number}}}', f"rating: {number}"):
        good = line.replace("SCALE", '{"min": 0, "max": 5, "integer": true}').replace("RAW", raw)
        (tmp_path / "r.jsonl").write_text(good)
        assert run(["read", str(tmp_path / "r.jsonl")]) == 0
        assert "error" in json.loads(capsys.readouterr().out)
