"""The summary as a person reads it in a terminal; makes sense without colour."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from evenhand._words import counted, failure, percent
from evenhand.report.cells import (
    ONE_ORDER,
    mean_cells,
    mean_methods,
    share_words,
    tokens_known,
    unfinished,
    with_mean,
)
from evenhand.report.tables import Figures
from evenhand.report.tasks import print_tasks
from evenhand.tasks import told_weights


def item_lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Everything about one item, as `evenhand.inspection.inspect_item` gives it, line by line."""
    yield f"item {told['id']}, row {told['row'] + 1}"
    if not told["texts_stored"]:
        yield "its texts were not stored, so the prompt can't be shown"
    for name in told.get("null_answers", ()):
        yield f"warning: {name} is null, not an empty text"
    if not told["trials"]:
        yield "not asked yet"
    for trial in told["trials"]:
        order = f"order {trial['order']}, " if trial["order"] else ""
        yield f"\n=== {order}repeat {trial['repeat']}"
        for message in trial["prompt"]:
            content = message["content"]
            yield f"--- {message['role']}"
            yield content if isinstance(content, str) else "\n".join(map(_part_line, content))
        for reply in trial["replies"]:
            if reply["attempt"]:
                yield from (f"--- re-ask: {message['role']}\n{message['content']}" for message in trial["re_ask"])
            yield f"--- {'re-asked' if reply['attempt'] else 'reply'} ({reply['form']})"
            yield from _reply_lines(reply["reply"])
        yield from _verdict_lines(trial["verdict"])
    if told["trials"]:
        yield from map(_preferred_line, told.get("preferred", ()))


def _part_line(part: Mapping[str, Any]) -> str:
    """A part of a message; of an image its name and size."""
    if part["type"] == "image":
        return f"[image: {part['name']}, {counted(part['bytes'], 'byte')}]"
    return str(part["text"]) if part["type"] == "text" else f"[image: {part['image_url']['url']}]"


def _preferred_line(told: Mapping[str, Any]) -> str:
    sides = ", ".join(f"{order} {side if side is not None else '-'}" for order, side in told["sides"].items())
    result = {None: "not known", True: "changes with the order", False: told["side"]}[told["flip"]]
    return f"\n=== preferred in both orders, repeat {told['repeat']}: {result} ({sides})"


def _reply_lines(reply: Mapping[str, Any]) -> Iterator[str]:
    for name in ("reasoning", "refusal"):
        if reply.get(name):
            yield f"[{name}] {reply[name]}"
    if reply.get("text"):
        yield reply["text"]
    for name, arguments in reply.get("tool_calls", ()):
        yield f"{name}: {arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)}"
    if reply.get("finish") not in (None, "stop", "tool_calls"):
        yield f"[finish] {reply['finish']}"


def _verdict_lines(verdict: Mapping[str, Any]) -> Iterator[str]:
    why = ": ".join(filter(None, (failure(verdict.get("failure") or ""), verdict.get("detail"))))
    yield f"--- verdict: {verdict['status']}{f' ({why})' if why else ''}"
    for name, outcome in verdict["fields"].items():
        if "failure" in outcome:
            shown = f"- {outcome['failure']} {outcome.get('detail', '')}".rstrip()
        else:
            shown = outcome["value"] if isinstance(outcome["value"], str) else json.dumps(outcome["value"])
        yield f"{name}: {shown}{' (set in code)' if outcome.get('preset') else ''}"
    for rule, severity, message in verdict["violations"]:
        yield f"{severity} {rule}: {message}"


def print_summary(facts: Mapping[str, Any], console: Console) -> None:
    """Print a run's figures as `evenhand.facts.summary` gives them."""
    judge = facts["judge"]
    model = f" ({', '.join(judge['models'])})" if judge["models"] and judge["models"] != [judge["spec"]] else ""
    rubric = facts["rubric"]
    console.print(
        f"[bold]{escape(rubric['name'])}[/] v{rubric['version']} judged by [bold]{escape(judge['spec'])}[/]", end=""
    )
    console.print(f"{escape(model)} - {judge['status']}")
    if facts["ask"]:
        first = f" - {facts['ask']['first']} first" if facts["ask"]["first"] else ""
        console.print(f"asked: {escape(facts['ask']['phrase'])}{escape(first)}")
    console.print(_coverage_line(facts))
    if facts["planned"] and not facts["scored"]:
        console.print("[bold]nothing was scored: this run says nothing about its items[/]")
    console.print(_means_table(facts))
    parts = [facts, *facts.get("by", {}).values()]
    for line in mean_methods(fact for part in parts for fact in with_mean(part).values()):
        console.print(line)
    if facts["aggregate"]:
        print_tasks(facts["aggregate"], console)
    if "preference" in facts:
        console.print(_preference_line(facts))
    for line in _detail_lines(facts):
        console.print(line)
    for name, part in facts.get("by", {}).items():
        console.print(f"\n[bold]{escape(name)}[/]  {_coverage_line(part)}")
        console.print(_means_table(part))
        if "preference" in part:
            console.print(_preference_line(part))


