"""What balls and bins did at each size, as a table for people and as values for programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from epicast.cli import formats as f

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epicast.sim.bulk.sizes import Size, SizesConfig

HEADER = ("nodes", "fanout", "rounds", "median", "last", "global", "logical", "copies", "sent", "holes")
MEANING = (
    "From the broadcast until half of the processes (median) and all of them (last) have an event, and until half have "
    "delivered it in total order, with a global clock or with logical ones; what a process sends for it; and processes "
    "that never got it, of all seeds together. The rest are means over the seeds."
)


def view(config: SizesConfig, sizes: Sequence[Size], out: Path | None) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 1))
    for name in HEADER:
        table.add_column(name, justify="right", no_wrap=True)
    for size in sizes:
        table.add_row(*cells(config, size))
    figures = "" if out is None else f"\nFigures: {out}"
    return Group(Text(title(config), style="bold"), table, Text(MEANING + figures))


def title(config: SizesConfig) -> str:
    lost = f" · {f.percent(config.loss)} lost" if config.loss else ""
    on = " · going on" if config.go_on else ""
    seeds = f"{config.seeds:,} event{'' if config.seeds == 1 else 's'} each"
    return f"rounds of {f.ms(config.period_us / 1000)} · {config.latency}{lost} · c = {config.c:g}{on} · {seeds}"


def cells(config: SizesConfig, size: Size) -> list[str]:
    delays = (_mean(size, name) for name in ("unordered_ms", "last_ms", "global_ms", "logical_ms"))
    copies = _mean(size, "copies")
    return [
        f.count(size.nodes),
        f.count(size.fanout),
        f.count(size.rounds),
        *(f.ms(delay) for delay in delays),
        f.number(copies, 1),
        f.size(None if copies is None else copies * config.event_bytes),
        f.count(size.holes),
    ]


def _mean(size: Size, name: str) -> float | None:
    found = size.over_seeds(name)
    return None if found is None else found.mean


def as_dict(config: SizesConfig, sizes: Sequence[Size], out: Path | None) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(config),
        "sizes": [{**size.as_dict(), "bytes": _bytes(config, size)} for size in sizes],
        "page": None if out is None else str(out),
    }


def _bytes(config: SizesConfig, size: Size) -> int:
    """Sent by a process, on average."""
    copies = size.over_seeds("copies")
    assert copies is not None, "even a copy that is lost was sent"
    return round(copies.mean * config.event_bytes)
