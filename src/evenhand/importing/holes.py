"""What the holes of a published template stand for: inputs of a rubric, by the names they usually go by."""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping

from evenhand.rubric.templates import NOTES, Style, split

#: Input -> the names it goes by, in small letters without underscores.
USUAL: Mapping[str, tuple[str, ...]] = {
    "question": (
        "question", "prompt", "userquestion", "userprompt", "query", "userquery", "instruction", "input", "userinput",
    ),
    "answer": (
        "answer", "response", "output", "prediction", "completion", "assistant", "assistantanswer", "modelanswer",
        "assistantresponse", "modelresponse", "modeloutput", "aianswer", "candidate", "submission", "generation",
        "actualoutput", "predict", "generatedanswer", "studentanswer",
    ),
    "reference": (
        "reference", "refanswer", "referenceanswer", "ref", "groundtruth", "gold", "goldanswer", "expected",
        "expectedoutput", "expectedanswer", "ideal", "target", "correctanswer", "correct", "standardanswer",
    ),
    "context": ("context", "contexts", "retrievedcontext", "contextstr", "documents"),
    "history": ("history", "chathistory", "conversationhistory"),
}  # fmt: skip
#: Names of the notes for a type of question, and of the type; they count only where the file has such notes.
NOTE_NAMES = ("warnings", "notes", "typenotes", "guidelines", "hints", "types")
TYPE_NAMES = ("questiontype", "type", "tasktype", "task", "category", "questioncategory")
#: Other columns that an input is often found in.
ALIASES: Mapping[str, tuple[str, ...]] = {
    "question": ("prompt",),
    "type": ("task",),
    "reference": ("ref_answer",),
    "answer": ("predict", "response"),
    "response_a": ("answer_a",),
    "response_b": ("answer_b",),
}
_DOUBLE = re.compile(r"\{\{[ \t]*[^\W\d]\w*[ \t]*\}\}")
_SINGLE = re.compile(r"(?<!\{)\{[^\W\d]\w*\}(?!\})")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")
_RESPONSE_WORDS = {
    "answer",
    "response",
    "output",
    "assistant",
    "completion",
    "candidate",
    "model",
    "generation",
    "summary",
}
_OTHER = {"a": "b", "1": "2"}


def style_of(text: str, *, python: bool) -> Style:
    """How a text is most likely filled: ``{{name}}`` where there are no other holes, as `str.format` does where that
    reads the text (a Python file) or braces are doubled in it, else plainly."""
    single = _SINGLE.search(text) is not None
    if _DOUBLE.search(text) and not single:
        return "double"
    try:
        found = [hole for _, hole in split(text, "format") if hole]
    except ValueError:
        return "plain"
    return "format" if found and (python or "{{" in text or "}}" in text) else "plain"


def holes_of(text: str, style: Style) -> list[str]:
    """The different holes of a text, in order; none where the text is not of that style."""
    try:
        return list(dict.fromkeys(hole for _, hole in split(text, style) if hole))
    except ValueError:
        return []


def positional(text: str) -> bool:
    """Whether a text has holes without a plain name, as ``{}`` and ``{0}``."""
    try:
        names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
    except ValueError:
        return False
    return bool(names) and not any(name.isidentifier() for name in names) and all(len(name) < 30 for name in names)


def leads(holes: Iterable[str], given: Mapping[str, str], *, notes: bool, compare: bool) -> dict[str, str]:
    """Hole -> the input it shows (or ``types``), each input once.

    Args:
        holes: The holes, in order.
        given: Hole -> input, as the user said.
        notes: Whether there are notes by type of question.
        compare: Whether two responses are compared; then a pair of holes shows them.
    """
    found = {hole: given[hole] for hole in holes if hole in given}
    if compare and not {"response_a", "response_b"} & set(found.values()):
        pair = find_pair(hole for hole in holes if hole not in found)
        found |= dict(zip(pair, ("response_a", "response_b"), strict=False))
    used = set(found.values())
    for hole in holes:
        if hole not in found:
            name = _usual(hole, notes)
            taken = name in used or (compare and name == "answer")
            found[hole] = _snake(hole) if name is None or taken else name
            used.add(found[hole])
    return found


def find_pair(holes: Iterable[str]) -> tuple[str, ...]:
    """Two holes that differ in A and B, or 1 and 2, and show responses; empty for none."""
    by_words = {tuple(word.lower() for word in _WORD.findall(hole)): hole for hole in holes}
    for words, hole in by_words.items():
        for place, word in enumerate(words):
            other = by_words.get((*words[:place], _OTHER.get(word, ""), *words[place + 1 :]))
            if other is not None and _RESPONSE_WORDS & set(words):
                return hole, other
    return ()


def _usual(hole: str, notes: bool) -> str | None:
    folded = hole.replace("_", "").lower()
    if notes and folded in NOTE_NAMES:
        return NOTES
    if notes and folded in TYPE_NAMES:
        return "type"
    return next((name for name, names in USUAL.items() if folded in names), None)


def _snake(hole: str) -> str:
    name = "_".join(word.lower() for word in _WORD.findall(hole)) or hole
    return f"{name}_text" if name in ("id", NOTES) or not name.isidentifier() else name
