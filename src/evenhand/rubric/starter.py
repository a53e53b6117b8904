"""A small commented rubric to start from."""

from __future__ import annotations

import re
from typing import get_args

from evenhand.errors import InputError, UnknownNameError
from evenhand.rubric.model import Mode

_NAME = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*")

_HEAD = """\
# `evenhand rubric lint {name}.yaml` finds mistakes; `evenhand rubric show {name}.yaml` shows what is asked.
rubric: {name}
version: 1  # raise it when verdicts before and after should not be mixed
title: "Say in one line what this judges"
mode: {mode}
language: en
"""

_SCORE = """\

item:  # columns of your data; other column names go under aliases
  required: {question: text, answer: text}
  optional: {context: text}
  aliases: {prompt: question}

criteria:  # the first one matters most
  - name: correctness
    weight: 0.7  # leave all weights out for no composite
    text: "Is what the answer says true, and does it answer the question?"
    scale:
      range: [1, 5]
      anchors:
        1: "Wrong or off topic."
        3: "Partly right."
        5: "Right in all that matters."
  - name: clarity
    weight: 0.3
    text: "Is it easy to follow?"
    scale: {range: [1, 5], anchors: {1: "Hard to follow.", 5: "Clear at first reading."}}

preset:  # set in code: a blank answer needs no judge
  - {when: blank(answer), call: none, set: {"{criterion}": low, reason: "The answer is blank."}}

rules:  # true means that the verdict contradicts itself
  - id: wrong-but-clear
    severity: warning  # violation: the judge is asked once more
    if: "correctness == 1 and clarity == 5"
    say: "Correctness is {correctness} but clarity is {clarity}. Check that clarity is not about style alone."
"""

_COMPARE = """\

item:  # columns of your data; other column names go under aliases
  required: {prompt: text, response_a: text, response_b: text}
  aliases: {question: prompt, answer_a: response_a, answer_b: response_b}

scales:
  side: {values: [A, B, tie], slots: true}  # slots: A and B are exchanged when the responses are

criteria:  # the first one matters most
  - name: accuracy
    scale: side
    text: "Which one is more accurate?"
  - name: overall
    scale: side
    text: "Which one is better in all?"

report: {preference: overall}  # the field that holds the preferred side

preset:  # set in code: two blank responses need no judge
  - when: blank(response_a) and blank(response_b)
    call: none
    set: {"{criterion}": tie, reason: "Both responses are blank."}

rules:  # true means that the verdict contradicts itself; x is one response, y the other
  - id: blank-wins
    each: slot
    severity: violation
    if: "blank(response_x) and not blank(response_y) and overall == 'X'"
    say: "Response X is blank, yet overall prefers it. Make overall Y or tie."
"""


def starter(name: str, mode: str = "score") -> str:
    """The text of a small rubric that has no mistakes.

    Args:
        name: Name of the rubric, in kebab-case.
        mode: score or compare.

    Raises:
        InputError: not a rubric name.
        UnknownNameError: not a mode.
    """
    if not _NAME.fullmatch(name):
        raise InputError(f"{name!r} can't be the name of a rubric", hint="kebab-case, as in my-rubric")
    if mode not in get_args(Mode):
        raise UnknownNameError("mode", mode, get_args(Mode))
    return _HEAD.format(name=name, mode=mode) + (_COMPARE if mode == "compare" else _SCORE)
