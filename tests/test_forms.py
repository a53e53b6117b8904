"""Which output form an endpoint offers: tried on real requests, proved by replies, remembered."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.api import make_spec
from evenhand.backends.fake import Fake
from evenhand.errors import AccessError, BackendError, FinalBackendError, RetryableBackendError
from evenhand.estimate import estimate
from evenhand.forms import FormChoice, proves
from evenhand.judging import parse_judge
from evenhand.rubric.model import Form
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.verdict import Reply, ToolCall
from rubric_texts import rubric
from runs import GOOD, SCORE, TWO, rows, run_it, statuses

ALL = "json_schema+tools+json_object"
PLAIN = json.dumps(GOOD)
FENCED = f"My verdict:\n```json\n{PLAIN}\n```"


def _form(body: dict[str, Any]) -> str:
    if "tools" in body:
        return "tool"
    return {"json_schema": "schema", "json_object": "json"}.get((body.get("response_format") or {}).get("type"), "text")


def _run(server: FakeServer, out: Path, n: int = 4, text: str = SCORE, **settings: str) -> list[str]:
    """Run some items against one behaviour; the forms of its requests in the order they came."""
    server.reset()
    run_it(rows(n), rubric(text), "openai:m", out, base_url=server.with_faults(salt="s", **settings))
    return [_form(seen["body"]) for seen in server.requests()]


def _run_at(url: str, server: FakeServer, out: Path, n: int = 4, **options: Any) -> list[str]:
    """Run some items, without re-asks, against an address that stays the same; the forms of the requests."""
    server.reset()
    run_it(rows(n), TWO, "openai:m", out, base_url=url, re_ask=False, **options)
    return [_form(seen["body"]) for seen in server.requests()]


def _stored_form(out: Path) -> Any:
    with Store.open(out) as store:
        return store.manifest["form"]


def _remembered() -> list[str]:
    memory = Path(os.environ["EVENHAND_STATE"]) / "forms.json"
    return list(json.loads(memory.read_text()).values()) if memory.exists() else []


@pytest.mark.parametrize(
    ("settings", "tried"),
    [
        ({}, ["schema"]),
        ({"refuse": "json_schema"}, ["schema", "tool"]),
        ({"refuse": "json_schema+tools", "plain": PLAIN}, ["schema", "tool", "json"]),
        ({"refuse": ALL, "plain": FENCED}, ["schema", "tool", "json", "text"]),
        ({"drop": "json_schema"}, ["schema", "tool"]),
        ({"drop": "json_schema", "plain": '{"reason": "fine"}'}, ["schema", "tool"]),
        ({"drop": "json_schema", "plain": '{"truth": 99}'}, ["schema", "tool"]),
        ({"drop": "json_schema", "plain": json.dumps({**GOOD, "truth": 99})}, ["schema", "tool"]),
        ({"drop": "json_schema", "plain": json.dumps({**GOOD, "more": 1})}, ["schema", "tool"]),
        ({"drop": "json_schema", "plain": PLAIN}, ["schema"]),
        ({"drop": "json_schema", "plain": FENCED}, ["schema", "tool"]),
        ({"refuse": "json_schema", "drop": "tools", "plain": PLAIN}, ["schema", "tool", "json"]),
        ({"drop": "json_schema+tools", "refuse": "json_object", "plain": FENCED}, ["schema", "tool", "json", "text"]),
    ],
)
def test_the_best_form_that_works_is_found_once(
    server: FakeServer, tmp_path: Path, settings: dict[str, str], tried: list[str]
) -> None:
    """Forms refused, or silently dropped, are tried once; all further requests use the first that works."""
    forms = _run(server, tmp_path / "run", **settings)
    assert forms[: len(tried)] == tried
    assert set(forms[len(tried) :]) == {tried[-1]}
    assert len(forms) == len(tried) + 3
    assert _stored_form(tmp_path / "run") == tried[-1]
    assert _remembered() == [tried[-1]]
    assert set(statuses(tmp_path / "run").values()) == {"scored"}


def test_workers_do_not_each_find_out_the_form(server: FakeServer, tmp_path: Path) -> None:
    """However many trials are in flight, a form that does not work is sent once."""
    url = server.with_faults(drop="json_schema", plain='{"reason": "fine"}', latency="5")
    forms = _run_at(url, server, tmp_path / "run", n=40)
    assert (forms.count("schema"), forms.count("tool"), len(forms)) == (1, 40, 41)


def test_what_disproves_a_form_does_not_use_up_the_re_ask(server: FakeServer, tmp_path: Path) -> None:
    """A trial that was sent in several forms may still be asked once more."""
    forms = _run(server, tmp_path / "run", n=1, refuse="tools+json_object", drop="json_schema")
    assert forms == ["schema", "tool", "json", "text", "text"]


@pytest.mark.parametrize("sickness", ["prose", "empty", "null"])
def test_a_server_that_was_sick_is_asked_anew_when_it_is_well(tmp_path: Path, sickness: str) -> None:
    """What is left when no reply could be read serves that run only: neither memory nor run folder holds it."""
    with FakeServer(fault=sickness) as server:
        assert _run_at(server.url, server, tmp_path / "sick") == ["schema", "tool", "json", *["text"] * 4]
        assert (_remembered(), _stored_form(tmp_path / "sick")) == ([], None)
        server.behave()
        assert _run_at(server.url, server, tmp_path / "well") == ["schema"] * 4
        assert (_remembered(), _stored_form(tmp_path / "well")) == (["schema"], "schema")
        assert set(statuses(tmp_path / "well").values()) == {"scored"}
        assert _run_at(server.url, server, tmp_path / "sick", retry=True) == ["schema"] * 4
        assert set(statuses(tmp_path / "sick").values()) == {"scored"}


async def test_a_last_resort_that_can_be_read_is_kept_for_the_run_only() -> None:
    """The first trial's replies were all unreadable, a later one is read: the run's form, but no news for others."""
    backend = Fake()
    backend.deterministic = False
    choice = FormChoice(backend, TWO)
    replies = iter(["prose"] * 4 + [FENCED])

    async def send(_: Form) -> Reply:
        return Reply(text=next(replies))

    assert await choice.send(send, TWO.output.fields) == ("text", Reply(text="prose"))
    assert (choice.form, choice.proved) == ("text", None)
    assert await choice.send(send, TWO.output.fields) == ("text", Reply(text=FENCED))
    assert (choice.proved, _remembered()) == ("text", [])


def test_a_remembered_form_that_gives_nothing_readable_is_forgotten(tmp_path: Path) -> None:
    """The first unreadable reply of a new run has the form found out again, by one of the workers."""
    with FakeServer(refuse="json_schema", latency="5") as server:
        _run_at(server.url, server, tmp_path / "one")
        assert _remembered() == ["tool"]
        server.behave(drop="tools", latency="5")
        forms = _run_at(server.url, server, tmp_path / "two", n=20, concurrency=4)
        assert forms[:5] == ["tool"] * 4 + ["schema"]
        assert forms[5:] == ["schema"] * 19
        assert (_remembered(), _stored_form(tmp_path / "two")) == (["schema"], "schema")
        assert set(statuses(tmp_path / "two").values()) == {"scored"}
        server.behave(fault="prose")
        assert _run_at(server.url, server, tmp_path / "three", n=1) == ["schema", "tool", "json", "text"]
        assert _remembered() == []


def test_a_refusal_says_nothing_of_the_form(tmp_path: Path) -> None:
    """Refused trials neither prove nor disprove: no other form is tried, nothing is remembered or forgotten."""
    for n, fault in enumerate(("refusal", "filter", "length")):
        with FakeServer(fault=fault) as server:
            assert _run_at(server.url, server, tmp_path / f"{n}a", n=12) == ["schema"] * 12
            assert (_remembered(), _stored_form(tmp_path / f"{n}a")) == ([], None)
            server.behave(refuse="json_schema")
            _run_at(server.url, server, tmp_path / f"{n}b")
            assert _remembered() == ["tool"]
            server.behave(fault=fault)
            assert _run_at(server.url, server, tmp_path / f"{n}c") == ["tool"] * 4
            assert _remembered() == ["tool"]
        (Path(os.environ["EVENHAND_STATE"]) / "forms.json").unlink()


def test_replies_that_say_nothing_do_not_hold_up_a_run(tmp_path: Path) -> None:
    """After a few refusals trials no longer wait for each other; a reply that disproves the form still counts."""
    with FakeServer(fault="refusal", latency="20") as server:
        _run_at(server.url, server, tmp_path / "run", n=40)
        assert server.stats()["max_inflight"] > 4


def test_a_resumed_run_keeps_its_form_whatever_the_replies(tmp_path: Path) -> None:
    """A stored run goes on in the form its replies were given in, so that they stay comparable."""
    with FakeServer(refuse="json_schema") as server:
        _run_at(server.url, server, tmp_path / "run", n=2)
        with Store.open(tmp_path / "run") as store:
            before = [v.reply_digests for _, found in store.verdicts() for v in found.values()]
        server.behave(drop="tools")
        assert _run_at(server.url, server, tmp_path / "run", n=4) == ["tool", "tool"]
        assert _stored_form(tmp_path / "run") == "tool"
        with Store.open(tmp_path / "run") as store:
            after = [v.reply_digests for _, found in store.verdicts() for v in found.values()]
        assert after[:2] == before


@pytest.mark.parametrize(
    ("form", "reply", "told"),
    [
        ("schema", Reply(text=PLAIN), True),
        ("schema", Reply(text=json.dumps({**GOOD, "truth": 3.0})), True),
        ("schema", Reply(text=json.dumps({**GOOD, "truth": 2.5})), False),
        ("schema", Reply(text=json.dumps({**GOOD, "truth": True})), False),
        ("schema", Reply(text='{"truth": 3, "style": 2}'), False),
        ("schema", Reply(text="[1]"), False),
        ("json", Reply(text='{"truth": 3, "style": 2}'), True),
        ("json", Reply(text='{"truth": 3}'), False),
        ("json", Reply(text=FENCED), False),
        ("tool", Reply(tool_calls=(ToolCall("submit_verdict", PLAIN),)), True),
        ("tool", Reply(tool_calls=(ToolCall("submit_verdict", GOOD),)), True),
        ("tool", Reply(tool_calls=(ToolCall("submit_verdict", "{}"),)), False),
        ("tool", Reply(tool_calls=(ToolCall("other", PLAIN),)), False),
        ("tool", Reply(text=PLAIN), False),
        ("text", Reply(text=FENCED), True),
        ("text", Reply(text="truth: 3"), False),
        ("text", Reply(text="Well, well."), False),
        ("lines", Reply(text="truth: 3\nstyle: 2"), True),
        ("lines", Reply(text=""), False),
        ("schema", Reply(refusal="I can't help with that."), None),
        ("text", Reply(text="I'm sorry, but I can't help with rating this."), None),
        ("schema", Reply(text=PLAIN[:20], finish="length"), None),
    ],
)
def test_what_proves_a_form(form: Form, reply: Reply, told: bool | None) -> None:
    """Each form has a proof of its own; what was declined or cut off tells nothing."""
    assert proves(form, reply, TWO.output.fields, TWO) is told


@pytest.mark.parametrize("form", ["schema", "tool", "json", "text"])
def test_depth_proves_nothing(form: Form) -> None:
    """A reply nested without measure proves no form and raises nothing, be it a text, a call or an object."""
    deep = '{"truth":' * 100_000
    inner: dict[str, Any] = {}
    for _ in range(5_000):
        inner = {"truth": inner}
    calls = [ToolCall("submit_verdict", arguments) for arguments in (deep, deep + "1" + "}" * 100_000, inner)]
    for reply in (Reply(text=deep), Reply(text=deep + "1" + "}" * 100_000), *(Reply(tool_calls=(c,)) for c in calls)):
        assert proves(form, reply, TWO.output.fields, TWO) is False


def test_what_was_found_is_remembered_for_the_next_run(server: FakeServer, tmp_path: Path) -> None:
    """A second run against the same endpoint starts with the form that worked; damage of the memory is no error."""
    _run(server, tmp_path / "one", refuse="json_schema")
    assert set(_run(server, tmp_path / "two", refuse="json_schema")) == {"tool"}
    memory = Path(os.environ["EVENHAND_STATE"]) / "forms.json"
    assert list(json.loads(memory.read_text()).values()) == ["tool"]
    memory.write_text("{broken")
    assert _run(server, tmp_path / "three", refuse="json_schema")[:2] == ["schema", "tool"]


def test_a_resumed_run_keeps_its_stored_form(server: FakeServer, tmp_path: Path) -> None:
    """Without any memory a resume still asks in the form of the stored replies."""
    _run(server, tmp_path / "run", refuse="json_schema")
    (Path(os.environ["EVENHAND_STATE"]) / "forms.json").unlink()
    assert _run(server, tmp_path / "run", n=6, refuse="json_schema") == ["tool", "tool"]


def test_a_form_that_stops_working_is_given_up(server: FakeServer, tmp_path: Path) -> None:
    """When the endpoint refuses the form it once took, the others are tried and the memory is mended."""
    _run(server, tmp_path / "run", refuse="json_schema")
    memory = Path(os.environ["EVENHAND_STATE"]) / "forms.json"
    (key,) = json.loads(memory.read_text())
    memory.write_text(json.dumps({key: "schema"}))
    forms = _run(server, tmp_path / "again", refuse="json_schema")
    assert (forms[0], forms[-1]) == ("schema", "tool")
    assert set(statuses(tmp_path / "again").values()) == {"scored"}
    assert json.loads(memory.read_text()) == {key: "tool"}


def test_an_unwritable_memory_is_no_error(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be remembered is found out again."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENHAND_STATE", str(tmp_path / "file" / "state"))
    assert _run(server, tmp_path / "run", refuse="json_schema")[:2] == ["schema", "tool"]


def test_an_endpoint_that_refuses_every_form_ends_the_run(server: FakeServer, tmp_path: Path) -> None:
    """When no form is left every further request would fail too."""
    with pytest.raises(AccessError, match="refuses every output form"):
        _run(server, tmp_path / "run", text=f"{SCORE}output: {{forms: [schema, tool]}}\n", refuse=ALL)


def test_a_judge_without_a_common_form_is_refused(tmp_path: Path) -> None:
    """A rubric whose forms the backend doesn't have at all is told so before anything is sent."""
    with pytest.raises(FinalBackendError, match="offers none"):
        FormChoice(Fake(forms=("json",)), rubric(f"{SCORE}output: {{forms: [tool]}}\n"))


