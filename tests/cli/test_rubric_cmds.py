"""``evenhand rubric``: what it prints, where, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from evenhand.cli.main import run as run_main
from evenhand.cli.rubric_cmds import rubric_group
from evenhand.errors import EvenhandError, InputError, UnknownNameError
from evenhand.rubric.load import builtin_names
from rubric_texts import PAIR, TEN_LINES, changed


def run(*arguments: str) -> Result:
    return CliRunner().invoke(rubric_group, list(arguments))


def out(*arguments: str) -> str:
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    return done.stdout


def failure(*arguments: str) -> EvenhandError:
    done = run(*arguments)
    assert isinstance(done.exception, EvenhandError), done.output
    return done.exception


def test_list() -> None:
    """One line for each built-in rubric; as JSON with name, mode, language and title."""
    assert [line.split()[0] for line in out("list").splitlines()] == builtin_names()
    rows = [json.loads(line) for line in out("list", "--json").splitlines()]
    assert [row["name"] for row in rows] == builtin_names()
    assert next(row for row in rows if row["name"] == "hhh")["mode"] == "compare"
    assert all(set(row) == {"name", "mode", "language", "title"} for row in rows)


@pytest.mark.parametrize("mode", ["score", "compare"])
def test_new_writes_a_rubric_without_mistakes(mode: str, tmp_path: Path) -> None:
    """A new rubric lints clean, shows its mode, and is never overwritten."""
    path = tmp_path / "mine.yaml"
    assert out("new", "mine", "--mode", mode, "--out", str(path)) == f"{path}\n"
    before = path.read_text(encoding="utf-8")
    assert out("lint", str(path)) == f"{path}: ok\n"
    assert json.loads(out("show", str(path), "--json"))["mode"] == mode
    assert "exists already" in failure("new", "mine", "--out", str(path)).message
    assert path.read_text(encoding="utf-8") == before


def test_new_needs_a_usable_name_and_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default file is NAME.yaml here; a name that is not kebab-case or a missing folder is refused."""
    monkeypatch.chdir(tmp_path)
    assert out("new", "mine") == "mine.yaml\n"
    assert isinstance(failure("new", "Not A Name"), InputError)
    assert isinstance(failure("new", "other", "--out", "nowhere/other.yaml"), InputError)
    assert [p.name for p in tmp_path.iterdir()] == ["mine.yaml"]


def test_lint_prints_every_mistake_to_stdout(tmp_path: Path) -> None:
    """Each mistake is a line with file, line, path and remedy; the exit code is 2 if any file has one."""
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(TEN_LINES, encoding="utf-8")
    bad.write_text(changed(changed(PAIR, "mode: compare", "mod: compare"), "gap > 3", "gp > 3"), encoding="utf-8")
    done = run("lint", str(good), str(bad))
    assert done.exit_code == 2
    lines = done.stdout.splitlines()
    assert lines[0] == f"{good}: ok"
    assert f"{bad}:2 $.mod: unknown key 'mod' (did you mean mode?)" in lines
    assert any("unknown name 'gp'" in line for line in lines)
    assert run_main(["rubric", "lint", str(bad)]) == 2


def test_lint_of_what_is_no_text(tmp_path: Path) -> None:
    """Bytes that are no text are a mistake like others, with its line."""
    path = tmp_path / "bad.yaml"
    path.write_bytes(b"\n\xff\xfe")
    done = run("lint", str(path))
    assert (done.exit_code, done.stdout) == (2, f"{path}:2: not UTF-8 text (save the file as UTF-8)\n")


def test_lint_of_built_in_rubrics() -> None:
    """Every built-in rubric is free of mistakes in all variants."""
    assert out("lint", *builtin_names()).splitlines() == [f"{name}: ok" for name in builtin_names()]


