"""Entry phrases: what a user may say to start an evaluation, and the criterion that its report shows first."""

from __future__ import annotations

from evenhand.errors import UnknownNameError
from evenhand.rubric.model import Criterion, Rubric
from evenhand.rubric.options import Context
from evenhand.rubric.problems import shown

_ENDINGS = " .,;:!?…。，；：！？"


def read_ask(context: Context, criteria: tuple[Criterion, ...]) -> dict[str, str | None]:
    """Entry phrase -> criterion shown first, None for the rubric's own order."""
    names = [criterion.name for criterion in criteria]
    told: dict[str, str] = {}
    for phrase, node in context.root.items("ask"):
        if node.value is not None and node.value not in names:
            context.problems.unknown(node, "criterion", node.value, names)
        same = told.setdefault(_plain(phrase), phrase)
        if not _plain(phrase):
            context.problems.at(node.key_line, node.path, "a phrase needs words")
        elif same != phrase:
            message = f"phrase {shown(phrase)} is the same as {shown(same)}"
            context.problems.at(node.key_line, node.path, message, "case, spaces and closing marks don't count")
    return {phrase: node.value for phrase, node in context.root.items("ask")}


def find_phrase(rubric: Rubric, said: str) -> str:
    """The entry phrase that was said; letter case, spaces and punctuation at the end don't count.

    Raises:
        UnknownNameError: the rubric has no such phrase; lists those it has.
    """
    for phrase in rubric.ask:
        if _plain(phrase) == _plain(said):
            return phrase
    hint = None if rubric.ask else f"rubric {rubric.name} has no phrases under `ask`"
    raise UnknownNameError("phrase", said, rubric.ask, hint=hint)


def _plain(phrase: str) -> str:
    return " ".join(phrase.casefold().split()).rstrip(_ENDINGS)
