"""Recorded replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.backend import BackendSettings
from evenhand.backends.replay import Replay, open_backend
from evenhand.errors import FinalBackendError, InputError, ItemError
from evenhand.testing.conformance import check_backend, check_failing, sample_requests


def record(path: Path, *lines: Any) -> Replay:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return open_backend(BackendSettings(model=str(path)))


async def test_conforms(tmp_path: Path) -> None:
    """It does what every backend must do."""
    path = tmp_path / "r.jsonl"
    record(path, *({"id": f"item-{i}", "reply": f'{{"score": {i}}}'} for i in range(3)))
    await check_backend(lambda: open_backend(BackendSettings(model=str(path))))


async def test_the_closest_line_is_used(tmp_path: Path) -> None:
    """A line for the very order and repeat wins over one for any."""
    backend = record(
        tmp_path / "r.jsonl",
        {"id": "item-0", "reply": "any"},
        {"id": "item-0", "order": "ba", "reply": "ba"},
        {"id": "item-0", "order": "ba", "repeat": 1, "reply": "ba 1"},
        {"id": "item-0", "repeat": 2, "reply": "2"},
        {"id": "item-0", "attempt": 1, "reply": "again"},
    )

    async def said(**changes: Any) -> str | None:
        return (await backend.send(sample_requests(**changes)[0])).text

    assert await said(order="ab") == "any"
    assert await said(order="ba") == "ba"
    assert await said(order="ba", repeat=1) == "ba 1"
    assert await said(order="ab", repeat=2) == "2"
    assert await said() == "any"
    assert await said(attempt=1) == "again"


async def test_kinds_of_replies(tmp_path: Path) -> None:
    """Texts and messages, in both spellings, become the replies a server would have given."""
    call = {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}], "reasoning_content": "r"}
    backend = record(
        tmp_path / "r.jsonl",
        {"id": "item-0", "reply": call, "class": "other keys are not looked at"},
        {"id": 1, "raw_kind": "message", "raw": {"content": None, "refusal": "no"}},
        {"id": "item-2", "raw_kind": "text", "raw": "Score: 3", "finish": "length"},
    )
    first, third = sample_requests(n=3)[0], sample_requests(n=3)[2]
    reply = await backend.send(first)
    assert (reply.tool_calls[0].name, reply.reasoning, reply.usage.cost_usd) == ("f", "r", None)
    assert (await backend.send(sample_requests(item_id="1")[0])).refusal == "no"
    assert ((await backend.send(third)).text, (await backend.send(third)).finish) == ("Score: 3", "length")


async def test_what_is_not_recorded_fails(tmp_path: Path) -> None:
    """An unknown item, and a re-ask without a recording, are final errors."""
    backend = record(tmp_path / "r.jsonl", {"id": "item-0", "reply": "x"})
    for request in (sample_requests(attempt=1), sample_requests(item_id="other")):
        error = await check_failing(lambda: backend, requests=request)
        assert type(error) is FinalBackendError
        assert "no recorded reply" in error.message


def test_mistakes_are_told_together(tmp_path: Path) -> None:
    """Bad lines and second replies for the same trial are listed with their lines."""
    lines = [
        {"id": "a", "reply": "x"},
        {"id": "a", "attempt": 0, "reply": "y"},
        {"id": None, "reply": "x"},
        {"id": "b"},
        {"id": "c", "order": "AB", "reply": "x"},
        {"id": "d", "repeat": -1, "reply": "x"},
        {"id": "e", "raw_kind": "text", "raw": {}},
        {"id": "f", "reply": {"content": 3}},
        [],
    ]
    with pytest.raises(ItemError) as caught:
        record(tmp_path / "r.jsonl", *lines)
    assert [problem.line for problem in caught.value.problems] == list(range(2, 10))
    assert "line 1" in caught.value.problems[0].message


def test_identity_is_the_content(tmp_path: Path) -> None:
    """The same recording under another name is the same judge; another recording is not."""
    line = {"id": "a", "reply": "x"}
    one, two = record(tmp_path / "one.jsonl", line), record(tmp_path / "two.jsonl", line)
    assert one.identity == two.identity
    assert record(tmp_path / "three.jsonl", {**line, "reply": "y"}).identity != one.identity


async def test_a_recording_that_changes_is_noticed(tmp_path: Path) -> None:
    """A file changed under our hands is an error, not another item's reply."""
    backend = record(tmp_path / "r.jsonl", {"id": "item-0", "reply": "x"})
    record(tmp_path / "r.jsonl", {"id": "item-9", "reply": "x"})
    with pytest.raises(FinalBackendError, match="changed"):
        await backend.send(sample_requests()[0])


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    """No file, and no name at all, are said before anything runs."""
    for name in ("", str(tmp_path / "none.jsonl"), str(tmp_path)):
        with pytest.raises(InputError):
            open_backend(BackendSettings(model=name))


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (b'{"id": "b", "reply": "caf\xe9"}', "not UTF-8"),
        (b'{"id": "b", "reply": {"content": null, "x": ' + b"[" * 400 + b"]" * 400 + b"}}", "nested too deeply"),
        (b'{"id": "b", "reply": ' + b"[" * 100_000, "nested too deeply"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"id": "b", "reply": "x", "finish": 5}', "finish must be a text"),
    ],
)
def test_what_is_wrong_with_a_line_is_told_with_its_place(tmp_path: Path, second: bytes, told: str) -> None:
    """Whatever a line holds, the error names file and line and says what is wrong."""
    path = tmp_path / "r.jsonl"
    path.write_bytes(b'{"id": "a", "reply": "x"}\n' + second + b"\n")
    with pytest.raises(ItemError, match=told) as caught:
        open_backend(BackendSettings(model=str(path)))
    assert caught.value.message.startswith(f"{path}:2 $: ")


async def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    """A line separator of Unicode inside a text, a mark at the start and CRLF do not split or spoil a line."""
    path = tmp_path / "r.jsonl"
    lines = [json.dumps({"id": f"item-{i}", "reply": "a\u2028b\x85c"}, ensure_ascii=False) for i in range(2)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    backend = open_backend(BackendSettings(model=str(path)))
    assert [(await backend.send(request)).text for request in sample_requests(n=2)] == ["a\u2028b\x85c"] * 2


def test_recordings_that_can_not_be_read(tmp_path: Path) -> None:
    """A folder or a name too long is an input error with a remedy."""
    for name in (str(tmp_path), "x" * 5000, str(tmp_path / "none")):
        with pytest.raises(InputError, match="can't read the recording") as caught:
            open_backend(BackendSettings(model=name))
        assert "JSON lines" in (caught.value.hint or "")
