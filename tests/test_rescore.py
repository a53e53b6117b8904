"""Reading a stored run again: new weights and rules without a call, another question never."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from evenhand.api import Run
from evenhand.errors import RunError
from evenhand.judging import Answer
from evenhand.manifest import stored_rubric, with_weights
from evenhand.rescore import rescore
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from evenhand.trial import TrialKey
from evenhand.verdict import Reply, Status, Verdict
from rubric_texts import PAIR, changed, rubric
from runs import GOOD, LIE, SCORE, TWO, rows, run_it, summary, write_script


def _rescore(out: Path, what: object = None) -> dict[str, int]:
    with Store.open(out, write=True) as store:
        return rescore(store, what or stored_rubric(store.manifest))  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [SCORE, PAIR])
def test_an_unchanged_rescore_changes_nothing(server: FakeServer, tmp_path: Path, text: str) -> None:
    """Every verdict comes out equal: faults, re-asks, repairs and presets included."""
    out, what = tmp_path / "run", rubric(text)
    lines = [
        {"id": f"i{k}", "question": "q", "prompt": f"p{k}", "answer": "" if k == 3 else f"a{k}"} for k in range(20)
    ]
    lines = [{**line, "response_a": line["answer"], "response_b": f"b{k}"} for k, line in enumerate(lines)]
    faults = server.with_faults(fault="prose:0.1+invalid:0.2+fenced:0.2+refusal:0.1+422:0.1+length:0.1")
    run_it(lines, what, "openai:m", out, base_url=faults)
    run_it(lines, what, "openai:m", out, base_url=faults, retry=True)
    before = list(Run(out).verdicts())
    server.reset()
    counts = _rescore(out)
    assert counts["changed"] == 0
    assert counts["verdicts"] == sum(v.status.value != "failed" for v in before)
    assert list(Run(out).verdicts()) == before
    assert server.stats()["requests"] == 0


def test_a_failed_re_ask_stays_marked(tmp_path: Path) -> None:
    """That a re-ask was used is a fact of the run, though only its first reply is stored."""
    out = tmp_path / "run"
    run_it(rows(1), TWO, write_script(tmp_path / "s.jsonl", (None, LIE)), out)
    assert [v.re_asked for v in Run(out).verdicts()] == [True]
    _rescore(out)
    assert [v.re_asked for v in Run(out).verdicts()] == [True]


def test_new_weights_change_the_composite_alone(tmp_path: Path) -> None:
    """Other weights are applied to the stored values, and kept with the run."""
    out = tmp_path / "run"
    run_it(rows(2), TWO, write_script(tmp_path / "s.jsonl", (None, GOOD)), out)
    assert summary(out)["composite"]["mean"] == 2.75
    assert _rescore(out, with_weights(TWO, {"truth": 0.5, "style": 0.5})) == {"verdicts": 2, "changed": 2}
    assert _rescore(out)["changed"] == 0
    assert summary(out)["composite"]["mean"] == 2.5
    with pytest.raises(RunError, match=r"rubric\.weights") as caught:
        run_it(rows(2), TWO, "fake", out)
    assert "--weights truth=0.5,style=0.5 goes on" in str(caught.value)


def test_the_weights_that_are_told_do_go_on(tmp_path: Path) -> None:
    """After new weights the same command with them resumes the run."""
    out = tmp_path / "run"
    run_it(rows(2), TWO, "fake", out)
    weights = {"truth": 0.1, "style": 0.9}
    _rescore(out, with_weights(TWO, weights))
    assert run_it(rows(3), TWO, "fake", out, weights=weights).asked == 1


def test_a_changed_rule_is_checked_again(tmp_path: Path) -> None:
    """A new rule finds its violations in stored verdicts, without a re-ask."""
    out = tmp_path / "run"
    run_it(rows(2), TWO, write_script(tmp_path / "s.jsonl", ("What is 1?", GOOD), (None, {**GOOD, "truth": 1})), out)
    stricter = rubric(changed(SCORE, "truth == 0 and", "truth == 1 or"))
    assert _rescore(out, stricter) == {"verdicts": 2, "changed": 1}
    assert [[v.rule for v in verdict.violations] for verdict in Run(out).verdicts()] == [["lie"], []]
    assert summary(out)["violations"] == {"lie": 1}
    assert Run(out).rubric.source == stricter.source


@pytest.mark.parametrize(
    ("old", "new"),
    [("Is it true?", "Is it right?"), ("range: [0, 4]}}\n  - {name: style", "range: [0, 5]}}\n  - {name: style")],
)
def test_a_changed_prompt_is_refused_and_nothing_changes(tmp_path: Path, old: str, new: str) -> None:
    """Replies are never read as answers to another question; the run stays as it was."""
    out = tmp_path / "run"
    blank = [{"id": f"b{k}", "question": "q", "answer": ""} for k in range(3)]
    run_it(blank + rows(2), TWO, "fake", out)
    before = list(Run(out).verdicts())
    with pytest.raises(RunError, match="item i0: this rubric asks something else") as caught:
        _rescore(out, rubric(changed(SCORE, old, new)))
    assert caught.value.exit_code == 4
    assert list(Run(out).verdicts()) == before
    assert Run(out).rubric.source == TWO.source


def test_a_question_that_was_never_asked_is_refused(tmp_path: Path) -> None:
    """An item set in code under the old rubric has no reply that a rubric without that preset could read."""
    out = tmp_path / "run"
    run_it([{"id": "b", "question": "q", "answer": ""}], TWO, "fake", out)
    with pytest.raises(RunError, match="item b: this rubric asks something else"):
        _rescore(out, rubric(changed(SCORE, "when: blank(answer)", "when: blank(question)")))


def test_only_the_replies_of_the_last_asking_count(tmp_path: Path) -> None:
    """After --retry the earlier replies of a trial are history."""
    out, key = tmp_path / "run", TrialKey("i0", "", 0)
    run_it(rows(1), TWO, write_script(tmp_path / "s.jsonl", (None, "no value")), out)
    with Store.open(out, write=True) as store:
        first, _ = store.exchanges(key)
        store.append([Answer(key, Verdict(Status.SCORED), (replace(first, reply=Reply(text=json.dumps(GOOD))),))])
    _rescore(out)
    (verdict,) = Run(out).verdicts()
    assert (verdict.status, verdict.value("truth"), verdict.re_asked) == (Status.SCORED, 3, False)


def test_without_texts_only_the_weights_can_be_new(tmp_path: Path) -> None:
    """A run that kept no item texts takes new weights, and says why it takes nothing else."""
    out = tmp_path / "run"
    run_it(rows(1), TWO, write_script(tmp_path / "s.jsonl", (None, GOOD)), out, store_texts=False)
    assert _rescore(out, with_weights(TWO, {"truth": 0.5, "style": 0.5})) == {"verdicts": 1, "changed": 1}
    assert summary(out)["composite"]["mean"] == 2.5
    with pytest.raises(RunError, match="its texts were not stored"):
        _rescore(out, rubric(changed(SCORE, "truth == 0 and", "truth == 1 or")))
