"""Values of item fields: text, truth values, numbers, turns and images, read from plain data or from text.

The same value written in JSON, CSV or a data frame reads the same.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.rubric.model import ItemSpec

#: Fields that may be given as a whole conversation, whose last message is the text.
PROMPT_FIELDS = ("question", "prompt", "input")
#: An address with a name or password before its host.
_LOGIN = re.compile(r"\s*[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*@")
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier turn of a conversation."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True)
class Image:
    """An image that a judge is shown, by reference: its bytes are not held.

    Attributes:
        reference: As given: a path, an http(s) address, or base64 with or without ``data:`` before it.
        sha256: Of its bytes; "" for an address, whose bytes only the judge's server fetches.
        media_type: As in "image/png", by its bytes; "" for an address.
        bytes: Their number; 0 for an address.
        width, height: In pixels; 0 for an address.
        inline: Whether the reference is the image itself, in base64.
    """

    reference: str
    sha256: str = ""
    media_type: str = ""
    bytes: int = 0
    width: int = 0
    height: int = 0
    inline: bool = False

    @property
    def name(self) -> str:
        """Its path or address; what to call it where it has none."""
        return f"inline {self.media_type.removeprefix('image/')}" if self.inline else self.reference

    @property
    def identity(self) -> dict[str, str]:
        """What makes it the same image: its bytes, or else its address."""
        return {"sha256": self.sha256} if self.sha256 else {"url": self.reference}

    def __repr__(self) -> str:
        return f"{self.sha256[:8]} {self.name}".lstrip()

    def __str__(self) -> str:
        return self.name


class Mistake(ValueError):
    """A value that is not of its field's type; the message follows the field's name."""


class Bytes(str):
    """A note that stands for bytes of a table, which are no text; a column that nothing is read from may hold it."""

    __slots__ = ()


def refuse_bytes(value: Any) -> None:
    """Refuse bytes, also within lists and objects.

    Raises:
        Mistake: there are some; they are not decoded, since nothing tells that they are text, and in which encoding.
    """
    if isinstance(value, Bytes):
        raise Mistake(f"holds bytes ({value}), not text; store the column as text, as with decode('utf-8')")
    if isinstance(value, list | tuple):
        for element in value:
            refuse_bytes(element)
    elif isinstance(value, Mapping):
        for element in value.values():
            refuse_bytes(element)


def unfold(values: dict[str, Any], spec: ItemSpec) -> None:
    """Split a conversation that stands for a prompt into its last message and the turns before it.

    Args:
        values: Field -> value as given; changed in place.
        spec: What the rubric reads.
    """
    turns = next((f.name for f in spec.fields if f.type == "turns"), None)
    for name in (f.name for f in spec.fields if f.name in PROMPT_FIELDS and f.type == "text"):
        messages = values[name]
        if not _is_chat(messages) or len(messages) < 2 or messages[-1]["role"] != "user":
            continue  # not a conversation, or one that its field's reader will complain about
        with contextlib.suppress(Mistake):  # likewise
            pairs = _paired(messages[:-1]) if turns is not None and not values[turns] else None
            if turns is not None and pairs is not None:
                values[name], values[turns] = _content(messages[-1]), pairs
            else:
                values[name] = "\n".join(f"{message['role']}: {_content(message)}" for message in messages)


def read_json(text: str) -> Any:
    """Strict JSON: no NaN or Infinity, no key twice in one object.

    Raises:
        ValueError: not that; the message says what is wrong, and where.
    """
    try:
        return _JSON.decode(text)
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise ValueError(f"not JSON: {error.msg.removesuffix(' at')} at {line}column {error.colno}") from None
    except RecursionError:
        raise ValueError("JSON nested too deeply") from None


def read_id(value: Any) -> str | None:
    """A row's own id, None when it has none; a number is its text."""
    refuse_bytes(value)
    if isinstance(value, list | tuple):
        raise Mistake(f"is {_kind(value)} where an id is due")
    text = _text(value)
    if text is not None and not text.strip():
        raise Mistake("is blank")
    return text


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _number(value)
        whole = isinstance(number, float) and number.is_integer() and abs(number) < 2**53
        return json.dumps(int(value) if whole else number)
    if not _is_chat(value):
        raise Mistake(f"is {_kind(value)} where text is due")
    texts = [_content(message) for message in value]
    if len(texts) > 1:
        raise Mistake(
            f"is a conversation of {len(texts)} messages where one text is due"
            f" ({', '.join(PROMPT_FIELDS)} may be one that ends with the user's message)"
        )
    return texts[0]


