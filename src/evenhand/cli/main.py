"""The command ``evenhand``: finds the command asked for, and turns errors into messages and exit codes."""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
from typing import Any

import click

from evenhand import __version__
from evenhand.cli import output
from evenhand.errors import EvenhandError, InputError

INTERRUPTED = 130
_GARBAGE = 20_000  # new objects between two collections: with Python's 700 a start spends a tenth of its time on them
_COMMANDS = {
    "judge": ("judge_cmd:judge_command", "Score or compare every item of a file; run again to resume."),
    "show": ("run_cmds:show", "A run's figures, or everything about one item."),
    "rank": ("rank_cmd:rank_command", "Systems by whose responses are preferred, with intervals."),
    "compare": ("compare_cmd:compare_command", "Which system is better, by how much, how sure."),
    "agree": ("agree_cmd:agree_command", "A run's judge against people, and people against each other."),
    "study": ("study_cmd:study_command", "Which scale or detail to use: a run on several, side by side."),
    "correct": ("correct_cmd:correct_command", "A run's figures corrected for its judge's errors."),
    "variance": ("variance_cmd:variance_command", "What scores vary with, and where the next call is best spent."),
    "report": ("report_cmd:report_command", "A run as one HTML page, or as Markdown, JSON, JUnit XML."),
    "export": ("run_cmds:export", "A run's verdicts as JSON lines, CSV or Parquet."),
    "rescore": ("run_cmds:rescore_command", "Read a run's stored replies again; never calls."),
    "merge": ("run_cmds:merge_command", "The shards of an input, or runs over different rows, as one run."),
    "render": ("judge_cmd:render_command", "The exact messages a judge would get."),
    "read": ("read_cmd:read_command", "Read raw replies, without a model."),
    "check": ("check_cmd:check_command", "A rubric's rules on ratings made by people or other tools."),
    "rubric": ("rubric_cmds:rubric_group", "New, list, show, lint, schema and import of rubrics."),
    "model": ("model_cmds:model", "Weights of local judges."),
}


class _Lazy(click.Group):
    """Imports a command's module only when that command is used, so that ``--help`` is quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(f"evenhand.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="evenhand")
def cli() -> None:
    """Judge model answers with language models, and hold the judge to account.

    Example: evenhand judge examples/doc-qa.jsonl --rubric doc-qa --judge local
    """


def interrupted(*, asked: bool) -> int:
    """Tell of an interrupt, before or after the judge was asked, and how to go on; the exit code."""
    what = "interrupted; what was in flight is stored" if asked else "interrupted before the judge was asked"
    output.note(f"{what}; run the same command again to go on")
    return INTERRUPTED


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, signal.default_int_handler)  # until a run takes it over; ends with 130 too
    gc.set_threshold(_GARBAGE)
    output.take_over()
    sys.exit(run(arguments))


def run(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Returns:
        The exit code; the README lists them.
    """
    try:
        result: Any = cli.main(arguments, prog_name="evenhand", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Abort:
        return INTERRUPTED
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except output.OutputError as error:
        output.give_up()
        if isinstance(error.__cause__, BrokenPipeError):  # the reader has enough, as `head` has
            return 0
        output.note(f"error: {error}")
        return error.exit_code
    except EvenhandError as error:
        output.note(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.filename is None:
            return _defect()
        output.note(f"error: {os.fsdecode(error.filename)}: {error.strerror}")
        return InputError.exit_code
    except Exception:
        return _defect()
    return result if isinstance(result, int) else 0


def _defect() -> int:
    import traceback

    traceback.print_exc()
    output.note(f"\nThis is a defect of evenhand {__version__}: please report it with the lines above.")
    return 1
