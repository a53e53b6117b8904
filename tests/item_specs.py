"""What the tests of items share: a rubric's item fields of every type, and chat messages."""

from __future__ import annotations

from typing import Any

from evenhand.rubric.model import ItemField, ItemSpec

SPEC = ItemSpec(
    fields=(
        ItemField("question", "text", True),
        ItemField("answer", "text", True),
        ItemField("context", "text", False),
        ItemField("harmful", "bool", False),
        ItemField("score", "number", False),
        ItemField("history", "turns", False),
        ItemField("images", "images", False),
    ),
    aliases={"prompt": "question", "predict": "answer", "output": "answer", "question_id": "id"},
    responses=("answer",),
)


def message(role: str, content: Any) -> dict[str, Any]:
    """A chat message."""
    return {"role": role, "content": content}
