"""Listed values that look like markup, as "<b>" or "[x]": in free text a plain word stands in for them during reading.

So none of their signs is taken for a tag, a bracket, a quotation or an object, and a line that says precisely such a
value counts as one that says any other.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import replace

from evenhand.parse.asked import Asked
from evenhand.parse.labelled import label_of
from evenhand.rubric.model import OutputField
from evenhand.verdict import FieldOutcome

_PLAIN = re.compile(r"[^\W_]+(?:[ _-][^\W_]+)*")
_WORD = "standinforvalue"
#: Between a label and its value; no quotes, for what they enclose is JSON.
_BETWEEN = r"[ \t]{0,9}[*_]{0,3}(?:[ \t]{0,9}[:：=][*_]{0,3}[ \t]{0,9}|[ \t]{1,3}is[ \t]{1,3})"
_END = r"(?=[ \t\r]*(?:\n|\Z))"


class Odd:
    """The values of this kind among those of the fields asked for.

    Args:
        asked: The fields asked for.
    """

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._values = [_odd_values(field) for field in asked.fields]
        every = sorted({value for values in self._values for value in values})
        self._words = {value: f"{_WORD}{n}x" for n, value in enumerate(every)}

    @functools.cached_property
    def asked(self) -> Asked:
        """The fields asked for, with stand-ins as further names of their values."""
        return Asked(tuple(map(self._with_words, self._asked.fields, self._values)))

    def hide(self, text: str) -> str | None:
        """The text with the stand-ins in it; None where it holds no such value, or a text that looks like one."""
        if not self._words or not any(value in text for value in self._words) or _WORD in text.casefold():
            return None
        only = self._asked.only
        if only is not None and (word := self._words.get(text)) is not None and text in _odd_values(only):
            return word
        hidden = text
        for pattern in self._patterns:
            hidden = pattern.sub(lambda found: found["label"] + self._words[found["value"]], hidden)
        return hidden if hidden != text else None

    def show(self, outcomes: Mapping[str, list[FieldOutcome]]) -> dict[str, list[FieldOutcome]]:
        """Outcomes of the text without stand-ins, in what is told of them and in texts."""
        return {name: [self._shown(outcome) for outcome in found] for name, found in outcomes.items()}

    def _shown(self, outcome: FieldOutcome) -> FieldOutcome:
        value = self._put_back(outcome.value) if isinstance(outcome.value, str) else outcome.value
        return FieldOutcome(value, outcome.failure, self._put_back(outcome.detail))

    def _put_back(self, text: str) -> str:
        for value, word in self._words.items() if _WORD in text else ():
            text = text.replace(word, value)
        return text

    def _with_words(self, field: OutputField, values: tuple[str, ...]) -> OutputField:
        if field.scale is None or not values:
            return field
        words = {self._words[value]: value for value in values}
        return replace(field, scale=replace(field.scale, aliases={**field.scale.aliases, **words}))

    @functools.cached_property
    def _patterns(self) -> list[re.Pattern[str]]:
        """For each field: its label, and such a value to the letter up to the end of the line."""
        found = []
        for field, values in zip(self._asked.fields, self._values, strict=True):
            if values:
                either = "|".join(re.escape(value) for value in sorted(values, key=len, reverse=True))
                label = label_of(field, self._asked.only is field).pattern
                found.append(re.compile(rf"(?P<label>(?i:{label}){_BETWEEN})(?P<value>{either}){_END}"))
        return found


def _odd_values(field: OutputField) -> tuple[str, ...]:
    values = field.scale.values if field.scale is not None and not field.patterns else None
    return tuple(value for value in values or () if isinstance(value, str) and not _PLAIN.fullmatch(value))
