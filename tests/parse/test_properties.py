"""What holds for every reply: no wrong numbers, whatever is cut, wrapped or broken."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenhand.parse import patiently, read
from evenhand.parse.exact import Exact
from evenhand.verdict import Failure, Reply, ToolCall
from reading import choice, field_from, outcomes, rating, read_text, text

FIELDS = (rating(high=10), text(), choice("side", "A", "B", "tie", "about the same"))
NUMBER = FIELDS[:2]
#: Pieces that look like structure to a careless reader.
TRAPS = (
    '"rating": 5', '{"rating": 5}', '", "rating": 5, "x": "', "Rating: 5", "[[5]]", "<rating>5</rating>", "评分：5",
    "</think>", "<think>", "```", "```json", "[RESULT] 5", '"', "'", "\\", "{", "}", "[", "]", ",", ":", "\n", "//",
    "#", "/*", "5", "side: B", "\\u", "“", "”", " ", "{'rating': 5}", '{"rating":', "<reason>", "\x00", "\ud83d", "é中",
)  # fmt: skip
MIXED = st.lists(st.one_of(st.sampled_from(TRAPS), st.text(max_size=8)), max_size=8).map("".join)
#: Prose in which nothing is labelled and nothing looks like structure.
PROSE = st.text(alphabet="abc XYZ 12.\n", max_size=30).map(lambda s: f"Well {s} so\n")


@st.composite
def verdicts(draw: st.DrawFn) -> dict[str, Any]:
    """A valid verdict with other keys around it, in any order."""
    pairs = [
        ("rating", draw(st.integers(1, 10))),
        ("reason", draw(MIXED)),
        ("side", draw(st.sampled_from(["A", "B", "tie", "about the same"]))),
        ("note", draw(MIXED)),
        ("parts", {"style": {"rating": draw(st.integers(1, 10))}, "list": [draw(MIXED)]}),
        (draw(MIXED) + "!", None),
    ]
    chosen = dict(pairs[:3] + draw(st.lists(st.sampled_from(pairs[3:]), max_size=3, unique_by=lambda p: p[0])))
    return {key: chosen[key] for key in draw(st.permutations(list(chosen)))}


@st.composite
def serialised(draw: st.DrawFn) -> tuple[dict[str, Any], str]:
    """A verdict and its JSON, under any spacing."""
    verdict = draw(verdicts())
    indent = draw(st.sampled_from([None, 0, 2, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")]))
    return verdict, json.dumps(verdict, indent=indent, separators=separators, ensure_ascii=draw(st.booleans()))


@st.composite
def wrapped(draw: st.DrawFn) -> tuple[dict[str, Any], str, str]:
    """A verdict, what stands before its JSON, and the JSON with what stands after it."""
    verdict, body = draw(serialised())
    thought = draw(MIXED).replace("think>", "")
    before = draw(st.sampled_from(["", f"<think>{thought}</think>\n"])) + draw(st.one_of(st.just(""), PROSE))
    fence = draw(st.sampled_from([("", ""), ("```json\n", "\n```"), ("```\n", "\n```\n"), ("", "\n")]))
    return verdict, before + fence[0], body + fence[1] + draw(st.one_of(st.just(""), PROSE))


@settings(deadline=None)
@given(st.one_of(st.text(), MIXED, serialised().map(lambda s: s[1])), st.sampled_from([None, "length", "stop"]))
def test_never_raises_and_never_off_scale(reply: str, finish: str | None) -> None:
    """Any text whatever gives a legal value or a failure for every field."""
    reading = read(Reply(text=reply, finish=finish), FIELDS)
    assert set(reading.fields) == {"rating", "reason", "side"}
    number, side = reading.fields["rating"], reading.fields["side"]
    assert (number.failure is None) == (type(number.value) is int and 1 <= number.value <= 10)
    assert (side.failure is None) == (side.value in ("A", "B", "tie", "about the same"))


@settings(deadline=None)
@given(wrapped())
def test_wrapped_json_comes_back(case: tuple[dict[str, Any], str, str]) -> None:
    """Valid JSON in a fence, prose or behind reasoning is read exactly, and not called repaired."""
    verdict, before, after = case
    reading = read(Reply(text=before + after), FIELDS)
    assert outcomes(reading) == {key: verdict[key] for key in ("rating", "reason", "side")}
    assert not reading.repaired


@settings(deadline=None)
@given(wrapped(), st.data())
@example(({"rating": 10, "reason": "", "side": "A"}, "", '{"reason": "", "side": "A", "rating": 10}'), None)
def test_cut_json_is_never_misread(case: tuple[dict[str, Any], str, str], data: st.DataObject | None) -> None:
    """A reply cut anywhere gives the true values or none, whichever byte was the last."""
    verdict, before, after = case
    whole = (before + after).encode("utf-8", "surrogatepass")
    start = len(before.encode("utf-8", "surrogatepass"))
    cuts = range(start, len(whole)) if data is None else [data.draw(st.integers(0, len(whole)))]
    for cut in cuts:
        piece = whole[:cut].decode("utf-8", "replace")
        reading = read(Reply(text=piece), FIELDS)
        for name in ("rating", "reason", "side"):
            outcome = reading.fields[name]
            lost = name == "reason" and "\ufffd" in piece  # half characters do not survive being bytes
            assert lost or outcome.failure is not None or outcome.value == verdict[name], (piece, name)


@settings(max_examples=20, deadline=None)
@given(serialised())
def test_every_cut_of_plain_json_is_truncated_or_true(case: tuple[dict[str, Any], str]) -> None:
    """Plain JSON cut at every place: the value is true, truncated, or not told for certain."""
    verdict, body = case
    honest = {Failure.TRUNCATED, Failure.UNPARSEABLE}
    for cut in range(1, len(body)):
        outcome = read(Reply(text=body[:cut]), NUMBER).fields["rating"]
        assert outcome.failure in honest or outcome.value == verdict["rating"], (body[:cut], outcome)


@settings(deadline=None)
@given(
    st.integers(1, 10), st.sampled_from(["**Rating: {}**", "[[{}]]", "Rating: [[{}]]", "<rating>{}</rating>", "**{}**"])
)
def test_cut_marks_are_never_misread(number: int, form: str) -> None:
    """A rating inside marks that are not closed is not taken."""
    whole = form.format(number)
    for cut in range(len(whole)):
        value = read_text(whole[:cut], *NUMBER)["rating"]
        assert value == number or str(value).startswith("!")


@settings(deadline=None)
@given(st.integers(1, 10), PROSE, PROSE, st.sampled_from(["Rating: {}", "**Score:** {}/10", "评分：{}", "[RESULT] {}"]))
def test_prose_around_a_rating_changes_nothing(number: int, before: str, after: str, form: str) -> None:
    """Text without labels around a labelled rating leaves it as it is."""
    assert read_text(f"{before}{form.format(number)}\n{after}", *NUMBER)["rating"] == number


@settings(deadline=None)
@given(PROSE)
def test_prose_alone_is_no_rating(prose: str) -> None:
    """Numbers in prose are never ratings."""
    assert read_text(prose, *NUMBER)["rating"] == "!no_rating"


@settings(deadline=None)
@given(st.integers(1, 10), PROSE, st.booleans(), st.data())
def test_a_damaged_sign_never_changes_the_rating(number: int, reason: str, first: bool, data: st.DataObject) -> None:
    """JSON with one sign of its structure left out or doubled gives the true rating or none."""
    pairs = [("rating", number), ("reason", reason)]
    body = json.dumps(dict(pairs if first else pairs[::-1]))
    at = data.draw(st.sampled_from([n for n, sign in enumerate(body) if sign in '{}",:']))
    for damaged in (body[:at] + body[at + 1 :], body[:at] + body[at] + body[at:]):
        outcome = read(Reply(text=damaged), NUMBER).fields["rating"]
        assert outcome.failure is not None or outcome.value == number, damaged


@settings(deadline=None)
@given(
    st.integers(1, 10),
    st.sampled_from(
        ["½", "²", "\u0301", "%", "+", "^", "±", "×", "÷", "‰", "$", "#", "≈", "⅔", "٣", "₂", "\u20e3", "°"]
    ),
    st.sampled_from(["", " ", "**"]),
)
def test_a_sign_behind_a_number_is_never_ignored(number: int, sign: str, gap: str) -> None:
    """A number with a sign behind it that changes what it says is not read as the number."""
    assert str(read_text(f"Score: {number}{gap}{sign}", *NUMBER)["rating"]).startswith("!")


@settings(deadline=None)
@given(
    st.integers(1, 10),
    st.integers(1, 200),
    st.sampled_from(["{}/{}", "**{}**/**{}**", "{} out of {}", "{} of {}", "{} points (out of {})", "{} (max {})"]),
)
def test_a_denominator_is_always_compared(number: int, denominator: int, form: str) -> None:
    """A rating with a denominator counts only where that is the top of the scale."""
    expected = number if denominator == 10 else "!scale_mismatch"
    assert read_text("Score: " + form.format(number, denominator), *NUMBER)["rating"] == expected


@settings(deadline=None)
@given(st.integers(1, 10), st.integers(1, 10), PROSE, st.sampled_from(['"{}"', "“{}”", "'{}'", "«{}»", "「{}」"]))
def test_a_quotation_never_counts(own: int, quoted: int, prose: str, quotes: str) -> None:
    """A label in a quotation neither competes with the judge's own nor stands for it."""
    said = f"{prose}The answer says {quotes.format(f'Score: {quoted}')} here.\n"
    assert read_text(said, *NUMBER)["rating"] == "!no_rating"
    assert read_text(f"{said}Score: {own}\n", *NUMBER)["rating"] == own


