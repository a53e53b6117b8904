"""Quotations in a reply: what stands inside them is somebody else's, most often the answer that is being judged."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

#: Quotes of one family open and close each other. Single ones are apostrophes too, so they stay on their line.
_FAMILIES = (
    re.compile('(?P<both>["＂])|(?P<open>[“„«「『])|(?P<close>[”»」』])|(?P<end>\n[ \t]*\n)'),
    re.compile("(?P<both>['’])|(?P<open>‘)|(?P<close>(?!))|(?P<end>\n)"),
)
_WORD = re.compile("[0-9A-Za-z]")
_BLOCK = re.compile("^[ \t]*>.*$", re.MULTILINE)
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
_EDGES = " \t\n*_`#>.,。，"


@dataclass(frozen=True, slots=True)
class Quotations:
    """Where the quotations of a text begin and end; those of one family don't overlap."""

    families: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    def hold(self, start: int, end: int) -> bool:
        """Whether one quotation holds all of a stretch of the text and goes on behind it."""
        for starts, ends in self.families:
            nearest = bisect_right(starts, start) - 1
            if nearest >= 0 and ends[nearest] > end:
                return True
        return False


def quotations(text: str) -> Quotations:
    """The quotations in a text whose line ends are all "\\n"; a reply that is one quotation has none.

    Lines that begin with ">" are quotations too, unless all lines do. Linear in the length of the text.
    """
    first, last = len(text) - len(text.lstrip(_EDGES)), len(text.rstrip(_EDGES))
    spans = [[s for s in _spans(text, family) if s[0] > first or s[1] < last] for family in _FAMILIES]
    blocks = [m.span() for m in _BLOCK.finditer(text)]
    if len(blocks) < sum(1 for _ in _LINE.finditer(text)):
        spans.append(blocks)
    return Quotations(tuple((tuple(s for s, _ in found), tuple(e for _, e in found)) for found in spans))


def _spans(text: str, family: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Quotations of one family of quotes; one that is never closed is none."""
    start = None
    for mark in family.finditer(text):
        after_word = mark.start() > 0 and _WORD.match(text, mark.start() - 1)
        before_word = _WORD.match(text, mark.end())
        if mark["end"]:
            start = None
        elif mark["open"] or (mark["both"] and before_word and not after_word):
            start = mark.start()
        elif mark["close"] or start is not None:
            if start is not None and not before_word:
                yield start, mark.end()
                start = None
        elif not after_word:
            start = mark.start()