class _Down:
    """Sends that take a moment and fail, and how many of them there were at once."""

    def __init__(self, error: BackendError) -> None:
        self.error = error
        self.sent = self.in_flight = self.most = 0

    async def send(self, form: Form) -> Reply:
        self.sent += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        await asyncio.sleep(0.001)
        self.in_flight -= 1
        raise self.error


async def _send_all(error: BackendError, n: int = 16) -> tuple[_Down, list[Any]]:
    backend, down = Fake(), _Down(error)
    backend.deterministic = False
    choice = FormChoice(backend, rubric(SCORE))
    return down, await asyncio.gather(
        *(choice.send(down.send, TWO.output.fields) for _ in range(n)), return_exceptions=True
    )


async def test_all_who_wait_end_with_the_first_that_has_no_access() -> None:
    """When the call that finds out the form has no access, nothing more is sent and the others get its error."""
    down, ends = await _send_all(AccessError("can't reach it"))
    assert down.sent == 1
    assert [str(end) for end in ends] == ["can't reach it"] * 16


async def test_nobody_waits_for_an_endpoint_that_is_unwell() -> None:
    """When the first call fails in a way that may pass, the others try for themselves, all at the same time."""
    down, ends = await _send_all(RetryableBackendError("busy"))
    assert (down.sent, down.most) == (16, 15)
    assert [str(end) for end in ends] == ["busy"] * 16


