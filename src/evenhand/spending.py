"""What a run will cost, roughly and at most, and the purse that pays for it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from evenhand._words import counted, usd
from evenhand.backend import Backend, Request
from evenhand.backends.paced import Paced
from evenhand.errors import InputError, RunError
from evenhand.item import Item
from evenhand.judging import Asker
from evenhand.prices import Price, find_price, unknown_price
from evenhand.purse import NANO, Purse, cost_of, most_output, most_prompt, nano, parts_of
from evenhand.rubric.model import Rubric
from evenhand.store import Store
from evenhand.trial import Trial

BYTES_A_TOKEN = 4
_SAMPLED = 200
_BRIEF, _LONG = 60, 150  # tokens of a text of the reply, such as a reason
_PLAIN = 10  # tokens of any other field
_RE_ASKED = 0.1  # share of trials
_COMPLAINTS = 1000  # tokens that quote what was wrong


class Told(Protocol):
    """Who is told of the money before anything is asked."""

    def warn(self, text: str) -> None:
        """Something to know."""

    def forecast(self, told: Forecast, cap: float | None) -> None:
        """What asking will cost, and the most that the run may."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Requests of the first trials of some, and how many calls all of them will take.

    Attributes:
        requests: The first request of each trial that is asked at all.
        calls: Trials that will be asked, those behind the sample reckoned by it.
    """

    requests: list[Request]
    calls: int

    @property
    def scale(self) -> float:
        """How many calls each request of the sample stands for."""
        return self.calls / len(self.requests) if self.requests else 0.0


def sample(asker: Asker, trials: Iterable[Trial], total: int) -> Sample:
    """Render the first 200 of so many trials."""
    seen, requests = 0, []
    for trial in islice(trials, _SAMPLED):
        seen += 1
        question = asker.question(trial)
        if question.fields:
            requests.append(asker.request(trial, question, asker.form.first))
    return Sample(requests, round(total * len(requests) / seen) if seen else 0)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What some calls will cost, in US dollars.

    Attributes:
        calls: How many, re-asks not counted.
        low, likely: Rough figures.
        high: At most, tries again apart; None where nothing tells how long a reply can be.
        supposes: What each of the three supposes.
    """

    calls: int
    low: float
    likely: float
    high: float | None
    supposes: Mapping[str, str]

    def __str__(self) -> str:
        to = "at most unknown without --max-tokens" if self.high is None else f"to {usd(self.high, 2)}"
        span = f"{usd(self.low, 2)}{',' if self.high is None else ''} {to}"
        return f"about {usd(self.likely, 2)} ({span}) for {counted(self.calls, 'call')}"


def forecast(found: Sample, live: Price, asker: Asker, *, batch: bool = False) -> Forecast:
    """What the calls of a sample will cost, at the price of live requests; with ``batch`` all but the first trial's are
    asked in batches.
    """
    price = live.in_batches() if batch else live
    re_ask = asker.may_re_ask
    low = likely = high = 0.0
    bounded, dearest = True, 0.0
    for request in found.requests:
        texts = sum(field.scale is None for field in request.fields)
        plain = _PLAIN * (1 + len(request.fields) - texts)
        prompt = text_bytes(request) / BYTES_A_TOKEN
        low += price.about(prompt, plain + _BRIEF * texts)
        likely += (1 + _RE_ASKED * re_ask) * price.about(prompt, plain + _LONG * texts)
        tokens, output = most_prompt(request, price), most_output(request.settings, price)
        if tokens is None or output is None:
            bounded = False
            continue
        once = price.at_most(tokens, output)
        again = price.at_most(tokens + output + _COMPLAINTS, output) if re_ask else 0.0
        high += once + again
        dearest = max(dearest, live.at_most(tokens, output))
    supposes = {
        "low": f"{BYTES_A_TOKEN} bytes a token, no re-asks, {_BRIEF} tokens for each text of a reply",
        "likely": f"re-asks of {_RE_ASKED:.0%}, {_LONG} tokens for each text; a judge that reasons first writes more",
        "high": "a token a byte, replies of the most tokens there can be, every re-ask and form probe; no tries again",
    }
    scale = found.scale
    most = high * scale + ((asker.form.probes + batch) * dearest if found.calls else 0.0)
    return Forecast(found.calls, low * scale, likely * scale, most if bounded else None, supposes)


def text_bytes(request: Request) -> int:
    """Bytes of a request's texts, in UTF-8."""
    return sum(len(part["text"].encode("utf-8", "replace")) for part in parts_of(request) if part["type"] == "text")


