"""What a node tells of itself, as people read it."""

from __future__ import annotations

from time import monotonic
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from epicast.cli import formats as f
from epicast.cli.fitting import Column, RankedTable

ROWS_MAX = 12

Status = dict[str, Any]

TROUBLE = (
    "lost by subscribers",
    "slow peers cut",
    "connections refused",
    "nonsense",
    "bad signatures",
    "replays",
    "record gap",
)


class Look:
    """A status, and when it was taken."""

    def __init__(self, status: Status, at_s: float | None = None) -> None:
        self.status = status
        self.at_s = monotonic() if at_s is None else at_s

    def count(self, name: str) -> int:
        return int(self.status["counters"].get(name, 0))

    def bytes(self, key: str) -> dict[str, int]:
        """Of each neighbour."""
        return {each["id"]: each[key] for each in self.status["neighbours"]}


def rates(before: Look, now: Look) -> dict[str, float]:
    """A second, between two looks. Bytes are those of connections that were there at both."""
    seconds = max(now.at_s - before.at_s, 1e-9)
    names = ("delivered", "published", "duplicates")
    counted = {name: (now.count(name) - before.count(name)) / seconds for name in names}
    sizes = {key: sum(_gained(before, now, key).values()) / seconds for key in ("received_bytes", "sent_bytes")}
    return counted | sizes


def _gained(before: Look, now: Look, key: str) -> dict[str, int]:
    old = before.bytes(key)
    return {peer: max(0, size - old[peer]) for peer, size in now.bytes(key).items() if peer in old}


def top_view(before: Look, now: Look) -> RenderableType:
    status = now.status
    parts: list[RenderableType] = [_title(status), Padding(_numbers(before, now), (1, 0, 0, 2), expand=False)]
    for table in (_neighbours(before, now), _flows(status), _subscriptions(status)):
        if table is not None:
            parts.append(Padding(table, (1, 0, 0, 1)))
    return Group(*parts)


def members_view(status: Status) -> RenderableType:
    rows = [*status["neighbours"], *({"id": peer} for peer in status["known"])]
    table = RankedTable(MEMBERS, rows, lambda row: "up" not in row)
    neighbours, known = len(status["neighbours"]), len(status["known"])
    return Group(
        _title(status),
        Padding(f"{some(neighbours, 'neighbour')}, {some(known, 'process', 'es')} more known", (1, 0, 1, 2)),
        Padding(table, (0, 0, 0, 1)),
    )


def _state(row: Status) -> str:
    return "known" if "up" not in row else "neighbour" if row["up"] else "dialling"


MEMBERS: tuple[Column[Status], ...] = (
    Column("process", 99, lambda row: safe(row["id"]).plain, left=True),
    Column("state", 98, _state, left=True),
    Column("round trip", 90, lambda row: f.ms(row.get("round_trip_ms"))),
    Column("queue", 60, lambda row: f.size(row.get("queue_bytes"))),
    Column("received", 80, lambda row: f.size(row.get("received_bytes"))),
    Column("sent", 75, lambda row: f.size(row.get("sent_bytes"))),
    Column("connected for", 50, lambda row: lasting(row.get("since_s"))),
)


def lasting(seconds: float | None) -> str:
    """12 s, 3 min, 2.5 h, 4.0 d"""
    if seconds is None:
        return f.DASH
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"


def safe(text: str) -> Text:
    """What others named themselves: neither markup nor orders to the terminal."""
    return Text("".join(letter if letter.isprintable() else "?" for letter in text))


def some(count: int, word: str, ending: str = "s") -> str:
    return f"{count:,} {word}{'' if count == 1 else ending}"


def _title(status: Status) -> Text:
    title = Text.assemble(
        (safe(status["id"]).plain, "bold cyan"),
        safe(f" · cluster {status['cluster']} · {status['stack']} · up {lasting(status['uptime_s'])}"),
    )
    if not status["joined"]:
        title.append(" · no neighbours", "bold red")
    return title


