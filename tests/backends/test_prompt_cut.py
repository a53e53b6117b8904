"""A prompt that the server cut is told; one that only has few tokens is not."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evenhand.backend import Request
from evenhand.backends.paced import Paced
from evenhand.backends.prompt_cut import require_whole
from evenhand.errors import FinalBackendError
from evenhand.testing.conformance import sample_requests
from evenhand.testing.server import FakeServer
from evenhand.verdict import Usage

Chat = Callable[..., Paced]
_DRAW = random.Random(7)
_WORDS = [f"{a}{b}{c}" for a in ("ba", "ko", "str", "in") for b in ("na", "men", "tal", "ed") for c in ("", "s", "ly")]
WORDS = " ".join(_DRAW.choice(_WORDS) for _ in range(8000))
CHINESE = "".join(chr(_DRAW.randrange(0x4E00, 0x5200)) for _ in range(8000))


def request(text: str, **changes: object) -> Request:
    messages = ({"role": "system", "content": "Judge."}, {"role": "user", "content": text})
    return sample_requests("text", messages=messages, **changes)[0]


@pytest.mark.parametrize("text", [WORDS, CHINESE])
def test_a_prompt_cut_to_a_small_part_is_told(text: str) -> None:
    """Far fewer tokens than any tokenizer makes of the text: the error says what to do."""
    with pytest.raises(FinalBackendError, match="cut the prompt") as caught:
        require_whole(request(text), Usage(prompt_tokens=1024))
    assert "num_ctx" in (caught.value.hint or "") and caught.value.maybe_paid


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("short " * 300, 1),  # under 2,000 bytes
        (WORDS, len(WORDS) // 6),  # longer tokens than any natural text has
        (CHINESE, len(CHINESE) // 2),  # six bytes a token
        (" " * 100_000, 800),  # one token may be more than a hundred spaces
        ("=" * 100_000 + "\\n", 1600),
        ("ab" * 50_000, 3000),
        ("the same sentence again and again. " * 3000, 20_000),
    ],
)
def test_few_tokens_are_no_cut(text: str, tokens: int) -> None:
    """What a tokenizer can reach is not held against a server, repeated text and Chinese included."""
    require_whole(request(text), Usage(prompt_tokens=tokens))
    for unknown in (Usage(), Usage(prompt_tokens=0)):
        require_whole(request(text), unknown)


def test_cached_tokens_are_no_cut() -> None:
    """Neither a count without the cached tokens nor a cache that is not told of is taken for a cut."""
    require_whole(request(WORDS), Usage(prompt_tokens=9, cached_tokens=len(WORDS) // 4))
    require_whole(request(WORDS, static_messages=2), Usage(prompt_tokens=9))
    require_whole(request(WORDS, repeat=1), Usage(prompt_tokens=9))
    require_whole(request(WORDS, attempt=1), Usage(prompt_tokens=9))
    with pytest.raises(FinalBackendError):
        require_whole(request(WORDS, static_messages=2), Usage(prompt_tokens=9, cached_tokens=4))


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "bedrock"])
async def test_every_interface_tells_it(server: FakeServer, chat: Chat, provider: str) -> None:
    """The error is one of the trial, in one try."""
    url = server.with_faults(prompt_tokens=512)
    with pytest.raises(FinalBackendError, match="512 tokens") as caught:
        await chat(url, provider).send(request(WORDS))
    assert type(caught.value) is FinalBackendError
    assert len(server.requests(url)) == 1
