"""The contents of messages, as providers want them: system text, texts, and images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evenhand.backend import Request
from evenhand.errors import FinalBackendError
from evenhand.images import data_url

Block = dict[str, Any]


def contents(
    message: Mapping[str, Any],
    request: Request,
    *,
    text: Callable[[str], Block],
    image: Callable[[str, str], Block],
    address: Callable[[str], Block] | None = None,
) -> list[Block]:
    """The blocks of one message; empty texts, which providers refuse, are left out.

    Args:
        message: A message of the request.
        request: Holds the images, whose bytes are read now.
        text: Makes a block of a text.
        image: Makes a block of a media type and base64 text.
        address: Makes a block of an http(s) address; None where the provider fetches none.

    Raises:
        FinalBackendError: an image is gone, or changed since the item was read; or it is an address and may not be.
    """
    content = message["content"]
    parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    found = []
    for part in parts:
        if part["type"] == "text":
            found += [text(part["text"])] if part["text"].strip() else []
        elif part["type"] == "image":
            found.append(image(part["media_type"], data_url(request.images[part["sha256"]]).partition(",")[2]))
        elif address is not None:
            found.append(address(part["image_url"]["url"]))
        else:
            hint = "give images as files or base64, or choose a judge that fetches them"
            raise FinalBackendError("this provider takes no image by its address", hint=hint)
    return found


def without_system(messages: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
    """System text moved to the head of the first user message."""
    system = [m["content"] for m in messages if m["role"] == "system"]
    rest = [m for m in messages if m["role"] != "system"]
    if not rest or not system:
        return ({"role": "user", "content": "\n\n".join(system)},) if system else tuple(rest)
    head, content = "\n\n".join(system), rest[0]["content"]
    parts = [{"type": "text", "text": head}, *content] if isinstance(content, list) else f"{head}\n\n{content}"
    return ({**rest[0], "content": parts}, *rest[1:])
