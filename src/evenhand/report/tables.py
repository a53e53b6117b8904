"""Tables of a terminal: figures never break over lines, names stay told apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.table import Column, Table
from rich.text import Text

from evenhand._words import visible

_GAP = 2
_WORDS = 24  # the least width of a column of words; they may wrap
_WORD = re.compile(r"[^\W\d_]{3}")
_INTERVAL = "95%"  # a column that stays beside the one before it


class Figures(Table):
    """A table of names, then figures, then at most a column of words.

    Where it is wider than what it is printed on, words wrap, also those that stand for a figure; then whole columns go
    into further blocks below, with the names again. Names that leave no room for a figure are shortened in the middle,
    and broken where that would make two the same.

    Args:
        titles: Headings, plain texts.
        left: Number of columns of names.
        words: Whether the last column is of words.
        show_header: Whether headings are shown.
    """

    def __init__(self, *titles: str, left: int = 1, words: bool = False, show_header: bool = True) -> None:
        super().__init__(box=None, pad_edge=False, header_style="bold", show_header=show_header)
        self._left = left
        for number, title in enumerate(titles):
            figure = left <= number < len(titles) - words
            self.add_column(escape(title), justify="right" if figure else "left")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table, or its blocks one under the other."""
        texts = [[_plain(console, cell) for cell in column.cells] for column in self.columns]
        widths = [self._widths(console, column, cells) for column, cells in zip(self.columns, texts, strict=True)]
        for block in self._blocks([least for least, _ in widths], options.max_width):
            yield self._part(texts, widths, block, options.max_width)

    def _widths(self, console: Console, column: Column, cells: Sequence[Text]) -> tuple[int, int]:
        """The least width in which no figure and no name breaks, and the one in which nothing does."""
        head = max(_plain(console, column.header).cell_len if self.show_header else 0, column.min_width or 0)
        name = any(column is one for one in self.columns[: self._left])
        least = [cell.cell_len if name or not _is_words(cell) else min(cell.cell_len, _WORDS) for cell in cells]
        return max([head, *least]), max([head, *(cell.cell_len for cell in cells)])

    def _blocks(self, widths: Sequence[int], most: int) -> Iterator[list[int]]:
        """Which columns stand beside the names in each block."""
        groups: list[list[int]] = []
        for number in range(self._left, len(widths)):
            if groups and str(self.columns[number].header).startswith(_INTERVAL):
                groups[-1].append(number)
            else:
                groups.append([number])
        names = sum(widths[: self._left]) + _GAP * (self._left - 1)
        block: list[int] = []
        for group in groups:
            if block and names + sum(_GAP + widths[n] for n in (*block, *group)) > most:
                yield block
                block = []
            block = [*block, *group]
        yield block

    def _part(
        self, texts: Sequence[Sequence[Text]], widths: Sequence[tuple[int, int]], block: Sequence[int], most: int
    ) -> Table:
        names, chosen = range(self._left), [*range(self._left), *block]
        least = [widths[number][0] for number in chosen]
        spare = most - sum(least) - _GAP * (len(chosen) - 1)
        for _ in range(-spare):  # the widest column of names gives way first
            widest = max(names, key=least.__getitem__)
            least[widest] = max(1, least[widest] - 1)
        part = Table(box=None, pad_edge=False, header_style="bold", show_header=self.show_header)
        columns = []
        for number, width in zip(chosen, least, strict=True):
            more = max(0, min(spare, widths[number][1] - width))
            spare -= more
            justify = self.columns[number].justify
            part.add_column(self.columns[number].header, justify=justify, width=width + more, overflow="fold")
            columns.append(_shortened(texts[number], width) if number in names else texts[number])
        for row, cells in zip(self.rows, zip(*columns, strict=True), strict=True):
            part.add_row(*cells, style=row.style)
        return part


def _plain(console: Console, cell: object) -> Text:
    """A cell's text as it is printed, with what would steer a terminal as escapes."""
    return Text(visible(cell.plain), style=cell.style) if isinstance(cell, Text) else console.render_str(str(cell))


def _is_words(cell: Text) -> bool:
    """Whether a cell holds words, and no figure or interval."""
    return " " in cell.plain and _WORD.search(cell.plain) is not None


def _shortened(names: Sequence[Text], most: int) -> list[Text]:
    """Names cut in the middle to a width; as they are where two would be the same."""
    cut = [_cut(name.plain, most) for name in names]
    if len(set(cut)) < len({name.plain for name in names}):
        return list(names)
    both = zip(cut, names, strict=True)
    return [name if short == name.plain else Text(short, style=name.style) for short, name in both]


def _cut(name: str, most: int) -> str:
    if len(name) <= most or most < 3:
        return name
    behind = (most - 1) // 2
    return f"{name[: most - 1 - behind]}…{name[len(name) - behind :]}"
