"""What stays private: keys everywhere, item texts where asked for; and nobody is spoken to but the endpoint."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from evenhand.cli.main import run
from evenhand.testing.server import FakeServer
from runs import GOOD, LIE, SCORE, write_jsonl

#: Provider -> the variables that hold its key.
KEYS = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY",),
    "bedrock": ("AWS_BEARER_TOKEN_BEDROCK",),
    "bedrock signed": ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"),
}
KEY = "sk-Zebra0123/4567+Quagga89"
WAYS = [
    (provider, batch)
    for provider in KEYS
    for batch in (False, True)
    if not batch or provider in ("openai", "anthropic")
]

connected: set[tuple[str, int]] = set()


def _note(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and isinstance(args[1], tuple):
        connected.add((str(args[1][0]), int(args[1][1])))
    elif event == "socket.getaddrinfo":
        connected.add((str(args[0]), int(args[1] or 0)))


sys.addaudithook(_note)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A rubric, six rows, a fast look at batches, and a state folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENHAND_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("evenhand.runners.batch.FIRST_S", 0.01)
    (tmp_path / "two.yaml").write_text(SCORE)
    write_jsonl(tmp_path / "data.jsonl", [{"id": f"i{n}", "question": "q", "answer": "a"} for n in range(6)])
    return tmp_path


def judged(provider: str, url: str, batch: bool, *more: str) -> int:
    """The exit code of a run in the folder "run"."""
    command = ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", f"{provider.split()[0]}:m", "--out", "run"]
    command += ["--base-url", url, "--attempts", "2", *(["--batch"] if batch else []), *more]
    return run(command)


def written(folder: Path) -> bytes:
    """All that is written below a folder, names included."""
    files = [file for file in folder.rglob("*") if file.is_file()]
    return b"\0".join([str(file).encode() + b"\0" + file.read_bytes() for file in files])


def _keep_in(where: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key in the environment, or in a keyring (which is not asked for servers of this machine, but here)."""
    if where == "environment":
        monkeypatch.setenv(name, value)
        return
    module, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    module.get_password = lambda _, asked: value if asked == name else None  # type: ignore[attr-defined]
    errors.KeyringError = Exception  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    monkeypatch.setattr("evenhand.backends.endpoint.is_loopback", lambda _: False)
    monkeypatch.setenv("no_proxy", "*")


@pytest.mark.parametrize("where", ["environment", "keyring"])
@pytest.mark.parametrize(("provider", "batch"), WAYS)
def test_keys_are_written_nowhere(
    server: FakeServer,
    project: Path,
    provider: str,
    batch: bool,
    where: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A server that repeats all it is sent, in replies and in errors: no key stands in the run, in what is remembered
    of endpoints, in logs or in messages; and the key did arrive.
    """
    names = KEYS[provider]
    if "signed" in provider:
        pytest.importorskip("botocore", reason="botocore is not installed (evenhand[bedrock])")
        if where == "keyring":
            pytest.skip("the provider's own package finds these")
        monkeypatch.setenv("AWS_REGION", "eu-x-1")
    for n, name in enumerate(names):
        _keep_in(where, name, f"{KEY}{n}", monkeypatch)
    shown = ""
    with caplog.at_level(logging.DEBUG):
        for fault, reply in (("401", None), ("400", None), ("500:0.5", LIE | {"reason": KEY + "0"}), ("", GOOD)):
            how = {"fault": fault, "reply": json.dumps(reply)} if reply else {"fault": fault}
            url = server.with_faults(echo=True, refuse="temperature", salt=f"{provider} {where}", **how)
            judged(provider, url, batch, "--fresh", "--temperature", "0.5")
            told = capsys.readouterr()
            shown += told.out + told.err
            for secret in (KEY, KEY[:10], KEY[-10:], KEY.replace("/", "\\/"), KEY.replace("+", "%2B")):
                assert secret not in shown + caplog.text
                assert secret.encode() not in written(project / "run") + written(project / "state")
    sent = [seen["headers"] for seen in server.requests(url)]
    assert sent
    assert "signed" in provider or all(KEY in str(headers) for headers in sent)


@pytest.mark.parametrize("batch", [False, True])
def test_no_item_text_is_kept(project: Path, batch: bool) -> None:
    """--no-store-texts: nothing of fields, other columns or bad rows stands anywhere in the folder, after a run with
    failures, a run that goes on, and figures from it.
    """
    names = ("Aardvark", "Bandicoot", "Capybara", "Dugong")
    lines: list[dict[str, Any]] = [
        {"id": f"i{n}", "question": f"Aardvark {n}", "answer": f"Bandicoot {n}", "note": f"Capybara {n}"}
        for n in range(5)
    ]
    lines += [{"id": "b1", "question": 5, "answer": ["Dugong"]}, {"id": "b2", "question": "Aardvark", "note": "Dugong"}]
    write_jsonl(project / "data.jsonl", lines)
    with FakeServer() as own:
        for fault in ("500:0.5", ""):
            own.behave(fault=fault, reply=json.dumps(GOOD))
            assert judged("openai", own.url, batch, "--no-store-texts", "--skip-bad") in (0, 3)
    assert run(["show", "run", "--json"]) == 0
    kept = written(project / "run")
    assert not [name for name in names if name.lower().encode() in kept.lower()]
    assert b"Capybara" in written(project)  # that is how it would be found


@pytest.mark.parametrize(("provider", "batch"), WAYS)
def test_nobody_else_is_spoken_to(
    server: FakeServer, project: Path, provider: str, batch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first look at the input to the report there is one address that is looked up or connected to."""
    monkeypatch.setenv("AWS_REGION", "eu-x-1")
    if "signed" in provider:
        pytest.importorskip("botocore", reason="botocore is not installed (evenhand[bedrock])")
    for name in KEYS[provider]:
        monkeypatch.setenv(name, KEY)
    url = server.with_faults(reply=json.dumps(GOOD))
    connected.clear()
    assert judged(provider, url, batch, "--dry-run") == 0
    assert connected == set()
    assert judged(provider, url, batch) == 0
    assert run(["show", "run"]) == 0 and run(["report", "run", "--out", "page.html"]) == 0
    port = int(url.split(":")[2].split("/")[0])
    assert {name for name, _ in connected} <= {"127.0.0.1", "localhost"} and {at for _, at in connected} == {port}


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize(
    ("provider", "told"),
    [
        ("openai", "no API key for https://api.openai.com/v1"),
        ("anthropic", "no API key for https://api.anthropic.com"),
        ("gemini", "no API key for https://generativelanguage.googleapis.com"),
        ("bedrock", "no AWS region"),
    ],
)
def test_without_a_key_nothing_begins(
    project: Path, provider: str, told: str, batch: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, with the remedy, before anything is sent or made."""
    connected.clear()
    command = ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", f"{provider}:m", "--out", "run"]
    assert run([*command, *(["--batch"] if batch else [])]) == 2
    assert told in capsys.readouterr().err
    assert connected == set() and not (project / "run").exists()
