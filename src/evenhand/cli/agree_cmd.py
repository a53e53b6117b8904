"""``evenhand agree``: judges against people, people and judges against each other, and which judge to buy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evenhand.cli import options
from evenhand.cli.output import note, say

NOT_MET = 7


@click.command("agree")
@click.argument("runs", nargs=-1, required=True, metavar="RUN|RATINGS [RUN_B ...]")
@click.option(
    "--labels",
    multiple=True,
    metavar="FILE",
    help="One row per item and rater: id, rater, the rubric's field names. Of several runs: one, or one each.",
)
@click.option("--rubric", metavar="R", help="The rubric, where RUN is a file of people's ratings.")
@click.option(
    "--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field, id or rater from a column."
)
@click.option("--by", metavar="COLUMN", help="Break the figures down by a column of the input or an item field.")
@click.option(
    "--statistic", multiple=True, metavar="NAME,...", help="Which figures, as in kappa,within:1; all for all that fit."
)
@click.option("--width", type=options.NumberType("width"), metavar="W",
    help="How many labelled items each figure's interval needs to be so wide.")  # fmt: skip
@click.option(
    "--require",
    multiple=True,
    metavar="BAR",
    help="A bar as in kappa>=0.6 or mae@FIELD<=1; ends with 7 where it is not met, or can't be told.",
)
@options.value_option
@options.json_option
def agree_command(
    runs: tuple[str, ...], labels: tuple[str, ...], rubric: str | None, as_json: bool, **given: Any
) -> int:  # fmt: skip
    """How far RUN's judge agrees with people, beside how far people agree with each other.

    RUN is a run folder; or a file of ratings with --rubric, for people alone. Several runs are judges side by
    side: with --labels which one to buy, without how far they agree with each other. All is joined by id.

    Example: evenhand agree runs/doc-qa --labels examples/doc-qa-labels.csv --statistic kappa,alpha --by system
    """
    facts = _several(runs, labels, rubric, given) if len(runs) > 1 else _one(runs[0], labels, rubric, given)
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
    else:
        _print(facts)
    return _told_bars(facts)


def _one(run: str, labels: tuple[str, ...], rubric: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    from evenhand import api
    from evenhand.errors import InputError

    asked = {name: given[name] for name in ("by", "statistic", "width", "require")}
    asked["map"] = options.pairs(given["mapping"], "--map")
    if len(labels) > 1:
        raise InputError("one run takes one file of labels", hint="put the rows of all raters into one file")
    if not labels:
        if Path(run).is_dir():
            raise InputError("the people's labels are not given", hint="say --labels FILE, or a second run")
        if rubric is None:
            raise InputError(f"{run} is no run folder", hint="for ratings of people alone, say --rubric R")
        return api.agreement(run, rubric, **asked)
    if rubric is not None:
        raise InputError("--rubric goes with a file of ratings; a run has its own")
    return api.Run(run).agreement(labels[0], value=given["value"], **asked)


def _several(
    runs: tuple[str, ...], labels: tuple[str, ...], rubric: str | None, given: Mapping[str, Any]
) -> dict[str, Any]:
    from evenhand.errors import InputError
    from evenhand.quality import judge_quality

    asked = {"--rubric": rubric, "--by": given["by"], "--width": given["width"], "--require": given["require"]}
    for option in (name for name, value in asked.items() if value):
        hint = f"say it of each run: evenhand agree RUN --labels FILE {option} ..."
        raise InputError(
            f"{option} goes with one run, not with {len(runs)}", hint=None if option == "--rubric" else hint
        )
    columns = options.pairs(given["mapping"], "--map")
    return judge_quality(runs, labels or None, map=columns, value=given["value"], statistic=given["statistic"])


def _print(facts: Mapping[str, Any]) -> None:
    from evenhand.report.agreed import print_agreement
    from evenhand.report.console import Terminal
    from evenhand.report.judges import print_judges

    terminal = Terminal(highlight=False, emoji=False)
    if "judges" in facts:
        print_judges(facts, terminal)
    else:
        print_agreement(facts, terminal)


def _told_bars(facts: Mapping[str, Any]) -> int:
    """Tell what came of the bars; the exit code."""
    from evenhand.bars import met
    from evenhand.report.agreed import bar_lines

    bars = facts.get("bars", ())
    for line in bar_lines(bars):
        note(line)
    return 0 if met(bars) else NOT_MET
