"""Judging from Python: one call in, a run out."""

from __future__ import annotations

import asyncio
import concurrent.futures
import shutil
import tempfile
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from evenhand.backend import BackendSettings
from evenhand.errors import InputError
from evenhand.judging import parse_judge
from evenhand.keywords import checked, path
from evenhand.manifest import open_rubric, stored_rubric
from evenhand.opening import opened, opened_runs, run_folders
from evenhand.rubric.asking import find_phrase
from evenhand.rubric.model import Rubric
from evenhand.run import Progress, run
from evenhand.run_folder import own_files
from evenhand.run_spec import RunSpec
from evenhand.runners.local import Stop
from evenhand.sharding import read_shard
from evenhand.store import Store
from evenhand.verdict import Verdict

if TYPE_CHECKING:  # figures, and the packages beneath them, are loaded by who asks for them
    from evenhand import facts
    from evenhand.correcting import Method
    from evenhand.ranking import Model
    from evenhand.stats.paired import IntervalKind, Test

T = TypeVar("T")


class Run:
    """A judged run: a folder with its verdicts, opened anew for each question.

    Args:
        folder: The run folder.
        interrupted: The call that made this object was stopped before all was asked.
        passing: A temporary folder around the run, to be removed with this object.

    Attributes:
        folder: The run folder.
        interrupted: As above.
    """

    def __init__(self, folder: str | Path, *, interrupted: bool = False, passing: Path | None = None) -> None:
        self.folder = path("a run", folder)
        self.interrupted = interrupted
        self._drop = weakref.finalize(self, shutil.rmtree, passing, ignore_errors=True) if passing else None
        with Store.open(self.folder, whole=False) as store:
            self.rubric: Rubric = stored_rubric(store.manifest)

    def close(self) -> None:
        """Remove the run if it lives in a temporary folder; a run with a folder of its own stays."""
        if self._drop is not None:
            self._drop()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def summary(self, *, value: facts.ValueKind = "stated", by: str | None = None) -> dict[str, Any]:
        """The figures of the run; see `evenhand.facts.summary`."""
        from evenhand import facts

        with opened(self.folder, value) as store:
            return facts.summary(store, self.rubric, value=value, by=by)

    def ranking(
        self,
        *,
        value: facts.ValueKind = "stated",
        systems: tuple[str, str] = ("system_a", "system_b"),
        **model: Unpack[Model],
    ) -> dict[str, Any]:
        """Strengths and win rates of the systems that the run's pairs compare; see `evenhand.ranking.ranking`."""
        from evenhand.ranking import ranking

        with opened(self.folder, value) as store:
            return ranking(store, self.rubric, value=value, systems=systems, **model)

    def agreement(
        self,
        labels: Any,
        *,
        map: Mapping[str, str] | None = None,
        value: facts.ValueKind = "stated",
        by: str | None = None,
        **asked: Any,
    ) -> dict[str, Any]:
        """The run's judge against people.

        Args:
            labels: One row per item and rater: a path, a data frame, or an iterable of rows with ``id``, ``rater``
                and columns named as the rubric's fields; see `evenhand.agreeing.read_labels`.
            map: Field name, "id" or "rater" -> column.
            value, by: As for `summary`.
            **asked: statistic, width and require, as for `evenhand.agreeing.agreement_facts`.

        Returns:
            See `evenhand.agreeing.agreement_facts`.
        """
        from evenhand.agreeing import agreement_facts, judged, read_labels

        said = read_labels(str(labels) if isinstance(labels, Path) else labels, self.rubric, mapping=map)
        with opened(self.folder, value) as store:
            judge = judged(store, self.rubric, value, by=by)
        return agreement_facts(self.rubric, said, judge, by=by, **asked)

    def correction(
        self,
        labels: Any,
        *,
        method: Method = "ppi",
        by: str | None = None,
        map: Mapping[str, str] | None = None,
        value: facts.ValueKind = "stated",
    ) -> dict[str, Any]:
        """The run's figures corrected for the judge's errors.

        Args:
            labels, map: As for `agreement`; a random sample of the run's items, 20 at least.
            method: "ppi", "rogan-gladen" (fields of two values), "isotonic" or "two-stage".
            by: A column whose values get figures of their own, and differences.
            value: As for `summary`.

        Returns:
            See `evenhand.correcting.correction_facts`.
        """
        from evenhand.agreeing import read_labels
        from evenhand.correcting import correction_facts

        said = read_labels(str(labels) if isinstance(labels, Path) else labels, self.rubric, mapping=map)
        with opened(self.folder, value) as store:
            return correction_facts(store, self.rubric, said, method=method, by=by, value=value)

    def rows(self, *, value: facts.ValueKind = "stated", long: bool = False) -> Iterator[dict[str, Any]]:
        """One flat row per input row, in input order; per trial when ``long``."""
        from evenhand.table import verdict_rows

        with opened(self.folder, value) as store:
            yield from verdict_rows(store, self.rubric, value=value, long=long)

    def sources(self) -> list[Path]:
        """What no output may replace: the run's own files, and the data and replies behind it. Some may be gone."""
        with Store.open(self.folder, whole=False) as store:
            manifest = store.manifest
        _, _, argument = manifest["judge"]["spec"].partition(":")
        found = [Path(argument), *own_files(self.folder)]
        for command in manifest["commands"]:
            found += [Path(command["data"]), Path(command.get("responses") or "")]
            found.append(self.folder / (command.get("data_from_run") or ""))
        return found

    def verdicts(self) -> Iterator[Verdict]:
        """All verdicts, in input order."""
        with Store.open(self.folder) as store:
            for _, verdicts in store.verdicts():
                yield from verdicts.values()

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"


