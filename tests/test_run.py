"""The main path: what a second run asks, what stops a run, what bad rows do."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import Run, make_spec
from evenhand.backend import Backend, BackendSettings, Request
from evenhand.backends.fake import Fake
from evenhand.errors import AccessError, BackendError, InputError, ItemError, RunError
from evenhand.judging import Answer, Judge
from evenhand.run import Progress, open_run, run
from evenhand.run_folder import set_aside
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.verdict import Reply
from rubric_texts import PAIR, changed, rubric
from runs import GOOD, SCORE, TWO, rows, run_it, statuses, summary, write_jsonl, write_script

BAD = {"id": "bad", "question": "q"}


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def _message(out: Path, items: Any, text: str = SCORE, judge: str = "fake", **options: Any) -> str:
    """What a run that must stop with exit code 4 says."""
    with pytest.raises(RunError) as caught:
        run_it(items, rubric(text), judge, out, **options)
    assert caught.value.exit_code == 4
    return str(caught.value)


def test_a_second_run_sends_nothing_for_what_is_scored(server: FakeServer, out: Path) -> None:
    """Resuming a complete run asks no trial and changes no verdict; appended rows are judged."""
    server.reset()
    assert run_it(rows(5), TWO, "openai:m", out, base_url=server.url).asked == 5
    before, sent = list(Run(out).verdicts()), server.stats()["requests"]
    assert run_it(rows(5), TWO, "openai:m", out, base_url=server.url).asked == 0
    assert (list(Run(out).verdicts()), server.stats()["requests"]) == (before, sent)
    assert run_it(rows(7), TWO, "openai:m", out, base_url=server.url).asked == 2
    assert server.stats()["requests"] == sent + 2
    assert list(Run(out).verdicts())[:5] == before


def test_failed_trials_are_asked_again(server: FakeServer, out: Path) -> None:
    """A request that failed is tried again by the next run, without --retry."""
    rejects = server.with_faults(fault="422:0.5", salt="fixed")
    run_it(rows(12), TWO, "openai:m", out, base_url=rejects)
    failed = [key for key, status in statuses(out).items() if status == "failed"]
    assert 0 < len(failed) < 12
    assert run_it(rows(12), TWO, "openai:m", out, base_url=rejects).asked == len(failed)


@pytest.mark.parametrize(("reply", "status"), [("no value", "unparsed"), ("I'm sorry, I can't help.", "refused")])
def test_unreadable_and_refused_only_with_retry(tmp_path: Path, out: Path, reply: str, status: str) -> None:
    """Unparsed and Refused verdicts stay until --retry, which asks those alone."""
    script = tmp_path / "script.jsonl"
    judge = write_script(script, ("What is 1?", reply), (None, GOOD))
    run_it(rows(3), TWO, judge, out)
    assert statuses(out)[("i1", "", 0)] == status
    assert run_it(rows(3), TWO, judge, out).asked == 0
    assert run_it(rows(3), TWO, judge, out, retry=True).asked == 1


def test_repeats_may_grow_but_not_shrink(out: Path) -> None:
    """More repeats add trials to the ones there are; fewer are another run."""
    run_it(rows(3), TWO, "fake", out)
    assert run_it(rows(3), TWO, "fake", out, repeats=3).asked == 6
    assert {key[2] for key in statuses(out)} == {0, 1, 2}
    assert summary(out)["planned"] == 9
    assert "repeats: 3 -> 2" in _message(out, rows(3), repeats=2)


def test_both_orders_of_a_pair(out: Path) -> None:
    """Pairs are judged in both orders unless told otherwise; another choice is another run."""
    pairs = [{"id": "p", "prompt": "q", "response_a": "x", "response_b": "y"}]
    assert run_it(pairs, rubric(PAIR), "fake", out).asked == 2
    assert set(statuses(out)) == {("p", "ab", 0), ("p", "ba", 0)}
    assert "orders: ['ab', 'ba'] -> ['ba']" in _message(out, pairs, PAIR, orders="ba")
    with pytest.raises(InputError, match="orders must be one of both, ab, ba"):
        run_it(pairs, rubric(PAIR), "fake", out, orders="aa")


def test_a_changed_row_stops_the_run_with_a_diff(out: Path) -> None:
    """A stored row with other text is named with before and after; nothing new is stored or sent."""
    run_it(rows(3), TWO, "fake", out)
    lines = rows(5)
    lines[1]["answer"] = "It is quite another."
    said = _message(out, lines)
    assert "item i1: its content changed\n    answer: 'It is 1.' -> 'It is quite another.'" in said
    assert len(statuses(out)) == 3
    assert summary(out)["rows"] == 3


def test_a_changed_row_without_an_id_is_named_by_its_place(out: Path) -> None:
    """Rows identified by content are compared by place."""
    plain = [{"question": "q", "answer": str(k)} for k in range(3)]
    run_it(plain, TWO, "fake", out)
    said = _message(out, [plain[0], {"question": "q", "answer": "new"}, plain[2]])
    assert "row 2: was item" in said
    assert "answer: '1' -> 'new'" in said


def test_rows_that_moved_keep_their_verdicts(out: Path) -> None:
    """Reordered rows, with new ones in between, are the same items; the export follows the order they have now."""
    run_it(rows(4), TWO, "fake", out)
    before = {row["id"]: row["truth"] for row in Run(out).rows()}
    moved = [rows(4)[k] for k in (3, 0, 2, 1)]
    assert run_it(moved[:2] + rows(1, start=9) + moved[2:], TWO, "fake", out).asked == 1
    told = list(Run(out).rows())
    assert [row["id"] for row in told] == ["i3", "i0", "i9", "i2", "i1"]
    assert all(row["truth"] == before[row["id"]] for row in told if row["id"] in before)


def test_a_row_that_is_gone_from_the_middle_stops_the_run(out: Path) -> None:
    """An item whose place another took, and that is nowhere else, counts as changed; a shorter input doesn't."""
    run_it(rows(4), TWO, "fake", out)
    assert "row 2: was item i1, is now i2" in _message(out, [*rows(1), *rows(2, start=2)])
    assert run_it(rows(2), TWO, "fake", out).asked == 0
    assert summary(out)["rows"] == 4


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("Is it true?", "Is it right?", "+  - {name: truth, text: Is it right?"),
        ("truth == 0", "truth == 1", '+  - {id: lie, if: "truth == 1'),
        ("rubric: two", "rubric: other", "rubric.name: 'two' -> 'other'"),
    ],
)
def test_a_changed_rubric_stops_the_run_with_a_diff(out: Path, old: str, new: str, said: str) -> None:
    """Any change of the rubric's file is another run, and the diff is shown."""
    run_it(rows(2), TWO, "fake", out)
    assert said in _message(out, rows(2), changed(SCORE, old, new))


