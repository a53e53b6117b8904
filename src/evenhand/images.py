"""Images of items: found, checked by their own bytes, and read again when they are sent. Nothing is decoded.

with_images -> Image (reference and digest, no bytes) -> located -> data_url
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evenhand.errors import FinalBackendError, Problem
from evenhand.item import CheckedRow
from evenhand.item_values import Image, read_json
from evenhand.rubric.model import ItemSpec

#: Most bytes one image may have.
MAX_BYTES = 10_000_000
#: Most bytes the images of one item may have together: all of them go in one request.
MAX_ITEM_BYTES = 25_000_000
#: Most images one item may have.
MAX_IMAGES = 16
#: Most pixels one image may have: a small file can claim a picture that fills any memory.
MAX_PIXELS = 64_000_000
_MAX_URL = 8192
_SHOWN = 80
_DEPTH = 100
_HIDDEN = "..."
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?=//)|data:", re.IGNORECASE)
#: How the base64 of the four kinds begins. A path may begin so too, but has a dot, or is short.
_BASE64_BEGINS = ("iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{32,}={0,2}")
#: What may be a name or password in an address, also where it is so written that host and port can't be read.
_LOGIN = re.compile(r"\A([^/]*//)(?=[^/?#]*(?:@|:(?!\d*(?:[/?#]|$)))).*@", re.DOTALL)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # JPEG segments that tell the size
_Size = tuple[int, int]


class _Wrong(ValueError):
    """An image that can't be used: what is wrong, and what would mend it."""

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


def folder_of(source: Any) -> Path:
    """Where relative paths of images start: the folder of the data file; the current one for all other sources."""
    return Path(source).parent if isinstance(source, str | os.PathLike) else Path()


def with_images(checked: CheckedRow, spec: ItemSpec, folder: Path) -> CheckedRow:
    """The row with its images checked: references become `Image`, mistakes become problems.

    Files are read one at a time and dropped again.

    Args:
        checked: A row whose images are references, as in the data.
        spec: What the rubric reads.
        folder: Where relative paths start.
    """
    fields = dict(checked.fields)
    problems = list(checked.problems)
    count = size = 0
    for name in (f.name for f in spec.fields if f.type == "images"):
        images = []
        for reference in fields.get(name) or ():
            count += 1
            if count > MAX_IMAGES or _HALF_PAIR.search(reference):  # the latter is a problem of the row already
                continue
            try:
                images.append(_open(reference, folder))
                size += images[-1].bytes
            except _Wrong as wrong:
                problems.append(Problem(None, "", f"{name} {_told(reference)} {wrong.message}", wrong.remedy))
        fields[name] = tuple(images)
    if count > MAX_IMAGES:
        problems.append(Problem(None, "", f"the row has {count} images, more than {MAX_IMAGES}"))
    if size > MAX_ITEM_BYTES:
        message = f"the row's images have {size:,} bytes together, more than {MAX_ITEM_BYTES:,}"
        problems.append(Problem(None, "", message, "scale them down"))
    return replace(checked, fields=fields, problems=tuple(problems))


def without_logins(row: Mapping[str, Any], spec: ItemSpec, mapping: Mapping[str, str]) -> dict[str, Any]:
    """A refused row fit to be stored: names and passwords are cut from the addresses in its columns of images.

    Args:
        row: Column -> value, as in the data.
        spec: What the rubric reads.
        mapping: Field name -> column.
    """
    names = {f.name for f in spec.fields if f.type == "images"}
    columns = names | {
        column for column, name in (*spec.aliases.items(), *((c, name) for name, c in mapping.items())) if name in names
    }
    return {column: _without_login(value) if column in columns else value for column, value in row.items()}


def _without_login(value: Any, depth: int = 0) -> Any:
    if isinstance(value, Mapping | list | tuple):
        if depth > _DEPTH:
            return _HIDDEN
        if isinstance(value, Mapping):
            return {name: _without_login(v, depth + 1) for name, v in value.items()}
        return [_without_login(v, depth + 1) for v in value]
    if not isinstance(value, str) or "@" not in value:
        return value
    if not value.lstrip().startswith("["):
        return _LOGIN.sub(rf"\1{_HIDDEN}@", value)
    try:
        return json.dumps(_without_login(read_json(value), depth + 1), ensure_ascii=False)
    except ValueError:
        return _HIDDEN  # no list after all, so where an address begins and ends can't be told


def of_item(fields: Mapping[str, Any]) -> Iterator[Image]:
    """The opened images among an item's fields."""
    for value in fields.values():
        if isinstance(value, tuple):
            yield from (v for v in value if isinstance(v, Image))


def located(fields: Mapping[str, Any], folder: Path) -> dict[str, Image]:
    """Digest -> image of all images of an item whose bytes are here, with paths that hold from the current folder."""
    return {
        image.sha256: image if image.inline else replace(image, reference=str(folder / image.reference))
        for image in of_item(fields)
        if image.sha256
    }


def data_url(image: Image) -> str:
    """The image as a ``data:`` address, its bytes read now.

    Raises:
        FinalBackendError: it is gone, or no longer the image that was checked.
    """
    try:
        data = _inline_bytes(image.reference) if image.inline else _file_bytes(image.reference, Path())
    except _Wrong as wrong:
        raise FinalBackendError(f"image {_told(image.name)} {wrong.message}", hint=wrong.remedy) from None
    if hashlib.sha256(data).hexdigest() != image.sha256:
        hint = "give another --out, or --fresh to judge what it is now"
        raise FinalBackendError(f"image {_told(image.name)} changed after the row was read", hint=hint)
    return f"data:{image.media_type};base64,{base64.b64encode(data).decode()}"


