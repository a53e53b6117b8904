"""Small rubrics as text, and short ways to read them."""

from __future__ import annotations

from evenhand.errors import Problem
from evenhand.rubric.lint import lint
from evenhand.rubric.load import parse_rubric
from evenhand.rubric.model import Rubric
from evenhand.rules import check_expression
from evenhand.scale import Value

TEN_LINES = """\
rubric: short
mode: score
item:
  required: {question: text, answer: text}
criteria:
  - name: truth
    text: Is it true?
    scale: {range: [1, 5], anchors: {1: wrong, 5: right}}
"""

PAIR = """\
rubric: pair
mode: compare
item:
  required: {prompt: text, response_a: text, response_b: text}
scales:
  side: {values: [A, B, tie], slots: true}
  rank: {range: [1, 7]}
criteria:
  - {name: safe, text: Which is safer?, scale: side}
  - {name: overall, text: Which is better?, scale: side}
output:
  short: [rank_x, "{criterion}"]
  fields:
    - each: slot
      fields:
        - {name: reason_x, type: text, text: What is good about X and not about Y}
        - {name: rank_x, scale: rank}
    - each: criterion
      fields:
        - {name: "note_{criterion}", type: text}
        - {name: "{criterion}", scale: criterion}
preset:
  - {each: slot, when: blank(response_x), set: {rank_x: 1, overall: Y, reason_x: "Blank, so Y wins."}}
  - {when: blank(response_a) and blank(response_b), call: none, set: {"{criterion}": tie}}
let: {gap: abs(rank_a - rank_b)}
rules:
  - {id: rank, each: slot, if: "rank_x > rank_y and overall == 'Y'",
     say: "{X} ranks {rank_x}, {Y} ranks {rank_y}; make rank_x low or overall X."}
  - {id: tied, each: criterion, severity: warning, if: "{criterion} == 'tie' and gap > 3",
     say: "{criterion} is '{{criterion}}' but {gap} apart"}
report: {preference: overall}
"""

SCALED = """\
rubric: scaled
mode: score
item:
  required: {question: text, answer: text}
options:
  scale: {default: 0-10, values: [0-10, 1-5]}
  detail: {default: examples, values: [bare, anchors, examples]}
  quotes: {default: false}
  style: {default: plain, values: [plain, 2]}
criteria:
  - name: truth
    text: Is it true?
    weight: 0.5
    scale: {0-10: {0: wrong, 10: right}, 1-5: {1: wrong, 2-4: in part, 5: right}}
    examples:
      0-10: [{at: 0, question: Why?, answers: [""]}, {at: 10, question: "=", answers: [so, thus], note: both}]
      1-5: [{at: 1, question: Why?, answers: [""]}]
  - {name: style, text: Is it clear?, weight: 0.5, scale: {0-10: {}, 1-5: {}}}
output:
  fields:
    - {name: passages, needs: quotes, type: list, of: text}
    - {each: criterion, unless: style=2, fields: [{name: "why_{criterion}", type: text}]}
    - {each: criterion, fields: [{name: "{criterion}", scale: criterion}]}
preset:
  - {when: blank(answer), call: none, set: {"{criterion}": low}}
let:
  spare: {value: scale_max - truth, needs: scale=1-5}
  all: {value: count(passages), needs: quotes}
rules:
  - {id: bottom, if: "truth == scale_min and style > scale_min", say: "truth {truth} is the bottom {scale_min}"}
"""


def problems(text: str) -> list[Problem]:
    """All mistakes, expressions included."""
    return lint(text, "r.yaml", check_expression=check_expression)


def rubric(text: str, **options: Value) -> Rubric:
    """The concrete rubric, expressions checked."""
    return parse_rubric(text, file="r.yaml", options=options, check_expression=check_expression)


def changed(text: str, old: str, new: str) -> str:
    """The text with one piece replaced; the piece must be there once."""
    assert text.count(old) == 1, old
    return text.replace(old, new)
