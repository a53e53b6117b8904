"""A language model in this process: llama.cpp behind a private socket, one question at a time.

The library's server listens on a Unix socket in a folder only this user can enter. That way text can be
tokenised with chat tokens switched off, which the library's in-process calls do not offer.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import mmap
import os
import shutil
import socket
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from evenhand.errors import FinalBackendError, InputError, MissingExtraError, RetryableBackendError

#: How many of the likeliest next tokens are looked at; legal values beyond them have next to no probability.
TOP = 256
_THREADS_OF_ONE_TOKEN = 2
_TEMPLATE_KEY = b"tokenizer.chat_template"
#: Templates that print today's date or open a hidden reasoning part would make a reply depend on more than the request.
_TEMPLATE_SETTINGS = {"enable_thinking": False, "date_string": "1 January 2025"}


@dataclass(frozen=True, slots=True)
class Alternative:
    """A possible next token: its id, its bytes, its probability."""

    token: int
    data: bytes
    p: float


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model wrote after a prompt.

    Attributes:
        text: The text, without an unfinished character at its end.
        tokens: Its tokens.
        alternatives: The likeliest tokens at its first place, before any grammar; empty unless asked for.
        ended: It came to its own end, not to the limit.
    """

    text: str
    tokens: tuple[int, ...]
    alternatives: tuple[Alternative, ...]
    ended: bool


def cores() -> int:
    """Processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Engine:
    """One loaded model with one slot. Not thread-safe, except for `interrupt`.

    Args:
        path: The GGUF file.
        n_ctx: Tokens of prompt and answer together.
        threads: Threads that compute more than one token at a time.

    Raises:
        MissingExtraError: xllamacpp is not installed.
        InputError: the model has no chat template.
        FinalBackendError: the model can't be loaded.
    """

    def __init__(self, path: Path, *, n_ctx: int, threads: int) -> None:
        _require_template(path)
        folder = tempfile.mkdtemp(prefix="evenhand-")
        address = str(Path(folder) / "model.sock")
        try:
            server = [_start(path, address, n_ctx=n_ctx, threads=threads)]
        except RuntimeError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise FinalBackendError(f"{path} can't be loaded", hint="is it a whole file?", backend="local") from error
        self._address = address
        self._steps: tuple[tuple[int, ...], ...] = ()
        self._ahead: tuple[int, ...] | None = None
        self._socket: socket.socket | None = None
        self._interrupted = False
        self._closing = weakref.finalize(self, _stop, server, folder)
        meta = self._call("GET", "/v1/models")["data"][0]["meta"]
        self.n_ctx = n_ctx
        self.n_ctx_train = int(meta["n_ctx_train"])
        self.digits_apart = self.tokens(": 7")[-1:] == self.tokens("7")

    def template(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's own layout of a chat, opened for the answer."""
        body = {"messages": list(messages), "chat_template_kwargs": _TEMPLATE_SETTINGS}
        return str(self._call("POST", "/apply-template", body)["prompt"])

    def tokens(self, text: str, *, special: bool = False, first: bool = False) -> tuple[int, ...]:
        """Tokens of a text.

        Args:
            text: Any text.
            special: Whether chat tokens written in the text are chat tokens; never for text from outside.
            first: The text begins the prompt (the model's begin token is added where it has one).
        """
        body = {"content": text, "parse_special": special, "add_special": first}
        return tuple(self._call("POST", "/tokenize", body)["tokens"])

    def enter(self, steps: Sequence[tuple[int, ...]]) -> int:
        """Bring the model into the state after a prompt, the same state whatever was asked before.

        Without this, how much of a prompt is taken over from the question before would depend on that question,
        and with it the last digits of the probabilities. What is new is computed step by step, and the last token
        of each step once more, as it is where the step is known: so every question starts after the same sums.

        Args:
            steps: Beginnings of the prompt, each longer than the one before. The last of them is left to the first
                `complete`, which must be asked to go on from exactly that.

        Returns:
            Tokens that did not have to be computed.
        """
        known = 0
        while known < min(len(steps) - 1, len(self._steps)) and steps[known] == self._steps[known]:
            known += 1
        self._steps, self._ahead = tuple(steps[:-1]), steps[-1]
        # where nothing is known, one token alone takes the place of what was asked before
        self.complete(steps[known - 1] if known else steps[0][:1], 0, reuse=known > 0)
        for step in steps[known:-1]:
            self.complete(step, 0)
            self.complete(step, 0)
        return len(steps[known - 1]) if known else 0

    def complete(
        self,
        prompt: Sequence[int],
        limit: int,
        *,
        grammar: str = "",
        schema: Mapping[str, Any] | None = None,
        top: int = 0,
        reuse: bool = True,
    ) -> Completion:
        """Go on from a prompt, always with the likeliest token.

        Args:
            prompt: Tokens.
            limit: Most tokens to write.
            grammar, schema: What may be written (GBNF, or JSON schema); at most one of them.
            top: How many alternatives to report for the first token.
            reuse: Take over what the prompt shares with the one before.
        """
        body: dict[str, Any] = {"prompt": list(prompt), "n_predict": limit, "temperature": 0.0, "seed": 0}
        body |= {"samplers": ["temperature"], "cache_prompt": reuse, "return_tokens": True, "n_probs": top}
        if grammar:
            body["grammar"] = grammar
        if schema is not None:
            body["json_schema"] = schema
        answer = self._call("POST", "/completion", body)
        if self._ahead == tuple(prompt):
            self._steps, self._ahead = (*self._steps, self._ahead), None
        places = answer.get("completion_probabilities") or [{}]
        return Completion(
            text=answer["content"],
            tokens=tuple(answer["tokens"]),
            alternatives=tuple(
                Alternative(a["id"], bytes(a["bytes"]), exp(a["logprob"])) for a in places[0].get("top_logprobs", ())
            ),
            ended=answer["stop_type"] != "limit",
        )

    def resume(self) -> None:
        """Take questions again after `interrupt`."""
        self._interrupted = False

    def interrupt(self) -> None:
        """Give up the question that is being computed, until `resume`; may be called from another thread."""
        self._interrupted = True
        if self._socket is not None:
            with contextlib.suppress(OSError):  # it had just been closed
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Free the model's memory; done at the end of the process at the latest."""
        self._closing()

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        connection = _UnixConnection(self._address)
        try:
            if self._interrupted:
                raise OSError
            connection.connect()
            self._socket = connection.sock
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            status, plain = answer.status, json.loads(answer.read())
        except (OSError, http.client.HTTPException) as error:
            self._steps, self._ahead = (), None
            raise RetryableBackendError("the local model was interrupted", backend="local") from error
        finally:
            self._socket = None
            connection.close()
        if status == 200:
            return plain
        self._steps, self._ahead = (), None
        message = plain.get("error", {}).get("message", "no reason given")
        raise FinalBackendError(f"the local model refused the request: {message}", backend="local", status=status)


