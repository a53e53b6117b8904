"""Runs through batches: the verdicts of a live run, nothing handed in twice, only what failed handed in again."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import Run, make_spec
from evenhand.errors import AccessError, BackendError, InputError, RunError
from evenhand.run import run
from evenhand.runners import batch
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from runs import GOOD, LIE, TWO, rows, run_it, statuses, write_jsonl

N = 12


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are looked at often."""
    monkeypatch.setattr(batch, "FIRST_S", 0.02)
    monkeypatch.setattr(batch, "LONGEST_S", 0.02)


def _told(out: Path) -> list[tuple[Any, ...]]:
    """What decides of each verdict and reply, without times."""
    with Store.open(out) as store:
        found = []
        for _, verdicts in store.verdicts():
            for key, v in verdicts.items():
                values = {name: outcome.value for name, outcome in v.fields.items()}
                said = [(e.attempt, e.form, e.reply.text, bool(e.reply.tool_calls)) for e in store.exchanges(key)]
                tokens = (v.usage.prompt_tokens, v.usage.completion_tokens)
                found.append((key, v.status, values, v.broken, v.calls, v.re_asked, v.failure, said, tokens))
        return found


def _under_way(out: Path) -> Any:
    with Store.open(out) as store:
        return store.manifest.get("batches")


def _judge(judge: str, out: Path, url: str, **options: Any) -> None:
    run_it(rows(N), TWO, judge, out, base_url=url, **{"batch": True, **options})


@pytest.mark.parametrize("judge", ["openai:m", "anthropic:m"])
def test_the_verdicts_are_those_of_a_live_run(server: FakeServer, tmp_path: Path, judge: str) -> None:
    """Values, replies, forms, tokens and re-asks are the same, and nothing was sent but batches."""
    url = server.with_faults()
    _judge(judge, tmp_path / "live", url, batch=False)
    server.reset()
    _judge(judge, tmp_path / "batch", url)
    assert _told(tmp_path / "batch") == _told(tmp_path / "live")
    assert set(statuses(tmp_path / "batch").values()) == {"scored"}
    stats = server.stats()
    assert stats["batches"] in (1, 2)  # the second one asks again
    assert stats["batch_lines"] == stats["requests"]  # the form is known
    assert _under_way(tmp_path / "batch") == []


@pytest.mark.parametrize("judge", ["openai:m", "anthropic:m"])
def test_re_asks_are_a_second_batch(server: FakeServer, tmp_path: Path, judge: str) -> None:
    """Replies that break a rule are asked again, all of them in one batch more."""
    server.reset()
    _judge(judge, tmp_path / "run", server.with_faults(reply=json.dumps(LIE)))
    stats = server.stats()
    assert (stats["batches"], stats["batch_lines"]) == (2, 2 * (N - 1))
    assert all(v.re_asked and v.calls == 2 and v.broken == ("lie",) for v in Run(tmp_path / "run").verdicts())


def test_a_finished_run_hands_nothing_in(server: FakeServer, tmp_path: Path) -> None:
    """The same command again asks nothing; appended rows are one batch, without a live request."""
    url = server.with_faults()
    _judge("openai:m", tmp_path / "run", url)
    server.reset()
    _judge("openai:m", tmp_path / "run", url)
    assert server.stats()["batches"] == 0
    run_it(rows(N + 3), TWO, "openai:m", tmp_path / "run", base_url=url, batch=True)
    stats = server.stats()
    assert (stats["batches"] >= 1, stats["requests"] == stats["batch_lines"]) == (True, True)
    assert len(statuses(tmp_path / "run")) == N + 3


@pytest.mark.parametrize("judge", ["openai:m", "anthropic:m"])
def test_only_failed_requests_are_handed_in_again(server: FakeServer, tmp_path: Path, judge: str) -> None:
    """Every request fails the first time: the second batch has those, and no other."""
    url = server.with_faults(fault="500:first1", reply=json.dumps(GOOD))
    server.reset()
    _judge(judge, tmp_path / "run", url, attempts=3)
    stats = server.stats()
    assert (stats["batches"], stats["batch_lines"]) == (2, 2 * (N - 1))
    some = server.with_faults(fault="503:0.4", reply=json.dumps(GOOD))
    server.reset()
    _judge(judge, tmp_path / "some", some, attempts=9)
    stats = server.stats()
    assert N - 1 < stats["batch_lines"] < 3 * N
    assert set(statuses(tmp_path / "some").values()) == {"scored"}


