"""Shards: who has which row, who may use how much, and what a folder holds."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.api import Run, make_spec
from evenhand.cli.main import run as shell
from evenhand.errors import InputError, ItemError, RunError
from evenhand.estimate import estimate
from evenhand.sharding import Dealt, Shard, read_shard
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from rubric_texts import PAIR, rubric
from runs import SCORE, TWO, rows, run_it, write_jsonl


@pytest.mark.parametrize("text", ["", "1", "0/2", "3/2", "1/0", "1/2/3", "a/b", "-1/2", "1 / 2", "²/3", "1/9999999999"])
def test_a_shard_is_written_i_of_n(text: str) -> None:
    """Anything but I/N with 1 <= I <= N is refused, with an example."""
    with pytest.raises(InputError, match="shard must be I/N, the I-th of N, as in 2/8, not "):
        make_spec(rows(1), TWO, "fake", shard=text)


def test_shards_read_back() -> None:
    """What is written is what is shown."""
    assert str(read_shard("2/8")) == "2/8" and read_shard("12/12") == Shard(12, 12)


@given(st.integers(1, 9), st.integers(0, 10**6))
def test_every_row_is_in_one_shard(of: int, row: int) -> None:
    """No row is left out or dealt twice."""
    assert sum(Shard(number, of).holds(row) for number in range(1, of + 1)) == 1


@given(st.integers(1, 40), st.integers(1, 200))
def test_slots_add_up(of: int, whole: int) -> None:
    """Requests in flight of all shards are those of the whole; where there are fewer than shards, one each."""
    slots = [Shard(number, of).slots(whole) for number in range(1, of + 1)]
    assert sum(s for s in slots if s is not None) == max(whole, of) and min(s for s in slots if s is not None) >= 1


def test_limits_are_divided() -> None:
    """Requests in flight, requests and tokens a minute and money are those of all shards together; none stays none."""
    spec = make_spec(rows(1), TWO, "fake", concurrency=10, rpm=60, tpm=1000, max_cost=2, out="r", shard="3/4")
    assert spec.limits == (2, 15, 250, 0.5)
    assert spec.harmless["concurrency"] == 10 and spec.harmless["max_cost"] == 2
    assert make_spec(rows(1), TWO, "fake", shard="3/4").limits == (None, None, None, None)
    assert make_spec(rows(1), TWO, "fake", concurrency=10).limits == (10, None, None, None)


def test_all_rows_are_counted() -> None:
    """The rows of all shards are counted, those of one are passed on."""
    spec = make_spec(rows(1), TWO)
    assert spec.shard is None
    dealt = Dealt([type("Row", (), {"row": n})() for n in range(7)], Shard(2, 3))
    assert [row.row for row in dealt] == [1, 4] and dealt.seen == 7


def test_a_shard_has_its_own_rows_at_their_places(tmp_path: Path) -> None:
    """Only its rows are stored, numbered as in the whole input; its dry run tells their number."""
    run_it(rows(7), TWO, "fake", tmp_path / "r", shard="2/3")
    with Store.open(tmp_path / "r") as store:
        assert [(item.row, item.id) for item in store.items()] == [(1, "i1"), (4, "i4")]
        assert store.manifest["shard"] == "2/3" and store.manifest["rows_dealt"] == 7
    told = estimate(make_spec(rows(7), TWO, "fake", shard="1/3"))
    assert (told["rows"], told["trials"]) == (3, 3)


def test_a_shard_of_each_kind_of_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files, standard input, data frames and iterables are dealt in the same way."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    some = rows(8)
    frame = pandas.DataFrame(some)
    frame.to_csv(tmp_path / "d.csv", index=False)
    parquet.write_table(pyarrow.Table.from_pylist(some), tmp_path / "d.parquet")
    lines = write_jsonl(tmp_path / "d.jsonl", some)
    sources = [str(lines), str(tmp_path / "d.csv"), str(tmp_path / "d.parquet"), frame, some, iter(some)]
    for n, source in enumerate(sources):
        run_it(source, TWO, "fake", tmp_path / f"r{n}", shard="3/3")
    stdin = io.TextIOWrapper(io.BytesIO(lines.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    run_it("-", TWO, "fake", tmp_path / f"r{len(sources)}", shard="3/3")
    for n in range(len(sources) + 1):
        assert [row["id"] for row in Run(tmp_path / f"r{n}").rows()] == ["i2", "i5"], n


def test_it_composes_with_limit_sample_and_resume(tmp_path: Path) -> None:
    """A shard is one of the rows that are judged; the same command again sends nothing, and takes appended rows."""
    parts: list[str] = []
    for number in (1, 2):
        out = tmp_path / f"s{number}"
        run_it(rows(30), TWO, "fake", out, sample=9, seed=4, shard=f"{number}/2")
        parts += [row["id"] for row in Run(out).rows()]
    run_it(rows(30), TWO, "fake", tmp_path / "one", sample=9, seed=4)
    assert sorted(parts) == sorted(row["id"] for row in Run(tmp_path / "one").rows())
    run_it(rows(5), TWO, "fake", tmp_path / "r", limit=4, shard="2/2")
    assert [row["id"] for row in Run(tmp_path / "r").rows()] == ["i1", "i3"]
    assert run_it(rows(5), TWO, "fake", tmp_path / "r", limit=4, shard="2/2").asked == 0
    assert run_it(rows(8), TWO, "fake", tmp_path / "r", shard="2/2").asked == 2


@pytest.mark.parametrize(("first", "then", "told"), [
    ("1/2", "2/2", "shard: 1/2 -> 2/2"),
    ("1/2", None, "shard: 1/2 -> the whole input"),
    (None, "1/2", "shard: the whole input -> 1/2"),
])  # fmt: skip
def test_a_folder_holds_one_shard(tmp_path: Path, first: str | None, then: str | None, told: str) -> None:
    """A folder is not resumed with another shard, or without one."""
    run_it(rows(4), TWO, "fake", tmp_path / "r", shard=first)
    with pytest.raises(RunError, match=told):
        run_it(rows(4), TWO, "fake", tmp_path / "r", shard=then)


def test_bad_rows_stop_their_own_shard_only(tmp_path: Path) -> None:
    """A bad row is told where it is dealt; an id that was given before counts, in whatever shard that was."""
    some = [*rows(3), {"id": "i0", "question": "again", "answer": "a"}]
    run_it(some, TWO, "fake", tmp_path / "s1", shard="1/2")
    with pytest.raises(ItemError, match="the id 'i0' was given before, in row 1"):
        run_it(some, TWO, "fake", tmp_path / "s2", shard="2/2")
    run_it(some, TWO, "fake", tmp_path / "s2", shard="2/2", skip_bad=True)
    assert Run(tmp_path / "s2").summary()["bad_rows"] == 1


def test_a_shard_without_rows_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More shards than rows: one without any ends with 0, also under a bar of coverage; an empty input is an error."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "d.jsonl", rows(2))
    (tmp_path / "two.yaml").write_text(SCORE)
    asked = ["judge", "d.jsonl", "--rubric", "two.yaml", "--judge", "fake", "--coverage", "1"]
    assert shell([*asked, "--shard", "3/3"]) == 0
    assert Run("runs/d-two-fake-shard_3_3").summary()["rows"] == 0
    assert shell([*asked, "--shard", "3/3"]) == 0
    (tmp_path / "d.jsonl").write_text("")
    assert shell([*asked, "--shard", "1/3", "--fresh"]) == 2


def test_pairs_are_dealt_one_by_one(tmp_path: Path) -> None:
    """The pairs of a prompt may be in several shards; together they are those of one run, each once."""
    prompts = [
        {"id": f"p{n}", "prompt": "q", "responses": [{"system": s, "response": f"{s} {n}"} for s in "abcd"]}
        for n in range(3)
    ]
    for pairs in ("all", "budget:7"):
        run_it(prompts, rubric(PAIR), "fake", tmp_path / f"{pairs}-one", pairs=pairs)
        one = [(item.row, item.id) for item in _items(tmp_path / f"{pairs}-one")]
        found = []
        for number in (1, 2, 3):
            out = tmp_path / f"{pairs}-{number}"
            run_it(prompts, rubric(PAIR), "fake", out, pairs=pairs, shard=f"{number}/3")
            found += [(item.row, item.id) for item in _items(out)]
        assert sorted(found) == one and len(one) == {"all": 18, "budget:7": 7}[pairs]


def _items(out: Path) -> list[object]:
    with Store.open(out) as store:
        return list(store.items())


def test_caps_hold_over_all_shards(server: FakeServer, tmp_path: Path) -> None:
    """What all shards may spend is the cap at most, and requests in flight are those of the whole."""
    server.reset()
    (tmp_path / "call.yaml").write_text("m: {input: 0, output: 0, request: 0.01}\n")
    how = {"base_url": server.url, "prices": str(tmp_path / "call.yaml"), "max_tokens": 300, "re_ask": False}
    spent = 0.0
    for number in (1, 2, 3):
        out = tmp_path / f"s{number}"
        with pytest.raises(RunError, match=r"(?s)--max-cost is reached.* of \$0.05"):
            run_it(rows(60), TWO, "openai:m", out, shard=f"{number}/3", max_cost=0.155, concurrency=6, **how)
        with Store.open(out) as store:
            spent += store.manifest["cost"]["at_most_usd"]
            assert json.dumps(store.manifest["commands"]).count('"max_cost": 0.155') == 1
    assert 0.1 <= spent <= 0.155
    assert server.stats()["requests"] <= 15
    assert server.stats()["max_inflight"] <= 2


def test_the_same_input_is_not_read_again_but_where_its_rows_were_not_counted(tmp_path: Path) -> None:
    """A shard of a file that is as it was goes on without reading it; one killed while reading reads it again."""
    data, out = write_jsonl(tmp_path / "d.jsonl", rows(6)), tmp_path / "r"
    for known in (6, None):
        run_it(str(data), TWO, "fake", out, shard="1/2")
        with Store.open(out, write=True) as store:
            assert store.manifest["rows_dealt"] == 6
            store.update_manifest(rows_dealt=known)
    assert run_it(str(data), TWO, "fake", out, shard="1/2").asked == 0
    with Store.open(out) as store:
        assert store.manifest["rows_dealt"] == 6
