"""The terminal that reports are printed on."""

from __future__ import annotations

import os
from typing import Any

from rich.console import Console
from rich.text import Text

from evenhand._words import visible

_ENDLESS = 100_000  # columns of a file or a pipe, where whoever reads it breaks lines


class Terminal(Console):
    """A console on which no text from outside steers the terminal, wherever it stands: every text that is printed, in
    a table or not, goes through `render_str`.

    What is no terminal, such as a pipe, has no end of a line, unless the environment's COLUMNS gives one.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if not (self.is_terminal or "width" in options or os.environ.get("COLUMNS", "").isdigit()):
            self.width = _ENDLESS

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, with what would steer a terminal shown as escapes."""
        return super().render_str(visible(text), **options)
