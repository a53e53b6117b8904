"""Runs opened for their figures."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.errors import InputError
from evenhand.facts import ValueKind
from evenhand.manifest import stored_rubric
from evenhand.rubric.model import Rubric
from evenhand.store import Store


@contextlib.contextmanager
def opened(folder: Path, value: ValueKind) -> Iterator[Store]:
    """A run's store, for figures of this kind of value.

    Raises:
        InputError: expected values, and the judge answered, but never with probabilities.
    """
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


@contextlib.contextmanager
def opened_runs(folders: Sequence[str | Path], value: ValueKind) -> Iterator[dict[str, tuple[Store, Rubric]]]:
    """Several runs by the name of their folder, each with its rubric.

    Raises:
        InputError: no run, a run given twice, or as for `opened`.
    """
    if not folders:
        raise InputError("no run is given")
    if len({Path(folder).resolve() for folder in folders}) < len(folders):
        raise InputError("a run is given twice: it differs in nothing from itself")
    with contextlib.ExitStack() as stack:
        stores = {str(Path(folder)): stack.enter_context(opened(Path(folder), value)) for folder in folders}
        yield {name: (store, stored_rubric(store.manifest)) for name, store in stores.items()}
