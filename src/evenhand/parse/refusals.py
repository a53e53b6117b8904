"""A judge that declines, told from one that merely gives no rating. Careful: when in doubt, it is no refusal."""

from __future__ import annotations

import re

_LONGEST = 600
_ACT = (
    r"(?:assist|help|evaluate|rate|grade|score|judge|assess|review|compare|comply|fulfil+|complete|process|provide"
    r"|give|assign|engage|participate|continue|respond|answer|do that|do this|support)"
)
_ENGLISH = re.compile(
    r"(?:(?:(?:i['’]?m|i am)\s+(?:(?:very|really|so)\s+)?)?sorry\b|i apologi[sz]e\b|unfortunately\b"
    r"|as an ai\b[^,.]{0,40})?"
    r"[\s,.;:!—-]*(?:but\s+)?(?:as an ai\b[^,.]{0,40},\s*)?"
    r"i(?:\s+(?:can\s?not|can['’]?t|won['’]?t(?: be able to)?|will not|(?:must |have to )?decline to|refuse to)"
    rf"|(?:['’]?m|\s+am)\s+(?:unable|not able|not willing) to)\s+(?:\w+ly\s+)?{_ACT}\b"
    r"(?!.{0,40}\b(?:higher|highly|above|more than)\b)",  # "I can't rate this higher than ..." declines nothing
    re.IGNORECASE,
)
_SORRY_ZH = r"(?:(?:很|非常)?(?:抱歉|对不起|遗憾)[，,。！!\s]{0,3})"
_CHINESE = re.compile(
    rf"(?:{_SORRY_ZH}?(?:[^，。,]{{0,20}}[，,])?[^，。,我]{{0,8}}我|{_SORRY_ZH})(?:无法|不能|不便|不会|拒绝)[^。，,]{{0,8}}"
    r"(?:协助|帮助|提供|评价|评分|打分|评估|评判|评审|回答|满足|处理|完成)"
)


def declines(text: str) -> bool:
    """Whether a short text without a rating begins by declining the task."""
    start = text.strip().lstrip("*_\"'“")
    return 0 < len(start) <= _LONGEST and bool(_ENGLISH.match(start) or _CHINESE.match(start))
