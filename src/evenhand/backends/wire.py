"""How one kind of server is spoken to: addresses, bodies, replies; everything else is shared by all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.endpoint import Endpoint, Place, find_endpoint
from evenhand.backends.http_errors import Fault
from evenhand.rubric.model import Form
from evenhand.verdict import Reply

#: Key of ``learned`` for an endpoint that takes no system message.
SYSTEM_ROLE = "system role"


class Wire:
    """The base of all; what differs is overridden.

    Attributes:
        name: Name of the backend, as in "openai".
        place: Where its servers are, and how a key is sent.
        forms: Output forms it can ask for, best first.
        takes_images: Whether it sends images.
    """

    name: str
    place: Place
    forms: tuple[Form, ...] = ("schema", "tool", "json", "text", "lines")
    takes_images = True

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
        """The headers of a request; where it must be signed, made anew for each."""
        return endpoint.headers

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

    def learn(self, refused: str, request: Request, learned: dict[str, str | None]) -> None:
        """Note that the endpoint refuses a parameter: it is left out from then on.

        Concurrent requests may learn the same thing; that changes nothing.
        """
        if refused in request.settings:
            learned[refused] = None

    def reply(self, data: Any, request: Request, latency_s: float) -> Reply:
        """The reply in a decoded body.

        Raises:
            RetryableBackendError: it is none.
        """
        raise NotImplementedError

    def failed(self, data: Any) -> tuple[int, Fault] | None:
        """A failure that was sent with a status of success, if the decoded body is one."""
        return None
