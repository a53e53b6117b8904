"""What a judge's tokens cost: the user's own table first, then maintained data; never fetched, never guessed."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evenhand.errors import InputError, Problem
from evenhand.keywords import Number
from evenhand.rubric.yaml_tree import plain, read_yaml
from evenhand.verdict import Usage

#: Prompt length in tokens -> US dollars per million tokens of prompts longer than that; the first length is 0.
Rate = tuple[tuple[int, float], ...]

_MILLION = 1_000_000
_USD = Number(0, 1_000_000, whole=False)
_TOKENS = Number(1, 10**9)
_COLUMNS: Mapping[str, Number] = {
    "input": _USD, "output": _USD, "cached": _USD, "request": _USD, "max_output": _TOKENS, "image_tokens": _TOKENS,
    "batch": Number(0, 1, whole=False, above=True),
}  # fmt: skip
_NEEDED = ("input", "output")
_OTHER_SERVERS = "openai"  # the backend for servers of anybody: its name tells no provider


@dataclass(frozen=True, slots=True)
class Price:
    """What one model costs.

    Attributes:
        input, output: Of prompt and completion tokens.
        cached: Of prompt tokens served from a cache; None where they cost as much as others.
        written: Of prompt tokens put into a cache; None where they cost as much as others.
        request: US dollars a request, beside its tokens.
        max_output: Most tokens a reply of the model can have; None where nobody said.
        image_tokens: Most prompt tokens an image counts as; None where nobody said.
        batch: The part of all this that a request of a batch costs, as in 0.5; 1 where nobody said.
        source: Where the price is from, as in "genai-prices 0.2.3, openai/gpt-4o".
        date: Day of the source, as in "2026-05-01": of the file's last change; of the look-up, for maintained data.
    """

    input: Rate
    output: Rate
    cached: Rate | None = None
    written: Rate | None = None
    request: float = 0.0
    max_output: int | None = None
    image_tokens: int | None = None
    batch: float = 1.0
    source: str = ""
    date: str = ""

    def cost(self, usage: Usage) -> float | None:
        """US dollars for what a server reported; None where it did not tell both prompt and completion tokens.

        Where putting tokens into a cache costs more, and nobody told how many were, all that were not read from it
        count as put into it.
        """
        prompt, completion = usage.prompt_tokens, usage.completion_tokens
        if prompt is None or completion is None:
            return None
        cached = min(usage.cached_tokens or 0, prompt)
        written = min(prompt - cached if usage.written_tokens is None else usage.written_tokens, prompt - cached)
        dear = max(_at(self.written or self.input, prompt), _at(self.input, prompt))
        tokens = (prompt - cached - written) * _at(self.input, prompt) + written * dear
        tokens += cached * _at(self.cached or self.input, prompt) + completion * _at(self.output, prompt)
        return self.request + tokens / _MILLION

    def at_most(self, prompt_tokens: int, output_tokens: int) -> float:
        """US dollars for no more than so many tokens, nothing from a cache; never less than `cost` of fewer tokens."""
        rates = [rate for rate in (self.input, self.cached, self.written) if rate is not None]
        tokens = prompt_tokens * max(_most(rate, prompt_tokens) for rate in rates)
        return self.request + (tokens + output_tokens * _most(self.output, prompt_tokens)) / _MILLION

    def about(self, prompt_tokens: float, output_tokens: float) -> float:
        """US dollars for so many tokens, nothing from a cache."""
        length = int(prompt_tokens)
        tokens = prompt_tokens * _at(self.input, length) + output_tokens * _at(self.output, length)
        return self.request + tokens / _MILLION

    def in_batches(self) -> Price:
        """The price of a request that is asked in a batch."""

        def less(rate: Rate | None) -> Rate:
            return tuple((start, price * self.batch) for start, price in rate or ())

        made = replace(self, input=less(self.input), output=less(self.output), request=self.request * self.batch)
        return replace(made, cached=less(self.cached) or None, written=less(self.written) or None, batch=1.0)

    def plain(self) -> dict[str, Any]:
        """As plain data, for the manifest; rates of one step as a number."""
        rates = {name: getattr(self, name) for name in ("input", "output", "cached", "written")}
        told = {name: rate[0][1] if len(rate) == 1 else [list(step) for step in rate] for name, rate in rates.items()
                if rate is not None}  # fmt: skip
        rest = {name: getattr(self, name) for name in ("request", "max_output", "image_tokens")}
        rest["batch"] = None if self.batch == 1 else self.batch
        return {**told, **{name: value for name, value in rest.items() if value}, "source": self.source,
                "date": self.date}  # fmt: skip


def _at(rate: Rate, prompt_tokens: int) -> float:
    if len(rate) == 1:
        return rate[0][1]
    return next(price for start, price in reversed(rate) if prompt_tokens > start or start == 0)


def _most(rate: Rate, prompt_tokens: int) -> float:
    return max(price for start, price in rate if prompt_tokens > start or start == 0)


def find_price(identity: Mapping[str, Any], file: str | Path | None = None) -> Price | None:
    """The price of a judge.

    Args:
        identity: The judge's identity: backend, model, endpoint.
        file: A table of prices, which comes first; see `read_prices`.

    Returns:
        None where no price is known; a model of the same name at another endpoint is another model.

    Raises:
        InputError: the file can't be read, or has mistakes; all of them are told.
    """
    if file is not None and (own := _own(read_prices(file), identity)) is not None:
        return own
    return _maintained(identity)


def unknown_price(identity: Mapping[str, Any]) -> tuple[str, str]:
    """What to say where no price is known, and the remedy."""
    more = "" if _has_data() else ", or the price data of pip install 'evenhand[prices]'"
    model, place = identity.get("model") or identity.get("backend", "the judge"), identity.get("endpoint")
    return f"no price known for {model}{f' at {place}' if place else ''}", f"give --prices FILE{more}"


def read_prices(file: str | Path) -> list[tuple[str, Price]]:
    """A table of prices: a YAML or JSON mapping of model to prices, or CSV with a column ``model``.

    A model is its exact name, ``backend:name``, or a pattern with * and ?. Prices are US dollars per million tokens:
    ``input`` and ``output``, both needed, and ``cached``; ``request`` is US dollars a request. ``max_output`` is the
    most tokens a reply can have, ``image_tokens`` the most that an image counts as, ``batch`` the part of all prices
    that a request of a batch costs.

    Raises:
        InputError: it can't be read, is of another kind, or has mistakes; all of them are told, with their lines.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8-sig")
        date = time.strftime("%Y-%m-%d", time.gmtime(path.stat().st_mtime))
    except (OSError, ValueError) as error:
        raise InputError(f"can't read the prices {file}: {getattr(error, 'strerror', None) or error}") from None
    readers = {".yaml": _yaml_rows, ".yml": _yaml_rows, ".json": _yaml_rows, ".csv": _csv_rows}
    if path.suffix.lower() not in readers:
        raise InputError(f"prices are a .yaml, .json or .csv file, not {path.name}")
    problems: list[Problem] = []
    found = []
    lines: dict[str, int] = {}
    for line, name, row in readers[path.suffix.lower()](text, problems):
        if not name or name in lines:
            told = f"stands twice, first in line {lines[name]}" if name else "no model"
            problems.append(Problem(line, name, told, "keep one of the two" if name else "give its name"))
            continue
        lines[name] = line
        values = dict(_checked(line, name, row, problems))
        if all(key in values for key in _NEEDED):
            found.append((name, _price(values, f"{path.name}, {name}", date)))
    if not found and not problems:
        problems.append(Problem(None, "", "no prices in it", "as in gpt-x: {input: 2.5, output: 10}"))
    if problems:
        raise InputError("\n".join(problem.render(str(file)) for problem in problems))
    return found


