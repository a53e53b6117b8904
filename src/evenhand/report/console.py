"""The terminal that reports are printed on."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from evenhand._words import visible


class Terminal(Console):
    """A console on which no text from outside steers the terminal, wherever it stands: every text that is printed, in
    a table or not, goes through `render_str`.
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, with what would steer a terminal shown as escapes."""
        return super().render_str(visible(text), **options)
