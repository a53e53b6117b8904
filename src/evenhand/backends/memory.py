"""What was found out about endpoints, kept for later runs: small files in the state folder.

A convenience only. What can't be read, or kept, is found out again; a file may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import platformdirs


class Memory:
    """One file of remembered values.

    Args:
        name: Its name in the state folder.
        lapse_s: Seconds after which a value is forgotten; None for never.
        clock: Wall clock, seconds since the epoch; replaceable in tests.
    """

    def __init__(self, name: str, *, lapse_s: float | None = None, clock: Callable[[], float] = time.time) -> None:
        self._name, self._lapse_s, self._clock = name, lapse_s, clock

    def recall(self, key: str) -> Any:
        """The value of a key; None where there is none, or the file holds none that can be used."""
        value = self._known().get(key)
        return value if self._lapse_s is None or value is None else value[1]

    def remember(self, key: str, value: Any) -> None:
        """Keep a value (plain JSON data), from now on; None forgets the key.

        Processes that write at the same time do so one after the other, each what the others wrote included.
        """
        with contextlib.suppress(OSError), _alone(_folder()):
            known = dict(self._known())
            known.pop(key, None)
            if value is not None:
                known[key] = value if self._lapse_s is None else [self._clock(), value]
            self._write(json.dumps(known))

    def _known(self) -> Mapping[str, Any]:
        try:
            known = json.loads((_folder() / self._name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(known, dict):
            return {}
        return {key: value for key, value in known.items() if self._lapse_s is None or self._fresh(value)}

    def _fresh(self, entry: Any) -> bool:
        dated = isinstance(entry, list) and len(entry) == 2 and isinstance(entry[0], int | float)
        return dated and 0 <= self._clock() - entry[0] < (self._lapse_s or 0)

    def _write(self, text: str) -> None:
        file = _folder() / self._name
        handle, temporary = tempfile.mkstemp(prefix=f"{self._name}.", dir=file.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                opened.write(text)
            Path(temporary).replace(file)
        except OSError:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()


def _folder() -> Path:
    return Path(os.environ.get("EVENHAND_STATE") or platformdirs.user_state_dir("evenhand"))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep others out of a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # a disk without locks: the worst is a value found out once more
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