def _require_template(path: Path) -> None:
    """Without a chat template the library would silently use another model's."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        if data.find(_TEMPLATE_KEY, 0, 1 << 26) < 0:
            raise InputError(
                f"{path} has no chat template: it is a base model",
                hint="a judge needs an instruction-tuned model; see: evenhand model list",
            )


def _start(path: Path, address: str, *, n_ctx: int, threads: int) -> Any:
    # Waiting threads must sleep: spinning ones starve each other when the machine has other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        import xllamacpp
    except ImportError as error:
        raise MissingExtraError("xllamacpp", "local") from error

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames = [address]
    params.n_ctx = n_ctx
    params.n_parallel = 1
    params.n_gpu_layers = 0
    # Over one token, attention splits its sums among the threads: a fixed count keeps the numbers off the machine's.
    params.cpuparams.n_threads = _THREADS_OF_ONE_TOKEN
    params.cpuparams_batch.n_threads = threads
    params.n_threads_http = 2
    params.cache_ram_mib = 0  # no state of other questions is ever swapped in
    params.n_ctx_checkpoints = 0
    params.flash_attn_type = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_ENABLED
    params.fit_params = False  # numbers must not depend on how much memory happens to be free
    params.ui = False
    params.verbosity = -1
    return xllamacpp.Server(params)


def _stop(server: list[Any], folder: str) -> None:
    server.clear()  # the only reference: the library stops its threads and frees the model
    shutil.rmtree(folder, ignore_errors=True)
