"""The number a line begins with: a rating, if all that follows leaves it certain.

What may follow is listed, the rest is refused: "4½", "4|5", "4 (scale 1-10)" and "4²" are not 4.
"""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from evenhand.parse.corrections import number_word, put_instead
from evenhand.parse.values import BETWEEN, NUMBER, OVER, failed, on_scale, over
from evenhand.scale import Scale, plain
from evenhand.verdict import Failure, FieldOutcome

#: Marks that may stand before a value.
OPENERS = " \t*_\"'“‘`\\([（【「"
_MARKS = r"[*_`\"'”’)\]】」\\]{0,9}"
_NUMBER = re.compile(NUMBER)
#: What a rating may be counted in.
UNIT = re.compile(
    r"\s*(?:(?:points?|stars?|pts?\.?|marks?|overall|in\s+total)(?!\w)|分(?!之|制)|颗?星|[★☆⭐🌟]+)", re.IGNORECASE
)
_DENOMINATOR = re.compile(
    rf"\s*[,;]?\s*-*\s*[*_`]{{0,3}}[(\[]?\s*(?P<over>{OVER})\s*(?:an?\s+)?(?:(?:possible|total|maximum|max)\s+)?(?:of\s+)?"
    rf"[*_`(\[]{{0,6}}(?P<number>{NUMBER})",
    re.IGNORECASE,
)
#: A denominator away from its number: on the next line, or behind the tag around it.
APART = re.compile(rf"\s*+[*_`(\[]{{0,6}}(?:/|out\s+of)\s{{0,9}}[*_]{{0,3}}(?P<number>{NUMBER})", re.IGNORECASE)
_ASIDE = re.compile(r"\s*[(\[【](?P<said>[^()\[\]【】]*)(?:[)\]】]|\Z)|\s*[(\[【](?P<open>.*)")
_STATED = re.compile(
    r"[\s,;-]*(?P<said>(?:on|from|using)\s+(?:an?|the|our)\s[^.;]*(?:scale|range)\b[^.;]*"
    rf"|(?:with|where)\s+{NUMBER}\s+(?:being|is|as|=|means)\s[^.;]*"
    r"|(?:scale|range|max(?:imum)?)\b[^.;]*|[0-9.]+\s*分制)",
    re.IGNORECASE,
)
_SCALE_WORD = re.compile(r"scale|range|\bmax(?:imum)?\b|\bout\s+of\b|满分|分制|量表", re.IGNORECASE)
_POINT_OF_SCALE = r"(?<![0-9.])[-+]?[0-9]+(?:\.[0-9]+)?"
_POINT = re.compile(_POINT_OF_SCALE)
_SPAN = re.compile(
    rf"({_POINT_OF_SCALE})\s*(?:[-–—~]+|\b(?:to|through|and)\b|至|到)\s*({_POINT_OF_SCALE})", re.IGNORECASE
)
_CAP = re.compile(r"(?:\bof|\bto|[/至到]|满分)\s*([0-9]+(?:\.[0-9]+)?)\s*分?\Z", re.IGNORECASE)
_BEST = r"(?:the\s+)?(?:best|highest|perfect|max(?:imum)?|top)\b(?:\s+(?:score|rating|mark))?"
_TOP_STATED = re.compile(
    rf"({_POINT_OF_SCALE})\s*(?:is|being|as|=|means)\s*{_BEST}|\b{_BEST}\s*(?:is|being|=|:)\s*({_POINT_OF_SCALE})(?![0-9.]|\s*[^\W\d_])",
    re.IGNORECASE,
)
_ONLY_NUMBERS = re.compile(
    rf"[\s0-9.,;/~–—%=-]*[0-9][\s0-9.,;/~–—%=-]*|{NUMBER}\s*(?:to|至|到|{OVER})\s*{NUMBER}", re.IGNORECASE
)
_SHARE = re.compile(rf"\s*[(=]\s*({NUMBER})\s*%\s*\)?(?!\w)")
_HEDGE = (
    rf"(?:{BETWEEN}|\b(?:maybe|perhaps|possibly|probably|almost|nearly|even|then|vs\.?|versus)\b|⇒|=>|或许|也许|可能)"
)
_ALTERNATIVE = re.compile(
    rf"\s*[,;]?\s*[(\[]?(?:\s*{_HEDGE}){{1,3}}\s*(?:an?\s+)?[*_]*(?P<number>{NUMBER})|,[0-9]", re.IGNORECASE
)
#: It stands for a point of the scale, not for a rating.
_STATEMENT = re.compile(r"[*_]*\s{0,3}[=:](?!=)|\s+(?:if|when|means)\b|\s*(?:表示|如果|代表)", re.IGNORECASE)
#: A word that goes on with the sentence, so that the number counts something else.
_SENTENCE = re.compile(r"[ \t]+(?!(?:because|since|as|due)\b)[a-z]")
#: The number is only near the one that is meant.
_VAGUE = re.compile(
    r"\s*(?:(?:and\s+)?(?:an?\s+|one[\s-]+)?half\b|per\s?cent\b|plus\b|minus\b|and\s+(?:something|an?)\b"
    r"|out\s+of\b|/|半|个|点|多|余|左右|上下|以[上下内]|成|折|倍)",
    re.IGNORECASE,
)
_GOES_ON_ZH = re.compile(r"\s*(?:因为|由于|理由|原因|解释|说明)")
_RIVAL = re.compile(
    rf"\s*[.,;:!|*•、。–—-]+\s*{NUMBER}(?!\s*[^\W\d_])|\s*[.,;:!|*•、。–—-]+\s*{NUMBER}\s*(?:分|points?\b|stars?\b)",
    re.IGNORECASE,
)
_TAG = re.compile(r"\s*<[/!a-zA-Z]|\s*>")


