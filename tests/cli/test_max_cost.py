"""``evenhand judge --max-cost``: stops before the cap, goes on with a higher one, and forgets nothing when killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.api import Run
from evenhand.backends.openai_chat import ChatWire
from evenhand.backends.wire import Wire
from evenhand.cli.main import run
from evenhand.errors import InputError, RunError
from evenhand.item import Item
from evenhand.item_values import Image
from evenhand.prices import Price
from evenhand.spending import require_bounded
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from rubric_texts import rubric
from runs import LIE, SCORE, TWO, rows, write_jsonl

CALL = 0.01  # a call costs exactly that by the table "call.yaml"


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", rows(24))
    (tmp_path / "two.yaml").write_text(SCORE)
    (tmp_path / "call.yaml").write_text(f"m: {{input: 0, output: 0, request: {CALL}}}\n")
    (tmp_path / "tokens.yaml").write_text("'m*': {input: 1, output: 10}\n")


def command(url: str, *more: str, prices: str = "call.yaml", out: str = "run") -> list[str]:
    """The arguments of a run."""
    told = ["judge", "data.jsonl", "--rubric", "two.yaml", "--judge", "openai:m", "--base-url", url, "--out", out]
    return [*told, "--max-tokens", "300", *(("--prices", prices) if prices else ()), *more]


def judged(out: str) -> list[str]:
    """All verdicts of a run, as comparable text."""
    return sorted(json.dumps(row, sort_keys=True) for row in Run(out).rows(long=True))


def spent(out: str) -> dict[str, Any]:
    """What the run's manifest tells of money."""
    with Store.open(Path(out)) as store:
        return dict(store.manifest["cost"])


