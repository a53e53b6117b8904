"""Charts: text stays text, colours are the page's, and no style or foreign markup gets in."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from evenhand import write_report
from evenhand.errors import InputError, MissingExtraError
from evenhand.report.figures import Cell, Table
from rubric_texts import rubric
from runs import SCORE, rows, run_it

HOSTILE = "</svg><script>alert(1)</script> $x^2$ \u202e\x07 \u4e2d\u6587"


def counts(*numbers: int) -> list[Cell]:
    """Cells of counts."""
    return [Cell(str(n), value=n) for n in numbers]


def drawn(table: Table) -> str:
    """The chart of a table."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (evenhand[report])")
    from evenhand.report.charts import draw

    svg = draw(table, "c0")
    assert svg is not None
    return svg


def test_histograms_show_every_count() -> None:
    """Each row is a histogram with its name, its values and its counts as text; the picture has a title."""
    svg = drawn(Table("By value", ["", "1", "2", "n"], [[Cell("truth"), *counts(17, 23, 40)]], "shares"))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert {"truth", "1", "2", "17", "23"} <= set(texts) and "40" not in texts
    assert 'role="img"' in svg and "By value</title>" in svg and "</desc>" in svg


def test_means_have_their_intervals() -> None:
    """A mean is a point on the whole scale; one without interval is a point alone."""
    cells = [[Cell("truth"), Cell("3.00", value=3.0), Cell("2.00 to 4.00"), *counts(9)],
             [Cell("style"), Cell("1.00", value=1.0), Cell("one item: no interval"), *counts(1)]]  # fmt: skip
    svg = drawn(Table("Means", ["", "mean", "95% interval", "n"], cells, "means", (0.0, 4.0)))
    assert "truth" in svg and "style" in svg


def test_runs_are_told_apart_by_their_folders() -> None:
    """Long names keep both ends; of names that begin and end alike so much is shown that no two look the same."""
    alike = [f"results/2026/judge-of-long-answers/{middle}/with-anchors-and-reasons" for middle in ("first", "second")]
    for names in ([f"a/long/way/to/the/folder/of/runs/run-{n}" for n in range(3)], alike):
        for chart, cells in (("shares", counts(1, 2)), ("means", [Cell("1.00", value=1.0), Cell("-")])):
            rows = [[Cell(name), *cells] for name in names]
            svg = drawn(Table("T", ["", "x", "y"], rows, chart, (0.0, 4.0)))  # type: ignore[arg-type]
            labels = [text for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg) if "\u2026" in text or "/" in text]
            assert len(set(labels)) == len(names), labels


def test_chart_takes_the_colours_of_the_page() -> None:
    """No colour, style or name space is left in a chart, and its ids are its own."""
    svg = drawn(Table("T", ["", "a", "b"], [[Cell("x"), *counts(1, 2)]], "shares"))
    assert "var(--bar)" in svg and "var(--ink)" in svg
    assert "style" not in svg and "#0" not in svg and "http" not in svg
    assert all(own.startswith("c0-") for own in re.findall(r' id="([^"]*)"', svg))


def test_hostile_names_stay_text() -> None:
    """Markup, formulas and controls in names of values and rows are text, or escapes."""
    svg = drawn(Table(HOSTILE, ["", HOSTILE, "b"], [[Cell(HOSTILE), *counts(1, 2)]], "shares"))
    assert "<script" not in svg and svg.count("</svg>") == 1
    assert "&lt;/svg&gt;" in svg


def test_nothing_is_drawn_of_nothing() -> None:
    """A table without counts, or with too many values, has no chart."""
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (evenhand[report])")
    from evenhand.report.charts import draw

    assert draw(Table("T", ["", "a", "b"], [[Cell("x"), *counts(0, 0)]], "shares"), "c") is None
    wide = [str(n) for n in range(40)]
    assert draw(Table("T", ["", *wide], [[Cell("x"), *counts(*range(40))]], "shares"), "c") is None
    assert draw(Table("T", ["", "a"], [[Cell("x"), Cell("y")]]), "c") is None


def test_charts_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without matplotlib a page has no charts; asked for, they are an error that names the extra."""
    run_it(rows(3), rubric(SCORE), "fake", tmp_path / "run")
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert "<svg" not in write_report(tmp_path / "run", tmp_path / "r.html").read_text(encoding="utf-8")
    with pytest.raises(MissingExtraError, match="report"):
        write_report(tmp_path / "run", tmp_path / "r2.html", charts=True)
    with pytest.raises(InputError, match="HTML only"):
        write_report(tmp_path / "run", tmp_path / "r.md", charts=True)