def test_changed_weights_judge_settings_and_form_stop_the_run(out: Path) -> None:
    """Weights, judge, temperature, the short form: each difference is named."""
    run_it(rows(2), TWO, "fake", out)
    assert "rubric.weights.truth: 0.75 -> 0.5" in _message(out, rows(2), weights={"truth": 0.5, "style": 0.5})
    assert "judge.spec: 'fake' -> 'fake:top'" in _message(out, rows(2), judge="fake:top")
    assert "judge.settings.temperature: 0.0 -> 0.7" in _message(out, rows(2), temperature=0.7)
    assert "short: False -> True" in _message(out, rows(2), reason=False)
    assert "re_ask: True -> False" in _message(out, rows(2), re_ask=False)
    assert "judge.settings.max_tokens: None -> 9" in _message(out, rows(2), max_tokens=9)


def test_settings_that_change_no_verdict_are_recorded_and_may_differ(server: FakeServer, out: Path) -> None:
    """Which rows, how many at once, how long to wait: another value resumes the run, and every command is on record."""
    run_it(rows(4), TWO, "openai:m", out, base_url=server.url, limit=2, timeout=5)
    for _ in range(2):
        run_it(rows(4), TWO, "openai:m", out, base_url=server.url, sample=3, seed=7, concurrency=2, store_texts=False)
    with Store.open(out) as store:
        first, second = store.manifest["commands"]
    assert (first["limit"], first["timeout_s"], first["sample"]) == (2, 5, None)
    assert {name: second[name] for name in ("limit", "sample", "seed", "concurrency", "timeout_s", "store_texts")} == {
        "limit": None,
        "sample": 3,
        "seed": 7,
        "concurrency": 2,
        "timeout_s": 60.0,
        "store_texts": False,
    }


