"""The progress of a run: rate, time left, cost so far, failures by class. On stderr."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn

from evenhand import run
from evenhand._words import counted, failure, usd
from evenhand.judging import Answer
from evenhand.spending import Forecast
from evenhand.verdict import Status

_EVERY_S = 30.0


class Bar(run.Progress):
    """A bar where stderr is a terminal; elsewhere one line at the start, and one every half minute."""

    def __init__(self, console: Console) -> None:
        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"), TimeRemainingColumn())
        self._console = console
        self._bar = Progress(*columns, TextColumn("{task.fields[note]}"), console=console, transient=True)
        self._task: TaskID | None = None
        self._failures: Counter[str] = Counter()
        self._asked = 0
        self._cost: float | None = 0.0
        self._cap: float | None = None
        self._told = 0.0

    def start(self, total: int, stored: int) -> None:
        self._console.print(f"{counted(total, 'trial')}, {stored} of them stored already", highlight=False)
        if self._console.is_terminal:
            self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=stored, rate="", note="")

    def warn(self, text: str) -> None:
        self._console.print(f"warning: {text}", highlight=False, markup=False, soft_wrap=True)

    def forecast(self, told: Forecast, cap: float | None) -> None:
        self._cap = cap
        self._console.print(str(told), highlight=False)

    def done(self, answer: Answer) -> None:
        verdict = answer.verdict
        self._asked += 1
        if verdict.status is not Status.SCORED:
            self._failures[verdict.failure or verdict.status.value] += 1
        if verdict.calls and self._cost is not None:
            cost = verdict.usage.cost_usd
            self._cost = None if cost is None else self._cost + cost
        if self._task is not None:
            task = self._bar.tasks[0]
            rate = f"{self._asked / task.elapsed:.1f}/s" if task.elapsed else ""
            self._bar.update(self._task, advance=1, rate=rate, note=self._note())
            if not self._console.is_terminal and (task.elapsed or 0.0) >= self._told + _EVERY_S:
                self._told = task.elapsed or 0.0
                self._console.print(self._line(task), highlight=False, markup=False, soft_wrap=True)

    def stopping(self) -> None:
        self._console.print("stopping: what is in flight is being finished; once more to give it up", highlight=False)

    def stop(self) -> None:
        """Take the bar away."""
        if self._console.is_terminal:
            self._bar.stop()

    def _line(self, task: Task) -> str:
        """How far the run is, in words."""
        total, elapsed = task.total or 0.0, task.elapsed or 0.0
        left = timedelta(seconds=round((total - task.completed) * elapsed / self._asked))
        rate = f"{self._asked / elapsed:.2g}/s"
        parts = [f"{task.completed:.0f} of {counted(int(total), 'trial')}", rate, f"about {left} left", self._note()]
        return ", ".join(filter(None, parts))

    def _note(self) -> str:
        parts = [f"{failure(name)} {n}" for name, n in self._failures.most_common(4)]
        if self._cost:
            parts.insert(0, usd(self._cost) + (f" (at most {usd(self._cap)} in all)" if self._cap else ""))
        return "  ".join(parts)
