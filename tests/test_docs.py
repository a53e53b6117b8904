"""The documentation runs: every console and Python example of README and docs, and the reference pages' lists.

A comment above a block says how it is treated:

- ``<!-- not run: reason -->``: left out, and counted;
- ``<!-- file: NAME -->``: written to NAME for the examples after it;
- ``<!-- fragment -->``: part of a file, only read;
- ``<!-- output -->``: what the Python example before it prints;
- ``<!-- recorded: FILE -->``: ``--judge local`` answers from the local judge's replies kept in docs/recorded;
- ``<!-- local model -->``: runs a real model, and is skipped where its weights are absent.
"""

from __future__ import annotations

import contextlib
import html
import io
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

import local_models
from evenhand import errors
from evenhand.cli.agree_cmd import NOT_MET
from evenhand.cli.check_cmd import VIOLATIONS
from evenhand.cli.judge_cmd import LOW_COVERAGE
from evenhand.cli.main import INTERRUPTED, cli, run
from evenhand.functions import FUNCTIONS
from evenhand.registry import names
from evenhand.rubric.format import RUBRIC
from evenhand.rubric.load import builtin_names
from evenhand.verdict import Failure, Status

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
MOST_NOT_RUN = 12

_BLOCK = re.compile(
    r"(?:^<!-- (?P<note>.+?) -->\n+)?^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_OPTION = re.compile(r"`(--[a-z][a-z-]*)[ `]")


@dataclass(frozen=True)
class Block:
    """A fenced block, the comment above it, and where it stands."""

    note: str
    language: str
    body: str
    place: str


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            m["note"] or "",
            m["language"],
            m["body"],
            f"{page.relative_to(ROOT)}:{text.count(chr(10), 0, m.start('body')) + 1}",
        )
        for m in _BLOCK.finditer(text)
    ]


LEFT_OUT = [block for page in PAGES for block in blocks(page) if block.note.startswith("not run: ")]


def is_local(block: Block) -> bool:
    """Whether a block runs a real model."""
    return block.note == "local model"


def by_name(pages: list[Path]) -> list[object]:
    """Pages as test parameters with readable ids."""
    return [pytest.param(page, id=str(page.relative_to(ROOT))) for page in pages]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the examples and the recordings in it, and a terminal of 80 columns."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shutil.copytree(DOCS / "recorded", tmp_path / "recorded")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


@pytest.mark.parametrize("page", by_name([p for p in PAGES if any(not is_local(b) for b in blocks(p))]))
def test_examples_run(page: Path, place: Path) -> None:
    """Every example of a page runs in order and prints what the page says."""
    run_blocks([block for block in blocks(page) if not is_local(block)])


@pytest.mark.local_model
@pytest.mark.parametrize("page", by_name([p for p in PAGES if any(is_local(b) for b in blocks(p))]))
def test_examples_with_a_local_model_run(page: Path, place: Path) -> None:
    """The examples that need a real model run with the small one."""
    local_models.small_model()
    run_blocks([block for block in blocks(page) if is_local(block) or block.note.startswith("file: ")])


def run_blocks(found: list[Block]) -> None:
    """Run the examples of a page in order; they share one folder and one Python namespace."""
    namespace: dict[str, object] = {"__name__": "__docs__"}
    printed = ""
    for block in found:
        kind, _, rest = block.note.partition(": ")
        if kind == "not run":
            continue
        if kind == "file":
            Path(rest).write_text(block.body, encoding="utf-8")
        elif kind == "output":
            require_like(printed, block.body, block.place)
        elif block.language == "python":
            printed = run_python(block, namespace)
        elif block.language == "console":
            run_console(block, recording=rest if kind == "recorded" else "")


def run_python(block: Block, namespace: dict[str, object]) -> str:
    """Run a Python example and return what it prints."""
    with captured() as out:
        exec(compile(block.body, block.place, "exec"), namespace)
    return out.getvalue()


def run_console(block: Block, recording: str = "") -> None:
    """Run a console example; only evenhand's own commands, and `echo $?`, are known."""
    last, shown = 0, True
    for command, expected in commands(block):
        if command == "echo $?":
            require_like(f"{last}\n", expected, block.place)
            shown = True
            continue
        assert shown, f"{block.place}: a command before {command!r} ended with {last}"
        program, *arguments = shlex.split(command)
        assert program == "evenhand", f"{block.place}: {command!r} is not ours to run"
        if recording:
            assert arguments[arguments.index("--judge") + 1] == "local"
            arguments[arguments.index("--judge") + 1] = f"replay:{recording}"
            expected = re.sub(r"judged by local \(.*?\)", f"judged by replay:{recording}", expected)
        with captured() as out:
            last = run(arguments)
        shown = last == 0
        if expected:
            require_like(out.getvalue(), expected, block.place)
    assert shown, f"{block.place}: the last command ended with {last}"


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """Commands of a console block, continued lines joined, each with the output that follows it."""
    text = block.body.replace("\\\n", " ")
    for piece in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, expected = piece.partition("\n")
        yield command.strip(), expected


