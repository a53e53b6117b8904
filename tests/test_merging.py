"""Merged runs: the shards of an input are the run that judged it whole."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evenhand
from evenhand.api import Run
from evenhand.cli.main import run as shell
from evenhand.errors import InputError, RunError
from evenhand.inspection import inspect_item
from evenhand.merging import merge
from evenhand.rescore import rescore
from evenhand.rubric.model import Rubric
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from rubric_texts import PAIR, rubric
from runs import GOOD, LIE, SCORE, TWO, rows, run_it, write_jsonl, write_script

PAIRS = rubric(PAIR)


def stored(out: Path) -> dict[str, Any]:
    """All that a run keeps but its times, in a form to be compared."""
    with Store.open(out) as store:
        manifest = store.manifest
    with closing(sqlite3.connect(out / "run.sqlite")) as db:
        told = {
            "item": db.execute("SELECT seq, id, digest, content, problem FROM item ORDER BY seq").fetchall(),
            "trial": sorted(db.execute('SELECT item, "order", repeat, status, verdict FROM trial')),
            "reply": sorted(db.execute('SELECT item, "order", repeat, attempt, request, form, reply FROM reply')),
        }
    for name in ("created", "merged", "rows_dealt", "form", "input"):
        manifest.pop(name, None)
    return {**told, "manifest": manifest}


def exported(out: Path, target: Path) -> bytes:
    """The run's rows and trials as files."""
    found = b""
    for name, more in (("x.csv", []), ("x.jsonl", ["--long"])):
        assert shell(["export", str(out), "--to", str(target / name), *more]) == 0
        found += (target / name).read_bytes()
    return found


def in_shards(items: Any, asked: Rubric, judge: str, folder: Path, of: int, **options: Any) -> list[Path]:
    """The input judged in shards."""
    outs = [folder / f"s{number}" for number in range(1, of + 1)]
    for number, out in enumerate(outs, 1):
        run_it(items, asked, judge, out, shard=f"{number}/{of}", **options)
    return outs


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], Rubric, dict[str, Any]]:
    """Rows, some of them bad, with or without ids of their own and texts that repeat; a rubric; how to judge them."""
    pairs = draw(st.booleans())
    texts = st.sampled_from(["yes", "no", "", "maybe so"])
    found = []
    for n in range(draw(st.integers(1, 9))):
        answers = ("response_a", "response_b") if pairs else ("answer",)
        row: dict[str, Any] = {"prompt" if pairs else "question": f"q{n % 3}", "system": "s"}
        row |= {name: draw(texts) for name in answers}
        if draw(st.booleans()):
            row["id"] = draw(st.sampled_from([f"i{n}", "i0", n]))
        if draw(st.integers(0, 9)) == 0:
            row[answers[0]] = [1]
        found.append(row)
    found.append({"prompt": "p", "response_a": "a", "response_b": "b", "question": "p", "answer": "a", "id": "z"})
    how: dict[str, Any] = {"repeats": draw(st.integers(1, 2)), "skip_bad": True, "store_texts": draw(st.booleans())}
    how["orders"] = draw(st.sampled_from(["both", "ab", "ba"]))
    how |= draw(st.sampled_from([{}, {}, {"limit": len(found) - 1}, {"sample": 3, "seed": 7}]))
    return found, PAIRS if pairs else TWO, how


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(inputs(), st.integers(1, 5), st.sampled_from(["fake", "fake:top", "replay"]), st.randoms())
def test_shards_merge_to_the_run_of_the_whole(given_: Any, of: int, judge: str, random: Any) -> None:
    """For judges that repeat themselves all that a merged run keeps is what one run keeps, byte for byte."""
    items, asked, how = given_
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if judge == "replay":
            said = {"reason": "r", "truth": 3, "style": 2, "safe": "A", "overall": "A", "rank_a": 1, "rank_b": 3}
            ids = {row["id"] for row in items if "id" in row}
            judge = (
                f"replay:{write_jsonl(folder / 'r.jsonl', [{'id': str(i), 'reply': json.dumps(said)} for i in ids])}"
            )
        try:
            run_it(items, asked, judge, folder / "one", **how)
        except InputError:  # no usable row
            return
        shards = in_shards(items, asked, judge, folder, of, **how)
        random.shuffle(shards)
        merged = merge(shards, folder / "merged")
        assert stored(folder / "merged") == stored(folder / "one")
        assert merged.rows == len(stored(folder / "one")["item"]) and merged.open == 0
        assert exported(folder / "merged", folder) == exported(folder / "one", folder)
        assert (
            run_it(items, asked, judge, folder / "merged", **how).asked
            == run_it(items, asked, judge, folder / "one", **how).asked
        )


