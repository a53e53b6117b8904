"""evenhand judges model answers with language models, and holds the judge to account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.api import Run, agreement, check, compare, judge, judge_async, variance
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
    "study",
    "variance",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Load the public names on first use, so that ``import evenhand`` costs next to nothing."""
    if name in ("Run", "agreement", "check", "compare", "judge", "judge_async", "variance"):
        from evenhand import api

        return getattr(api, name)
    if name == "judge_quality":
        from evenhand.quality import judge_quality

        return judge_quality
    if name == "write_report":
        from evenhand.reporting import write_report

        return write_report
    if name == "study":
        from evenhand.variants import study

        return study
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
