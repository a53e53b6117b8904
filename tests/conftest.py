"""Shared fixtures: reference data beside the project, a loopback-only network, a cache of its own."""

from __future__ import annotations

import ipaddress
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from evenhand.testing.server import FakeServer

SHARED = Path(__file__).resolve().parents[2] / "shared"


def _loopback_only(event: str, args: tuple[object, ...]) -> None:
    """Refuse every connection that would leave this machine."""
    if event != "socket.connect":
        return
    address = args[1]
    if not isinstance(address, tuple):
        return  # a Unix socket
    host = str(address[0])
    if host == "localhost" or (host and ipaddress.ip_address(host.split("%")[0]).is_loopback):
        return
    raise RuntimeError(f"a test tried to reach {host}, beyond loopback")


sys.addaudithook(_loopback_only)

settings.register_profile("evenhand", deadline=None)  # a busy machine is no defect
settings.load_profile("evenhand")


@pytest.fixture
def shared() -> Callable[[str], Path]:
    """``shared("cases/x.jsonl")``: a path of the reference data, or a skip with its reason."""

    def find(name: str) -> Path:
        path = SHARED / name
        if not path.exists():
            pytest.skip(f"reference data not here: shared/{name}")
        return path

    return find


@pytest.fixture(scope="session")
def server() -> Iterator[FakeServer]:
    """One server that misbehaves on request; each test asks for a behaviour of its own, and resets it to count."""
    with FakeServer(record=5000) as running:
        yield running


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test learns of an endpoint stays in that test."""
    monkeypatch.setenv("EVENHAND_STATE", str(tmp_path_factory.mktemp("state")))
    for name in [name for name in os.environ if name.startswith("AWS_") or name.endswith(("_API_KEY", "_BASE_URL"))]:
        monkeypatch.delenv(name)
    yield