def test_tries_are_bounded(server: FakeServer, tmp_path: Path) -> None:
    """What fails each time is Failed with the server's words, stored once; the next command tries again."""
    url = server.with_faults(reply=json.dumps(GOOD), salt="bounded")
    _judge("openai:m", tmp_path / "run", url, limit=1)
    with FakeServer(reply=json.dumps(GOOD)) as sick:
        _judge("openai:m", tmp_path / "sick", sick.url, limit=1)
        sick.behave(fault="500")
        sick.reset()
        _judge("openai:m", tmp_path / "sick", sick.url, attempts=2)
        assert sick.stats()["batches"] == 2
        told = statuses(tmp_path / "sick")
        assert sorted(told.values()) == ["failed"] * (N - 1) + ["scored"]
        assert {v.detail for v in Run(tmp_path / "sick").verdicts() if v.failure} == {
            f"{sick.url} answered 500: The server had an error."
        }
        sick.behave(reply=json.dumps(GOOD))
        _judge("openai:m", tmp_path / "sick", sick.url)
        assert set(statuses(tmp_path / "sick").values()) == {"scored"}


@pytest.mark.parametrize("judge", ["openai:m", "anthropic:m"])
def test_what_expired_is_handed_in_again(server: FakeServer, tmp_path: Path, judge: str) -> None:
    """Half of a batch was answered in time: that half counts, the other half is the next batch."""
    url = server.with_faults(batch="expired", reply=json.dumps(GOOD))
    server.reset()
    _judge(judge, tmp_path / "run", url)
    stats = server.stats()
    half = (N - 1) - (N - 1) // 2
    assert (stats["batches"], stats["batch_lines"], stats["requests"]) == (2, N - 1 + half, N)
    assert set(statuses(tmp_path / "run").values()) == {"scored"}


def test_a_batch_refused_as_a_whole_ends_the_run(server: FakeServer, tmp_path: Path) -> None:
    """With the provider's reason; it is not waited for again, the next command hands in another."""
    url = server.with_faults(batch="failed", reply=json.dumps(GOOD))
    with pytest.raises(BackendError, match="was refused: the file can't be used"):
        _judge("openai:m", tmp_path / "run", url)
    assert _under_way(tmp_path / "run") == []
    _judge("openai:m", tmp_path / "run", url)
    assert set(statuses(tmp_path / "run").values()) == {"scored"}