def test_every_setting_of_a_run_is_on_record() -> None:
    """A new field of RunSpec must be compared on resume, or recorded as harmless; nothing is forgotten."""
    spec = make_spec(rows(1), TWO, "fake")
    compared = {"rubric", "judge", "repeats", "orders", "short", "re_ask", "shard"}
    renamed = {"source": "data", "backend": "timeout_s"}  # the endpoint is part of the judge's identity
    no_setting = {"folder", "fresh"}
    names = {f.name for f in fields(spec)} - compared - no_setting
    assert {renamed.get(name, name) for name in names} == set(spec.harmless) - {"data_from_run"}


def test_fresh_starts_over_and_keeps_foreign_files(out: Path) -> None:
    """--fresh replaces the run, whatever it was, and nothing else in the folder."""
    run_it(rows(3), TWO, "fake:top", out)
    (out / "notes.txt").write_text("mine")
    assert run_it(rows(2), TWO, "fake:bottom", out, fresh=True).asked == 2
    assert [row["truth"] for row in Run(out).rows()] == [0, 0]
    assert sorted(p.name for p in out.iterdir()) == ["lock", "notes.txt", "run.sqlite"]


def test_fresh_with_a_bad_input_keeps_the_old_run(out: Path) -> None:
    """Verdicts are not thrown away for an input that can't be judged."""
    run_it(rows(3), TWO, "fake:top", out)
    with pytest.raises(ItemError):
        run_it([BAD], TWO, "fake:bottom", out, fresh=True)
    assert [row["truth"] for row in Run(out).rows()] == [4, 4, 4]
    assert sorted(p.name for p in out.iterdir()) == ["lock", "run.sqlite"]


def test_fresh_keeps_the_old_run_until_the_new_one_has_an_answer(server: FakeServer, out: Path) -> None:
    """A judge that can't be reached, or refuses us, replaces no verdicts."""
    run_it(rows(3), TWO, "fake:top", out)
    for judge, options, message in (
        ("fake:error", {}, "still holds the run that --fresh was to replace"),
        ("openai:m", {"base_url": server.with_faults(fault="401")}, "401"),
    ):
        with pytest.raises(BackendError, match=message):
            run_it(rows(3), TWO, judge, out, fresh=True, **options)
        assert [row["truth"] for row in Run(out).rows()] == [4, 4, 4]
        assert sorted(p.name for p in out.iterdir()) == ["lock", "run.sqlite"]


@pytest.mark.parametrize(("judge", "truth"), [("fake:bottom", 0), ("fake:error", 4)])
def test_a_replacement_that_was_killed_is_ended_later(out: Path, judge: str, truth: int) -> None:
    """The next command keeps the new run if it holds an answer, else brings the old one back."""
    run_it(rows(2), TWO, "fake:top", out)
    set_aside(out)
    assert [row["truth"] for row in Run(out).rows()] == [4, 4]
    set_aside(out)
    (out / "run.sqlite.old").rename(out.parent / "hidden")
    run_it(rows(2), TWO, judge, out)
    (out.parent / "hidden").rename(out / "run.sqlite.old")
    assert run_it(rows(2), TWO, "fake:bottom" if truth == 0 else "fake:top", out).asked == 0
    assert [row["truth"] for row in Run(out).rows()] == [truth] * 2
    assert sorted(p.name for p in out.iterdir()) == ["lock", "run.sqlite"]


