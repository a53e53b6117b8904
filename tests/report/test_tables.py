"""Tables keep figures whole and names apart, however narrow they are printed."""

from __future__ import annotations

import io
import re

import pytest

from evenhand.report.console import Terminal
from evenhand.report.tables import Figures

NAMES = ["cerebras-gpt-6.7b", "cerebras-gpt-2.7b", "llama-7b"]


def _printed(table: Figures, width: int) -> list[str]:
    text = io.StringIO()
    Terminal(file=text, width=width, highlight=False).print(table)
    return [line.rstrip() for line in text.getvalue().splitlines()]


def _table() -> Figures:
    table = Figures("system", "win rate", "95% interval", "n", "won", "tied", "lost", "changed", "missing")
    for name in NAMES:
        table.add_row(name, "71.1%", "64.9% to 77.3%", "421", "281", "37", "103", "0", "0")
    return table


@pytest.mark.parametrize("width", [200, 80, 50, 44])
def test_figures_and_names_stay_whole(width: int) -> None:
    """No figure breaks; columns that don't fit stand below, names again; an interval stays with its figure."""
    lines = _printed(_table(), width)
    assert all(len(line) <= width for line in lines)
    for name in NAMES:
        assert sum(line.startswith(f"{name} ") for line in lines) == sum(line.startswith("system") for line in lines)
    assert sum("71.1%  64.9% to 77.3%" in re.sub(" {3,}", "  ", line) for line in lines) == len(NAMES)
    heads = " ".join(" ".join(line.split()[1:]) for line in lines if line.startswith("system"))
    assert heads == "win rate 95% interval n won tied lost changed missing"


def test_long_names_are_cut_in_the_middle_and_stay_apart() -> None:
    """Both ends of a name stay; where that would make two the same, they break over lines instead."""
    table = Figures("", "mean", "95% interval")
    table.add_row("a" * 30 + "-1", "0.50", "0.25 to 0.75")
    table.add_row("a" * 30 + "-2", "0.50", "0.25 to 0.75")
    lines = _printed(table, 40)
    assert [line.split()[0][-2:] for line in lines[1:]] == ["-1", "-2"]
    assert all("…" in line and "0.25 to 0.75" in line for line in lines[1:])
    alike = Figures("", "mean", "95% interval")
    for middle in "xy":
        alike.add_row("a" * 15 + middle + "a" * 15, "0.50", "0.25 to 0.75")
    assert not any("…" in line for line in _printed(alike, 40))
    assert sum("0.25 to 0.75" in line for line in _printed(alike, 40)) == 2


def test_the_widest_column_of_names_gives_way() -> None:
    """A short one beside it stays whole."""
    table = Figures("", "", "mean", "95% interval", left=2)
    table.add_row("a" * 30, "kappa, quadratic", "0.500", "0.250 to 0.750")
    table.add_row("b" * 8, "equal", "0.500", "0.250 to 0.750")
    lines = _printed(table, 60)
    assert "kappa, quadratic  0.500  0.250 to 0.750" in lines[1]
    assert "…" in lines[1].split()[0]


def test_words_wrap_beside_their_figures() -> None:
    """The last column may be of words: these break, the figures don't."""
    table = Figures("", "n", "", words=True)
    table.add_row("truth", "12", "missing: " + "no_answer 3, " * 6)
    lines = _printed(table, 50)
    assert lines[1].startswith("truth  12  missing: no_answer 3,")
    assert len(lines) > 2
    assert max(map(len, lines)) <= 50


def test_a_pipe_has_no_end_of_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sentences and tables stay on a line in a file, unless COLUMNS says how wide it is."""
    words = "a sentence of some length " * 20
    for columns, lines in ((None, 1), ("80", 7)):
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns:
            monkeypatch.setenv("COLUMNS", columns)
        text = io.StringIO()
        Terminal(file=text, highlight=False).print(words)
        assert len(text.getvalue().splitlines()) == lines
