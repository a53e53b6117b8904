"""Declining, told from prose without a rating."""

from __future__ import annotations

import pytest

from evenhand.parse.refusals import declines


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that request.",
        "I’m really sorry, I cannot evaluate this content.",
        "Sorry, I can't help with grading this.",
        "I won't be able to rate this text.",
        "I am unable to provide a score for this material.",
        "Unfortunately, I must decline to judge these responses.",
        "As an AI language model, I cannot assign ratings to such content.",
        "抱歉，我无法对这段内容进行评分。",
        "很遗憾，无法提供评价。",
        "对不起，这个请求我不能处理。",
        "作为人工智能助手，我不能评价此类内容。",
    ],
)
def test_declining(text: str) -> None:
    """A short text that begins by declining the task is a refusal."""
    assert declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Excellent work, very clear.",
        "I can't find any errors in this answer.",
        "I cannot rate this higher than average.",
        "I can't give this more than half marks.",
        "The assistant says: I'm sorry, but I can't assist with that.",
        "The answer is wrong. I cannot help but notice the tone.",
        "这个回答不能满足用户的要求。",
        "抱歉的语气很得体，回答完整。",
        "I'm sorry, but I can't assist with that. " + "The answer goes on. " * 50,
    ],
)
def test_not_declining(text: str) -> None:
    """Criticism, quoted refusals and long texts are not refusals."""
    assert not declines(text)
