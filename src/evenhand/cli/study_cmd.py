"""``evenhand study``: which scale, or how much detail, to use."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import click

from evenhand._words import counted
from evenhand.cli import options
from evenhand.cli.judge_cmd import run_options
from evenhand.cli.main import interrupted
from evenhand.cli.output import note, say

if TYPE_CHECKING:
    from evenhand.variants import Study

_SCALE = re.compile(r"(-?\d{1,9}(?:\.\d{1,9})?)-(-?\d{1,9}(?:\.\d{1,9})?)")


@click.command("study")
@click.argument("data")
@options.rubric_options
@click.option("--vary", multiple=True, required=True, metavar="NAME=V,V,...",
    help="An option of the rubric and the values to try; again for another option.")  # fmt: skip
@click.option("--out", required=True, metavar="FOLDER", help="Folder of the runs, one a variant.")
@click.option("--labels", metavar="FILE", help="What people said: one row per item and rater.")
@click.option("--label-scale", metavar="LOW-HIGH", help="The scale that people used  [default: the rubric's own]")
@click.option("--label-map", multiple=True, metavar="FIELD=COLUMN", help="Read a field, id or rater of the labels.")
@options.judge_options
@options.data_options
@click.option("--dry-run", is_flag=True, help="The number of calls and tokens; sends nothing.")
@options.value_option
@options.json_option
def study_command(data: str, judge_spec: str, **given: Any) -> int:
    """Judge DATA under several variants of a rubric, and set them side by side.

    Shows how each variant uses its scale, how they agree with each other, and with people. Each variant is a
    run of its own; run the same command again to resume.

    Example: evenhand study examples/doc-qa.jsonl --vary scale=0-10,0-3 --judge fake --out runs/scales
    """
    from evenhand.variants import estimate_study, plan_study

    study = plan_study(
        data,
        given["rubric"],
        judge_spec,
        vary=options.choices(given["vary"], "--vary"),
        out=given["out"],
        labels=given["labels"],
        label_scale=_label_scale(given["label_scale"]),
        label_map=options.pairs(given["label_map"], "--label-map"),
        **run_options(given),
    )
    if given["dry_run"]:
        say(json.dumps(estimate_study(study), ensure_ascii=False, indent=2))
        return 0
    return _study(study, given)


def _study(study: Study, given: dict[str, Any]) -> int:
    from evenhand.report.console import Terminal
    from evenhand.report.progress import Bar
    from evenhand.report.studied import print_study
    from evenhand.variants import check_study, run_study, study_figures

    course = asyncio.run(check_study(study))
    at_most = "" if given["no_re_ask"] else f", at most {2 * course.calls:,} with re-asks"
    trials = f"{counted(course.trials, 'trial')}, {course.stored:,} of them stored already"
    note(f"{len(study.specs)} variants: {trials}; {counted(course.calls, 'call')} to come{at_most}")
    bar = Bar(Terminal(stderr=True))
    try:
        stopped = asyncio.run(run_study(study, progress=bar, signals=True))
    except asyncio.CancelledError:
        return interrupted(asked=False)
    finally:
        bar.stop()
    if stopped:
        return interrupted(asked=True)
    facts = study_figures(study, value=given["value"])
    if given["as_json"]:
        say(json.dumps(facts, ensure_ascii=False))
    else:
        print_study(facts, Terminal(highlight=False, emoji=False))
    return 0


def _label_scale(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    found = _SCALE.fullmatch(text.strip())
    if found is None:
        raise click.BadParameter(f"{text!r} is not LOW-HIGH, as in 0-1", param_hint="--label-scale")
    return float(found[1]), float(found[2])
