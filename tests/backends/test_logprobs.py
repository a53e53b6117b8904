"""From token probabilities to distributions: recorded shapes of several servers, and whatever else may come."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand.backend import Request
from evenhand.backends.http_errors import Fault
from evenhand.backends.logprobs import distributions, lessen, within
from evenhand.parse import read
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale, Value
from evenhand.verdict import Reply, ToolCall

TEN = OutputField("score", "scale", scale=Scale("", "ordinal", low=0, high=10))
FIVE = OutputField("score", "scale", scale=Scale("", "ordinal", low=1, high=5))
SIDE = OutputField("side", "scale", scale=Scale("", "nominal", values=("A", "B", "tie"), slots=True))
GRADE = OutputField(
    "grade", "scale", scale=Scale("", "ordinal", values=("about the same", "slightly better", "slightly worse"))
)
QUALITY = OutputField("quality", "scale", scale=Scale("", "ordinal", values=("good", "good enough", "bad")))
SAFE = OutputField("safe", "bool")
REASON = OutputField("reason", "text", required=False)

#: A token: its text, its probability, and the others at its place.
Made = tuple[str, float, dict[str, float]]


def entry(made: Made | str) -> dict[str, Any]:
    """A token as OpenAI's interface lists it; a lone text is certain."""
    token, p, others = (made, 1.0, {}) if isinstance(made, str) else made

    def told(text: str, q: float) -> dict[str, Any]:
        return {"token": text, "bytes": list(text.encode()), "logprob": math.log(q) if q else -9999.0}

    return {**told(token, p), "top_logprobs": [told(token, p), *(told(t, q) for t, q in others.items())]}


def asked(*fields: OutputField) -> Request:
    return Request(({"role": "user", "content": "?"},), "schema", fields=fields)


def spread(
    fields: Sequence[OutputField], *tokens: Made | str, reply: Reply | None = None
) -> dict[str, tuple[dict[Value, float], float]]:
    """Field -> its probabilities above 0, rounded, and the missing mass, of a reply that is its tokens."""
    entries = [entry(made) for made in tokens]
    reply = reply or Reply(text="".join(e["token"] for e in entries))
    found = distributions(reply, {"content": entries}, asked(*fields))
    return {
        name: ({v: round(p, 4) for v, p in d.probabilities.items() if p}, round(d.missing_mass, 4))
        for name, d in found.items()
    }


@pytest.mark.parametrize(
    ("before", "token", "after", "others"),
    [
        ('{"score": ', "7", "}", {"8": 0.2, "6": 0.1, "x": 0.05}),
        ('{"score":', " 7", "}", {" 8": 0.2, "6": 0.1, " x": 0.05}),
        ('{"score', '": 7', "}", {'": 8': 0.2, '":6': 0.1, '": "': 0.05}),
        ('{"score": ', "7}", "", {"8}": 0.2, "6": 0.1, "[": 0.05}),
        ('{"score": ', "7,", ' "reason": "8 of 10"}', {"8,": 0.2, "6\n": 0.1, "7.5": 0.05}),
        ('{"score": "', "7", '"}', {"8": 0.2, "6": 0.1, "seven": 0.05}),
        ('{"reason": "score: 3 or 7?", "score": ', "7", "}", {"8": 0.2, "6": 0.1, "": 0.05}),
        ("Reason: It names 7 cities.\nScore: ", "7", "\n", {"8": 0.2, "6": 0.1, "N": 0.05}),
        ("Rating: [[", "7", "]]", {"8": 0.2, "6": 0.1, "]]": 0.05}),
        ("Score:", " 7", "/10", {" 8": 0.2, " 6": 0.1, " **": 0.05}),
        ("**Score**: ", "7.0", "", {"8.0": 0.2, "6": 0.1, "6.5": 0.05}),
        ("<score>", "7", "</score>", {"8": 0.2, "6": 0.1, "<": 0.05}),
    ],
)
def test_one_token(before: str, token: str, after: str, others: dict[str, float]) -> None:
    """A value of one token, alone or glued to what is around it, in JSON and in labelled lines."""
    tokens = [piece for piece in (before, (token, 0.5, others), after) if piece]
    found = spread([TEN, REASON], *tokens)
    assert found == {"score": ({7: 0.625, 8: 0.25, 6: 0.125}, 0.2)}


