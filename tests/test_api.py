"""Judging from Python: with and without a running event loop, from rows, files and frames."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pandas
import polars
import pytest

import evenhand
from evenhand.api import Run, open_rubric
from evenhand.errors import InputError, UnknownNameError
from evenhand.judging import Answer
from evenhand.run import Progress
from evenhand.runners.local import Stop
from runs import TWO, rows, write_jsonl


def _told(run: evenhand.Run) -> list[tuple[Any, Any]]:
    return [(row["id"], row["truth"]) for row in run.rows()]


def test_judge_without_an_event_loop(tmp_path: Path) -> None:
    """judge() waits for all verdicts and gives the run, in a temporary folder unless told where."""
    run = evenhand.judge(rows(3), TWO, "fake:top")
    assert _told(run) == [("i0", 4), ("i1", 4), ("i2", 4)]
    assert run.summary()["scored"] == 3
    assert [v.status.value for v in run.verdicts()] == ["scored"] * 3
    assert run.interrupted is False
    assert evenhand.judge(rows(3), TWO, "fake:top", out=tmp_path / "x").folder == tmp_path / "x"
    assert repr(evenhand.Run(tmp_path / "x")) == f"Run({str(tmp_path / 'x')!r})"


async def test_judge_inside_a_running_event_loop() -> None:
    """judge() works in a notebook, where a loop runs already."""
    assert _told(evenhand.judge(rows(2), TWO, "fake:bottom")) == [("i0", 0), ("i1", 0)]


async def test_judge_async() -> None:
    """The async twin gives the same run without blocking the loop."""
    run = await evenhand.judge_async(rows(2), TWO, "fake:bottom")
    assert _told(run) == [("i0", 0), ("i1", 0)]


def test_all_kinds_of_sources_give_the_same_run(tmp_path: Path) -> None:
    """A file by name or path, a generator and data frames are judged alike."""
    data = rows(3)
    sources = [
        write_jsonl(tmp_path / "d.jsonl", data),
        str(tmp_path / "d.jsonl"),
        (row for row in data),
        pandas.DataFrame(data),
        polars.DataFrame(data),
        polars.LazyFrame(data),
    ]
    runs = [_told(evenhand.judge(source, TWO, "fake")) for source in sources]
    assert runs == [runs[0]] * len(sources)
    assert [name for name, _ in runs[0]] == ["i0", "i1", "i2"]


def test_options_are_those_of_the_command_line(tmp_path: Path) -> None:
    """Columns, variants, weights, limits and the short form go by the same names."""
    data = [{"q": "Why?", "answer": "So."}] * 3
    run = evenhand.judge(
        data,
        "doc-qa",
        "fake:top",
        out=tmp_path / "run",
        map={"question": "q"},
        variant={"scale": "0-3"},
        weights={"correctness": 1, "comprehensiveness": 0, "readability": 0},
        limit=2,
        repeats=2,
        reason=False,
    )
    facts = run.summary()
    assert (facts["rows"], facts["planned"], facts["composite"]["mean"]) == (2, 4, 3.0)
    assert len(list(run.rows(long=True))) == 4
    assert evenhand.Run(run.folder).rubric.chosen["scale"] == "0-3"


def test_a_stop_ends_a_run_gently(tmp_path: Path) -> None:
    """Asked to stop, a run stores what is in flight and says it was interrupted."""
    stop = Stop()

    class AtFive(Progress):
        heard = 0

        def done(self, answer: Answer) -> None:
            self.heard += 1
            if self.heard == 5:
                stop()

    run = evenhand.judge(rows(50), TWO, "fake", out=tmp_path / "run", concurrency=2, stop=stop, progress=AtFive())
    assert run.interrupted
    assert 5 <= run.summary()["scored"] <= 7
    assert not evenhand.judge(rows(50), TWO, "fake", out=tmp_path / "run").interrupted


class _SignalAtThird(Progress):
    """Sends this process a signal after the third answer, and notes who handles signals then."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number
        self.heard = 0
        self.handler: Any = None

    def done(self, answer: Answer) -> None:
        self.heard += 1
        if self.heard == 3:
            self.handler = signal.getsignal(self.number)
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_the_async_twin_leaves_signals_to_the_host(number: signal.Signals) -> None:
    """A signal during judge_async goes to the handler of the loop's owner, and the run goes on."""
    heard: list[int] = []
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, heard.append, 1)
    try:
        run = await evenhand.judge_async(rows(30), TWO, "fake", concurrency=1, progress=_SignalAtThird(number))
        await asyncio.sleep(0)
        assert (heard, run.interrupted, run.summary()["scored"]) == ([1], False, 30)
    finally:
        loop.remove_signal_handler(number)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_judge_takes_signals_over_and_gives_them_back(number: signal.Signals) -> None:
    """A signal during judge() stops the run gently; afterwards the handler from before is in place again."""
    mine = lambda *_: None  # noqa: E731
    before = signal.signal(number, mine)
    try:
        progress = _SignalAtThird(number)
        run = evenhand.judge(rows(30), TWO, "fake", concurrency=1, progress=progress)
        assert (run.interrupted, run.summary()["scored"] < 30) == (True, True)
        assert progress.handler is not mine
        assert signal.getsignal(number) is mine
    finally:
        signal.signal(number, before)