def price_of(backend: Backend, *, prices: Any, cap: float | None, settings: Mapping[str, Any]) -> Price | None:
    """The price of a judge; None where it is not known, or where it costs nothing.

    Raises:
        InputError: there is a cap, and no price or no bound of a reply's length that could hold it; or the table of
            prices can't be read.
    """
    if backend.deterministic:
        return None
    price = find_price(backend.identity, prices)
    if cap is None:
        return price
    if price is None:
        told, remedy = unknown_price(backend.identity)
        raise InputError(f"{told}, so --max-cost can't hold", hint=remedy)
    if most_output(settings, price) is None:
        raise InputError(
            "--max-cost must know how long a reply can be",
            hint="give --max-tokens N, or max_output of the model in --prices FILE",
        )
    return price


def unpriced(backend: Backend) -> str:
    """What to say of a judge whose price is not known."""
    told, remedy = unknown_price(backend.identity)
    return f"{told}: cost is not counted, unless the server tells it; {remedy}"


def require_bounded(rubric: Rubric, price: Price, items: Iterable[Item]) -> None:
    """Refuse a cap where the cost of a request has no bound.

    Raises:
        InputError: images are shown, and nobody said how many tokens one may count as.
    """
    names = [field.name for field in rubric.item.fields if field.type == "images"]
    if price.image_tokens is not None or not names or not rubric.images_shown:
        return
    if any(item.fields.get(name) for item in items for name in names):
        raise InputError(
            "--max-cost can't tell what an image costs", hint="give image_tokens of the model in --prices FILE"
        )


def open_purse(store: Store, price: Price, *, cap: float | None) -> Purse:
    """The purse of a run, which knows what was spent on it before.

    Raises:
        InputError: there is a cap, and stored replies whose cost nobody told.
    """
    before = store.manifest.get("cost") or {}
    handed_in = sum(entry.get("held", 0) for entry in store.manifest.get("batches") or ())
    spent, last = round(before.get("at_most_usd", 0.0) * NANO), store.last_reply()
    counted = before.get("counted") == _decides(price) and not handed_in
    if counted:  # what was saved holds every stored reply; a million of them take long to count
        paid, untold = spent, before["untold"]
    else:
        paid, untold = _paid(store, price, last)
        spent, untold = max(paid, spent), before.get("untold", untold)
    if untold and cap is not None:
        raise InputError(
            f"{store.folder} has replies without token counts ({untold}) from when no price was known: what was spent "
            "can't be told, so --max-cost can't hold",
            hint="give another --out",
        )
    entry = {"price": price.plain(), "untold": untold, "counted": _decides(price)}
    return Purse(
        price,
        cap=cap,
        paid=paid,
        spent=spent,
        handed_in=handed_in,
        save=lambda at_most: store.update_manifest(cost={**entry, "at_most_usd": at_most}),
        unpaid=(lambda: max(0, spent - _paid(store, price, last)[0])) if counted else None,
    )


def _decides(price: Price) -> dict[str, Any]:
    """A price as plain data, less where and when it was found."""
    return {name: value for name, value in price.plain().items() if name not in ("source", "date")}


def _paid(store: Store, price: Price, last: int) -> tuple[int, int]:
    """What the stored replies up to one cost, in billionths, and how many of them don't tell."""
    paid = untold = 0
    for usage in store.usages(last):
        cost = cost_of(usage, price)
        if cost is None:
            untold += 1
        else:
            paid += nano(cost)
    return paid, untold


@contextlib.contextmanager
def paying(
    store: Store,
    asker: Asker,
    price: Price | None,
    cap: float | None,
    trials: Callable[[], Iterator[Trial]],
    left: int,
    progress: Told,
    *,
    batch: bool = False,
) -> Iterator[None]:
    """Trials are asked with a purse, where their judge costs something.

    Args:
        store: The open run.
        asker: Asks the trials.
        price: What the judge costs, None where it costs nothing, or nobody knows.
        cap: US dollars that may be spent in all.
        trials: The trials that are still to be asked.
        left: How many they are.
        progress: Told what asking will cost.
        batch: Trials are asked in batches.

    Raises:
        InputError: there is a cap, and what may be spent has no bound, or nobody knows what was.
        RunError: the cap is reached; what is in flight is finished and stored before.
    """
    backend = asker.backend
    if price is None or not left:
        if left and not backend.deterministic:
            progress.warn(unpriced(backend))
        yield
        return
    if cap is not None:
        require_bounded(asker.rubric, price, store.items(read_now=True))
    assert isinstance(backend, Paced)
    backend.purse = purse = open_purse(store, price, cap=cap)
    progress.forecast(forecast(sample(asker, trials(), left), price, asker, batch=batch), cap)
    try:
        yield
    except RunError:
        if purse.stopped is None:
            raise
    finally:
        purse.close()
    if purse.stopped is not None:
        raise purse.ended(sum(1 for _ in trials()))
