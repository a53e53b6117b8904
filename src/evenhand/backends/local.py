"""Judge with a model in this process: no server, no key, no cost, and the same reply every time."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import Any

from evenhand.backend import BackendSettings, Request
from evenhand.backends.local_engine import TOP, Alternative, Completion, Engine, cores
from evenhand.backends.local_write import Answer, opening, room, write
from evenhand.errors import FinalBackendError, InputError, MissingExtraError, RetryableBackendError
from evenhand.models import Weights, locate
from evenhand.rubric.model import Form
from evenhand.verdict import Reply, Usage

#: Tokens of prompt and answer together: what a model is loaded with, and the most it is loaded with again for.
_CONTEXT = 8192
_LONGEST_CONTEXT = 16384
_FREE_TOKENS = 1024
_HONOURED = ("temperature", "max_tokens")
#: Needless: probabilities are always told.
_NEEDLESS = ("logprobs", "top_logprobs")
#: Tokens of a piece of the static messages.
_CHUNK = 256


def open_backend(settings: BackendSettings) -> LocalBackend:
    """A local judge; the model is loaded with the first request.

    The time allowed for one request does not apply: nothing is waited for but this machine's own work.

    Args:
        settings: ``model`` is a name of the catalogue, the path of a GGUF file, or "" for the default.

    Raises:
        MissingExtraError: xllamacpp is not installed.
        UnknownNameError: no such model.
        InputError: its weights are not on this machine, or sampling is asked for.
    """
    try:
        _require_greedy(settings.sampling)
    except FinalBackendError as error:  # of one request; here it is the same for all
        raise InputError(error.message, hint=error.hint) from None
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError("xllamacpp", "local")
    return LocalBackend(locate(settings.model))


class LocalBackend:
    """One model in this process, asked one request at a time by a thread of its own.

    A reply depends on nothing but the request, the weights, the library and the kind of processor: not on what
    was asked before, nor on the number of threads. The leading messages that a request declares static are
    computed once and kept; a re-ask goes on from the request it follows.
    """

    name = "local"
    forms: tuple[Form, ...] = ("schema",)
    deterministic = True
    max_concurrency: int | None = 1
    takes_images = False

    def __init__(self, weights: Weights) -> None:
        self.model = weights.name
        self.identity: Mapping[str, Any] = {
            "backend": self.name,
            "model": weights.name,
            "weights": weights.sha256,
            "runtime": f"xllamacpp {version('xllamacpp')}",
        }
        self._weights = weights
        self._engine: Engine | None = None
        self._layouts: dict[tuple[str, ...], tuple[tuple[int, ...], ...]] = {}
        self._closed = False
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="evenhand-local")

    async def send(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            FinalBackendError: the prompt is too long or has images, sampling is asked for, or the model can't
                be loaded.
            RetryableBackendError: the backend was closed meanwhile.
        """
        given_up = threading.Event()
        job = self._worker.submit(self._answer, request, given_up)
        try:
            return await asyncio.wrap_future(job)
        except asyncio.CancelledError:
            given_up.set()
            if job.running() and self._engine is not None:
                self._engine.interrupt()
            raise

    async def aclose(self) -> None:
        """Give up what is being computed, and free the model."""
        self._closed = True
        if self._engine is not None:
            self._engine.interrupt()
        await asyncio.wrap_future(self._worker.submit(self._close))
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _close(self) -> None:
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _answer(self, request: Request, given_up: threading.Event) -> Reply:
        started = time.perf_counter()
        _require_greedy(request.settings)
        engine = self._engine or self._load(_CONTEXT)
        engine.resume()
        if self._closed or given_up.is_set():  # while the model was loaded, or before
            raise RetryableBackendError("the local model was interrupted", backend=self.name)
        begin = opening(request.fields, digits_apart=engine.digits_apart) if request.fields else ""
        *steps, prompt = self._steps(engine, request, begin)
        engine = self._with_room(engine, len(prompt) + (room(request.fields) if request.fields else _FREE_TOKENS))
        reused = engine.enter((*steps, (*prompt, *engine.tokens(begin))))
        asked = _Asked(engine, prompt)
        max_tokens = request.settings.get("max_tokens")
        if request.fields:
            answer = write(request.fields, asked, max_tokens=max_tokens)
        else:
            answer = asked.freely(request.schema, max_tokens or _FREE_TOKENS)
        usage = Usage(len(prompt), answer.tokens, reused, 0.0, time.perf_counter() - started)
        return Reply(
            text=answer.text,
            finish=answer.finish,
            model=self.model,
            usage=usage,
            distributions=answer.distributions,
        )

    def _load(self, n_ctx: int) -> Engine:
        self._close()
        self._engine = Engine(self._weights.path, n_ctx=n_ctx, threads=cores())
        return self._engine

    def _with_room(self, engine: Engine, needed: int) -> Engine:
        """The engine, loaded again with a longer context when the request needs it."""
        longest = min(engine.n_ctx_train, _LONGEST_CONTEXT)
        if needed > longest:
            raise FinalBackendError(
                f"the prompt is too long for {self.model}: with the answer up to {needed} tokens, {longest} fit",
                hint="shorten the item, or judge it with a model of longer context",
                backend=self.name,
                model=self.model,
            )
        return engine if needed <= engine.n_ctx else self._load(_LONGEST_CONTEXT)

    def _steps(self, engine: Engine, request: Request, begin: str) -> tuple[tuple[int, ...], ...]:
        """Tokens of the whole prompt, after those of its beginnings that other requests share.

        These are the static messages, piece by piece since their end differs where some fields are given, and all
        up to the beginning of the judge's first reply: what a re-ask shares with the request it follows. Messages
        are tokenised apart from the model's layout, so that nothing written in them is a chat token.
        """
        roles = tuple(str(message["role"]) for message in request.messages)
        static = request.static_messages
        reply = next((n for n, role in enumerate(roles) if role == "assistant" and n >= max(static, 1)), None)
        layout = self._layout(engine, roles)
        tokens: list[int] = []
        steps = []
        for position, (before, message) in enumerate(zip(layout, request.messages, strict=False)):
            tokens += before
            if position and position == static:
                steps += [tuple(tokens[:end]) for end in (*range(_CHUNK, len(tokens), _CHUNK), len(tokens))]
            text = _text(message)
            if position == reply and text.startswith(begin):
                tokens += engine.tokens(begin)
                steps.append(tuple(tokens))
                text = text.removeprefix(begin)
            tokens += engine.tokens(text)
        return (*steps, (*tokens, *layout[-1]))

    def _layout(self, engine: Engine, roles: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
        """Tokens of the model's layout before, between and after messages of these roles."""
        if roles not in self._layouts:
            marks = [f"[[message {number}]]" for number in range(len(roles))]
            rest = engine.template([{"role": r, "content": m} for r, m in zip(roles, marks, strict=True)])
            pieces = []
            for mark in marks:
                before, found, rest = rest.partition(mark)
                if not found:
                    raise FinalBackendError(
                        f"the chat template of {self.model} leaves out or reorders messages: {', '.join(roles)}",
                        backend=self.name,
                        model=self.model,
                    )
                pieces.append(before)
            pieces.append(rest)
            self._layouts[roles] = tuple(
                engine.tokens(piece, special=True, first=position == 0) for position, piece in enumerate(pieces)
            )
        return self._layouts[roles]


class _Asked:
    """An engine after one question: the `Writer` of its answer."""

    def __init__(self, engine: Engine, prompt: tuple[int, ...]) -> None:
        self._engine = engine
        self._prompt = prompt
        self.digits_apart = engine.digits_apart

    def tokens(self, text: str) -> tuple[int, ...]:
        return self._engine.tokens(text)

    def next(self, answer: Sequence[int]) -> Sequence[Alternative]:
        return self._complete(answer, 1, top=TOP).alternatives

    def go_on(self, answer: Sequence[int], grammar: str, limit: int) -> Completion:
        return self._complete(answer, limit, grammar=grammar)

    def freely(self, schema: Mapping[str, Any] | None, limit: int) -> Answer:
        """An answer under a schema alone, without probabilities."""
        written = self._complete((), limit, schema=schema)
        return Answer(written.text, "stop" if written.ended else "length", len(written.tokens), {})

    def _complete(self, answer: Sequence[int], limit: int, **asked: Any) -> Completion:
        return self._engine.complete((*self._prompt, *answer), limit, **asked)


def _require_greedy(settings: Mapping[str, Any]) -> None:
    if settings.get("temperature"):
        raise FinalBackendError(
            "a local judge does not sample: its probabilities are read, not drawn from",
            hint="leave the temperature out, or set it to 0",
            backend="local",
        )
    unknown = [name for name, value in settings.items() if value is not None and name not in (*_HONOURED, *_NEEDLESS)]
    if unknown:
        raise FinalBackendError(
            f"a local judge has no setting {', '.join(unknown)}",
            hint=f"leave it out; there are {' and '.join(_HONOURED)}",
            backend="local",
        )


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content or ()
    if any(part.get("type") != "text" for part in parts):
        raise FinalBackendError("a local judge reads text only, no images", backend="local")
    return "".join(part["text"] for part in parts)
