"""Prices: the user's table, maintained data, and what a usage costs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.prices import Price, find_price, read_prices
from evenhand.verdict import Usage

OPENAI = {"backend": "openai", "endpoint": "https://api.openai.com/v1"}
data = pytest.mark.skipif(
    importlib.util.find_spec("genai_prices") is None, reason="the price data of evenhand[prices] are not installed"
)
ENTRIES = {"big": {"input": 3, "output": 15.5, "cached": 0.3}, "big*": {"input": 1, "output": 2, "request": 0.01}}


def write(folder: Path, kind: str) -> Path:
    """The same table in one of the formats."""
    path = folder / f"prices.{kind}"
    if kind == "csv":
        path.write_text("model,input,output,cached,request\nbig,3,15.5,0.3,\nbig*,1,2,,0.01\n")
    elif kind == "json":
        path.write_text(json.dumps(ENTRIES))
    else:
        path.write_text("big: {input: 3, output: 15.5, cached: 0.3}\n'big*': {input: 1, output: 2, request: 0.01}\n")
    return path


@pytest.mark.parametrize("kind", ["yaml", "json", "csv"])
def test_a_table_of_the_user(kind: str, tmp_path: Path) -> None:
    """Every format gives the same prices; an exact name comes before a pattern, and source and day are told."""
    file = write(tmp_path, kind)
    exact = find_price({**OPENAI, "model": "big"}, file)
    assert exact is not None
    assert exact.cost(Usage(1000, 100, 400)) == pytest.approx((600 * 3 + 400 * 0.3 + 100 * 15.5) / 1e6)
    assert (exact.source, len(exact.date)) == (f"prices.{kind}, big", 10)
    fitting = find_price({**OPENAI, "model": "bigger"}, file)
    assert fitting is not None and fitting.cost(Usage(1000, 100)) == pytest.approx(0.01 + 1200 / 1e6)
    assert find_price({**OPENAI, "model": "small", "endpoint": "http://127.0.0.1:1/v1"}, file) is None


def test_a_name_with_its_backend(tmp_path: Path) -> None:
    """A price may be of a model at one backend only."""
    (tmp_path / "p.yaml").write_text("'other:m': {input: 1, output: 1}\n")
    assert find_price({"backend": "other", "model": "m"}, tmp_path / "p.yaml") is not None
    assert (
        find_price({"backend": "openai", "model": "m", "endpoint": "http://127.0.0.1/v1"}, tmp_path / "p.yaml") is None
    )


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("p.yaml", "m: {input: 1}\nn: {output: -1, input: x, cashed: 1}\n",
         ["p.yaml:1 m: no output", "p.yaml:2 n: output must be a number", "n: input must be", "unknown: cashed"]),
        ("p.yaml", "[1, 2]\n", ["not a mapping of models"]),
        ("p.yaml", "m: 3\n", ["not a mapping"]),
        ("p.yaml", "", ["the file is empty"]),
        ("p.yaml", "{}", ["no prices in it"]),
        ("p.yaml", "m: [\n", ["p.yaml"]),
        ("p.json", '{"m": {"input": true, "output": 1}}', ["input must be a number"]),
        ("p.csv", "name,input\nm,1\n", ["no column model"]),
        ("p.csv", "model,input,output\nm,1,\nn,nan,2\n", ["p.csv:2 m: no output", "p.csv:3 n: input must be a number"]),
        ("p.csv", "model,input,output\nm,1,2\nm,3,4\n", ["p.csv:3 m: stands twice, first in line 2"]),
        ("p.csv", "model,input,output\n ,1,2\n", ["p.csv:2: no model"]),
        ("p.csv", "model,input,input,output\nm,1,2,3\n", ["a column stands twice"]),
        ("p.csv", "model,input,output\nm,1,2,3\n", ["p.csv:2 m: unknown: a value too many"]),
        ("p.yaml", "m: {input: 1, output: 1, batch: 0}\n", ["batch must be a number above 0"]),
        ("p.txt", "m: {input: 1, output: 1}", [".yaml, .json or .csv"]),
    ],
)  # fmt: skip
def test_mistakes_of_a_table(name: str, text: str, told: list[str], tmp_path: Path) -> None:
    """All mistakes are told, with line and model; nothing becomes a price of 0."""
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        read_prices(tmp_path / name)
    for piece in told:
        assert piece in str(caught.value)


def test_a_name_that_looks_like_a_number(tmp_path: Path) -> None:
    """It is a name, and fits the model that has it only."""
    (tmp_path / "p.yaml").write_text("4: {input: 1, output: 2}\n")
    for model, known in (("4", True), ("5", False)):
        assert (find_price({"backend": "openai", "model": model}, tmp_path / "p.yaml") is not None) is known


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    """A file that can't be read is an input error with its name."""
    with pytest.raises(InputError, match=r"can't read the prices .*nowhere\.yaml: No such file"):
        read_prices(tmp_path / "nowhere.yaml")


