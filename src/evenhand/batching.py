"""A run through a provider's batches: which of them are under way is kept in the run's manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.backend import Backend
from evenhand.errors import InputError, RunError
from evenhand.judging import Answer, Asker
from evenhand.runners.batch import Kept, batch_wire, run_batches
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.trial import Trial

_ENTRY = "batches"


def require_batch(
    batch: bool, max_cost: float | None, manifest: Mapping[str, Any], backend: Backend, folder: Path
) -> None:
    """Refuse what can't be done, before anything is sent.

    Raises:
        InputError: batches are asked for, and the judge has none, or there is a cap.
        RunError: the run waits for batches, and is to go on without them: what they answer would be paid for twice.
    """
    if batch:
        batch_wire(backend)
        if max_cost is not None:  # all is handed in before any of it is paid for
            raise InputError("--max-cost does not hold for batches", hint="leave one of the two out")
    elif under_way := manifest.get(_ENTRY):
        ids = ", ".join(str(entry["id"]) for entry in under_way)
        raise RunError(
            f"{folder} waits for what it handed in: {ids}",
            hint="the same command with --batch collects; --fresh starts over, and leaves them to the provider",
        )


async def ask_batches(
    trials: Callable[[], Iterator[Trial]],
    store: Store,
    asker: Asker,
    attempts: int,
    stop: Stop,
    say: Callable[[str], None],
    done: Callable[[Answer], None],
) -> None:
    """Ask trials as `evenhand.runners.batch.run_batches` does, with what must survive a kill kept in the store."""

    def keep(kept: Kept) -> None:
        store.update_manifest(**{_ENTRY: kept}, form=asker.form.proved)

    await run_batches(
        trials,
        asker,
        store.append,
        kept=store.manifest.get(_ENTRY) or [],
        keep=keep,
        attempts=attempts,
        stop=stop,
        say=say,
        done=done,
    )
