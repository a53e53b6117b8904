"""``evenhand compare``: systems against each other on the same questions."""

from __future__ import annotations

import json

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B ...]")
@click.option("--by", metavar="COLUMN", help="The column that tells systems apart, where one run holds several.")
@click.option("--margin", type=options.NumberType("margin"), default=0.0, show_default=True, metavar="X",
    help="Points by which a system may be worse and still count as not worse.")  # fmt: skip
@options.value_option
@options.json_option
def compare_command(runs: tuple[str, ...], by: str | None, margin: float, value: str, as_json: bool) -> int:
    """Is B better than A, by how much, how sure, and how many more questions would settle it.

    Runs over the same items are compared item by item; with --by, the systems of one run question by
    question.

    Example: evenhand compare runs/doc-qa --by system
    """
    from evenhand import api

    facts = api.compare(runs, by=by, margin=margin, value=value)  # type: ignore[arg-type]
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.compared import print_comparison
    from evenhand.report.console import Terminal

    print_comparison(facts, Terminal(highlight=False, emoji=False))
    return 0
