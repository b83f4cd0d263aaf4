"""The rows of a cluster as a table that fits: the columns that matter most, as many as there is room for."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from epicast.cli import formats as f
from epicast.cli.cluster_rows import ALONE, SILENT, UP, Row
from epicast.cli.fitting import Column, RankedTable
from epicast.cli.top_view import lasting, safe, some

STYLES = {UP: "green", ALONE: "bold red", SILENT: "bold red"}


def _number(value: int | None) -> str:
    return f.count(value)


def _pace(value: float | None) -> str:
    return f.DASH if value is None else f"{f.size(value)}/s"


COLUMNS: tuple[Column[Row], ...] = (
    Column("process", 99, lambda row: safe(row.process.partition("/")[0]).plain, left=True),
    Column("state", 98, lambda row: row.state, left=True, style=lambda row: STYLES.get(row.state, "")),
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
    Column("version", 70, lambda row: safe(row.version or f.DASH).plain, left=True),
    Column("area", 20, lambda row: safe(row.area or f.DASH).plain, left=True),
    Column("up for", 35, lambda row: lasting(row.uptime_s)),
)


def cluster_table(rows: Sequence[Row], rows_max: int) -> RenderableType:
    """Without the columns about which nobody tells anything."""
    shown = rows[:rows_max]
    told = [column for column in COLUMNS if column.rank > 90 or any(column.text(row) != f.DASH for row in rows)]
    table = RankedTable(told, shown, lambda row: not row.asked)
    more = len(rows) - len(shown)
    return Group(table, Text(f"and {more:,} more", style="dim")) if more else table


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
