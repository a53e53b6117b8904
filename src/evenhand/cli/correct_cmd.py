"""``evenhand correct``: a run's figures corrected for its judge's errors."""

from __future__ import annotations

import json

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("correct")
@click.argument("run")
@click.option("--labels", required=True, metavar="FILE",
    help="One row per item and rater: id, rater, the rubric's field names.")  # fmt: skip
@click.option("--method", type=click.Choice(["ppi", "rogan-gladen", "isotonic", "two-stage"]), default="ppi",
    show_default=True, help="How to correct; rogan-gladen is for fields of two values.")  # fmt: skip
@click.option("--by", metavar="COLUMN", help="Figures for each value of a column, and their differences.")
@click.option(
    "--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field, id or rater from a column."
)
@options.value_option
@options.json_option
def correct_command(
    run: str, labels: str, method: str, by: str | None, mapping: tuple[str, ...], value: str, as_json: bool
) -> int:
    """RUN's figures as people would give them: the judge on all items, people on a random sample of them.

    Labels are joined by id, and are those of: evenhand agree. Twenty labelled items are the least.

    Example: evenhand correct runs/doc-qa --labels examples/doc-qa-labels.csv
    """
    from evenhand import api

    columns = options.pairs(mapping, "--map")
    facts = api.Run(run).correction(labels, method=method, by=by, map=columns, value=value)  # type: ignore[arg-type]
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.console import Terminal
    from evenhand.report.corrected import print_correction

    print_correction(facts, Terminal(highlight=False, emoji=False))
    return 0