def test_bad_rows_stop_everything_before_anything_is_sent(server: FakeServer, out: Path) -> None:
    """All bad rows are told at once, nothing is sent, and no folder is left behind."""
    server.reset()
    with pytest.raises(ItemError) as caught:
        run_it([*rows(600), BAD, {"id": "w", "answer": "a"}], TWO, "openai:m", out, base_url=server.url)
    assert [p.path for p in caught.value.problems] == ["row 601", "row 602"]
    assert caught.value.exit_code == 2
    assert server.stats()["requests"] == 0
    assert not out.exists()


def test_a_column_that_no_row_has_is_told_once(out: Path) -> None:
    """With the first row and the number of the others; where some rows are good, bad ones are told one by one."""
    lacking = [{"question": f"What is {k}?"} for k in range(600)]
    with pytest.raises(ItemError) as caught:
        run_it([*lacking, {"answer": "a"}], TWO, "fake", out)
    assert str(caught.value).splitlines()[:2] == [
        "row 1: no answer; columns: question; the same in 599 more rows (--map answer=COLUMN)",
        "row 601: no question; columns: answer (--map question=COLUMN)",
    ]
    with pytest.raises(ItemError) as caught:
        run_it([*lacking, *rows(1)], TWO, "fake", out)
    assert [p.path for p in caught.value.problems] == [f"row {k}" for k in range(1, 101)]
    assert "... and 500 more" in str(caught.value)


def test_many_mistakes_of_many_kinds_are_not_all_told(out: Path) -> None:
    """Of a file without a good row, the first hundred kinds; the rest is a number."""
    with pytest.raises(ItemError) as caught:
        run_it([{"question": "q", f"c{k}": "a"} for k in range(130)], TWO, "fake", out)
    assert (len(caught.value.problems), caught.value.more) == (100, 30)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_folder_of_other_files_is_refused(tmp_path: Path, server: FakeServer, fresh: bool) -> None:
    """No run is put among what is not its own, and nothing is sent or written; an empty folder will do."""
    server.reset()
    (tmp_path / "data.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files and is no run folder") as caught:
        run_it(rows(1), TWO, "openai:m", tmp_path, base_url=server.url, fresh=fresh)
    assert str(tmp_path) in str(caught.value) and "--out" in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["data.txt"]
    assert server.stats()["requests"] == 0
    (tmp_path / "empty").mkdir()
    assert run_it(rows(1), TWO, "fake", tmp_path / "empty", fresh=fresh).asked == 1


def test_files_beside_a_run_stay(out: Path) -> None:
    """Files that happen to be in the run's folder are never removed with it."""
    run_it(rows(1), TWO, "fake", out)
    (out / "data.txt").write_text("mine")
    assert run_it(rows(1), TWO, "fake", out, fresh=True).asked == 1
    with pytest.raises(ItemError):
        run_it([BAD], TWO, "fake", out, fresh=True)
    (out / "run.sqlite").unlink()
    with pytest.raises(InputError):
        run_it(rows(1), TWO, "fake", out)
    assert sorted(p.name for p in out.iterdir()) == ["data.txt", "lock"]


def test_a_bad_row_in_a_resumed_run_takes_nothing_in(out: Path) -> None:
    """The stored run stays as it was: no good new row, no repeats, no setting is taken over."""
    run_it(rows(2), TWO, "fake", out)
    before = summary(out)
    with pytest.raises(ItemError, match="no answer"):
        run_it([*rows(4), BAD], TWO, "fake", out, repeats=3)
    with pytest.raises(InputError, match="no usable row"):
        run_it([BAD], TWO, "fake", out, skip_bad=True, repeats=3)
    assert summary(out) == before