@contextlib.contextmanager
def captured() -> Iterator[io.StringIO]:
    """Standard output and standard error as one text, as in a terminal."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield out


def require_like(actual: str, expected: str, where: str) -> None:
    """Compare by lines, blank ones and trailing spaces aside; `...` stands for any lines, or the rest of a line."""
    pattern = ""
    for line in lines_of(expected):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("...")) + r"\n"
    text = "".join(f"{line}\n" for line in lines_of(actual))
    assert re.fullmatch(pattern, text), f"{where}: the example prints\n{text}\nbut the page says\n{expected}"


def lines_of(text: str) -> list[str]:
    """Lines without trailing space; blank ones are left out."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_few_examples_are_not_run() -> None:
    """Every block is treated as its comment says, and those left out stay few."""
    found = [block for page in PAGES for block in blocks(page)]
    kinds = {"", "not run", "fragment", "file", "output", "recorded", "local model"}
    assert {block.note.partition(": ")[0] for block in found} <= kinds
    assert [b.place for b in found if not b.note and b.language not in ("python", "console", "text", "sh")] == []
    assert len(LEFT_OUT) <= MOST_NOT_RUN, [block.place for block in LEFT_OUT]


@pytest.mark.parametrize("block", [pytest.param(block, id=block.place) for block in LEFT_OUT])
def test_example_left_out(block: Block) -> None:
    """An example that is not run says why, and shows up among the skipped tests."""
    reason = block.note.removeprefix("not run: ")
    assert reason
    pytest.skip(f"{block.place}: {reason}")


@pytest.mark.parametrize("page", by_name(PAGES))
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link of a page leads to a file of the project."""
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://", "#")):
            assert (page.parent / link.partition("#")[0]).exists(), link


def leaves(command: click.Command, name: str, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """A command's own commands that do something, by full name."""
    if isinstance(command, click.Group):
        for child in command.list_commands(context):
            found = command.get_command(context, child)
            assert found is not None
            yield from leaves(found, f"{name} {child}", context)
    else:
        yield name, command


def test_reference_names_every_option() -> None:
    """The command line reference has a section for every command, with exactly the options that exist."""
    text = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## `([a-z ]+)`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    there = dict(leaves(cli, "evenhand", click.Context(cli)))
    assert set(sections) == set(there)
    for name, command in there.items():
        options = {opt for p in command.params if isinstance(p, click.Option) for opt in p.opts}
        assert set(_OPTION.findall(sections[name])) == options, name


def words_of(page: str) -> set[str]:
    """Everything a reference page sets in code type."""
    return set(re.findall(r"`([^`\n]+)`", (DOCS / "reference" / page).read_text(encoding="utf-8")))


def test_exit_codes_are_told_once() -> None:
    """README and reference have the same table, with every code there is."""
    tables = [
        re.findall(r"^\| (\d+) \| (.+) \|$", text.partition("## Exit codes\n")[2].partition("\n## ")[0], re.MULTILINE)
        for text in ((ROOT / "README.md").read_text(), (ROOT / "docs/reference/command-line.md").read_text())
    ]
    assert tables[0] == tables[1]
    assert [int(code) for code, _ in tables[0]] == [*range(5), LOW_COVERAGE, VIOLATIONS, NOT_MET, INTERRUPTED]


def test_reference_names_every_error_and_outcome() -> None:
    """The page of errors names every error with its exit code, every status and every class of unreadable reply."""
    text = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    kinds = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, errors.EvenhandError)]
    for kind in kinds:
        if not kind.__name__.startswith("_") and kind is not errors.EvenhandError:
            assert re.search(rf"`{kind.__name__}` +\| {kind.exit_code} ", text), kind.__name__
    assert {s.value for s in Status} | {f.value for f in Failure} <= words_of("errors.md")


def test_reference_names_every_function() -> None:
    """The page of rules names every function an expression may call."""
    assert {f"{name}(" for name in FUNCTIONS} <= {word.partition("(")[0] + "(" for word in words_of("rules.md")}


def test_reference_names_every_key() -> None:
    """The page of the rubric format names every key at the top of a rubric file."""
    keys = {*RUBRIC.required, *RUBRIC.optional}
    assert keys <= words_of("rubric-format.md")


def test_pages_name_what_is_built_in() -> None:
    """The README names every rubric and every kind of judge that come with the package."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in (*builtin_names(), *names("backend")) if f"`{name}" not in text] == []


def test_architecture_shows_layers_and_errors() -> None:
    """The architecture page shows the layers that import-linter holds, in their order, and the error tree."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    text = (DOCS / "design" / "architecture.md").read_text(encoding="utf-8")
    assert "\n".join(layers) in text
    tree = [line.strip() for line in (errors.__doc__ or "").splitlines() if "|-" in line or "`-" in line]
    assert [line for line in tree if line not in text] == []


def test_picture_shows_a_real_run(place: Path) -> None:
    """The picture of a summary holds every line that the recorded run prints."""
    judge = ["judge", "examples/doc-qa.jsonl", "--rubric", "doc-qa", "--variant", "detail=anchors", "--no-reason"]
    with captured() as out:
        assert run([*judge, "--judge", "replay:recorded/doc-qa.jsonl", "--out", "runs/x"]) == 0
        out.seek(0)
        out.truncate()
        assert run(["show", "runs/x", "--by", "system"]) == 0
    picture = (DOCS / "images" / "summary.svg").read_text(encoding="utf-8")
    shown = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", picture)).split())
    for line in lines_of(out.getvalue()):
        if not line.startswith(("doc-qa v", "tokens")):
            assert " ".join(line.split()) in shown, line
