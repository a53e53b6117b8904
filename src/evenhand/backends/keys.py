"""Keys of providers: from the environment, or else from the system's keyring; never from a command line or a file."""

from __future__ import annotations

import os
from collections.abc import Iterable

#: Under which name keys stand in a keyring; the user is the name of the variable.
SERVICE = "evenhand"


def find_key(names: Iterable[str], *, stored: bool = True) -> str:
    """The first key that is set, in the order of the names; "" where none is.

    Args:
        names: Environment variables that may hold it.
        stored: Look into the keyring too, for each variable that is unset, where the package keyring is installed.
    """
    for name in names:
        if key := os.environ.get(name, "").strip() or (_stored(name) if stored else ""):
            return key
    return ""


def _stored(name: str) -> str:
    """What the keyring holds for a variable; "" where it holds nothing, is locked, or is not installed."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return (keyring.get_password(SERVICE, name) or "").strip()
    except KeyringError:
        return ""