def leading_number(scale: Scale, line: str, *, last: bool, unsure: bool) -> FieldOutcome | None:
    """The number a line begins with; None for a statement that is no rating.

    Args:
        scale: The scale of the field, numeric.
        line: What stands behind a label.
        last: The text ends with this line.
        unsure: Its end may not be the end of the value.
    """
    bare = plain(line).lstrip(OPENERS)
    number = _NUMBER.match(bare)
    if number is None:
        return _words_instead(bare)
    token = number[0].removesuffix(".")
    rest, over_what, doubt, settled = _what_belongs(scale, token, bare[len(token) :])
    if last and (rest.strip() == "/" or (unsure and not settled and rest.strip() in ("", "."))):
        return failed(Failure.TRUNCATED, line.strip())
    if found := _ALTERNATIVE.match(rest):
        span = found["number"] is not None and on_scale(scale, token).value == scale.bottom
        if span and on_scale(scale, found["number"]).value == scale.top:
            return None  # the scale itself
        return failed(Failure.AMBIGUOUS, line.strip())
    if _taken_back(scale, token, rest):
        return failed(Failure.AMBIGUOUS, line.strip())
    if len(over_what) > 1:
        doubt = Failure.AMBIGUOUS
    elif over_what and not over(scale, over_what[0]["number"]):
        doubt = Failure.SCALE_MISMATCH
    counted = not over_what or over_what[0]["over"] != "/"
    if doubt is None and counted and not _VAGUE.match(rest) and (_STATEMENT.match(rest) or _SENTENCE.match(rest)):
        return None
    doubt = doubt or _doubt(rest, bool(over_what))
    return failed(doubt, line.strip()) if doubt is not None else on_scale(scale, token)


def states_other_scale(scale: Scale, aside: str, *, before: bool) -> bool:
    """Whether a remark ("1-10", "max 10") names a scale that is not this one.

    Args:
        scale: The scale of the field.
        aside: The remark.
        before: It stands before the number, where what ends like a scale ("clarity, 1-10") is one.
    """
    said = plain(aside).strip()
    worded = _SCALE_WORD.search(said) is not None
    span = _SPAN.search(said)
    if span and (worded or (before and not said[span.end() :].strip(" 分")) or _ONLY_NUMBERS.fullmatch(said)):
        return not (over(scale, span[2]) and on_scale(scale, span[1]).value == scale.bottom)
    if before and (cap := _CAP.search(said)):
        return not over(scale, cap[1])
    if top := _TOP_STATED.search(said):
        return not over(scale, top[1] or top[2])
    point = _POINT.search(said) if worded else None
    return point is not None and not over(scale, point[0])


