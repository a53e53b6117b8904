"""The judge without a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.backend import BackendSettings, Request
from evenhand.backends.fake import Fake, open_backend
from evenhand.backends.sample import Draw, legal_value
from evenhand.errors import FinalBackendError, InputError, ItemError, UnknownNameError
from evenhand.rubric.model import OutputField
from evenhand.scale import Scale
from evenhand.testing.conformance import check_backend, check_failing, sample_requests
from evenhand.verdict import Reply


def fake(script: str = "") -> Fake:
    return open_backend(BackendSettings(model=script))


def value(reply: Reply) -> Any:
    return json.loads(reply.text or "")["score"]


@pytest.mark.parametrize("script", ["", "top", "bottom", "first", "refuse", "garbage"])
async def test_conforms(script: str) -> None:
    """Every behaviour that replies does what every backend must do."""
    await check_backend(lambda: fake(script))


async def test_values_depend_on_the_question_alone() -> None:
    """Different items get different values; the same item gets the same whatever fence marks its run uses."""
    replies = [await fake().send(request) for request in sample_requests(n=40)]
    assert len({value(reply) for reply in replies}) > 5
    marked = [{"role": "user", "content": f"<<<{mark}\nit is so\n{mark}>>>"} for mark in ("qvxm", "bcdf")]
    one, two = [await fake().send(sample_requests(messages=(message,))[0]) for message in marked]
    assert value(one) == value(two)


async def test_every_form_is_answered() -> None:
    """Schema, json and text forms get JSON, the tool form a call, lines labelled lines."""
    tool = await fake().send(sample_requests("tool")[0])
    assert tool.tool_calls[0].name == "submit_verdict" and tool.text is None
    for form in ("schema", "json", "text"):
        assert 0 <= value(await fake().send(sample_requests(form)[0])) <= 10  # type: ignore[arg-type]
    lines = (await fake("top").send(sample_requests("lines")[0])).text or ""
    assert lines.splitlines()[1] == "Score for score: 10"


async def test_published_text_formats_are_met() -> None:
    """A field read by patterns is written so that a pattern finds it."""
    scale = Scale("s", "ordinal", low=1, high=5)
    grade = Scale("g", "nominal", values=("C", "I"))
    fields = (
        OutputField("score", "scale", scale=scale, patterns=(r"\[\[(\d+)\]\]",)),
        OutputField("grade", "scale", scale=grade, patterns=(r"(?i)GRADE:\s*([CI])\b",)),
    )
    reply = await fake("top").send(Request(({"role": "user", "content": "x"},), "text", fields=fields))
    assert reply.text == "[[5]]\nGRADE: I"


async def test_built_in_behaviours() -> None:
    """Each name does what it says."""
    request = sample_requests()[0]
    assert value(await fake("top").send(request)) == 10
    assert value(await fake("bottom").send(request)) == 0
    assert (await fake("refuse").send(request)).refusal
    assert "score" not in ((await fake("garbage").send(request)).text or "")
    error = await check_failing(lambda: fake("error"))
    assert type(error) is FinalBackendError


@pytest.mark.parametrize(("choice", "expected"), [("first", ["B", 3]), ("top", ["tie", 9]), ("bottom", ["B", 1])])
def test_choices_of_listed_values(choice: Any, expected: list[Any]) -> None:
    """First is the first listed, top and bottom go by size where values are numbers."""
    draw = Draw(0, choice)
    assert [draw.listed(["B", "A", "tie"]), draw.listed([3, 1, 9])] == expected


async def test_scripts(tmp_path: Path) -> None:
    """The first matching rule answers, as often as it may; what no rule matches gets legal values."""
    path = tmp_path / "script.jsonl"
    rules = [
        {"contains": "Answer 0", "reply": "no value", "times": 1},
        {"contains": "Answer 0", "reply": {"reason": "r", "score": 3}},
        {"contains": "Answer 1", "reply": {"score": 99}},
    ]
    path.write_text("\n".join(json.dumps(rule) for rule in rules), encoding="utf-8")
    backend = fake(str(path))
    zero, one, two = sample_requests("tool", 3)
    assert (await backend.send(zero)).text == "no value"
    assert json.loads(str((await backend.send(zero)).tool_calls[0].arguments)) == {"reason": "r", "score": 3}
    assert json.loads(str((await backend.send(one)).tool_calls[0].arguments)) == {"score": 99}
    assert json.loads(str((await backend.send(two)).tool_calls[0].arguments))["score"] in range(11)
    assert not backend.deterministic and "script" not in str(backend.identity)


def test_bad_scripts_are_told_whole(tmp_path: Path) -> None:
    """Every bad line of a script is listed; an unknown name lists what there is."""
    path = tmp_path / "script.jsonl"
    path.write_text('{"reply": 3}\n\n{"contains": "x"}\nnot json\n{"reply": "x", "times": 0}\n', encoding="utf-8")
    with pytest.raises(ItemError) as caught:
        fake(str(path))
    assert [problem.line for problem in caught.value.problems] == [1, 3, 4, 5]
    path.write_text("\n")
    with pytest.raises(ItemError, match="no lines"):
        fake(str(path))
    with pytest.raises(UnknownNameError, match="garbage"):
        fake("tpo")


async def test_usage_is_estimated() -> None:
    """Tokens are estimated from lengths and cost nothing."""
    usage = (await fake().send(sample_requests()[0])).usage
    assert usage.prompt_tokens and usage.completion_tokens and usage.cost_usd == 0.0


LEAVES = st.one_of(
    st.just({"type": "boolean"}),
    st.builds(lambda a, b: {"type": "integer", "minimum": a, "maximum": a + b}, st.integers(-9, 9), st.integers(0, 9)),
    st.builds(lambda a: {"type": "number", "minimum": a, "maximum": a + 1}, st.integers(-9, 9)),
    st.lists(st.one_of(st.text(), st.integers()), min_size=1).map(lambda v: {"enum": v}),
    st.builds(lambda n: {"type": ["string", "null"], "minLength": n, "maxLength": n + 9}, st.integers(0, 99)),
)
SCHEMAS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.dictionaries(st.text(max_size=4), inner, max_size=3).map(
            lambda p: {"type": "object", "properties": p, "required": list(p), "additionalProperties": False}
        ),
        inner.map(lambda i: {"type": "array", "items": i, "minItems": 1, "maxItems": 2}),
        inner.map(lambda i: {"anyOf": [{"type": "null"}, i]}),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.integers(0, 2**32), st.sampled_from(["any", "top", "bottom", "first"]))
def test_values_are_legal(schema: dict[str, Any], seed: int, choice: Any) -> None:
    """Whatever the schema, the value satisfies it, and the same seed gives the same value."""
    made = legal_value(schema, Draw(seed, choice))
    jsonschema.validate(made, schema)
    assert legal_value(schema, Draw(seed, choice)) == made


def test_references_and_merged_schemas() -> None:
    """Local references and allOf are followed."""
    schema = {
        "$defs": {"grade": {"enum": [7]}},
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/grade"},
            "b": {"allOf": [{"type": "integer"}, {"minimum": 5, "maximum": 5}]},
        },
    }
    assert legal_value(schema, Draw(1)) == {"a": 7, "b": 5}


@pytest.mark.parametrize(
    ("second", "told"),
    [
        (b'{"reply": "caf\xe9"}', "not UTF-8 at byte 15"),
        (b'{"reply": ' + b'{"a":' * 400 + b"1" + b"}" * 401, "nested too deeply"),
        (b'{"reply": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"reply": NaN}', "NaN is no JSON"),
        (b'{"reply": "x"', "not JSON at character 15: Expecting ',' delimiter"),
        (b"\x00", "not JSON at character 1: Expecting value"),
    ],
)
def test_what_is_wrong_with_a_line_is_told_with_its_place(tmp_path: Path, second: bytes, told: str) -> None:
    """Whatever a line holds, the error names file and line and says what is wrong."""
    path = tmp_path / "script.jsonl"
    path.write_bytes(b'{"reply": "x"}\n' + second + b"\n")
    with pytest.raises(ItemError) as caught:
        fake(str(path))
    assert caught.value.message == f"{path}:2 $: {told}"


async def test_lines_end_at_line_feeds_only(tmp_path: Path) -> None:
    """A line separator of Unicode inside a text, a mark at the start and CRLF do not split or spoil a line."""
    path = tmp_path / "script.jsonl"
    rules = [{"contains": "Answer 0", "reply": "a\u2028b\x85c\u2029d"}, {"reply": "rest"}]
    lines = [json.dumps(rule, ensure_ascii=False) for rule in rules]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    zero, one = sample_requests("text", 2)
    assert [(await fake(str(path)).send(request)).text for request in (zero, one)] == ["a\u2028b\x85c\u2029d", "rest"]


def test_scripts_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder, a name too long or a file that may not be read is an input error with a remedy."""

    def forbidden(*_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    for name in (str(tmp_path), "x" * 5000):
        with pytest.raises(InputError, match="can't read the script") as caught:
            fake(name)
        assert "JSON lines" in (caught.value.hint or "")
    monkeypatch.setattr(Path, "open", forbidden)
    with pytest.raises(InputError, match="Permission denied"):
        fake("script.jsonl")


def test_of_many_bad_lines_a_hundred_are_shown(tmp_path: Path) -> None:
    """A file of another kind does not flood the screen."""
    path = tmp_path / "script.jsonl"
    path.write_text("junk\n" * 1000)
    with pytest.raises(ItemError, match="and 900 more"):
        fake(str(path))
