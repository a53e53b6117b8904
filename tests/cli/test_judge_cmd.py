"""``evenhand judge`` and what follows a run, as a shell sees them: exit codes, streams, signals, secrets."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evenhand.cli.main import run
from evenhand.store import Store
from evenhand.testing.server import FakeServer
from rubric_texts import PAIR
from runs import GOOD, SCORE, rows, statuses, summary, write_jsonl, write_script

KEY = "sk-secret-4f9c1b7d2e"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data and a rubric, as the working directory."""
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "data.jsonl", rows(6))
    (tmp_path / "two.yaml").write_text(SCORE)
    (tmp_path / "pair.yaml").write_text(PAIR)
    return tmp_path


def _judge(*more: str, judge: str = "fake", data: str = "data.jsonl") -> int:
    return run(["judge", data, "--rubric", "two.yaml", "--judge", judge, "--out", "run", *more])


def _command(server_url: str, *more: str) -> list[str]:
    command = [sys.executable, "-m", "evenhand", "judge", "data.jsonl", "--rubric", "two.yaml", "--out", "run"]
    return [*command, "--judge", "openai:m", "--base-url", server_url, *more]


def test_zero_and_figures_on_stdout(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run that is done ends with 0; figures go to stdout, everything else to stderr."""
    assert _judge() == 0
    shown = capsys.readouterr()
    assert "6 of 6 scored; coverage 100.0% of 6 rows" in shown.out
    assert "composite" in shown.out
    assert "not validated" in shown.out
    assert shown.err.splitlines() == ["6 trials, 0 of them stored already", "run: run"]


def test_json_on_stdout_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--json prints one object of the documented shape, and `show --json` the same again."""
    assert _judge("--json") == 0
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert {"planned", "scored", "coverage", "failures", "violations", "criteria", "composite"} <= set(told)
    assert {"judge", "cost_usd"} <= set(told)
    assert (told["planned"], told["scored"], told["coverage"], told["failures"]) == (6, 6, 1.0, {})
    assert set(told["criteria"]) == {"truth", "style"}
    assert {"mean", "ci", "n"} <= set(told["criteria"]["truth"])
    assert {"mean", "ci", "n"} <= set(told["composite"])
    assert run(["show", "run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told


def test_json_of_pairs(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Pairs have a preference, and with both orders flips; no weights, no composite."""
    write_jsonl(
        project / "pairs.jsonl", [{"id": str(k), "prompt": "p", "response_a": "x", "response_b": "y"} for k in "ab"]
    )
    assert run(["judge", "pairs.jsonl", "--rubric", "pair.yaml", "--judge", "fake:first", "--out", "p", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["preference"], told["flips"], told["composite"]) == ({"A": 0, "B": 0, "tie": 0}, 2, None)
    args = ["judge", "pairs.jsonl", "--rubric", "pair.yaml", "--judge", "fake:first", "--out", "q", "--json"]
    assert run([*args, "--orders", "ab"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["preference"]["A"], "flips" in told) == (2, False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--data", "x"], "No such option"),
        (["--variant", "scale"], "NAME=VALUE"),
        (["--weights", "truth=x"], "the weight of truth must be a number"),
        (["--weights", "truth=1"], "no weight for style"),
        (["--concurrency", "0"], "neither auto nor"),
        (["--header", "x"], "NAME=VALUE"),
        (["--coverage", "2"], "--coverage"),
        (["--map", "answer=text"], "no column 'text' for answer"),
        (["--judge", "nowhere"], "unknown backend"),
        (["--judge", "openai"], "names no model"),
        (["--rubric", "nothing.yaml"], "nothing.yaml"),
        (["--ask", "Which response is better?"], "has no phrases under `ask`"),
        (["--rubric", "hhh", "--ask", "Which is best?"], "Which response is better?"),
        (["--pairs", "all"], "mode compare"),
        (["--pairs", "budget:0"], "all or budget:N"),
    ],
)
def test_two_for_what_the_caller_got_wrong(
    project: Path, capsys: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    """A wrong option or name ends with 2, the reason on stderr, nothing on stdout and no run left behind."""
    assert _judge(*more) == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""
    assert not (project / "run").exists()


def test_two_for_bad_rows_with_their_lines(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Bad rows are told with file and line; --skip-bad goes on without them."""
    with (project / "data.jsonl").open("a") as file:
        file.write('{"id": "x", "question": "q"}\nnot json\n')
    assert _judge() == 2
    error = capsys.readouterr().err
    assert "data.jsonl:7" in error
    assert "data.jsonl:8" in error
    assert not (project / "run").exists()
    assert _judge("--skip-bad") == 0
    assert "6 of 8 scored; coverage 75.0% of 8 rows" in capsys.readouterr().out


@pytest.mark.parametrize("rubric", ["alignmm-critic", "alignmm-critic.en"])
@pytest.mark.parametrize("column", ["type", "task"])
def test_two_for_an_unknown_type_of_question(
    project: Path, capsys: pytest.CaptureFixture[str], rubric: str, column: str
) -> None:
    """QA3: a type without notes is a bad row, told with its line and all accepted names; nothing is sent."""
    good = {"question": "q", "reference": "r", "answer": "a"}
    types = ["Description", "Descrpition", "Dialogue Context", "Sculpture", "counting"]
    write_jsonl(project / "types.jsonl", [{**good, column: name} for name in types])
    command = ["judge", "types.jsonl", "--rubric", rubric, "--judge", "fake", "--out", "t"]
    assert run(command) == 2
    shown = capsys.readouterr()
    label = "type" if column == "type" else "type (column task)"
    assert f"types.jsonl:4: {label} is 'Sculpture', which is none of Description, Descrpition, " in shown.err
    assert "Coherence, Incoherence" in shown.err and "types.jsonl:5: " in shown.err
    assert shown.out == "" and not (project / "t").exists()
    assert run([*command, "--skip-bad"]) == 0
    assert summary(project / "t")["failures"] == {"bad_row": 2}


def test_three_for_a_judge_out_of_reach(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An address where nobody listens ends with 3 and names the address; so does a refused key."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert _judge("--base-url", f"http://127.0.0.1:{port}/v1", "--timeout", "1", judge="openai:m") == 3
    shown = capsys.readouterr()
    assert f"can't reach http://127.0.0.1:{port}" in shown.err
    assert (shown.out, "Traceback" in shown.err) == ("", False)


@pytest.mark.parametrize("fault", ["401", "404"])
def test_three_for_a_refused_key_or_model(
    project: Path, capsys: pytest.CaptureFixture[str], server: FakeServer, fault: str
) -> None:
    """Key or model refused: the run stops at once instead of failing item by item."""
    server.reset()
    url = server.with_faults(fault=fault)
    assert _judge("--base-url", url, "--concurrency", "1", judge="openai:m") == 3
    assert capsys.readouterr().err.count("error:") == 1
    assert server.stats()["requests"] == 1


def test_four_for_another_or_a_locked_run(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder that holds another run, or is in use, ends with 4 and says how it differs."""
    assert _judge() == 0
    assert _judge(judge="fake:top") == 4
    told = capsys.readouterr().err
    assert "judge.spec: 'fake' -> 'fake:top'" in told
    assert "rescore" not in told  # which asks no other judge
    (project / "two.yaml").write_text(SCORE.replace("rubric: ", "# a rule\nrubric: ", 1))
    assert _judge() == 4
    assert "`evenhand rescore` applies new weights or rules" in capsys.readouterr().err
    (project / "two.yaml").write_text(SCORE)
    with Store.open(project / "run", write=True):
        assert _judge() == 4
    assert "in use" in capsys.readouterr().err
    assert run(["rescore", "run", "--weights", "truth=1,style=0"]) == 0
    assert _judge() == 4


def test_a_folder_without_an_answer_takes_another_judge(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After a wrong address the right one has the folder; once there is an answer no other judge has."""
    assert _judge("--attempts", "1", "--base-url", "http://127.0.0.1:9/v1", judge="openai:m") == 3
    assert _judge(judge="fake:error") == 3
    assert _judge() == 0
    assert "6 of 6 scored" in capsys.readouterr().out
    assert _judge(judge="fake:error") == 4


def test_five_under_the_declared_coverage(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Coverage under the bar ends with 5, the figures printed all the same; at the bar with 0."""
    judge = write_script(project / "s.jsonl", ("What is 1?", "no value"), (None, GOOD))
    assert _judge("--coverage", "0.9", judge=judge) == 5
    shown = capsys.readouterr()
    assert "5 of 6 scored" in shown.out
    assert "coverage 83.3% is under the declared 90.0%" in shown.err
    assert _judge("--coverage", "0.8", judge=judge) == 0


def test_a_run_of_failures_alone_ends_with_three(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every trial that was asked Failed: 3, before the 5 of --coverage, also beside answers set in code."""
    assert _judge(judge="fake:error") == 3
    told = capsys.readouterr()
    assert "the judge answered none of the trials it was asked" in told.err
    shown = told.out
    assert "0 of 6 scored; coverage 0.0%" in shown
    assert "nothing was scored" in shown
    assert "request failed: the fake judge fails as asked" in shown
    assert _judge("--coverage", "0.01", judge="fake:error") == 3
    write_jsonl(project / "blank.jsonl", [*rows(2), {"id": "blank", "question": "q", "answer": None}])
    some = ["judge", "blank.jsonl", "--rubric", "two.yaml", "--judge", "fake:error", "--out", "some"]
    assert run(some) == 3
    assert "warning: 1 null answer" in capsys.readouterr().out
    assert run([*some, "--coverage", "0.1"]) == 3
    assert run(["show", "some", "--item", "blank"]) == 0
    assert "warning: answer is null, not an empty text" in capsys.readouterr().out


def test_one_for_a_defect_with_a_traceback(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect of ours ends with 1, a traceback and how to report it."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("evenhand.store.Store.append", broken)
    assert _judge() == 1
    error = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in error
    assert "please report it" in error


def test_a_dry_run_sends_nothing(project: Path, capsys: pytest.CaptureFixture[str], server: FakeServer) -> None:
    """--dry-run shows a prompt, calls (re-asks and tries of the form at most) and tokens; no folder, no request."""
    server.reset()
    assert _judge("--dry-run", "--base-url", server.url, "--repeats", "2", judge="openai:m") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["trials"], told["calls"], told["calls_at_most"]) == (6, 12, 12, 27)
    assert told["prompt_tokens"] > 1000
    assert "What is 0?" in json.dumps(told["prompt"])
    assert server.stats()["requests"] == 0
    assert not (project / "run").exists()


def test_render_prints_what_would_be_sent(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`evenhand render` gives one line of messages per item, and says what needs no call."""
    write_jsonl(project / "data.jsonl", [*rows(1), {"id": "b", "question": "q", "answer": ""}])
    assert run(["render", "data.jsonl", "--rubric", "two.yaml", "--form", "tool"]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["id"], first["form"], first["function"]) == ("i0", "tool", "submit_verdict")
    assert set(first["schema"]["properties"]) == {"reason", "truth", "style"}
    assert second == {"id": "b", "messages": [], "set_in_code": {"truth": 0, "style": 0}}


def test_stdin_has_a_folder_of_its_own(project: Path) -> None:
    """ "-" reads JSON lines from stdin, whole before anything is sent; the default folder is runs/stdin-..."""
    command = [sys.executable, "-m", "evenhand", "judge", "-", "--rubric", "two.yaml", "--judge", "fake"]
    data = (project / "data.jsonl").read_bytes()
    for _ in range(2):
        done = subprocess.run(command, input=data, capture_output=True, check=False)
        assert (done.returncode, b"run: runs/stdin-two-fake" in done.stderr) == (0, True)
    assert len(statuses(project / "runs" / "stdin-two-fake")) == 6
    done = subprocess.run(command, input=b"{broken\n" + data, capture_output=True, check=False)
    assert done.returncode == 2


def test_one_item_in_full(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`show --item` reads as prompt, reply and verdict; --json has the same as data."""
    judge = write_script(project / "s.jsonl", (None, {"reason": "Because 评.", "truth": 0, "style": 4}))
    assert _judge(judge=judge) == 0
    capsys.readouterr()
    assert run(["show", "run", "--item", "i1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("item i1, row 2\n")
    assert "What is 1?" in shown
    assert '--- reply (schema)\n{"reason": "Because 评.", "truth": 0, "style": 4}' in shown
    assert "--- re-asked (schema)" in shown
    assert "--- verdict: scored\nreason: Because 评.\ntruth: 0\nstyle: 4\nviolation lie: a clear lie" in shown
    assert run(["show", "run", "--item", "i1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [r["attempt"] for r in told["trials"][0]["replies"]] == [0, 1]
    assert run(["show", "run", "--item", "i9"]) == 2
    assert "unknown item 'i9'" in capsys.readouterr().err


def test_one_item_without_stored_texts(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where item texts were not kept, the reply and verdict are shown and the lack is told."""
    assert _judge("--no-store-texts") == 0
    capsys.readouterr()
    assert run(["show", "run", "--item", "i1"]) == 0
    shown = capsys.readouterr().out
    assert "its texts were not stored" in shown
    assert "What is 1?" not in shown
    assert "--- verdict: scored" in shown


def test_export_and_rescore(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run goes to a file or stdout, and is read again under new weights without a call."""
    judge = write_script(project / "s.jsonl", (None, GOOD))
    assert _judge(judge=judge) == 0
    assert run(["export", "run", "--to", "x.csv"]) == 0
    assert (project / "x.csv").read_text().splitlines()[0].startswith("id,question,answer,status,")
    assert "6 rows written to x.csv" in capsys.readouterr().err
    assert run(["export", "run", "--to", "-", "--long"]) == 0
    assert [json.loads(line)["repeat"] for line in capsys.readouterr().out.splitlines()] == [0] * 6
    assert run(["rescore", "run", "--weights", "truth=0,style=1", "--json"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["composite"]["mean"] == 2.0
    assert "6 verdicts read again, 6 changed" in shown.err


def test_one_of_a_thing_is_told_in_the_singular(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No command says "1 rows", "1 trials" or the like."""
    (project / "broken.csv").write_text("question,answer\nq\n")
    for arguments in (
        ["judge", "data.jsonl", "--dry-run", "--limit", "1"],
        ["judge", "data.jsonl", "--out", "run", "--limit", "1"],
        ["show", "run", "--by", "id"],
        ["show", "run", "--item", "i0"],
        ["export", "run", "--to", "x.jsonl"],
        ["rescore", "run"],
        ["judge", "broken.csv"],
    ):
        more = ["--rubric", "two.yaml", "--judge", "fake"] if arguments[0] == "judge" else []
        run([*arguments, *more])
    told = capsys.readouterr()
    shown = told.out + told.err
    for words in (
        "1 trial, ",
        "of 1 row",
        "1 row written",
        "1 verdict read",
        "1 prompt",
        "1 cell, but the header has 2",
    ):
        assert words in shown
    assert (
        re.findall(
            r"\b1 (?:trial|row|verdict|prompt|cell|column|call|token|item|byte|message|repl|problem)\w*s\b", shown
        )
        == []
    )


def _stored(folder: Path) -> int:
    return len(statuses(folder)) if (folder / "run.sqlite").exists() else 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stores_what_is_in_flight(project: Path, server: FakeServer, number: signal.Signals) -> None:
    """SIGINT, SIGTERM and SIGHUP end with 130, every answer paid for is stored, and the next run does the rest."""
    write_jsonl(project / "data.jsonl", rows(80))
    url = server.with_faults(latency="60")
    server.reset()
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a child of nohup would never see it
    process = subprocess.Popen(_command(url, "--concurrency", "4"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    signal.signal(signal.SIGHUP, before)
    while process.poll() is None and _stored(project / "run") < 6:
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"interrupted; what was in flight is stored" in err
    assert b"of 80 scored" in out
    assert 6 <= _stored(project / "run") < 80
    assert summary(project / "run")["calls"] == server.stats()["requests"]
    done = subprocess.run(_command(url), capture_output=True, check=False)
    assert (done.returncode, b"80 of 80 scored" in done.stdout) == (0, True)
    assert summary(project / "run")["calls"] == server.stats()["requests"]


def test_a_second_signal_gives_up_what_is_in_flight(project: Path, server: FakeServer) -> None:
    """Where no answer comes, one signal waits and says so, the second ends with 130 at once; a resume goes on."""
    server.reset()
    process = subprocess.Popen(
        _command(server.with_faults(fault="hang")), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while process.poll() is None and not server.stats()["requests"]:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    while b"once more to give it up" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, b"Traceback" in err) == (130, False)
    assert _stored(project / "run") == 0
    Store.open(project / "run", write=True).close()


def test_a_signal_before_anything_is_asked(project: Path) -> None:
    """SIGTERM while the input is still being read ends with 130 and without a traceback."""
    command = [sys.executable, "-m", "evenhand", "judge", "-", "--rubric", "two.yaml", "--judge", "fake"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while process.poll() is None and not list(project.glob("runs/*/run.sqlite")):
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err


def test_the_key_is_never_printed_or_stored(
    project: Path, server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key and extra headers go to the server and nowhere else, even when it echoes them in its errors."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    shown = ""
    for settings in ({"fault": "422:0.8"}, {"fault": "401:0.3"}, {"fault": "403"}):
        server.reset()
        command = [*_command(server.with_faults(echo=True, **settings)), "--fresh", "--header", f"X-Token={KEY}-too"]
        done = subprocess.run(command, capture_output=True, check=False, text=True)
        shown += done.stdout + done.stderr
        seen = server.requests()[0]["headers"]
        assert (seen["authorization"], seen["x-token"]) == (f"Bearer {KEY}", f"{KEY}-too")
        assert run(["show", "run", "--json"]) == 0
        assert run(["export", "run", "--to", "-"]) == 0
        assert all(KEY.encode() not in file.read_bytes() for file in project.rglob("*") if file.is_file())
    told = capsys.readouterr()
    assert KEY not in shown + told.out + told.err
    assert "value is not valid" in told.out  # the echoing error itself is there


@pytest.mark.parametrize("more", [["export", "run", "--to", "-"], ["show", "run", "--item", "i0"], ["show", "run"]])
def test_a_closed_pipe_is_no_defect(project: Path, more: list[str]) -> None:
    """A reader that goes away, as `head` does, ends the command quietly."""
    write_jsonl(project / "data.jsonl", [{**row, "answer": "x" * 3000} for row in rows(200)])
    assert _judge() == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    process.stderr.close()
    assert (process.wait(20), error) == (0, b"")


def test_half_a_surrogate_pair_can_be_shown(project: Path) -> None:
    """What a judge wrote never stops a command from printing it."""
    assert (
        _judge(judge=write_script(project / "s.jsonl", (None, '{"reason": "a \\ud800 b", "truth": 1, "style": 1}')))
        == 0
    )
    for more in (
        ["show", "run", "--item", "i0"],
        ["export", "run", "--to", "-"],
        ["show", "run", "--item", "i0", "--json"],
    ):
        done = subprocess.run([sys.executable, "-m", "evenhand", *more], capture_output=True, check=False)
        assert (done.returncode, done.stderr.count(b"Traceback")) == (0, 0)
        assert b"\\ud800" in done.stdout


def test_export_never_overwrites_the_input(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data that the run was made from is refused as target with 2, from whatever folder."""
    before = (project / "data.jsonl").read_bytes()
    assert _judge() == 0
    assert run(["export", "run", "--to", "data.jsonl"]) == 2
    (project / "other").mkdir()
    monkeypatch.chdir(project / "other")
    assert run(["export", "../run", "--to", "../data.jsonl"]) == 2
    assert "../data.jsonl is a file that this output is made of" in capsys.readouterr().err
    assert (project / "data.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("name", "text", "rubric", "said"),
    [
        ("x.csv", "id;question;answer\n1;q;a\n", "two.yaml", "holds semicolons: if they separate cells, save it"),
        ("x.csv", "id\tquestion\tanswer\n1\tq\ta\n", "two.yaml", "--format tsv"),
        ("x.csv", "id,question,answer\n1,q,a\n", "hhh", "--map FIELD=COLUMN reads a field from another column; these"),
        ("x.jsonl", '{"question": "q", "answer": "a"}\n' * 2, "hhh", "these columns fit --rubric doc-qa"),
        ("x.jsonl", '{"prompt": "q", "responses": ["a", "b"]}\n', "hhh", "--pairs all makes pairs of the texts"),
        ("x.csv", 'prompt,responses\nq,"[1, 2]"\n', "hhh", "--pairs all makes pairs of the texts"),
        ("x.csv", "what,ever\n1,2\n", "two.yaml", "--map FIELD=COLUMN reads a field from another column\n"),
        ("x.jsonl", '{"question": "q", "answer": 7}\n{"question": "q", "answer": []}\n', "two.yaml", "--skip-bad"),
    ],
)
def test_columns_that_do_not_fit_are_told_with_what_would(
    project: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, rubric: str, said: str
) -> None:
    """The message names the columns found, and what was probably meant."""
    (project / name).write_text(text)
    assert run(["judge", name, "--rubric", rubric, "--judge", "fake", "--out", "run"]) == 2
    error = capsys.readouterr().err
    assert said in error


def test_an_item_that_failed_is_shown_with_its_prompt(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where no reply came, the page of an item still shows what was asked."""
    assert _judge(judge="fake:error") == 3
    capsys.readouterr()
    assert run(["show", "run", "--item", "i1"]) == 0
    told = capsys.readouterr().out
    assert "--- user" in told and "What is 1?" in told and "verdict: failed" in told


def test_two_for_standard_input_twice(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows and responses can't be read from one stream."""
    assert _judge("--responses", "-", data="-") == 2
    said = "rows and responses can't both come from standard input\n  put one of the two in a file"
    assert said in capsys.readouterr().err
