"""``evenhand rank``: systems by whose responses are preferred."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from evenhand.cli import options
from evenhand.cli.output import say


@click.command("rank")
@click.argument("run", metavar="RUN|RATINGS")
@click.option(
    "--systems",
    metavar="A,B",
    default="system_a,system_b",
    show_default=True,
    help="The columns that name the systems of response A and B.",
)
@click.option(
    "--ties",
    type=click.Choice(["davidson", "half"]),
    default="davidson",
    show_default=True,
    help="Ties as an outcome of their own in the strengths, or as half a win.",
)
@click.option(
    "--control", metavar="NAME,...", help="Strengths at equal length, markdown, or NAME of columns NAME_a and NAME_b."
)
@click.option(
    "--interval",
    type=click.Choice(["sandwich", "bootstrap"]),
    default="sandwich",
    show_default=True,
    help="Intervals of the strengths; the bootstrap draws prompts.",
)
@click.option(
    "--elo", type=options.NumberType("elo"), metavar="K", help="Sequential Elo too, to set beside tables that have it."
)
@click.option("--seed", type=options.NumberType("seed"), default=0, show_default=True,
    help="Of all that is drawn at random.")  # fmt: skip
@options.value_option
@options.json_option
def rank_command(run: str, systems: str, value: str, as_json: bool, control: str | None, **model: Any) -> int:
    """Systems by whose responses are preferred: strength, rank and win rate, with intervals.

    RUN is a run of pairs; RATINGS a table of comparisons with columns system_a, system_b, preference (A, B
    or tie), and prompt and order (ab or ba) where there are any.

    Example, after evenhand judge examples/many.jsonl --rubric hhh --pairs all --judge fake --out runs/many:
    evenhand rank runs/many --control length
    """
    a, _, b = (piece.strip() for piece in systems.partition(","))
    if not a or not b or a == b:
        raise click.UsageError(f"--systems takes two columns, as in model_a,model_b, not {systems!r}")
    model |= {"systems": (a, b), "control": () if control is None else control}
    if run == "-" or Path(run).is_file():
        from evenhand.ranking import table_ranking

        if value != "stated":
            raise click.UsageError("--value goes with a run; a table has the preferences as they are")
        facts = table_ranking(run, **model)
    else:
        from evenhand.api import Run

        facts = Run(run).ranking(value=value, **model)  # type: ignore[arg-type]
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return 0
    from evenhand.report.console import Terminal
    from evenhand.report.standings import print_ranking

    print_ranking(facts, Terminal(highlight=False, emoji=False))
    return 0
