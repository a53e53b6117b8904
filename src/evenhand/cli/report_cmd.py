"""``evenhand report``: runs as one page to read, or as Markdown, JSON or JUnit XML."""

from __future__ import annotations

from typing import Any

import click

from evenhand.cli import options
from evenhand.cli.output import note


@click.command("report")
@click.argument("runs", nargs=-1, required=True, metavar="RUN [RUN_B ...]")
@click.option("--out", required=True, metavar="FILE",
    help="The file to write: .html, .md, .json or .xml (JUnit); - for standard output, with --to.")  # fmt: skip
@click.option("--to", type=click.Choice(["html", "md", "json", "junit"]), help="The format, where FILE doesn't tell.")
@click.option("--by", metavar="COLUMN",
    help="Break the figures down by a column of the input or an item field  [default: system or model]")  # fmt: skip
@click.option("--labels", metavar="FILE", help="What people said: id, rater, the rubric's field names.")
@click.option(
    "--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field, id or rater of the labels."
)
@click.option("--charts/--no-charts", default=None,
    help="Draw charts in HTML  [default: where evenhand[report] is installed]")  # fmt: skip
@options.value_option
def report_command(runs: tuple[str, ...], out: str, mapping: tuple[str, ...], **given: Any) -> int:
    """A run as one HTML page: figures, and the verdicts, prompts and raw replies behind each of them.

    The page needs no network and opens from disk. Several runs over the same items stand side by side.

    Example, after evenhand judge examples/doc-qa.jsonl --judge fake --out runs/doc-qa:
    evenhand report runs/doc-qa --out report.html
    """
    from evenhand.reporting import write_report

    write_report(runs, out, map=options.pairs(mapping, "--map"), **given)
    if out != "-":
        note(f"report written to {out}")
    return 0
