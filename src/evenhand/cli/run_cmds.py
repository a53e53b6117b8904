"""``evenhand show``, ``export`` and ``rescore``: commands about a stored run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from evenhand._words import counted
from evenhand.cli import options
from evenhand.cli.output import note, say


@click.command()
@click.argument("run")
@click.option("--by", metavar="COLUMN", help="Break the figures down by a column of the input or an item field.")
@click.option("--item", "item_id", metavar="ID", help="Everything about one item: prompt, replies, verdict.")
@options.value_option
@options.json_option
def show(run: str, by: str | None, item_id: str | None, value: str, as_json: bool) -> int:
    """A run's figures with intervals and coverage, or everything about one item.

    Example: evenhand show runs/doc-qa --by system
    """
    from evenhand.api import Run

    if item_id is not None:
        given = os.fsencode(item_id).decode("utf-8", "surrogateescape")  # UTF-8 whatever the locale says
        _show_item(run, given, as_json=as_json)
    else:
        print_run(Run(run).summary(value=value, by=by), as_json=as_json)  # type: ignore[arg-type]
    return 0


def print_run(facts: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a run's figures to stdout."""
    if as_json:
        say(json.dumps(facts, ensure_ascii=False))
        return
    from evenhand.report.console import Terminal
    from evenhand.report.terminal import print_summary

    print_summary(facts, Terminal(highlight=False, emoji=False))


def _show_item(run: str, item_id: str, *, as_json: bool) -> None:
    from evenhand.inspection import inspect_item
    from evenhand.report.terminal import item_lines

    told = inspect_item(Path(run), item_id)
    if as_json:
        say(json.dumps(told, ensure_ascii=False))
        return
    for line in item_lines(told):
        say(line)


@click.command()
@click.argument("run")
@click.option(
    "--to", "target", required=True, metavar="FILE", help="A .jsonl, .csv, .tsv or .parquet file, or - for JSON lines."
)
@click.option("--long", is_flag=True, help="One row per trial instead of one per input row.")
@click.option("--sft", is_flag=True, help="Chat rows to train a judge on, and held-out rows beside them.")
@click.option("--rubric", metavar="R", help="With --sft: the rubric, where RUN is a file of items with verdicts.")
@click.option(
    "--held-out", type=options.NumberType("held_out"), metavar="X",
    help="With --sft: share of question groups held out  [default: 0.1]",
)  # fmt: skip
@click.option("--seed", type=options.NumberType("seed"), help="With --sft: of the draw  [default: 0]")
@options.value_option
def export(
    run: str,
    target: str,
    long: bool,
    sft: bool,
    rubric: str | None,
    held_out: float | None,
    seed: int | None,
    value: str,
) -> int:
    """Write one row per input row, in input order, with its verdict beside it.

    Example: evenhand export runs/doc-qa --to verdicts.csv
    """
    from evenhand.api import Run
    from evenhand.export import write_rows

    if sft:
        if long or value != "stated":
            raise click.UsageError("--sft writes stated verdicts, one row an item: no --long, no --value")
        return _export_training(run, target, rubric, 0.1 if held_out is None else held_out, seed or 0)
    for name, given in (("--rubric", rubric), ("--held-out", held_out), ("--seed", seed)):
        if given is not None:
            raise click.UsageError(f"{name} goes with --sft")
    judged = Run(run)
    rows = lambda: judged.rows(value=value, long=long)  # type: ignore[arg-type]  # noqa: E731
    count = write_rows(rows, target, sources=judged.sources())
    note(f"{counted(count, 'row')} written to {target}")
    return 0


def _export_training(source: str, target: str, rubric: str | None, share: float, seed: int) -> int:
    """Chat rows of a run, or of a file of items with verdicts."""
    from evenhand import api, tuning
    from evenhand.errors import InputError
    from evenhand.manifest import keys_of, open_rubric
    from evenhand.store import Store

    how: dict[str, Any] = {"share": share, "seed": seed}
    if Path(source).is_dir():
        if rubric is not None:
            raise InputError("--rubric goes with a file of items with verdicts; a run has its own")
        run = api.Run(source)
        with Store.open(run.folder) as store:
            how |= {"keys": keys_of(store.manifest), "sources": run.sources()}
            told = tuning.write_training_rows(tuning.of_run(store, run.rubric), run.rubric, target, **how)
    elif rubric is None:
        raise InputError(f"{source} is no run folder", hint="for a file of items with verdicts, say --rubric R")
    else:
        opened = open_rubric(rubric)
        told = tuning.write_training_rows(tuning.of_labels(source, opened), opened, target, sources=[source], **how)
    held_out = tuning.held_out_file(Path(target))
    for file, rows, groups in (
        (target, told.rows, told.groups),
        (held_out, told.held_out_rows, told.held_out_groups),
    ):
        note(f"{counted(rows, 'row')} of {counted(groups, 'group')} written to {file}")
    if left_out := tuning.told_left_out(told.left_out):
        note(left_out)
    return 0


@click.command("rescore")
@click.argument("run")
@click.option("--weights", metavar="NAME=W,...", help="New weights of the composite.")
@click.option("--rubric", metavar="R", help="A rubric with other rules, weights or reading; same prompt.")
@options.json_option
def rescore_command(run: str, weights: str | None, rubric: str | None, as_json: bool) -> int:
    """Read a run's stored replies again under new weights or rules; never calls.

    Example: evenhand rescore runs/doc-qa --weights correctness=0.8,comprehensiveness=0.1,readability=0.1
    """
    from evenhand.api import Run
    from evenhand.manifest import open_rubric, stored_rubric, with_weights
    from evenhand.rescore import rescore
    from evenhand.store import Store

    with Store.open(Path(run), write=True) as store:
        manifest = store.manifest
        options_kept = manifest["rubric"]["options"]
        wanted = open_rubric(rubric, variant=options_kept) if rubric else stored_rubric(manifest)
        chosen = options.weights(weights)
        counts = rescore(store, with_weights(wanted, chosen) if chosen else wanted)
    note(f"{counted(counts['verdicts'], 'verdict')} read again, {counts['changed']} changed")
    print_run(Run(run).summary(), as_json=as_json)
    return 0


@click.command("merge")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--out", required=True, metavar="RUN", help="The merged run: a new or empty folder.")
def merge_command(runs: tuple[str, ...], out: str) -> int:
    """Make one run of all shards of an input, or of runs over different rows; they stay as they are.

    Example: evenhand merge shards/1 shards/2 shards/3 --out runs/doc-qa
    """
    from evenhand.keywords import path
    from evenhand.merging import merge, told
    from evenhand.opening import run_folders

    note(told(merge(run_folders(runs), path("out", out))))
    return 0
