"""How one kind of server is spoken to: addresses, bodies, replies; everything else is shared by all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evenhand.backend import BackendSettings, Request
from evenhand.backends.endpoint import Endpoint, Place, find_endpoint
from evenhand.backends.http_errors import Fault, fault_of
from evenhand.errors import InputError
from evenhand.rubric.model import Form
from evenhand.verdict import Reply

if TYPE_CHECKING:
    from evenhand.backends.batch_wire import BatchWire
    from evenhand.backends.http import HttpBackend

#: Key of ``learned`` for an endpoint that takes no system message.
SYSTEM_ROLE = "system role"


class Wire:
    """The base of all; what differs is overridden.

    Attributes:
        name: Name of the backend, as in "openai".
        place: Where its servers are, and how a key is sent.
        forms: Output forms it can ask for, best first.
        takes_images: Whether it sends images.
        settings: Sampling setting -> its name there. None takes any, under its own name.
        holds: Key of a reply that every answer has, and no failure.
        signs: Headers are made anew for each request, which may take its time.
    """

    name: str
    place: Place
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text", "lines")
    takes_images = True
    settings: Mapping[str, str] | None = None
    holds: str
    signs = False

    def endpoint(self, settings: BackendSettings) -> Endpoint:
        """Where requests go.

        Raises:
            InputError: no usable address, or no key for a server beyond this machine.
        """
        return find_endpoint(settings.base_url, settings.headers, self.place)

    def url(self, endpoint: Endpoint, model: str) -> str:
        """The address of a request."""
        raise NotImplementedError

    def headers(self, endpoint: Endpoint, url: str, body: bytes) -> Mapping[str, str]:
        """The headers of a request; where it must be signed, made anew for each.

        Raises:
            AccessError: what signs it can't be had any more.
        """
        return endpoint.headers

    def secrets(self, endpoint: Endpoint) -> tuple[str, ...]:
        """What may stand in no message, log or stored reply; it may change with `headers`."""
        return endpoint.secrets

    def body(self, request: Request, model: str, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """The body of a request.

        Args:
            request: The request.
            model: Model to ask for.
            learned: Parameter -> the name this endpoint wants instead, or None where it takes no such parameter.

        Raises:
            FinalBackendError: an image is gone, or changed since the item was read.
        """
        raise NotImplementedError

    def parameters(self, body: Mapping[str, Any]) -> list[str]:
        """Names in a body that an endpoint may refuse."""
        return [name for name in body if name not in ("model", "messages")]

    def sampling(self, request: Request, learned: Mapping[str, str | None]) -> dict[str, Any]:
        """The sampling settings of a request, under the names they have there."""
        own = self.settings or {}
        named = ((learned.get(name, own.get(name, name)), value) for name, value in request.settings.items())
        return {sent: value for sent, value in named if sent is not None and value is not None}

    def learn(self, refused: str, request: Request, learned: dict[str, str | None]) -> None:
        """Note that the endpoint refuses a parameter: it is left out from then on.

        Concurrent requests may learn the same thing; that changes nothing.
        """
        for name in request.settings:
            if learned.get(name, self._named(name)) == refused:
                learned[name] = self.instead(refused)

    def instead(self, refused: str) -> str | None:
        """The parameter that may do in the place of one that is refused."""
        return None

    def lessen(self, fault: Fault, sent: Mapping[str, Any], learned: dict[str, str | None]) -> str | None:
        """Note that the endpoint takes less of a parameter than was sent; what it refuses, if it says so."""
        return None

    def batches(self, backend: HttpBackend) -> BatchWire | None:
        """How the provider takes many requests at once; None where it does not."""
        return None

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """The reply in a decoded body.

        Raises:
            RetryableBackendError: it is none.
        """
        raise NotImplementedError

    def failed(self, data: Any) -> tuple[int, Fault] | None:
        """A failure that was sent with a status of success, if the decoded body is one.

        Some gateways do so, with the real status as the error's code.
        """
        if not isinstance(data, dict) or not data.get("error") or data.get(self.holds):
            return None
        said = data["error"]
        code = said.get("code") if isinstance(said, Mapping) else None
        return code if isinstance(code, int) and 400 <= code < 600 else 502, fault_of(data)

    def _named(self, name: str) -> str:
        return (self.settings or {}).get(name, name)


def in_path(model: str, *, safe: str = "") -> str:
    """A model's name as it is written in the path of an address; ``safe`` are signs that stay.

    Raises:
        InputError: it would lead to another address.
    """
    if {"", ".", ".."} & {*model.split("/")}:
        raise InputError(f"{model!r} is no name of a model", hint="a name has no empty part, and none of dots only")
    return quote(model, safe=safe)
