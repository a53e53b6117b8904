"""A real llama.cpp server judges through chat completions: output forms, and token probabilities."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import evenhand
from evenhand.backend import BackendSettings, Request
from evenhand.backends import local, openai_chat
from evenhand.cli.main import run as main
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale
from evenhand.store import Store
from evenhand.testing.llama_server import MODEL_NAME, LlamaServer
from evenhand.verdict import Distribution, Reply, Status
from local_models import NAME, small_model

pytestmark = pytest.mark.local_model

ITEMS = [
    {"id": "a", "question": "What is the capital of France?", "answer": "Paris.", "context": "Paris is the capital."},
    {"id": "b", "question": "What is 2 + 2?", "answer": "Cheese.", "context": "2 + 2 = 4"},
]
PAIRS = [{"id": "p", "prompt": "What is 2 + 2?", "response_a": "4.", "response_b": "5."}]


@pytest.fixture(autouse=True)
def same_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same fence marks in each run of the tests: the small model answers other marks otherwise."""
    monkeypatch.setattr("evenhand.manifest.secrets.token_hex", lambda size: "5" * 2 * size)


@pytest.fixture(scope="module")
def server() -> Iterator[LlamaServer]:
    """One server for all tests."""
    with LlamaServer(small_model(), n_ctx=8192) as running:
        yield running


def ask(server: LlamaServer, data: Path, out: Path, *options: str) -> int:
    """Judge with the command line."""
    judge = ["judge", str(data), "--judge", f"openai:{MODEL_NAME}", "--base-url", server.base_url, "--out", str(out)]
    return main([*judge, "--logprobs", "--no-reason", "--no-re-ask", "--timeout", "120", *options])


def written(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "items.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def told(folder: Path) -> list[tuple[Any, Distribution]]:
    """Each stated value with its distribution; there is one for every value that was read."""
    found = []
    for verdict in evenhand.Run(folder).verdicts():
        assert verdict.status is Status.SCORED
        for outcome in verdict.fields.values():
            if isinstance(outcome.value, int | str) and not outcome.preset:
                assert outcome.distribution is not None
                found.append((outcome.value, outcome.distribution))
    return found


def check(found: list[tuple[Any, Distribution]]) -> None:
    """The value that was written is often the likeliest, far beyond chance: the server writes what its grammar allows,
    but tells probabilities without it."""
    assert all(math.isclose(sum(d.probabilities.values()), 1.0) for _, d in found)
    likeliest = [value == max(d.probabilities, key=d.probabilities.__getitem__) for value, d in found]
    assert sum(likeliest) >= len(likeliest) / 3


def test_scores(server: LlamaServer, tmp_path: Path) -> None:
    """doc-qa by a JSON schema: every value has a distribution, and the expected one lies in the scale."""
    out = tmp_path / "run"
    assert ask(server, written(tmp_path, ITEMS[:1]), out, "--variant", "detail=bare", "--value", "expected") == 0
    with Store.open(out) as store:
        assert store.manifest["form"] == "schema"
    found = told(out)
    check(found)
    assert len(found) == 3
    assert all(d.expected is not None and 0 <= d.expected <= 10 for _, d in found)


def test_pairs(server: LlamaServer, tmp_path: Path) -> None:
    """hhh by a JSON schema: numbers, labels and sides."""
    out = tmp_path / "run"
    assert ask(server, written(tmp_path, PAIRS), out, "--rubric", "hhh", "--orders", "ab") == 0
    check(told(out))


def test_a_tool_call_that_is_not_forced(server: LlamaServer, tmp_path: Path) -> None:
    """Where a request for a tool is answered in text, another form is found, and its values have probabilities."""
    rubric = tmp_path / "relevance.yaml"
    rubric.write_text(
        "rubric: relevance\nmode: score\nitem: {required: {question: text, answer: text}}\n"
        "criteria: [{name: relevance, text: Does it answer?, scale: {range: [0, 9], level: ordinal, integer: true}}]\n"
        "output: {forms: [tool, schema]}\n",
        encoding="utf-8",
    )
    out = tmp_path / "run"
    assert ask(server, written(tmp_path, ITEMS), out, "--rubric", str(rubric)) == 0
    check(told(out))


FIELD = OutputField("relevance", "scale", scale=Scale("", "ordinal", low=0, high=9), criterion="relevance")
SCHEMA = {
    "type": "object",
    "properties": {"relevance": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["relevance"],
    "additionalProperties": False,
}


async def test_agrees_with_the_local_judge(server: LlamaServer) -> None:
    """The same model by the same prompt in the schema form has the same distribution, but for the last digits.

    Tolerance: 0.15 nats for values of 0.01 and more; prompts computed in other pieces differ by up to 0.1.
    """
    text = 'How well does "Paris." answer "What is the capital of France?" Reply {"relevance": N} with N from 0 to 9.'
    request = Request(({"role": "user", "content": text},), "schema", schema=SCHEMA, fields=(FIELD,))
    probed = {"temperature": 0.0, "max_tokens": 32, "logprobs": True, "top_logprobs": 20}

    async def reply(backend: Any, settings: dict[str, Any]) -> Reply:
        try:
            got: Reply = await backend.send(replace(request, settings=settings))
        finally:
            await backend.aclose()
        return got

    settings = BackendSettings(model=MODEL_NAME, base_url=server.base_url, timeout_s=120.0)
    served = await reply(openai_chat.open_backend(settings), probed)
    here = await reply(local.open_backend(BackendSettings(model=NAME)), {"temperature": 0.0})
    ours, theirs = served.distributions["relevance"], here.distributions["relevance"]
    assert str(served.text).startswith('{"relevance": ')  # as the local judge writes it
    for value, p in theirs.probabilities.items():
        if p >= 0.01:
            assert abs(math.log(ours.probabilities[value] / p)) < 0.15
    assert abs(ours.missing_mass - theirs.missing_mass) < 0.05
    assert ours.expected == pytest.approx(theirs.expected, abs=0.2)
