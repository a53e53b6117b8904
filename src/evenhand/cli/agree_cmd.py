"""``evenhand agree``: a run's judge against people, and people against each other."""

from __future__ import annotations

import json
from pathlib import Path

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("agree")
@click.argument("run")
@click.option("--labels", metavar="FILE", help="One row per item and rater: id, rater, the rubric's field names.")
@click.option("--rubric", metavar="R", help="The rubric, where RUN is a file of people's ratings.")
@click.option(
    "--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field, id or rater from a column."
)
@options.value_option
@options.json_option
def agree_command(
    run: str, labels: str | None, rubric: str | None, mapping: tuple[str, ...], value: str, as_json: bool
) -> int:
    """How far RUN's judge agrees with people, beside how far people agree with each other.

    RUN is a run folder; or a file of ratings with --rubric, for people alone. Labels are joined by id.

    Example: evenhand agree runs/doc-qa --labels examples/doc-qa-labels.csv
    """
    from evenhand import api
    from evenhand.errors import InputError

    columns = options.pairs(mapping, "--map")
    if labels is None:
        if Path(run).is_dir():
            raise InputError("the people's labels are not given", hint="say --labels FILE")
        if rubric is None:
            raise InputError(f"{run} is no run folder", hint="for ratings of people alone, say --rubric R")
        facts = api.agreement(run, rubric, map=columns)
    else:
        if rubric is not None:
            raise InputError("--rubric goes with a file of ratings; a run has its own")
        facts = api.Run(run).agreement(labels, map=columns, value=value)  # type: ignore[arg-type]
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.agreed import print_agreement
    from evenhand.report.console import Terminal

    print_agreement(facts, Terminal(highlight=False, emoji=False))
    return 0
