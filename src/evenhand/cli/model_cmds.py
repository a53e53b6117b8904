"""``evenhand model``: weights of local judges."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from evenhand.cli.output import say

if TYPE_CHECKING:
    from evenhand.models import Progress


@click.group()
def model() -> None:
    """Weights of local judges: list, fetch, find.

    Example: evenhand model list
    """


@model.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON line for each model.")
def list_models(as_json: bool) -> None:
    """Show the models a local judge can run.

    Example: evenhand model list
    """
    from evenhand import models

    for entry in models.catalogue().values():
        path = models.model_path(entry.name)
        if as_json:
            facts = {"name": entry.name, "title": entry.title, "purpose": entry.purpose, "licence": entry.licence}
            say(json.dumps({**facts, "bytes": entry.bytes, "sha256": entry.sha256, "here": path.exists()}))
        else:
            here = "here" if path.exists() else "not here"
            size = f"{entry.bytes / 1e6:,.0f} MB"
            say(f"{entry.name:<20} {size:>9}  {here:<8}  {entry.title}, {entry.licence}; {entry.purpose}")


@model.command("get")
@click.argument("name")
def get_model(name: str) -> None:
    """Fetch the weights of NAME into the cache, and print their path.

    Example: evenhand model get qwen2.5-coder-1.5b
    """
    from evenhand import models

    with _bar() as progress:
        path = models.get(name, progress)
    say(path)


@model.command("path")
@click.argument("name")
def path_of_model(name: str) -> None:
    """Print where the weights of NAME are; fail when they are not here.

    Example: evenhand model path smollm2-135m
    """
    from evenhand import models

    say(models.locate(name).path)


@contextmanager
def _bar() -> Iterator[Progress]:
    """A progress bar on stderr."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from evenhand.report.console import Terminal

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage, done, total: bar.update(task, description=stage, completed=done, total=total)
