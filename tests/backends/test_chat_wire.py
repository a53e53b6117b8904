"""Chat-completions bodies to replies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.backends.bodies import decode
from evenhand.backends.chat_wire import reply_of
from evenhand.errors import RetryableBackendError
from evenhand.parse import read
from evenhand.verdict import Failure, FieldOutcome, Reply
from reading import rating


def reply(message: dict[str, Any], **envelope: Any) -> Reply:
    return reply_of({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], **envelope}, 0.5)


def test_all_kinds_of_content() -> None:
    """Text, parts, refusal, reasoning, calls of both forms and arguments of both kinds are kept apart."""
    assert reply({"content": "a"}).text == "a"
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert reply({"content": parts}).text == "ab"
    said = reply({"content": None, "refusal": "no", "reasoning_content": "because"})
    assert (said.text, said.refusal, said.reasoning) == (None, "no", "because")
    assert reply({"content": "", "reasoning": "r"}).reasoning == "r"
    calls = [
        {"type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"function": {"name": "g", "arguments": {"score": 3}}},
        {"function": {"arguments": "{}"}},
        None,
    ]
    assert [(c.name, c.arguments) for c in reply({"tool_calls": calls}).tool_calls] == [
        ("f", "{}"),
        ("g", {"score": 3}),
    ]
    assert reply({"function_call": {"name": "old", "arguments": "{}"}}).tool_calls[0].name == "old"


def test_a_key_that_stands_twice_in_arguments_is_kept_twice() -> None:
    """An object of arguments then reads as the same arguments in a text do: two values for one field are no value."""

    def read_of(arguments: str) -> FieldOutcome:
        call = f'{{"function": {{"name": "f", "arguments": {arguments}}}}}'
        body = f'{{"choices": [{{"message": {{"tool_calls": [{call}]}}}}]}}'
        return read(reply_of(decode(body.encode()), 0.0), (rating(),)).fields["rating"]

    twice = '{"rating": 4, "why": "\u00e9 \\ud83d\\ude00", "rating": 2}'
    assert read_of(twice) == read_of(json.dumps(twice)) == read_of(f'{{"arguments": {twice}}}')
    assert (read_of(twice).value, read_of(twice).failure) == (None, Failure.AMBIGUOUS)
    assert (read_of('{"rating": 3, "rating": 3}').value, read_of('{"rating": 3}').value) == (3, 3)
    two = '{"function_call": {"arguments": {"a": 1}}, "tool_calls": [{"arguments": {"a": 1, "a": {"arguments": {}}}}]}'
    assert decode(two.encode())["function_call"]["arguments"] == {"a": 1}
    assert decode(two.encode())["tool_calls"][0]["arguments"] == '{"a": 1, "a": {"arguments": {}}}'
    for broken in (b'{"arguments": {"a": 1', b'{"arguments": {"a": "\xff"}}', b'{"arguments": ' + b'{"a":' * 100_000):
        with pytest.raises(ValueError, match=r"not JSON|not UTF-8|nested too deeply"):
            decode(broken)


def test_choice_zero_is_taken_wherever_it_stands() -> None:
    """The choice with index 0 counts, or the first where none says so."""

    def choice(index: int | None, text: str) -> dict[str, Any]:
        return {"index": index, "message": {"content": text}}

    assert reply_of({"choices": [choice(1, "b"), choice(0, "a")]}, 0.0).text == "a"
    assert reply_of({"choices": [choice(None, "x"), choice(None, "y")]}, 0.0).text == "x"


def test_usage_is_what_the_server_says() -> None:
    """Counts that are no counts are unknown, never zero."""
    usage = {"prompt_tokens": 9, "completion_tokens": "3", "prompt_tokens_details": {"cached_tokens": 4}, "cost": 0.25}
    said = reply({"content": "a"}, usage=usage, model="m-1").usage
    assert (said.prompt_tokens, said.completion_tokens, said.cached_tokens) == (9, None, 4)
    assert (said.cost_usd, said.latency_s) == (0.25, 0.5)
    assert reply({"content": "a"}, usage={"prompt_cache_hit_tokens": 2}).usage.cached_tokens == 2
    assert reply({"content": "a"}, usage=None).usage.prompt_tokens is None


@pytest.mark.parametrize(
    "data",
    [
        [],
        {},
        {"choices": []},
        {"choices": {}},
        {"choices": [None]},
        {"choices": [{"text": "old"}]},
        {"choices": [{"message": {"content": 3}}]},
        {"choices": [{"message": {"content": ""}, "finish_reason": "error"}]},
    ],
)
def test_what_is_no_completion_is_retryable(data: Any) -> None:
    """A body that is no chat completion is the server's fault and may go better next time."""
    with pytest.raises(RetryableBackendError):
        reply_of(data, 0.0)


@pytest.mark.parametrize("body", [b"", b"{", b'{"a": NaN}', b"\xff", b"[" * 100_000])
def test_what_is_not_json_is_a_value_error(body: bytes) -> None:
    """No body, however broken, raises anything else."""
    with pytest.raises(ValueError):
        decode(body)


def test_half_a_surrogate_pair_is_replaced() -> None:
    """An emoji cut in two by a token limit does not make the body unreadable."""
    assert decode(b'{"a": "x\\ud83d", "b": "\\ud83d\\ude00"}') == {"a": "x?", "b": "\U0001f600"}
