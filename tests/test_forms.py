"""Which output form an endpoint offers: tried on real requests, proved by replies, remembered."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from evenhand.backends.fake import Fake
from evenhand.errors import AccessError, BackendError, FinalBackendError, RetryableBackendError
from evenhand.forms import FormChoice
from evenhand.rubric.model import Form
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.verdict import Reply
from rubric_texts import rubric
from runs import SCORE, rows, run_it, statuses

ALL = "json_schema+tools+json_object"


def _form(body: dict[str, Any]) -> str:
    if "tools" in body:
        return "tool"
    return {"json_schema": "schema", "json_object": "json"}.get((body.get("response_format") or {}).get("type"), "text")


def _run(server: FakeServer, out: Path, n: int = 4, text: str = SCORE, **settings: str) -> list[str]:
    """Run some items against one behaviour; the forms of its requests in the order they came."""
    server.reset()
    run_it(rows(n), rubric(text), "openai:m", out, base_url=server.with_faults(salt="s", **settings))
    return [_form(seen["body"]) for seen in server.requests()]


def _stored_form(out: Path) -> Any:
    with Store.open(out) as store:
        return store.manifest["form"]


@pytest.mark.parametrize(
    ("settings", "tried"),
    [
        ({}, ["schema"]),
        ({"refuse": "json_schema"}, ["schema", "tool"]),
        ({"refuse": "json_schema+tools"}, ["schema", "tool", "json"]),
        ({"refuse": ALL}, ["schema", "tool", "json", "text"]),
        ({"drop": "json_schema"}, ["schema", "tool"]),
        ({"refuse": "json_schema", "drop": "tools"}, ["schema", "tool", "json"]),
        ({"drop": "json_schema+tools", "refuse": "json_object"}, ["schema", "tool", "json", "text"]),
    ],
)
def test_the_best_form_that_works_is_found_once(
    server: FakeServer, tmp_path: Path, settings: dict[str, str], tried: list[str]
) -> None:
    """Forms refused, or silently dropped, are tried once; all further requests use the first that works."""
    forms = _run(server, tmp_path / "run", **settings)
    assert forms[: len(tried)] == tried
    assert set(forms[len(tried) :]) == {tried[-1]}
    assert _stored_form(tmp_path / "run") == tried[-1]
    if tried[-1] in ("schema", "tool"):  # without a schema the server doesn't know what to say
        assert set(statuses(tmp_path / "run").values()) == {"scored"}


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
    return down, await asyncio.gather(*(choice.send(down.send) for _ in range(n)), return_exceptions=True)


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
