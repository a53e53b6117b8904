"""Run trials as actors over a Ray cluster: one of our own on this machine, or one that is running."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import logging
import os
import re
import secrets
import signal
import socket
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any

from evenhand.backend import Backend
from evenhand.backends.paced import Paced
from evenhand.errors import FinalBackendError, InputError, MissingExtraError
from evenhand.judging import Answer
from evenhand.purse import Purse
from evenhand.rubric.model import Form
from evenhand.runners.local import Commit, Stop
from evenhand.runners.pool import Lost, Pool, shares
from evenhand.runners.worker import Message, Setup, Worker
from evenhand.trial import Trial

_HOST = "127.0.0.1"  # Ray has no users: its own ports must be out of others' reach
_STORE_BYTES = 256 * 2**20
_MOST = 64  # actors: beyond that, who gives out turns is the bound
_PATIENCE_S = 30.0
_REACH_S = 5.0
_JOIN_S = 60.0
_REMEDY = "is it running (`ray status`), and is this one of its machines (`ray start --address=HOST:PORT`)?"
_ADDRESS = re.compile(r"(?P<host>[^:/\[\]]+|\[[0-9A-Fa-f:]+\]):(?P<port>[0-9]{1,5})", re.ASCII)


def require_ray(address: str | None) -> None:
    """See that there is Ray, and that an address may be one of a cluster.

    Raises:
        MissingExtraError: ray is not installed.
        InputError: the address is none.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingExtraError("ray", "ray")
    if address is not None and address != "auto" and not _ADDRESS.fullmatch(address):
        raise InputError(
            f"{address!r} is no address of a Ray cluster", hint="as in 10.0.0.1:6379, or auto on one of its machines"
        )


async def run_trials(
    trials: Iterator[Trial],
    commit: Commit,
    setup: Setup,
    backend: Backend,
    *,
    left: int,
    concurrency: int,
    address: str | None,
    stop: Stop,
    done: Callable[[Answer], None],
    warn: Callable[[str], None],
) -> Form | None:
    """Ask all trials on the processors of a cluster.

    Args:
        trials, commit, setup, stop, done: See `evenhand.runners.pool.Pool`.
        backend: The judge as this process opened it, whose turns and purse are those of all workers together.
        left: How many trials there are.
        concurrency: Trials in flight at most; a judge that lives in its process has as many more as workers.
        address: HOST:PORT of a running cluster, or "auto" for the one that this machine belongs to. None for that of
            the environment (RAY_ADDRESS), or else a cluster of our own on this machine.
        warn: Told where no processor is free for long.

    Returns:
        The output form that a reply proved, None where none did.

    Raises:
        FinalBackendError: the cluster can't be reached, or its workers die.
        Exception: as the pool's.
    """
    async with _joined(address or os.environ.get("RAY_ADDRESS")) as processors:
        workers, width, batch = shares(left, min(_MOST, processors), concurrency, backend.max_concurrency)
        paced = backend if isinstance(backend, Paced) else None
        purse = None if paced is None else paced.purse
        assert purse is None or isinstance(purse, Purse)
        pool = Pool(
            trials,
            functools.partial(_Actor, _warning(warn)),
            commit,
            replace(setup, width=width),
            workers=workers,
            batch=batch,
            pacer=None if paced is None else paced.pacer,
            purse=purse,
            stop=stop,
            done=done,
        )
        await pool.run()
        return pool.form