def test_show_for_a_person() -> None:
    """Inputs, criteria with scale and anchors, fields, rules and options are all there."""
    shown = out("show", "doc-qa", "--variant", "scale=0-3,evidence=true")
    for part in ("question: text, required", "correctness (weight 0.6)", "ordinal: 0 to 3", "3: Right", "scale=0-3"):
        assert part in shown
    assert "quotes_for_correctness" in shown
    assert "reason-length:correctness (warning)" in shown
    assert "A, B, tie" in out("show", "hhh")


def test_show_as_json() -> None:
    """The same as JSON data, for the chosen variant."""
    facts: dict[str, Any] = json.loads(
        out("show", "doc-qa", "--json", "--variant", "scale=1-5", "--variant", "detail=bare")
    )
    assert (facts["name"], facts["mode"], facts["language"]) == ("doc-qa", "score", "en")
    scale = facts["criteria"][0]["scale"]
    assert (scale["min"], scale["max"], scale["anchors"]) == (1, 5, {})
    assert [option["value"] for option in facts["options"]] == ["1-5", "bare", False]
    assert [field["name"] for field in facts["fields"]][-1] == "readability"


def test_schema() -> None:
    """The reply schema, the tool definition and the schema of the file format are valid JSON schemas."""
    reply = json.loads(out("schema", "doc-qa", "--variant", "scale=0-1"))
    assert reply["properties"]["readability"]["maximum"] == 1
    tool = json.loads(out("schema", "doc-qa", "--tool"))
    assert tool["function"]["name"] == "grading_function"
    file_format = json.loads(out("schema", "--format"))
    for schema in (reply, tool["function"]["parameters"], file_format):
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("arguments", [("schema",), ("schema", "hhh", "--tool", "--format"), ("lint",), ("show",)])
def test_usage_errors(arguments: tuple[str, ...]) -> None:
    """What is missing or does not go together is a usage error, told on stderr."""
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "Error" in done.stderr


def test_unknown_names() -> None:
    """Unknown rubrics, options and values are told with what exists."""
    assert isinstance(failure("show", "doc-aq"), UnknownNameError)
    assert "doc-qa" in str(failure("show", "doc-aq"))
    assert "detail" in str(failure("show", "doc-qa", "--variant", "detial=bare"))
    assert "0-10" in str(failure("schema", "doc-qa", "--variant", "scale=0-7"))
    assert isinstance(failure("lint", "nowhere.yaml"), UnknownNameError)


@pytest.mark.parametrize("name", ["new", "list", "show", "lint", "schema"])
def test_help_has_an_example_that_runs(name: str, tmp_path: Path) -> None:
    """Each help text has one example, and it works."""
    lines = [line.strip() for line in out(name, "--help").splitlines() if "Example:" in line]
    assert len(lines) == 1
    words = lines[0].removeprefix("Example: evenhand rubric ").split()
    assert out(*(str(tmp_path / "x.yaml") if word.startswith("/tmp/") else word for word in words))


def test_import_writes_a_rubric_without_mistakes(tmp_path: Path) -> None:
    """A prompt becomes a rubric named after its file; what was assumed goes to standard error; never overwrites."""
    prompt, path = tmp_path / "p.txt", tmp_path / "My Rubric.yaml"
    prompt.write_text("Grade {{ summary }} of {{ source }}.", encoding="utf-8")
    done = run("import", str(prompt), "--out", str(path), "--map", "answer=summary")
    assert (done.exit_code, done.stdout) == (0, f"{path}\n")
    assert done.stderr.splitlines() == [
        "assumed: a scale of whole numbers from 1 to 10",
        "assumed: the reply has a reason and a score",
    ]
    assert out("lint", str(path)) == f"{path}: ok\n"
    shown = json.loads(out("show", str(path), "--json"))
    assert (shown["name"], [field["name"] for field in shown["inputs"]]) == ("my-rubric", ["answer", "source"])
    assert "exists already" in failure("import", str(prompt), "--out", str(path), "--map", "answer=summary").message