@pytest.mark.parametrize(("prices", "cap"), [("call.yaml", 0.155), ("tokens.yaml", 0.02)])
def test_it_stops_at_the_cap_and_goes_on_with_a_higher_one(
    prices: str, cap: float, server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Re-asks, form probes and tries again included it ends with 4 before the cap; with a higher cap the verdicts are
    in the end those of a run without one, and the figures tell the money.
    """
    url = server.with_faults(reply=json.dumps(LIE), fault="429:0.1", retry_after=0.02, latency="5")
    assert run(command(url, prices="", out="free")) == 0
    capsys.readouterr()
    assert run(command(url, "--max-cost", str(cap), prices=prices)) == 4
    told = capsys.readouterr().err
    assert "--max-cost is reached: the next request may cost $" in told and "a higher --max-cost goes on" in told
    assert f"of ${cap}" in told.replace("0.0200", "0.02") and " left; what was answered is stored" in told
    at = spent("run")
    assert (
        0 < at["at_most_usd"] <= cap and at["price"]["source"] == f"{prices}, {'m' if prices == 'call.yaml' else 'm*'}"
    )
    assert run(command(url, "--max-cost", str(cap), prices=prices)) == 4  # nothing is left of it
    assert spent("run")["at_most_usd"] <= cap
    assert run(command(url, "--max-cost", "5", "--json", prices=prices)) == 0
    shown = capsys.readouterr()
    facts = json.loads(shown.out)
    assert facts["scored"] == 24 and facts["spent"]["at_most_usd"] >= facts["cost_usd"] > 0
    assert "about $" in shown.err
    apart = ("usage", "cost_usd", "latency_s", "calls")
    plain = [
        [{k: v for k, v in json.loads(row).items() if k not in apart} for row in judged(out)] for out in ("run", "free")
    ]
    assert plain[0] == plain[1]


def test_a_kill_forgets_nothing(server: FakeServer) -> None:
    """After kill -9 with requests in flight, what may have been paid is at least what the server was asked for, and
    never more than the cap; the same holds after every further run, and a higher cap ends it.
    """
    write_jsonl(Path("data.jsonl"), rows(60))
    url = server.with_faults(latency="60-120")
    server.reset()
    line = [sys.executable, "-m", "evenhand", *command(url, "--max-cost", "0.4", "--concurrency", "8")]
    for _ in range(2):
        before = server.stats()["requests"]
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and server.stats()["requests"] < before + 9:
            time.sleep(0.01)
        process.kill()
        process.wait()
        asked = server.stats()["requests"]
        assert asked * CALL <= spent("run")["at_most_usd"] + 1e-9 <= 0.4 + 2e-9
    assert run(command(url, "--max-cost", "0.4")) == 4
    asked = server.stats()["requests"]
    assert 18 <= asked <= 40 and asked * CALL <= spent("run")["at_most_usd"] + 1e-9 <= 0.4 + 2e-9
    assert run(command(url, "--max-cost", "2")) == 0
    assert all('"scored"' in row for row in judged("run")) and len(judged("run")) == 60


def test_what_may_have_been_paid_counts(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Replies that were cut off on the way count as possibly paid, and the error tells so."""
    url = server.with_faults(fault="cut")
    server.reset()
    assert run(command(url, "--max-cost", "0.05", "--concurrency", "2")) in (3, 4)
    assert server.stats()["requests"] <= 5
    assert spent("run")["at_most_usd"] == pytest.approx(CALL * server.stats()["requests"])
    assert run(command(url, "--max-cost", "0.05", "--concurrency", "2")) in (3, 4)
    assert server.stats()["requests"] <= 5
    assert "$0.00 paid, $0.0" in capsys.readouterr().err


def test_an_unknown_price(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """It is told once and the cost stays unknown; with a cap it ends with 2, nothing sent and nothing made."""
    url = server.with_faults()
    server.reset()
    for more in ([], ["--dry-run"]):
        assert run(command(url, "--max-cost", "5", *more, prices="")) == 2
        told = capsys.readouterr()
        assert f"no price known for m at {url}, so --max-cost can't hold" in told.err and "--prices FILE" in told.err
    assert server.stats()["requests"] == 0 and not Path("run").exists()
    assert run(command(url, "--limit", "3", "--json", prices="")) == 0
    told = capsys.readouterr()
    assert told.err.count("no price known for m") == 1
    assert json.loads(told.out)["cost_usd"] is None and json.loads(told.out)["spent"] is None


def test_a_cap_below_one_call(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """It ends with 4 and tells what a request may cost; nothing was sent."""
    url = server.with_faults()
    server.reset()
    assert run(command(url, "--max-cost", "0.009")) == 4
    told = capsys.readouterr().err
    assert "the next request may cost $0.0100" in told and "$0.00 paid, of $0.00900; 24 trials left" in told
    assert server.stats()["requests"] == 0


def test_a_reply_must_have_a_limit(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --max-tokens, and with no max_output in the table, a cap can't hold: 2, nothing sent."""
    url = server.with_faults()
    server.reset()
    line = [word for word in command(url, "--max-cost", "1") if word not in ("--max-tokens", "300")]
    assert run(line) == 2 and "--max-tokens N" in capsys.readouterr().err
    Path("call.yaml").write_text("m: {input: 1, output: 1, max_output: 500}\n")
    assert run([*line, "--dry-run"]) == 0
    assert server.stats()["requests"] == 0


def test_an_endpoint_that_takes_no_limit(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it refuses the limit of tokens, a run with a cap stops rather than go on without."""
    monkeypatch.setattr(ChatWire, "instead", Wire.instead)  # no other name for it is tried
    url = server.with_faults(refuse="max_tokens")
    server.reset()
    assert run(command(url, "--max-cost", "1", "--concurrency", "1")) == 3
    assert "takes no limit of tokens" in capsys.readouterr().err
    assert server.stats()["by_status"] == {"400": 1}
    assert run(command(url, out="uncapped")) == 0


def test_a_reply_beyond_its_limit(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """A server that bills more than prices and limit allow ends a run with a cap."""
    Path("tokens.yaml").write_text("m: {input: 0, output: 1000}\n")
    line = command(server.with_faults(), "--max-cost", "50", "--concurrency", "1", prices="tokens.yaml")
    line[line.index("300")] = "1"
    assert run(line) == 4
    assert "more than the $0.00100 it could by --max-tokens and the prices" in capsys.readouterr().err


def test_what_the_server_tells_counts(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    """Replies from before a price was known are paid for by their token counts."""
    url = server.with_faults()
    assert run(command(url, "--limit", "4", prices="")) == 0
    assert run(command(url, "--limit", "4", "--max-cost", "1")) == 0  # nothing to ask
    assert run(command(url, "--limit", "8", "--max-cost", "0.0401")) == 4
    assert "$0.0400 paid, of $0.0401; 4 trials left" in capsys.readouterr().err


def test_images_with_a_cap() -> None:
    """Where images are shown, a cap needs to know how many tokens one may count as."""
    shown = rubric(
        SCORE.replace("answer: text}", "answer: text}\n  optional: {pictures: images}") + "images: {shown: true}\n"
    )
    price = Price(((0, 1.0),), ((0, 1.0),))
    item = Item("i", 0, {"question": "q", "answer": "a", "pictures": (Image("a.png"),)}, {}, "")
    require_bounded(shown, price, [Item("i", 0, {"question": "q", "answer": "a"}, {}, "")])
    require_bounded(shown, replace(price, image_tokens=1600), [item])
    with pytest.raises(InputError, match="what an image costs"):
        require_bounded(shown, price, [item])


def test_from_python(server: FakeServer, tmp_path: Path) -> None:
    """The keywords are the options; a cap needs a folder, as what was paid for must stay."""
    how: dict[str, Any] = {"base_url": server.with_faults(), "max_tokens": 300, "prices": tmp_path / "call.yaml"}
    with pytest.raises(InputError, match="max_cost needs out"):
        evenhand.judge(rows(3), TWO, "openai:m", max_cost=0.1, **how)
    with pytest.raises(RunError, match="--max-cost is reached"):
        evenhand.judge(rows(3), TWO, "openai:m", max_cost=0.015, out=tmp_path / "r", **how)
    assert evenhand.judge(rows(3), TWO, "openai:m", max_cost=1, out=tmp_path / "r", **how).summary()["scored"] == 3
    for bad in ({"max_cost": 0}, {"max_cost": "1"}, {"prices": 3}):
        with pytest.raises(InputError, match="must be"):
            evenhand.judge(rows(1), TWO, "openai:m", out=tmp_path / "s", **{**how, **bad})


@pytest.mark.parametrize("counts", [True, False])
def test_replies_are_counted_again_only_where_they_must_be(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, counts: bool
) -> None:
    """What was saved holds all that a run spent, so a resume reads no replies; it tells the same."""
    assert run(command(server.url, "--max-cost", "0.105")) == RunError.exit_code
    with Store.open(Path("run"), write=True) as store:
        cost = {**store.manifest["cost"], "at_most_usd": 0.115}  # as after a kill
        store.update_manifest(cost={name: part for name, part in cost.items() if counts or name != "counted"})
    read, usages = [], Store.usages
    monkeypatch.setattr(Store, "usages", lambda *args: read.append(1) or usages(*args))
    capsys.readouterr()
    assert run(command(server.url, "--max-cost", "0.135")) == RunError.exit_code
    assert "$0.120 paid, $0.0150 possibly paid without a reply, of $0.135; 12 trials left" in capsys.readouterr().err
    assert len(read) == 1  # at the end, to tell; or at the beginning
    assert run(command(server.url, "--max-cost", "9")) == 0
    assert len(read) == 1
