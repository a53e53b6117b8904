"""``evenhand compare``: systems against each other on the same questions."""

from __future__ import annotations

import json
from typing import Any

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B ...]")
@click.option("--by", metavar="COLUMN", help="The column that tells systems apart, where one run holds several.")
@click.option("--margin", type=options.NumberType("margin"), default=0.0, show_default=True, metavar="X",
    help="Points by which a system may be worse and still count as not worse.")  # fmt: skip
@click.option("--test", type=click.Choice(["permutation", "mcnemar", "wilcoxon"]), default="permutation",
    show_default=True, help="What p is of; mcnemar takes ratings of two values.")  # fmt: skip
@click.option("--interval", type=click.Choice(["t", "bootstrap"]), default="t", show_default=True,
    help="Interval of the difference; bootstrap: BCa over questions.")  # fmt: skip
@options.value_option
@options.json_option
def compare_command(runs: tuple[str, ...], by: str | None, as_json: bool, **how: Any) -> int:
    """Is B better than A, by how much, how sure, and how many more questions would settle it.

    Runs over the same items are compared item by item; with --by, the systems of one run question by
    question.

    Example, after evenhand judge examples/systems.jsonl --judge fake --out runs/systems:
    evenhand compare runs/systems --by system
    """
    from evenhand import api

    facts = api.compare(runs, by=by, **how)
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.compared import print_comparison
    from evenhand.report.console import Terminal

    print_comparison(facts, Terminal(highlight=False, emoji=False))
    return 0
