"""Runs opened for their figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from evenhand.errors import InputError, UnknownNameError
from evenhand.facts import ValueKind
from evenhand.keywords import path
from evenhand.manifest import stored_rubric
from evenhand.rubric.model import Rubric
from evenhand.store import Store


@contextlib.contextmanager
def opened(folder: Path, value: ValueKind) -> Iterator[Store]:
    """A run's store, for figures of this kind of value.

    Raises:
        UnknownNameError: no such kind of value.
        InputError: expected values, and the judge answered, but never with probabilities.
    """
    if value not in get_args(ValueKind):
        raise UnknownNameError("value", value, get_args(ValueKind))
    with Store.open(folder) as store:
        if value == "expected":
            found = (verdict for _, verdicts in store.verdicts() for verdict in verdicts.values())
            given = (o for v in found for o in v.fields.values() if o.value is not None and not o.preset)
            first = next(given, None)
            if first is not None and first.distribution is None and all(o.distribution is None for o in given):
                raise InputError(
                    f"the judge of {folder} gave no probabilities, so there are no expected values",
                    hint="--value stated takes the values that it gave",
                )
        yield store


def run_folders(runs: Any) -> list[Path]:
    """The folder of a run, or of several.

    Args:
        runs: A path, or an iterable of paths.

    Raises:
        InputError: neither, no run, or a run given twice.
    """
    several = isinstance(runs, Iterable) and not isinstance(runs, str | bytes)
    folders = [path("a run", run) for run in (runs if several else [runs])]
    if not folders:
        raise InputError("no run is given")
    known: dict[Path, Path] = {}
    for folder in folders:
        if (before := known.setdefault(folder.resolve(), folder)) is not folder:
            names = str(folder) if str(folder) == str(before) else f"{before}, also named {folder},"
            raise InputError(f"{names} is given twice: it differs in nothing from itself", hint="name each run once")
    return folders


@contextlib.contextmanager
def opened_runs(runs: Any, value: ValueKind) -> Iterator[dict[str, tuple[Store, Rubric]]]:
    """Several runs by the name of their folder, each with its rubric.

    Raises:
        InputError: as for `run_folders` and `opened`.
    """
    with contextlib.ExitStack() as stack:
        stores = {str(folder): stack.enter_context(opened(folder, value)) for folder in run_folders(runs)}
        yield {name: (store, stored_rubric(store.manifest)) for name, store in stores.items()}
