"""evenhand judges model answers with language models, and holds the judge to account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.api import Run, agreement, compare, judge, judge_async, merge, variance
    from evenhand.checking import check
    from evenhand.quality import judge_quality
    from evenhand.reporting import write_report
    from evenhand.variants import study

__version__ = "0.1.0"
__all__ = [
    "Run",
    "__version__",
    "agreement",
    "check",
    "compare",
    "judge",
    "judge_async",
    "judge_quality",
    "merge",
    "study",
    "variance",
    "write_report",
]


_PLACES = {
    **dict.fromkeys(("Run", "agreement", "compare", "judge", "judge_async", "merge", "variance"), "api"),
    "check": "checking",
    "judge_quality": "quality",
    "study": "variants",
    "write_report": "reporting",
}


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that ``import evenhand`` costs next to nothing."""
    if name not in _PLACES:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"evenhand.{_PLACES[name]}"), name)