def test_several_tokens() -> None:
    """A value of several tokens has the product along its path; a value that ends earlier has what ends it there."""
    found = spread([TEN], '{"score": ', ("1", 0.6, {"7": 0.3}), ("0", 0.5, {"}": 0.25, ",": 0.125, "5": 0.125}), "}")
    assert found == {
        "score": ({10: round(0.3 / 0.825, 4), 7: round(0.3 / 0.825, 4), 1: round(0.225 / 0.825, 4)}, 0.175)
    }


def test_a_value_that_others_begin_with() -> None:
    """Where "1" stands, what would have gone on to "10" counts for 10."""
    found = spread([TEN], '{"score": ', ("1", 0.8, {"2": 0.2}), ("}", 0.75, {"0": 0.25}))
    assert found == {"score": ({1: 0.6, 10: 0.2, 2: 0.2}, 0.0)}


def test_the_end_of_the_reply_ends_a_value() -> None:
    """A value after which nothing is told has all of its path."""
    assert spread([TEN], "Score: ", ("1", 0.75, {"2": 0.25})) == {"score": ({1: 0.75, 2: 0.25}, 0.0)}


def test_an_alternative_that_may_become_several_values() -> None:
    """ "1" may become 10, so it counts for neither; it does for 1 where 10 is a token of its own."""
    assert spread([TEN], '{"score": ', ("7", 0.6, {"1": 0.4}), "}") == {"score": ({7: 1.0}, 0.4)}
    found = spread([TEN], '{"score": ', ("7", 0.5, {"1": 0.25, "10": 0.25}), "}")
    assert found == {"score": ({7: 0.5, 1: 0.25, 10: 0.25}, 0.0)}
    assert spread([FIVE], '{"score": ', ("4", 0.6, {"1": 0.4}), "}") == {"score": ({4: 0.6, 1: 0.4}, 0.0)}


def test_labels() -> None:
    """A token that begins one label counts for it; one that begins two is missing, until they part."""
    first = ("about", 0.5, {"slightly": 0.4, "much": 0.1})
    assert spread([GRADE], '{"grade": "', first, " the", " same", '"}') == {"grade": ({"about the same": 1.0}, 0.5)}
    found = spread(
        [GRADE],
        '{"grade":"',
        ("Slightly", 0.5, {"about": 0.25, "equal": 0.25}),
        (" better", 0.8, {" worse": 0.2}),
        '"}',
    )
    assert found == {"grade": ({"about the same": 0.3333, "slightly better": 0.5333, "slightly worse": 0.1333}, 0.25)}
    found = spread(
        [QUALITY], '{"quality": "', ("good", 0.8, {"bad": 0.2}), ('"', 0.75, {" enough": 0.2, " at": 0.05}), "}"
    )
    assert found == {"quality": ({"good": 0.625, "good enough": 0.1667, "bad": 0.2083}, 0.04)}


def test_sides_and_truth() -> None:
    """Names of sides, true and false."""
    reason = '{"reason": "A is better than B", "side": "'
    found = spread(
        [REASON, SIDE, SAFE],
        reason,
        ("B", 0.6, {"A": 0.3, "t": 0.1}),
        '", "safe":',
        (" true", 0.9, {" false": 0.1}),
        "}",
    )
    assert found == {"side": ({"B": 0.6, "A": 0.3, "tie": 0.1}, 0.0), "safe": ({True: 0.9, False: 0.1}, 0.0)}