def test_a_merged_run_is_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command takes it as that of the whole; from Python it comes as a `Run`."""
    data = str(write_jsonl(tmp_path / "d.jsonl", rows(9)))
    shards = in_shards(data, TWO, "fake", tmp_path, 3)
    run_it(data, TWO, "fake", tmp_path / "one")
    merged = evenhand.merge(shards, out=tmp_path / "merged")
    one = Run(tmp_path / "one")
    assert merged.summary(by="id") == one.summary(by="id")
    told = [inspect_item(run.folder, "i4") for run in (merged, one)]
    assert told[0] == told[1]
    for out in (merged.folder, one.folder):
        assert shell(["report", str(out), "--out", str(tmp_path / f"{out.name}.json")]) == 0
        with Store.open(out, write=True) as store:
            assert rescore(store, TWO)["changed"] == 0
    capsys.readouterr()
    assert merged.sources()[-2:] == [Path(data), merged.folder / "../d.jsonl"] or Path(data) in merged.sources()
    (command,) = stored(merged.folder)["manifest"]["commands"]
    assert command["data_from_run"] == "../d.jsonl"
    with Store.open(merged.folder) as store:
        assert [entry["shard"] for entry in store.manifest["merged"]] == ["1/3", "2/3", "3/3"]


def test_prompts_of_a_live_judge_render_again(server: FakeServer, tmp_path: Path) -> None:
    """Each shard has a secret of its own; a merged run renders every prompt as it was sent, also once rows moved."""
    data = rows(8)
    url = server.with_faults(reply=json.dumps(GOOD))
    shards = in_shards(data, TWO, "openai:m", tmp_path, 3, base_url=url)
    first = merge(shards, tmp_path / "first").folder
    run_it(rows(2, start=8), TWO, "openai:m", tmp_path / "other", base_url=url)
    merged = merge([first, tmp_path / "other"], tmp_path / "merged").folder
    sent = {out: _prompts(out) for out in (*shards, tmp_path / "other")}
    assert len({id_ for found in sent.values() for id_ in found}) == 10
    moved = [{"id": "new", "question": "q", "answer": "a"}, *rows(10)[::-1]]
    for resumed in (False, True):
        if resumed:
            assert run_it(moved, TWO, "openai:m", merged, base_url=url).asked == 1
        shown = _prompts(merged)
        for found in sent.values():
            assert found.items() <= shown.items()
        with Store.open(merged, write=True) as store:
            assert len(store.manifest["keys"]) == 4
            assert rescore(store, TWO) == {"verdicts": 10 + resumed, "changed": 0}


def _prompts(out: Path) -> dict[str, Any]:
    with Store.open(out) as store:
        ids = [item.id for item in store.items()]
    return {item_id: inspect_item(out, item_id)["trials"][0]["prompt"] for item_id in ids}


def test_interrupted_shards_merge_and_go_on(tmp_path: Path, server: FakeServer) -> None:
    """Trials that were not asked stay open: the command without its shard asks them, and they only."""
    url = server.with_faults(reply=json.dumps(GOOD))
    asked = in_shards(rows(6), TWO, "openai:m", tmp_path, 2, base_url=url)
    with Store.open(asked[1], write=True) as store, store._transaction():
        store._db.execute("DELETE FROM trial WHERE item IN ('i1', 'i3')")
    merged = merge(asked, tmp_path / "merged")
    assert (merged.rows, merged.verdicts, merged.open) == (6, 4, 2)
    assert run_it(rows(6), TWO, "openai:m", merged.folder, base_url=url).asked == 2
    assert run_it(rows(6), TWO, "openai:m", merged.folder, base_url=url).asked == 0


def test_a_killed_shard_is_resumed_and_merged(tmp_path: Path, server: FakeServer) -> None:
    """A shard that was killed goes on with its command; the merged run lacks nothing and doubles nothing."""
    data = write_jsonl(tmp_path / "d.jsonl", rows(120))
    (tmp_path / "two.yaml").write_text(SCORE)
    url = server.with_faults(reply=json.dumps(GOOD), latency="20")
    command = [sys.executable, "-m", "evenhand", "judge", str(data), "--rubric", str(tmp_path / "two.yaml"), "--judge"]
    command += ["openai:m", "--base-url", url, "--concurrency", "8"]
    for number in (1, 2):
        out = tmp_path / f"s{number}"
        one = [*command, "--shard", f"{number}/2", "--out", str(out)]
        process = subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None and not _verdicts(out):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert _verdicts(out) < 60
        if number == 2:  # the first goes on once it is merged
            subprocess.run(one, check=True, capture_output=True)
    left = merge([tmp_path / "s1", tmp_path / "s2"], tmp_path / "merged").open
    assert 0 < left < 60
    told = subprocess.run([*command, "--out", str(tmp_path / "merged")], check=True, capture_output=True, text=True)
    assert f"120 trials, {120 - left} of them stored already" in told.stderr
    assert [row["id"] for row in Run(tmp_path / "merged").rows(long=True)] == [row["id"] for row in rows(120)]


def _verdicts(out: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{out / 'run.sqlite'}?mode=ro", uri=True)) as db:
            return int(db.execute("SELECT count(*) FROM trial").fetchone()[0])
    except sqlite3.Error:
        return 0


def test_runs_over_different_rows_merge(tmp_path: Path) -> None:
    """Runs that are no shards follow each other, as if their inputs were one behind the other."""
    run_it(rows(3), TWO, "fake", tmp_path / "a")
    run_it(rows(4, start=3), TWO, "fake", tmp_path / "b")
    run_it(rows(7), TWO, "fake", tmp_path / "one")
    merge([tmp_path / "a", tmp_path / "b"], tmp_path / "merged")
    assert stored(tmp_path / "merged")["item"] == stored(tmp_path / "one")["item"]
    assert exported(tmp_path / "merged", tmp_path) == exported(tmp_path / "one", tmp_path)
    with pytest.raises(InputError, match=r"item i0 is in .*a and in .*one, with the same content"):
        merge([tmp_path / "a", tmp_path / "one"], tmp_path / "x")
    run_it([{**rows(1)[0], "answer": "another"}], TWO, "fake", tmp_path / "c")
    with pytest.raises(InputError, match=r"item i0 is in .*a and in .*c, with different content"):
        merge([tmp_path / "a", tmp_path / "c"], tmp_path / "x")
    assert not (tmp_path / "x").exists()


def _refusals(tmp_path: Path) -> Iterator[tuple[str, list[Path]]]:
    s1, s2 = in_shards(rows(6), TWO, "fake", tmp_path, 2)

    def other(name: str, shard: str | None = "2/2", judge: str = "fake", n: int = 6, **how: Any) -> Path:
        run_it(rows(n), how.pop("rubric", TWO), judge, tmp_path / name, shard=shard, **how)
        return tmp_path / name

    yield "no shard 2/2 among the runs", [s1]
    yield "no shards 1/9, 2/9, .*7/9 among the runs", [other("t8", "8/9"), other("t9", "9/9")]
    yield "a run is given twice", [s1, s1]
    yield "shard 2/2 is given twice: .*s2 and .*again", [s1, s2, other("again")]
    yield "shards of different numbers: .*s1 is 1/2, .*third is 3/3", [s1, other("third", "3/3")]
    yield "whole is no shard, and others are", [s1, other("whole", None)]
    yield (
        "rubric.options|rubric.name|stored rubric",
        [s1, other("rubric", rubric=rubric(SCORE.replace("clear?", "short?")))],
    )
    yield "judge.spec: 'fake' -> 'fake:top'", [s1, other("judge", judge="fake:top")]
    yield "judge.settings.temperature", [s1, other("settings", temperature=1.0)]
    yield "repeats: 1 -> 2", [s1, other("repeats", repeats=2)]
    yield "short: False -> True", [s1, other("short", reason=False)]
    yield "rows of the whole input: 6 -> 8", [s1, other("grown", n=8)]
    yield "limit: None -> 4", [s1, other("limit", limit=4)]
    yield "is not a run folder", [s1, tmp_path / "nothing"]


def test_what_does_not_make_one_run_is_refused(tmp_path: Path) -> None:
    """Another rubric, judge, plan or input, and shards that are not all there once, are told by name; nothing stays."""
    for told, runs in _refusals(tmp_path):
        with pytest.raises(InputError, match=told):
            merge(runs, tmp_path / "out")
        assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="s1 holds a run already"):
        merge([tmp_path / "s1", tmp_path / "s2"], tmp_path / "s1")
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        merge([tmp_path / "s1", tmp_path / "s2"], tmp_path / "files")
    assert merge([tmp_path / "s1", tmp_path / "s2"], tmp_path / "out").rows == 6


def test_orders_must_be_the_same(tmp_path: Path) -> None:
    """Shards that ask pairs in other orders make no run."""
    row = {"prompt": "p", "response_a": "a", "response_b": "b"}
    for number, orders in ((1, "both"), (2, "ab")):
        run_it([{**row, "id": str(n)} for n in range(4)], PAIRS, "fake", tmp_path / f"{number}", orders=orders,
               shard=f"{number}/2")  # fmt: skip
    with pytest.raises(InputError, match="orders:"):
        merge([tmp_path / "1", tmp_path / "2"], tmp_path / "out")


def test_rows_that_moved_to_another_shard_are_found(tmp_path: Path) -> None:
    """Shards of the same rows in another order would leave some out and double others: refused."""
    run_it(rows(4), TWO, "fake", tmp_path / "s1", shard="1/2")
    run_it(rows(4)[::-1], TWO, "fake", tmp_path / "s2", shard="2/2")
    with pytest.raises(InputError, match=r"item i[02] is in shard 1/2 .*and in shard 2/2 .*same content"):
        merge([tmp_path / "s1", tmp_path / "s2"], tmp_path / "out")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE item SET content = replace(content, ':', ';')",
        "UPDATE trial SET verdict = substr(verdict, 3)",
        "UPDATE reply SET reply = 'x'",
        "UPDATE manifest SET value = '7' WHERE key = 'repeats'",
        "UPDATE item SET seq = seq + 1",
    ],
)
def test_damage_is_told(tmp_path: Path, statement: str) -> None:
    """A shard that does not hold what was written is named, and nothing is merged."""
    shards = in_shards(rows(5), TWO, "fake", tmp_path, 2)
    with closing(sqlite3.connect(shards[1] / "run.sqlite")) as db:
        db.execute(statement)
        db.commit()
    with pytest.raises(RunError, match=r"s2/run.sqlite is damaged"):
        merge(shards, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_overwritten_pages_are_damage(tmp_path: Path) -> None:
    """Wherever bytes of a shard were overwritten, merge either meets them or copies what is whole."""
    shards = in_shards(rows(12), TWO, "fake", tmp_path, 2)
    file = shards[0] / "run.sqlite"
    whole, told = file.read_bytes(), 0
    for page in range(0, len(whole), 4096):
        spoilt = bytearray(whole)
        spoilt[page : page + 200] = bytes(range(200))
        file.write_bytes(spoilt)
        try:
            merge(shards, tmp_path / "out")
        except RunError as error:
            told += "s1/run.sqlite is damaged" in str(error)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
    assert told > 3


def test_a_shard_in_use_is_not_merged(tmp_path: Path) -> None:
    """A shard that is still being judged is refused."""
    shards = in_shards(rows(4), TWO, "fake", tmp_path, 2)
    with Store.open(shards[0], write=True), pytest.raises(RunError, match="s1 is in use by another process"):
        merge(shards, tmp_path / "out")


def test_a_merge_that_was_killed_leaves_no_half_run(tmp_path: Path) -> None:
    """What a killed merge left is neither a run nor in the way of the next one."""
    shards = in_shards(rows(4), TWO, "fake", tmp_path, 2)
    left = tmp_path / "out" / "run.sqlite.merging"
    left.mkdir(parents=True)
    (left / "run.sqlite").write_bytes(b"half")
    with pytest.raises(InputError, match="is not a run folder"):
        Run(tmp_path / "out")
    merge(shards, tmp_path / "out")
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["lock", "run.sqlite"]


def test_money_and_forms_come_together(tmp_path: Path, server: FakeServer) -> None:
    """Costs are summed; a form that shards agree on is kept, else it is found anew."""
    (tmp_path / "p.yaml").write_text("m: {input: 0, output: 0, request: 0.01}\n")
    how = {"base_url": server.with_faults(reply=json.dumps(LIE)), "prices": str(tmp_path / "p.yaml"), "re_ask": False}
    shards = in_shards(rows(6), TWO, "openai:m", tmp_path, 2, **how)
    found = [stored(shard)["manifest"]["cost"] for shard in shards]
    with Store.open(merge(shards, tmp_path / "a").folder) as store:
        told = store.manifest
        assert told["cost"]["at_most_usd"] == pytest.approx(sum(cost["at_most_usd"] for cost in found))
        assert told["form"] is not None and told["cost"]["untold"] == 0
    with Store.open(shards[0], write=True) as store:
        store.update_manifest(form="json", cost=None)
    with Store.open(merge(shards, tmp_path / "b").folder) as store:
        assert store.manifest["form"] is None
        assert store.manifest["cost"]["at_most_usd"] == found[1]["at_most_usd"]
    assert run_it(rows(6), TWO, "openai:m", tmp_path / "b", **how).asked == 0


def test_many_shards(tmp_path: Path) -> None:
    """More shards than rows, and more than a process may usually have files open, merge too."""
    seed = tmp_path / "seed"
    run_it(rows(3), TWO, "fake", seed, shard="400/400")
    shards = []
    for number in range(1, 401):
        shards.append(tmp_path / f"s{number}")
        shutil.copytree(seed, shards[-1])
        if number <= 3:
            shutil.rmtree(shards[-1])
            run_it(rows(3), TWO, "fake", shards[-1], shard=f"{number}/400")
        else:
            with Store.open(shards[-1], write=True) as store:
                store.update_manifest(shard=f"{number}/400")
    assert merge(shards, tmp_path / "out").rows == 3


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """``evenhand merge`` tells in a line what came together, and ends with 2 where it does not."""
    monkeypatch.chdir(tmp_path)
    in_shards(rows(5), TWO, write_script(tmp_path / "s.jsonl", (None, json.dumps(GOOD))), tmp_path, 2)
    assert shell(["merge", "s2", "s1", "--out", "runs/all"]) == 0
    assert capsys.readouterr().err == "2 runs merged: 5 rows, 5 verdicts\n"
    assert shell(["show", "runs/all"]) == 0
    capsys.readouterr()
    assert shell(["merge", "s2", "--out", "runs/x"]) == 2
    assert capsys.readouterr().err == "error: no shard 1/2 among the runs\n"
    assert shell(["merge", "--out", "runs/x"]) == 2


def test_the_benchmark_measures() -> None:
    """A small run of the benchmark finds shards and one run equal."""
    path = Path(__file__).resolve().parents[1] / "benchmarks" / "shards.py"
    if not path.exists():
        pytest.skip("benchmarks are not part of this copy")
    done = subprocess.run(
        [sys.executable, path, "--rows", "30", "--shards", "2"], check=True, capture_output=True, text=True
    )
    told = json.loads(done.stdout)
    assert told["equal"] and told["merged"]["peak_mb"] > 0