def _open(reference: str, folder: Path) -> Image:
    scheme = _SCHEME.match(reference)
    if scheme is not None and scheme[0].lower() in ("http:", "https:"):
        return Image(_address(reference))
    data = _inline_bytes(reference) if _is_inline(reference) else _file_bytes(reference, folder)
    media_type, (width, height) = _kind(data)
    if not width or not height:
        raise _Wrong("has no pixels")
    if width * height > MAX_PIXELS:
        raise _Wrong(f"has {width}x{height} pixels, more than {MAX_PIXELS:,}", "scale it down")
    digest = hashlib.sha256(data).hexdigest()
    return Image(reference, digest, media_type, len(data), width, height, _is_inline(reference))


def _is_inline(reference: str) -> bool:
    """Whether a reference that is no address is the image itself, not a path."""
    if _SCHEME.match(reference) is not None:
        return True
    return reference.startswith(_BASE64_BEGINS) and _BASE64.fullmatch("".join(reference.split())) is not None


def _address(reference: str) -> str:
    """An http(s) address, fit to be sent as it is."""
    try:
        parts = urlsplit(reference)
        host = parts.hostname if parts.port != 0 else None
    except ValueError:  # also of a port that is no number
        host = None
    if not host or len(reference) > _MAX_URL or not reference.isprintable() or " " in reference:
        raise _Wrong("is no address that can be fetched", "https://HOST/PATH, without spaces")
    return reference


def _inline_bytes(reference: str) -> bytes:
    """The bytes of an image that stands in the row itself."""
    scheme, text = _SCHEME.match(reference), reference
    if scheme is not None:
        if scheme[0].lower() != "data:":
            raise _Wrong(f"has the scheme {scheme[0]}", "give a path, an http(s) address, or base64")
        head, comma, text = reference.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            raise _Wrong("is not base64", "data:image/png;base64,...")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise _Wrong("is not valid base64", "data:image/png;base64,... or a path") from None


def _file_bytes(reference: str, folder: Path) -> bytes:
    remedy = "" if Path(reference).is_absolute() else f"relative paths start in {folder.absolute()}"
    try:
        path = folder / reference
        found = path.stat()  # opening what is no plain file might wait for ever
        if not stat.S_ISREG(found.st_mode):
            raise _Wrong("is no file")
        _require_size(found.st_size)
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise _Wrong("is not there: no such file", remedy) from None
    except _Wrong:
        raise
    except (OSError, ValueError) as error:
        if reference.startswith(_BASE64_BEGINS):
            raise _Wrong("is neither a file nor valid base64") from None
        reason = error.strerror if isinstance(error, OSError) else "no file can have this name"
        raise _Wrong(f"can't be read: {reason}", remedy) from None
    return data


def _require_size(size: int) -> None:
    if size > MAX_BYTES:
        raise _Wrong(f"has {size:,} bytes, more than {MAX_BYTES:,}", "scale it down")


def _kind(data: bytes) -> tuple[str, _Size]:
    """Media type, and width and height in pixels, from the first bytes; the name says nothing.

    Raises:
        _Wrong: too many bytes, none of the four kinds, or a header that is cut off.
    """
    _require_size(len(data))
    for media_type, begins, size_of in _KINDS:
        if begins(data):
            try:
                return media_type, size_of(data)
            except (IndexError, ValueError):
                raise _Wrong(f"is a broken {media_type}") from None
    raise _Wrong("is no PNG, JPEG, GIF or WebP image", "convert it; its bytes count, not its name")


def _number(data: bytes, at: int, size: int, order: Any) -> int:
    if len(data) < at + size:
        raise IndexError
    return int.from_bytes(data[at : at + size], order)


def _png(data: bytes) -> _Size:
    if data[12:16] != b"IHDR":
        raise ValueError
    return _number(data, 16, 4, "big"), _number(data, 20, 4, "big")


def _gif(data: bytes) -> _Size:
    return _number(data, 6, 2, "little"), _number(data, 8, 2, "little")


def _jpeg(data: bytes) -> _Size:
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError
        while data[at] == 0xFF:  # any number of these may fill up
            at += 1
        marker = data[at]
        if marker in _SOF:
            return _number(data, at + 6, 2, "big"), _number(data, at + 4, 2, "big")
        length = _number(data, at + 1, 2, "big")
        if marker in (0xD9, 0xDA) or length < 2:
            raise ValueError
        at += 1 + length


def _webp(data: bytes) -> _Size:
    kind = data[12:16]
    if kind == b"VP8X":
        return _number(data, 24, 3, "little") + 1, _number(data, 27, 3, "little") + 1
    if kind == b"VP8L" and data[20] == 0x2F:
        bits = _number(data, 21, 4, "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return _number(data, 26, 2, "little") & 0x3FFF, _number(data, 28, 2, "little") & 0x3FFF
    raise ValueError


_KINDS: tuple[tuple[str, Callable[[bytes], bool], Callable[[bytes], _Size]], ...] = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n"), _png),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff"), _jpeg),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a")), _gif),
    ("image/webp", lambda data: data.startswith(b"RIFF") and data[8:12] == b"WEBP", _webp),
)


def _told(reference: str) -> str:
    reference = _LOGIN.sub(rf"\1{_HIDDEN}@", reference)
    return repr(reference if len(reference) <= _SHOWN else f"{reference[: _SHOWN - 3]}...")
