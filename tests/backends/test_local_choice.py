"""From next-token probabilities to a value and a distribution, on toy models."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.backends.local_choice import Option, choose
from evenhand.backends.local_engine import Alternative


def numbers(*values: int) -> list[Option]:
    """Options as a number is written after a space."""
    return [Option(value, str(value).encode(), False) for value in values]


def labels(*values: str) -> list[Option]:
    """Options as a text is written after its opening quote."""
    return [Option(value, f'{value}"'.encode(), True) for value in values]


class Toy:
    """A model as a table: tokens so far (as text) -> next token -> probability. Counts the looks taken."""

    def __init__(self, table: dict[str, dict[str, float]]) -> None:
        self.words = sorted({token for row in table.values() for token in row})
        self.table = table
        self.looks: list[str] = []

    def __call__(self, path: tuple[int, ...]) -> Sequence[Alternative]:
        before = "".join(self.words[token] for token in path)
        self.looks.append(before)
        row = self.table.get(before, {})
        return [Alternative(self.words.index(token), token.encode(), p) for token, p in row.items()]


def test_different_first_tokens_need_one_look() -> None:
    """0, 4, 7 and 10 differ in their first token: that look decides, and the rest is the missing mass."""
    toy = Toy({"": {"7": 0.48, "4": 0.12, "1": 0.18, "0": 0.02, " seven": 0.15}})
    choice = choose(numbers(0, 4, 7, 10), toy)
    assert choice is not None
    assert choice.option.value == 7
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({0: 0.025, 4: 0.15, 7: 0.6, 10: 0.225})
    assert choice.distribution.missing_mass == pytest.approx(0.2)
    assert choice.distribution.expected == pytest.approx(0.15 * 4 + 0.6 * 7 + 0.225 * 10)
    assert toy.looks == [""]


def test_one_and_ten_share_a_token() -> None:
    """The probability of "1" is split between 1 and 10 by the token after it."""
    toy = Toy({"": {"1": 0.8, "9": 0.2}, "1": {"0": 0.6, "}": 0.1, ", ": 0.1, ".": 0.2}})
    choice = choose(numbers(1, 9, 10), toy)
    assert choice is not None
    assert choice.option.value == 10
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({1: 0.2, 9: 0.2, 10: 0.6})
    assert choice.distribution.missing_mass == pytest.approx(0.0)
    assert toy.looks == ["", "1"]


def test_the_stated_value_is_the_greedy_one() -> None:
    """A grammar-bound greedy decoder follows the likeliest token, even where another value is likelier in all."""
    toy = Toy({"": {"1": 0.6, "7": 0.4}, "1": {"0": 0.5, "}": 0.5}})
    choice = choose(numbers(1, 7, 10), toy)
    assert choice is not None
    assert choice.option.value == 10
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({1: 0.3, 7: 0.4, 10: 0.3})


def test_labels_with_a_common_beginning() -> None:
    """A label that begins another is told apart by its closing quote, alone or with what follows it."""
    toy = Toy({"": {"A": 0.9, "B": 0.1}, "A": {'"': 0.3, '",': 0.3, " plus": 0.4}})
    choice = choose(labels("A", "A plus", "B"), toy)
    assert choice is not None
    assert choice.option.value == "A plus"  # the likeliest single token
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({"A": 0.54, "A plus": 0.36, "B": 0.1})


def test_different_tokens_of_one_value_add_up() -> None:
    """A label may be begun by more than one token."""
    toy = Toy({"": {"better": 0.5, "b": 0.2, "worse": 0.3}})
    choice = choose(labels("better", "worse"), toy)
    assert choice is not None
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({"better": 0.7, "worse": 0.3})


def test_null_is_no_value() -> None:
    """Null may be stated; its probability counts as missing."""
    options = [Option(True, b" true", False), Option(False, b" false", False), Option(None, b" null", False)]
    choice = choose(options, Toy({"": {" null": 0.7, " true": 0.2, " false": 0.1}}))
    assert choice is not None
    assert choice.option.value is None
    assert choice.distribution is not None
    assert choice.distribution.probabilities == pytest.approx({True: 2 / 3, False: 1 / 3})
    assert choice.distribution.missing_mass == pytest.approx(0.7)


def test_split_characters_are_matched_by_bytes() -> None:
    """A token may end inside a character."""
    first, second = "甲".encode(), "乙".encode()
    tokens = {0: first[:1], 1: first[1:], 2: second}

    def ask(path: tuple[int, ...]) -> Sequence[Alternative]:
        return (
            [Alternative(1, tokens[1], 0.9)] if path else [Alternative(0, tokens[0], 0.6), Alternative(2, second, 0.4)]
        )

    choice = choose([Option("甲", first + b'"', True), Option("乙", second + b'"', True)], ask)
    assert choice is not None
    assert choice.option.value == "甲"


def test_nothing_legal_is_no_choice() -> None:
    """No likely token begins a value: there is nothing to state and no distribution."""
    assert choose(numbers(1, 2), Toy({"": {"I": 0.9, "the": 0.1}})) is None


def test_a_dead_end_is_no_choice() -> None:
    """After the likeliest token nothing legal follows."""
    assert choose(numbers(10, 11), Toy({"": {"1": 1.0}, "1": {"x": 1.0}})) is None


def test_looks_are_limited() -> None:
    """A scale of 0-100 takes at most 16 looks; beginnings left unsplit count as missing."""
    row = {str(digit): 0.1 for digit in range(10)}
    toy = Toy({"": row, **{str(d): {**row, "}": 0.0} for d in range(10)}})
    choice = choose(numbers(*range(101)), toy)
    assert choice is not None
    assert len(toy.looks) <= 16
    assert choice.distribution is not None
    assert sum(choice.distribution.probabilities.values()) == pytest.approx(1.0)
    assert 0.0 <= choice.distribution.missing_mass < 0.02


@given(st.dictionaries(st.integers(0, 999), st.integers(1, 1000), min_size=2, max_size=6))
def test_a_digit_model_gives_back_its_own_distribution(weights: dict[int, int]) -> None:
    """A model that writes whole numbers digit by digit has exactly the distribution it was made from."""
    total = sum(weights.values())

    def ask(path: tuple[int, ...]) -> Sequence[Alternative]:
        before = "".join(chr(token) for token in path)
        under = {f"{v},": w for v, w in weights.items() if f"{v},".startswith(before)}
        following: dict[str, int] = {}
        for text, weight in under.items():
            following[text[len(before)]] = following.get(text[len(before)], 0) + weight
        return [Alternative(ord(c), c.encode(), w / sum(under.values())) for c, w in following.items()]

    choice = choose(numbers(*weights), ask)
    assert choice is not None
    assert choice.distribution is not None
    expected = {value: weight / total for value, weight in weights.items()}
    assert choice.distribution.probabilities == pytest.approx(expected, abs=0.02)


@given(
    st.lists(st.text("ab c", min_size=1, max_size=4), min_size=1, max_size=6, unique=True),
    st.lists(st.tuples(st.text('ab c"', max_size=3), st.floats(0, 0.2)), max_size=5),
)
def test_any_alternatives_give_a_distribution_or_none(values: list[str], row: list[tuple[str, float]]) -> None:
    """Whatever a model offers, probabilities sum to 1, the missing mass is one, and the statement is legal."""
    alternatives = [Alternative(i, text.encode(), p) for i, (text, p) in enumerate(row)]
    choice = choose(labels(*values), lambda path: alternatives)
    if choice is None:
        return
    assert choice.option.value in values
    if choice.distribution is not None:
        assert sum(choice.distribution.probabilities.values()) == pytest.approx(1.0)
        assert 0.0 <= choice.distribution.missing_mass <= 1.0