@data
@pytest.mark.parametrize(
    ("identity", "source"),
    [
        ({**OPENAI, "model": "gpt-4o"}, "openai/gpt-4o"),
        (
            {"backend": "openai", "endpoint": "https://openrouter.ai/api/v1", "model": "openai/gpt-4o"},
            "openrouter/openai",
        ),
        (
            {"backend": "anthropic", "endpoint": "http://127.0.0.1:1/v1", "model": "claude-sonnet-4-5"},
            "anthropic/claude",
        ),
        ({**OPENAI, "model": "no-such-model"}, None),
        ({"backend": "openai", "endpoint": "http://127.0.0.1:1/v1", "model": "gpt-4o"}, None),
        ({"backend": "openai", "endpoint": "http://localhost:1/v1", "model": "gpt-4o"}, None),
        ({"backend": "openai", "endpoint": "http://[::1]:1/v1", "model": "gpt-4o"}, None),
        ({"backend": "openai", "endpoint": "https://unknown.example/v1", "model": "gpt-4o"}, None),
    ],
)
def test_maintained_data(identity: dict[str, Any], source: str | None) -> None:
    """A model is looked up at its endpoint, not by its name alone, in the data as installed: nothing is fetched."""
    price = find_price(identity)
    if source is None:
        assert price is None
    else:
        assert price is not None and source in price.source and price.source.startswith("genai-prices ")
        assert price.input[0][1] > 0 and price.output[0][1] > 0 and price.date


def test_the_data_are_read_where_they_can_help() -> None:
    """A judge at a server of one's own starts without them: loading them takes longer than all else of a start."""
    identity = {"backend": "openai", "endpoint": "http://127.0.0.1:1/v1", "model": "gpt-4o"}
    told = f"import sys, evenhand.prices as p; p.find_price({identity}), p.unknown_price({identity})"
    code = f"{told}; sys.exit('genai_prices' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@data
def test_the_table_of_the_user_comes_first(tmp_path: Path) -> None:
    """A price of one's own holds, whatever the data say."""
    (tmp_path / "p.yaml").write_text("gpt-4o: {input: 7, output: 7}\n")
    price = find_price({**OPENAI, "model": "gpt-4o"}, tmp_path / "p.yaml")
    assert price is not None and price.input == ((0, 7.0),)


def test_usages_without_counts() -> None:
    """Where a server does not tell both counts there is no cost, rather than 0."""
    price = Price(((0, 1.0),), ((0, 2.0),))
    assert price.cost(Usage()) is None and price.cost(Usage(5, None)) is None and price.cost(Usage(0, 0)) == 0.0
    assert price.cost(Usage(5, 1, 9)) == pytest.approx(7 / 1e6)  # more cached than there are


def test_prices_by_length() -> None:
    """Longer prompts cost what their step says, replies too."""
    price = Price(((0, 1.0), (100, 3.0)), ((0, 10.0), (100, 20.0)))
    assert price.cost(Usage(100, 1)) == pytest.approx(110 / 1e6)
    assert price.cost(Usage(101, 1)) == pytest.approx((303 + 20) / 1e6)


def test_tokens_put_into_a_cache() -> None:
    """They cost their own rate; where nobody told how many there were, all that were not read from it may be."""
    price = Price(((0, 4.0),), ((0, 0.0),), cached=((0, 1.0),), written=((0, 5.0),))
    assert price.cost(Usage(100, 0, 30, written_tokens=20)) == pytest.approx((50 * 4 + 30 + 20 * 5) / 1e6)
    assert price.cost(Usage(100, 0, 30)) == pytest.approx((70 * 5 + 30) / 1e6)


rates = st.lists(st.floats(0, 100), min_size=1, max_size=3).map(lambda p: tuple((n * 500, x) for n, x in enumerate(p)))


@given(rates, rates, st.none() | rates, st.none() | rates, st.integers(0, 2000), st.integers(0, 2000), st.data())
def test_at_most_is_never_less(
    given_in: Any, given_out: Any, cached: Any, written: Any, prompt: int, output: int, more: st.DataObject
) -> None:
    """No usage within the bounds of tokens costs more than the bound, whatever the steps and what was cached."""
    price = Price(given_in, given_out, cached, written, request=0.001)
    used = Usage(
        more.draw(st.integers(0, prompt)), more.draw(st.integers(0, output)), more.draw(st.integers(0, prompt))
    )
    cost = price.cost(used)
    assert cost is not None and cost <= price.at_most(prompt, output) * (1 + 1e-12)
