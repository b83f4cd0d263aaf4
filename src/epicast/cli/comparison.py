"""Runs of several stacks through the same scenario, as one table and one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epicast.cli import formats as f
from epicast.core.message import Message

if TYPE_CHECKING:
    from rich.console import RenderableType

    from epicast.sim.summary import Summary


@dataclass(frozen=True)
class Outcome:
    summary: Summary
    sent: dict[type[Message], list[int]]  # messages and bytes, by type

    @property
    def bytes_per_node(self) -> float:
        return sum(tally[1] for tally in self.sent.values()) / self.summary.nodes["started"]

    @property
    def control_bytes_per_node(self) -> float:
        """Of all messages that carry no payload: the price of the overlay and of the tree."""
        control = sum(tally[1] for kind, tally in self.sent.items() if "payload" not in kind.__struct_fields__)
        return control / self.summary.nodes["started"]

    @property
    def control_share(self) -> float | None:
        return self.control_bytes_per_node / self.bytes_per_node if self.bytes_per_node else None

    def as_dict(self) -> dict[str, Any]:
        return {
            **self.summary.as_dict(),
            "bytes_per_node": round(self.bytes_per_node),
            "control_bytes_per_node": round(self.control_bytes_per_node),
            "control_share": self.control_share,
        }


def as_dict(outcomes: Sequence[Outcome], settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "scenario": settings,
        "stacks": {outcome.summary.stack: outcome.as_dict() for outcome in outcomes},
        "explanation": explanation(outcomes[0], outcomes[1]),
    }


def view(outcomes: Sequence[Outcome], settings: dict[str, Any]) -> RenderableType:
    from rich import box
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", padding=(0, 2))
    table.add_column("")
    for outcome in outcomes:
        table.add_column(outcome.summary.stack, justify="right")
    columns = [_column(outcome) for outcome in outcomes]
    for label in columns[0]:
        table.add_row(label, *(column[label] for column in columns))
    workload = settings["workload"]
    title = (
        f"{settings['nodes']:,} nodes · {workload['messages']:,} messages of {workload['payload_bytes']:,} bytes, "
        f"{workload['rate']} a second · {settings['churn']} · seed {settings['seed']}"
    )
    return Group(Text(title, style="bold"), table, Text(explanation(outcomes[0], outcomes[1])))


def _column(outcome: Outcome) -> dict[str, str]:
    s = outcome.summary
    tree, repairs = s.tree, s.repairs
    return {
        "delivery ratio": f.percent(s.delivery_ratio),
        "copies per delivery": f.number(s.copies_per_delivery),
        "latency, median": f.ms(s.latency_ms["p50"]),
        "latency, 99th percentile": f.ms(s.latency_ms["p99"]),
        "sent per node": f.size(outcome.bytes_per_node),
        "of that control": f"{f.size(outcome.control_bytes_per_node)} ({f.percent_rounded(outcome.control_share)})",
        "tree depth": f.count(tree["depth_max"]) if tree is not None else f.DASH,
        "parents lost": f.count(repairs["parents_lost"]) if tree is not None else f.DASH,
        "repairs, soft and hard": f"{repairs['soft']:,} + {repairs['hard']:,}" if tree is not None else f.DASH,
        "processes crashed": f.count(s.nodes["crashed"]),
    }


def explanation(flood: Outcome, tree: Outcome) -> str:
    """What the table shows, in one sentence."""
    a, b = flood.summary, tree.summary
    return (
        f"{_delivered(a, b)}; {a.stack} brings each process {f.number(a.copies_per_delivery)} copies of a message, "
        f"{b.stack} {f.number(b.copies_per_delivery)}, which makes "
        f"{_compared(tree.bytes_per_node, flood.bytes_per_node, 'fewer', 'more')} bytes to send and a median latency "
        f"{_compared(b.latency_ms['p50'], a.latency_ms['p50'], 'lower', 'higher')}, and {_mended(b)}."
    )


def _delivered(a: Summary, b: Summary) -> str:
    if a.missing == b.missing == 0:
        return f"{f.count(b.nodes['crashed'])} processes crashed and both stacks delivered everything"
    return f"{a.stack} delivered {f.percent(a.delivery_ratio)}, {b.stack} {f.percent(b.delivery_ratio)}"


def _compared(value: float | None, other: float | None, less: str, more: str) -> str:
    """`27 % fewer`, for two amounts."""
    if not value or not other:
        return f"{f.DASH} {less}"
    return f"{f.percent_rounded(abs(1 - value / other))} {less if value <= other else more}"


def _mended(s: Summary) -> str:
    repairs = s.repairs
    if not repairs["parents_lost"]:
        return "no process lost its parent in the tree"
    times = f"{f.count(repairs['parents_lost'])} times that a process lost its parent in the tree"
    if repairs["soft"] == repairs["parents_lost"]:
        return f"all {times} were mended among its neighbours"
    soft, hard = f.count(repairs["soft"]), f.count(repairs["hard"])
    return f"of the {times}, {soft} were mended among its neighbours and {hard} by a wider search"
