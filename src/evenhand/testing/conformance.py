"""What every backend must do, as checks that authors of backends can run under any test runner.

    asyncio.run(check_backend(lambda: open_backend(BackendSettings(model="m"))))

A check raises `ConformanceError`, an AssertionError, with what is wrong.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any, get_args

from msgspec.structs import replace

from evenhand._canon import canonical
from evenhand.backend import Backend, Request
from evenhand.errors import BackendError, UnsupportedFeatureError
from evenhand.rubric.model import Form, OutputField
from evenhand.scale import Scale
from evenhand.verdict import Reply, ToolCall, reply_from_plain, reply_to_plain

_IN_FLIGHT = 12
_SCALE = Scale("score", "ordinal", low=0, high=10)


class ConformanceError(AssertionError):
    """A backend does something a backend must not do."""


def sample_requests(form: Form = "schema", n: int = 1, **changes: Any) -> list[Request]:
    """Requests for a reason and a score from 0 to 10, with item ids "item-0", "item-1", ..."""
    fields = (OutputField("reason", "text"), OutputField("score", "scale", scale=_SCALE, criterion="score"))
    schema = {
        "type": "object",
        "properties": {"reason": {"type": "string"}, "score": _SCALE.json_schema()},
        "required": ["reason", "score"],
        "additionalProperties": False,
    }
    asked = 'Rate the answer from 0 to 10. Reply with a JSON object {"reason": ..., "score": ...}.'
    return [
        replace(
            Request(
                messages=({"role": "system", "content": asked}, {"role": "user", "content": f"Answer {i}."}),
                form=form,
                schema=schema if form in ("schema", "tool") else None,
                function="submit_verdict" if form == "tool" else None,
                fields=fields,
                settings={"temperature": 0.0, "max_tokens": 200},
                static_messages=1,
                item_id=f"item-{i}",
            ),
            **changes,
        )
        for i in range(n)
    ]


async def check_backend(make: Callable[[], Backend], *, requests: Iterable[Request] | None = None) -> None:
    """All checks of a backend that works.

    Args:
        make: Opens a fresh backend; called several times, inside the running loop.
        requests: At least two different requests it can answer; by default `sample_requests` in its best form.

    Raises:
        ConformanceError: what is wrong.
    """
    await check_attributes(make)
    await check_forms(make, requests)
    await check_replies(make, requests)
    await check_cancelling(make, requests)
    await check_closing(make, requests)


async def check_attributes(make: Callable[[], Backend]) -> None:
    """Name, identity, forms and limits are what the protocol says."""
    backend, twin = make(), make()
    try:
        _require(bool(backend.name) and isinstance(backend.model, str), "name and model are text")
        _plain_data(dict(backend.identity), "identity")
        _require(backend.identity == twin.identity, "two backends of the same settings have the same identity")
        legal = set(get_args(Form))
        _require(bool(backend.forms) and set(backend.forms) <= legal, f"forms are some of {sorted(legal)}")
        _require(isinstance(backend.deterministic, bool), "deterministic is true or false")
        _require(isinstance(backend.takes_images, bool), "takes_images is true or false")
        limit = backend.max_concurrency
        _require(limit is None or (isinstance(limit, int) and limit >= 1), "max_concurrency is None or at least 1")
    finally:
        await backend.aclose()
        await twin.aclose()


async def check_forms(make: Callable[[], Backend], requests: Iterable[Request] | None = None) -> None:
    """Every form it claims is answered, or refused as an unsupported feature; a request stays as it was."""
    backend = make()
    try:
        for request in [r for form in backend.forms for r in sample_requests(form)] if requests is None else requests:
            before = request.digest
            try:
                _check_reply(await backend.send(request))
            except UnsupportedFeatureError as error:
                _require(error.feature == request.form, "an unsupported feature error names the form")
            _require(request.digest == before, "sending changes nothing in the request")
    finally:
        await backend.aclose()


async def check_replies(make: Callable[[], Backend], requests: Iterable[Request] | None = None) -> None:
    """Requests in flight together get the replies they get alone; deterministic ones the very same."""
    backend = make()
    try:
        asked = _asked(backend, requests)
        alone = [await backend.send(request) for request in asked]
        together = await asyncio.gather(*(backend.send(asked[i % len(asked)]) for i in range(_IN_FLIGHT)))
        for i, reply in enumerate(together):
            _check_reply(reply)
            if backend.deterministic:
                _require(_said(reply) == _said(alone[i % len(asked)]), "a deterministic backend repeats its replies")
                _require(not reply.usage.cost_usd, "a deterministic backend costs nothing")
    finally:
        await backend.aclose()


async def check_cancelling(make: Callable[[], Backend], requests: Iterable[Request] | None = None) -> None:
    """A send that is cancelled leaves the backend usable."""
    backend = make()
    try:
        request = _asked(backend, requests)[0]
        task = asyncio.ensure_future(backend.send(request))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        _check_reply(await backend.send(request))
    finally:
        await backend.aclose()


async def check_closing(make: Callable[[], Backend], requests: Iterable[Request] | None = None) -> None:
    """aclose may be called twice, and before anything was sent."""
    unused, used = make(), make()
    await unused.aclose()
    await used.send(_asked(used, requests)[0])
    for backend in (unused, used):
        await backend.aclose()
        await backend.aclose()


async def check_failing(make: Callable[[], Backend], *, requests: Iterable[Request] | None = None) -> BackendError:
    """A backend whose sends fail raises a BackendError and nothing else; returns the error.

    Raises:
        ConformanceError: it replied, or raised something else.
    """
    backend = make()
    try:
        await backend.send(_asked(backend, requests)[0])
    except BackendError as error:
        _require(bool(error.message), "an error says what happened")
        return error
    except Exception as error:
        raise ConformanceError(f"send raised {type(error).__name__}, which is no BackendError") from error
    finally:
        await backend.aclose()
    raise ConformanceError("send was to fail and returned a reply")


def _asked(backend: Backend, requests: Iterable[Request] | None) -> list[Request]:
    return sample_requests(backend.forms[0], 3) if requests is None else list(requests)


def _check_reply(reply: Any) -> None:
    _require(isinstance(reply, Reply), f"send returns a Reply, not {type(reply).__name__}")
    for name in ("text", "refusal", "reasoning", "finish", "model"):
        value = getattr(reply, name)
        _require(value is None or isinstance(value, str), f"reply.{name} is text or None")
    _require(isinstance(reply.tool_calls, tuple), "reply.tool_calls is a tuple")
    for call in reply.tool_calls:
        _require(isinstance(call, ToolCall) and isinstance(call.name, str), "a tool call has a name")
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens"):
        count = getattr(reply.usage, name)
        _require(count is None or (type(count) is int and count >= 0), f"usage.{name} is None or a whole number from 0")
    for name in ("cost_usd", "latency_s"):
        amount = getattr(reply.usage, name)
        _require(amount is None or amount >= 0, f"usage.{name} is None or at least 0")
    for name, spread in reply.distributions.items():
        total = sum(spread.probabilities.values())
        _require(abs(total - 1) < 1e-6 and 0 <= spread.missing_mass <= 1, f"the distribution of {name} sums to 1")
    kept = json.loads(json.dumps(reply_to_plain(reply)))
    _require(_said(reply_from_plain(kept)) == _said(reply), "a reply survives being stored as JSON")


def _said(reply: Reply) -> Any:
    calls = [(c.name, c.arguments if isinstance(c.arguments, str) else dict(c.arguments)) for c in reply.tool_calls]
    return reply.text, calls, reply.refusal, reply.finish, dict(reply.distributions)


def _plain_data(value: Any, what: str) -> None:
    try:
        canonical(value)
    except TypeError as error:
        raise ConformanceError(f"{what} is plain JSON data: {error}") from error


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ConformanceError(f"broken: {rule}")
