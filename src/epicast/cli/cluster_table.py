"""The rows of a cluster as a table that fits: the columns that matter most, as many as there is room for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from epicast.cli import formats as f
from epicast.cli.cluster_rows import ALONE, SILENT, UP, Row
from epicast.cli.top_view import lasting, safe, some

GAP = 3  # blanks between columns
STYLES = {UP: "green", ALONE: "bold red", SILENT: "bold red"}


@dataclass(frozen=True)
class Column:
    heading: str
    weight: int  # the lightest go first where there is no room
    text: Callable[[Row], str]
    left: bool = False


def _number(value: int | None) -> str:
    return f.count(value)


def _pace(value: float | None) -> str:
    return f.DASH if value is None else f"{f.size(value)}/s"


COLUMNS = (
    Column("process", 99, lambda row: row.process.partition("/")[0], left=True),
    Column("state", 98, lambda row: row.state, left=True),
    Column("nb", 90, lambda row: _number(row.neighbours)),
    Column("delivered", 95, lambda row: f.rate(row.delivered_per_s)),
    Column("published", 60, lambda row: f.rate(row.published_per_s)),
    Column("received", 50, lambda row: _pace(row.received_bytes_per_s)),
    Column("sent", 45, lambda row: _pace(row.sent_bytes_per_s)),
    Column("behind", 85, lambda row: _number(row.behind)),
    Column("gaps", 84, lambda row: _number(row.gaps)),
    Column("lost", 83, lambda row: _number(row.lost)),
    Column("queue", 40, lambda row: f.size(row.queue_bytes)),
    Column("rtt", 75, lambda row: f.ms(row.round_trip_ms)),
    Column("version", 70, lambda row: row.version or f.DASH, left=True),
    Column("area", 20, lambda row: row.area or f.DASH, left=True),
    Column("up for", 35, lambda row: lasting(row.uptime_s)),
)


class ClusterTable:
    def __init__(self, rows: Sequence[Row], rows_max: int) -> None:
        self._rows, self._more = rows[:rows_max], len(rows) - len(rows[:rows_max])
        self._all = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, header_style="bold", padding=(0, GAP, 0, 0), pad_edge=False)
        columns = self._columns(options.max_width)
        for column in columns:
            table.add_column(column.heading, justify="left" if column.left else "right", no_wrap=True)
        for row in self._rows:
            cells = [safe(column.text(row)) for column in columns]
            cells[1].stylize(STYLES.get(row.state, "dim"))
            table.add_row(*cells, style="" if row.asked else "dim")
        yield table
        if self._more:
            yield Text(f"and {self._more:,} more", style="dim")

    def _columns(self, width: int) -> list[Column]:
        """Those about which nobody tells anything are left out, too."""
        chosen = [column for column in COLUMNS if column.weight > 90 or self._tells(column)]
        while _width(chosen, self._rows) > width and len(chosen) > 2:
            chosen.remove(min(chosen, key=lambda column: column.weight))
        return chosen

    def _tells(self, column: Column) -> bool:
        return any(column.text(row) != f.DASH for row in self._all)


def _width(columns: Sequence[Column], rows: Sequence[Row]) -> int:
    texts = ([column.heading, *(column.text(row) for row in rows)] for column in columns)
    return sum(GAP + max(map(cell_len, each)) for each in texts) - GAP


def title(cluster: str, rows: Sequence[Row]) -> Text:
    asked = [row for row in rows if row.asked]
    parts = [some(len(rows), "process", "es")]
    if len(asked) < len(rows):
        parts.append(f"{len(asked):,} of them asked")
    silent = sum(row.state == SILENT for row in asked)
    found = Text.assemble((safe(f"cluster {cluster}").plain, "bold cyan"), " · ", " · ".join(parts))
    if silent:
        found.append(f" · {some(silent, 'node')} without an answer", "bold red")
    versions = sorted({row.version for row in asked if row.version})
    if len(versions) > 1:
        found.append(safe(f" · versions {', '.join(versions)}").plain, "yellow")
    return found