#: Fields of every kind; numbers that are listed, whole, or any.
KINDS = (
    rating(high=10), rating("share", low=0.5, high=3.5, integer=False),
    field_from({"name": "third", "labels": [0, 0.5, 1]}),
    choice("side", "A", "B", "tie"), choice("level", "low", "high", nullable=True),
    field_from({"name": "safe", "kind": "bool"}), text(), field_from({"name": "found", "kind": "list"}),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([*range(-1, 13), 0.5, 1.0, 8.0, 1e1, 10**30, True, False, None, "A", "a", " B ", "tie", "8"]),
    st.sampled_from([["x"], [], [1], {}, {"type": "int"}, "...", "low", "<n>", "\x7f", "\u2028", "\\frac", '"side"']),
    MIXED,
)  # fmt: skip


@st.composite
def nearly_exact(draw: st.DrawFn) -> tuple[tuple[Any, ...], str]:
    """Some fields, and an object with just about these keys: some twice, escaped, in capitals, or missing."""
    fields = tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4, unique_by=lambda f: f.name)))
    keys = [field.name for field in fields] * draw(st.sampled_from([1, 1, 1, 1, 2]))
    keys = [draw(st.sampled_from([k] * 12 + [k.upper(), f" {k}", k + "s", ""])) for k in draw(st.permutations(keys))]
    ascii_only = draw(st.booleans())
    written = [json.dumps(key) for key in keys]
    written = [draw(st.sampled_from([w] * 9 + [w.replace("e", "\\u0065"), w.replace("/", "\\/")])) for w in written]
    pairs = (f"{key}: {json.dumps(draw(VALUES), ensure_ascii=ascii_only)}" for key in written)
    edge = st.sampled_from(["", "", "", "\n", " ", "\ufeff", "\xa0", "x"])
    return fields, draw(edge) + "{" + draw(st.sampled_from([", ", ",\n  "])).join(pairs) + "}" + draw(edge)


@settings(deadline=None, max_examples=1500)
@given(nearly_exact(), st.booleans(), st.sampled_from([None, "stop", "content_filter"]))
@example((KINDS[:1], '{"rating": 8, "rating": 3}'), False, None)
@example((KINDS[:1], '{"rating": 8, "r\\u0061ting": 3}'), False, None)
@example((KINDS[:2], '{"rating": 8, "share": 3.50000000000000000001}'), False, None)
@example((KINDS[6:7], '{"reason": "I decline."}'), False, "content_filter")
def test_a_reply_to_the_letter_reads_as_any_other(
    case: tuple[tuple[Any, ...], str], called: bool, finish: str | None
) -> None:
    """What is read in one step is read alike by the reader of everything else."""
    fields, said = case
    reply = Reply(text=None if called else said, tool_calls=(ToolCall("f", said),) if called else (), finish=finish)
    assert repr(read(reply, fields, function="f")) == repr(patiently(reply, fields, "f", ended=False))


def test_most_replies_are_read_in_one_step() -> None:
    """A whole verdict of the usual kinds is; so the test above does not compare the patient reader with itself."""
    assert Exact(FIELDS).read('{"rating": 8, "reason": "中 \\"so\\" \\n", "side": "tie"}') is not None
