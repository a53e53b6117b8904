"""The judge as data, and how one trial is asked: render, send, read, at most one re-ask, verdict."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from evenhand._kept import kept
from evenhand._words import counted
from evenhand.backend import Backend, BackendSettings, Deadline, Request
from evenhand.errors import AccessError, BackendError, InputError, RetryableBackendError, RunError
from evenhand.forms import FormChoice
from evenhand.images import located
from evenhand.item import Item
from evenhand.prompt import mark_for, re_ask, render
from evenhand.registry import load
from evenhand.rubric.model import Form, OutputField, Rubric
from evenhand.rubric.schema import reply_schema
from evenhand.rules import compile_rubric
from evenhand.settle import Question, better, complaints, question, re_asked, settle
from evenhand.trial import Trial, TrialKey
from evenhand.verdict import Reply, Status, Verdict, add_usage


@dataclass(frozen=True, slots=True)
class Judge:
    """A rater as data.

    Attributes:
        backend: Backend name, as in "openai".
        model: Model name; "" for the backend's default.
        settings: Sampling settings (temperature, max_tokens, seed, top_p).
    """

    backend: str
    model: str = ""
    settings: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0.0})

    @property
    def spec(self) -> str:
        """The judge as written on the command line."""
        return f"{self.backend}:{self.model}" if self.model else self.backend

    def open(self, settings: BackendSettings) -> Backend:
        """Open the backend; nothing is sent yet."""
        backend: Backend = load("backend", self.backend)(replace(settings, model=self.model, sampling=self.settings))
        return backend


def parse_judge(spec: str, settings: Mapping[str, Any] | None = None) -> Judge:
    """A judge from its spec, as in ``openai:gpt-x``, ``local``, ``replay:FILE``.

    Raises:
        InputError: no backend name before the colon.
    """
    backend, _, model = spec.partition(":")
    if not backend:
        raise InputError(f"judge {spec!r} names no backend", hint="as in openai:MODEL, local, replay:FILE or fake")
    return Judge(backend, model) if settings is None else Judge(backend, model, settings)


def hidden_images(rubric: Rubric, judge: Judge, backend: Backend, items: Iterable[Item]) -> int:
    """How many items have images that the judge is not shown, since the rubric hides them.

    Raises:
        InputError: the rubric shows them, and the judge reads text only.
    """
    names = [field.name for field in rubric.item.fields if field.type == "images"]
    count = sum(any(item.fields.get(name) for name in names) for item in items) if names else 0
    if count and rubric.images_shown and not backend.takes_images:
        raise InputError(
            f"judge {judge.spec} reads text only, but {rubric.name} shows the images of {counted(count, 'item')}",
            hint="choose a judge that sees images, as openai:MODEL; or say `images: {shown: false}` in the rubric",
        )
    return 0 if rubric.images_shown else count


class Exchange(Struct, frozen=True, gc=False):
    """One request and its reply, as kept in the store."""

    attempt: int
    digest: str
    form: Form
    reply: Reply


class Answer(Struct, frozen=True, gc=False):
    """A trial's verdict and the exchanges it came from."""

    key: TrialKey
    verdict: Verdict
    exchanges: tuple[Exchange, ...] = ()


