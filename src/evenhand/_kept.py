"""What is made once of an object that never changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Thing = TypeVar("Thing")
Made = TypeVar("Made")


def kept(make: Callable[[Thing], Made], size: int = 64) -> Callable[[Thing], Made]:
    """A function that makes something of an object once and then remembers it, for the last ``size`` objects.

    Objects are known by identity, so they need no hash; they must not change afterwards.
    """
    known: dict[int, tuple[Any, Made]] = {}

    def get(thing: Thing) -> Made:
        found = known.get(id(thing))
        if found is not None and found[0] is thing:
            return found[1]
        made = make(thing)
        if len(known) >= size:
            known.pop(next(iter(known)), None)
        known[id(thing)] = (thing, made)
        return made

    return get