def _coverage_line(facts: Mapping[str, Any]) -> str:
    coverage = facts["coverage"]
    left = f"unfinished: {facts['trials_asked']} of {facts['trials']} trials asked; " if unfinished(facts) else ""
    share = "no rows" if coverage is None else f"coverage {percent(coverage)} of {counted(facts['rows'], 'row')}"
    text = f"{left}{facts['scored']} of {facts['planned']} scored; {share}"
    if facts["set_in_code"]:
        text += f"; {facts['set_in_code']} set in code"
    return text


def _means_table(facts: Mapping[str, Any]) -> Figures:
    table = Figures("", "mean", "95% interval", "n", "", words=True)
    for name, fact in {**facts["criteria"], **facts["fields"]}.items():
        if "mean" in fact:
            table.add_row(escape(name), *mean_cells(fact), _missing(fact) + _in_code(fact, facts))
        else:
            shares = ", ".join(f"{label} {n}" for label, n in fact["counts"].items())
            table.add_row(escape(name), "", "", str(fact["n"]), escape(shares) + _missing(fact) + _in_code(fact, facts))
    if facts["composite"]:
        table.add_row("composite", *mean_cells(facts["composite"]), "", style="bold")
    return table


def _missing(fact: Mapping[str, Any]) -> str:
    failures = ", ".join(f"{name} {n}" for name, n in fact["failures"].items())
    mass = fact.get("missing_mass", {}).get("mean")
    return (f" missing: {failures}" if failures else "") + (f" missing mass {mass:.3f}" if mass is not None else "")


def _in_code(fact: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """How many values of a field were set in code beside others that were asked for."""
    return f" set in code: {fact['set_in_code']}" if fact.get("set_in_code") and not facts["set_in_code"] else ""


def _preference_line(facts: Mapping[str, Any]) -> str:
    counts = "  ".join(f"{escape(side)} {n}" for side, n in facts["preference"].items())
    if "flips" not in facts:
        return f"preferred: {counts}; {ONE_ORDER}"
    steady = f"\nsame side in both orders: {share_words(facts['agreement'])}" if "agreement" in facts else ""
    return f"preferred: {counts}  changed with the order {facts['flips']}{steady}"


def _share(rate: Mapping[str, Any]) -> str:
    ends = f", {' to '.join(map(percent, rate['ci']))}" if rate["ci"] else ""
    share = "" if rate["rate"] is None else f" ({percent(rate['rate'])}{ends})"
    return f"{rate['violated']} of {rate['trials']}{share}"


def _detail_lines(facts: Mapping[str, Any]) -> list[str]:
    lines = []
    if facts["composite"]:
        lines.append(f"weights of the composite: {escape(told_weights(facts['composite']['weights']))}")
    if facts["failures"]:
        lines.append("not scored: " + ", ".join(f"{escape(failure(k))} {n}" for k, n in facts["failures"].items()))
    lines += [f"  {escape(failure(name))}: {escape(text)}" for name, text in facts["errors"].items()]
    for name, title in (("violations", "rules broken"), ("warnings", "warnings")):
        if facts[name]:
            lines.append(f"{title}: " + ", ".join(f"{escape(k)} {n}" for k, n in facts[name].items()))
    if facts["null_answers"]:
        lines.append(f"warning: {counted(facts['null_answers'], 'null answer')} (no text at all, not an empty one)")
    lines.append(
        f"calls {facts['calls']}; re-asked {facts['re_asked']}; repaired {facts['repaired']}; "
        f"inconsistent {facts['inconsistent']}"
    )
    before, after = (facts["violation_rate"][f"{when}_re_ask"] for when in ("before", "after"))
    if before["violated"] != after["violated"]:
        lines.append(f"replies that violate a rule: {_share(before)} before the re-ask, {_share(after)} after it")
    tokens = facts["tokens"]
    told = f"{tokens['prompt']} in ({tokens['cached']} cached), {tokens['completion']} out"
    told = told if tokens_known(facts) else "unknown"
    cost = "unknown" if facts["cost_usd"] is None else f"${facts['cost_usd']:.4f}"
    lines.append(f"tokens {told}; cost {cost}")
    return lines