class _Actor:
    """A worker in a process of the cluster."""

    def __init__(self, warn: Callable[[], None]) -> None:
        import ray

        self._warn = warn
        made = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(Worker)
        self._actor: Any = made.remote()

    async def start(self, setup: Setup) -> Exception | None:
        starting = asyncio.ensure_future(self._call("start", setup))
        try:
            await asyncio.wait({starting}, timeout=_PATIENCE_S)
            if not starting.done():
                self._warn()
            failed: Exception | None = await starting
            return failed
        finally:
            starting.cancel()

    async def tell(self, told: list[Message]) -> None:
        await self._call("tell", told)

    async def hear(self) -> list[Message]:
        said: list[Message] = await self._call("hear")
        return said

    async def close(self) -> None:
        await self._call("close")

    def end(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # it is no more
            ray.kill(self._actor)

    async def _call(self, name: str, *values: Any) -> Any:
        from ray.exceptions import RayActorError, RaySystemError

        try:
            return await getattr(self._actor, name).remote(*values)
        except (RayActorError, RaySystemError) as error:
            raise Lost(_cause(error)) from None


def _cause(error: Exception) -> str:
    """Why a worker died, without Ray's ids."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not re.match(r"(class_name|actor_id|pid|name|namespace|ip):", line)]
    return " ".join(told)[:600]


def _warning(warn: Callable[[str], None]) -> Callable[[], None]:
    """Warn once."""
    warned: list[None] = []

    def once() -> None:
        if not warned:
            warned.append(None)
            warn("the Ray cluster has no processor free for a worker: waiting for one; `ray status` tells who has them")

    return once


@contextlib.asynccontextmanager
async def _joined(address: str | None) -> AsyncIterator[int]:
    """Within a cluster of so many processors; who has joined one already stays in it."""
    import ray

    if ray.is_initialized():
        yield int(ray.cluster_resources().get("CPU", 1))
        return
    with tempfile.TemporaryDirectory(prefix="evenhand-ray-", ignore_cleanup_errors=True) as folder, _quiet():
        if address is None:
            await asyncio.to_thread(_begin, folder)
        else:
            await _in_time(functools.partial(_join, address), address)
        _retake_signals()
        try:
            yield int(ray.cluster_resources().get("CPU", 1))
        finally:
            await asyncio.to_thread(ray.shutdown)


def _begin(folder: str, processors: int | None = None) -> None:
    """A cluster of our own on this machine, that nobody else can reach; with all its processors, or so many."""
    import ray

    token = os.environ.get("RAY_AUTH_TOKEN") or _token()  # else Ray would write one to the home folder
    with _environment(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_TOKEN=token, RAY_ENABLE_UV_RUN_RUNTIME_ENV="0"):
        try:
            ray.init(
                address="local",
                num_cpus=processors,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
                object_store_memory=_STORE_BYTES,
                _node_ip_address=_HOST,
                _temp_dir=folder,
            )
        except Exception as error:
            raise FinalBackendError(f"Ray did not start: {error}", hint="--engine local does without") from error


async def _in_time(join: Callable[[], None], address: str) -> None:
    """Join, or give it up: where something else than Ray listens, Ray asks it for ever."""
    loop = asyncio.get_running_loop()
    joined: asyncio.Future[None] = loop.create_future()

    def ended(error: BaseException | None) -> None:
        if not joined.done():
            joined.set_result(None) if error is None else joined.set_exception(error)

    def work() -> None:
        failed: BaseException | None = None
        try:
            join()
        except BaseException as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: it was given up
            loop.call_soon_threadsafe(ended, failed)

    threading.Thread(target=work, daemon=True).start()
    try:
        async with asyncio.timeout(_JOIN_S):
            await joined
    except TimeoutError:
        told = f"the Ray cluster at {address} can't be joined: no answer of Ray within {_JOIN_S:g} s"
        raise FinalBackendError(told, hint=_REMEDY) from None


def _join(address: str) -> None:
    """Join a running cluster."""
    import ray

    try:
        if (found := _ADDRESS.fullmatch(address)) is not None:
            place = (found["host"].strip("[]"), int(found["port"]))
            socket.create_connection(place, timeout=_REACH_S).close()
        with _environment(RAY_USAGE_STATS_ENABLED="0"):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:
        raise FinalBackendError(f"the Ray cluster at {address} can't be joined: {error}", hint=_REMEDY) from error


@functools.cache
def _token() -> str:
    """What lets processes into a cluster of our own; Ray reads it once a process."""
    return secrets.token_hex(32)


@contextlib.contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Environment variables, for a while; those that Ray sets meanwhile go with them."""
    before = {name: os.environ.get(name) for name in (*values, "RAY_AUTH_MODE")}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ray tells of dead workers on stdout, which is for figures."""
    import ray._private.worker as telling

    name = "print_to_stdstream"
    before = getattr(telling, name, None)
    setattr(telling, name, lambda *_, **__: None)
    try:
        yield
    finally:
        if before is not None:
            setattr(telling, name, before)


def _retake_signals() -> None:
    """Ray puts a handler of its own beneath Python's, which ends the process."""
    if threading.current_thread() is threading.main_thread():
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            handler = signal.getsignal(signum)
            if handler is not None:
                signal.signal(signum, handler)
