"""Ray: the engines' tests over a real cluster, in a network of its own; and what is refused without one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from evenhand.cli.main import run
from evenhand.errors import InputError, MissingExtraError, UnknownNameError
from evenhand.runners import on_ray
from runs import TWO, rows, run_it

INSIDE = Path(__file__).with_name("test_engines.py")
#: Ray listens at the host's address: here there is none but loopback.
ALONE = ["unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
NEEDS_RAY = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="the extra ray is not installed")


@NEEDS_RAY
def test_engines_over_a_cluster(tmp_path: Path) -> None:
    """The tests of engines pass with workers over Ray."""
    try:
        refused = subprocess.run([*ALONE, "true"], capture_output=True, text=True, check=False)
        why = refused.stderr.strip() if refused.returncode else ""
    except OSError as error:
        why = str(error)
    if why:
        pytest.skip(f"NOTHING OF RAY IS TESTED: there is no network of its own to be had: {why}")
    told = tmp_path / "told.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--junitxml={told}", str(INSIDE)]
    base = os.environ | {"EVENHAND_RAY_TESTS": "1"}
    ended = subprocess.run([*ALONE, *command], env=base, capture_output=True, text=True, check=False, timeout=300)
    assert ended.returncode == 0, ended.stdout[-8000:] + ended.stderr[-2000:]
    suite = ElementTree.parse(told).getroot()[0]
    assert int(suite.attrib["tests"]) - int(suite.attrib["skipped"]) >= 6


@NEEDS_RAY
@pytest.mark.parametrize("address", ["127.0.0.1:9", "auto"])
def test_a_cluster_out_of_reach_ends_the_run(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 3 with the address and a remedy; nothing was sent."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    given = ["judge", str(_data(tmp_path)), "--judge", "fake", "--engine", "ray", "--ray-address", address]
    assert run(given) == 3
    told = capsys.readouterr().err
    assert f"the Ray cluster at {address} can't be joined" in told
    assert "ray status" in told


def _data(folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text('{"question": "Is it?", "answer": "It is."}\n')
    return path


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    """Addresses of other protocols, and addresses without an engine to use them."""
    if importlib.util.find_spec("ray") is not None:
        for address in ("ray://head:10001", "head", "http://head:8265", "head:port", ""):
            with pytest.raises(InputError, match=r"is no address of a Ray cluster"):
                on_ray.require_ray(address)
        for address in ("auto", "head:6379", "10.0.0.1:6379", "[::1]:6379", None):
            on_ray.require_ray(address)
    with pytest.raises(InputError, match="--ray-address is of use with --engine ray only"):
        run_it(rows(1), TWO, "fake", tmp_path / "run", ray_address="auto")
    with pytest.raises(UnknownNameError, match="unknown engine 'spark'"):
        run_it(rows(1), TWO, "fake", tmp_path / "run", engine="spark")
    with pytest.raises(InputError, match="--batch has no use for --engine ray"):
        run_it(rows(1), TWO, "fake", tmp_path / "run", engine="ray", batch=True)
    assert not (tmp_path / "run").exists()


def test_without_ray_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is read or kept."""
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"evenhand\[ray\]"):
        run_it(rows(1), TWO, "fake", tmp_path / "run", engine="ray")
    assert not (tmp_path / "run").exists()
