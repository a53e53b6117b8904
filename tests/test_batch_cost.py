"""What batches cost: a cap holds for all that is handed in, and each answer is paid for once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import Run, make_spec
from evenhand.errors import RunError
from evenhand.purse import NANO
from evenhand.run import Progress, run
from evenhand.runners import batch
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from runs import GOOD, LIE, TWO, rows, run_it, statuses

N = 32
TOKENS = {"input": 1, "output": 20, "batch": 0.5}
CALL = {"input": 0, "output": 0, "request": 0.01}  # each call costs just what it may


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FIRST_S", 0.01)
    monkeypatch.setattr(batch, "LONGEST_S", 0.01)


@pytest.fixture
def handed_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, int]]]:
    """Each time that something is handed in: how many lines are under way, and what the run may have cost by then."""
    seen: list[tuple[int, int]] = []
    submit = batch._Desk._submit

    async def watched(desk: Any, chunk: Any, held: int) -> None:
        await submit(desk, chunk, held)
        seen.append((len(chunk), desk.purse.spent + desk.purse.reserved))

    monkeypatch.setattr(batch._Desk, "_submit", watched)
    yield seen


def judge(out: Path, url: str, price: dict[str, float], cap: float | None, **more: Any) -> None:
    """A run of all rows by the judge m."""
    run_it(rows(N), TWO, "openai:m", out, **options(out, url, price, cap, **more))


def options(out: Path, url: str, price: dict[str, float], cap: float | None, **more: Any) -> dict[str, Any]:
    table = out.parent / "prices.json"
    table.write_text(json.dumps({"m": price}))
    how: dict[str, Any] = {"base_url": url, "prices": table, "max_tokens": 300, "batch": True, "attempts": 9}
    return {**how, "max_cost": cap, **more}


def at_most(out: Path) -> float:
    with Store.open(out) as store:
        return float(store.manifest["cost"]["at_most_usd"])


def paid(out: Path) -> float:
    """What the stored replies cost."""
    with Store.open(out) as store:
        return sum(usage.cost_usd or 0.0 for usage in store.usages())


def values(out: Path) -> list[Any]:
    return sorted((v.status, json.dumps({n: o.value for n, o in v.fields.items()})) for v in Run(out).verdicts())


@pytest.mark.parametrize(("reply", "fault"), [(GOOD, ""), (LIE, ""), (GOOD, "503:0.2+429:0.1")])
def test_the_cap_holds_and_a_higher_one_goes_on(
    server: FakeServer, tmp_path: Path, handed_in: list[tuple[int, int]], reply: Any, fault: str
) -> None:
    """What fits is handed in, the rest when it is known what that cost; in the end all verdicts are those of a run
    without a cap, and what was paid is counted to the last digit.
    """
    judge(tmp_path / "free", server.with_faults(reply=json.dumps(reply)), TOKENS, None)
    url, out = server.with_faults(reply=json.dumps(reply), fault=fault), tmp_path / "run"
    for part in (0.65, 0.8):
        cap = part * paid(tmp_path / "free")
        handed_in.clear()
        with pytest.raises(RunError, match="--max-cost is reached: the next request may cost") as told:
            judge(out, url, TOKENS, cap)
        assert "a higher --max-cost goes on" in str(told.value)
        assert "left; what was answered is stored" in str(told.value)
        assert all(total <= cap * NANO for _, total in handed_in) and at_most(out) <= cap
    assert 0 < len(statuses(out)) < N
    handed_in.clear()
    judge(out, url, TOKENS, 50.0)
    assert len(handed_in) <= 9
    assert at_most(out) == pytest.approx(paid(out), abs=1e-6)
    assert values(out) == values(tmp_path / "free")


@pytest.mark.parametrize("reply", [GOOD, LIE])
def test_every_answer_is_paid_for_once(server: FakeServer, tmp_path: Path, reply: Any) -> None:
    """Also one that is read again while its trial waits for a re-ask."""
    server.reset()
    judge(tmp_path / "run", server.with_faults(reply=json.dumps(reply)), CALL, None)
    calls = server.stats()["requests"]
    assert calls == (N if reply == GOOD else 2 * N)
    assert at_most(tmp_path / "run") == pytest.approx(calls * 0.01)


def test_batches_cost_less_only_where_the_table_says_so(server: FakeServer, tmp_path: Path) -> None:
    """The first trial is asked live, at the full price."""
    for part, cost in ((1, 0.01), (0.5, 0.005)):
        url = server.with_faults(reply=json.dumps(GOOD), salt=f"part {part}")  # another endpoint
        out = tmp_path / str(part)
        judge(out, url, {**CALL, "batch": part}, 1.0, re_ask=False)
        assert sorted(v.usage.cost_usd or 0.0 for v in Run(out).verdicts()) == pytest.approx([cost] * (N - 1) + [0.01])


def test_what_is_under_way_is_set_aside_across_a_stop(server: FakeServer, tmp_path: Path) -> None:
    """A run that is stopped keeps what it handed in as possibly paid; the next one counts what it did cost."""
    url, out = server.with_faults(reply=json.dumps(GOOD)), tmp_path / "run"
    stop = Stop()

    class Told(Progress):
        def warn(self, text: str) -> None:
            if "handed in" in text:
                stop()

    how = options(out, url, TOKENS, 50.0)
    asyncio.run(run(make_spec(rows(N), TWO, "openai:m", out=out, **how), progress=Told(), stop=stop))
    with Store.open(out) as store:
        [entry] = store.manifest["batches"]
    assert at_most(out) == pytest.approx(paid(out) + entry["held"] / NANO) and entry["held"] > 5 * paid(out) * NANO
    judge(out, url, TOKENS, 50.0)
    assert at_most(out) == pytest.approx(paid(out), abs=1e-6)
    assert len(statuses(out)) == N


def test_a_batch_that_nobody_finds_may_have_been_paid(server: FakeServer, tmp_path: Path) -> None:
    """Killed while it was handed in, where the provider can't tell: its bound counts, and its requests go again."""
    url, out = server.with_faults(reply=json.dumps(GOOD)), tmp_path / "run"
    judge(out, url, CALL, 50.0, limit=4)
    before = at_most(out)
    with Store.open(out, write=True) as store:
        lost = {"token": "never", "id": None, "lines": 3, "held": 30_000_000}
        cost = {**store.manifest["cost"], "at_most_usd": before + 0.03}
        store.update_manifest(batches=[lost], cost=cost)
    judge(out, url, CALL, 50.0)
    assert at_most(out) == pytest.approx(N * 0.01 + 0.03)


def test_a_batch_refused_as_a_whole_costs_nothing(server: FakeServer, tmp_path: Path) -> None:
    """What was set aside for it can be spent again."""
    url, out = server.with_faults(batch="failed", reply=json.dumps(GOOD)), tmp_path / "run"
    with pytest.raises(Exception, match="was refused"):
        judge(out, url, CALL, N * 0.01 + 1e-6)
    judge(out, url, CALL, N * 0.01 + 1e-6)
    assert len(statuses(out)) == N


def test_a_cap_below_one_request(server: FakeServer, tmp_path: Path) -> None:
    """Nothing is sent, not even the request that goes first."""
    server.reset()
    with pytest.raises(RunError, match="--max-cost is reached"):
        judge(tmp_path / "run", server.with_faults(reply=json.dumps(GOOD)), CALL, 0.009)
    assert server.stats()["requests"] == 0