def _what_belongs(scale: Scale, token: str, rest: str) -> tuple[str, list[re.Match[str]], Failure | None, bool]:
    """Take off what belongs to a number: marks, units, denominators and remarks.

    Returns:
        What is left, the denominators, the doubt a remark raises, and whether a unit or remark came last.
    """
    over_what: list[re.Match[str]] = []
    doubt: Failure | None = None
    settled = False
    while True:
        marked = re.sub(rf"\A{_MARKS}", "", rest)
        if found := _DENOMINATOR.match(marked):
            over_what.append(found)
            settled = False
        elif found := UNIT.match(marked) or (_SHARE.match(marked) if over_what else None):
            doubt = doubt or (_other_share(scale, token, found[1]) if found.re is _SHARE else None)
            settled = True
        elif found := _STATED.match(marked) or (None if _ALTERNATIVE.match(marked) else _ASIDE.match(marked)):
            said = found["said"] if found["said"] is not None else found["open"]
            doubt = doubt or _remark(scale, token, said)
            settled = True
        else:
            return marked, over_what, doubt, settled
        rest = marked[found.end() :]


def _remark(scale: Scale, token: str, said: str) -> Failure | None:
    """The doubt that a remark after a number raises."""
    if states_other_scale(scale, said, before=False):
        return Failure.SCALE_MISMATCH
    stated = _SPAN.search(said) or _SCALE_WORD.search(said)
    if said.strip() == "?" or _ALTERNATIVE.match(said) or _taken_back(scale, token, said):
        return Failure.AMBIGUOUS
    if _ONLY_NUMBERS.fullmatch(said) and not stated and said.strip() != token:
        return Failure.AMBIGUOUS
    spelled = number_word(said)
    return Failure.AMBIGUOUS if spelled and on_scale(scale, spelled).value != on_scale(scale, token).value else None


def _taken_back(scale: Scale, token: str, said: str) -> bool:
    """Whether words behind a number put another one in its place."""
    instead = put_instead(scale, said)
    return instead is not None and instead.value != on_scale(scale, token).value


def _other_share(scale: Scale, token: str, percent: str) -> Failure | None:
    """AMBIGUOUS where a percentage is not that of the number."""
    same = len(token + percent) < 40 and Decimal(token) * 100 == Decimal(percent) * Decimal(str(scale.top))
    return None if same else Failure.AMBIGUOUS


def _doubt(rest: str, divided: bool) -> Failure | None:
    """The doubt that raises what follows a number and all that belongs to it."""
    after = rest.lstrip()
    if not after:
        return None
    spaced, sign = after is not rest and after != rest, after[0]
    kind = unicodedata.category(sign)
    if kind[0] in "NMC":
        return Failure.AMBIGUOUS if spaced and sign.isdecimal() else Failure.WRONG_TYPE
    if _VAGUE.match(rest):
        return Failure.WRONG_TYPE
    if kind[0] == "L":
        return None if spaced or _GOES_ON_ZH.match(rest) else Failure.WRONG_TYPE
    if re.match(r"\s*(?:\?|？|\.\.|…)", rest):
        return Failure.AMBIGUOUS
    if re.match(r"\.[0-9]|-(?!-)", rest):
        return Failure.WRONG_TYPE
    attached = re.match(r"[^\w\s]+(.)", rest)
    if _RIVAL.match(rest) or (attached and unicodedata.category(attached[1])[0] == "N"):
        return Failure.AMBIGUOUS
    plainly = kind[0] == "P" and sign not in "%‰‱#&@\\/·"
    fine = (
        plainly
        or sign == "|"
        or _TAG.match(rest)
        or (divided and sign == "=")
        or (spaced and kind == "So" and sign != "°")
    )
    return None if fine else Failure.WRONG_TYPE


def _words_instead(words: str) -> FieldOutcome:
    """Words where a number was due."""
    first = re.split(r"[.,;(\n]", words)[0].strip(" *_\"'`|)]}").casefold()
    absent = first in ("", "n/a", "na", "none", "null", "无", "不适用") or words.casefold().startswith("n/a")
    return failed(Failure.NO_RATING if absent else Failure.WRONG_TYPE, words.strip())
