"""Which output form an endpoint really offers: tried on the first real request, proved by its reply, remembered."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

import platformdirs

from evenhand._canon import digest
from evenhand.backend import Backend
from evenhand.errors import AccessError, FinalBackendError, RetryableBackendError, UnsupportedFeatureError
from evenhand.rubric.model import Form, Rubric
from evenhand.verdict import Reply

Send = Callable[[Form], Awaitable[Reply]]


class FormChoice:
    """The output form in use for one backend and rubric.

    Args:
        backend: Where requests go.
        rubric: Names the forms it accepts, best first.
        known: The form a stored run already uses, if any.
    """

    def __init__(self, backend: Backend, rubric: Rubric, *, known: Form | None = None) -> None:
        self._candidates = [form for form in rubric.output.forms if form in backend.forms]
        if not self._candidates:
            raise FinalBackendError(
                f"judge {backend.name}:{backend.model} offers none of the rubric's output forms",
                hint=f"rubric {rubric.name} accepts {', '.join(rubric.output.forms)}",
            )
        self._function = rubric.output.function
        self._names = {field.name for field in rubric.output.fields}
        self._memory = digest([dict(backend.identity), list(self._candidates)])
        self._lock = asyncio.Lock()
        self._refused: set[Form] = set()
        self._no_access: AccessError | None = None
        self._unwell = False
        remembered = known or _recall().get(self._memory)
        self.form: Form | None = remembered if remembered in self._candidates else None
        if backend.deterministic:
            self.form = self._candidates[0]

    @property
    def first(self) -> Form:
        """The form in use, or the one that would be tried first."""
        return self.form or self._candidates[0]

    async def send(self, send: Send) -> tuple[Form, Reply]:
        """Send in the chosen form; the first calls find out which one that is, one at a time.

        What the first call learns of an endpoint that fails altogether holds for those that wait: without access all
        end at once, and where requests fail that may succeed later, each tries for itself at the same time.

        Raises:
            AccessError: the endpoint refuses every form, or us.
        """
        while (form := self._chosen()) is not None:
            try:
                return form, await send(form)
            except UnsupportedFeatureError:
                self._refuse(form)
        if self._unwell:
            return await self._try_all(send)
        async with self._lock:
            if self._no_access is not None:
                raise self._no_access
            if self._chosen() is None and not self._unwell:
                return await self._find_out(send)
        return await self.send(send)

    def _chosen(self) -> Form | None:
        return self.form  # other workers may set it at any await

    async def _find_out(self, send: Send) -> tuple[Form, Reply]:
        try:
            return await self._try_all(send)
        except AccessError as error:
            self._no_access = error
            raise
        except RetryableBackendError:
            self._unwell = True
            raise

    async def _try_all(self, send: Send) -> tuple[Form, Reply]:
        last: tuple[Form, Reply] | None = None
        refusal: UnsupportedFeatureError | None = None
        for form in self._remaining():
            try:
                reply = await send(form)
            except UnsupportedFeatureError as error:
                refusal = error
                self._refused.add(form)
                continue
            last = form, reply
            if proves(form, reply, function=self._function, names=self._names):
                self.form = form
                _remember(self._memory, form)
                return last
            if reply.refusal:
                return last  # says nothing about the form; the next trial will tell
        if last is None:
            raise AccessError("the endpoint refuses every output form the rubric accepts") from refusal
        return last

    def _remaining(self) -> Sequence[Form]:
        return [form for form in self._candidates if form not in self._refused]

    def _refuse(self, form: Form) -> None:
        self._refused.add(form)
        if self.form == form:
            self.form = None
            _remember(self._memory, None)


def proves(form: Form, reply: Reply, *, function: str, names: set[str]) -> bool:
    """Whether a reply shows that the endpoint honoured the form it was asked for."""
    if form == "tool":
        return any(call.name == function for call in reply.tool_calls)
    if form in ("schema", "json"):
        try:
            value = json.loads(reply.text or "")
        except ValueError:
            return False
        return isinstance(value, dict) and bool(names & set(value))
    return bool(reply.text)


def _file() -> Path:
    folder = os.environ.get("EVENHAND_STATE") or platformdirs.user_state_dir("evenhand")
    return Path(folder) / "forms.json"


def _recall() -> Mapping[str, Form]:
    try:
        return dict(json.loads(_file().read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # a convenience only: what is forgotten is found out again


def _remember(key: str, form: Form | None) -> None:
    known = dict(_recall())
    if form is None:
        known.pop(key, None)
    else:
        known[key] = form
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        temporary = _file().with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(known), encoding="utf-8")
        temporary.replace(_file())
    except OSError:
        return