def test_numbers_with_more_digits_than_they_need() -> None:
    """ "07" and "7.0" are 7, and the others are spelled alike."""
    found = spread([TEN], '{"score": "', ("0", 0.9, {"1": 0.1}), ("7", 0.8, {"8": 0.2}), '"}')
    assert found == {"score": ({7: 0.8, 8: 0.2}, 0.1)}
    found = spread([TEN], '{"score": ', ("7", 0.75, {"8": 0.25}), ".", "0", "}")
    assert found == {"score": ({7: 0.75, 8: 0.25}, 0.0)}


def test_numbers_below_zero() -> None:
    """The sign is part of the value."""
    field = OutputField("score", "scale", scale=Scale("", "ordinal", low=-2, high=2))
    found = spread([field], '{"score": ', ("-", 0.75, {"2": 0.25}), ("1", 0.5, {"2": 0.5}), "}")
    assert found == {"score": ({-1: 0.375, -2: 0.375, 2: 0.25}, 0.0)}


def test_a_tool_call() -> None:
    """Arguments are found in what was generated, verbatim or written anew by the server."""
    call = Reply(tool_calls=(ToolCall("submit", '{"score": 7}'),))
    tokens = ('<tool_call>{"name": "submit", "arguments": {"score": ', ("7", 0.75, {"8": 0.25}), "}}</tool_call>")
    assert spread([TEN], *tokens, reply=call) == {"score": ({7: 0.75, 8: 0.25}, 0.0)}
    for arguments in ('{"score":7}', {"score": 7}):
        anew = Reply(tool_calls=(ToolCall("submit", arguments),))
        assert spread([TEN], *tokens, reply=anew) == {"score": ({7: 0.75, 8: 0.25}, 0.0)}


def test_only_a_part_of_what_was_generated() -> None:
    """Reasoning and end marks that the server took out do not move the value."""
    reply = Reply(text='{"score": 7}', reasoning="8 or 7")
    tokens = (
        "<think>score: ",
        ("8", 0.5, {"9": 0.5}),
        "</think>\n\n",
        '{"score": ',
        ("7", 0.75, {"8": 0.25}),
        "}",
        "<|end|>",
    )
    assert spread([TEN], *tokens, reply=reply) == {"score": ({7: 0.75, 8: 0.25}, 0.0)}


def test_a_value_that_stands_twice() -> None:
    """Of two equal ones the last counts."""
    tokens = ("Score: ", ("7", 0.5, {"8": 0.5}), '\n{"score": ', ("7", 0.75, {"8": 0.25}), "}")
    assert spread([TEN], *tokens) == {"score": ({7: 0.75, 8: 0.25}, 0.0)}


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 11}',
        '{"score": null}',
        '{"score": 7, "score": 8}',
        "Score: 7/5",
        "I give no score; 7 people were asked.",
        '{"score": 7',
        "",
    ],
)
def test_no_value_no_distribution(text: str) -> None:
    """What the reader does not read has no distribution, whatever its tokens."""
    tokens: list[Made | str] = [(char, 0.5, {"8": 0.5}) for char in text]
    assert spread([TEN], *tokens) == {}


def test_other_text_than_the_tokens() -> None:
    """Tokens that do not give the value that was read tell nothing."""
    assert spread([TEN], '{"score": ', ("8", 0.5, {"7": 0.5}), "}", reply=Reply(text='{"score": 7}')) == {}
    assert (
        spread([OutputField("x", "scale", scale=Scale("", "interval", low=0, high=1, integer=False))], '{"x": 0.5}')
        == {}
    )


def test_chinese_labels_in_pieces() -> None:
    """A sign that several tokens share is put together from their bytes; without bytes there is no distribution."""
    field = OutputField("评级", "scale", scale=Scale("", "nominal", values=("好", "坏")))
    good, bad = "好".encode(), "坏".encode()
    pieces = [
        entry('{"评级": "'),
        {"token": "\ufffd", "bytes": list(good[:1]), "logprob": math.log(0.75), "top_logprobs": [
            {"token": "\ufffd", "bytes": list(good[:1]), "logprob": math.log(0.75)},
            {"token": "坏", "bytes": list(bad), "logprob": math.log(0.25)},
        ]},
        {"token": "\ufffd", "bytes": list(good[1:]), "logprob": 0, "top_logprobs": [
            {"token": "\ufffd", "bytes": list(good[1:]), "logprob": 0},
        ]},
        entry('"}'),
    ]  # fmt: skip
    reply = Reply(text='{"评级": "好"}')
    (found,) = distributions(reply, {"content": pieces}, asked(field)).values()
    assert found.probabilities == pytest.approx({"好": 0.75, "坏": 0.25})
    assert found.missing_mass == pytest.approx(0.0)
    for piece in pieces:
        del piece["bytes"]
    assert distributions(reply, {"content": pieces}, asked(field)) == {}