def test_large_runs_are_several_batches(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No batch has more requests, or bytes, than the provider takes."""
    monkeypatch.setattr("evenhand.backends.openai_batch.OpenAIBatches.most_lines", 4)
    server.reset()
    _judge("openai:m", tmp_path / "lines", server.with_faults(reply=json.dumps(GOOD)))
    assert server.stats()["batches"] == 3
    monkeypatch.setattr("evenhand.backends.openai_batch.OpenAIBatches.most_bytes", 1)
    server.reset()
    _judge("openai:m", tmp_path / "bytes", server.with_faults(reply=json.dumps(GOOD)))
    assert server.stats()["batches"] == N - 1
    assert set(statuses(tmp_path / "bytes").values()) == {"scored"}


def test_an_interrupt_leaves_the_batch_to_the_provider(server: FakeServer, tmp_path: Path) -> None:
    """The run says how to collect; without --batch it refuses to pay twice; with it nothing is handed in again."""
    url, out = server.with_faults(reply=json.dumps(GOOD)), tmp_path / "run"
    server.reset()
    spec = make_spec(rows(N), TWO, "openai:m", out=out, base_url=url, batch=True)
    stop, said = Stop(), []

    class Told(batch_progress()):  # type: ignore[misc]
        def warn(self, text: str) -> None:
            said.append(text)
            if "handed in" in text:
                stop()

    outcome = asyncio.run(run(spec, progress=Told(), stop=stop))
    assert outcome.interrupted
    assert len(statuses(out)) == 1
    assert [entry["id"] for entry in _under_way(out)] == ["batch_1"]
    with pytest.raises(RunError, match="waits for what it handed in: batch_1"):
        _judge("openai:m", out, url, batch=False)
    _judge("openai:m", out, url)
    assert server.stats()["batches"] == 1
    assert set(statuses(out).values()) == {"scored"}
    assert any("the same command collects it" in text for text in said) or outcome.interrupted


def batch_progress() -> Any:
    """The class that is told of a run's course."""
    from evenhand.run import Progress

    return Progress


def test_a_batch_handed_in_just_before_a_kill_is_found(server: FakeServer, tmp_path: Path) -> None:
    """Killed before its id was stored: it is known by its token. One that never got there is handed in again."""
    url, out = server.with_faults(reply=json.dumps(GOOD)), tmp_path / "run"
    server.reset()
    spec = make_spec(rows(N), TWO, "openai:m", out=out, base_url=url, batch=True)
    stop = Stop()

    class Told(batch_progress()):  # type: ignore[misc]
        def warn(self, text: str) -> None:
            if "handed in" in text:
                stop()

    asyncio.run(run(spec, progress=Told(), stop=stop))
    with Store.open(out, write=True) as store:
        [entry] = store.manifest["batches"]
        store.update_manifest(batches=[{**entry, "id": None}, {"token": "never", "id": None, "lines": 3}])
    _judge("openai:m", out, url)
    assert server.stats()["batches"] == 1
    assert set(statuses(out).values()) == {"scored"}


def test_killed_while_it_waits_a_run_collects_later(tmp_path: Path) -> None:
    """kill -9 after handing in, then the same command: one batch in all, all verdicts there."""
    data, out = write_jsonl(tmp_path / "rows.jsonl", rows(N)), tmp_path / "run"
    with FakeServer() as server:
        command = [
            sys.executable,
            "-m",
            "evenhand",
            "judge",
            str(data),
            "--judge",
            "openai:m",
            "--base-url",
            server.url,
        ]
        command += ["--no-re-ask", "--batch", "--out", str(out)]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while server.stats()["batches"] == 0 and time.monotonic() < end:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(statuses(out)) < N
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert server.stats()["batches"] == 1
        assert set(statuses(out).values()) == {"scored"}
        assert len(statuses(out)) == N


@pytest.mark.parametrize("judge", ["fake", "replay:FILE", "gemini:m"])
def test_a_judge_without_batches_is_told(tmp_path: Path, judge: str) -> None:
    """Before anything is sent."""
    recording = write_jsonl(tmp_path / "rec.jsonl", [{"id": "i0", "reply": "x"}])
    spec = judge.replace("FILE", str(recording))
    with pytest.raises(InputError, match="has no batch interface"):
        run_it(rows(1), TWO, spec, tmp_path / "run", batch=True, base_url="http://127.0.0.1:9/v1")


def test_a_server_without_batches_is_told(tmp_path: Path, server: FakeServer) -> None:
    """A server that only speaks chat completions answers 404: the run ends, what was asked live is stored."""
    url = server.with_faults(batch="none", reply=json.dumps(GOOD))
    with pytest.raises(BackendError, match="404"):
        _judge("openai:m", tmp_path / "run", url)
    assert len(statuses(tmp_path / "run")) == 1
    assert _under_way(tmp_path / "run") == []


def test_a_refused_key_in_a_batch_is_no_dead_end(tmp_path: Path) -> None:
    """The run ends with what else was answered stored; the next command hands the refused requests in again."""
    with FakeServer(reply=json.dumps(GOOD)) as server:
        out = tmp_path / "run"
        _judge("openai:m", out, server.url, limit=1)
        server.behave(fault="401:first1", reply=json.dumps(GOOD))
        with pytest.raises(AccessError, match="401"):
            _judge("openai:m", out, server.url)
        server.behave(reply=json.dumps(GOOD))
        _judge("openai:m", out, server.url)
        assert set(statuses(out).values()) == {"scored"} and len(statuses(out)) == N
        assert _under_way(out) == []
