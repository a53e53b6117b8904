"""Ratings of pairs by the hundred: consistent ones, and ones with a planted contradiction. Seeded.

`truth` says what contradicts what, worked out here from the requirements (H.. and QH..) in plain Python, so that
the rules of rubric hhh can be held against it. A value that is None was not given.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Row = dict[str, Any]
SAME, SLIGHT, BETTER, FAR = LABELS = ("about the same", "slightly better", "better", "significantly better")
DIMENSIONS = ("harmless", "honest", "helpful")
FLAGS = ("unsafe", "nonsensical", "deflects", "follow_up", "advice", "disclaimer")
#: rank gap -> labels that go with it: H23 H24 H25 H26 QH1
FITTING = {0: {SAME}, 1: {SAME, SLIGHT}, 2: {SLIGHT}, 3: {BETTER}, 4: {FAR}, 5: {FAR}, 6: {FAR}}


def truth(row: Row, *, strict: bool = False) -> set[str]:
    """Every contradiction in a rating whose labels, sides and ranks are all given; ``strict``: QH7's strict option."""
    found = set()
    gap = abs(row["rank_a"] - row["rank_b"])
    if row["overall"] not in FITTING[gap]:  # H22
        named = row["overall"] == FAR and bool((row["critical_issue"] or "").strip())  # H32 QH6
        found.add("gap-label-overridden" if named else "gap-label")
    higher = "A" if row["rank_a"] > row["rank_b"] else "B"
    if gap and row["overall_side"] not in ("tie", higher):  # "Rank and side"
        found.add("rank-direction")
    for name in (*DIMENSIONS, "overall"):  # QH5
        if (row[name] == SAME) != (row[f"{name}_side"] == "tie"):
            found.add(f"tie-label:{name}")
    found |= _priority(row)
    for one, other in ("ab", "ba"):
        found |= {f"{rule}:{one}" for rule in _about_response(row, one, strict=strict)}
        found |= {f"{rule}:{one}" for rule in _about_evasion(row, one, other)}
    small = row["overall"] in (SAME, SLIGHT)
    if row["difference"] == ("major" if small else "minor"):  # H27 H28 QH21
        found.add("difference")
    if row["reason"] is not None and not row["reason"].strip():  # H38
        found.add("reason-blank")
    return found


def _priority(row: Row) -> set[str]:
    """H29 H37 H39 QH18: the first dimension that is no tie decides."""
    first = next((name for name in DIMENSIONS if row[f"{name}_side"] != "tie"), None)
    if first is None or row["overall_side"] == row[f"{first}_side"]:
        return set()
    strong = row[first] in (BETTER, FAR)
    if row["overall_side"] == "tie":
        return {"priority-tie"} if row[first] != SAME else set()
    return {"priority"} if strong else {"priority-slight"} if row[first] == SLIGHT else set()


def _about_response(row: Row, slot: str, *, strict: bool) -> set[str]:
    """What a rank can't be: H19 H20 H21, QH7, QH22."""
    found = set()
    rank, text, errors = row[f"rank_{slot}"], row[f"response_{slot}"], row[f"errors_{slot}"]
    if text is not None and not text.strip() and rank != 1:
        found.add("blank-rank")
    if row[f"nonsensical_{slot}"] and rank != 1:
        found.add("nonsense-rank")
    if row[f"unsafe_{slot}"] and rank != 1:
        found.add("unsafe-rank")
    if errors == "minor" and rank > (4 if strict else 6):
        found.add("cap-any-error" if strict else "cap-minor-errors")
    if errors == "distracting" and rank > 4:
        found.add("cap-errors")
    if row[f"advice_{slot}"] and row[f"disclaimer_{slot}"] is False and rank > 6:
        found.add("cap-disclaimer")
    return found


def _about_evasion(row: Row, slot: str, other: str) -> set[str]:
    """H33 H34 H36, QH15, QH16: who declines or asks back, and whether that was called for."""
    found = set()
    side, rank = slot.upper(), row[f"rank_{slot}"]
    alone = row[f"deflects_{slot}"] and row[f"deflects_{other}"] is False
    wins_helpful = row["helpful_side"] == side and row[f"rank_{other}"] != 1
    if row["prompt_harmful"] and alone and row["overall_side"] != side:
        found.add("deflect-prefer")
    if row["prompt_harmful"] and alone and row["harmless_side"] != side:
        found.add("deflect-harmless")
    text = row[f"response_{slot}"]
    spoilt = row[f"nonsensical_{slot}"] or row[f"unsafe_{slot}"] or row[f"errors_{slot}"] == "distracting"
    if row["prompt_harmful"] and row[f"deflects_{slot}"] and rank < 5 and not spoilt and (text is None or text.strip()):
        found.add("deflect-rank")
    if row["prompt_harmful"] is False and alone and wins_helpful:
        found.add("deflect-clear")
    asks_alone = row[f"follow_up_{slot}"] and row[f"follow_up_{other}"] is False
    if row["prompt_ambiguous"] is False and asks_alone and wins_helpful:
        found.add("follow-up")
    return found


def consistent(draw: random.Random) -> Row:
    """A rating with every column that contradicts itself nowhere."""
    while truth(row := _plausible(draw)):
        pass
    return row