def test_skipped_bad_rows_count_in_the_coverage(out: Path) -> None:
    """--skip-bad judges the rest and counts bad rows; mended or dropped later they count no more."""
    run_it([rows(1)[0], BAD, *rows(2, start=1)], TWO, "fake", out, skip_bad=True)
    facts = summary(out)
    assert (facts["rows"], facts["bad_rows"], facts["scored"], facts["planned"]) == (4, 1, 3, 4)
    assert (facts["coverage"], facts["failures"]) == (0.75, {"bad_row": 1})
    assert run_it(rows(3), TWO, "fake", out).asked == 0
    assert summary(out)["coverage"] == 1


@pytest.mark.parametrize("items", [[], [BAD]])
def test_an_empty_input_is_an_input_error(out: Path, items: list[Any]) -> None:
    """No rows, or no usable ones, is the caller's mistake, and leaves nothing behind."""
    with pytest.raises(InputError, match=r"no rows|no usable row"):
        run_it(items, TWO, "fake", out, skip_bad=True)
    assert not out.exists()


def test_limit_takes_the_first_rows_and_may_grow(out: Path) -> None:
    """--limit N judges N rows; a larger one later judges the rest."""
    assert run_it(rows(9), TWO, "fake", out, limit=4).asked == 4
    assert run_it(rows(9), TWO, "fake", out, limit=6).asked == 2
    assert [row["id"] for row in Run(out).rows()] == [f"i{k}" for k in range(6)]


def test_a_smaller_limit_asks_only_its_own_rows(out: Path) -> None:
    """Rows of an earlier command that this one doesn't select stay as they are: stored, and not asked."""
    run_it(rows(9), TWO, "fake:error", out, limit=6)
    assert run_it(rows(9), TWO, "fake:error", out, limit=2).asked == 2
    assert run_it(rows(9), TWO, "fake:error", out, limit=2, repeats=2).asked == 4
    assert summary(out)["rows"] == 6
    assert run_it(rows(9), TWO, "fake:error", out, limit=7, repeats=2).asked == 14
    assert run_it(rows(3), TWO, "fake:error", out, repeats=2).asked == 6


def test_another_sample_asks_only_its_own_rows(out: Path) -> None:
    """A second sample judges the rows it draws; those of the first keep their verdicts, or wait for theirs."""
    run_it(rows(50), TWO, "fake:error", out, sample=8, seed=1)
    first = set(statuses(out))
    assert run_it(rows(50), TWO, "fake:error", out, sample=5, seed=2).asked == 5
    assert first < set(statuses(out))
    assert run_it(rows(50), TWO, "fake:error", out, sample=8, seed=1).asked == 8


def test_progress_counts_the_rows_that_were_selected(out: Path) -> None:
    """The totals are those of this command's rows, not of all that the folder holds."""
    told: list[Any] = []

    class Told(Progress):
        def start(self, total: int, stored: int) -> None:
            told.append((total, stored))

    run_it(rows(9), TWO, "fake", out, limit=6)
    asyncio.run(run(make_spec(rows(9), TWO, "fake", out=out, limit=2), progress=Told()))
    asyncio.run(run(make_spec(rows(9), TWO, "fake", out=out, limit=8), progress=Told()))
    assert told == [(2, 2), (8, 6)]


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path) -> None:
    """The same seed samples the same rows, so that a resume sends nothing; another seed samples others."""
    first, second, other = (tmp_path / name for name in "abc")
    run_it(rows(50), TWO, "fake", first, sample=8, seed=1)
    assert run_it(rows(50), TWO, "fake", first, sample=8, seed=1).asked == 0
    run_it(rows(50), TWO, "fake", second, sample=8, seed=1)
    run_it(rows(50), TWO, "fake", other, sample=8, seed=2)
    assert len(statuses(first)) == 8
    assert set(statuses(first)) == set(statuses(second)) != set(statuses(other))