def merge(runs: str | Path | Sequence[str | Path], *, out: str | Path) -> Run:
    """Make one run of several: all shards of an input, or runs over different rows. They stay as they are.

    Args:
        runs: Run folders of one rubric and judge; shards in any order.
        out: A new run folder.

    Raises:
        InputError, RunError: as for `evenhand.merging.merge`.
    """
    from evenhand.merging import merge

    return Run(merge(run_folders(runs), path("out", out)).folder)


def agreement(
    labels: Any,
    rubric: str | Path | Rubric,
    *,
    map: Mapping[str, str] | None = None,
    by: str | None = None,
    **asked: Any,
) -> dict[str, Any]:
    """People against each other; the arguments are those of `Run.agreement`, ``by`` a column of the labels."""
    from evenhand.agreeing import agreement_facts, read_labels

    opened = open_rubric(rubric)
    said = read_labels(str(labels) if isinstance(labels, Path) else labels, opened, mapping=map, by=by)
    return agreement_facts(opened, said, by=by, **asked)


def compare(
    runs: str | Path | Sequence[str | Path],
    *,
    by: str | None = None,
    margin: float = 0.0,
    test: Test = "permutation",
    interval: IntervalKind = "t",
    value: facts.ValueKind = "stated",
) -> dict[str, Any]:
    """Systems against each other: the rows of one run told apart by a column, or several runs over the same items.

    Args:
        runs: One run folder with ``by``, or two and more without.
        by: The column that names the system.
        margin: Points by which a system may be worse and still count as not worse.
        test: "permutation", "mcnemar" (two values only) or "wilcoxon"; see `evenhand.stats.paired.paired_comparison`.
        interval: Of the difference: "t", or "bootstrap" over questions.
        value: As for `Run.summary`.

    Returns:
        See `evenhand.comparing.comparison_facts`.

    Raises:
        InputError: one run without ``by``, several with it, a run given twice, or runs that can't be compared.
        UnknownNameError: no such column, test or interval.
    """
    from evenhand.comparing import comparison_facts
    from evenhand.scores import of_column, of_runs

    folders = run_folders(runs)
    if (len(folders) == 1) != (by is not None):
        raise InputError("one run needs the column of its systems (--by); two runs and more don't take one")
    with opened_runs(folders, value) as found:
        scores = of_runs(found, value) if by is None else of_column(*next(iter(found.values())), by, value)
        return comparison_facts(scores, margin=margin, test=test, interval=interval)


def variance(runs: str | Path | Sequence[str | Path], *, value: facts.ValueKind = "stated") -> dict[str, Any]:
    """What scores vary with: items, paraphrases, judges, orders, repeats; and where the next call is best spent.

    Args:
        runs: A run folder, or several over the same items, each by another judge.
        value: As for `Run.summary`.

    Returns:
        See `evenhand.robustness.variance_facts`.

    Raises:
        InputError: runs that don't belong together, or of which nothing but the items varies.
    """
    from evenhand.robustness import variance_facts

    with opened_runs(runs, value) as found:
        return variance_facts(found, value=value)


