"""A real model server for tests: llama.cpp's OpenAI-compatible server in a process of its own, on loopback.

Needs the extra ``local`` and a GGUF file. One thread computes, so that tests stay fast on busy machines.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from evenhand.errors import InputError

_STOP_SECONDS = 20
#: The name the server gives its model.
MODEL_NAME = "local-judge"


class LlamaServer:
    """Context manager: a server that speaks chat completions, JSON schema and logprobs.

    Tools are accepted, but the call is not forced, whatever ``tool_choice`` says: plain text may come back.

    Args:
        model: The GGUF file.
        slots: Requests answered at once.
        n_ctx: Tokens of prompt and answer, for each slot.
        cache_prompt: Keep what a slot has computed for prompts that begin alike, as model servers do. Without it
            replies do not depend on what was asked before.

    Raises:
        InputError: the server did not start (no xllamacpp, no such file).
    """

    def __init__(self, model: Path, *, slots: int = 1, n_ctx: int = 2048, cache_prompt: bool = False) -> None:
        self._arguments = [str(model), str(slots), str(n_ctx), str(int(cache_prompt))]
        self._process: subprocess.Popen[str] | None = None
        #: Address for clients, as in "http://127.0.0.1:18080/v1".
        self.base_url = ""

    def __enter__(self) -> LlamaServer:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "evenhand.testing.llama_server", *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE"},
        )
        assert self._process.stdout is not None
        address = self._process.stdout.readline().strip()
        if not address.startswith("http://127.0.0.1:"):
            self.__exit__(None, None, None)
            raise InputError(f"the model server could not start {self._arguments[0]}", hint="its reason is on stderr")
        self.base_url = f"{address}/v1"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        try:
            self._process.communicate(timeout=_STOP_SECONDS)  # closes its stdin, which ends it
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
        self._process = None


def _serve(model: str, slots: int, n_ctx: int, cache_prompt: int) -> None:
    """Serve until stdin ends: then the parent has finished with it, or is gone."""
    import xllamacpp

    params: Any = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {MODEL_NAME}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = slots
    params.n_ctx = n_ctx * slots
    params.n_gpu_layers = 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.cache_ram_mib = 0
    params.cache_prompt = bool(cache_prompt)
    params.ui = False
    params.verbosity = -1
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    _serve(sys.argv[1], *map(int, sys.argv[2:]))