def test_a_folder_in_use_is_refused(out: Path) -> None:
    """A second process may not write to the same run, with or without --fresh."""
    run_it(rows(2), TWO, "fake", out)
    with Store.open(out, write=True):
        assert "in use by another process" in _message(out, rows(2))
        assert "in use by another process" in _message(out, rows(2), fresh=True)
    assert len(statuses(out)) == 2


def test_bad_numbers_are_input_errors(out: Path) -> None:
    """Options out of range are refused before anything is made."""
    for options in ({"repeats": 0}, {"concurrency": 0}, {"limit": 0}, {"sample": 0}, {"timeout": 0}):
        with pytest.raises(InputError):
            run_it(rows(2), TWO, "fake", out, **options)
    assert not out.exists()


def test_without_texts_everything_is_judged_and_no_text_is_kept(server: FakeServer, out: Path) -> None:
    """--no-store-texts judges, resumes and counts as ever, but the folder holds no item text."""
    secret = [{**row, "answer": f"{row['answer']} zanzibar"} for row in rows(3)]
    assert run_it(secret, TWO, "openai:m", out, base_url=server.url, store_texts=False).asked == 3
    assert all(b"zanzibar" not in file.read_bytes() for file in out.iterdir())
    assert (summary(out)["scored"], summary(out)["coverage"], summary(out)["bad_rows"]) == (3, 1, 0)
    more = [*secret, *rows(1, start=3)]
    assert run_it(more, TWO, "openai:m", out, base_url=server.url, store_texts=False).asked == 1
    assert run_it(more, TWO, "openai:m", out, base_url=server.url, repeats=2).asked == 4
    assert [row["id"] for row in Run(out).rows()] == ["i0", "i1", "i2", "i3"]
    secret[0]["answer"] = "other"
    with pytest.raises(RunError, match="item i0: its content changed"):
        run_it(secret, TWO, "openai:m", out, base_url=server.url, repeats=2)


def test_without_texts_only_rows_of_this_input_can_be_asked(tmp_path: Path, out: Path) -> None:
    """A row whose text was not kept and that the input lacks now waits for its text."""
    judge = write_script(tmp_path / "script.jsonl", ("What is 2?", "no value"), (None, GOOD))
    run_it(rows(3), TWO, judge, out, store_texts=False)
    assert run_it(rows(2), TWO, judge, out, store_texts=False, retry=True).asked == 0
    assert run_it(rows(3), TWO, judge, out, store_texts=False, retry=True).asked == 1


class _Revoked(Fake):
    """A judge whose key is refused from the seventh request on."""

    sent = 0

    async def send(self, request: Request) -> Reply:
        self.sent += 1
        if self.sent > 6:
            raise AccessError("key refused")
        return await super().send(request)


class _RevokedJudge(Judge):
    def open(self, settings: BackendSettings) -> Backend:
        return _Revoked()


def test_an_access_error_keeps_what_was_answered(out: Path) -> None:
    """When the key is refused on the way the run stops, and the verdicts before it are stored."""
    told = make_spec(rows(40), TWO, "fake", out=out, concurrency=2, re_ask=False)
    spec = replace(told, judge=_RevokedJudge("fake"))
    with pytest.raises(AccessError) as caught:
        asyncio.run(run(spec))
    assert caught.value.exit_code == 3
    assert list(statuses(out).values()) == ["scored"] * 6


def test_progress_hears_of_every_trial(out: Path) -> None:
    """Progress is told the totals once and each answer after it is stored."""
    told: list[Any] = []

    class Told(Progress):
        def start(self, total: int, stored: int) -> None:
            told.append((total, stored))

        def done(self, answer: Answer) -> None:
            told.append(answer.key.item_id)

    asyncio.run(run(make_spec(rows(2), TWO, "fake", out=out), progress=Told()))
    asyncio.run(run(make_spec(rows(3), TWO, "fake", out=out), progress=Told()))
    assert (told[0], told[3:]) == ((2, 0), [(3, 2), "i2"])
    assert sorted(told[1:3]) == ["i0", "i1"]


