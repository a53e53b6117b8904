"""How options are written on the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from evenhand.keywords import NUMBERS

F = TypeVar("F", bound=Callable[..., Any])
_SWITCHES: dict[str, Any] = {"true": True, "false": False}


class NumberType(click.ParamType):  # type: ignore[type-arg]
    """A number within the bounds that an option has in `evenhand.keywords`.

    Args:
        name: The option's keyword.
    """

    def __init__(self, name: str) -> None:
        self._option = name
        self._number = NUMBERS[name]
        self.name = "integer" if self._number.whole else "float"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | float:
        """The number; fails with the bounds."""
        try:
            return self._number.read(value) if isinstance(value, str) else self._number.check(value)
        except ValueError as error:
            self.fail(f"{self._option} {error}", param, ctx)


def pairs(texts: Iterable[str], option: str) -> dict[str, str]:
    """``NAME=VALUE`` texts, several in one joined by commas, as a dict.

    Raises:
        click.BadParameter: a piece without "=", or a name given twice.
    """
    found: dict[str, str] = {}
    for piece in (piece for text in texts for piece in text.split(",")):
        name, equals, value = piece.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{piece!r} is not NAME=VALUE", param_hint=option)
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()!r} is given twice", param_hint=option)
        found[name.strip()] = value.strip()
    return found


def variant(texts: Iterable[str]) -> dict[str, Any]:
    """``--variant``: option values of a rubric; true and false are switches."""
    return {name: _SWITCHES.get(value.lower(), value) for name, value in pairs(texts, "--variant").items()}


def choices(texts: Iterable[str], option: str) -> dict[str, list[Any]]:
    """``NAME=VALUE,VALUE,...`` texts, one a name, as name -> values; true and false are switches.

    Raises:
        click.BadParameter: a text without "=", or a name given twice.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{text!r} is not NAME=VALUE,VALUE,...", param_hint=option)
        if name.strip() in found:
            raise click.BadParameter(f"{name.strip()!r} is given twice", param_hint=option)
        found[name.strip()] = [_SWITCHES.get(value.strip().lower(), value.strip()) for value in values.split(",")]
    return found


def weights(text: str | None) -> dict[str, float] | None:
    """``--weights``: criterion weights.

    Raises:
        click.BadParameter: a weight that is not a number.
    """
    if text is None:
        return None
    found = {}
    for name, value in pairs([text], "--weights").items():
        try:
            found[name] = float(NUMBERS["weight"].read(value))
        except ValueError as error:
            raise click.BadParameter(f"the weight of {name} {error}", param_hint="--weights") from None
    return found


def rubric_options(command: F) -> F:
    """``--rubric``, ``--variant`` and ``--weights``."""
    for option in (
        click.option("--weights", metavar="NAME=W,...", help="Weights of the composite; must sum to 1."),
        click.option("--variant", multiple=True, metavar="NAME=VALUE,...", help="The rubric's own options."),
        click.option("--rubric", default="doc-qa", show_default=True, metavar="R", help="Built-in name or file."),
    ):
        command = option(command)
    return command


def judge_options(command: F) -> F:
    """Who judges, and how trials are asked."""
    for option in reversed(
        (
            click.option("--judge", "judge_spec", default="local", show_default=True, metavar="J",
                help="local[:MODEL], openai:MODEL, anthropic:MODEL, gemini:MODEL, bedrock:MODEL, replay:FILE, "
                "fake[:SCRIPT]."),
            click.option("--repeats", type=NumberType("repeats"), default=1, show_default=True,
                help="How often each item is judged."),
            click.option("--concurrency", default="auto", show_default=True, metavar="auto|N",
                help="Requests in flight; auto finds out what the endpoint takes."),
            click.option("--attempts", type=NumberType("attempts"), default=4, show_default=True, metavar="N",
                help="Tries for one request, at most."),
            click.option("--rpm", type=NumberType("rpm"), metavar="N", help="Requests a minute, at most."),
            click.option("--tpm", type=NumberType("tpm"), metavar="N", help="Tokens a minute, at most."),
            click.option("--timeout", type=NumberType("timeout"), default=60.0, show_default=True, metavar="S",
                help="Seconds for one try of a request."),
            click.option("--deadline", type=NumberType("deadline"), metavar="S",
                help="Seconds for one trial in all, from its first request on."),
            click.option("--prices", metavar="FILE",
                help="Prices of models, in USD per million tokens: .yaml, .json or .csv."),
            click.option("--base-url", metavar="URL",
                help="Address of the judge's server, as in http://127.0.0.1:8000/v1."),
            click.option("--header", multiple=True, metavar="K=V", help="Extra HTTP header; never stored."),
            click.option("--batch", is_flag=True,
                help="Ask through the provider's batches: cheaper, and answered within a day."),
            click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
                help="Ask from this process, or from workers over a Ray cluster."),
            click.option("--ray-address", metavar="HOST:PORT|auto",
                help="A running Ray cluster  [default: one of its own on this machine]"),
            click.option("--temperature", type=NumberType("temperature"), default=0.0, show_default=True),
            click.option("--max-tokens", type=NumberType("max_tokens"), metavar="N",
                help="Most tokens a reply may have."),
            click.option("--logprobs", is_flag=True,
                help="Have the server tell how probable each value was, for --value expected."),
            click.option("--no-reason", is_flag=True, help="The short form: labels and numbers only."),
            click.option("--no-re-ask", is_flag=True,
                help="Take the first reply as it is; half the cost at worst."),
            click.option("--retry", is_flag=True, help="Ask again what was refused or could not be read."),
            click.option("--no-store-texts", is_flag=True, help="Keep no item texts in the run."),
        )
    ):  # fmt: skip
        command = option(command)
    return command


def data_options(command: F) -> F:
    """Which rows of the input are read, and how."""
    for option in (
        click.option("--skip-bad", is_flag=True, help="Leave bad rows out and count them, instead of stopping."),
        click.option(
            "--seed",
            type=NumberType("seed"),
            default=0,
            show_default=True,
            help="Seed of --sample and of --pairs budget:N.",
        ),
        click.option("--sample", type=NumberType("sample"), metavar="N", help="A random sample of N rows."),
        click.option("--limit", type=NumberType("limit"), metavar="N", help="Only the first N rows."),
        click.option("--format", metavar="NAME", help="Input format, where the file name doesn't tell."),
        click.option("--responses", metavar="FILE", help="Responses in a file of their own, joined by id."),
        click.option("--map", "mapping", multiple=True, metavar="FIELD=COLUMN", help="Read a field from a column."),
    ):
        command = option(command)
    return command


def value_option(command: F) -> F:
    """``--value stated|expected``."""
    return click.option(
        "--value",
        type=click.Choice(["stated", "expected"]),
        default="stated",
        show_default=True,
        help="The value the judge gave, or its probability-weighted mean.",
    )(command)


pairs_option = click.option(
    "--pairs", metavar="all|budget:N", help="Make pairs: prompts may have any number of responses."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
