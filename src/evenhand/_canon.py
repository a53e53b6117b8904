"""Canonical bytes and digests: the only file that hashes.

Identity is content: two things with the same canonical bytes are the same thing. 1 and 1.0 are the
same number, key order does not matter, and a missing key differs from a null one.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any

#: Four of them in a row are in no word, and cost a language model few tokens.
_LETTERS = b"bcdfgjkmpqvwxz"
_LETTER_OF = bytes(_LETTERS[byte % len(_LETTERS)] for byte in range(256))
_CHUNK = 1 << 20
_ENCODER = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(value: Any) -> bytes:
    """Canonical JSON bytes of plain data (dict, list, tuple, str, int, float, bool, None).

    Raises:
        TypeError: something that is not plain data, or a float that is NaN or infinite.
    """
    text = encode_basestring(value) if type(value) is str else _ENCODER.encode(_plain(value))
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """32 hex digits that identify plain data by its content."""
    return running_digest(canonical(value)).hexdigest()


def running_digest(start: bytes) -> hashlib.blake2b:
    """The digest of canonical bytes that begin so, to be fed with the others (``.update(bytes)``, ``.hexdigest()``)."""
    return hashlib.blake2b(start, digest_size=16)


def keyed_mark(key: bytes, *parts: str) -> str:
    """4 consonants that only the holder of ``key`` can predict, the same for the same parts."""
    hashed = _keyed(key).copy()
    hashed.update(b"[%s]" % b",".join(map(canonical, parts)))
    return hashed.digest()[:4].translate(_LETTER_OF).decode()


@lru_cache(maxsize=8)
def _keyed(key: bytes) -> hmac.HMAC:
    return hmac.new(key, digestmod=hashlib.blake2b)


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes, read in pieces."""
    seen = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            seen.update(chunk)
    return seen.hexdigest()


def running_sha256(start: Iterable[bytes] = ()) -> hashlib._Hash:
    """A sha256 to be fed piece by piece (``.update(bytes)``, ``.hexdigest()``)."""
    seen = hashlib.sha256()
    for piece in start:
        seen.update(piece)
    return seen


def _plain(value: Any) -> Any:
    if type(value) is str or value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise TypeError(f"{value} has no canonical form")
        return int(value) if value.is_integer() and abs(value) < 2**53 else value
    if isinstance(value, Mapping):
        return {_key(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no canonical form")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"keys must be text, not {type(key).__name__}")
    return key