async def test_a_request_that_is_rejected_says_nothing_about_the_endpoint() -> None:
    """When the first call is rejected for its own sake, the next one goes on finding out the form."""
    down, _ = await _send_all(FinalBackendError("too long"))
    assert (down.sent, down.most) == (16, 1)


def test_a_hanging_server_is_waited_for_once(server: FakeServer, tmp_path: Path) -> None:
    """However many workers there are, a server that never answers is tried as often as one request may be."""
    server.reset()
    with pytest.raises(AccessError, match="can't reach"):
        run_it(
            rows(20),
            rubric(SCORE),
            "openai:m",
            tmp_path / "run",
            base_url=server.with_faults(fault="hang"),
            timeout=0.2,
        )
    assert server.stats()["requests"] == 4
    assert statuses(tmp_path / "run") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[]",
        b"3",
        b"null",
        b'[["a", "schema"]]',
        b'{"KEY": ["schema"]}',
        b'{"KEY": {"schema": 1}, "b": null}',
        b'{"KEY": "no form"}',
        b'{"KEY": 3}',
    ],
)
def test_a_damaged_memory_is_found_out_again(server: FakeServer, tmp_path: Path, content: bytes) -> None:
    """Whatever the file of remembered forms holds, the form is found out as if there were none, and kept again."""
    url = server.with_faults(refuse="json_schema")
    assert _run_at(url, server, tmp_path / "first") == ["schema", *["tool"] * 4]
    memory = Path(os.environ["EVENHAND_STATE"]) / "forms.json"
    key = next(iter(json.loads(memory.read_text())))
    memory.write_bytes(content.replace(b"KEY", key.encode()))
    assert _run_at(url, server, tmp_path / "second") == ["schema", *["tool"] * 4]
    assert json.loads(memory.read_text())[key] == "tool"


