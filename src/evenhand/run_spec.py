"""What a run is told: which rows, which rubric, which judge, how, and where to keep it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from evenhand._canon import digest, file_sha256
from evenhand.backend import BackendSettings
from evenhand.errors import InputError
from evenhand.judging import Judge
from evenhand.rows import STDIN
from evenhand.rubric.model import Rubric
from evenhand.sharding import Shard
from evenhand.trial import Order

ORDERS: Mapping[str, tuple[Order, ...]] = {"both": ("ab", "ba"), "ab": ("ab",), "ba": ("ba",)}


#: What makes no difference to the rows that are read, or is told in `RunSpec.input_digest` by its content.
_BESIDE_ROWS = frozenset(
    (
        "source", "rubric", "judge", "folder", "responses", "repeats", "orders", "short", "concurrency", "rpm", "tpm",
        "attempts", "deadline", "max_cost", "prices", "batch", "backend", "re_ask", "retry", "fresh", "store_texts",
        "ask", "engine", "ray_address",
    )
)  # fmt: skip


class Limits(NamedTuple):
    """How fast trials may be asked, and for how much; None for no limit. See `RunSpec`."""

    concurrency: int | None
    rpm: float | None
    tpm: float | None
    max_cost: float | None


@dataclass(frozen=True, slots=True)
class RunSpec:
    """What to judge, how, and where to keep it.

    Attributes:
        source: A path, "-", a data frame or an iterable of rows.
        rubric: The concrete rubric.
        judge: The judge.
        folder: The run folder.
        mapping: Item field -> column.
        format: Input format, None to tell from the file name.
        responses: Where the responses stand, joined to the rows by id; None where the rows hold them.
        limit, sample, seed: Only the first rows; or a random sample of rows, drawn with a seed. Rows of a resumed run
            that are not among them stay as they are.
        shard: Only the rows of one shard of the input, whose limits are given for all shards together.
        skip_bad: Keep going past bad rows and count them.
        pairs: Make pairs of prompts with any number of responses: "all", or "budget:N"; compare mode only. None reads
            rows that are pairs.
        repeats: How often each item is judged (at least 1).
        orders: "both", "ab" or "ba"; compare mode only.
        short: Ask for labels and numbers only, no reasons.
        concurrency: Trials in flight at most, None to find out what the endpoint takes.
        rpm, tpm: Requests and tokens a minute at most, None for no limit.
        attempts: Tries for one request at most.
        deadline: Seconds that one trial may take, its waiting for a turn not counted; None for no limit but that of
            its requests.
        max_cost: US dollars that the run in the folder may cost, what was spent before included; None for no cap.
        prices: A table of prices, see `evenhand.prices.read_prices`; None where there is none.
        batch: Ask through the provider's batches, which are cheaper and take up to a day.
        engine: What asks the trials: "local", this process; or "ray", workers over a Ray cluster.
        ray_address: A running cluster, HOST:PORT or "auto"; None for that of the environment, or else one of our own.
        backend: Endpoint, headers, timeout of one try.
        re_ask: Ask a trial once more when its reply can't be read or contradicts itself.
        retry: Ask again what was Refused or Unparsed.
        fresh: Throw away what the folder holds and start over.
        store_texts: Keep the texts of items in the store; without them nothing can be rendered or read again later,
            and the judge's own words, which may quote them, are kept all the same.
        ask: The rubric's entry phrase that started the run; reports show its criterion first.
    """

    source: Any
    rubric: Rubric
    judge: Judge
    folder: Path
    mapping: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    responses: Any = None
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    shard: Shard | None = None
    skip_bad: bool = False
    pairs: str | None = None
    repeats: int = 1
    orders: str = "both"
    short: bool = False
    concurrency: int | None = None
    rpm: float | None = None
    tpm: float | None = None
    attempts: int = 4
    deadline: float | None = None
    max_cost: float | None = None
    prices: Any = None
    batch: bool = False
    engine: str = "local"
    ray_address: str | None = None
    backend: BackendSettings = field(default_factory=BackendSettings)
    re_ask: bool = True
    retry: bool = False
    fresh: bool = False
    store_texts: bool = True
    ask: str | None = None

    @property
    def planned_orders(self) -> tuple[Order, ...]:
        """Presentation orders of each item."""
        if self.rubric.mode == "score":
            return ("",)
        if self.orders not in ORDERS:
            raise InputError(f"orders must be one of {', '.join(ORDERS)}, not {self.orders!r}")
        return ORDERS[self.orders]

    def input_digest(self) -> str | None:
        """What tells whether the rows would be read as before: a digest of the files' bytes and of all that decides how
        they are read. None where that can't be told: no files, or images beside them; or no texts are kept.
        """
        images = self.rubric.images_shown and any(f.type == "images" for f in self.rubric.item.fields)
        files = [self.source] if self.responses is None else [self.source, self.responses]
        if images or not self.store_texts or not all(_is_file(file) for file in files):
            return None
        how = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _BESIDE_ROWS}
        try:
            bytes_ = [(Path(file).suffix.lower(), file_sha256(Path(file))) for file in files]
        except OSError:
            return None  # reading the rows tells of it
        plain = {name: dict(value) if isinstance(value, Mapping) else str(value) for name, value in how.items()}
        return digest([version("evenhand"), self.rubric.digest, bytes_, plain])

    @property
    def limits(self) -> Limits:
        """The limits that this run keeps: a shard has its part of them, and of requests in flight one at least."""
        whole = Limits(self.concurrency, self.rpm, self.tpm, self.max_cost)
        if (shard := self.shard) is None:
            return whole
        return Limits(shard.slots(whole.concurrency), *(shard.part(limit) for limit in whole[1:]))

    @property
    def harmless(self) -> dict[str, Any]:
        """What is only recorded: which trials are asked, how fast and for what report; not what comes of one."""
        return {
            "data": self.source if isinstance(self.source, str) else type(self.source).__name__,
            "data_from_run": _from_folder(self.source, self.folder),
            "format": self.format,
            "mapping": dict(self.mapping),
            "responses": self.responses if isinstance(self.responses, str | None) else type(self.responses).__name__,
            "limit": self.limit,
            "sample": self.sample,
            "seed": self.seed,
            "skip_bad": self.skip_bad,
            "pairs": self.pairs,
            "concurrency": self.concurrency,
            "rpm": self.rpm,
            "tpm": self.tpm,
            "attempts": self.attempts,
            "deadline": self.deadline,
            "max_cost": self.max_cost,
            "prices": None if self.prices is None else str(self.prices),
            "batch": self.batch,
            "engine": self.engine,
            "ray_address": self.ray_address,
            "timeout_s": self.backend.timeout_s,
            "retry": self.retry,
            "store_texts": self.store_texts,
            "ask": self.ask,
        }


def _is_file(source: Any) -> bool:
    try:
        return isinstance(source, str | os.PathLike) and str(source) != STDIN and Path(source).is_file()
    except (OSError, ValueError):
        return False


def _from_folder(source: Any, folder: Path) -> str | None:
    """The path of the data from the run folder, which holds in whatever folder a later command is given."""
    if not isinstance(source, str) or source == STDIN:
        return None
    return os.path.relpath(os.path.realpath(source), os.path.realpath(folder))
