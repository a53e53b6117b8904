"""Quotations in a reply: what stands inside them is somebody else's, most often the answer that is being judged."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

#: Quotes of one family open and close each other. Single ones are apostrophes too, so they stay on their line.
_FAMILIES = (
    re.compile('(?P<both>["＂])|(?P<open>[“„«「『])|(?P<close>[”»」』])|(?P<end>\n[ \t]*\n)'),
    re.compile("(?P<both>['’])|(?P<open>‘)|(?P<close>(?!))|(?P<end>\n)"),
)
_WORD = re.compile("[0-9A-Za-z]")
_BLOCK = re.compile("^[ \t]*>.*$", re.MULTILINE)
_LINE = re.compile(r"^.*\S.*$", re.MULTILINE)
#: Code within a line; a fence is none.
_CODE = re.compile(r"(?<!`)(`{1,2}+)[^`\n]++\1(?!`)")
#: A lead-in that hands over the judge's own answer.
_HANDS_OVER = re.compile(
    r"[\W_]*(?:(?:here\s+is|my|the|final|overall)\s+)*(?:json|answer|output|result|evaluation|rating|score|verdict|response"
    r"|judge?ment|评分|结果|输出|结论)(?:\s+is)?[\W_]*",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"(?:\A|[\n.!?;(（。！？；])[\s*_#>-]{0,9}(?:for\s+(?:example|instance)|examples?|e\.?g\.?|例如|比如|示例)"
    r"[*_]{0,3}[ \t]{0,3}(?:[,:：，][\s*_\"'`(\[]{0,9})?\Z",
    re.IGNORECASE,
)
_QUOTE_OR_CODE = re.compile("[`\"'“”‘’«»「」『』＂]")
_LETTER = re.compile(r"[^\W\d_]")
_NEAR = 160
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


def quotations(text: str, *, blocks: bool = True) -> Quotations:
    """The quotations in a text whose line ends are all "\\n"; a reply that is one quotation has none.

    Lines that begin with ">" are quotations too, unless all lines do. Linear in the length of the text.

    Args:
        text: The text.
        blocks: Look for such lines.
    """
    first, last = len(text) - len(text.lstrip(_EDGES)), len(text.rstrip(_EDGES))
    spans = [[s for s in _spans(text, family) if s[0] > first or s[1] < last] for family in _FAMILIES]
    quoted = [m.span() for m in _BLOCK.finditer(text)] if blocks else []
    if len(quoted) < sum(1 for _ in _LINE.finditer(text)):
        spans.append(quoted)
    return Quotations(tuple((tuple(s for s, _ in found), tuple(e for _, e in found)) for found in spans))


def set_aside(text: str, objects: Sequence[tuple[int, int]]) -> list[bool]:
    """Which of the objects in a text are no answer: quoted, marked as code in a sentence, or an example.

    An object alone on its line, or behind a lead-in as "Verdict:", counts in spite of the marks around it, but not
    in a quotation of lines. Linear in the length of the text.
    """
    masked, at = [], 0
    for start, end in objects:
        masked += [text[at:start], "x" * (end - start)]
        at = end
    said = "".join([*masked, text[at:]])
    code = [m.span() for m in _CODE.finditer(said)] if not _one_piece(said) else []
    within = quotations(said, blocks=False).families
    marks = Quotations(((tuple(s for s, _ in code), tuple(e for _, e in code)), *within))
    lines = Quotations(quotations(said).families[len(_FAMILIES) :])
    return [
        is_example(text, start)
        or lines.hold(start, end - 1)
        or (marks.hold(start, end) and not _on_its_own(said, start, end))
        for start, end in objects
    ]


def is_example(text: str, start: int) -> bool:
    """Whether what begins here is introduced as an example."""
    return _EXAMPLE.search(text, max(0, start - 40), start) is not None


def _one_piece(text: str) -> bool:
    """Whether a text is one piece of code."""
    return _CODE.fullmatch(text.strip(" \t\n.。")) is not None


def _on_its_own(text: str, start: int, end: int) -> bool:
    lead = text[max(0, start - _NEAR) : start].rpartition("\n")[2]
    tail = text[end : end + _NEAR].partition("\n")[0]
    if _LETTER.search(tail):
        return False
    marked = _QUOTE_OR_CODE.search(lead + tail) is not None
    return marked and (not _LETTER.search(lead) or _HANDS_OVER.fullmatch(lead) is not None)


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
