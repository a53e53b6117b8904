"""The token probabilities a fault server tells of its replies."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

_TOKENS = re.compile(r"\d| ?[^\W\d_]{1,6}|\s|[^\w\s]|.", re.DOTALL)
#: Probability of the token that is written, and of the next two digits or, for other tokens, of a word that is none.
_WRITTEN, _NEXT, _AFTER_NEXT, _OTHER = 0.625, 0.25, 0.0625, 0.25


def token_list(message: Mapping[str, Any], top: int) -> dict[str, Any]:
    """The ``logprobs`` of a choice: the tokens of its content or its call's arguments, each with ``top`` alternatives.

    Every digit is a token of its own, with probability 0.625; the next digit, round the clock, has 0.25 and the one
    after it 0.0625. Any other token has 0.625 too.
    """
    calls = message.get("tool_calls") or []
    text = message.get("content") or "".join(call["function"]["arguments"] for call in calls)
    return {"content": [_entry(token, top) for token in _TOKENS.findall(text)]}


def _entry(token: str, top: int) -> dict[str, Any]:
    others = {"~": _OTHER}
    if token.isascii() and token.isdigit():
        others = {str((int(token) + 1) % 10): _NEXT, str((int(token) + 2) % 10): _AFTER_NEXT}
    listed = [_told(text, p) for text, p in {token: _WRITTEN, **others}.items()][:top]
    return {**_told(token, _WRITTEN), "top_logprobs": listed}


def _told(token: str, p: float) -> dict[str, Any]:
    return {"token": token, "bytes": list(token.encode("utf-8", "replace")), "logprob": math.log(p)}