async def test_judge_in_a_running_loop_leaves_signals_to_it() -> None:
    """Inside a running event loop judge() changes no signal handler either."""
    seen = [signal.getsignal(signal.SIGTERM)]

    class Look(Progress):
        def done(self, answer: Answer) -> None:
            seen.append(signal.getsignal(signal.SIGTERM))

    evenhand.judge(rows(2), TWO, "fake", progress=Look())
    assert seen == seen[:1] * 3


def test_mistakes_are_input_errors(tmp_path: Path) -> None:
    """What the caller gets wrong is told before anything is judged."""
    with pytest.raises(UnknownNameError, match="doc-qa"):
        evenhand.judge(rows(1), "doc-q", "fake")
    with pytest.raises(UnknownNameError):
        evenhand.judge(rows(1), TWO, "nowhere:x")
    with pytest.raises(InputError, match="has its options already"):
        evenhand.judge(rows(1), TWO, "fake", variant={"scale": "0-3"})
    with pytest.raises(InputError, match="has no rows"):
        evenhand.judge(7, TWO, "fake")
    with pytest.raises(InputError, match="not a run folder"):
        evenhand.Run(tmp_path)


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"truth": 1}, "no weight for style"),
        ({"truth": 0.5, "style": 0.6}, "sum to 1; these sum to 1.1"),
        ({"truth": 1.5, "style": -0.5}, "lie in 0-1"),
        ({"truth": 0.5, "stile": 0.5}, "did you mean style"),
        ({"truth": float("nan"), "style": 0.5}, "lie in 0-1"),
    ],
)
def test_weights_name_every_criterion_and_sum_to_one(weights: dict[str, float], said: str) -> None:
    """Anything else is refused with the reason."""
    with pytest.raises(InputError, match=said):
        open_rubric(TWO, weights=weights)


def test_labels_have_no_composite() -> None:
    """Weights on a rubric of labels are refused, since no number could come of them."""
    with pytest.raises(InputError, match="no composite of labels"):
        open_rubric("hhh", weights={"harmless": 1})


def test_many_judges_in_one_loop(tmp_path: Path) -> None:
    """Two runs at once in one event loop keep apart."""

    async def both() -> list[evenhand.Run]:
        return await asyncio.gather(
            evenhand.judge_async(rows(20), TWO, "fake:top", out=tmp_path / "a"),
            evenhand.judge_async(rows(20), TWO, "fake:bottom", out=tmp_path / "b"),
        )

    first, second = asyncio.run(both())
    assert {row["truth"] for row in first.rows()} == {4}
    assert {row["truth"] for row in second.rows()} == {0}


def test_a_run_without_a_folder_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary folder goes with the run: when closed, when no longer used, when judging fails."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with evenhand.judge(rows(1), TWO, "fake") as run:
        assert run.summary()["scored"] == 1
        assert run.folder.is_dir()
    assert not list(tmp_path.iterdir())
    run = evenhand.judge(rows(1), TWO, "fake")
    left = run.verdicts()
    assert next(left).status == "scored"
    del run, left
    gc.collect()
    with pytest.raises(InputError):
        evenhand.judge([], TWO, "fake")
    assert not list(tmp_path.iterdir())


def test_closing_keeps_a_folder_that_was_asked_for(tmp_path: Path) -> None:
    """A run with ``out`` stays."""
    with evenhand.judge(rows(1), TWO, "fake", out=tmp_path / "run"):
        pass
    assert Run(tmp_path / "run").summary()["scored"] == 1
