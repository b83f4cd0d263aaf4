"""Tables that fit the terminal, however many columns they have.

`FittingTable` shows all of a table: as it is, or turned on its side, or in several parts. `RankedTable` has one row for
each thing, and leaves out the columns that matter least. Neither ever cuts a cell. Headings and long names of rows may
be broken between words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

EDGES, BETWEEN = 1, 3  # columns of the terminal that the box takes: in all, and for each of ours
NAME_MIN = 24  # shorter names of rows stay whole

GAP = 3  # blanks between columns of a ranked table

Rows = Sequence[Sequence[str]]
R = TypeVar("R")


@dataclass(frozen=True)
class FittingTable:
    """The first columns say what each row is: as many as it takes to tell the rows apart."""

    title: str
    header: Sequence[str]
    rows: Rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        title = self.title
        for header, rows in layouts(self.header, self.rows, options.max_width):
            yield _table(title, header, rows)
            title = ""


def layouts(header: Sequence[str], rows: Rows, width: int) -> Iterator[tuple[Sequence[str], Rows]]:
    if _width(header, rows) <= width:
        yield header, rows
        return
    turned_header, turned = _turned(header, rows)
    if _width(turned_header, turned) <= width:
        yield turned_header, turned
        return
    widths, names = _widths(header, rows), _names(rows)
    if EDGES + sum(widths[:names]) + max(widths[names:], default=0) > width:
        names = 1
    for columns in _groups(widths, width, names):
        yield [header[at] for at in columns], [[row[at] for at in columns] for row in rows]


def _turned(header: Sequence[str], rows: Rows) -> tuple[Sequence[str], Rows]:
    columns = [list(column) for column in zip(header, *rows, strict=True)]
    return columns[0], columns[1:]


def _names(rows: Rows) -> int:
    """How many of the first columns it takes to tell the rows apart; one, if all of them do not."""
    columns = len(rows[0]) if rows else 1
    return next((count for count in range(1, columns) if len({tuple(row[:count]) for row in rows}) == len(rows)), 1)


def _groups(widths: Sequence[int], width: int, names: int) -> list[list[int]]:
    """Columns side by side as far as there is room, those that name a row in every group."""
    groups: list[list[int]] = [list(range(names))]
    used = start = EDGES + sum(widths[:names])
    for at, each in enumerate(widths[names:], names):
        if used + each > width and len(groups[-1]) > names:
            groups.append(list(range(names)))
            used = start
        groups[-1].append(at)
        used += each
    return groups


def _width(header: Sequence[str], rows: Rows) -> int:
    return EDGES + sum(_widths(header, rows))


def _widths(header: Sequence[str], rows: Rows) -> list[int]:
    """What each column needs at least, with its share of the box."""
    first, *others = zip(header, *rows, strict=True)
    names = [cell_len(name) if cell_len(name) <= NAME_MIN else max(NAME_MIN, _longest_word(name)) for name in first[1:]]
    cells = [max(map(cell_len, column[1:]), default=0) for column in others]
    needed = [max(names, default=0), *cells]
    return [BETWEEN + max(_longest_word(heading), least) for heading, least in zip(header, needed, strict=True)]


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split()), default=0)


def _table(title: str, header: Sequence[str], rows: Rows) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold", title=Text(title) if title else None, title_justify="left")
    for at, (heading, width) in enumerate(zip(header, _widths(header, rows), strict=True)):
        table.add_column(Text(heading), justify="right" if at else "left", min_width=width - BETWEEN, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


# Ranked columns


@dataclass(frozen=True)
class Column(Generic[R]):
    heading: str
    rank: int  # the lowest go first where there is no room
    text: Callable[[R], str]
    left: bool = False
    style: Callable[[R], str] = lambda row: ""


class RankedTable(Generic[R]):
    """The first two columns always stay."""

    def __init__(self, columns: Sequence[Column[R]], rows: Sequence[R], dim: Callable[[R], bool]) -> None:
        self._columns, self._rows, self._dim = columns, rows, dim

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0), pad_edge=False)
        columns = self._chosen(options.max_width)
        for column in columns:
            table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=True)
        for row in self._rows:
            cells = [Text(column.text(row), style=column.style(row)) for column in columns]
            table.add_row(*cells, style="dim" if self._dim(row) else "")
        yield table

    def _chosen(self, width: int) -> list[Column[R]]:
        chosen = list(self._columns)
        while self._width(chosen) > width and len(chosen) > 2:
            chosen.remove(min(chosen[2:], key=lambda column: column.rank))
        return chosen

    def _width(self, columns: Sequence[Column[R]]) -> int:
        texts = ([column.heading, *(column.text(row) for row in self._rows)] for column in columns)
        return sum(GAP + max(map(cell_len, each)) for each in texts) - GAP
