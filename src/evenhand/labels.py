"""Label sets of published preference data, and how they convert to and from labels with sides. Pure.

Every set converts through a `Preference`: one of `LABELS` and the preferred side. What a set leaves out stays
unknown; what has no counterpart is an error, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenhand.errors import InputError, UnknownNameError

#: How much better, from not at all up; the labels of rubric hhh.
LABELS = ("about the same", "slightly better", "better", "significantly better")
SIDES = ("A", "B", "tie")
_SAME, _TIE = LABELS[0], SIDES[2]
_LLAMA2 = ("negligibly better / unsure", *LABELS[1:])


@dataclass(frozen=True, slots=True)
class Preference:
    """How much better the preferred response is, and which one that is.

    "about the same" and "tie" go together: one of them gives the other.

    Attributes:
        label: One of `LABELS`, None for unknown.
        side: "A" (the first response), "B" or "tie", None for unknown.

    Raises:
        InputError: no such label or side, or the two contradict each other.
    """

    label: str | None = None
    side: str | None = None

    def __post_init__(self) -> None:
        if self.label is not None and self.label not in LABELS:
            raise UnknownNameError("label", self.label, LABELS)
        if self.side is not None and self.side not in SIDES:
            raise UnknownNameError("side", self.side, SIDES)
        if self.label == _SAME and self.side is None:
            object.__setattr__(self, "side", _TIE)
        if self.side == _TIE and self.label is None:
            object.__setattr__(self, "label", _SAME)
        if self.label is not None and self.side is not None and (self.label == _SAME) != (self.side == _TIE):
            raise InputError(f"label {self.label!r} and side {self.side!r} contradict each other")


class LabelSet(NamedTuple):
    """A published way to write preferences down.

    Attributes:
        read: A value, and the side where the set keeps it apart -> preference. Raises `InputError`.
        write: Preference -> value. Raises `InputError`.
        about: One line for people.
        side_apart: The side stands in another column.
    """

    read: Callable[[Any, str | None], Preference]
    write: Callable[[Preference], int | str]
    about: str
    side_apart: bool = False


def read_label(name: str, value: Any, side: str | None = None) -> Preference:
    """The preference that a value of a label set stands for.

    Args:
        name: A key of `LABEL_SETS`.
        value: As the set writes it; a number may be text.
        side: The response chosen, where the set keeps it apart ("llama2").

    Raises:
        UnknownNameError: no such set.
        InputError: not a value of the set, or one without a counterpart.
    """
    return label_set(name).read(value, side)


def write_label(name: str, preference: Preference) -> int | str:
    """A preference as a value of a label set; the inverse of `read_label` as far as the set can tell.

    Raises:
        UnknownNameError: no such set.
        InputError: the preference lacks the label or the side that the set needs.
    """
    return label_set(name).write(preference)


def label_set(name: str) -> LabelSet:
    """A label set by name.

    Raises:
        UnknownNameError: no such set.
    """
    if name not in LABEL_SETS:
        raise UnknownNameError("label set", name, LABEL_SETS)
    return LABEL_SETS[name]


def _read_helpsteer2(value: Any, _side: str | None) -> Preference:
    strengths = {str(strength): strength for strength in range(-3, 4)}
    text = str(value).strip().removeprefix("+").removesuffix(".0")
    if isinstance(value, bool) or text not in strengths:
        remark = "; -100 marks a pair without a valid response, which is no preference" if text == "-100" else ""
        raise InputError(f"{value!r} is no HelpSteer2 preference strength, a whole number from -3 to 3{remark}")
    strength = strengths[text]
    return Preference(LABELS[abs(strength)], "A" if strength < 0 else "B" if strength > 0 else _TIE)


def _write_helpsteer2(preference: Preference) -> int:
    label, side = _needed(preference.label, "label", "HelpSteer2"), _needed(preference.side, "side", "HelpSteer2")
    return LABELS.index(label) * (-1 if side == "A" else 1)


def _read_llama2(value: Any, side: str | None) -> Preference:
    text = " ".join(str(value).casefold().replace("/", " / ").split())
    if text in (_LLAMA2[0], *_LLAMA2[0].split(" / ")):
        return Preference(_SAME)  # the choice it was forced to make is no preference
    if text not in _LLAMA2:
        raise InputError(f"{value!r} is no label of the Llama 2 paper, which are: {', '.join(_LLAMA2)}")
    if side == _TIE:
        raise InputError(f"{text!r} needs a chosen response, and the side is a tie")
    return Preference(text, side)


def _write_llama2(preference: Preference) -> str:
    return _LLAMA2[LABELS.index(_needed(preference.label, "label", "the Llama 2 paper"))]


def _read_fastchat(value: Any, _side: str | None) -> Preference:
    text = str(value).strip().removeprefix("[[").removesuffix("]]").casefold()
    sides = {"a": "A", "b": "B", "c": _TIE, "tie": _TIE}
    if text not in sides:
        raise InputError(f"{value!r} is no FastChat verdict, which are [[A]], [[B]] and [[C]]")
    return Preference(side=sides[text])


def _write_fastchat(preference: Preference) -> str:
    side = _needed(preference.side, "side", "FastChat")
    return f"[[{'C' if side == _TIE else side}]]"


def _needed(part: str | None, kind: str, whose: str) -> str:
    if part is None:
        raise InputError(f"the preference has no {kind}, which {whose} needs")
    return part


#: The label sets by name.
LABEL_SETS: Mapping[str, LabelSet] = {
    "helpsteer2": LabelSet(_read_helpsteer2, _write_helpsteer2, "preference strength -3 to 3, negative = A"),
    "llama2": LabelSet(_read_llama2, _write_llama2, "degree of preference, the chosen response apart", side_apart=True),
    "fastchat": LabelSet(_read_fastchat, _write_fastchat, "verdicts [[A]], [[B]] and [[C]]"),
}
