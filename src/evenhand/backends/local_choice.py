"""From the probabilities of next tokens to a value and a distribution: pure, no model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evenhand.backends.local_engine import Alternative
from evenhand.scale import Value
from evenhand.verdict import Distribution

#: What may stand after a number or a word of JSON.
_DELIMITERS = b",}] \n\r\t"
_MOST_PASSES = 16
_LEAST_SHARE = 1e-3

#: The likeliest next tokens after the question, the answer so far, and these tokens.
Ask = Callable[[tuple[int, ...]], Sequence[Alternative]]


@dataclass(frozen=True, slots=True)
class Option:
    """One legal value as it would be written.

    Attributes:
        value: The value; None for null.
        text: Its bytes at the place where the answer stands.
        closed: It ends by itself, as a text does with its quote; a number goes on until a delimiter.
    """

    value: Value | None
    text: bytes
    closed: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """The likeliest option, and how the probability is spread over the values (None: too little is known)."""

    option: Option
    distribution: Distribution | None


@dataclass(frozen=True, slots=True)
class _Branch:
    """A beginning that several options share: its tokens, its share, what is left to write of each option."""

    share: float
    stated: bool
    path: tuple[int, ...]
    left: Mapping[int, bytes]


def choose(options: Sequence[Option], ask: Ask) -> Choice | None:
    """Choose among options as a grammar-bound greedy decoder would, and spread the probability over them.

    At each token only those that go on with some option count. The first token decides wherever options
    begin with different tokens; where they share one ("1" and "10"), its probability is split by looking one
    token further, and so on. At most 16 looks; shares under 0.001 are not split.

    Args:
        options: The legal values, at least one.
        ask: Gives the likeliest next tokens, before any grammar, with probabilities that sum to at most 1.

    Returns:
        The chosen option and the distribution. Its missing mass is the probability of first tokens that begin
        no value, null included, and of beginnings left unsplit. None when no likely token begins any option.
    """
    mass = [0.0] * len(options)
    legal = 0.0
    stated: int | None = None
    todo = [_Branch(1.0, True, (), {i: option.text for i, option in enumerate(options)})]
    for _ in range(_MOST_PASSES):
        branch = max(todo, key=lambda b: (b.stated, b.share), default=None)
        if branch is None or (not branch.stated and branch.share < _LEAST_SHARE):
            break
        todo.remove(branch)
        steps = _steps(ask(branch.path), branch.left, options)
        total = sum(alternative.p for alternative, _ in steps)
        if not branch.path:
            legal = min(total, 1.0)
        if total <= 0.0:
            if branch.stated:
                return None
            continue
        likeliest = max(steps, key=lambda step: step[0].p)
        for step in steps:
            alternative, left = step
            share = branch.share * alternative.p / total
            here = branch.stated and step is likeliest
            if len(left) > 1:
                todo.append(_Branch(share, here, (*branch.path, alternative.token), left))
                continue
            (index,) = left
            mass[index] += share
            stated = index if here else stated
    if stated is None:
        return None
    return Choice(options[stated], _spread(options, mass, legal))


def _steps(
    alternatives: Sequence[Alternative], left: Mapping[int, bytes], options: Sequence[Option]
) -> list[tuple[Alternative, dict[int, bytes]]]:
    """The tokens that go on with some option, each with what is left to write of those options."""
    found = []
    for alternative in alternatives:
        fitting = {}
        for index, text in left.items():
            rest = _after(text, alternative.data, options[index].closed)
            if rest is not None:
                fitting[index] = rest
        if fitting:
            found.append((alternative, fitting))
    return found


def _after(text: bytes, token: bytes, closed: bool) -> bytes | None:
    """What is left of a text after a token; None when the token does not go on with it."""
    if not token:
        return None
    if len(token) <= len(text):
        return text[len(token) :] if text.startswith(token) else None
    if not token.startswith(text):
        return None
    return b"" if closed or token[len(text)] in _DELIMITERS else None


def _spread(options: Sequence[Option], mass: Sequence[float], legal: float) -> Distribution | None:
    by_value = {option.value: p for option, p in zip(options, mass, strict=True) if option.value is not None}
    total = sum(by_value.values())
    if total <= 0.0:
        return None
    return Distribution({value: p / total for value, p in by_value.items()}, max(0.0, 1.0 - legal * total))
