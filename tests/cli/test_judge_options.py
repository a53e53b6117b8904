"""Options of ``evenhand judge`` that can't work: told with place and remedy before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import make_spec
from evenhand.backend import BackendSettings
from evenhand.cli.main import run
from evenhand.errors import InputError
from evenhand.judging import parse_judge
from evenhand.testing.server import FakeServer
from runs import SCORE, rows, write_jsonl, write_script


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", rows(3))
    (tmp_path / "two.yaml").write_text(SCORE)


def _judge(judge: str, *more: str) -> int:
    return run(["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", judge, "--out", "run", *more])


def _refused(capsys: pytest.CaptureFixture[str]) -> str:
    shown = capsys.readouterr()
    assert shown.out == "" and "Traceback" not in shown.err and not Path("run").exists()
    return shown.err


@pytest.mark.parametrize(
    "url", ["", "  ", "127.0.0.1:8000", "ftp://h/v1", "http://h:x/v1", "http://[::1", "http://a..b"]
)
def test_addresses(url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """An address that can't be used, empty ones included, ends with 2; the default is not taken in its place."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    for more in ([], ["--dry-run"]):
        assert _judge("openai:m", "--base-url", url, *more) == 2
        told = _refused(capsys)
        assert told.startswith("error: base URL ") and "as in http://127.0.0.1:8000/v1" in told
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert _judge("openai:m") == 2
    assert _refused(capsys).startswith("error: OPENAI_BASE_URL ")


def test_secrets_of_options_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """What may be a key in an address or a header is not repeated by the message that refuses it."""
    assert _judge("openai:m", "--base-url", "htp://me:hidden-1@h/v1?key=hidden-1") == 2
    assert "hidden-1" not in _refused(capsys)
    for header in ("Authorization: Bearer hidden-1==", "X=hidden-1\nhidden-1", "hidden-1"):
        assert _judge("openai:m", "--base-url", "http://127.0.0.1:9/v1", "--header", header) == 2
        assert "hidden-1" not in _refused(capsys)


@pytest.mark.parametrize(
    "options",
    [
        {"headers": [("Authorization", "hidden-1")]},
        {"headers": {"Authorization": b"hidden-1"}},
        {"base_url": b"http://h/v1?key=hidden-1"},
    ],
)
def test_secrets_of_keywords_are_not_shown(options: dict[str, Any]) -> None:
    """A keyword of the wrong kind that may hold a key is told without its value."""
    with pytest.raises(InputError) as caught:
        make_spec(rows(1), SCORE, "openai:m", **options)
    assert "must" in caught.value.message and "hidden" not in str(caught.value)


@pytest.mark.parametrize(("settings", "named"), [({"top_p": 0.5}, "top_p"), ({"seed": 1, "temperature": 0}, "seed")])
def test_settings_a_local_judge_has_not(settings: dict[str, Any], named: str) -> None:
    """Any setting that a local judge can't honour is refused when it is opened, by name and with what there is."""
    with pytest.raises(InputError, match=f"no setting {named}") as caught:
        parse_judge("local", settings).open(BackendSettings())
    assert "temperature and max_tokens" in (caught.value.hint or "")


@pytest.mark.parametrize("value", ["0.7", "1"])
def test_a_local_judge_does_not_sample(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--temperature with a local judge ends with 2 before the start, whether its weights are here or not."""
    for judge in ("local", "local:nothing.gguf"):
        assert _judge(judge, "--temperature", value) == 2
        told = _refused(capsys)
        assert "does not sample" in told and "leave the temperature out, or set it to 0" in told


def test_a_huge_concurrency_is_no_burden() -> None:
    """A concurrency far above the number of trials judges them and ends with 0."""
    assert _judge("fake", "--concurrency", "999999999999999") == 0


def test_a_dry_run_counts_the_forms(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a server's output form is not known, --dry-run counts the calls of finding it out."""
    assert _judge("openai:m", "--base-url", server.with_faults(), "--dry-run", "--no-re-ask") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["calls"], told["form_probes"], told["calls_at_most"]) == (3, 3, 6)


@pytest.mark.parametrize("kind", ["fake", "replay"])
def test_files_of_replies(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged script or recording ends with 2, file and line."""
    path = tmp_path / "said.jsonl"
    path.write_bytes(b'{"id": "i0", "reply": "x"}\n\xe9\n' if kind == "replay" else b'{"reply": "x"}\n\xe9\n')
    assert _judge(f"{kind}:said.jsonl") == 2
    assert "said.jsonl:2 $: not UTF-8 at byte 1" in _refused(capsys)
    assert _judge(f"{kind}:{tmp_path}") == 2
    assert "Is a directory" in _refused(capsys)
    assert _judge(write_script(path, (None, "x"))) == 0


def test_expected_values_that_the_judge_did_not_give(capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is judged already shows what it has and says so; `show`, which has nothing else to do, ends with 2."""
    assert _judge("fake", "--value", "expected", "--json") == 0
    shown = capsys.readouterr()
    assert "gave no probabilities, so there are no expected values; these are the stated ones" in shown.err
    assert json.loads(shown.out)["value"] == "stated"
    assert run(["show", "run", "--value", "expected"]) == 2
    assert "--value stated" in capsys.readouterr().err
