"""What the converters share: their command line, a stratified sample, JSON lines."""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def main(description: str, rows: Callable[[Path, int], Iterable[Row]], stratum: str) -> None:
    """Run a converter.

    Args:
        description: Shown by ``--help``.
        rows: Makes all items of a source folder, given the seed.
        stratum: Column whose shares a sample keeps.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("source", type=Path, help="folder of the public data set")
    parser.add_argument("--out", type=Path, required=True, help="file to write, one item a line")
    parser.add_argument("--n", type=int, help="sample this many items (default: all)")
    parser.add_argument("--per", type=int, help="instead of --n: this many of each subset or label, in turn")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample and of random positions")
    given = parser.parse_args()
    if not given.source.is_dir():
        parser.error(f"no folder {given.source}")
    items = list(rows(given.source, given.seed))
    if given.per is not None:
        items = in_turn(items, stratum, given.per, given.seed)
    elif given.n is not None:
        items = sample(items, stratum, given.n, given.seed)
    write(given.out, items)
    print(f"{len(items)} items in {given.out}")


def sample(rows: list[Row], stratum: str, n: int, seed: int) -> list[Row]:
    """``n`` rows in their own order, each stratum with its share, rounded by largest remainder."""
    n = min(n, len(rows))
    places: dict[Any, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row[stratum], []).append(place)
    share = {name: n * len(members) / len(rows) for name, members in places.items()}
    counts = {name: int(exact) for name, exact in share.items()}
    by_remainder = sorted(share, key=lambda name: counts[name] - share[name])
    for name in by_remainder[: n - sum(counts.values())]:
        counts[name] += 1
    chance = random.Random(seed)
    chosen = [place for name, members in places.items() for place in chance.sample(members, counts[name])]
    return [rows[place] for place in sorted(chosen)]


def in_turn(rows: list[Row], stratum: str, per: int, seed: int) -> list[Row]:
    """``per`` rows of each stratum, one of each at a time, so that any beginning is balanced too."""
    strata: dict[Any, list[Row]] = {}
    for row in rows:
        strata.setdefault(row[stratum], []).append(row)
    chance = random.Random(seed)
    chosen = [chance.sample(members, min(per, len(members))) for members in strata.values()]
    return [row for turn in zip_longest(*chosen) for row in turn if row is not None]


def read(path: Path) -> Iterator[Row]:
    """The objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
