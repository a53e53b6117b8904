"""The one seam to every judge: a backend sends a request and returns a reply."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct
from msgspec import field as of

from evenhand._canon import canonical, running_digest
from evenhand._kept import kept
from evenhand.item_values import Image
from evenhand.rubric.model import Form, OutputField
from evenhand.verdict import Reply

if TYPE_CHECKING:
    from hashlib import blake2b


class Deadline:
    """How long one trial may take; what passes it is cancelled.

    Args:
        timer: An `asyncio.timeout` that was entered.
    """

    def __init__(self, timer: asyncio.Timeout) -> None:
        self._timer = timer

    @property
    def left_s(self) -> float:
        """Seconds left."""
        when = self._timer.when()
        return math.inf if when is None else when - asyncio.get_running_loop().time()

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """Time that does not count."""
        left = self.left_s
        self._timer.reschedule(None)
        try:
            yield
        finally:
            self._timer.reschedule(None if left == math.inf else asyncio.get_running_loop().time() + left)

    def spend(self, seconds: float) -> None:
        """Seconds that count after all."""
        when = self._timer.when()
        if when is not None and not self._timer.expired():
            self._timer.reschedule(when - seconds)


class Request(Struct, frozen=True):
    """Everything that can change a reply.

    Attributes:
        messages: Chat messages, each {"role": ..., "content": text or list of parts}. A part is a text {"type": "text",
            "text": ...}, an address {"type": "image_url", "image_url": {"url": ...}}, or an image of `images`
            {"type": "image", "name", "media_type", "bytes", "sha256"}.
        form: Output form to ask for.
        schema: JSON schema of the reply (forms schema and tool).
        function: Function name (form tool).
        fields: The fields asked for, for backends that score them by token probabilities.
        settings: Sampling settings that were set: temperature, max_tokens, seed, top_p, ...
        judge: Identity of the judge: backend, model, endpoint, and the weights' sha256 for local models.
        repeat: Which repeat this is; repeats are different requests.
        static_messages: How many leading messages are the same for every item of the run (a shared prefix).
        item_id, order, attempt: Which trial this is; outside the digest; for recordings and logs.
        images: sha256 -> image of the messages' image parts, to be read with `evenhand.images.data_url` when it is
            sent; outside the digest, where the parts tell the content (and their names don't count).
        deadline: How long its trial may still take, None for no limit; outside the digest.
    """

    messages: tuple[Mapping[str, Any], ...]
    form: Form
    schema: Mapping[str, Any] | None = None
    function: str | None = None
    fields: tuple[OutputField, ...] = ()
    settings: Mapping[str, Any] = of(default_factory=dict)
    judge: Mapping[str, Any] = of(default_factory=dict)
    repeat: int = 0
    static_messages: int = 0
    item_id: str = ""
    order: str = ""
    attempt: int = 0
    images: Mapping[str, Image] = of(default_factory=dict)
    deadline: Deadline | None = None

    @property
    def digest(self) -> str:
        """Identity by content: the same digest means the same question."""
        hashed = self._head()
        own = b",".join(map(_message, self.messages[self.static_messages :]))
        own = b"," + own if own and self.static_messages else own
        hashed.update(_TAIL % (own, _short(self.repeat), _written(self.schema), _written(self.settings)))
        return hashed.hexdigest()

    def _head(self) -> blake2b:
        """The canonical form up to the messages that differ from item to item, hashed once for all that begin alike."""
        static = self.messages[: self.static_messages]
        heads = _heads(static[0]) if static else {}
        begin = (self.form, self.function, _written(self.judge))
        known = heads.get(begin)
        if known is None or known[0] != static:
            data = _HEAD % (*map(_short, begin[:2]), begin[2], b",".join(map(_message, static)))
            known = heads[begin] = (static, running_digest(data))
        return known[1].copy()


def _no_heads(_: Mapping[str, Any]) -> dict[Any, tuple[tuple[Mapping[str, Any], ...], blake2b]]:
    return {}


_heads = kept(_no_heads)
_written, _short = kept(canonical), functools.lru_cache(typed=True)(canonical)
#: In canonical form: by name.
_HEAD = b'{"form":%s,"function":%s,"judge":%s,"messages":[%s'
_TAIL = b'%s],"repeat":%s,"schema":%s,"settings":%s}'
_MESSAGE = b'{"content":%s,"role":%s}'


def _message(message: Mapping[str, Any]) -> bytes:
    """A message in canonical form; its images are told by their content only."""
    content = message["content"]
    if not isinstance(content, list):
        return canonical(message) if len(message) > 2 else _MESSAGE % (canonical(content), canonical(message["role"]))
    parts = [
        {key: value for key, value in part.items() if key != "name"} if part["type"] == "image" else part
        for part in content
    ]
    return canonical({**message, "content": parts})


class Backend(Protocol):
    """Sends requests to one model of one endpoint.

    A backend raises `BackendError` subclasses and nothing else: `RetryableBackendError` where the same request may
    succeed later, `UnsupportedFeatureError` when the endpoint refuses the output form, `AccessError` when every
    further request would fail too. It tries once: retries, turns and money are wrapped around it.
    """

    #: Name as in "openai".
    name: str
    #: Model asked for.
    model: str
    #: What identifies this judge in a request digest: backend, model, endpoint, weights' sha256 (local).
    identity: Mapping[str, Any]
    #: Output forms it can try at all, best first.
    forms: tuple[Form, ...]
    #: The same request always gets the same reply, and costs nothing.
    deterministic: bool
    #: Most requests it can usefully have in flight; None for no limit of its own.
    max_concurrency: int | None
    #: Whether it sends the images of a request; one that does not is never sent any.
    takes_images: bool

    async def send(self, request: Request) -> Reply:
        """Send one request and wait for its reply."""
        ...

    async def aclose(self) -> None:
        """Release connections and memory; no send may follow."""
        ...


@dataclass(frozen=True, slots=True)
class BackendSettings:
    """How to open a backend.

    Attributes:
        model: Model name after the colon of a judge spec; "" when absent.
        base_url: Endpoint, None for the backend's default.
        headers: Extra HTTP headers; values are secrets and are never stored.
        sampling: Sampling settings that every request will carry; a backend that can't honour one says so with an
            `InputError` when it is opened.
        timeout_s: Seconds allowed for one try.
        concurrency: Requests that may be in flight at once.
        bounded: A reply must have no more than max_tokens: an endpoint that refuses the setting is of no use.
    """

    model: str = ""
    base_url: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    timeout_s: float = 60.0
    concurrency: int = 8
    bounded: bool = False
