"""Runs whose judge is asked for token probabilities, from the option to the expected values."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.cli.main import run as main
from evenhand.errors import InputError
from evenhand.testing.server import FakeServer

ITEMS = [
    {"id": f"i{n}", "question": "What is 2 + 2?", "answer": f"It is {n}.", "context": "2 + 2 = 4"} for n in range(6)
]


@pytest.fixture(scope="module")
def server() -> Iterator[FakeServer]:
    """One server for all tests."""
    with FakeServer() as running:
        yield running


def judged(url: str, out: Path, **options: Any) -> evenhand.Run:
    return evenhand.judge(ITEMS, "doc-qa", "openai:judge-1", base_url=url, out=out, **options)


@pytest.mark.parametrize(
    ("refuse", "plain"),
    [
        ("", ""),
        ("json_schema", ""),
        ("json_schema+tools", '{"correctness": 7, "comprehensiveness": 4, "readability": 6, "reason": "7 of 8"}'),
        ("json_schema+tools+json_object", "Correctness: 7 of 10\nComprehensiveness: 4\n**Readability**: 6\n"),
    ],
)
def test_expected_values(server: FakeServer, tmp_path: Path, refuse: str, plain: str) -> None:
    """In every output form the value that was written has the probability the server told, and the rest is missing."""
    run = judged(server.with_faults(refuse=refuse, plain=plain), tmp_path / "run", logprobs=True)
    seen = 0
    for verdict in run.verdicts():
        for outcome in verdict.fields.values():
            spread = outcome.distribution
            if spread is None or type(outcome.value) is not int:
                continue
            seen += 1
            told = {v: p * (1 - spread.missing_mass) for v, p in spread.probabilities.items() if p}
            later = {(outcome.value + step) % 10: p for step, p in ((1, 0.25), (2, 0.0625))}
            if 2 <= outcome.value <= 7:  # beyond, alternatives are 1, which may become 10
                assert told == pytest.approx({outcome.value: 0.625, **later})
    assert seen >= len(ITEMS)
    assert 0 <= run.summary(value="expected")["criteria"]["correctness"]["mean"] <= 10


@pytest.mark.parametrize(("limit", "listed"), [(5, 5), (1, 1)])
def test_a_limit_is_learned(
    server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, limit: int, listed: int
) -> None:
    """An endpoint that lists fewer alternatives is asked for as many as it lists, and it is said."""
    url = server.with_faults(top_logprobs=limit, salt=str(limit))
    with caplog.at_level(logging.WARNING):
        run = judged(url, tmp_path / "run", logprobs=True, concurrency=1)
    assert f"refuses top_logprobs above {limit}" in caplog.text
    bodies = [seen["body"] for seen in server.requests() if seen["path"] == url.rsplit("/", 2)[-2]]
    assert [body["top_logprobs"] for body in bodies][:2] == [20, listed]
    assert {body["top_logprobs"] for body in bodies[1:]} == {listed}
    assert all(v.fields["correctness"].distribution is not None for v in run.verdicts())


@pytest.mark.parametrize("refuse", ["logprobs", "top_logprobs"])
def test_a_refusal_is_learned(
    server: FakeServer, tmp_path: Path, caplog: pytest.LogCaptureFixture, refuse: str
) -> None:
    """An endpoint without probabilities is asked without; then there are no expected values, and that is an error."""
    url = server.with_faults(refuse=refuse)
    with caplog.at_level(logging.WARNING):
        run = judged(url, tmp_path / "run", logprobs=True, concurrency=1)
    assert "refuses logprobs" in caplog.text
    bodies = [seen["body"] for seen in server.requests() if seen["path"] == url.rsplit("/", 2)[-2]]
    assert all("logprobs" not in body and "top_logprobs" not in body for body in bodies[1:])
    assert all(v.fields["correctness"].distribution is None for v in run.verdicts())
    with pytest.raises(InputError, match="gave no probabilities"):
        run.summary(value="expected")


def test_not_asked_for(server: FakeServer, tmp_path: Path) -> None:
    """Without the option nothing is asked for."""
    url = server.with_faults(salt="none")
    judged(url, tmp_path / "run")
    bodies = [seen["body"] for seen in server.requests() if seen["path"] == url.rsplit("/", 2)[-2]]
    assert bodies and all("logprobs" not in body for body in bodies)


def test_the_option(server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line has it too; another judge that always tells probabilities takes it as well."""
    data = tmp_path / "items.jsonl"
    data.write_text("\n".join(map(json.dumps, ITEMS)), encoding="utf-8")
    url, out = server.with_faults(salt="cli"), tmp_path / "run"
    command = ["judge", str(data), "--judge", "openai:judge-1", "--base-url", url, "--out", str(out)]
    assert main([*command, "--logprobs", "--value", "expected", "--json"]) == 0
    assert "these are the stated ones" not in capsys.readouterr().err
    assert main([*command]) == 4  # another way of asking is another run
    assert "logprobs" in capsys.readouterr().err


def test_missing_mass_is_told(server: FakeServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The figures of expected values, and only these, say what probability was on no legal value, and for how many."""
    reply = '{"correctness": 7, "comprehensiveness": 4, "readability": 6}'
    run = judged(server.with_faults(reply=reply), tmp_path / "run", logprobs=True)
    told = run.summary(value="expected")["criteria"]["correctness"]
    assert told["missing_mass"] == {"mean": pytest.approx(0.0625), "n": len(ITEMS)}
    assert told["mean"] == pytest.approx((7 * 0.625 + 8 * 0.25 + 9 * 0.0625) / 0.9375)
    assert "missing_mass" not in run.summary()["criteria"]["correctness"]
    assert main(["show", str(run.folder), "--value", "expected"]) == 0
    assert "missing mass 0.062" in capsys.readouterr().out
