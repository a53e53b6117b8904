"""Prompts that a server cut without a word, told by the tokens it says it read."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

from evenhand.backend import Request
from evenhand.errors import FinalBackendError
from evenhand.verdict import Usage

#: Shorter prompts fit everywhere.
_BYTES_A_CHARACTER = 4  # at most
_FROM_BYTES = 2000
#: No tokenizer reads more bytes a token than this, counted in the size that is left when repetition is packed away
#: (measured: 1.0 to 1.5 for English, Chinese, code, JSON and base64). Unpacked, one token may be a hundred spaces.
_MOST_PACKED_BYTES = 4


def require_whole(request: Request, usage: Usage) -> None:
    """Refuse a reply to a prompt that was cut.

    A server that does not tell its cached tokens may have left them out of the count: then only what can't be cached
    is held against it, and nothing of requests that repeat a prompt.

    Raises:
        FinalBackendError: fewer tokens were read than the text can take.
    """
    if not usage.prompt_tokens or (usage.cached_tokens is None and (request.repeat or request.attempt)):
        return
    read = usage.prompt_tokens
    if (cached := usage.cached_tokens or 0) > read:
        read += cached
    messages = request.messages[request.static_messages if usage.cached_tokens is None else 0 :]
    texts = list(map(_text, messages))
    at_most = sum(len(text) * (1 if text.isascii() else _BYTES_A_CHARACTER) for text in texts)
    if at_most <= max(_FROM_BYTES, read * _MOST_PACKED_BYTES):
        return  # as nearly always
    data = "".join(texts).encode("utf-8", "replace")
    if len(data) <= _FROM_BYTES or read * _MOST_PACKED_BYTES >= len(data):  # packed it is shorter still
        return
    if read * _MOST_PACKED_BYTES < len(zlib.compress(data)):
        raise FinalBackendError(
            f"the server read {read:,} tokens of a prompt of {len(data):,} bytes: it cut the prompt",
            hint="raise the context length of the server (num_ctx of Ollama), or give shorter items",
            status=200,
            maybe_paid=True,
        )


def _text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
