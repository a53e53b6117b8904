"""``evenhand judge`` and ``evenhand render``."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import options
from evenhand.cli.main import interrupted
from evenhand.cli.output import say
from evenhand.errors import InputError

if TYPE_CHECKING:
    from evenhand.rubric.model import Form
    from evenhand.run_spec import RunSpec

OUT_OF_REACH = 3
LOW_COVERAGE = 5


@click.command("judge")
@click.argument("data")
@options.rubric_options
@options.judge_options
@click.option("--out", metavar="RUN", help="Run folder  [default: runs/DATA-RUBRIC-JUDGE]")
@options.data_options
@click.option(
    "--orders",
    type=click.Choice(["both", "ab", "ba"]),
    default="both",
    show_default=True,
    help="Presentation orders of a pair.",
)
@options.pairs_option
@click.option("--ask", metavar="PHRASE", help="An entry phrase of the rubric: its criterion is shown first.")
@click.option(
    "--max-cost", type=options.NumberType("max_cost"), metavar="USD",
    help="The most that the run may cost; a higher one goes on.",
)  # fmt: skip
@click.option(
    "--shard", metavar="I/N", help="Only every N-th row from the I-th on, with an N-th of all limits; see merge."
)
@click.option("--fresh", is_flag=True, help="Throw the folder's run away and start over.")
@click.option(
    "--coverage", type=options.NumberType("coverage"), metavar="X", help="Exit with 5 under this share of rows scored."
)
@click.option("--dry-run", is_flag=True, help="One prompt, the number of calls, tokens and cost; sends nothing.")
@options.value_option
@options.json_option
def judge_command(data: str, judge_spec: str, out: str | None, **given: Any) -> int:
    """Score or compare every item of DATA; run the same command again to resume.

    DATA is a .jsonl, .json, .csv, .tsv or .parquet file, or - for JSON lines on stdin.

    Example: evenhand judge examples/doc-qa.jsonl --rubric doc-qa --judge local --no-reason
    """
    spec = _spec(data, judge_spec, out or _default_folder(data, given["rubric"], judge_spec, given["shard"]), given)
    if given["dry_run"]:
        return _dry_run(spec)
    return _judge(spec, given)


def _judge(spec: RunSpec, given: dict[str, Any]) -> int:
    from evenhand.api import Run
    from evenhand.cli.run_cmds import print_run
    from evenhand.report.console import Terminal
    from evenhand.report.progress import Bar
    from evenhand.run import run

    notes = Terminal(stderr=True)
    bar = Bar(notes)
    try:
        outcome = asyncio.run(run(spec, progress=bar, signals=True))
    except asyncio.CancelledError:
        return interrupted(asked=False)
    finally:
        bar.stop()
    notes.print(f"run: {spec.folder}", highlight=False, markup=False, soft_wrap=True)
    judged = Run(outcome.folder)
    try:
        facts = judged.summary(value=given["value"])
    except InputError as error:  # no reason to fail now: all was asked, and is stored
        notes.print(f"{error.message}; these are the stated ones", markup=False, soft_wrap=True)
        facts = judged.summary()
    print_run(facts, as_json=given["as_json"])
    if outcome.interrupted:
        return interrupted(asked=True)
    asked_and_scored = facts["scored"] - facts["set_in_code"]
    if facts["errors"] and not asked_and_scored and not facts["calls"]:  # each for itself a Failed verdict
        notes.print("the judge answered none of the trials it was asked, see the errors above", markup=False)
        return OUT_OF_REACH
    bar_set = given["coverage"]
    empty = spec.shard is not None and not facts["rows"]  # a shard may have none
    if bar_set is not None and not empty and (facts["coverage"] or 0.0) < bar_set:
        notes.print(f"coverage {facts['coverage'] or 0.0:.1%} is under the declared {bar_set:.1%}")
        return LOW_COVERAGE
    return 0


def _dry_run(spec: RunSpec) -> int:
    """Check the whole input and show the first prompt; the judge is opened but nothing is sent."""
    from evenhand.estimate import estimate

    told = estimate(spec)
    say(json.dumps(told, ensure_ascii=False, indent=2))
    return 0


@click.command("render")
@click.argument("data")
@options.rubric_options
@options.data_options
@click.option(
    "--form",
    type=click.Choice(["schema", "tool", "json", "text", "lines"]),
    help="Output form  [default: the rubric's first]",
)
@options.pairs_option
@click.option("--order", type=click.Choice(["ab", "ba"]), default="ab", help="Presentation order of a pair.")
@click.option("--no-reason", is_flag=True, help="The short form.")
def render_command(data: str, form: Form | None, order: str, **given: Any) -> int:
    """Print the exact messages a judge would get for each item, as JSON lines.

    Example: evenhand render examples/doc-qa.jsonl --rubric doc-qa --limit 1
    """
    from evenhand.estimate import rendered

    spec = _spec(data, "fake", None, {**given, "orders": order})
    for line in rendered(spec, form):
        say(json.dumps(line, ensure_ascii=False))
    return 0


def _spec(data: str, judge: str, out: str | None, given: dict[str, Any]) -> RunSpec:
    from evenhand.api import make_spec

    return make_spec(data, given["rubric"], judge, out=out, **run_options(given))


def run_options(given: dict[str, Any]) -> dict[str, Any]:
    """The keywords of a run from the options of a command line."""
    passed = ("limit", "sample", "seed", "skip_bad", "format", "pairs", "repeats", "orders", "ask", "retry", "fresh")
    same = ("responses", "timeout", "deadline", "attempts", "rpm", "tpm", "base_url", "temperature", "max_tokens")
    money = ("batch", "max_cost", "prices", "shard")
    where = ("engine", "ray_address")
    return {
        "map": options.pairs(given["mapping"], "--map"),
        "variant": options.variant(given["variant"]),
        "weights": options.weights(given["weights"]),
        "reason": not given["no_reason"],
        "re_ask": not given.get("no_re_ask", False),
        "headers": _headers(given.get("header", ())),
        "concurrency": _concurrency(given.get("concurrency", "auto")),
        "store_texts": not given.get("no_store_texts", False),
        **{name: given[name] for name in (*passed, *same, *money, *where, "logprobs") if name in given},
    }


def _headers(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise click.BadParameter("a header is written NAME=VALUE", param_hint="--header")
        found[name] = value
    return found


def _concurrency(text: str) -> int | None:
    if text == "auto":
        return None
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < 1:
        raise click.BadParameter(f"{text!r} is neither auto nor a number above 0", param_hint="--concurrency")
    return int(text)


def _default_folder(data: str, rubric: str, judge: str, shard: str | None) -> str:
    parts = [Path(data).stem if data != "-" else "stdin", Path(rubric).stem, judge]
    parts += [] if shard is None else [f"shard-{shard}"]
    return str(Path("runs") / "-".join(re.sub(r"[^\w.]+", "_", part) for part in parts))
