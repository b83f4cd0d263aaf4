"""A cluster on this machine as people and programs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epicast.cli import formats as f
from epicast.cli.output import unbroken

if TYPE_CHECKING:
    from epicast.live.cluster import Cluster, Outcome, Summary
    from epicast.live.heard import Heard
    from epicast.live.member import Member

NODES_MISSING_MAX = 10


def ready_dict(cluster: Cluster, seconds: float) -> dict[str, Any]:
    return {
        "event": "ready",
        "seconds": round(seconds, 3),
        "nodes": [_node(member) for member in cluster.members],
        "keys": str(cluster.keys) if cluster.plan.tls else None,
        "admins": str(cluster.admins),
    }


def changed_dict(member: Member, what: str) -> dict[str, Any]:
    """A process that was killed, or added."""
    return {"event": what, **_node(member)}


def _node(member: Member) -> dict[str, Any]:
    return {
        "number": member.number,
        "id": member.id,
        "address": member.address,
        "admin": str(member.admin),
        "pid": member.pid,
    }


def ready_view(cluster: Cluster, seconds: float, lasting: bool) -> RenderableType:
    """`lasting`: there is time to try something."""
    table = Table(box=None, header_style="bold", padding=(0, 3, 0, 0))
    table.add_column("node", justify="right")
    table.add_column("address")
    table.add_column("admin")
    for member in cluster.members:
        table.add_row(str(member.number), member.address, f"http://{member.admin}")
    joined = f"{len(cluster.members):,} nodes joined in {seconds:.1f} s."
    nodes = Padding(table, (0, 0, 1, 2), expand=False)
    if not lasting:
        return Group(nodes, joined)
    first = cluster.members[0]
    keys = f" --keys {cluster.keys} --name client" if cluster.plan.tls else ""
    commands = (
        f"epicast sub '**' --seed {first.address}{keys}",
        f"epicast pub some/topic hello --seed {first.address}{keys}",
        f"epicast top --admin @{cluster.admins}",
    )
    shown = [unbroken(f"  {command}", "cyan") for command in commands]
    return Group(nodes, f"{joined} Ctrl-C ends them. Meanwhile:", *shown)


def outcome_dict(outcome: Outcome) -> dict[str, Any]:
    return {
        "event": "played",
        "messages": outcome.messages,
        "payload_bytes": outcome.payload_bytes,
        "publish_s": round(outcome.publish_s, 6),
        "delivered": sum(outcome.delivered.values()),
        "duplicates": outcome.duplicates,
        "copies_per_delivery": outcome.copies_per_delivery,
        "sent_near_bytes": outcome.sent_near_bytes,
        "sent_far_bytes": outcome.sent_far_bytes,
        "missing": [{"number": number, "messages": count} for number, count in outcome.missing.items()],
        "latency_ms": outcome.heard.latency_ms,
        "lost_by_subscribers": outcome.heard.lost,
    }


def outcome_view(outcome: Outcome) -> RenderableType:
    nodes, missing = len(outcome.delivered), outcome.missing
    pace = f.rate(outcome.messages / outcome.publish_s) if outcome.publish_s > 0 else f.DASH
    head = f"{outcome.messages:,} messages of {f.size(outcome.payload_bytes)} published at {pace}: "
    if not missing:
        copies = outcome.copies_per_delivery
        more = "" if copies is None else f", {f.number(copies)} copies a delivery"
        return Text(f"{head}delivered by all {nodes:,} nodes{more}{_long_links(outcome)}")
    listed = [f"node {number} lacks {count:,}" for number, count in list(missing.items())[:NODES_MISSING_MAX]]
    if len(missing) > NODES_MISSING_MAX:
        listed.append("…")
    return Text(f"{head}NOT delivered by {len(missing):,} of {nodes:,} nodes: {', '.join(listed)}")


def _long_links(outcome: Outcome) -> str:
    """What crossed from area to area, in bytes and in copies of all that was published."""
    if not outcome.sent_far_bytes:
        return ""
    copies = outcome.sent_far_bytes / (outcome.messages * outcome.payload_bytes)
    far, near = f.size(outcome.sent_far_bytes), f.size(outcome.sent_near_bytes)
    return f"; {far} between areas, as much as {f.number(copies)} copies of everything, and {near} within them"


def summary_dict(summary: Summary) -> dict[str, Any]:
    return {
        "event": "summary",
        "seconds": round(summary.seconds, 3),
        "running": summary.running,
        "killed": summary.killed,
        "added": summary.added,
        "published": summary.published,
        "delivered": summary.delivered,
        "duplicates": summary.duplicates,
        "latency_ms": summary.heard.latency_ms,
        "lost_by_subscribers": summary.heard.lost,
    }


def summary_view(summary: Summary) -> RenderableType:
    """Of the processes that run at the end: those that are gone tell nothing any more."""
    processes = [f"{summary.running:,} at the end"]
    processes += [
        f"{count:,} {what}" for what, count in (("killed", summary.killed), ("added", summary.added)) if count
    ]
    messages = {"published": summary.published, "delivered": summary.delivered, "duplicates": summary.duplicates}
    rows = {
        "Ran": f"{summary.seconds:.1f} s",
        "Processes": " · ".join(processes),
        "Messages": " · ".join(f"{count:,} {what}" for what, count in messages.items()),
        "Latency": latency(summary.heard),
    }
    if summary.heard.lost:
        rows["Lost"] = f"{summary.heard.lost:,} by subscribers, who were told"
    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, text in rows.items():
        table.add_row(label, text)
    return Padding(table, (1, 0, 0, 2), expand=False)


def latency(heard: Heard) -> str:
    """From publication to the subscribers of other processes."""
    found = heard.latency_ms
    return f.DASH if found is None else " · ".join(f"{name} {f.ms(value)}" for name, value in found.items())
