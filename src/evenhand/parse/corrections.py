"""Values that are taken back: words of correction, and the value they put in place of the first.

Only what is certain counts: the words stand at the start of a line, an aside or the next clause, and the other
value ends its clause, so that "Actually, 3 points were missed" corrects nothing.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from evenhand.parse.values import NUMBER, SIDE, menu, on_scale
from evenhand.scale import Scale
from evenhand.verdict import FieldOutcome

_WORDS_FOR = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_SPELLED = {word: str(n) for n, word in enumerate(_WORDS_FOR)}
_SAID = (
    r"(?:(?:oh|well|but|hmm|sorry|wait|no)[\s,.…—–-]{1,5}){0,2}(?:(?:no|nope|sorry|wait)\s?[,:;!—–]+"
    r"|(?:actually|correction|(?:i\s+)?corrected(?:\s+to)?|(?:changed|revised|lowered|raised|updated|adjusted)\s+to"
    r"|i\s+mean|(?:or\s+)?rather|make\s+(?:that|it)|scratch\s+that|on\s+second\s+thoughts?)(?!\w)"
    r"|更正为?|改为|不对|应为)"
)
_FINAL = r"final(?:\s+(?:answer|value|result|grade|decision))?[*_]{0,3}\s?[:：=]"
_FILLER = (
    r"[\s*_,:：，;—–]{0,9}(?:(?:it\s+(?:is|should\s+be)|it['’]s|i(?:['’]d)?\s+say|to)\s+)?(?:an?\s+)?[*_\"'`(]{0,4}"
)
_CLAUSE_ENDS = (
    rf"(?:\s?(?:points?|stars?|分|(?:/|out\s+of)\s?{NUMBER}))?[*_\"'`)\]]{{0,4}}[ \t]{{0,9}}"
    r"(?:\Z|\.(?![0-9])|[!;)\]。；！，(（\n|<]|,(?!\s*[0-9])|(?:instead|because|since)\b)"
)
_LINE_STARTS = r"(?m:^)[ \t*_#-]{0,9}"


def number_word(word: str) -> str | None:
    """The digits of a small number in words."""
    return _SPELLED.get(word.strip().casefold())


def put_instead(scale: Scale, said: str) -> FieldOutcome | None:
    """The legal value that words of correction, with which a text begins, put in place of another."""
    found = _corrects(_values(scale), False).match(said)
    return _legal(scale, found["value"]) if found else None


def corrected_lines(scale: Scale, text: str) -> Iterator[tuple[re.Match[str], FieldOutcome]]:
    """The lines of a text that begin with words of correction and a legal value."""
    for found in _corrects(_values(scale), True).finditer(text):
        outcome = _legal(scale, found["value"])
        if outcome is not None:
            yield found, outcome


def _values(scale: Scale) -> str:
    """Finds what may stand for a value, as a pattern."""
    if scale.numeric:
        return rf"{NUMBER}|(?:{'|'.join(_WORDS_FOR)})(?!\w)"
    return rf"(?:{'|'.join(re.escape(option) for option in menu(scale))})(?!\w)"


def _legal(scale: Scale, said: str) -> FieldOutcome | None:
    if scale.numeric:
        outcome = on_scale(scale, number_word(said) or said.removesuffix("."))
        return outcome if outcome.failure is None else None
    return FieldOutcome(menu(scale)[" ".join(said.casefold().split())])


@functools.lru_cache(maxsize=64)
def _corrects(values: str, lines: bool) -> re.Pattern[str]:
    words = rf"{_LINE_STARTS}(?:{_SAID}|{_FINAL})" if lines else rf"[\s,;.!—–-]{{0,5}}{_SAID}"
    return re.compile(rf"{words}{_FILLER}{SIDE}?(?P<value>{values}){_CLAUSE_ENDS}", re.IGNORECASE)
