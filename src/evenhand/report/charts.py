"""Charts of a report's tables as static SVG: text stays text, colours are those of the page, nothing depends on them.

matplotlib draws with sentinel colours, which become the page's CSS variables; styles become attributes, since the
page's policy lets no style stand in an element.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from evenhand._words import bare, pieces
from evenhand.errors import MissingExtraError
from evenhand.report.figures import Cell, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_INK, _SOFT, _BAR = "#010203", "#040506", "#070809"
_VARIABLES = {_INK: "var(--ink)", _SOFT: "var(--soft)", _BAR: "var(--bar)"}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_ACROSS = 4  # histograms in a line
_MOST_ROWS, _MOST_VALUES = 24, 12
_LONGEST_LABEL = 28


def require() -> None:
    """Refuse where the package that draws is not there.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "report") from None


def draw(table: Table, name: str) -> str | None:
    """A table as SVG: "shares" as a histogram for each row, "means" as points with their intervals.

    Args:
        table: Says itself what may be drawn of it.
        name: Unique in the page; ids inside the drawing start with it.

    Returns:
        An ``svg`` element; None where there is nothing to draw, or so much that the table is easier to read.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if table.chart is None or not table.rows or len(table.rows) > _MOST_ROWS:
        return None
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "evenhand", "font.size": 9}):
        figure = Figure(layout="constrained")
        with warnings.catch_warnings():  # of glyphs that its own font lacks: the browser has others
            warnings.simplefilter("ignore")
            drawn = _means(figure, table) if table.chart == "means" else _histograms(figure, table)
            if not drawn:
                return None
            file = io.BytesIO()
            nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(file, format="svg", transparent=True, metadata=nothing)
    return _own(file.getvalue(), name, table.caption)


def _histograms(figure: Figure, table: Table) -> bool:
    values = [n for n, name in enumerate(table.columns) if n and name not in ("n", "set in code")]
    rows = [row for row in table.rows if sum(_count(row[n]) for n in values)]
    if not rows or len(values) > _MOST_VALUES or len(values) < 2:
        return False
    down = -(-len(rows) // _ACROSS)
    across = min(_ACROSS, len(rows))
    names = _labels([table.columns[n] for n in values])
    long = max(map(len, names)) > 4
    figure.set_size_inches(2.8 * across, (2.0 if long else 1.5) * down)
    titles = _labels([row[0].text for row in rows])
    for place, (row, title) in enumerate(zip(rows, titles, strict=True), 1):
        axes = figure.add_subplot(down, across, place)
        counts = [_count(row[n]) for n in values]
        bars = axes.bar(range(len(values)), counts, color=_BAR, edgecolor=_INK, linewidth=0.8)
        for bar, count in ((bar, count) for bar, count in zip(bars, counts, strict=True) if count):
            where = (bar.get_x() + bar.get_width() / 2, bar.get_height())
            axes.annotate(f"{count:,}", where, ha="center", va="bottom", fontsize=8, color=_INK)
        axes.set_xticks(range(len(values)), names, rotation=25 if long else 0, ha="right" if long else "center",
                        parse_math=False)  # fmt: skip
        axes.set_yticks([])
        axes.set_ylim(0, max(counts) * 1.2)
        axes.set_title(title, fontsize=9, color=_INK, parse_math=False, loc="left")
        _plain(axes, "left")
    return True


def _means(figure: Figure, table: Table) -> bool:
    rows = [row for row in table.rows if row[1].value is not None]
    if not rows or table.scale is None:
        return False
    figure.set_size_inches(5.4, 0.6 + 0.3 * len(rows))
    axes = figure.add_subplot()
    low, high = table.scale
    if low < 0 < high:
        axes.axvline(0, color=_SOFT, linewidth=0.8, linestyle=(0, (4, 3)))
    for place, row in enumerate(rows):
        ends = [float(end) for end in re.findall(r"-?\d+\.\d+", row[2].text)] if " to " in row[2].text else []
        if len(ends) == 2:
            axes.plot(ends, [place, place], color=_BAR, linewidth=2, marker="|", markersize=8)
        axes.plot([float(row[1].value or 0)], [place], color=_INK, marker="o", markersize=5)
    axes.set_yticks(range(len(rows)), _labels([row[0].text for row in rows]), parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(low - (high - low) * 0.02, high + (high - low) * 0.02)
    _plain(axes)
    return True


def _plain(axes: Axes, *hidden: str) -> None:
    axes.tick_params(colors=_INK, labelsize=8)
    for side, spine in axes.spines.items():
        spine.set_color(_SOFT)
        spine.set_visible(side not in ("top", "right", *hidden))


def _count(cell: Cell) -> int:
    return int(cell.value or 0)


def _labels(texts: Sequence[str]) -> list[str]:
    """Labels of as few characters as tell different texts apart, as folders of runs that begin and end alike."""
    most, longest = _LONGEST_LABEL, max(map(len, texts), default=0)
    while most < longest and len({_label(text, most) for text in texts}) < len(set(texts)):
        most += _LONGEST_LABEL // 2
    return [_label(text, most) for text in texts]


def _label(text: str, most: int = _LONGEST_LABEL) -> str:
    """A text that is no formula and no markup, on one line; of a long one both ends.

    Names in one that is shown whole keep their directions to themselves.
    """
    told = _line(bare(text))
    end = most * 2 // 3
    whole = _line("".join(f"\u2068{piece}\u2069" if name else piece for piece, name in pieces(text)))
    return whole if len(told) <= most else f"{told[: most - 1 - end]}…{told[-end:]}"


def _line(text: str) -> str:
    return " ".join(re.sub("[\ud800-\udfff\ufffe\uffff]", "\ufffd", text).split())


def _own(drawn: bytes, name: str, caption: str) -> str:
    """The drawing as an element of the page: ids of its own, no styles, the page's colours."""
    ElementTree.register_namespace("", _SVG[1:-1])
    root = ElementTree.fromstring(drawn)
    for parent in list(root.iter()):
        for child in [c for c in parent if c.tag == f"{_SVG}style" or c.tag.endswith("metadata")]:
            parent.remove(child)
    for element in root.iter():
        _restyle(element, name)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    root.attrib.pop("height")
    title, described = ElementTree.Element(f"{_SVG}title"), ElementTree.Element(f"{_SVG}desc")
    title.text = _label(caption)
    described.text = "The table before it has the same numbers."
    for element, own in ((title, f"{name}-title"), (described, f"{name}-desc")):
        element.set("id", own)
    root[:0] = [title, described]
    named = {"role": "img", "aria-labelledby": f"{name}-title", "aria-describedby": f"{name}-desc", "class": "chart"}
    root.attrib.update({**named, "width": f"{width:.0f}pt"})
    return ElementTree.tostring(root, encoding="unicode").replace(f' xmlns="{_SVG[1:-1]}"', "")  # HTML needs none


def _restyle(element: Any, name: str) -> None:
    attributes: dict[str, str] = element.attrib
    for piece in attributes.pop("style", "").split(";"):
        key, _, value = (part.strip() for part in piece.partition(":"))
        if key == "font":
            attributes.update(_font(value.split()))
        elif key and key not in ("font-family", "transform-origin"):
            attributes[key] = value
    if _LINK in attributes:
        attributes["href"] = f"#{name}-{attributes.pop(_LINK)[1:]}"
    for key, value in attributes.items():
        if key == "id":
            attributes[key] = f"{name}-{value}"
        elif key != "href":
            attributes[key] = _VARIABLES.get(value, re.sub(r"url\(#", f"url(#{name}-", value))


def _font(pieces: Sequence[str]) -> dict[str, str]:
    size = next((piece for piece in pieces if re.fullmatch(r"[\d.]+px", piece)), None)
    return {} if size is None else {"font-size": size}