def listed(**others: Any) -> list[dict[str, Any]]:
    """Tokens with their log probabilities; a digit's name is written t7."""
    return [{"token": name.removeprefix("t"), "logprob": logprob} for name, logprob in others.items()]


HALF, QUARTER, EIGHTH = math.log(0.5), math.log(0.25), math.log(0.125)


@pytest.mark.parametrize(
    ("logprob", "top", "told"),
    [
        # OpenAI: the token itself may be beyond the ones listed
        (-9999.0, listed(t8=0.0), ({8: 1.0}, 0.0)),
        # vLLM: processed probabilities have impossible ones
        (0.0, listed(t7=0.0, t8=-9999.0), ({7: 1.0}, 0.0)),
        (0.0, listed(t8="-inf", t7=0), ({7: 1.0}, 0.0)),
        # an older form: token -> log probability
        (-0.5, {"7": HALF, "8": HALF}, ({7: 0.5, 8: 0.5}, 0.0)),
        # out of order, the token not among them
        (HALF, listed(t9=EIGHTH, t8=QUARTER), ({7: 0.5714, 8: 0.2857, 9: 0.1429}, 0.125)),
        # certain by its own word, as at temperature 0, but not by the list: the list counts
        (0.0, listed(t8=HALF, t7=HALF), ({7: 0.5, 8: 0.5}, 0.0)),
        (None, listed(t7=HALF, t8=None), ({7: 1.0}, 0.5)),
        (1e-6, listed(t7=1e-6), ({7: 1.0}, 0.0)),
        # nothing, or nonsense
        (-0.5, [], None),
        (-0.5, None, None),
        (None, listed(t8=-1), None),
        (0.5, listed(t8=-1), None),
        (0.0, listed(t8=0.0), None),
        (-(10**400), [7, None, {"token": 8}, {"token": "x", "logprob": -1}], None),
        (True, listed(t8=False), None),
    ],
)
def test_forms_of_servers(logprob: Any, top: Any, told: tuple[dict[Value, float], float] | None) -> None:
    """What servers write for log probabilities; what makes no sense gives no distribution."""
    content = [entry('{"score": '), {"token": "7", "logprob": logprob, "top_logprobs": top}, entry("}")]
    found = distributions(Reply(text='{"score": 7}'), {"content": content}, asked(TEN)).get("score")
    if told is None:
        assert found is None
    else:
        assert found is not None
        assert {v: round(p, 4) for v, p in found.probabilities.items() if p} == told[0]
        assert found.missing_mass == pytest.approx(told[1], abs=1e-4)
        assert list(found.probabilities) == list(range(11))


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"tokens": ["7"], "token_logprobs": [-1]},
        *({"content": content} for content in (None, {}, [], [None], [{"token": 7}], [{"token": "", "bytes": [300]}])),
    ],
)
def test_no_token_list(logprobs: Any) -> None:
    """Anything but a list of tokens tells nothing."""
    assert distributions(Reply(text='{"score": 7}'), logprobs, asked(TEN)) == {}