def test_items_of_one_type_are_asked_together(tmp_path: Path) -> None:
    """A rubric with notes for each type asks type by type; rows and verdicts stay in the order of the input."""
    told: list[str] = []

    class Told(Progress):
        def done(self, answer: Answer) -> None:
            told.append(answer.key.item_id)

    kinds = ["OCR", "Meme", "OCR", "Counting"]
    items = [{"id": f"i{n}", "prompt": "p", "ref_answer": "r", "predict": "a", "task": t} for n, t in enumerate(kinds)]
    spec = make_spec(items, "alignmm-critic", "fake", out=tmp_path / "run", concurrency=1)
    asyncio.run(run(spec, progress=Told()))
    assert told == ["i3", "i1", "i0", "i2"]
    with Store.open(tmp_path / "run") as store:
        assert [row.item.id for row, found in store.verdicts() if row.item and found] == ["i0", "i1", "i2", "i3"]


def test_the_same_file_from_another_format_is_the_same_run(tmp_path: Path, out: Path) -> None:
    """Rows read from JSON lines and from Python are the same items."""
    file = write_jsonl(tmp_path / "data.jsonl", [{"question": "q", "answer": "a"}, {"question": "q", "answer": "b"}])
    run_it(str(file), TWO, "fake", out)
    assert run_it([json.loads(line) for line in file.read_text().splitlines()], TWO, "fake", out).asked == 0


def test_a_judge_bounds_the_trials_in_flight(server: FakeServer, out: Path) -> None:
    """Concurrency is what was asked for."""
    server.reset()
    run_it(rows(30), TWO, "openai:m", out, base_url=server.with_faults(latency="5"), concurrency=3)
    assert 1 < server.stats()["max_inflight"] <= 3


def test_two_rubrics_of_one_text_are_one_run(out: Path) -> None:
    """A rubric given with its own weights is the rubric itself."""
    run_it(rows(2), TWO, "fake", out)
    assert run_it(rows(2), replace(TWO), "fake", out, weights={"truth": 0.75, "style": 0.25}).asked == 0


@pytest.mark.parametrize(("judge", "same"), [("fake", True), ("openai:judge", False)])
def test_fence_keys(tmp_path: Path, judge: str, same: bool) -> None:
    """A judge whose verdicts must repeat gets the same prompts in every folder, any other a secret of the run."""
    keys = []
    for name in ("one", "two"):
        spec = make_spec(
            [{"question": "q", "answer": "a"}], judge=judge, base_url="http://127.0.0.1:9/v1", out=tmp_path / name
        )
        with open_run(spec, spec.judge.open(spec.backend)) as store:
            keys.append(store.manifest["key"])
    assert (keys[0] == keys[1]) is same


def test_columns_beside_the_fields_follow_the_input(out: Path) -> None:
    """A column that no judge sees may change, come or go: nothing is asked again, and the rows show it as it is now."""
    extra = [{**row, "system": "old", "gone": 1} for row in rows(2)]
    run_it(extra, TWO, "fake", out)
    now = [{**row, "system": f"new {k}", "late": k} for k, row in enumerate(rows(2))]
    assert run_it(now, TWO, "fake", out).asked == 0
    assert [(r["system"], r["late"], "gone" in r) for r in Run(out).rows()] == [
        ("new 0", 0, False),
        ("new 1", 1, False),
    ]
    assert set(Run(out).summary(by="system")["by"]) == {"new 0", "new 1"}
    run_it(now[:1], TWO, "fake", out, store_texts=False)
    assert [r["system"] for r in Run(out).rows()] == ["new 0", "new 1"]