def _numbers(before: Look, now: Look) -> Table:
    pace, queues = rates(before, now), now.status["queues"]
    rows = {
        "Delivered": f"{f.rate(pace['delivered'])} · {f.count(now.count('delivered'))} in all",
        "Published": f"{f.rate(pace['published'])} · {f.count(now.count('published'))} in all",
        "Duplicates": f"{f.rate(pace['duplicates'])} · {f.count(now.count('duplicates'))} in all",
        "Network": f"{f.size(pace['received_bytes'])}/s received · {f.size(pace['sent_bytes'])}/s sent",
        "Queues": _queues(queues),
    }
    trouble = [f"{name.removeprefix('record ')} {f.count(now.count(name))}" for name in TROUBLE if now.count(name)]
    trouble += _drops(now)
    if trouble:
        rows["Trouble"] = " · ".join(trouble)
    table = Table.grid(padding=(0, 3))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, text in rows.items():
        table.add_row(label, text)
    return table


def _queues(queues: Status) -> str:
    text = f"{f.size(queues['peers_bytes'])} for peers, at most {f.size(queues['slowest_peer_bytes'])} for one"
    text += f" · {f.count(queues['subscribers_messages'])} messages for subscribers"
    return f"{text} · publishers wait" if queues["congested"] else text


def _drops(now: Look) -> list[str]:
    dropped = sum(count for name, count in now.status["counters"].items() if name.startswith("dropped: "))
    return [f"messages dropped {f.count(dropped)}"] if dropped else []


def _neighbours(before: Look, now: Look) -> RenderableType | None:
    received, sent = _gained(before, now, "received_bytes"), _gained(before, now, "sent_bytes")
    seconds = max(now.at_s - before.at_s, 1e-9)

    def pace(gained: dict[str, int], row: Status) -> str:
        return f"{f.size(gained[row['id']] / seconds)}/s" if row["id"] in gained else f.DASH

    columns: tuple[Column[Status], ...] = (
        Column("neighbour", 99, lambda row: safe(row["id"]).plain, left=True),
        Column("round trip", 98, lambda row: f.ms(row["round_trip_ms"])),
        Column("queue", 90, lambda row: f.size(row["queue_bytes"])),
        Column("received", 80, lambda row: pace(received, row)),
        Column("sent", 75, lambda row: pace(sent, row)),
        Column("connected for", 50, lambda row: lasting(row["since_s"]) if row["up"] else "dialling"),
    )
    rows = now.status["neighbours"]
    if not rows:
        return None
    table = RankedTable(columns, rows[:ROWS_MAX], lambda row: False)
    more = len(rows) - ROWS_MAX
    return Group(table, Text(f"and {more:,} more", style="dim")) if more > 0 else table


def _flows(status: Status) -> Table | None:
    table = _table("flow of", "parent", "children", "depth", left=2)
    for each in status["flows"][:ROWS_MAX]:
        if each["own"]:
            parent = "(our own)"
        else:
            parent = each["parent"] or ("(looking for one)" if each.get("cut_off", True) else "(source gone)")
        source = each["source"] + (f" #{each['number']}" if each["number"] else "")
        table.add_row(safe(source), safe(parent), f.count(each["children_total"]), f.count(each["depth"]))
    return _finished(table, status["flows_total"])


def _subscriptions(status: Status) -> Table | None:
    table = _table("subscription", "policy", "waiting", "taken", "lost", left=2)
    for each in status["subscriptions"][:ROWS_MAX]:
        counts = [f.count(each[key]) for key in ("waiting", "taken", "lost")]
        table.add_row(safe(each["pattern"]), each["policy"], *counts)
    return _finished(table, status["subscriptions_total"])


def _table(*headings: str, left: int = 1) -> Table:
    """The first columns are texts, the others numbers."""
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 1))
    for at, heading in enumerate(headings):
        is_text = at < left or heading == "state"
        table.add_column(heading, justify="left" if is_text else "right", overflow="fold")
    return table


def _finished(table: Table, total: int) -> Table | None:
    if not table.row_count:
        return None
    if total > table.row_count:
        table.add_row(f"and {total - table.row_count:,} more", style="dim")
    return table
