"""``evenhand variance``: what scores vary with, and where the next call is best spent."""

from __future__ import annotations

import json

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("variance")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B ...]")
@options.value_option
@options.json_option
def variance_command(runs: tuple[str, ...], value: str, as_json: bool) -> int:
    """Split the variance of scores into items, paraphrases, judges, orders and repeats.

    A run needs repeats, pairs in both orders, or paraphrases; several runs over the same items are several
    judges. Says what twice the calls would bring, spent one way or another.

    \b
    Example: evenhand judge examples/many.jsonl --rubric hhh --pairs all --judge fake --out runs/many
             evenhand variance runs/many
    """
    from evenhand import api

    facts = api.variance(runs, value=value)  # type: ignore[arg-type]
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.console import Terminal
    from evenhand.report.varied import print_variance

    print_variance(facts, Terminal(highlight=False, emoji=False))
    return 0