def test_a_memory_that_is_a_folder_is_no_obstacle(server: FakeServer, tmp_path: Path) -> None:
    """Where nothing can be remembered, each run finds out the form, and leaves nothing behind."""
    memory = Path(os.environ["EVENHAND_STATE"]) / "forms.json"
    memory.mkdir()
    url = server.with_faults(refuse="json_schema")
    for name in ("first", "second"):
        assert _run_at(url, server, tmp_path / name) == ["schema", *["tool"] * 4]
    assert list(memory.parent.iterdir()) == [memory]


@pytest.mark.parametrize(("forms", "probes"), [("[schema, tool, json, text]", 3), ("[text]", 0)])
def test_what_finding_out_the_form_may_cost(server: FakeServer, tmp_path: Path, forms: str, probes: int) -> None:
    """An estimate counts the forms that may be tried in vain, none for a judge whose form is known."""
    text = f"{SCORE}output: {{forms: {forms}}}\n"
    spec = make_spec(rows(4), rubric(text), "openai:m", out=tmp_path / "run", base_url=server.url)
    told = estimate(spec)
    assert (told["calls"], told["form_probes"], told["calls_at_most"]) == (4, probes, 8 + probes)
    told = estimate(replace(spec, re_ask=False))
    assert told["calls_at_most"] == 4 + probes
    told = estimate(replace(spec, judge=parse_judge("fake")))
    assert (told["form_probes"], told["calls_at_most"]) == (0, 8)