class Asker:
    """Asks trials of one judge under one rubric.

    Args:
        rubric: The contract.
        judge: The judge.
        backend: Its open backend.
        keys: The run's secrets, from which fence marks are made; an item's is at `Item.key`.
        short: Ask in the short form: labels and numbers, no reasons.
        may_re_ask: Whether a trial's one re-ask may be used.
        form: Output form a stored run already uses.
        folder: Where relative paths of images start.
        deadline_s: Seconds that a trial may take, its waiting for a turn not counted; None for no limit.
    """

    def __init__(
        self,
        rubric: Rubric,
        judge: Judge,
        backend: Backend,
        *,
        keys: Sequence[bytes],
        short: bool = False,
        may_re_ask: bool = True,
        form: Form | None = None,
        folder: Path = Path(),
        deadline_s: float | None = None,
    ) -> None:
        self.rubric = rubric
        self.backend = backend
        self.form = FormChoice(backend, rubric, known=form)
        self._rules = compile_rubric(rubric)
        self._settings = dict(judge.settings)
        self._keys = keys
        self._short = short
        self.may_re_ask = may_re_ask
        self._folder = folder
        self._deadline_s = deadline_s

    def question(self, trial: Trial) -> Question:
        """What the trial asks."""
        return question(self.rubric, self._rules, trial, short=self._short)

    def request(self, trial: Trial, asked: Question, form: Form, deadline: Deadline | None = None) -> Request:
        """The first request of a trial in one output form."""
        made = first_request(
            self.rubric, trial, asked, form, keys=self._keys, settings=self._settings, identity=self.backend.identity
        )
        if deadline is None and not self.rubric.images_shown:
            return made
        images = located(trial.item.fields, self._folder) if self.rubric.images_shown else {}
        return structs.replace(made, images=images, deadline=deadline)

    async def ask(self, trial: Trial) -> Answer:
        """Ask one trial.

        A bad reply and a failed request are outcomes of the verdict.

        Raises:
            AccessError: the judge refuses us altogether.
        """
        asked = self.question(trial)
        if not asked.fields:
            return Answer(trial.key, settle(self.rubric, self._rules, asked, None))
        sent: list[Exchange] = []
        first: list[Verdict] = []
        try:
            if self._deadline_s is None:
                verdict = await self._asked(trial, asked, sent, first)
            else:
                verdict = await self._in_time(trial, asked, sent, first, self._deadline_s)
        except AccessError:
            raise
        except RunError as error:  # no money for another request: what was paid for is kept, and the trial is open
            if not sent:
                raise
            return Answer(trial.key, _failed(error, sent), tuple(sent))
        except BackendError as error:
            return Answer(trial.key, _failed(error, sent), tuple(sent))
        return Answer(trial.key, _totalled(verdict, sent), tuple(sent))

    async def _in_time(
        self, trial: Trial, asked: Question, sent: list[Exchange], first: list[Verdict], seconds: float
    ) -> Verdict:
        """The verdict; where time runs out, that of the first reply.

        Raises:
            RetryableBackendError: there was no reply in time.
        """
        try:
            async with asyncio.timeout(seconds) as timer:
                return await self._asked(trial, asked, sent, first, Deadline(timer))
        except TimeoutError:
            if not timer.expired():
                raise
            if not first:
                late = f"no verdict within the {seconds:g} s that a trial may take"
                raise RetryableBackendError(late) from None
            return re_asked(first[0], first[0])

    async def _asked(
        self,
        trial: Trial,
        asked: Question,
        sent: list[Exchange],
        first: list[Verdict],
        deadline: Deadline | None = None,
    ) -> Verdict:
        """The verdict; that of the first reply is put into ``first`` before there is another."""
        form, reply = await self.form.send(
            lambda form: self._send(self.request(trial, asked, form, deadline), sent), asked.fields
        )
        verdict = self._settle(asked, reply)
        wrong = complaints(self.rubric, self._rules, asked, verdict) if self.may_re_ask else []
        if not wrong:
            return verdict
        first.append(verdict)
        again = self.request(trial, asked, form, deadline)
        return await self._ask_again(asked, again, reply, verdict, wrong, sent)

    async def _ask_again(
        self,
        asked: Question,
        first: Request,
        reply: Reply,
        verdict: Verdict,
        wrong: list[str],
        sent: list[Exchange],
    ) -> Verdict:
        messages = re_ask(tuple(dict(m) for m in first.messages), reply_text(reply), wrong, self.rubric.language)
        try:
            second = await self._send(structs.replace(first, messages=messages, attempt=1), sent)
        except AccessError:
            raise
        except BackendError:
            return re_asked(verdict, verdict)
        return better(self.rubric, verdict, self._settle(asked, second))

    async def _send(self, request: Request, sent: list[Exchange]) -> Reply:
        reply = await self.backend.send(request)
        sent.append(Exchange(request.attempt, request.digest, request.form, reply))
        return reply

    def _settle(self, asked: Question, reply: Reply) -> Verdict:
        return settle(self.rubric, self._rules, asked, reply)


def _schemas_of(rubric: Rubric) -> Callable[[tuple[OutputField, ...]], dict[str, Any]]:
    return kept(functools.partial(reply_schema, rubric))


_schemas = kept(_schemas_of)


def first_request(
    rubric: Rubric,
    trial: Trial,
    asked: Question,
    form: Form,
    *,
    keys: Sequence[bytes],
    settings: Mapping[str, Any],
    identity: Mapping[str, Any],
) -> Request:
    """The first request of a trial; the same arguments always give the same request."""
    mark = mark_for(keys[trial.item.key], trial.item.id, rubric.name)
    prompt = render(rubric, asked.item, fields=asked.fields, form=form, mark=mark)
    return Request(
        messages=prompt.messages,
        form=form,
        schema=_schemas(rubric)(asked.fields) if form in ("schema", "tool") else None,
        function=rubric.output.function if form == "tool" else None,
        fields=asked.fields,
        settings=settings,
        judge=identity,
        repeat=trial.key.repeat,
        static_messages=prompt.static_messages,
        item_id=trial.item.id,
        order=trial.key.order,
    )


def reply_text(reply: Reply) -> str:
    """What the judge said, as one text: its tool call's arguments, or its content."""
    if reply.tool_calls:
        arguments = reply.tool_calls[0].arguments
        return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=False)
    return reply.text or ""


def _failed(error: BackendError | RunError, sent: list[Exchange]) -> Verdict:
    verdict = Verdict(Status.FAILED, failure=type(error).__name__, detail=error.message)
    return _totalled(verdict, sent)


def _totalled(verdict: Verdict, sent: list[Exchange]) -> Verdict:
    """The verdict with what all its exchanges cost."""
    usage = verdict.usage
    for exchange in sent:
        usage = add_usage(usage, exchange.reply.usage)
    models = [exchange.reply.model for exchange in sent if exchange.reply.model]
    return structs.replace(
        verdict,
        calls=len(sent),
        usage=usage,
        model=models[-1] if models else None,
        reply_digests=tuple(exchange.digest for exchange in sent),
    )
