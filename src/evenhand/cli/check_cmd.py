"""``evenhand check``: a rubric's rules on ratings made by people or other tools."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from evenhand._words import counted
from evenhand.cli import options
from evenhand.cli.output import note, say

if TYPE_CHECKING:
    from evenhand.checking import Check, Finding

VIOLATIONS = 6
_SHOWN = 50


@click.command("check")
@click.argument("ratings")
@click.option("--rubric", required=True, metavar="R", help="Built-in name or file.")
@click.option("--variant", multiple=True, metavar="NAME=VALUE,...", help="The rubric's own options.")
@click.option("--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field from a column.")
@click.option("--format", metavar="NAME", help="Input format, where the file name doesn't tell.")
@click.option("--label-set", metavar="NAME", help="The file's labels are of helpsteer2, llama2 or fastchat.")
@click.option("--partial", is_flag=True, help="No column is required; rules without theirs are not checked.")
@click.option("--skip-bad", is_flag=True, help="Leave rows out that can't be read at all, and count them.")
@click.option("--out", metavar="FILE", help="Write rows with findings: .jsonl, .csv, .tsv or .parquet.")
@click.option("--out-label-set", metavar="NAME", help="Add the labels in this label set to --out.")
@options.json_option
def check_command(
    ratings: str,
    rubric: str,
    variant: tuple[str, ...],
    mapping: tuple[str, ...],
    format: str | None,
    label_set: str | None,
    partial: bool,
    skip_bad: bool,
    out: str | None,
    out_label_set: str | None,
    as_json: bool,
) -> int:
    """Check ratings against a rubric's rules. Exits with 6 if a violation is found. Never calls a model.

    RATINGS is a .jsonl, .json, .csv, .tsv or .parquet file, or - for JSON lines; its columns have
    the names of the rubric's fields.

    Example: evenhand check examples/ratings.csv --rubric hhh --out checked.csv
    """
    from evenhand import checking
    from evenhand.errors import InputError

    if out_label_set is not None and out is None:
        raise InputError("--out-label-set adds columns to --out, which is not given")
    check = checking.check(
        ratings,
        rubric,
        map=options.pairs(mapping, "--map"),
        variant=options.variant(variant),
        format=format,
        label_set=label_set,
        partial=partial,
        skip_bad=skip_bad,
    )
    printer = _Printer(check.name, as_json=as_json)
    try:
        _print_or_write(check, printer, out, out_label_set)
    except InputError:
        if check.bad:  # all other rows were checked
            _conclude(check, printer, as_json=as_json)
        raise
    return VIOLATIONS if _conclude(check, printer, as_json=as_json) else 0


def _print_or_write(check: Check, printer: _Printer, out: str | None, labels: str | None) -> None:
    """Show all findings, and write the rows where they go into a file."""
    if out is not None:
        count = check.write(out, labels=labels, on_finding=printer.show)
        note(f"{counted(count, 'row')} written to {out}")
        return
    for finding in check:
        printer.show(finding)


class _Printer:
    """Prints findings as they come; for people only the first ones."""

    def __init__(self, file: str | None, *, as_json: bool) -> None:
        self._file = file
        self._as_json = as_json
        self.more = 0
        self._shown = 0

    def show(self, finding: Finding) -> None:
        if self._as_json:
            names = ("row", "id", "rule", "severity", "message")
            say(json.dumps({name: getattr(finding, name) for name in names}, ensure_ascii=False))
        elif self._shown < _SHOWN:
            self._shown += 1
            place = f"row {finding.row}" if finding.line is None else f"{self._file}:{finding.line}"
            head = " ".join(part for part in (place, finding.id) if part)
            say(f"{head}: {finding.severity} {finding.rule}: {finding.message}")
        else:
            self.more += 1


def _conclude(check: Check, printer: _Printer, *, as_json: bool) -> int:
    """Print the figures; the number of violations."""
    summary = check.summary()
    if as_json:
        say(json.dumps({name: summary[name] for name in ("rows", "violations", "warnings")}))
    else:
        from evenhand.report.checked import print_check
        from evenhand.report.console import Terminal

        if printer.more:
            say(f"... and {printer.more} more; --json prints all, --out keeps them beside the rows")
        print_check(summary, Terminal(highlight=False, emoji=False))
    if summary["bad_rows"]:
        note(f"{counted(summary['bad_rows'], 'row')} can't be read")
    return int(summary["violations"])