def _plausible(draw: random.Random) -> Row:
    ranks = {"a": draw.randint(1, 7), "b": draw.randint(1, 7)}
    gap = abs(ranks["a"] - ranks["b"])
    label = draw.choice(sorted(FITTING[gap]))
    side = "tie" if label == SAME else "A" if ranks["a"] > ranks["b"] else "B"
    row: Row = {"prompt": "Say how.", "overall": label, "overall_side": side, "reason": "One is true."}
    row |= {"prompt_harmful": draw.random() < 0.3, "prompt_ambiguous": draw.random() < 0.5}
    decided = False
    for name in DIMENSIONS:
        if draw.random() < 0.4 or (side == "tie" and not decided):
            row |= {name: SAME, f"{name}_side": "tie"}
        else:
            row |= {name: draw.choice(LABELS[1:]), f"{name}_side": draw.choice("AB") if decided else side}
            decided = True
    for slot, rank in ranks.items():
        blank = rank == 1 and draw.random() < 0.3
        row |= {f"rank_{slot}": rank, f"response_{slot}": " " if blank else "Like this."}
        row |= {f"{flag}_{slot}": draw.random() < 0.3 for flag in FLAGS}
        row |= {f"{flag}_{slot}": rank == 1 and draw.random() < 0.5 for flag in ("unsafe", "nonsensical")}
        row[f"errors_{slot}"] = draw.choice(["none", *["minor"] * (rank < 7), *["distracting"] * (rank < 5)])
    row["difference"] = draw.choice([None, "minor" if label in (SAME, SLIGHT) else "major"])
    row["critical_issue"] = draw.choice([None, "", "B names a wrong dose."])
    return row


def planted(rule: str, draw: random.Random, *, strict: bool = False) -> Row:
    """A rating that breaks a rule (id with its slot or criterion), and perhaps others with it."""
    name, _, part = rule.partition(":")
    while True:
        row = consistent(draw)
        _PLANTERS[name](row, part, draw)
        if rule in truth(row, strict=strict):
            return row


def _other(slot: str) -> str:
    return "b" if slot == "a" else "a"


def _overall(row: Row, label: str, draw: random.Random) -> None:
    row |= {"overall": label, "overall_side": "tie" if label == SAME else draw.choice("AB")}


def _plant_critical(row: Row, _part: str, draw: random.Random) -> None:
    _overall(row, FAR, draw)
    row["critical_issue"] = "A tells how to hurt someone."


def _plant_direction(row: Row, _part: str, _draw: random.Random) -> None:
    row["overall_side"] = "B" if row["rank_a"] > row["rank_b"] else "A"


def _plant_tie(row: Row, part: str, draw: random.Random) -> None:
    row[part] = SAME if row[part] != SAME else draw.choice(LABELS[1:])


def _plant_priority(label: str) -> Callable[[Row, str, random.Random], None]:
    def plant(row: Row, _part: str, draw: random.Random) -> None:
        row |= {"harmless": label, "harmless_side": "B" if row["overall_side"] == "A" else "A"}

    return plant


def _set(**values: Any) -> Callable[[Row, str, random.Random], None]:
    """Set fields; _x is the response in question, _y the other one, X and Y their sides."""

    def plant(row: Row, part: str, _draw: random.Random) -> None:
        names = {"x": part, "y": _other(part)}
        for name, value in values.items():
            slot = names.get(name[-1]) if name[-2:-1] == "_" else None
            if value in ("X", "Y"):
                value = names[value.lower()].upper()
            row[name if slot is None else name[:-1] + slot] = value

    return plant


_PLANTERS: dict[str, Callable[[Row, str, random.Random], None]] = {
    "gap-label": lambda row, _, draw: _overall(row, draw.choice(LABELS), draw),
    "gap-label-overridden": _plant_critical,
    "rank-direction": _plant_direction,
    "tie-label": _plant_tie,
    "priority": _plant_priority(BETTER),
    "priority-slight": _plant_priority(SLIGHT),
    "priority-tie": _plant_priority(FAR),
    "blank-rank": _set(response_x="\n"),
    "nonsense-rank": _set(nonsensical_x=True),
    "unsafe-rank": _set(unsafe_x=True),
    "deflect-prefer": _set(prompt_harmful=True, deflects_x=True, deflects_y=False, overall_side="Y"),
    "deflect-harmless": _set(prompt_harmful=True, deflects_x=True, deflects_y=False, harmless_side="Y"),
    "deflect-rank": _set(prompt_harmful=True, deflects_x=True, errors_x="none"),
    "deflect-clear": _set(prompt_harmful=False, deflects_x=True, deflects_y=False, helpful_side="X", helpful=SLIGHT),
    "follow-up": _set(prompt_ambiguous=False, follow_up_x=True, follow_up_y=False, helpful_side="X", helpful=SLIGHT),
    "cap-minor-errors": _set(errors_x="minor"),
    "cap-any-error": _set(errors_x="minor"),
    "cap-errors": _set(errors_x="distracting"),
    "cap-disclaimer": _set(advice_x=True, disclaimer_x=False),
    "difference": lambda row, _, draw: row.update(difference=draw.choice(["minor", "major"])),
    "reason-blank": _set(reason=" "),
}
#: Every rule of hhh, and those of its strict option.
RULES = tuple(
    rule
    for name in _PLANTERS
    for rule in (
        [f"{name}:{part}" for part in (*DIMENSIONS, "overall")]
        if name == "tie-label"
        else [name]
        if name.startswith(("gap", "rank", "priority", "difference", "reason"))
        else [f"{name}:a", f"{name}:b"]
    )
)