@given(
    value=st.integers(0, 10),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    reason=st.text(max_size=12),
    form=st.sampled_from(['{{"reason": {reason}, "score": {value}}}', 'Score: {value}', '{{"score": "{value}"}}']),
    others=st.lists(st.tuples(st.text(" 0123456789.\"}", max_size=3), st.floats(0, 0.1)), max_size=5),
    p=st.floats(0.01, 0.5),
)  # fmt: skip
@settings(max_examples=100, deadline=None)
def test_agrees_with_the_stated_value(
    value: int, cuts: list[int], reason: str, form: str, others: list[tuple[str, float]], p: float
) -> None:
    """However a reply is cut into tokens: it sums to 1, and the stated value has at least its path's probability."""
    text = form.format(value=value, reason=json.dumps(reason, ensure_ascii=False))
    data = text.encode("utf-8", "replace")
    text = data.decode()
    bounds = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    content: list[Any] = []
    for start, end in itertools.pairwise(bounds):
        listed = [{"token": t, "logprob": math.log(q) if q else None} for t, q in others]
        token = data[start:end].decode("utf-8", "replace")
        told = {"token": token, "bytes": list(data[start:end]), "logprob": math.log(p)}
        content.append({**told, "top_logprobs": [told, *listed]})
    found = distributions(Reply(text=text), {"content": content}, asked(TEN, REASON))
    stated = read(Reply(text=text), (TEN, REASON)).fields["score"].value
    assert stated == value
    spread = found["score"]
    assert sum(spread.probabilities.values()) == pytest.approx(1)
    assert 0 <= spread.missing_mass <= 1
    assert spread.probabilities[value] * (1 - spread.missing_mass) >= p ** len(content) * (1 - 1e-9)
    assert spread.expected is not None and 0 <= spread.expected <= 10


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["token", "bytes", "logprob", "top_logprobs", "content"]), inner, max_size=5)
    ),
    max_leaves=20,
)


@given(content=st.lists(junk, max_size=6), text=st.none() | st.text(max_size=30), arguments=st.text(max_size=20))
@settings(max_examples=100, deadline=None)
def test_never_raises(content: list[Any], text: str | None, arguments: str) -> None:
    """Whatever a server sends."""
    reply = Reply(text=text, tool_calls=(ToolCall("f", arguments),) if arguments else ())
    for field, told in distributions(reply, {"content": content}, asked(TEN, SIDE, SAFE)).items():
        assert read(reply, (TEN, SIDE, SAFE)).fields[field].value is not None
        assert sum(told.probabilities.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("message", "refused", "most"),
    [
        ("Invalid value for 'top_logprobs': must be less than or equal to 5.", "top_logprobs above 5", "5"),
        ("5 is greater than the maximum of 1 - 'logprobs'", "top_logprobs above 1", "1"),
        ("Requested sample logprobs of 20, which is greater than max allowed: 8", "top_logprobs above 8", "8"),
        ("body.top_logprobs: Input should be at most 11", "top_logprobs above 11", "11"),
        ("top_logprobs must be between 0 and 10", "top_logprobs above 10", "10"),
        ("Invalid top_logprobs value, the valid range of top_logprobs is [0, 15]", "top_logprobs above 15", "15"),
        ("top_logprobs must be at most 20", "logprobs", None),
        ("logprobs is not supported with this model", "logprobs", None),
        ("You are not allowed to request logprobs from this model", "logprobs", None),
        ("temperature must be at most 1", None, None),
    ],
)  # fmt: skip
def test_refusals(message: str, refused: str | None, most: str | None) -> None:
    """A limit that is named is kept; any other word against log probabilities ends them; nothing else does."""
    learned: dict[str, str | None] = {}
    sent = {"logprobs": True, "top_logprobs": 20}
    assert lessen(Fault(message), sent, learned) == refused
    assert within(sent, learned)["top_logprobs"] == int(most or 20)
    assert (learned == {"logprobs": None, "top_logprobs": None}) == (refused == "logprobs")
    assert lessen(Fault(message), {"temperature": 0}, {}) is None


def test_a_reply_is_not_changed() -> None:
    """Reading its tokens leaves the reply as it was."""
    reply = Reply(text='{"score": 7}')
    distributions(reply, {"content": [entry('{"score": 7}')]}, asked(TEN))
    assert reply == replace(reply, text='{"score": 7}')
