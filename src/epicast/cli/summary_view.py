"""A run's summary as people read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epicast.cli import formats as f

if TYPE_CHECKING:
    from epicast.sim.scenario import Scenario
    from epicast.sim.summary import Summary


def summary_view(summary: Summary, scenario: Scenario, folder: Path | None = None) -> RenderableType:
    rows = Table.grid(padding=(0, 3))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column()
    for label, value in _rows(summary, folder):
        rows.add_row(label, value)
    return Group(
        _title(summary, scenario),
        Padding(rows, (1, 0, 1, 2), expand=False),
        Padding(_layers(summary), (0, 0, 0, 1), expand=False),
    )


def _title(summary: Summary, scenario: Scenario) -> Text:
    title = Text.assemble(
        (summary.stack, "bold cyan"),
        f" · {scenario.nodes:,} nodes · {summary.messages:,} of {scenario.workload.messages:,} messages published",
        f" · seed {summary.seed}",
    )
    if summary.interrupted:
        title.append(" · interrupted", "bold red")
    return title


def _rows(s: Summary, folder: Path | None) -> list[tuple[str, str]]:
    latency, hops = s.latency_ms, s.hops
    rows = [
        ("Delivered", _delivered(s)),
        ("Copies per delivery", f.number(s.copies_per_delivery)),
        ("Latency", " · ".join(f"{key} {f.ms(latency[key])}" for key in ("p50", "p90", "p99", "max"))),
        ("Hops", f"mean {f.number(hops['mean'], 1)} · max {f.count(hops['max'])}"),
    ]
    if s.tree is not None:
        rows += [("Tree", _tree(s.tree)), ("Repairs", _repairs(s))]
    rows.append(("Processes", _processes(s)))
    if s.drops:
        rows.append(
            ("Lost on the way", " · ".join(f"{f.count(count)} ({_words(why)})" for why, count in s.drops.items()))
        )
    speed = "" if s.events_per_second is None else f" · {f.rate(s.events_per_second)} ({s.engine} engine)"
    rows.append(("Simulated", f"{s.virtual_s:,.1f} s · {f.count(s.events)} events{speed}"))
    if s.trace_digest is not None:
        rows.append(("Trace digest", s.trace_digest))
    if folder is not None:
        rows.append(("Run folder", f"{folder}{' (incomplete)' if s.interrupted else ''}"))
    return rows


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _delivered(s: Summary) -> str:
    owed = "" if s.owed is None or s.missing is None else f" ({f.count(s.owed - s.missing)} of {f.count(s.owed)} owed)"
    gaps = f" · {f.count(s.gaps)} gaps given up" if s.gaps else ""
    wrong = f" · {f.count(s.repeated)} delivered twice or never published" if s.repeated else ""
    return f"{f.percent(s.delivery_ratio)}{owed}{gaps}{wrong}"


def _tree(tree: dict[str, float | None]) -> str:
    parts = [
        f"depth {f.count(tree['depth_max'])} (mean {f.number(tree['depth_mean'], 1)})",
        f"degree up to {f.count(tree['degree_max'])}",
        f"{f.percent_rounded(tree['leaf_share'])} leaves",
    ]
    if tree["orphans"]:
        parts.append(f"{f.count(tree['orphans'])} without a parent")
    return " · ".join(parts)


def _repairs(s: Summary) -> str:
    repairs = s.repairs
    return f"{repairs['soft']:,} soft · {repairs['hard']:,} hard · {repairs['parents_lost']:,} parents lost"


def _processes(s: Summary) -> str:
    nodes = s.nodes
    gone = [f"{nodes[how]:,} {how}" for how in ("crashed", "left") if nodes[how]]
    return " · ".join([f"{nodes['started']:,} started", *gone, f"{nodes['up_at_end']:,} up at the end"])


def _layers(s: Summary) -> Table:
    """What was sent, by layer, and what that means for one process."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 1))
    for heading in ("Sent by layer", "messages", "bytes", "bytes per process"):
        table.add_column(heading, justify="left" if heading == "Sent by layer" else "right")
    per = max(1, s.nodes["started"])
    for layer, messages in s.messages_by_layer.items():
        sent = s.bytes_by_layer[layer]
        table.add_row(layer, f.count(messages), f.size(sent), f.size(sent / per))
    messages, sent = sum(s.messages_by_layer.values()), sum(s.bytes_by_layer.values())
    table.add_row("all", f.count(messages), f.size(sent), f.size(sent / per), style="dim")
    return table