def _bool(value: Any) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    text = _text(value) if isinstance(value, int | float) else value
    word = text.strip().lower() if isinstance(text, str) else None
    if word == "":
        return None
    if word not in _TRUTH:
        raise Mistake(f"is {value!r:.40} where true or false is due")
    return _TRUTH[word]


def _number(value: Any) -> int | float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    number = _number_in(value) if isinstance(value, str) else value
    finite = isinstance(number, int) or (isinstance(number, float) and math.isfinite(number))
    if isinstance(number, bool) or not finite:
        raise Mistake(f"is {value!r:.40} where a finite number is due")
    return number


def _number_in(text: str) -> int | float | None:
    if "_" in text:  # Python's own digit separator
        return None
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return None


def _images(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = _json(value) if value.lstrip().startswith("[") else [value] if value.strip() else []
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v.strip() for v in value):
        raise Mistake("is not a list of images (paths or addresses)")
    if any(map(_LOGIN.match, value)):  # not shown: it would be stored and printed with the run
        raise Mistake("has an address with a user name or password; give one without, or the path of a copy")
    return tuple(value)


def _turns(value: Any) -> tuple[Turn, ...]:
    if isinstance(value, str):
        value = _json(value) if value.strip() else []
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise Mistake(f"is {_kind(value)} where a list of turns is due")
    if _is_chat(value):
        turns = _paired(value)
        if turns is None:
            raise Mistake("must be messages of user and assistant in turn, ending with the assistant's")
        return turns
    return tuple(_turn(turn) for turn in value)


def _turn(value: Any) -> Turn:
    if isinstance(value, Turn):
        return value
    pair = [value.get("user"), value.get("assistant")] if isinstance(value, Mapping) else value
    if not isinstance(pair, list | tuple) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
        raise Mistake("has a turn that is not {user: text, assistant: text} or [user, assistant]")
    return Turn(*pair)


def _json(text: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise Mistake(f"is {error}") from None


def _is_chat(value: Any) -> bool:
    """Whether it is a list of chat messages."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(m, Mapping) and isinstance(m.get("role"), str) and "content" in m for m in value)


def _content(message: Mapping[str, Any]) -> str:
    content = message["content"]
    parts = [content] if isinstance(content, str) else content if isinstance(content, list | tuple) else [None]
    found = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    texts = [text for text in found if isinstance(text, str) and not isinstance(text, Bytes)]
    if len(texts) < len(found):
        raise Mistake("has a message whose content is neither text nor text parts")
    return "\n".join(texts)


def _paired(messages: Sequence[Mapping[str, Any]]) -> tuple[Turn, ...] | None:
    """Messages as turns; None when user and assistant don't take turns."""
    if [message["role"] for message in messages] != ["user", "assistant"] * (len(messages) // 2):
        return None
    texts = [_content(message) for message in messages]
    return tuple(Turn(*pair) for pair in zip(texts[::2], texts[1::2], strict=True))


def _kind(value: Any) -> str:
    kinds = {str: "text", bool: "a truth value", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), f"a {type(value).__name__}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)!r} stands twice in one object")
    return made


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no finite number")
    return value


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("a number of too many digits") from None


_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite, parse_int=_whole)


#: Item type -> its reader; a reader raises `Mistake`.
READERS: Mapping[str, Callable[[Any], Any]] = {
    "text": _text,
    "bool": _bool,
    "number": _number,
    "turns": _turns,
    "images": _images,
}
