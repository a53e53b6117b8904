"""Free text: ratings and verdicts that carry a label, and the texts beside them.

Only what is labelled counts. A statement of the scale ("Rating (1-5):", "Score: 5 = excellent"), a line of a
rubric and a bare number in a sentence are no ratings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evenhand.parse.asked import Asked
from evenhand.parse.corrections import corrected_lines, put_instead
from evenhand.parse.leading import APART, OPENERS, UNIT, leading_number, states_other_scale
from evenhand.parse.quoted import Quotations, is_example, quotations
from evenhand.parse.values import BETWEEN, SIDE, failed, menu, over, read_words
from evenhand.rubric.model import OutputField
from evenhand.scale import plain
from evenhand.verdict import Failure, FieldOutcome

_LINE = 160
_LONGEST_LABEL = 20
_QUALIFIERS = r"(?P<my>(?:\b(?:the|my|final|overall|total)\s+){0,3})"
_QUALIFIERS_ZH = r"(?:(?:我|给出|我给出|最终|总体|综合|总|整体)的?)?"
_RATING, _RATING_ZH = "rating|score", "评分|分数|得分"
_VERDICT, _VERDICT_ZH = "verdict|judge?ment|decision|winner|preference|choice", "结论|判定|裁决|评判结果|选择"
_REASON = "reason|reasoning|reasons|explanation|rationale|justification|feedback|理由|原因|解释|说明"
#: Before a label stands the start of a line, marks and numbering aside, or the end of a clause.
_BEFORE = re.compile(r"(?:\A|\n|\s-\s|[.!?;:,|–—。！？；：，、)\]}）】({（【<>\"'“‘])[\s*_#>\"'“‘\-•|+({\[\\]*\Z")
_CLOSERS = r"[*_\"'”’`\\)\]]{0,6}"
_ASIDE = rf"(?:\s{{0,3}}[(（](?P<aside>[^()（）\n]{{0,40}})[)）])?{_CLOSERS}"
_AFTER = re.compile(
    rf"(?P<shut>{_CLOSERS}){_ASIDE}"
    rf"(?:[ \t]{{0,9}}(?:[:：=]|】[:：]?){_CLOSERS}|(?P<is>[ \t]{{1,3}}is\b|为|是)[ \t]?[:：]?|(?=[ \t]{{0,99}}\n))"
)
_NUMBERED_MARKS = re.compile(r"\[\[([^\[\]\n]{0,40})(\]\]|\]?\s{0,99}\Z)")
_RESULT = re.compile(r"\[RESULT\]\s{0,99}[:：]?[ \t]{0,99}", re.IGNORECASE)
_LABEL_END = re.compile(
    r"[*_\"'”’`)\]]*\s*(?:\Z|[.,;:!(，。；：！、–—|\"<}]|-\s|(?:is|because|since|as|wins)\b)", re.IGNORECASE
)
_WIDE = re.compile(r"[^\S\n]{9,}+")
_VISIBLE = re.compile(r"\S")
_NUMBER_FIRST = re.compile(r"[\W_]*[0-9]")
#: Every sign that ends a line, as the one that does so elsewhere here; the length stays.
_LINE_ENDS = dict.fromkeys(map(ord, "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"), "\n")
_WEAK = (Failure.WRONG_TYPE, Failure.NO_RATING)


def ratings(text: str, wanted: OutputField, asked: Asked, *, ended: bool, quotes: bool = True) -> list[FieldOutcome]:
    """What the labels in a text say of one value field; several outcomes may compete.

    Words that are no value ("Score: see below") count only where nothing better is found, quotations never.

    Args:
        text: The text to look at.
        wanted: The value field.
        asked: All fields; labels like "Rating" count only where ``wanted`` is their one value field.
        ended: The text is known to be cut off, so that a number at its very end is not certain.
        quotes: Quotes in the text are those of prose, so that what they enclose does not count.
    """
    alone = asked.only is wanted
    text = text.translate(_LINE_ENDS)
    quoted = quotations(text) if quotes else Quotations(())
    outcomes = [*_after_labels(text, quoted, wanted, alone=alone, ended=ended), *_tagged(text, quoted, wanted)]
    if alone:
        outcomes += [*_in_marks(text, quoted, wanted), *_results(text, quoted, wanted, ended=ended)]
    definite = [o for o in outcomes if o.failure not in _WEAK or _NUMBER_FIRST.match(o.detail)]
    return definite or outcomes[:1]


def corrections(text: str, wanted: OutputField, asked: Asked) -> list[FieldOutcome]:
    """The values that lines as "Correction: 3" put in place of one that was found; only for a lone value field."""
    if asked.only is not wanted or wanted.scale is None:
        return []
    text = text.translate(_LINE_ENDS)
    quoted = quotations(text)
    return [o for m, o in corrected_lines(wanted.scale, text) if not quoted.hold(m.start("value"), m.end("value"))]


def nothing_but(text: str, wanted: OutputField) -> FieldOutcome | None:
    """The outcome of a text that is nothing but the value, marks around it aside; else None."""
    bare = text.strip().strip("*_`\"'“”‘’。 \t\n") if len(text) <= _LINE else ""
    if not bare or "\n" in bare:
        return None
    outcome = read_words(wanted, bare)
    word = outcome.failure is Failure.UNKNOWN_LABEL and len(bare) <= _LONGEST_LABEL and not re.search(r"\s", bare)
    if outcome.failure is Failure.WRONG_TYPE or (outcome.failure is Failure.UNKNOWN_LABEL and not word):
        return None
    return failed(Failure.TRUNCATED, text) if _unclosed(text) else outcome


def explained(text: str, wanted: OutputField, asked: Asked) -> list[FieldOutcome]:
    """The texts that stand behind the label of a text field, each up to the next label."""
    tagged = [FieldOutcome(said.strip()) for said in _between_tags(text, wanted.name)]
    if tagged:
        return tagged
    lines = text.translate(_LINE_ENDS)
    own = re.compile(_line_label(_text_names(wanted, asked)), re.IGNORECASE)
    every = re.compile(_line_label("|".join(_names_on_lines(asked))), re.IGNORECASE)
    found = []
    for match in own.finditer(lines):
        end = every.search(lines, match.end())
        found.append(FieldOutcome(text[match.end() : end.start() if end else len(text)].strip()))
    return [o for o in found if o.value]


def _between_tags(text: str, name: str) -> Iterator[str]:
    """What stands between an opening tag and the next closing one."""
    start = None
    for tag in re.finditer(rf"<(?P<close>/?){re.escape(name)}>", text, re.IGNORECASE):
        if not tag["close"]:
            start = tag.end() if start is None else start
        elif start is not None:
            yield text[start : tag.start()]
            start = None


def _after_labels(
    text: str, quoted: Quotations, wanted: OutputField, *, alone: bool, ended: bool
) -> Iterator[FieldOutcome]:
    labels: list[tuple[int, re.Match[str]]] = []
    for match in label_of(wanted, alone).finditer(text):
        after = _AFTER.match(text, match.end())
        if after is None or quoted.hold(match.start(), after.end()) or is_example(text, match.start()):
            continue
        if (after["is"] or "").strip() == "is" and not match["my"]:
            continue
        begins = match["my"] or _BEFORE.search(text, max(0, match.start() - 40), match.start())
        if begins or (labels and _value_only(text[labels[-1][1].end() : match.start()], wanted)):
            labels.append((match.start(), after))
    ends = [*(start for start, _ in labels[1:]), len(text)]
    for (start, after), end in zip(labels, ends, strict=False):
        outcome = _behind(text, start, after, max(end, after.end()), wanted, ended=ended)
        if outcome is not None:
            yield outcome


def _value_only(said: str, wanted: OutputField) -> bool:
    """Whether a value, and nothing else, stands between two labels."""
    if len(said) > _LINE or "\n" in said:
        return False
    if wanted.scale is not None and wanted.scale.numeric:
        return not re.search(r"[^\W\d_]", UNIT.sub("", said))
    return nothing_but(said, wanted) is not None


def _behind(
    text: str, label: int, after: re.Match[str], end: int, wanted: OutputField, *, ended: bool
) -> FieldOutcome | None:
    """What stands behind a label and before ``end``, on its line or alone on the next one."""
    line, stop = _line(text, after.end(), end)
    last = stop == len(text)
    if not line.strip(OPENERS):
        rest = _VISIBLE.search(text, stop)
        if rest is None:
            return None if after["aside"] is not None else failed(Failure.TRUNCATED, text[-_LINE:].strip())
        below, _ = _line(text, rest.start(), min(len(text), rest.start() + _LINE + 1))
        return nothing_but(below.strip().rstrip(","), wanted)
    opened = text[max(label - 40, 0) : label].rpartition("\n")[2] + text[label : after.end()]
    # The end of the text is the end of the value only where nothing is left open.
    unsure = last and (ended or any(mark in after["shut"] for mark in "\"'”’") or _unclosed(opened + line))
    scale = wanted.scale
    if scale is not None and scale.numeric:
        if after["aside"] and states_other_scale(scale, after["aside"], before=True):
            return failed(Failure.SCALE_MISMATCH, f"{after[0]}{line}".strip())
        return leading_number(scale, line, last=last, unsure=unsure)
    return _leading_label(wanted, line, unsure=unsure)


def _line(text: str, start: int, end: int) -> tuple[str, int]:
    """A line, wide gaps narrowed, with a denominator that stands on the next one; and where it stops in the text."""
    line = text[start:end].partition("\n")[0]
    stop = start + len(line)
    line = _WIDE.sub(" ", line)[: _LINE + 1]
    if len(line) <= _LINE and stop < len(text) and text[stop] == "\n" and (below := APART.match(text, stop)):
        return f"{line} {below[0].strip()}", below.end()
    return line[:_LINE], stop if len(line) <= _LINE else start + _LINE


def _leading_label(wanted: OutputField, line: str, *, unsure: bool) -> FieldOutcome:
    """The listed value a line begins with, as a whole token."""
    words = plain(line).strip()
    outcome = read_words(wanted, words)
    if outcome.failure not in (Failure.UNKNOWN_LABEL, Failure.WRONG_TYPE):
        return failed(Failure.TRUNCATED, words) if unsure else outcome
    scale = wanted.scale
    either = "|".join(re.escape(o).replace(r"\ ", r"\s+") for o in (menu(scale) if scale else ("true", "false")))
    side = f"{SIDE}?" if scale is not None and scale.slots else ""
    bare = words.lstrip(OPENERS)
    if re.match(rf"{side}(?:{either})\s*(?:[/,;|]|{BETWEEN})\s*{side}(?:{either})(?!\w)", bare, re.IGNORECASE):
        return failed(Failure.AMBIGUOUS, words)
    one = re.match(rf"{side}(?P<label>{either})(?!\w)", bare, re.IGNORECASE)
    if one and _LABEL_END.match(bare, one.end()):
        first, behind = read_words(wanted, one["label"]), bare[one.end() :]
        aside = re.match(rf"[*_\"'`]{{0,6}}\s*\(\s*{side}(?P<label>{either})\s*\)", behind, re.IGNORECASE)
        second = read_words(wanted, aside["label"]) if aside else None
        if scale is not None and second is None:
            second = put_instead(scale, behind.lstrip(" *_(（\"'`"))
        rival = second is not None and second.failure is None and second.value != first.value
        return failed(Failure.AMBIGUOUS, words) if rival else first
    return failed(outcome.failure if len(words.split()) <= 3 else Failure.NO_RATING, words)


def _tagged(text: str, quoted: Quotations, wanted: OutputField) -> Iterator[FieldOutcome]:
    """Values in a tag named like the field."""
    name = re.escape(wanted.name)
    for match in re.finditer(
        rf"<{name}>([^<>]{{0,{_LINE}}})(</{name}>|<?/?\w{{0,40}}\s{{0,99}}\Z)?", text, re.IGNORECASE
    ):
        if match[2] is None or quoted.hold(*match.span()):
            continue
        whole = match[2].endswith(">")
        yield _divided(wanted, match[1], text, match.end()) if whole else failed(Failure.TRUNCATED, match[0])


def _divided(wanted: OutputField, said: str, text: str, end: int) -> FieldOutcome:
    """A value in a tag or brackets; a denominator behind them belongs to it."""
    divisor = APART.match(text, end)
    if divisor and wanted.scale is not None and wanted.scale.numeric and not over(wanted.scale, divisor["number"]):
        return failed(Failure.SCALE_MISMATCH, f"{said}{divisor[0]}")
    return read_words(wanted, said)


def _in_marks(text: str, quoted: Quotations, wanted: OutputField) -> Iterator[FieldOutcome]:
    """Values in double brackets."""
    for match in _NUMBERED_MARKS.finditer(text):
        if not quoted.hold(*match.span()):
            closed = match[2] == "]]"
            yield _divided(wanted, match[1], text, match.end()) if closed else failed(Failure.TRUNCATED, match[0])


def _results(text: str, quoted: Quotations, wanted: OutputField, *, ended: bool) -> Iterator[FieldOutcome]:
    """Values behind the mark [RESULT]."""
    for match in _RESULT.finditer(text):
        if quoted.hold(*match.span()):
            continue
        line = text[match.end() : match.end() + _LINE].partition("\n")[0]
        last = match.end() + len(line) == len(text)
        if not line.strip() and last:
            yield failed(Failure.TRUNCATED, match[0])
        elif wanted.scale is not None and wanted.scale.numeric:
            outcome = leading_number(wanted.scale, line, last=last, unsure=last and ended)
            if outcome is not None:
                yield outcome
        else:
            yield _leading_label(wanted, line, unsure=last and ended)


def label_of(wanted: OutputField, alone: bool) -> re.Pattern[str]:
    """Finds the labels of a value field; "Rating" and the like only where it is the one value asked for."""
    name = _human(wanted.name)
    names = [rf"(?:(?:score|rating|grade|verdict)\s+for\s+)?{name}(?:\s+(?:score|rating|verdict))?"]
    names_zh = [rf"{name}\s{{0,3}}的?\s{{0,3}}(?:评分|得分|分数|结论)"]
    if alone:
        names.append(_RATING)
        names_zh.append(_QUALIFIERS_ZH + f"(?:{_RATING_ZH})")
        if wanted.scale is not None and not wanted.scale.numeric:
            names.append(_VERDICT)
            names_zh.append(_QUALIFIERS_ZH + f"(?:{_VERDICT_ZH})")
    return re.compile(rf"(?<!\w)(?:(?:{'|'.join(names_zh)})|{_QUALIFIERS}(?:{'|'.join(names)})(?!\w))", re.IGNORECASE)


def _human(name: str) -> str:
    """A field name as a pattern: spaces, hyphens and underscores are alike."""
    return r"[\s_-]{1,3}".join(re.escape(part) for part in re.split(r"[\s_-]+", name.strip("_- ")) if part) or r"(?!)"


def _text_names(wanted: OutputField, asked: Asked) -> str:
    names = [_human(wanted.name)]
    about = wanted.criterion or wanted.name
    names += [rf"reasoning\s+for\s+{_human(about)}", rf"{_human(about)}\s*的理由"]
    return "|".join([*names, _REASON] if len(asked.texts) == 1 else names)


def _names_on_lines(asked: Asked) -> Iterator[str]:
    for field in asked.fields:
        if field.kind == "text":
            yield _text_names(field, asked)
        else:
            yield rf"(?:score\s+for\s+)?{_human(field.name)}(?:\s*的?(?:评分|得分))?"
    if asked.only is not None:
        yield f"{_RATING}|{_RATING_ZH}|{_VERDICT}|{_VERDICT_ZH}|" + r"\[RESULT\]"


def _line_label(names: str) -> str:
    ends = r"(?:[:：][*_]{0,3}|】[:：]?|(?<=\])[ \t])[ \t]*"
    return rf"(?m:^)[ \t*_#>\"【-]{{0,6}}(?:{names})[*_\"]{{0,3}}[ \t]{{0,3}}{ends}"


def _unclosed(line: str) -> bool:
    """Whether marks opened on a line are not closed on it."""
    odd = line.count("**") % 2 or line.count("`") % 2
    return bool(odd or line.count("[") > line.count("]") or line.count("(") > line.count(")"))
