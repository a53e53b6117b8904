"""A run through a provider's batches: which of them are under way is kept in the run's manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.backend import Backend
from evenhand.errors import RunError
from evenhand.judging import Answer, Asker
from evenhand.runners.local import Stop
from evenhand.store import Store
from evenhand.trial import Trial

if TYPE_CHECKING:
    from evenhand.runners.batch import Kept

_ENTRY = "batches"


def require_batch(batch: bool, manifest: Mapping[str, Any], backend: Backend, folder: Path) -> None:
    """Refuse what can't be done, before anything is sent.

    Raises:
        InputError: batches are asked for, and the judge has none.
        RunError: the run waits for batches, and is to go on without them: what they answer would be paid for twice.
    """
    if batch:
        from evenhand.runners.batch import batch_wire  # loads the HTTP client

        batch_wire(backend)
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
    from evenhand.runners.batch import purse_of, run_batches

    purse = purse_of(asker)
    if purse is not None:
        purse.close()  # so that there is an entry to go on with

    def entries(kept: Kept) -> dict[str, Any]:
        found: dict[str, Any] = {_ENTRY: kept, "form": asker.form.proved}
        if purse is not None:
            found["cost"] = {**store.manifest["cost"], "at_most_usd": purse.at_most()}
        return found

    await run_batches(
        trials,
        asker,
        lambda answers, kept: store.append(answers, **entries(kept)),
        kept=store.manifest.get(_ENTRY) or [],
        keep=lambda kept: store.update_manifest(**entries(kept)),
        attempts=attempts,
        stop=stop,
        say=say,
        done=done,
    )
