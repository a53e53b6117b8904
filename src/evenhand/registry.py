"""Names that lead to code: loaded on first use, open to other packages through entry points."""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import Any

from evenhand.errors import UnknownNameError

TABLES: dict[str, dict[str, str]] = {
    "backend": {
        "openai": "evenhand.backends.openai_chat:open_backend",
        "anthropic": "evenhand.backends.anthropic_messages:open_backend",
        "gemini": "evenhand.backends.gemini:open_backend",
        "bedrock": "evenhand.backends.bedrock:open_backend",
        "local": "evenhand.backends.local:open_backend",
        "replay": "evenhand.backends.replay:open_backend",
        "fake": "evenhand.backends.fake:open_backend",
    },
}


def names(table: str) -> list[str]:
    """The names known in a table, those of installed plug-ins included."""
    return sorted({*TABLES[table], *(point.name for point in entry_points(group=f"evenhand.{table}"))})


def load(table: str, name: str) -> Any:
    """The object behind a name; its module is imported now.

    Raises:
        UnknownNameError: no such name in that table.
    """
    target = TABLES[table].get(name)
    if target is not None:
        module, _, attribute = target.partition(":")
        return getattr(importlib.import_module(module), attribute)
    for point in entry_points(group=f"evenhand.{table}", name=name):
        return point.load()
    raise UnknownNameError(table, name, names(table))