def _yaml_rows(text: str, problems: list[Problem]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    node, wrong = read_yaml(text)  # JSON is YAML too
    problems += wrong
    if node is None or wrong:
        return
    if node.kind != "map":
        problems.append(Problem(node.line, "", "not a mapping of models", "as in gpt-x: {input: 2.5, output: 10}"))
        return
    for name, entry in node.value.items():
        if entry.kind != "map":
            problems.append(Problem(entry.line, name, "not a mapping", "as in {input: 2.5, output: 10}"))
        else:
            yield entry.line, str(name), plain(entry)


def _csv_rows(text: str, problems: list[Problem]) -> Iterator[tuple[int, str, Mapping[str, Any]]]:
    rows = csv.DictReader(io.StringIO(text), skipinitialspace=True, restkey="a value too many")
    try:
        names = [*(rows.fieldnames or ())]
        if "model" not in names or len({*names}) < len(names):
            told = "a column stands twice" if "model" in names else "no column model"
            problems.append(Problem(1, "", told, "as in model,input,output"))
            return
        for row in rows:
            given = {key: value for key, value in row.items() if key != "model" and value not in (None, "")}
            yield rows.line_num, (row["model"] or "").strip(), given
    except csv.Error as error:  # a value that is too long
        problems.append(Problem(rows.line_num, "", str(error)))


def _checked(
    line: int, name: str, row: Mapping[str, Any], problems: list[Problem]
) -> Iterator[tuple[str, int | float]]:
    for key, value in row.items():
        if key not in _COLUMNS:
            problems.append(Problem(line, name, f"unknown: {key}", f"there are {', '.join(_COLUMNS)}"))
            continue
        try:
            yield key, _COLUMNS[key].read(value) if isinstance(value, str) else _COLUMNS[key].check(value)
        except ValueError as error:
            problems.append(Problem(line, name, f"{key} {error}"))
    problems += [Problem(line, name, f"no {key}") for key in _NEEDED if key not in row]


def _price(values: Mapping[str, Any], source: str, date: str) -> Price:
    made: dict[str, Any] = {key: ((0, float(values[key])),) for key in ("input", "output", "cached") if key in values}
    made |= {key: values[key] for key in ("request", "max_output", "image_tokens", "batch") if key in values}
    return Price(**made, source=source, date=date)


def _own(table: Iterable[tuple[str, Price]], identity: Mapping[str, Any]) -> Price | None:
    """The price under the model's exact name, else under the first pattern that it fits."""
    table = list(table)
    model = str(identity.get("model", ""))
    names = (model, f"{identity.get('backend')}:{model}")
    exact = (price for name, price in table if name in names)
    fitting = (price for pattern, price in table if any(fnmatchcase(name, pattern) for name in names))
    return next(exact, None) or next(fitting, None)


def _has_data() -> bool:
    return find_spec("genai_prices") is not None  # importing it takes a fifth of a second


def _of_nobody(identity: Mapping[str, Any]) -> bool:
    """Whether a judge is at a server without a name, such as one on this machine, which is no provider's."""
    if identity.get("backend", _OTHER_SERVERS) != _OTHER_SERVERS or not identity.get("endpoint"):
        return False
    host = urlsplit(identity["endpoint"]).hostname or ""
    try:
        ip_address(host)
    except ValueError:
        return host == "localhost"
    return True


def _maintained(identity: Mapping[str, Any]) -> Price | None:
    """The price in the data of the package genai-prices, as installed; the dearest of the day where it changes."""
    if not identity.get("model") or _of_nobody(identity) or not _has_data():
        return None
    now = datetime.now(UTC)
    found = [_looked_up(identity, now + timedelta(hours=hour)) for hour in range(24)]
    known = [replace(price, date=now.strftime("%Y-%m-%d")) for price in found if price is not None]
    return max(known, key=lambda price: price.at_most(1000, 1000), default=None)


def _looked_up(identity: Mapping[str, Any], at: datetime) -> Price | None:
    from genai_prices import Usage as Tokens
    from genai_prices import __version__, calc_price

    places = [{"provider_api_url": identity["endpoint"]}] if identity.get("endpoint") else []
    if identity.get("backend", _OTHER_SERVERS) != _OTHER_SERVERS:
        places.append({"provider_id": identity["backend"]})
    for place in places:
        try:
            found = calc_price(Tokens(), identity["model"], genai_request_timestamp=at, **place)
        except LookupError:
            continue
        data: Any = found.model_price
        if data.input_mtok is None or data.output_mtok is None:
            return None
        source = f"genai-prices {__version__}, {found.provider.id}/{found.model.id}"
        return Price(
            input=_rate(data.input_mtok),
            output=_rate(data.output_mtok),
            cached=None if data.cache_read_mtok is None else _rate(data.cache_read_mtok),
            written=None if data.cache_write_mtok is None else _rate(data.cache_write_mtok),
            request=float(data.requests_kcount or 0) / 1000,
            source=source,
        )
    return None


def _rate(price: Any) -> Rate:
    """A price of the data, which may have steps, as a rate."""
    if not hasattr(price, "tiers"):
        return ((0, float(price)),)
    return ((0, float(price.base)), *((tier.start, float(tier.price)) for tier in price.tiers))