def make_spec(items: Any, rubric: str | Path | Rubric = "doc-qa", judge: str = "local", **options: Any) -> RunSpec:
    """A run's specification from the same keywords as the command line's options; see `judge`.

    Without ``out`` its folder means nothing, and is to be replaced before it is run.

    Raises:
        InputError: no such keyword, or a value that it can't have; mistakes in the rubric.
    """
    given = checked(options)
    if not isinstance(judge, str):
        raise InputError(f"judge must be a text as in openai:MODEL, not {judge!r:.60}")
    settings = {"temperature": given.pop("temperature", 0.0), "max_tokens": given.pop("max_tokens", None)}
    if given.pop("logprobs", False):
        settings |= {"logprobs": True, "top_logprobs": 20}
    opened = open_rubric(rubric, variant=given.pop("variant", None), weights=given.pop("weights", None))
    ask, responses = given.pop("ask", None), given.pop("responses", None)
    shard = given.pop("shard", None)
    return RunSpec(
        source=str(items) if isinstance(items, Path) else items,
        rubric=opened,
        judge=parse_judge(judge, {k: v for k, v in settings.items() if v is not None}),
        folder=Path(given.pop("out", None) or "run"),
        mapping=given.pop("map", None) or {},
        responses=str(responses) if isinstance(responses, Path) else responses,
        shard=None if shard is None else read_shard(shard),
        short=not given.pop("reason", True),
        ask=find_phrase(opened, ask) if ask is not None else None,
        backend=BackendSettings(
            base_url=given.pop("base_url", None),
            headers=given.pop("headers", None) or {},
            timeout_s=given.pop("timeout", 60.0),
        ),
        **given,
    )


async def judge_async(
    items: Any,
    rubric: str | Path | Rubric = "doc-qa",
    judge: str = "local",
    *,
    progress: Progress | None = None,
    stop: Stop | None = None,
    **options: Any,
) -> Run:
    """Judge items; the async twin of `judge`, with the same arguments.

    Signals stay the business of who owns the event loop: hand in a ``stop`` to end the run gently.
    """
    spec, passing = _placed(make_spec(items, rubric, judge, **options), options)
    return await _judge(spec, passing, progress, stop, signals=False)


def _placed(spec: RunSpec, options: Mapping[str, Any]) -> tuple[RunSpec, Path | None]:
    """The specification with a temporary folder, which is returned too, where no ``out`` was given."""
    if options.get("out") is not None:
        return spec, None
    if spec.max_cost is not None:
        raise InputError("max_cost needs out: a run that it stops must be kept to go on")
    passing = Path(tempfile.mkdtemp(prefix="evenhand-"))
    return replace(spec, folder=passing / "run"), passing


async def _judge(
    spec: RunSpec, passing: Path | None, progress: Progress | None, stop: Stop | None, *, signals: bool
) -> Run:
    try:
        outcome = await run(spec, progress=progress, stop=stop, signals=signals)
        return Run(outcome.folder, interrupted=outcome.interrupted, passing=passing)
    except BaseException:
        if passing is not None:
            shutil.rmtree(passing, ignore_errors=True)
        raise


def judge(
    items: Any,
    rubric: str | Path | Rubric = "doc-qa",
    judge: str = "local",
    *,
    progress: Progress | None = None,
    stop: Stop | None = None,
    **options: Any,
) -> Run:
    """Judge items and wait for all verdicts; works inside a running event loop too.

    Where no event loop runs, Ctrl-C, SIGTERM and SIGHUP stop the run gently meanwhile: what is in flight is stored.

    Args:
        items: A path, a data frame, or an iterable of rows (mappings).
        rubric: A built-in name, a rubric file, or a `Rubric`.
        judge: A judge spec, as in ``openai:MODEL``, ``local``, ``replay:FILE``, ``fake``.
        progress: Told of the run's course.
        stop: Asks the run to end gently.
        **options: As on the command line: out, map, responses, variant, weights, ask, reason, limit, sample, seed,
            shard, skip_bad, pairs, repeats, orders, concurrency, rpm, tpm, attempts, timeout, deadline, base_url,
            headers, temperature, max_tokens, logprobs, batch, engine, ray_address, max_cost, prices, re_ask, retry,
            fresh, store_texts, format.
            Without ``out`` the run lives in a temporary folder, removed when the `Run` is closed or no longer used.

    Returns:
        The run, with its verdicts stored.

    Raises:
        InputError: bad rows, rubric or options; nothing was sent.
        BackendError: the judge can't be reached or refuses us.
        RunError: ``out`` holds another run or is in use, or ``max_cost`` is reached.
    """
    stop = stop or Stop()
    spec, passing = _placed(make_spec(items, rubric, judge, **options), options)
    return waited(lambda signals: _judge(spec, passing, progress, stop, signals=signals), stop)


def waited(work: Callable[[bool], Coroutine[Any, Any, T]], stop: Stop) -> T:
    """Wait for work to end, inside a running event loop too; it is told whether it may take over the signals."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work(True))
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        try:
            return thread.submit(asyncio.run, work(False)).result()
        except KeyboardInterrupt:
            stop()  # what is in flight is finished and stored
            raise
