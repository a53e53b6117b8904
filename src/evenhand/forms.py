"""Which output form an endpoint really offers: tried on the first real requests, proved by a reply, remembered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from evenhand._canon import digest
from evenhand.backend import Backend
from evenhand.backends.memory import Memory
from evenhand.errors import AccessError, FinalBackendError, RetryableBackendError, UnsupportedFeatureError
from evenhand.parse import read
from evenhand.rubric.model import Form, OutputField, Rubric
from evenhand.rubric.schema import reply_schema
from evenhand.verdict import Failure, Reply

Send = Callable[[Form], Awaitable[Reply]]
Fields = tuple[OutputField, ...]

#: Replies that say nothing of their form (refusals), one after another, until nobody waits for a better one.
_MOST_SILENT = 3
_SILENT = (Failure.REFUSAL, Failure.TRUNCATED)
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "number": (int, float),
    "integer": (int, float),
    "null": (type(None),),
}


class FormChoice:
    """The output form in use for one backend and rubric.

    One worker at a time finds it out, on a trial of its own, while the others wait. A form that was remembered, or that
    nobody could find out about yet, is used by all at once until a reply disproves it; the first that does, unless
    another reply has proved the form meanwhile, has it found out anew.

    Args:
        backend: Where requests go.
        rubric: Names the forms it accepts, best first.
        known: The form a stored run already uses, if any; it stays in use whatever the replies.

    Attributes:
        form: The form in use; None while it is not known.
        proved: The form in use where a reply of this run proved it or a stored run uses it already; else None.
    """

    def __init__(self, backend: Backend, rubric: Rubric, *, known: Form | None = None) -> None:
        self._candidates = [form for form in rubric.output.forms if form in backend.forms]
        if not self._candidates:
            raise FinalBackendError(
                f"judge {backend.name}:{backend.model} offers none of the rubric's output forms",
                hint=f"rubric {rubric.name} accepts {', '.join(rubric.output.forms)}",
            )
        self._rubric = rubric
        self._memory, self._key = Memory("forms.json"), digest([dict(backend.identity), list(self._candidates)])
        self._lock = asyncio.Lock()
        self._refused: set[Form] = set()
        self._no_access: AccessError | None = None
        self._silent = 0
        self._last_resort: Form | None = None
        if backend.deterministic:
            known = self._candidates[0]
        self.proved: Form | None = known if known in self._candidates else None
        remembered = self._memory.recall(self._key)
        self._remembered = remembered if remembered in self._candidates else None
        self.form: Form | None = self.proved or self._remembered

    @property
    def first(self) -> Form:
        """The form in use, or the one that would be tried first."""
        return self.form or self._candidates[0]

    @property
    def probes(self) -> int:
        """How many more calls it may take, on the trial that finds out the form; 0 where it is known."""
        return 0 if self.proved is not None else len(self._candidates) - 1

    async def send(self, send: Send, fields: Fields) -> tuple[Form, Reply]:
        """Send a trial's request in the form in use, and in others as long as replies disprove what nothing proved.

        No form is sent twice. What one call learns of an endpoint that fails altogether holds for those that wait:
        without access all end at once, and where requests fail that may succeed later, all send at the same time.

        Args:
            send: Sends the request in a form.
            fields: The fields it asks for.

        Returns:
            The last form sent and its reply.

        Raises:
            AccessError: the endpoint refuses every form, or us.
        """
        sent: dict[Form, Reply] = {}
        while True:
            form = self._in_use()
            if form is not None:
                try:
                    sent[form] = await send(form)
                except UnsupportedFeatureError:
                    self._refuse(form)
                    continue
                if self._learn(form, sent[form], fields) is not False or self._settled():
                    return form, sent[form]
            async with self._lock:
                if self._no_access is not None:
                    raise self._no_access
                if self._in_use() == form and not self._settled():
                    return await self._find_out(send, fields, sent)
            if self._in_use() in sent:  # it was proved, or is all there is
                return list(sent.items())[-1]

    def _in_use(self) -> Form | None:
        return self.form  # other workers may set it at any await

    def _settled(self) -> bool:
        """Whether replies no longer change the form."""
        return self.proved is not None or self._last_resort is not None

    async def _find_out(self, send: Send, fields: Fields, sent: dict[Form, Reply]) -> tuple[Form, Reply]:
        """Try the forms this trial was not sent in yet, until one is proved or a reply says nothing of its form."""
        self.form = None
        self._keep(None)
        refusal: UnsupportedFeatureError | None = None
        for form in [form for form in self._remaining() if form not in sent]:
            try:
                sent[form] = await send(form)
            except UnsupportedFeatureError as error:
                refusal = error
                self._refused.add(form)
                continue
            except AccessError as error:
                self._no_access = error
                raise
            except (RetryableBackendError, asyncio.CancelledError):  # cancelled where its trial has taken too long
                self.form = self.form or form
                raise
            told = self._learn(form, sent[form], fields)
            if told is None:
                self._silent += 1
                if self._silent >= _MOST_SILENT:
                    self.form = self.form or form
            if told is not False or self._settled():
                return form, sent[form]
        if not sent:
            self._no_access = AccessError("the endpoint refuses every output form the rubric accepts")
            raise self._no_access from refusal
        self.form = self._last_resort = [*sent, *self._remaining()][-1]
        return list(sent.items())[-1]

    def _learn(self, form: Form, reply: Reply, fields: Fields) -> bool | None:
        """What a reply says of its form (None: nothing, or nothing more is to be learned)."""
        if self.proved is not None:
            return None
        told = proves(form, reply, fields, self._rubric)
        if told:
            self.proved = self.form = form
            if form != self._last_resort:  # better forms failed on a single trial: the next run tries them again
                self._keep(form)
        return told

    def _remaining(self) -> list[Form]:
        return [form for form in self._candidates if form not in self._refused]

    def _refuse(self, form: Form) -> None:
        self._refused.add(form)
        if self.form == form:
            self.form = self.proved = self._last_resort = None
            self._keep(None)

    def _keep(self, form: Form | None) -> None:
        if form != self._remembered:
            self._remembered = form
            self._memory.remember(self._key, form)


def proves(form: Form, reply: Reply, fields: Fields, rubric: Rubric) -> bool | None:
    """Whether a reply shows that the endpoint honours the form it was asked for.

    A schema is proved by JSON that satisfies it to the letter; a call of the function, or JSON alone, by one object
    with all required keys; text by being readable.

    Returns:
        None for a reply that says nothing either way: one that declines, or was cut off.
    """
    required = {field.name for field in fields if field.required or field.criterion == field.name}
    if form == "tool":
        calls = [call.arguments for call in reply.tool_calls if call.name == rubric.output.function]
        proved = any(_has_keys(_decoded(arguments), required) for arguments in calls)
    elif form == "schema":
        proved = _fits(_decoded(reply.text), reply_schema(rubric, fields))
    elif form == "json":
        proved = _has_keys(_decoded(reply.text), required)
    else:
        proved = False
    if proved:
        return True
    reading = read(reply, fields, function=rubric.output.function)
    if reading.failure in _SILENT or any(outcome.failure in _SILENT for outcome in reading.fields.values()):
        return None
    readable = reading.failure is None and all(reading.fields[name].failure is None for name in required)
    return form in ("text", "lines") and readable


def _decoded(said: str | Mapping[str, Any] | None) -> Any:
    if isinstance(said, Mapping):
        return dict(said)
    try:
        return json.loads(said or "")
    except (ValueError, RecursionError):
        return None


def _has_keys(value: Any, required: set[str]) -> bool:
    return isinstance(value, dict) and required <= set(value)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value satisfies a schema, as far as reply schemas use the language."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, kind) for kind in kinds):
        return False
    legal = schema.get("enum", [value])
    if not any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in legal):
        return False
    if isinstance(value, list):
        return all(_fits(element, schema["items"]) for element in value)
    if isinstance(value, dict):
        parts = schema["properties"]
        return value.keys() == parts.keys() and all(_fits(value[name], part) for name, part in parts.items())
    if value is not None and "minimum" in schema:
        return bool(schema["minimum"] <= value <= schema["maximum"])
    return True


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES[kind]) and not (kind == "integer" and isinstance(value, float) and value % 1 != 0)
