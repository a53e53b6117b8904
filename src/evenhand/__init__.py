"""evenhand judges model answers with language models, and holds the judge to account."""

from __future__ import annotations

__version__ = "0.1.0"
__all__ = ["__version__"]
