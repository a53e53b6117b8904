"""The identity of a request."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand._canon import digest
from evenhand.backend import Request

SYSTEM = {"role": "system", "content": "Grade\n\u2028\u00e9."}
USER = {"role": "user", "content": "half a pair: \ud83d"}
PARTS = {"role": "user", "content": [{"type": "text", "text": "q"}]}
NAMED = {"role": "assistant", "content": "", "name": "x"}


@pytest.mark.parametrize("static", [0, 1, 2, 3])
def test_a_request_is_known_by_its_content(static: int) -> None:
    """The digest is that of the plain data, however many messages are shared, and whatever was asked before."""
    for messages in (
        (SYSTEM,),
        (SYSTEM, USER),
        (SYSTEM, USER, PARTS),
        (SYSTEM, SYSTEM, NAMED),
        (USER,),
        (SYSTEM, USER),
    ):
        plain: dict[str, Any] = {
            "form": "tool",
            "function": "f",
            "judge": {"model": "m"},
            "messages": list(messages),
            "repeat": 1,
            "schema": {"b": 1, "a": [1.0]},
            "settings": {"temperature": 0.0},
        }
        request = Request(**{**plain, "messages": messages}, static_messages=min(static, len(messages)), item_id="any")
        assert request.digest == digest(plain)
